//! The locations in this clone, and the tools that build it.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{self, Failure};
use crate::serve::Profile;

/// The root of the clone. Cargo sets the variable for `cargo xtask`. It is read at run time because
/// a shared target directory may hold an xtask from another clone.
pub fn root() -> PathBuf {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    manifest.parent().map(Path::to_path_buf).unwrap_or(manifest)
}

pub fn target_directory() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(directory) => root().join(directory),
        None => root().join("target"),
    }
}

/// The server, where cargo puts it for a profile.
pub fn server_binary(profile: Profile) -> PathBuf {
    target_directory().join(profile.name()).join("zenobe")
}

/// Cargo, run in the root of the clone.
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Whether a program can be started at all.
pub fn has_program(program: &str) -> bool {
    process::output(Command::new(program).arg("--version")).is_ok()
}

pub fn host_triple() -> Result<String, Failure> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = process::output(Command::new(rustc).arg("-vV"))?;
    version
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .map(str::to_owned)
        .ok_or_else(|| Failure::new("`rustc -vV` names no host"))
}

/// The version of a dependency in Cargo.lock.
pub fn locked_version(package: &str) -> Result<String, Failure> {
    let path = root().join("Cargo.lock");
    let lock =
        std::fs::read_to_string(&path).map_err(|error| Failure::file("read", &path, &error))?;
    version_in_lock(&lock, package)
        .ok_or_else(|| Failure::new(format!("Cargo.lock does not name {package}")))
}

fn version_in_lock(lock: &str, package: &str) -> Option<String> {
    let name = format!("name = \"{package}\"");
    let mut lines = lock.lines().skip_while(|line| *line != name);
    lines.nth(1)?.strip_prefix("version = \"")?.strip_suffix('"').map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_locked_version_is_found_by_its_exact_name() {
        let lock = "[[package]]\nname = \"rocks\"\nversion = \"1.0.0\"\n\n\
                    [[package]]\nname = \"rocks-sys\"\nversion = \"0.19.0+11.8.1\"\n";
        assert_eq!(version_in_lock(lock, "rocks-sys").as_deref(), Some("0.19.0+11.8.1"));
        assert_eq!(version_in_lock(lock, "rocks").as_deref(), Some("1.0.0"));
        assert_eq!(version_in_lock(lock, "rock"), None);
    }
}
