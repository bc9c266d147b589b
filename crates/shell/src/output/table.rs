//! Aligned columns.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::value::{Row, cell, escaped, is_number};

/// Columns are never cut below this width.
const CUT_WIDTH_MIN: usize = 6;
const MARK: char = '…';

pub struct Column {
    pub name: String,
    pub is_right: bool,
    pub cells: Vec<String>,
}

impl Column {
    pub fn left(name: &str, cells: Vec<String>) -> Column {
        Column { name: name.to_owned(), is_right: false, cells }
    }

    pub fn right(name: &str, cells: Vec<String>) -> Column {
        Column { is_right: true, ..Column::left(name, cells) }
    }

    fn width(&self) -> usize {
        let widths = self.cells.iter().map(|cell| cell.width());
        widths.chain([self.name.width()]).max().unwrap_or(0)
    }
}

pub fn of_rows(rows: &[Row], columns: &[String], width: Option<usize>) -> String {
    let column = |name: &String| {
        let values = || rows.iter().filter_map(|row| row.get(name));
        Column {
            name: escaped(name),
            is_right: values().all(is_number),
            cells: rows.iter().map(|row| row.get(name).map(cell).unwrap_or_default()).collect(),
        }
    };
    render(&columns.iter().map(column).collect::<Vec<_>>(), width)
}

/// A header, a rule and the rows. All columns have the same number of cells.
pub fn render(columns: &[Column], width: Option<usize>) -> String {
    let mut widths: Vec<usize> = columns.iter().map(Column::width).collect();
    if let Some(width) = width {
        // ` | ` separates columns, and a space pads either end.
        fit(&mut widths, width.saturating_sub(3 * columns.len().saturating_sub(1) + 2));
    }
    let line = |texts: &mut dyn Iterator<Item = (&str, bool)>| {
        let cells = texts.zip(&widths).map(|((text, right), width)| padded(text, *width, right));
        format!(" {}", cells.collect::<Vec<_>>().join(" | ")).trim_end().to_owned() + "\n"
    };
    let mut text = line(&mut columns.iter().map(|column| (column.name.as_str(), false)));
    let rule: Vec<String> = widths.iter().map(|width| "-".repeat(width + 2)).collect();
    text.push_str(&rule.join("+"));
    text.push('\n');
    for row in 0..columns.first().map_or(0, |column| column.cells.len()) {
        let cell = |column: &Column| (column.cells[row].clone(), column.is_right);
        let cells: Vec<(String, bool)> = columns.iter().map(cell).collect();
        text.push_str(&line(&mut cells.iter().map(|(text, right)| (text.as_str(), *right))));
    }
    text
}

/// Narrows the widest columns until all fit, but none below the minimum.
fn fit(widths: &mut [usize], available: usize) {
    let fits = |widths: &[usize], bound: usize| {
        widths.iter().map(|width| (*width).min(bound)).sum::<usize>() <= available
    };
    let widest = widths.iter().copied().max().unwrap_or(0);
    let bound = (CUT_WIDTH_MIN..=widest).rev().find(|bound| fits(widths, *bound));
    let bound = bound.unwrap_or(CUT_WIDTH_MIN);
    widths.iter_mut().for_each(|width| *width = (*width).min(bound));
}

fn padded(text: &str, width: usize, is_right: bool) -> String {
    let text = cut(text, width);
    let blanks = " ".repeat(width.saturating_sub(text.width()));
    if is_right { blanks + &text } else { text + &blanks }
}

/// The longest prefix of a text that fits in the width.
pub fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let (mut kept, mut used) = (String::new(), 1);
    for letter in text.chars() {
        used += letter.width().unwrap_or(0);
        if used > width {
            break;
        }
        kept.push(letter);
    }
    kept.push(MARK);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_by_display_width() {
        for (text, width, expected) in [
            ("abc", 3, "abc"),
            ("abcd", 3, "ab…"),
            ("漢字漢", 5, "漢字…"),
            ("漢字漢", 4, "漢…"),
            ("", 0, ""),
        ] {
            assert_eq!(cut(text, width), expected, "{text}");
        }
    }

    #[test]
    fn the_widest_columns_shrink_first() {
        for (given, available, expected) in [
            (&[5, 5][..], 20, &[5, 5][..]),
            (&[5, 50], 20, &[5, 15]),
            (&[50, 50], 20, &[10, 10]),
            (&[50, 8, 50], 30, &[11, 8, 11]),
            (&[50, 50], 3, &[6, 6]),
            (&[], 3, &[]),
        ] {
            let mut widths = given.to_vec();
            fit(&mut widths, available);
            assert_eq!(widths, expected, "{given:?} in {available}");
        }
    }
}
