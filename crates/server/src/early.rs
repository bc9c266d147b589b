//! What happens before any library of the process begins.
//!
//! mimalloc stands in for `malloc`, and asks for the time while it prepares itself, before it has a map of its pages. A
//! preloaded library that answers in place of the system (libfaketime does) may allocate then. Those blocks are not in
//! the map that mimalloc makes afterwards, and freeing them crashes the process. So mimalloc prepares itself here, first of all,
//! and until it has done so only the system is asked for the time.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_long};
use std::sync::atomic::{AtomicBool, Ordering};

use libmimalloc_sys::{mi_free, mi_malloc};

static IS_PREPARED: AtomicBool = AtomicBool::new(false);

unsafe extern "C" {
    /// The function that was asked for; the linker directs its callers to the one below.
    fn __real_clock_gettime(clock: c_int, time: *mut libc::timespec) -> c_int;
}

/// # Safety
/// As `clock_gettime`.
#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap_clock_gettime(clock: c_int, time: *mut libc::timespec) -> c_int {
    match IS_PREPARED.load(Ordering::Relaxed) {
        // SAFETY: the caller's promises are the same.
        true => unsafe { __real_clock_gettime(clock, time) },
        // SAFETY: as above; the system call takes what the function takes.
        false => unsafe {
            libc::syscall(libc::SYS_clock_gettime, c_long::from(clock), time) as c_int
        },
    }
}

/// Called by the dynamic linker before the initialisers of libraries.
#[used]
#[unsafe(link_section = ".preinit_array")]
static PREPARE: extern "C" fn() = prepare;

extern "C" fn prepare() {
    // SAFETY: a block of any size may be asked for, and is freed once.
    unsafe { mi_free(mi_malloc(1)) };
    IS_PREPARED.store(true, Ordering::Relaxed);
}
