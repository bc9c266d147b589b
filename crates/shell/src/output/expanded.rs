//! Each row as a list of its attributes.

use unicode_width::UnicodeWidthStr;

use crate::value::{Row, cell, escaped};

const RULE_WIDTH: usize = 40;
const RULE_WIDTH_MAX: usize = 80;

/// Prints values in full: this is the format for seeing them whole. Omits attributes that a row
/// lacks.
pub fn render(rows: &[Row], columns: &[String], width: Option<usize>) -> String {
    let rule_width = width.unwrap_or(RULE_WIDTH).min(RULE_WIDTH_MAX);
    let mut text = String::new();
    for (row, number) in rows.iter().zip(1..) {
        let head = format!("-[ {number} ]");
        text.push_str(&head);
        text.push_str(&"-".repeat(rule_width.saturating_sub(head.len())));
        text.push('\n');
        let attributes: Vec<(String, String)> = columns
            .iter()
            .filter_map(|name| row.get(name).map(|value| (escaped(name), cell(value))))
            .collect();
        let names_width = attributes.iter().map(|(name, _)| name.width()).max().unwrap_or(0);
        for (name, value) in attributes {
            let blanks = " ".repeat(names_width - name.width());
            text.push_str(&format!("{name}{blanks} | {value}\n"));
        }
    }
    text
}
