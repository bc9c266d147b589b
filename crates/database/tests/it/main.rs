//! The database from outside.

mod formats;
