//! Files of recorded cases: every answer follows its request.
//!
//! ```text
//! ## what the case shows
//! > a request, to the end of the line
//! < its answer
//! @ something else to do
//! ```
//!
//! `ZENOBE_BLESS=1` rewrites the answers; review them as a diff.

use std::path::Path;

/// What a line of a case file asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaseStep<'a> {
    /// A new case begins.
    Begin,
    /// The operation and its body.
    Request(&'a str, &'a str),
    Directive(&'a str),
}

/// Replays a file and compares its answers with those of now, or rewrites them. `answer` carries out a
/// step, and returns the line of its answer if the step is a request. Returns a report per difference.
///
/// # Panics
/// If the file can't be read or written, or has no requests.
pub async fn replay_case_file(
    path: &Path,
    mut answer: impl AsyncFnMut(CaseStep<'_>) -> Option<String>,
) -> Vec<String> {
    let expected = std::fs::read_to_string(path).expect("the case file is readable");
    assert!(expected.contains("\n> "), "{} has no requests", path.display());
    let mut actual = String::new();
    for line in expected.lines().filter(|line| !line.starts_with('<')) {
        actual.push_str(line);
        actual.push('\n');
        let step = match line.split_at_checked(2) {
            Some(("##", _)) => CaseStep::Begin,
            Some(("> ", request)) => {
                let (operation, body) = request.split_once(' ').unwrap_or((request, ""));
                CaseStep::Request(operation, body)
            }
            Some(("@ ", directive)) => CaseStep::Directive(directive),
            _ => continue,
        };
        if let Some(answer) = answer(step).await {
            actual.push_str(&answer);
            actual.push('\n');
        }
    }
    if std::env::var_os("ZENOBE_BLESS").is_some_and(|value| value == "1") {
        std::fs::write(path, actual).expect("the case file is writable");
        return Vec::new();
    }
    differences(&path.file_name().unwrap_or_default().to_string_lossy(), &expected, &actual)
}

fn differences(file: &str, expected: &str, actual: &str) -> Vec<String> {
    if actual.lines().count() != expected.lines().count() {
        return vec![format!("{file}: the number of answers differs from that of requests")];
    }
    let mut reports = Vec::new();
    let (mut title, mut request) = ("", "");
    for (number, (expected, actual)) in (1..).zip(expected.lines().zip(actual.lines())) {
        match expected.as_bytes().first() {
            Some(b'#') => title = expected,
            Some(b'>') => request = expected,
            _ => {}
        }
        if actual != expected {
            reports.push(format!(
                "\n{file}:{number}\n{title}\n{request}\nexpected {expected}\nactual   {actual}"
            ));
        }
    }
    reports
}
