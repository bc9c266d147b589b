//! The rows of the schema, which hold the statements that created the tables.

use super::{Table, Value};

/// The table that a row of the schema describes, if it describes one.
pub(super) fn table(row: Vec<Value>) -> Option<Table> {
    let [of, name, _, root, sql] = <[Value; 5]>::try_from(row).ok()?;
    let (Value::Integer(root), Value::Text(sql)) = (root, sql) else { return None };
    let root = u32::try_from(root).ok()?;
    let name = name.as_text().filter(|_| of.as_text() == Some("table"))?.to_owned();
    Some(Table { name, columns: columns(&sql), root })
}

/// The names of the columns in a CREATE TABLE statement.
fn columns(sql: &str) -> Vec<String> {
    const CONSTRAINTS: [&str; 5] = ["CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN"];
    let is_constraint =
        |word: &str| CONSTRAINTS.iter().any(|constraint| word.eq_ignore_ascii_case(constraint));
    let mut columns = Vec::new();
    for definition in definitions(sql) {
        match first_word(definition.trim_start()) {
            Word::Bare(word) if is_constraint(word) || word.is_empty() => {}
            Word::Bare(word) | Word::Quoted(word) => columns.push(word.to_owned()),
        }
    }
    columns
}

/// What lies between the outermost parentheses, divided at the commas that are in no others.
fn definitions(sql: &str) -> Vec<&str> {
    let mut definitions = Vec::new();
    let (mut depth, mut start) = (0_u32, 0);
    let mut quote = None;
    for (position, character) in sql.char_indices() {
        match (quote, character) {
            (Some(end), _) if character == end => quote = None,
            (Some(_), _) => {}
            (None, '"' | '`' | '\'') => quote = Some(character),
            (None, '[') => quote = Some(']'),
            (None, '(') => {
                depth += 1;
                if depth == 1 {
                    start = position + 1;
                }
            }
            (None, ',' | ')') if depth == 1 => {
                definitions.push(&sql[start..position]);
                start = position + 1;
                if character == ')' {
                    break;
                }
            }
            (None, ')') => depth = depth.saturating_sub(1),
            (None, _) => {}
        }
    }
    definitions
}

enum Word<'a> {
    Bare(&'a str),
    Quoted(&'a str),
}

fn first_word(text: &str) -> Word<'_> {
    let mut characters = text.chars();
    let end = match characters.next() {
        Some(quote @ ('"' | '`' | '\'')) => quote,
        Some('[') => ']',
        _ => {
            let end = text.find(|character: char| character.is_whitespace() || character == '(');
            return Word::Bare(&text[..end.unwrap_or(text.len())]);
        }
    };
    let rest = characters.as_str();
    Word::Quoted(&rest[..rest.find(end).unwrap_or(rest.len())])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_found_in_the_statement() {
        for (sql, expected) in [
            ("CREATE TABLE t (a TEXT, b BLOB NOT NULL)", &["a", "b"][..]),
            ("CREATE TABLE \"a(b\" (\"x,y\" TEXT DEFAULT 'a,b', [z] NUMERIC(10,2))", &["x,y", "z"]),
            ("CREATE TABLE t(a INTEGER, primary key(a), CHECK (a > 0))", &["a"]),
            ("CREATE TABLE t (\"primary\" TEXT)", &["primary"]),
            ("CREATE TABLE t (\n  a,\n  b)", &["a", "b"]),
            ("CREATE TABLE t", &[]),
            ("CREATE TABLE t (a, 'b", &["a"]),
        ] {
            assert_eq!(columns(sql), expected, "{sql}");
        }
    }
}
