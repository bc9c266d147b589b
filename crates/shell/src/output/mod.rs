//! Rows as text.

mod csv;
mod expanded;
pub mod table;

use crate::value::{Row, plain_object};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Aligned columns for people.
    Table,
    /// One object per line, without types.
    Json,
    /// One object per line, in DynamoDB's JSON.
    DynamodbJson,
    /// RFC 4180.
    Csv,
}

impl Format {
    pub const ALL: [Format; 4] = [Format::Table, Format::Json, Format::DynamodbJson, Format::Csv];

    pub fn name(self) -> &'static str {
        match self {
            Format::Table => "table",
            Format::Json => "json",
            Format::DynamodbJson => "dynamodb-json",
            Format::Csv => "csv",
        }
    }

    pub fn from_name(name: &str) -> Option<Format> {
        Format::ALL.into_iter().find(|format| format.name() == name)
    }

    /// Whether a row can be printed without knowing the next ones.
    pub fn is_by_line(self) -> bool {
        matches!(self, Format::Json | Format::DynamodbJson)
    }
}

/// How to print rows.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    pub format: Format,
    pub expanded: bool,
    /// The width of a line, if limited.
    pub width: Option<usize>,
}

/// Renders rows. The columns named in `first` come first, the others follow by name.
pub fn render(rows: &[Row], first: &[String], style: Style) -> String {
    let columns = || columns(rows, first);
    match style.format {
        Format::Json => rows.iter().map(|row| plain_object(row) + "\n").collect(),
        Format::DynamodbJson => rows
            .iter()
            .map(|row| serde_json::Value::Object(row.clone()).to_string() + "\n")
            .collect(),
        Format::Csv => csv::render(rows, &columns()),
        Format::Table if rows.is_empty() => String::new(),
        Format::Table if style.expanded => expanded::render(rows, &columns(), style.width),
        Format::Table => table::of_rows(rows, &columns(), style.width),
    }
}

fn columns(rows: &[Row], first: &[String]) -> Vec<String> {
    let mut others: Vec<&String> =
        rows.iter().flat_map(Row::keys).filter(|name| !first.contains(name)).collect();
    others.sort_unstable();
    others.dedup();
    first.iter().chain(others).cloned().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn rows(rows: Value) -> Vec<Row> {
        let Value::Array(rows) = rows else { panic!("not a list: {rows}") };
        rows.into_iter().map(|row| row.as_object().unwrap().clone()).collect()
    }

    fn sample() -> Vec<Row> {
        rows(json!([
            {"sk": {"N": "1"}, "pk": {"S": "a"}, "note": {"S": "a, \"b\"\nc"}, "tags": {"SS": ["x", "y"]}},
            {"sk": {"N": "20"}, "pk": {"S": "é漢"}, "note": {"NULL": true}, "empty": {"S": ""}},
            {"sk": {"N": "300"}, "pk": {"S": "c"}},
        ]))
    }

    #[track_caller]
    fn check(format: Format, expanded: bool, width: Option<usize>, expected: &str) {
        let first = ["pk".to_owned(), "sk".to_owned()];
        let rendered = render(&sample(), &first, Style { format, expanded, width });
        assert_eq!(rendered, expected, "\n{rendered}");
    }

    #[test]
    fn columns_are_aligned() {
        // The second letter of the second key is two cells wide.
        check(
            Format::Table,
            false,
            None,
            concat!(
                " pk  | sk  | empty | note      | tags\n",
                "-----+-----+-------+-----------+--------------\n",
                " a   |   1 |       | a, \"b\"\\nc | <<'x', 'y'>>\n",
                " é漢 |  20 | ''    | NULL      |\n",
                " c   | 300 |       |           |\n",
            ),
        );
    }

    #[test]
    fn wide_columns_are_cut_to_the_width() {
        let long = rows(
            json!([{"pk": {"S": "a"}, "text": {"S": "x".repeat(200)}, "more": {"S": "y".repeat(30)}}]),
        );
        let style = Style { format: Format::Table, expanded: false, width: Some(40) };
        let rendered = render(&long, &["pk".to_owned()], style);
        for line in rendered.lines() {
            assert!(unicode_width::UnicodeWidthStr::width(line) <= 40, "{line}");
        }
        assert!(rendered.contains("x…"), "{rendered}");
    }

    #[test]
    fn rows_can_be_lists() {
        check(
            Format::Table,
            true,
            Some(30),
            concat!(
                "-[ 1 ]------------------------\n",
                "pk   | a\n",
                "sk   | 1\n",
                "note | a, \"b\"\\nc\n",
                "tags | <<'x', 'y'>>\n",
                "-[ 2 ]------------------------\n",
                "pk    | é漢\n",
                "sk    | 20\n",
                "empty | ''\n",
                "note  | NULL\n",
                "-[ 3 ]------------------------\n",
                "pk | c\n",
                "sk | 300\n",
            ),
        );
    }

    #[test]
    fn csv_is_that_of_rfc_4180() {
        check(
            Format::Csv,
            false,
            Some(10),
            concat!(
                "pk,sk,empty,note,tags\r\n",
                "a,1,,\"a, \"\"b\"\"\nc\",\"[\"\"x\"\",\"\"y\"\"]\"\r\n",
                "é漢,20,\"\",NULL,\r\n",
                "c,300,,,\r\n",
            ),
        );
    }

    #[test]
    fn json_has_a_line_per_row_with_or_without_types() {
        check(
            Format::Json,
            false,
            None,
            concat!(
                "{\"note\":\"a, \\\"b\\\"\\nc\",\"pk\":\"a\",\"sk\":1,\"tags\":[\"x\",\"y\"]}\n",
                "{\"empty\":\"\",\"note\":null,\"pk\":\"é漢\",\"sk\":20}\n",
                "{\"pk\":\"c\",\"sk\":300}\n",
            ),
        );
        check(
            Format::DynamodbJson,
            false,
            None,
            concat!(
                "{\"note\":{\"S\":\"a, \\\"b\\\"\\nc\"},\"pk\":{\"S\":\"a\"},\"sk\":{\"N\":\"1\"},",
                "\"tags\":{\"SS\":[\"x\",\"y\"]}}\n",
                "{\"empty\":{\"S\":\"\"},\"note\":{\"NULL\":true},\"pk\":{\"S\":\"é漢\"},\"sk\":{\"N\":\"20\"}}\n",
                "{\"pk\":{\"S\":\"c\"},\"sk\":{\"N\":\"300\"}}\n",
            ),
        );
    }

    #[test]
    fn no_rows_print_nothing() {
        for format in Format::ALL {
            let style = Style { format, expanded: false, width: None };
            let expected = if format == Format::Csv { "pk\r\n" } else { "" };
            assert_eq!(render(&[], &["pk".to_owned()], style), expected, "{format:?}");
        }
    }
}
