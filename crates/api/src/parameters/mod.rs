//! Request parameters that all item operations share: expressions, items and keys, and what to
//! return.

mod condition;
pub(crate) mod expressions;
pub(crate) mod items;
pub(crate) mod returns;

pub(crate) use condition::ConditionParameters;
