//! Integration tests of the expression language: golden scripts, and properties against naive twins.

mod condition_model;
mod cost;
mod generate;
mod golden;
mod legacy;
mod limits;
mod notation;
mod partiql;
mod properties;
mod update_model;
