//! Golden scripts: `tests/cases/engine/<area>/*.txt`.
//!
//! A block is one command (lines that start with `> `; its further lines are options) and the
//! output below it, up to an empty line. Lines with `#` are comments. `ZENOBE_BLESS=1` rewrites the
//! output.

use std::path::{Path, PathBuf};

use super::block_on;
use super::commands::Script;

/// Runs every script of an area. At the end of each, every table must be consistent.
pub fn run(area: &str) {
    let directory =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases/engine").join(area);
    let mut paths: Vec<PathBuf> = std::fs::read_dir(&directory)
        .unwrap_or_else(|error| panic!("{}: {error}", directory.display()))
        .map(|entry| entry.expect("a readable directory").path())
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "no scripts in {}", directory.display());
    for path in paths {
        check(&path);
    }
}

fn check(path: &Path) {
    let expected = std::fs::read_to_string(path).expect("a readable script");
    let actual = block_on(execute(&expected));
    if std::env::var_os("ZENOBE_BLESS").is_some_and(|value| value == "1") {
        std::fs::write(path, actual).expect("a writable script");
        return;
    }
    if actual != expected {
        panic!("{} has changed:\n{}", path.display(), difference(&expected, &actual));
    }
}

async fn execute(text: &str) -> String {
    let mut script = Script::new().await;
    let mut output = String::new();
    for block in text.trim_end().split("\n\n") {
        if !output.is_empty() {
            output.push('\n');
        }
        let mut command = Vec::new();
        for line in block.lines().filter(|line| line.starts_with('#') || line.starts_with("> ")) {
            output += line;
            output.push('\n');
            command.extend(line.strip_prefix("> "));
        }
        if !command.is_empty() {
            output += &script.run(&command).await;
        }
    }
    script.check_consistency().await;
    output
}

fn difference(expected: &str, actual: &str) -> String {
    let (mut expected, mut actual) = (expected.lines(), actual.lines());
    let mut text = String::new();
    for number in 1.. {
        match (expected.next(), actual.next()) {
            (None, None) => break,
            (old, new) if old == new => {}
            (old, new) => {
                let line = |line: Option<&str>| line.unwrap_or("(end)").to_owned();
                text += &format!("{number}\n  expected {}\n  actual   {}\n", line(old), line(new));
            }
        }
    }
    text
}
