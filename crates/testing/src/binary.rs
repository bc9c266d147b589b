//! Finds the server's executable.
//!
//! `ZENOBE_BINARY` names it when set. Otherwise the cargo that runs the tests builds it: `cargo
//! test` builds only the executables of the package under test, so a test crate cannot rely on the
//! server being there, or being fresh. Cargo itself decides what is stale. If nothing is, the call
//! costs a fraction of a second, once per test process.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// The path of the server's executable. Builds it first, unless the environment names one.
///
/// # Panics
/// If the build fails: no server test can run without it.
pub fn server_binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| match env::var_os("ZENOBE_BINARY") {
        Some(path) => PathBuf::from(path),
        None => build(),
    })
}

fn build() -> PathBuf {
    let layout = Layout::of_this_test();
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["build", "--quiet", "--package", "zenobe", "--bin", "zenobe"])
        .args(["--profile", &layout.profile, "--message-format", "json"])
        .arg("--target-dir")
        .arg(&layout.target_directory)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stderr(Stdio::inherit())
        .output()
        .expect("cargo can be run");
    assert!(output.status.success(), "the server does not build; see cargo's messages above");
    executable_in(&output.stdout).expect("cargo names the executable that it built")
}

/// Where the running test was built, so that the server lands beside it, in the same profile.
struct Layout {
    target_directory: PathBuf,
    profile: String,
}

impl Layout {
    /// Test executables live in `<target directory>/<profile directory>/deps/`.
    fn of_this_test() -> Layout {
        let executable = env::current_exe().expect("a test knows its own executable");
        let profile_directory =
            executable.ancestors().nth(2).expect("a test executable lies in deps/");
        let target_directory =
            profile_directory.parent().expect("a profile lies in a target directory");
        let directory_name = profile_directory.file_name().unwrap_or_default().to_string_lossy();
        let profile = if directory_name == "debug" { "dev".into() } else { directory_name.into() };
        Layout { target_directory: target_directory.to_owned(), profile }
    }
}

/// Reads the one `"executable"` that cargo reports for a binary target.
fn executable_in(messages: &[u8]) -> Option<PathBuf> {
    String::from_utf8_lossy(messages)
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_executable_is_read_from_cargos_messages() {
        let messages = concat!(
            r#"{"reason":"compiler-artifact","executable":null}"#,
            "\n",
            r#"{"reason":"compiler-artifact","executable":"/t/debug/zenobe"}"#,
            "\n",
            r#"{"reason":"build-finished","success":true}"#,
        );
        assert_eq!(executable_in(messages.as_bytes()), Some(PathBuf::from("/t/debug/zenobe")));
    }
}
