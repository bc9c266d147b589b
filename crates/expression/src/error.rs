//! What can be wrong with an expression, as data. The texts are in the API's message catalogue.

use std::fmt;

use zenobe_value::{AttributeType, AttributeValue, Path};

use crate::operator::{Operator, Section};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExpressionKind {
    Update,
    Condition,
    KeyCondition,
    Filter,
    Projection,
    SearchCondition,
}

impl ExpressionKind {
    /// The request parameter that carries the expression.
    pub fn parameter(self) -> &'static str {
        match self {
            ExpressionKind::Update => "UpdateExpression",
            ExpressionKind::Condition => "ConditionExpression",
            ExpressionKind::KeyCondition => "KeyConditionExpression",
            ExpressionKind::Filter => "FilterExpression",
            ExpressionKind::Projection => "ProjectionExpression",
            ExpressionKind::SearchCondition => "SearchConditionExpression",
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct ExpressionError {
    pub kind: ExpressionKind,
    pub fault: ExpressionFault,
}

/// For logs; clients see the API's texts.
impl fmt::Display for ExpressionError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "invalid {}: {:?}", self.kind.parameter(), self.fault)
    }
}

impl std::error::Error for ExpressionError {}

/// One variant per message, holding what the message prints.
#[derive(Debug, Clone, PartialEq)]
pub enum ExpressionFault {
    Empty,
    TooLong {
        size_bytes: usize,
    },
    /// `token` is `<EOF>` at the end of the text.
    Syntax {
        token: String,
        near: String,
    },
    RedundantParentheses,
    InvalidFunctionName {
        function: String,
    },
    FunctionNotAllowed {
        function: Operator,
    },
    /// The word as written.
    ReservedWord {
        word: String,
    },
    PathTooDeep {
        levels: usize,
    },
    /// The digits as written.
    IndexOutOfRange {
        index: String,
    },
    UndefinedName {
        placeholder: String,
    },
    UndefinedValue {
        placeholder: String,
    },
    OperandCount {
        operator: Operator,
        count: usize,
    },
    /// `count` is how many values IN lists.
    TooManyListed {
        count: usize,
    },
    FirstOperandNotDistinct {
        operator: Operator,
        path: Path,
    },
    PathRequired {
        operator: Operator,
    },
    OperandType {
        operator: Operator,
        operand_type: OperandType,
    },
    InvalidAttributeTypeName {
        name: String,
    },
    BetweenTypesDiffer {
        low: Box<AttributeValue>,
        high: Box<AttributeValue>,
    },
    BetweenReversed {
        low: Box<AttributeValue>,
        high: Box<AttributeValue>,
    },
    TooManyOperators,

    // Projections and updates.
    PathsOverlap {
        one: Path,
        two: Path,
    },
    PathsConflict {
        one: Path,
        two: Path,
    },

    // Updates.
    RepeatedSection {
        section: Section,
    },
    /// Printed with [`long_type_name`]; only for ADD and DELETE.
    ActionOperandType {
        section: Section,
        operand_type: AttributeType,
    },

    // Key conditions.
    KeyOperatorNotAllowed {
        operator: Operator,
    },
    KeyNestedOperation,
    /// BETWEEN or begins_with whose first operand is not the attribute.
    KeyAttributeNotFirst {
        operator: Operator,
    },
    KeyMultipleAttributes,
    KeyNestedAttribute,
    KeyAttributeMissing,
    KeyAttributeRepeated,
}

/// The type of an operand, as far as the expression alone determines it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperandType {
    Known(AttributeType),
    /// The type of a document path, which may hold any value.
    Any,
}

impl fmt::Display for OperandType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OperandType::Known(attribute_type) => write!(formatter, "{attribute_type}"),
            OperandType::Any => formatter.write_str("{NS,SS,L,BS,N,M,B,BOOL,NULL,S}"),
        }
    }
}

/// The name of a type in faults of ADD and DELETE.
pub fn long_type_name(attribute_type: AttributeType) -> &'static str {
    match attribute_type {
        AttributeType::S => "STRING",
        AttributeType::N => "NUMBER",
        AttributeType::B => "BINARY",
        AttributeType::Bool => "BOOLEAN",
        AttributeType::Null => "NULL",
        AttributeType::Ss => "STRING_SET",
        AttributeType::Ns => "NUMBER_SET",
        AttributeType::Bs => "BINARY_SET",
        AttributeType::L => "LIST",
        AttributeType::M => "MAP",
    }
}

/// Placeholders that a request defines but no expression uses, sorted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unused {
    Names(Vec<String>),
    Values(Vec<String>),
}
