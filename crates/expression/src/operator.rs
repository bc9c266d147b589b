//! The names of operators, functions and update sections, as error messages print them.

use std::fmt;

use crate::condition::Comparator;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    And,
    Or,
    Not,
    Compare(Comparator),
    Between,
    In,
    AttributeExists,
    AttributeNotExists,
    AttributeType,
    BeginsWith,
    Contains,
    Size,
    IfNotExists,
    ListAppend,
    Plus,
    Minus,
}

impl Operator {
    pub fn name(self) -> &'static str {
        match self {
            Operator::And => "AND",
            Operator::Or => "OR",
            Operator::Not => "NOT",
            Operator::Compare(comparator) => comparator.symbol(),
            Operator::Between => "BETWEEN",
            Operator::In => "IN",
            Operator::AttributeExists => "attribute_exists",
            Operator::AttributeNotExists => "attribute_not_exists",
            Operator::AttributeType => "attribute_type",
            Operator::BeginsWith => "begins_with",
            Operator::Contains => "contains",
            Operator::Size => "size",
            Operator::IfNotExists => "if_not_exists",
            Operator::ListAppend => "list_append",
            Operator::Plus => "+",
            Operator::Minus => "-",
        }
    }

    /// The condition or filter function with this name. Names are case-sensitive.
    pub(crate) fn condition_function(name: &str) -> Option<Operator> {
        const FUNCTIONS: [Operator; 6] = [
            Operator::AttributeExists,
            Operator::AttributeNotExists,
            Operator::AttributeType,
            Operator::BeginsWith,
            Operator::Contains,
            Operator::Size,
        ];
        FUNCTIONS.into_iter().find(|function| function.name() == name)
    }

    /// The function with this name on the right-hand side of SET.
    pub(crate) fn update_function(name: &str) -> Option<Operator> {
        [Operator::IfNotExists, Operator::ListAppend]
            .into_iter()
            .find(|function| function.name() == name)
    }

    /// How many operands a function takes; `None` for operators, whose grammar fixes the number.
    pub(crate) fn function_operands(self) -> Option<usize> {
        match self {
            Operator::AttributeExists | Operator::AttributeNotExists | Operator::Size => Some(1),
            Operator::AttributeType
            | Operator::BeginsWith
            | Operator::Contains
            | Operator::IfNotExists
            | Operator::ListAppend => Some(2),
            _ => None,
        }
    }
}

impl fmt::Display for Operator {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// A section of an update expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    Set,
    Remove,
    Add,
    Delete,
}

impl Section {
    pub(crate) const ALL: [Section; 4] =
        [Section::Set, Section::Remove, Section::Add, Section::Delete];

    pub fn name(self) -> &'static str {
        match self {
            Section::Set => "SET",
            Section::Remove => "REMOVE",
            Section::Add => "ADD",
            Section::Delete => "DELETE",
        }
    }
}

impl fmt::Display for Section {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}
