//! docs/operations.md lists every warning and error of the log.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// What the page says in place of a part that differs from line to line.
const VARIABLE: &str = "…";

/// Calls whose first text is a line of the log.
const CALLS: [&str; 3] = ["warn!(", "error!(", "TableRound::new("];

/// Lines whose text comes from elsewhere, and what the page calls them.
const FROM_ELSEWHERE: [(&str, &[&str]); 6] = [
    ("api/src/imports/loader.rs", &["zenobe_import"]),
    // Each text of a `TableRound` is looked for as well.
    ("engine/src/table_round.rs", &["building or deleting an index failed; retrying"]),
    ("server/src/serve.rs", &["the environment variable … sets no option…"]),
    (
        "server/src/triggers/manager.rs",
        &[
            "there is no table …; deliveries begin once there is one with a stream",
            "the table … has no stream; deliveries begin once it has: …",
        ],
    ),
    ("store-embedded/src/options.rs", &["zenobe::rocksdb"]),
    (
        "store-embedded/src/write_ahead_log/check.rs",
        &[
            "… is damaged at byte …, where a crash interrupted unacknowledged writes; replay ends there",
        ],
    ),
];

#[test]
fn the_operations_page_lists_every_warning_and_error() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = fs::read_to_string(crates.join("../docs/operations.md")).unwrap();
    let listed = listed(&page);
    let mut unused: BTreeSet<&str> = listed.iter().copied().collect();
    let mut missing = Vec::new();
    let sources = sources(&crates);
    assert!(sources.len() > 100, "the sources are found");
    for (path, source) in &sources {
        for text in CALLS.iter().flat_map(|call| texts(source, call)) {
            let lines = match has_words(&text) {
                true => listed.iter().copied().filter(|line| is_line_of(line, &text)).collect(),
                false => from_elsewhere(path),
            };
            match lines.iter().all(|line| listed.contains(line)) && !lines.is_empty() {
                true => unused.retain(|line| !lines.contains(line)),
                false => missing.push(format!("{path}: {text}")),
            }
        }
    }
    assert!(
        missing.is_empty() && unused.is_empty(),
        "docs/operations.md, section \"Log lines\"\nlacks {missing:#?}\nhas {unused:#?}, which nobody logs"
    );
}

/// Whether a line of the page stands for the text: as a whole, or as its beginning.
fn is_line_of(line: &str, text: &str) -> bool {
    line == text || line.strip_suffix(VARIABLE).is_some_and(|begin| text.starts_with(begin))
}

fn from_elsewhere(path: &str) -> Vec<&'static str> {
    let known = FROM_ELSEWHERE.iter().find(|(known, _)| *known == path);
    known.map(|(_, lines)| lines.to_vec()).unwrap_or_default()
}

fn has_words(text: &str) -> bool {
    text.contains(char::is_alphabetic)
}

/// The code spans in the first column of the tables in the section about log lines.
fn listed(page: &str) -> Vec<&str> {
    let (_, section) = page.split_once("\n## Log lines\n").expect("the page has the section");
    let section = section.split("\n## ").next().unwrap_or_default();
    let columns = section.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    columns.flat_map(|column| column.split('`').skip(1).step_by(2)).collect()
}

/// The product's sources, without their tests, by path below `crates/`.
fn sources(crates: &Path) -> Vec<(String, String)> {
    let mut waiting: Vec<PathBuf> =
        fs::read_dir(crates).unwrap().map(|it| it.unwrap().path().join("src")).collect();
    let mut sources = Vec::new();
    while let Some(path) = waiting.pop() {
        if path.is_dir() {
            waiting.extend(fs::read_dir(&path).unwrap().map(|it| it.unwrap().path()));
        } else if path.extension().is_some_and(|it| it == "rs") && !path.ends_with("tests.rs") {
            let source = fs::read_to_string(&path).unwrap();
            let source = source.split("\nmod tests {").next().unwrap_or_default().to_owned();
            let path = path.strip_prefix(crates).unwrap().display().to_string();
            sources.push((path, source));
        }
    }
    sources
}

/// The first argument of each call that is a text, with its placeholders replaced.
fn texts(source: &str, call: &str) -> Vec<String> {
    let calls = source.match_indices(call).map(|(at, _)| &source[at + call.len()..]);
    calls.map(|arguments| message(arguments).unwrap_or_default()).collect()
}

/// A text is the message if it is an argument of its own, not the value of a field.
fn message(arguments: &str) -> Option<String> {
    let (mut depth, mut before) = (1, ',');
    let mut rest = arguments.chars();
    while let Some(next) = rest.next() {
        match next {
            '"' => {
                let text = text(&mut rest);
                if depth == 1 && before == ',' {
                    return Some(text);
                }
            }
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return None;
        }
        if !next.is_whitespace() {
            before = next;
        }
    }
    None
}

/// The rest of a string literal.
fn text(rest: &mut std::str::Chars<'_>) -> String {
    let mut text = String::new();
    while let Some(next) = rest.next() {
        match next {
            '"' => break,
            // A line that continues on the next.
            '\\' if rest.as_str().starts_with('\n') => {
                *rest = rest.as_str().trim_start().chars();
            }
            '\\' => text.extend(rest.next()),
            '{' => {
                rest.find(|next| *next == '}');
                text.push_str(VARIABLE);
            }
            other => text.push(other),
        }
    }
    text
}
