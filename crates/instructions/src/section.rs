//! The part of a run that is counted.
//!
//! `cargo xtask instructions` finds [`section_begins`] and [`section_ends`] by name: callgrind
//! dumps its counts whenever one of them is called. The counts between the two belong to the
//! section, over all threads.

use std::hint::black_box;

pub fn count(section: impl FnOnce()) {
    section_begins();
    section();
    section_ends();
}

// The texts keep the compiler from merging the two functions.
#[inline(never)]
fn section_begins() {
    black_box("begins");
}

#[inline(never)]
fn section_ends() {
    black_box("ends");
}
