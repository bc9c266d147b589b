//! The process's allocator: mimalloc, which is designed for short-lived memory that crosses
//! threads, as that of requests does.
//!
//! The `mimalloc` crate passes the alignment of each block, and mimalloc serves that by a slower
//! path, sometimes from the middle of a larger block. Nearly all requested alignments are ones that
//! every block has anyway.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout};

use libmimalloc_sys::{mi_malloc, mi_zalloc};
use mimalloc::MiMalloc;

pub struct Allocator;

/// What `malloc` guarantees: a block is aligned for everything that fits in it and needs at most
/// this alignment.
const MALLOC_ALIGNMENT_MAX: usize = 16;

fn is_aligned_by_malloc(layout: Layout) -> bool {
    layout.align() <= MALLOC_ALIGNMENT_MAX && layout.align() <= layout.size()
}

// SAFETY: blocks of both functions are freed and grown like those of `MiMalloc`, which is sound,
// and have the requested alignment.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match is_aligned_by_malloc(layout) {
            // SAFETY: any size is valid.
            true => unsafe { mi_malloc(layout.size()).cast() },
            // SAFETY: the caller's promises are the same.
            false => unsafe { MiMalloc.alloc(layout) },
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        match is_aligned_by_malloc(layout) {
            // SAFETY: any size is valid.
            true => unsafe { mi_zalloc(layout.size()).cast() },
            // SAFETY: the caller's promises are the same.
            false => unsafe { MiMalloc.alloc_zeroed(layout) },
        }
    }

    #[inline]
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are the same.
        unsafe { MiMalloc.dealloc(pointer, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller's promises are the same.
        unsafe { MiMalloc.realloc(pointer, layout, new_size) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_all_sizes_have_their_alignment() {
        for alignment in [1, 2, 4, 8, 16, 64, 4096] {
            for size in (1..100).chain([1000, 1024, 1500, 5000, 100_000, 5_000_000]) {
                let layout = Layout::from_size_align(size, alignment).unwrap();
                // Several, because the first block of a page may be aligned by chance.
                let blocks: Vec<*mut u8> = (0..8)
                    .map(|number| unsafe {
                        match number % 2 {
                            0 => Allocator.alloc(layout),
                            _ => Allocator.alloc_zeroed(layout),
                        }
                    })
                    .collect();
                for block in blocks {
                    assert!(
                        !block.is_null() && block.addr().is_multiple_of(alignment),
                        "{layout:?}"
                    );
                    let larger = Layout::from_size_align(2 * size, alignment).unwrap();
                    let grown = unsafe { Allocator.realloc(block, layout, larger.size()) };
                    assert!(grown.addr().is_multiple_of(alignment), "{layout:?}");
                    unsafe { Allocator.dealloc(grown, larger) };
                }
            }
        }
    }
}
