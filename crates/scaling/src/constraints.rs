//! The constraints of the API model. All violations of a request are reported together.

use crate::error::{Result, ScalingError};

/// AWS reports at most this many.
const VIOLATIONS_MAX: usize = 10;

/// Any text that XML could hold.
const XML_PATTERN: &str = r"[\u0020-\uD7FF\uE000-\uFFFD\uD800\uDC00-\uDBFF\uDFFF\r\n\t]*";
const ACTION_NAME_PATTERN: &str =
    r"(?!((^[ ]+.*)|(.*([\u0000-\u001f]|[\u007f-\u009f]|[:/|])+.*)|(.*[ ]+$))).+";

#[derive(Debug, Default)]
pub(crate) struct Violations(Vec<String>);

impl Violations {
    pub(crate) fn add(&mut self, value: Option<&str>, path: &str, constraint: &str) {
        if self.0.len() < VIOLATIONS_MAX {
            let value = value.map_or("null".to_owned(), |value| format!("'{value}'"));
            self.0.push(format!(
                "Value {value} at '{path}' failed to satisfy constraint: {constraint}"
            ));
        }
    }

    pub(crate) fn finish(self) -> Result<()> {
        if self.0.is_empty() {
            return Ok(());
        }
        let (count, plural) = (self.0.len(), if self.0.len() == 1 { "" } else { "s" });
        let list = self.0.join("; ");
        Err(ScalingError::validation(format!("{count} validation error{plural} detected: {list}")))
    }

    /// A required member. The placeholder for a missing one is never used, because
    /// [`Violations::finish`] fails.
    pub(crate) fn required<T: Default>(&mut self, value: Option<T>, path: &str) -> T {
        if value.is_none() {
            self.add(None, path, "Member must not be null");
        }
        value.unwrap_or_default()
    }

    /// The length of a text, in characters.
    pub(crate) fn length(&mut self, text: &str, path: &str, min: usize, max: usize) {
        let length = text.chars().count();
        if length < min {
            let rule = format!("Member must have length greater than or equal to {min}");
            self.add(Some(text), path, &rule);
        }
        if length > max {
            let rule = format!("Member must have length less than or equal to {max}");
            self.add(Some(text), path, &rule);
        }
    }

    pub(crate) fn pattern(&mut self, text: &str, path: &str, pattern: &str, matches: bool) {
        if !matches {
            let rule = format!("Member must satisfy regular expression pattern: {pattern}");
            self.add(Some(text), path, &rule);
        }
    }

    pub(crate) fn one_of(&mut self, text: &str, path: &str, values: &[&str]) {
        if !values.contains(&text) {
            let rule = format!("Member must satisfy enum value set: [{}]", values.join(", "));
            self.add(Some(text), path, &rule);
        }
    }

    /// The constraints of the model's `ResourceIdMaxLen1600`, the type of most strings in requests.
    pub(crate) fn identifier(&mut self, text: &str, path: &str) {
        self.length(text, path, 1, 1_600);
        let is_xml =
            |character| matches!(character, '\r' | '\n' | '\t' | ' '..='\u{FFFD}' | '\u{10000}'..);
        self.pattern(text, path, XML_PATTERN, text.chars().all(is_xml));
    }

    pub(crate) fn identifiers(&mut self, texts: &[&str], path: &str) {
        if texts.len() > 50 {
            let printed = format!("[{}]", texts.join(", "));
            let rule = "Member must have length less than or equal to 50";
            self.add(Some(&printed), path, rule);
        }
        for (text, position) in texts.iter().zip(1..) {
            self.identifier(text, &format!("{path}.{position}.member"));
        }
    }

    pub(crate) fn policy_name(&mut self, name: &str, path: &str) {
        self.length(name, path, 1, 256);
        let is_printed = name.chars().all(|character| matches!(character, ' '..='~'));
        self.pattern(name, path, r"\p{Print}+", is_printed && !name.is_empty());
    }

    pub(crate) fn action_name(&mut self, name: &str, path: &str) {
        self.length(name, path, 1, 256);
        let is_allowed = |character: char| !character.is_control() && !":/|".contains(character);
        let is_trimmed = !name.starts_with(' ') && !name.ends_with(' ');
        let matches = !name.is_empty() && is_trimmed && name.chars().all(is_allowed);
        self.pattern(name, path, ACTION_NAME_PATTERN, matches);
    }
}
