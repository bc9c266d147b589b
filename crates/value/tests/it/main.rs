//! Tests of the value crate: golden data in `tests/cases/value`, and properties against an exact
//! oracle.

mod generate;
mod golden;
mod item_bytes;
mod item_bytes_damage;
mod key_bytes;
mod number;
mod number_oracle;
mod path;
mod size;
