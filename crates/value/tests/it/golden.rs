//! Golden files: one case per line, `input => outcome`, with `#` for comments.

use std::fmt::Write;
use std::path::PathBuf;
use std::{env, fs};

/// Checks every case of the file, or rewrites the outcomes if `ZENOBE_BLESS=1`.
pub fn check(file: &str, outcome_of: impl Fn(&str) -> String) {
    let actual = render(&read(file), &outcome_of);
    if env::var_os("ZENOBE_BLESS").is_some_and(|value| value == "1") {
        fs::write(path_of(file), actual).expect("the golden file can be written");
        return;
    }
    check_recorded(file, outcome_of);
}

/// Checks every case of a file whose outcomes were recorded elsewhere and are never rewritten.
pub fn check_recorded(file: &str, outcome_of: impl Fn(&str) -> String) {
    let expected = read(file);
    let actual = render(&expected, &outcome_of);
    let mut cases = 0;
    for (number, (expected, actual)) in expected.lines().zip(actual.lines()).enumerate() {
        assert_eq!(actual, expected, "{file}:{}", number + 1);
        cases += usize::from(case(expected).is_some());
    }
    assert!(cases > 0, "{file} has no cases");
}

pub fn inputs(file: &str) -> Vec<String> {
    read(file).lines().filter_map(case).map(|(input, _)| input.to_owned()).collect()
}

pub fn hex(bytes: &[u8]) -> String {
    let pairs: Vec<_> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    pairs.join(" ")
}

pub fn unhex(text: &str) -> Vec<u8> {
    let pairs = text.split_whitespace();
    pairs.map(|pair| u8::from_str_radix(pair, 16).expect("two hex digits")).collect()
}

fn case(line: &str) -> Option<(&str, &str)> {
    if line.is_empty() || line.starts_with('#') {
        return None;
    }
    Some(line.split_once(" =>").map(|(input, outcome)| (input, outcome.trim())).expect("a case"))
}

fn render(file: &str, outcome_of: impl Fn(&str) -> String) -> String {
    file.lines().fold(String::new(), |mut rendered, line| {
        match case(line) {
            Some((input, _)) => writeln!(rendered, "{input} => {}", outcome_of(input)),
            None => writeln!(rendered, "{line}"),
        }
        .expect("writing to a string");
        rendered
    })
}

fn read(file: &str) -> String {
    let path = path_of(file);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn path_of(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases/value").join(file)
}
