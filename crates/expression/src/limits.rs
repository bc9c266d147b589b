//! Every bound of the expression language, by name.

/// Longest expression text.
pub const EXPRESSION_SIZE_BYTES_MAX: usize = 4096;

/// Operators and functions in one expression. Update actions don't count: the developer guide says
/// that `SET a = :val1 + :val2 + :val3` has two operators.
pub const OPERATORS_MAX: usize = 300;

/// Values that `IN` may list, in an expression or in a statement.
pub const IN_LISTED_MAX: usize = 100;

/// Elements of a document path.
pub const PATH_ELEMENTS_MAX: usize = zenobe_value::limits::NESTING_LEVELS_MAX;

/// Largest list index in a document path.
pub const LIST_INDEX_MAX: usize = i32::MAX as usize;

/// Attributes of a key schema: four each for the partition key and the sort key.
pub const KEY_ATTRIBUTES_MAX: usize = 8;

/// Longest `#name` or `:value` placeholder, prefix included.
pub const PLACEHOLDER_SIZE_BYTES_MAX: usize = 255;

/// Longest PartiQL statement, in characters.
pub const STATEMENT_LENGTH_MAX: usize = 8192;
