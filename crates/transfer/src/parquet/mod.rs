//! Apache Parquet: items as columns, for DuckDB, pyarrow, Spark and their like.
//!
//! Hand-written, because little is needed: plain values, one codec, one page after the other. The parquet crate would add some
//! thirty crates for readers, encodings and statistics that nobody here uses.
//!
//! * [`infer`]: which type a column has, from the values that it will have.
//! * [`column`]: values as pages.
//! * [`file`]: pages and what describes them, as a file.
//! * [`thrift`]: the encoding of these descriptions.

mod column;
mod file;
mod infer;
mod thrift;

pub use file::PartFile;
pub use infer::{ColumnType, Columns, Scalar, TooManyColumns};

#[cfg(test)]
mod tests;
