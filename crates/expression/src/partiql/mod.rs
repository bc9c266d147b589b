//! DynamoDB's PartiQL: parses a statement's text into a syntax tree, and binds the tree to a
//! request's parameters.
//!
//! [`parse`] reads a text and reports its first fault: a syntax fault if there is one, otherwise a
//! fault of meaning that depends on no parameter and no table. A [`Statement`] therefore holds no
//! faults and no text. All requests that repeat it share it, and it can be bound any number of
//! times:
//!
//! * A WHERE clause binds to a [`Predicate`]. It still shows its structure to planners that look
//!   for keys, and lowers to the same [`Condition`](crate::Condition) as expressions do.
//! * SET and REMOVE bind to an [`Update`](crate::Update), a select list to a
//!   [`Projection`](crate::Projection), and an inserted item to attributes.
//!
//! **Invariant:** nothing here evaluates anything. There is one evaluator, and it knows no
//! dialects.

mod bind;
mod fault;
mod keywords;
mod lexer;
mod number_range;
mod parser;
mod predicate;
mod statement;

use std::sync::Arc;

use crate::syntax_cache::SyntaxCache;

pub use bind::Parameters;
pub use fault::{Position, StatementFault, Unsupported};
pub use keywords::is_keyword;
pub use number_range::range_error;
pub use predicate::{Predicate, PredicateOperand};
pub use statement::{
    Assignment, AssignmentOperand, AssignmentValue, Column, DeleteStatement, Image,
    InsertStatement, InsertedItem, OrderKey, Returning, SelectStatement, Statement, StatementKind,
    TableReference, Term, Test, TestOperand, TypeTest, UpdateStatement,
};

/// Parses a statement, or returns it from this thread's cache.
pub fn parse(text: &str) -> Result<Arc<Statement>, StatementFault> {
    thread_local! {
        static STATEMENTS: SyntaxCache<Arc<Statement>> = SyntaxCache::new();
    }
    STATEMENTS.with(|statements| statements.get_or_parse(text, parser::parse))
}
