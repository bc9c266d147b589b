//! Texts that both languages share: expressions and PartiQL statements.

use std::fmt::Display;

use zenobe_expression::{ListedPath, OperandType};
use zenobe_value::Path;

pub(super) fn path_too_deep(levels: usize) -> String {
    format!("The document path has too many nesting levels; nesting levels: {levels}")
}

pub(super) fn index_out_of_range(index: &str) -> String {
    format!("List index is not within the allowable range; index: [{index}]")
}

pub(super) fn too_many_operators(count: usize) -> String {
    format!("The expression contains too many operators; operator count: {count}")
}

pub(super) fn paths_overlap(one: &Path, two: &Path) -> String {
    clashing_paths("overlap", one, two)
}

pub(super) fn paths_conflict(one: &Path, two: &Path) -> String {
    clashing_paths("conflict", one, two)
}

fn clashing_paths(clash: &str, one: &Path, two: &Path) -> String {
    format!(
        "Two document paths {clash} with each other; must remove or rewrite one of these paths; \
         path one: {}, path two: {}",
        ListedPath(one),
        ListedPath(two)
    )
}

pub(super) fn operand_count(operator: impl Display, count: usize) -> String {
    format!(
        "Incorrect number of operands for operator or function; \
         operator or function: {operator}, number of operands: {count}"
    )
}

pub(super) fn operand_type(operator: impl Display, operand_type: OperandType) -> String {
    format!(
        "Incorrect operand type for operator or function; \
         operator or function: {operator}, operand type: {operand_type}"
    )
}

pub(super) fn too_many_listed(count: usize) -> String {
    format!("The IN operator is provided with too many operands; number of operands: {count}")
}

pub(super) fn path_required(operator: impl Display) -> String {
    format!("Operator or function requires a document path; operator or function: {operator}")
}

/// The order of the types differs between the two languages.
pub(super) fn invalid_attribute_type_name(name: &str, valid: &str) -> String {
    format!("Invalid attribute type name found; type: {name}, valid types: {{{valid}}}")
}
