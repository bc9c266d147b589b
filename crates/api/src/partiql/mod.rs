//! PartiQL: statements lower to the same commands as other operations.
//!
//! A request's statement is [`Prepared`] (parameters checked, text parsed), bound, and then lowered
//! against its table's definition. The planner ([`plan`]) lowers a SELECT to reads of single items,
//! queries or a scan; a write ([`write`]) becomes the put, update or delete of one item.
//! ExecuteStatement, BatchExecuteStatement and ExecuteTransaction differ only in which of these
//! they accept and in how they run them.

pub(crate) mod next_token;
pub(crate) mod parameters;
pub(crate) mod plan;
pub(crate) mod plan_header;
mod prepare;
pub(crate) mod read;
pub(crate) mod write;

pub(crate) use prepare::{BoundSelect, BoundStatement, Prepared, statement_error};
