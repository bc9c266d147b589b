//! PartiQL as DynamoDB speaks it: a statement's text in, a syntax tree out, and the tree bound to a request's parameters.
//!
//! [`parse`] reads a text and reports its first fault: of syntax if there is one, otherwise of what the statement means as
//! far as no parameter and no table decides it. A [`Statement`] therefore holds no faults and no text, is shared by all
//! requests that repeat it, and can be bound any number of times:
//!
//! * a WHERE clause to a [`Predicate`], which still shows its structure to whoever looks for keys in it, and lowers to the
//!   [`Condition`](crate::Condition) that expressions lower to;
//! * SET and REMOVE to an [`Update`](crate::Update), a select list to a [`Projection`](crate::Projection), an inserted item
//!   to attributes.
//!
//! **Invariant:** nothing here evaluates anything. There is one evaluator, and it knows no dialects.

mod bind;
mod fault;
mod keywords;
mod lexer;
mod number_range;
mod parser;
mod predicate;
mod statement;

use std::sync::Arc;

use crate::remembered::Remembered;

pub use bind::Parameters;
pub use fault::{Position, StatementFault, Unsupported};
pub use keywords::is_keyword;
pub use number_range::range_error;
pub use predicate::{Predicate, PredicateOperand};
pub use statement::{
    Assignment, AssignmentOperand, AssignmentValue, Column, Delete, Image, Insert, InsertedItem,
    OrderKey, Returning, Select, Source, Statement, StatementKind, Term, Test, TestOperand,
    TypeTest, Update,
};

/// Parses a statement, or finds it among those that this thread has parsed before.
pub fn parse(text: &str) -> Result<Arc<Statement>, StatementFault> {
    thread_local! {
        static STATEMENTS: Remembered<Arc<Statement>> = Remembered::new();
    }
    STATEMENTS.with(|statements| statements.get_or_parse(text, parser::parse))
}
