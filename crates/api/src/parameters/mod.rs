//! Request parameters that all operations on items share: expressions, items and keys, and what to return.

pub(crate) mod expressions;
pub(crate) mod items;
pub(crate) mod returns;
