//! Texts about expressions and the parameters that go with them.

use zenobe_expression::limits::OPERATORS_MAX;
use zenobe_expression::{
    ExpressionError, ExpressionFault, ExpressionKind, ListedPath, Unused, long_type_name,
};
use zenobe_value::AttributeValue;

use super::{INVALID, NewerPrefix, language, texts};
use crate::error::{ApiError, Exception};
use crate::json::attribute_value::{NameFault, ValueFault};
use crate::messages::value::{name_fault_text, value_fault, value_fault_text};

/// An expression that can't be used.
pub(crate) fn expression_error(error: &ExpressionError) -> ApiError {
    let prefix = match is_restriction(&error.fault) {
        true => String::new(),
        false => format!("Invalid {}: ", error.kind.parameter()),
    };
    let text = fault_text(&error.fault);
    let newer_prefix = match &error.fault {
        ExpressionFault::KeyNestedAttribute | ExpressionFault::KeyAttributeRepeated => {
            NewerPrefix::KeyCondition
        }
        _ => NewerPrefix::Envelope,
    };
    ApiError::new(Exception::Validation, format!("{prefix}{text}")).with_newer_prefix(newer_prefix)
}

/// Placeholders that no expression uses.
pub(crate) fn unused(unused: &Unused) -> ApiError {
    let (parameter, keys) = match unused {
        Unused::Names(keys) => ("ExpressionAttributeNames", keys),
        Unused::Values(keys) => ("ExpressionAttributeValues", keys),
    };
    unused_keys(parameter, &keys.join(", ")).prefixed_in_newer_wording()
}

/// Expressions together with legacy parameters; the lists name those that the request has.
pub(crate) fn mixed(legacy: &[&str], expressions: &[&str]) -> ApiError {
    mixed_parameters(&legacy.join(", "), &expressions.join(", ")).prefixed_in_newer_wording()
}

pub(crate) fn names_without_expression() -> ApiError {
    names_need_expressions().prefixed_in_newer_wording()
}

/// `kinds` are the operation's expressions that may use values.
pub(crate) fn values_without_expression(kinds: &[ExpressionKind]) -> ApiError {
    let parameters: Vec<&str> = kinds.iter().map(|kind| kind.parameter()).collect();
    let verb = if parameters.len() == 1 { "is" } else { "are" };
    values_need_expressions(&parameters.join(" and "), verb).prefixed_in_newer_wording()
}

pub(crate) fn empty_placeholders(parameter: &str) -> ApiError {
    placeholders_empty(parameter).prefixed_in_newer_wording()
}

/// A placeholder that is malformed or too long.
pub(crate) fn invalid_placeholder(parameter: &str, key: &str) -> ApiError {
    placeholder_syntax(parameter, key).prefixed_in_newer_wording()
}

pub(crate) fn placeholders_too_large() -> ApiError {
    placeholders_size().prefixed_in_newer_wording()
}

/// A placeholder for an empty name.
pub(crate) fn empty_name(key: &str) -> ApiError {
    placeholder_name(name_fault_text(NameFault::Empty), key).prefixed_in_newer_wording()
}

/// A bad value under a placeholder. Nesting has the same text as in items.
pub(crate) fn invalid_value(key: &str, fault: &ValueFault) -> ApiError {
    match fault {
        ValueFault::NestedTooDeeply => value_fault(fault),
        _ => placeholder_value(&value_fault_text(fault), key).prefixed_in_newer_wording(),
    }
}

texts! {
    Validation, "" => {
        mixed_parameters(legacy: &str, expressions: &str) "Can not use both expression and \
            non-expression parameters in the same request: Non-expression parameters: {{{legacy}}} \
            Expression parameters: {{{expressions}}}";
        names_need_expressions()
            "ExpressionAttributeNames can only be specified when using expressions";
        values_need_expressions(parameters: &str, verb: &str) "ExpressionAttributeValues can only \
            be specified when using expressions: {parameters} {verb} null";
        unused_keys(parameter: &str, keys: &str)
            "Value provided in {parameter} unused in expressions: keys: {{{keys}}}";
        placeholders_empty(parameter: &str) "{parameter} must not be empty";
        placeholder_syntax(parameter: &str, key: &str)
            "{parameter} contains invalid key: Syntax error; key: \"{key}\"";
        placeholders_size() "Combined size of ExpressionAttributeNames and \
            ExpressionAttributeValues exceeds max size";
        placeholder_name(text: &str, key: &str)
            "ExpressionAttributeNames contains invalid value: {text} for key {key}";
        placeholder_value(text: &str, key: &str)
            "ExpressionAttributeValues contains invalid value: {text} for key {key}";
    }
    Validation, INVALID => {
        duplicate_attribute_name(name: &str) "Duplicate value in attribute name: {name}";
    }
}

/// Whether the fault is a restriction of key conditions. These texts name the parameter themselves.
pub(crate) fn is_restriction(fault: &ExpressionFault) -> bool {
    matches!(
        fault,
        ExpressionFault::KeyOperatorNotAllowed { .. }
            | ExpressionFault::KeyNestedOperation
            | ExpressionFault::KeyAttributeNotFirst { .. }
            | ExpressionFault::KeyMultipleAttributes
            | ExpressionFault::KeyNestedAttribute
            | ExpressionFault::KeyAttributeMissing
            | ExpressionFault::KeyAttributeRepeated
    )
}

/// A table rather than a function: one text per fault.
fn fault_text(fault: &ExpressionFault) -> String {
    match fault {
        ExpressionFault::Empty => "The expression can not be empty;".to_owned(),
        ExpressionFault::TooLong { size_bytes } => format!(
            "Expression size has exceeded the maximum allowed size; expression size: {size_bytes}"
        ),
        ExpressionFault::Syntax { token, near } => {
            format!("Syntax error; token: \"{token}\", near: \"{near}\"")
        }
        ExpressionFault::RedundantParentheses => {
            "The expression has redundant parentheses;".to_owned()
        }
        ExpressionFault::ReservedWord { word } => {
            format!("Attribute name is a reserved keyword; reserved keyword: {word}")
        }
        ExpressionFault::PathTooDeep { levels } => language::path_too_deep(*levels),
        ExpressionFault::IndexOutOfRange { index } => language::index_out_of_range(index),
        ExpressionFault::UndefinedName { placeholder } => format!(
            "An expression attribute name used in the document path is not defined; \
             attribute name: {placeholder}"
        ),
        ExpressionFault::UndefinedValue { placeholder } => format!(
            "An expression attribute value used in expression is not defined; \
             attribute value: {placeholder}"
        ),
        // DynamoDB stops counting at the first one too many.
        ExpressionFault::TooManyOperators => language::too_many_operators(OPERATORS_MAX + 1),
        ExpressionFault::PathsOverlap { one, two } => language::paths_overlap(one, two),
        ExpressionFault::PathsConflict { one, two } => language::paths_conflict(one, two),
        ExpressionFault::RepeatedSection { section } => {
            format!("The \"{section}\" section can only be used once in an update expression;")
        }

        // Faults of one operator, function or action.
        ExpressionFault::InvalidFunctionName { function } => {
            format!("Invalid function name; function: {function}")
        }
        ExpressionFault::FunctionNotAllowed { function } => format!(
            "The function is not allowed to be used this way in an expression; function: {function}"
        ),
        ExpressionFault::OperandCount { operator, count } => {
            language::operand_count(operator, *count)
        }
        ExpressionFault::TooManyListed { count } => language::too_many_listed(*count),
        ExpressionFault::FirstOperandNotDistinct { operator, path } => format!(
            "The first operand must be distinct from the remaining operands for this operator \
             or function; operator: {operator}, first operand: {}",
            ListedPath(path)
        ),
        ExpressionFault::PathRequired { operator } => language::path_required(operator),
        ExpressionFault::OperandType { operator, operand_type } => {
            language::operand_type(operator, *operand_type)
        }
        ExpressionFault::ActionOperandType { section, operand_type } => format!(
            "Incorrect operand type for operator or function; \
             operator: {section}, operand type: {}, typeSet: ALLOWED_FOR_{section}_OPERAND",
            long_type_name(*operand_type)
        ),
        ExpressionFault::InvalidAttributeTypeName { name } => {
            language::invalid_attribute_type_name(name, "B,NULL,SS,BOOL,L,BS,N,NS,S,M")
        }
        ExpressionFault::BetweenTypesDiffer { low, high } => format!(
            "The BETWEEN operator requires same data type for lower and upper bounds; {}",
            bounds(low, high)
        ),
        ExpressionFault::BetweenReversed { low, high } => format!(
            "The BETWEEN operator requires upper bound to be greater than or equal to lower \
             bound; {}",
            bounds(low, high)
        ),

        // Restrictions of key conditions.
        ExpressionFault::KeyOperatorNotAllowed { operator } => {
            format!("Invalid operator used in KeyConditionExpression: {operator}")
        }
        ExpressionFault::KeyNestedOperation => {
            "KeyConditionExpressions cannot contain nested operations".to_owned()
        }
        ExpressionFault::KeyAttributeNotFirst { operator } => format!(
            "Invalid condition in KeyConditionExpression: \
             {operator} operator must have the key attribute as its first operand"
        ),
        ExpressionFault::KeyMultipleAttributes => "Invalid condition in KeyConditionExpression: \
            Multiple attribute names used in one condition"
            .to_owned(),
        ExpressionFault::KeyNestedAttribute => {
            "KeyConditionExpressions cannot have conditions on nested attributes".to_owned()
        }
        ExpressionFault::KeyAttributeMissing => {
            "Invalid condition in KeyConditionExpression: No key attribute specified".to_owned()
        }
        ExpressionFault::KeyAttributeRepeated => {
            "KeyConditionExpressions must only contain one condition per key".to_owned()
        }
    }
}

fn bounds(low: &AttributeValue, high: &AttributeValue) -> String {
    format!(
        "lower bound operand: {}, upper bound operand: {}",
        printed_value(low),
        printed_value(high)
    )
}

/// A value as DynamoDB prints it, `AttributeValue: {S:a}`. Only key types are ever printed.
pub(crate) fn printed_value(value: &AttributeValue) -> String {
    match value {
        AttributeValue::S(text) => format!("AttributeValue: {{S:{text}}}"),
        AttributeValue::N(number) => format!("AttributeValue: {{N:{number}}}"),
        AttributeValue::B(bytes) => {
            let length = bytes.len();
            format!(
                "AttributeValue: {{B:java.nio.HeapByteBuffer[pos=0 lim={length} cap={length}]}}"
            )
        }
        other => format!("AttributeValue: {{{}}}", other.attribute_type()),
    }
}
