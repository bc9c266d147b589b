//! The database from outside.

mod exports;
mod formats;
mod imports;
mod support;
