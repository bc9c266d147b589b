//! The case files in `tests/cases/scaling`: `## title`, `> Operation body` and `< status answer`. Each case has a fresh engine with
//! a table. `@ minutes 3` passes minutes. `ZENOBE_BLESS=1` rewrites the answers; review them as a diff.

use std::path::PathBuf;

use crate::world::World;

#[tokio::test]
async fn answers_are_as_recorded() {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases/scaling");
    let mut reports = Vec::new();
    for entry in std::fs::read_dir(directory).expect("the case directory is readable") {
        let path = entry.expect("a directory entry").path();
        let expected = std::fs::read_to_string(&path).expect("the case file is readable");
        let actual = answered(&expected).await;
        if std::env::var_os("ZENOBE_BLESS").is_some_and(|value| value == "1") {
            std::fs::write(&path, actual).expect("the case file is writable");
            continue;
        }
        assert!(expected.contains("\n> "), "{} has no requests", path.display());
        assert_eq!(actual.lines().count(), expected.lines().count(), "{}", path.display());
        for (number, (expected, actual)) in (1..).zip(expected.lines().zip(actual.lines())) {
            if expected != actual {
                let path = path.display();
                reports.push(format!("{path}:{number}\nexpected {expected}\nactual   {actual}"));
            }
        }
    }
    assert!(reports.is_empty(), "{}", reports.join("\n\n"));
}

/// The file's text with every answer replaced by the actual one.
async fn answered(text: &str) -> String {
    let mut world = World::new().await;
    let mut out = String::new();
    for line in text.lines().filter(|line| !line.starts_with('<')) {
        out.push_str(line);
        out.push('\n');
        if line.starts_with("## ") {
            world = World::new().await;
            world.create_table(5).await;
        } else if let Some(request) = line.strip_prefix("> ") {
            let (operation, body) = request.split_once(' ').unwrap_or((request, ""));
            let (status, answer) = world.scaling(operation, body).await;
            out.push_str(&format!("< {status} {answer}\n"));
        } else if let Some(minutes) = line.strip_prefix("@ minutes ") {
            world.pass_minutes(minutes.parse().expect("a number of minutes")).await;
        }
    }
    out
}
