//! The database from outside.

mod formats;
mod imports;
