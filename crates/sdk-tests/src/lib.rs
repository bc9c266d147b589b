//! This crate has no code of its own: it exists for `tests/it`, which drives a real server process.
