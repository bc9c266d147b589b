//! How much memory a piece of work takes at its peak, counted by the allocator of the test binary.
//!
//! A test binary that counts declares the allocator once:
//!
//! ```
//! #[global_allocator]
//! static ALLOCATOR: zenobe_testing::allocations::Counting = zenobe_testing::allocations::Counting;
//! # fn main() {
//! let (text, peak_bytes) = zenobe_testing::allocations::peak(|| "x".repeat(1_000));
//! assert_eq!((text.len(), peak_bytes), (1_000, 1_000));
//! # }
//! ```
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator with a counter per thread, because tests run in parallel.
pub struct Counting;

thread_local! {
    static HELD_BYTES: Cell<isize> = const { Cell::new(0) };
    static PEAK_BYTES: Cell<isize> = const { Cell::new(0) };
}

/// Runs the work and returns the most bytes that it held, besides what the thread held before.
pub fn peak<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD_BYTES.get();
    PEAK_BYTES.set(before);
    let done = work();
    (done, usize::try_from(PEAK_BYTES.get() - before).unwrap_or_default())
}

fn count(size_bytes: isize) {
    // An ending thread has lost its counters, and nobody reads them any more.
    let _ = HELD_BYTES.try_with(|held| {
        held.set(held.get() + size_bytes);
        let _ = PEAK_BYTES.try_with(|peak| peak.set(peak.get().max(held.get())));
    });
}

// SAFETY: passes every call on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's promises are the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the caller's promises are the same.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // Both blocks may exist for a moment.
        count(new_size as isize);
        // SAFETY: the caller's promises are the same.
        let moved = unsafe { System.realloc(pointer, layout, new_size) };
        count(-(layout.size() as isize));
        moved
    }
}
