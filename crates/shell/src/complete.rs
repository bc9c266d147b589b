//! Tab completion: tables after FROM, indexes after a table's dot, attributes and keywords
//! elsewhere.

use zenobe_expression::partiql::is_keyword;

use crate::command;
use crate::output::Format;

/// What the shell knows about the endpoint.
pub trait Catalogue {
    fn tables(&mut self) -> Vec<String>;
    fn indexes(&mut self, table: &str) -> Vec<String>;
    fn attributes(&mut self, table: &str) -> Vec<String>;
}

const KEYWORDS: [&str; 31] = [
    "ALL",
    "AND",
    "ASC",
    "BETWEEN",
    "BY",
    "DELETE",
    "DESC",
    "EXISTS",
    "FALSE",
    "FROM",
    "IN",
    "INSERT",
    "INTO",
    "IS",
    "MISSING",
    "MODIFIED",
    "NEW",
    "NOT",
    "NULL",
    "OLD",
    "OR",
    "ORDER",
    "REMOVE",
    "RETURNING",
    "SELECT",
    "SET",
    "TRUE",
    "UPDATE",
    "VALUE",
    "VALUES",
    "WHERE",
];

const FUNCTIONS: [&str; 10] = [
    "attribute_exists(",
    "attribute_not_exists(",
    "attribute_type(",
    "begins_with(",
    "contains(",
    "if_not_exists(",
    "list_append(",
    "set_add(",
    "set_delete(",
    "size(",
];

/// The completions of the word before the cursor, and where in `before` that word starts.
pub fn complete(before: &str, after: &str, catalogue: &mut dyn Catalogue) -> (usize, Vec<String>) {
    if let Some(command) = before.trim_start().strip_prefix('\\') {
        return complete_command(before, command, catalogue);
    }
    let (start, prefix) = match lexical(before) {
        CursorContext::String => return (before.len(), Vec::new()),
        CursorContext::Name(quote) => (quote, &before[quote + 1..]),
        CursorContext::Plain => {
            let word = before.trim_end_matches(is_word_letter).len();
            (word, &before[word..])
        }
    };
    let is_quoted = prefix.len() + start < before.len();
    let matching = |names: Vec<String>| -> Vec<String> {
        let names = names.into_iter().filter(|name| begins_with(name, prefix));
        names.map(|name| if is_quoted { quoted(&name) } else { written(&name) }).collect()
    };
    let front = before[..start].trim_end();
    if let Some(front) = front.strip_suffix('.') {
        // Completions are known only after a table's dot.
        let (rest, table) = last_name(front);
        return match names_table(rest) {
            true => (start, matching(catalogue.indexes(&table))),
            false => (start, Vec::new()),
        };
    }
    if names_table(front) {
        return (start, matching(catalogue.tables()));
    }
    let mut candidates: Vec<String> = Vec::new();
    for table in tables_in(&format!("{before}{after}")) {
        candidates.extend(matching(catalogue.attributes(&table)));
    }
    if !is_quoted && !prefix.is_empty() {
        let is_lower = prefix.starts_with(|letter: char| letter.is_ascii_lowercase());
        let keyword = |word: &&str| match is_lower {
            true => word.to_ascii_lowercase(),
            false => (*word).to_owned(),
        };
        candidates.extend(KEYWORDS.iter().filter(|word| begins_with(word, prefix)).map(keyword));
        let functions = FUNCTIONS.iter().filter(|name| begins_with(name, prefix));
        candidates.extend(functions.map(|name| (*name).to_owned()));
    }
    candidates.sort();
    candidates.dedup();
    (start, candidates)
}

fn complete_command(
    before: &str,
    command: &str,
    catalogue: &mut dyn Catalogue,
) -> (usize, Vec<String>) {
    let Some((name, rest)) = command.split_once(char::is_whitespace) else {
        let start = before.len() - command.len() - 1;
        let word = &before[start..];
        let names = command::NAMES.iter().filter(|name| name.starts_with(word));
        return (start, names.map(|name| (*name).to_owned()).collect());
    };
    let prefix = rest.trim_start();
    let choices: Vec<String> = match name {
        "d" => catalogue.tables(),
        "format" => Format::ALL.map(|format| format.name().to_owned()).to_vec(),
        "x" | "timing" | "consistent" => vec!["off".to_owned(), "on".to_owned()],
        _ => Vec::new(),
    };
    let choices = choices.into_iter().filter(|choice| begins_with(choice, prefix));
    (before.len() - prefix.len(), choices.collect())
}

enum CursorContext {
    Plain,
    /// Inside a string or comment.
    String,
    /// Inside a quoted name; holds the position of its quote.
    Name(usize),
}

fn lexical(text: &str) -> CursorContext {
    let mut at = 0;
    while let Some(letter) = text[at..].chars().next() {
        let rest = &text[at..];
        let (opening, closing) = match letter {
            '\'' => (1, "'"),
            '"' => (1, "\""),
            '-' if rest.starts_with("--") => (2, "\n"),
            '/' if rest.starts_with("/*") => (2, "*/"),
            _ => {
                at += letter.len_utf8();
                continue;
            }
        };
        match rest[opening..].find(closing) {
            Some(length) => at += opening + length + closing.len(),
            None if letter == '"' => return CursorContext::Name(at),
            None => return CursorContext::String,
        }
    }
    CursorContext::Plain
}

fn is_word_letter(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '_' | '$')
}

fn begins_with(name: &str, prefix: &str) -> bool {
    name.get(..prefix.len()).is_some_and(|front| front.eq_ignore_ascii_case(prefix))
}

/// Whether the next word is a table's name.
fn names_table(front: &str) -> bool {
    let (_, word) = last_name(front);
    ["FROM", "INTO", "UPDATE"].iter().any(|keyword| word.eq_ignore_ascii_case(keyword))
}

/// The last name of a text, without its quotes, and the text before it.
fn last_name(text: &str) -> (&str, String) {
    let text = text.trim_end();
    if let Some(inner) = text.strip_suffix('"') {
        let start = inner.rfind('"').unwrap_or(0);
        return (&text[..start], inner[start..].trim_start_matches('"').to_owned());
    }
    let start = text.trim_end_matches(is_word_letter).len();
    (&text[..start], text[start..].to_owned())
}

/// The tables that a statement names before the cursor.
fn tables_in(text: &str) -> Vec<String> {
    let mut tables = Vec::new();
    let mut rest = text;
    while let Some(length) = rest.find(is_word_letter) {
        let word_start = &rest[length..];
        let end = word_start.find(|letter| !is_word_letter(letter)).unwrap_or(word_start.len());
        let (word, behind) = word_start.split_at(end);
        rest = behind;
        if names_table(word) {
            let behind = behind.trim_start();
            let name = match behind.strip_prefix('"') {
                Some(quoted) => quoted.split('"').next().unwrap_or_default(),
                None => behind.split(|letter| !is_word_letter(letter)).next().unwrap_or_default(),
            };
            if !name.is_empty() && !tables.iter().any(|known| known == name) {
                tables.push(name.to_owned());
            }
        }
    }
    tables
}

/// A name as PartiQL reads it, quoted if necessary.
fn written(name: &str) -> String {
    let begins_right =
        name.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_');
    let is_plain =
        begins_right && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    if is_plain && !is_keyword(name) { name.to_owned() } else { quoted(name) }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Known;

    impl Catalogue for Known {
        fn tables(&mut self) -> Vec<String> {
            ["Movies", "Music", "my-orders"].map(str::to_owned).to_vec()
        }

        fn indexes(&mut self, table: &str) -> Vec<String> {
            if table == "Music" {
                vec!["by-year".to_owned(), "genre".to_owned()]
            } else {
                Vec::new()
            }
        }

        fn attributes(&mut self, table: &str) -> Vec<String> {
            let names: &[&str] = match table {
                "Music" => &["Artist", "Year", "a.b", "plays"],
                "my-orders" => &["Amount"],
                _ => &[],
            };
            names.iter().map(|name| (*name).to_owned()).collect()
        }
    }

    /// `|` marks the cursor.
    #[track_caller]
    fn check(text: &str, start: &str, expected: &[&str]) {
        let (before, after) = text.split_once('|').unwrap();
        let (at, candidates) = complete(before, after, &mut Known);
        assert_eq!(candidates, expected, "{text}");
        if !candidates.is_empty() {
            assert_eq!(&before[at..], start, "{text}");
        }
    }

    #[test]
    fn tables_follow_from_into_and_update() {
        check("SELECT * FROM |", "", &["Movies", "Music", "\"my-orders\""]);
        check("SELECT * FROM Mu|", "Mu", &["Music"]);
        check("select * from m|", "m", &["Movies", "Music", "\"my-orders\""]);
        check("SELECT * FROM \"my|", "\"my", &["\"my-orders\""]);
        check("INSERT INTO Mo|", "Mo", &["Movies"]);
        check("UPDATE |", "", &["Movies", "Music", "\"my-orders\""]);
        check("DELETE\nFROM Mo|", "Mo", &["Movies"]);
    }

    #[test]
    fn indexes_follow_a_tables_dot() {
        check("SELECT * FROM Music.|", "", &["\"by-year\"", "genre"]);
        check("SELECT * FROM \"Music\".\"by|", "\"by", &["\"by-year\""]);
        check("SELECT * FROM Music WHERE a.|", "", &[]);
    }

    #[test]
    fn attributes_are_those_of_the_tables_named() {
        let found = ["\"a.b\"", "ALL", "AND", "ASC", "Artist", "attribute_exists("];
        let found = [&found[..], &["attribute_not_exists(", "attribute_type("]].concat();
        check("SELECT A| FROM Music", "A", &found);
        check("SELECT * FROM Music WHERE Art|", "Art", &["Artist"]);
        check("SELECT * FROM Music WHERE y|", "y", &["\"Year\""]);
        check("SELECT * FROM Music WHERE \"Y|", "\"Y", &["\"Year\""]);
        check("SELECT * FROM \"my-orders\" WHERE Am|", "Am", &["Amount"]);
        check("SELECT * FROM Music WHERE Artist = 'A|", "", &[]);
        check("SELECT * FROM Music -- A|", "", &[]);
    }

    #[test]
    fn keywords_and_functions_keep_the_case_of_the_word() {
        check("SEL|", "SEL", &["SELECT"]);
        check("sel|", "sel", &["select"]);
        check("x WHERE begi|", "begi", &["begins_with("]);
        check("|", "", &[]);
        check("RE|", "RE", &["REMOVE", "RETURNING"]);
    }

    #[test]
    fn commands_have_their_own() {
        check("\\|", "\\", &command::NAMES);
        check("\\t|", "\\t", &["\\timing"]);
        check("\\d M|", "M", &["Movies", "Music", "my-orders"]);
        check("\\format dy|", "dy", &["dynamodb-json"]);
        check("\\x |", "", &["off", "on"]);
        check("\\q |", "", &[]);
    }

    #[test]
    fn odd_texts_do_no_harm() {
        for text in [
            "\"",
            "FROM \"",
            "é.",
            "FROM \"a\"\"b\".",
            "'",
            ".",
            "FROM .",
            "\\",
            "\"\".",
            "- /* x",
            "FROM 漢",
        ] {
            let _ = complete(text, "", &mut Known);
        }
    }
}
