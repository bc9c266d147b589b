//! The stretch of a run that is counted.
//!
//! `cargo xtask instructions` knows [`section_begins`] and [`section_ends`] by their names: it has callgrind open a new
//! account whenever one of them is called. What lies between is the account of all threads for the section.

use std::hint::black_box;

pub fn count(section: impl FnOnce()) {
    section_begins();
    section();
    section_ends();
}

// The texts keep the compiler from taking one for the other.
#[inline(never)]
fn section_begins() {
    black_box("begins");
}

#[inline(never)]
fn section_ends() {
    black_box("ends");
}
