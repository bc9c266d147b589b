//! What can be wrong with a statement, as data. The texts are in the API's message catalogue.

use zenobe_value::{AttributeType, NumberError, Path};

use crate::error::OperandType;
use crate::limits::IN_LISTED_MAX;
use crate::syntax::Span;

/// The position of a token, in characters from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    pub line: usize,
    pub column: usize,
    pub length: usize,
}

impl Position {
    pub(super) fn of(text: &str, span: Span) -> Position {
        let start = span.start();
        let (mut line, mut line_start) = (1, 0);
        let bytes = text.as_bytes();
        for (at, byte) in bytes[..start].iter().enumerate() {
            let ends_line = match byte {
                b'\n' => true,
                b'\r' => bytes.get(at + 1) != Some(&b'\n'),
                _ => false,
            };
            if ends_line {
                (line, line_start) = (line + 1, at + 1);
            }
        }
        let column = 1 + text[line_start..start].chars().count();
        Position { line, column, length: span.of(text).chars().count() }
    }
}

/// One variant per message, holding what the message prints.
#[derive(Debug, Clone, PartialEq)]
pub enum StatementFault {
    // The text is not a statement.
    /// An unterminated quote or comment, a character without a meaning, or a number whose exponent
    /// or scale exceeds 32 bits.
    Unreadable,
    ExpectedStatement,
    /// Something follows a complete statement.
    UnexpectedToken,
    UnexpectedTerm,
    UnexpectedKeyword,
    UnexpectedOperator,
    MissingRightHandSide,
    ExpectedTableName,
    ExpectedTypeName,
    ExpectedFrom,
    /// Upper case.
    ExpectedKeyword {
        keyword: &'static str,
    },
    /// The name of the token.
    ExpectedToken {
        token: &'static str,
    },
    InvalidDotComponent,

    // The statement parses, but DynamoDB gives it no meaning.
    Aliasing,
    UnsupportedOperation {
        operation: &'static str,
    },
    UnexpectedPathComponent {
        position: Position,
    },
    IndexOutOfRange {
        /// As written, with its sign.
        index: String,
        position: Position,
    },
    /// An empty attribute name, in a path or a literal.
    EmptyName,
    PathTooDeep {
        levels: usize,
    },
    TooManySourceComponents,
    EmptySourceComponent,
    IndexInWrite,
    IndexInInsert {
        position: Position,
    },
    OrderWithoutCondition,
    DeleteReturning {
        /// The text after RETURNING.
        clause: String,
    },
    TooManyOperators {
        count: usize,
    },
    NestedTooDeeply,

    // Literals. Paths start at the literal's root.
    UnsupportedValue {
        what: Unsupported,
        path: String,
        position: Position,
    },
    EmptyBag,
    MixedBag,
    DuplicateStrings {
        members: Vec<String>,
    },
    DuplicateNumbers {
        /// As written.
        members: Vec<String>,
        path: String,
    },
    Number {
        error: NumberError,
        path: String,
    },
    LiteralTooDeep {
        path: String,
    },

    // Functions and operators.
    UnknownFunction {
        /// Lower case.
        function: String,
        position: Position,
    },
    OperandCount {
        operator: &'static str,
        count: usize,
    },
    TooManyListed {
        count: usize,
    },
    PathRequired {
        operator: &'static str,
    },
    OperandType {
        /// The operator as written.
        operator: String,
        operand_type: OperandType,
    },
    InvalidAttributeTypeName {
        name: String,
    },
    /// `function` is SET_ADD or SET_DELETE.
    SetTarget {
        function: &'static str,
        position: Position,
    },
    SetArguments {
        function: &'static str,
        position: Position,
    },
    SetArgumentType {
        function: &'static str,
        position: Position,
    },
    PathsOverlap {
        one: Path,
        two: Path,
    },
    PathsConflict {
        one: Path,
        two: Path,
    },

    // Parameters.
    ParameterCount,
    /// `VALUE ?` takes a map.
    ItemNotMap {
        actual: AttributeType,
    },
}

impl StatementFault {
    /// Limits how many operands IN lists, literally or in a parameter.
    pub(super) fn check_listed(count: usize) -> Result<(), StatementFault> {
        match count {
            0 => Err(StatementFault::OperandCount { operator: "IN", count: 1 }),
            1..=IN_LISTED_MAX => Ok(()),
            count => Err(StatementFault::TooManyListed { count }),
        }
    }
}

/// What was found in place of a literal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unsupported {
    Parameter,
    /// Lower case.
    Function(String),
    Path,
    Operator,
    Scalar,
    Collection,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_characters_and_lines() {
        let text = "a\n  é b\r\nc";
        let position = |part: &str| {
            let start = text.find(part).unwrap();
            let Position { line, column, length } =
                Position::of(text, Span::new(start, start + part.len()));
            (line, column, length)
        };
        assert_eq!(position("a"), (1, 1, 1));
        assert_eq!(position("é"), (2, 3, 1));
        assert_eq!(position("b"), (2, 5, 1));
        assert_eq!(position("c"), (3, 1, 1));
    }
}
