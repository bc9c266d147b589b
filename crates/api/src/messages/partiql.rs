//! Texts about PartiQL statements.

use zenobe_expression::partiql::{Position, StatementFault, Unsupported, range_error};

use super::value::{name_fault_text, number_error_text, value_fault};
use super::{INVALID, language, texts};
use crate::error::{ApiError, Exception};
use crate::json::attribute_value::{NameFault, ValueFault};

/// The prefix for texts that are not statements.
const NOT_WELL_FORMED: &str = "Statement wasn't well formed, can't be processed: ";

const NESTING_LEVELS: &str = "Nesting Levels have exceeded supported limits";

/// A bad value among the parameters. The rules for numbers differ from those for items.
pub(crate) fn parameter_fault(fault: &ValueFault) -> ApiError {
    match fault {
        ValueFault::Number { error, text } => {
            let text = number_error_text(range_error(text, *error), text);
            ApiError::new(Exception::Validation, text)
        }
        other => value_fault(other),
    }
}

/// A fault of a statement in ExecuteTransaction, with the statement's position.
pub(crate) fn in_transaction(index: usize, error: &ApiError) -> ApiError {
    failed_in_transaction(index, error.message().unwrap_or_default())
}

pub(crate) fn statement_fault(fault: &StatementFault) -> ApiError {
    if let Some(detail) = syntax_text(fault) {
        return ApiError::new(Exception::Validation, format!("{NOT_WELL_FORMED}{detail}"));
    }
    ApiError::new(Exception::Validation, fault_text(fault))
}

texts! {
    Validation, "" => {
        failed_in_transaction(index: usize, text: &str)
            "Validation failed in TransactStatements[{index}]: {text}";
        exists_outside_transaction()
            "EXISTS can only be used in ExecuteTransaction write requests.";

        // Checks against the table.
        index_not_found() "The table does not have the specified index";
        consistent_read_on_global_index()
            "Strongly consistent read is not supported on Global Secondary Indexes";
        multi_attribute_keys() "PartiQL statements cannot be executed on tables with \
            multi-attribute HASH keys or multi-attribute RANGE keys.";
        key_type(attribute: &str)
            "Key attribute's data type should match its data type in table's schema: Key {attribute}";
        overlapping_ranges()
            "Overlapping conditions with range keys are not supported in where clause";
        too_many_reads() "Too many decomposed read operations for a given query.";
        key_equality_missing()
            "Where clause does not contain a mandatory equality on all key attributes";
        key_equality_repeated(attribute: &str) "Multiple conditions on same key {attribute}. \
            Only single item Update/Insert/Delete are supported";
        nested_too_deeply() "{NESTING_LEVELS}";
        order_attribute(attribute: &str)
            "Attribute {attribute} in ORDER BY clause must be part of the primary key";
        order_without_partition() "Must have at least one non-optional hash key condition in \
            WHERE clause when using ORDER BY clause.";
        order_of_partitions() "Must have hash key in ORDER BY clause when more than one hash key \
            condition specified in WHERE clause.";

        invalid_next_token() "Invalid NextToken";
        next_token_mismatch() "NextToken does not match request";

        reads_and_writes_in_batch()
            "Read and write requests together in the same batch is not supported.";
        batch_select_without_key() "Select statements within BatchExecuteStatement must specify \
            the primary key in the where clause.";
        reads_and_writes_in_transaction() "ExecuteTransaction API does not support both read and \
            write operations in the same request.";
        returning_in_transaction() "RETURNING clause is not supported in ExecuteTransaction.";
        index_in_transaction() "Reads on indices are not supported within transactions.";
        transaction_select_without_key() "Select statements within ExecuteTransaction must \
            specify the primary key in the where clause.";
        exists_without_condition()
            "EXISTS() must contain a single item read with additional condition";
    }
    Validation, INVALID => {
        filter_not_projected(index: &str, attributes: &str) "Secondary index {index} does not \
            project one or more filter attributes: [{attributes}]";
    }
    DuplicateItem, "" => {
        duplicate_item() "Duplicate primary key exists in table";
    }
    AccessDenied, "" => {
        scan_refused(what: &str) "The statement would scan all of {what}, and this server runs \
            with --refuse-scans: give the partition key with = or IN in the WHERE clause, or read \
            an index whose partition key is known";
    }
}

/// The rest of the text for a statement that is not well formed. `None` if the fault is another
/// one.
fn syntax_text(fault: &StatementFault) -> Option<String> {
    let text = match fault {
        StatementFault::Unreadable => "",
        StatementFault::ExpectedStatement => "Expected data manipulation",
        StatementFault::UnexpectedToken => "Unexpected token after expression",
        StatementFault::UnexpectedTerm => "Unexpected term",
        StatementFault::UnexpectedKeyword => "Unexpected keyword",
        StatementFault::UnexpectedOperator => "Unexpected operator",
        StatementFault::MissingRightHandSide => {
            "Missing right-hand side expression of infix operator"
        }
        StatementFault::ExpectedTableName => "Expected identifier for simple path",
        StatementFault::ExpectedTypeName => "Expected type name",
        StatementFault::ExpectedFrom => "Expected FROM after SELECT list",
        StatementFault::InvalidDotComponent => "Invalid path dot component",
        StatementFault::ExpectedKeyword { keyword } => {
            return Some(format!("Expected {keyword} keyword"));
        }
        StatementFault::ExpectedToken { token } => return Some(format!("Expected {token}")),
        _ => return None,
    };
    Some(text.to_owned())
}

/// A table rather than a function: one text per fault.
fn fault_text(fault: &StatementFault) -> String {
    match fault {
        StatementFault::Aliasing => "Aliasing is not supported".to_owned(),
        StatementFault::UnsupportedOperation { operation } => {
            format!("Unsupported operation: {operation}")
        }
        StatementFault::UnexpectedPathComponent { position } => {
            format!("Unexpected path component at {}", at(position))
        }
        StatementFault::IndexOutOfRange { index, position } => {
            format!("{} at {}", language::index_out_of_range(index), at(position))
        }
        StatementFault::EmptyName => name_fault_text(NameFault::Empty).to_owned(),
        StatementFault::PathTooDeep { levels } => language::path_too_deep(*levels),
        StatementFault::TooManySourceComponents => {
            "A path may contain at most 2 components in the FROM clause".to_owned()
        }
        StatementFault::EmptySourceComponent => {
            "Path component cannot be an empty string".to_owned()
        }
        StatementFault::IndexInWrite => "This operation is not supported on an index".to_owned(),
        StatementFault::IndexInInsert { position } => format!(
            "FROM clause may only contain a single table name in data manipulation statements \
             at {}",
            at(position)
        ),
        StatementFault::OrderWithoutCondition => {
            "Must have WHERE clause in the statement when using ORDER BY clause.".to_owned()
        }
        StatementFault::DeleteReturning { clause } => format!(
            "Invalid returning clause: RETURNING {clause}. Only RETURNING ALL OLD * is allowed \
             in DELETE statements."
        ),
        StatementFault::TooManyOperators { count } => language::too_many_operators(*count),
        StatementFault::NestedTooDeeply => NESTING_LEVELS.to_owned(),
        StatementFault::PathsOverlap { one, two } => language::paths_overlap(one, two),
        StatementFault::PathsConflict { one, two } => language::paths_conflict(one, two),
        StatementFault::ParameterCount => {
            "Number of parameters in request and statement don't match.".to_owned()
        }
        StatementFault::ItemNotMap { actual } => {
            format!("Unsupported data type: {actual} under key root")
        }
        other => literal_text(other).unwrap_or_else(|| function_text(other)),
    }
}

fn literal_text(fault: &StatementFault) -> Option<String> {
    Some(match fault {
        StatementFault::UnsupportedValue { what, path, position } => {
            let what = match what {
                Unsupported::Parameter => "Parameter",
                Unsupported::Function(function) => function,
                Unsupported::Path => "Path",
                Unsupported::Operator => "Operator",
                Unsupported::Scalar => "Scalar",
                Unsupported::Collection => "Collection",
            };
            format!("Unsupported data type: {what} under key {path} at {}", at(position))
        }
        StatementFault::EmptyBag => "Empty bags are not supported".to_owned(),
        StatementFault::MixedBag => "Unsupported data type in Bag. DynamoDB only supports either \
            numbers or strings in bags"
            .to_owned(),
        StatementFault::DuplicateStrings { members } => {
            format!("{INVALID}Input collection [{}] contains duplicates.", members.join(", "))
        }
        StatementFault::DuplicateNumbers { members, path } => format!(
            "{INVALID}Input collection [{}] contains duplicates! under {path}",
            members.join(", ")
        ),
        StatementFault::Number { error, path } => {
            format!("{} under {path}", number_error_text(*error, ""))
        }
        StatementFault::LiteralTooDeep { path } => {
            format!("{NESTING_LEVELS} under {path}")
        }
        _ => return None,
    })
}

fn function_text(fault: &StatementFault) -> String {
    match fault {
        StatementFault::UnknownFunction { function, position } => {
            format!("Unrecognized function: {function} at {}", at(position))
        }
        StatementFault::OperandCount { operator, count } => {
            language::operand_count(operator, *count)
        }
        StatementFault::TooManyListed { count } => language::too_many_listed(*count),
        StatementFault::PathRequired { operator } => language::path_required(operator),
        StatementFault::OperandType { operator, operand_type } => {
            language::operand_type(operator, *operand_type)
        }
        StatementFault::InvalidAttributeTypeName { name } => {
            language::invalid_attribute_type_name(name, "N,BS,L,B,NULL,M,S,SS,NS,BOOL")
        }
        StatementFault::SetTarget { function, position } => format!(
            "The first argument to {function} must equal the assignment value at {}",
            at(position)
        ),
        StatementFault::SetArguments { function, position } => {
            format!("{function} must have exactly two arguments at {}", at(position))
        }
        StatementFault::SetArgumentType { function, position } => format!(
            "The second argument to {function} must be a value with type SET at {}",
            at(position)
        ),
        other => unreachable!("{other:?} has a text above"),
    }
}

fn at(position: &Position) -> String {
    let Position { line, column, length } = position;
    format!("{line}:{column}:{length}")
}
