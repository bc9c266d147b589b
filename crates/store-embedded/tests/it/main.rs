//! The embedded store as its users see it: one binary, by subject.

mod conformance;
mod directory;
