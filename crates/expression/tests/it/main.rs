//! Integration tests of the expression language: golden scripts, and properties checked against
//! naive models.

mod condition_model;
mod cost;
mod generate;
mod golden;
mod legacy;
mod limits;
mod memory;
mod notation;
mod partiql;
mod properties;
mod update_model;

#[global_allocator]
static ALLOCATOR: zenobe_testing::allocations::Counting = zenobe_testing::allocations::Counting;
