//! When a measurement ran, and on which commit.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::SystemTime;

use time::OffsetDateTime;

pub fn today() -> String {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let now = OffsetDateTime::from_unix_timestamp(since_1970.as_secs() as i64);
    now.map_or_else(|_| "an unknown day".to_owned(), |now| now.date().to_string())
}

/// The commit, and whether the tree differs from it.
pub fn commit(repository: &Path) -> String {
    let git = |arguments: &[&str]| {
        first_line(Command::new("git").current_dir(repository).args(arguments))
    };
    let commit = git(&["rev-parse", "--short", "HEAD"]).unwrap_or_else(|| "unknown".to_owned());
    let changed =
        git(&["status", "--porcelain", "--untracked-files=no", "--", "crates", "Cargo.lock"]);
    match changed.is_some_and(|line| !line.is_empty()) {
        true => format!("{commit} with changes"),
        false => commit,
    }
}

/// The first line that a program prints, if it runs.
pub fn first_line(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    output.status.success().then(|| text.lines().next().unwrap_or_default().trim().to_owned())
}
