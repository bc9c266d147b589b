//! DynamoDB's expression language: text in, a bound syntax tree out, and the one evaluator for it.
//!
//! An expression is parsed once per request. [`Binder`] lexes and parses the text, reports the
//! first fault in DynamoDB's order of priority, and resolves `#name` and `:value` placeholders. The
//! results ([`Condition`], [`KeyCondition`], [`Projection`], [`Update`]) hold no text and can be
//! evaluated any number of times. The legacy parameters and PartiQL build the same types directly;
//! each type's documentation says how they lower to it.
//!
//! ```
//! use std::collections::BTreeMap;
//! use zenobe_expression::{Binder, ExpressionKind};
//! use zenobe_value::{AttributeValue, EncodedItem};
//!
//! let values = BTreeMap::from([(":low".to_owned(), AttributeValue::N(3.into()))]);
//! let mut binder = Binder::new(None, Some(&values));
//! let condition = binder.condition(ExpressionKind::Filter, "stock < :low").unwrap();
//! assert_eq!(binder.finish(), Ok(()));
//!
//! let item = EncodedItem::encode(&[("stock".to_owned(), AttributeValue::N(2.into()))].into());
//! assert!(condition.evaluate(Some(item.as_item())));
//! assert!(!condition.evaluate(None));
//! ```
//!
//! **Invariant:** nothing here knows a table's schema, JSON, or the text of an error message.

mod bind;
mod condition;
mod error;
mod evaluate;
mod evaluation_cost;
mod key_condition;
mod lexer;
pub mod limits;
mod listed_path;
mod operator;
mod parser;
pub mod partiql;
mod projection;
mod reserved_words;
mod syntax;
mod syntax_cache;
mod update;

pub use bind::{Binder, is_name_placeholder, is_value_placeholder};
pub use condition::{Comparator, Condition, Operand};
pub use error::{
    ExpressionError, ExpressionFault, ExpressionKind, OperandType, Unused, long_type_name,
};
pub use evaluation_cost::Cost;
pub use key_condition::{KeyCondition, KeyOperator};
pub use listed_path::ListedPath;
pub use operator::{Operator, Section};
pub use projection::Projection;
pub use reserved_words::is_reserved_word;
pub use update::{Action, SetOperand, SetValue, Update, UpdateError};
