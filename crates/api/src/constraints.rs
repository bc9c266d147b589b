//! The constraints of the API model: required members, lengths, ranges, patterns and enumerations.
//!
//! The checks collect violations (DynamoDB lists up to ten) and return narrower values. Once
//! [`Violations::finish`] has passed, these values are complete.

mod table_name;

pub(crate) use table_name::{TableNameRule, table_name};
pub use table_name::{is_name_character, is_table_name};

use crate::error::ApiError;
use crate::messages::constraint::{self, Constraint};

const VIOLATIONS_MAX: usize = 10;

/// Names of tables, indexes and backups.
pub(crate) const NAME_PATTERN: &str = "[a-zA-Z0-9_.-]+";

/// The violations found so far.
#[derive(Debug, Default)]
pub(crate) struct Violations(Vec<String>);

impl Violations {
    pub(crate) fn new() -> Violations {
        Violations::default()
    }

    pub(crate) fn add(&mut self, value: Option<&str>, path: &str, constraint: Constraint<'_>) {
        if self.0.len() < VIOLATIONS_MAX {
            self.0.push(constraint::violation(value, path, constraint));
        }
    }

    pub(crate) fn finish(self) -> Result<(), ApiError> {
        if self.0.is_empty() { Ok(()) } else { Err(constraint::envelope(&self.0)) }
    }

    /// A required member. The value returned for a missing one is never used, because
    /// [`Violations::finish`] fails.
    pub(crate) fn required<T: Default>(&mut self, value: Option<T>, path: &str) -> T {
        if value.is_none() {
            self.add(None, path, Constraint::NotNull);
        }
        value.unwrap_or_default()
    }

    /// A string's length, in characters.
    pub(crate) fn length(&mut self, text: &str, path: &str, min: usize, max: usize) {
        let length = text.chars().count();
        if length < min {
            self.add(Some(text), path, Constraint::LengthMin(min));
        }
        if length > max {
            self.add(Some(text), path, Constraint::LengthMax(max));
        }
    }

    /// A list's length. `print` is called only if the length is violated.
    pub(crate) fn count(
        &mut self,
        count: usize,
        path: &str,
        min: usize,
        max: usize,
        print: impl FnOnce() -> String,
    ) {
        let constraint = if count < min {
            Constraint::LengthMin(min)
        } else if count > max {
            Constraint::LengthMax(max)
        } else {
            return;
        };
        self.add(Some(&print()), path, constraint);
    }

    /// A number's range.
    pub(crate) fn range(&mut self, value: i64, path: &str, min: i64, max: i64) {
        if value < min {
            self.add(Some(&value.to_string()), path, Constraint::ValueMin(min));
        } else if value > max {
            self.add(Some(&value.to_string()), path, Constraint::ValueMax(max));
        }
    }

    /// A name of 3 to 255 characters. DynamoDB reports the pattern before the length; an empty name
    /// violates both.
    pub(crate) fn name(&mut self, name: &str, path: &str) {
        if name.is_empty() || !name.chars().all(is_name_character) {
            self.add(Some(name), path, Constraint::Pattern(NAME_PATTERN));
        }
        self.length(name, path, 3, 255);
    }

    /// The value of an enumeration, if the member is present and legal.
    pub(crate) fn enumeration<T: Copy>(
        &mut self,
        value: Option<&str>,
        path: &str,
        enumeration: &Enumeration<T>,
    ) -> Option<T> {
        let value = value?;
        let found = enumeration.0.iter().find(|(name, _)| *name == value);
        if found.is_none() {
            let names: Vec<&str> = enumeration.0.iter().map(|(name, _)| *name).collect();
            self.add(Some(value), path, Constraint::Enumeration(&names));
        }
        found.map(|(_, value)| *value)
    }

    /// The value of a required enumeration.
    pub(crate) fn required_enumeration<T: Copy>(
        &mut self,
        value: Option<&str>,
        path: &str,
        enumeration: &Enumeration<T>,
    ) -> Option<T> {
        if value.is_none() {
            self.add(None, path, Constraint::NotNull);
        }
        self.enumeration(value, path, enumeration)
    }
}

/// An enumeration of the API model: names and their values, in the order in which DynamoDB lists
/// them in errors.
pub(crate) struct Enumeration<T: 'static>(pub(crate) &'static [(&'static str, T)]);

impl<T: PartialEq> Enumeration<T> {
    /// The name of a value, for responses.
    pub(crate) fn name_of(&self, value: &T) -> &'static str {
        self.0.iter().find(|(_, known)| known == value).map_or("", |(name, _)| *name)
    }
}

/// How much of a list or map a violation prints. The request decides how long it is, and nobody needs
/// more.
const PRINTED_ELEMENTS_MAX: usize = 256;
const PRINTED_SIZE_BYTES_MAX: usize = 64 * 1024;

/// A list as DynamoDB prints it in a violation.
pub(crate) fn printed_list<T>(items: &[T], print: impl Fn(&T) -> String) -> String {
    format!("[{}]", printed_elements(items.iter().map(print)))
}

/// A map as DynamoDB prints it in a violation.
pub(crate) fn printed_map<T>(entries: &[(String, T)], print: impl Fn(&T) -> String) -> String {
    let entries = entries.iter().map(|(name, value)| format!("{name}={}", print(value)));
    format!("{{{}}}", printed_elements(entries))
}

/// A part of the request as sent, for the few violations that print JSON.
pub(crate) fn printed_text(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text.trim_ascii());
    match text.char_indices().find(|(position, _)| *position >= PRINTED_SIZE_BYTES_MAX) {
        Some((end, _)) => text[..end].to_owned(),
        None => text.into_owned(),
    }
}

fn printed_elements(elements: impl Iterator<Item = String>) -> String {
    let mut printed = String::new();
    for (index, element) in elements.take(PRINTED_ELEMENTS_MAX).enumerate() {
        if printed.len() > PRINTED_SIZE_BYTES_MAX {
            break;
        }
        if index > 0 {
            printed.push_str(", ");
        }
        printed.push_str(&element);
    }
    printed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_maps_are_printed_up_to_a_bound() {
        let digit = |_: &u8| "1".to_owned();
        assert_eq!(printed_list(&[], digit), "[]");
        assert_eq!(printed_list(&[0, 0], digit), "[1, 1]");
        assert_eq!(printed_map(&[("a".into(), 0), ("b".into(), 0)], digit), "{a=1, b=1}");
        assert_eq!(printed_list(&[0; 101], digit).len(), 101 * "1, ".len());
        assert_eq!(printed_list(&[0; 10_000], digit).len(), 256 * "1, ".len());
        let long = |_: &u8| "1".repeat(50_000);
        assert_eq!(printed_list(&[0; 100], long).len(), 2 * 50_000 + "[, ]".len());
    }
}
