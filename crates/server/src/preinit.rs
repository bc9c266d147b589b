//! Runs before any library of the process initialises.
//!
//! mimalloc replaces `malloc`, and asks for the time during its own initialisation, before it has a
//! map of its pages. A preloaded library that intercepts that call (libfaketime does) may allocate
//! then. Those blocks are missing from the map that mimalloc creates afterwards, and freeing them
//! crashes the process. So mimalloc initialises here, first of all, and until then the time comes
//! straight from the system.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_long};
use std::sync::atomic::{AtomicBool, Ordering};

use libmimalloc_sys::{mi_free, mi_malloc};

static IS_PREPARED: AtomicBool = AtomicBool::new(false);

unsafe extern "C" {
    /// The original function; the linker redirects its callers to the one below.
    fn __real_clock_gettime(clock: c_int, time: *mut libc::timespec) -> c_int;
}

/// # Safety
/// The same as for `clock_gettime`.
#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap_clock_gettime(clock: c_int, time: *mut libc::timespec) -> c_int {
    match IS_PREPARED.load(Ordering::Relaxed) {
        // SAFETY: the caller's promises are the same.
        true => unsafe { __real_clock_gettime(clock, time) },
        // SAFETY: as above; the system call takes the same arguments.
        false => unsafe {
            libc::syscall(libc::SYS_clock_gettime, c_long::from(clock), time) as c_int
        },
    }
}

/// The dynamic linker calls this before the initialisers of libraries.
#[used]
#[unsafe(link_section = ".preinit_array")]
static PREPARE: extern "C" fn() = prepare;

extern "C" fn prepare() {
    // SAFETY: any size is valid, and the block is freed once.
    unsafe { mi_free(mi_malloc(1)) };
    IS_PREPARED.store(true, Ordering::Relaxed);
}
