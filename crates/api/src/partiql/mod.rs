//! PartiQL: statements become the commands that other operations become.
//!
//! A request's statement is [`Prepared`] (parameters checked, text parsed), bound, and then lowered against its table's
//! definition: a SELECT by the planner ([`plan`]) to reads of single items, queries or a scan, a write ([`write`]) to the
//! put, update or delete of one item. ExecuteStatement, BatchExecuteStatement and ExecuteTransaction differ only in what they
//! accept of these and in how they run them.

pub(crate) mod insight;
pub(crate) mod next_token;
pub(crate) mod parameters;
pub(crate) mod plan;
mod prepare;
pub(crate) mod read;
pub(crate) mod write;

pub(crate) use prepare::{Bound, BoundSelect, Prepared, statement_error};
