//! The variables with which cargo builds the workspace: where libclang is, and where the compiled
//! RocksDB is.

use std::ffi::OsString;
use std::process::Command;

use crate::process::Failure;
use crate::rocksdb::Library;
use crate::serve::Profile;
use crate::{libclang, rocksdb, workspace};

/// Variables to add to cargo's environment. Excludes those that the user has set.
#[derive(Debug, Default, Clone)]
pub struct Environment {
    variables: Vec<(&'static str, OsString)>,
}

impl Environment {
    /// Provides what a build needs: downloads and compiles what is missing.
    pub fn prepare() -> Result<Environment, Failure> {
        let (environment, library) = Environment::begin(Profile::Release)?;
        library.map_or(Ok(()), |library| library.compile())?;
        Ok(environment)
    }

    /// The same for one profile, and without compiling RocksDB yet.
    pub fn begin(profile: Profile) -> Result<(Environment, Option<Library>), Failure> {
        let mut environment = Environment::default();
        libclang::provide(&mut environment)?;
        let library = rocksdb::find(&mut environment, profile)?;
        Ok((environment, library))
    }

    pub fn set(&mut self, name: &'static str, value: impl Into<OsString>) {
        self.variables.push((name, value.into()));
    }

    /// Sets a variable unless the user has.
    pub fn set_default(&mut self, name: &'static str, value: impl Into<OsString>) {
        if std::env::var_os(name).is_none() {
            self.set(name, value);
        }
    }

    pub fn cargo(&self) -> Command {
        let mut command = workspace::cargo();
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }
}

/// Whether this is a CI run, which decides about merging. All common services set the variable, and
/// so does `.ci/run`.
pub fn is_ci() -> bool {
    std::env::var_os("CI").is_some_and(|value| !value.is_empty() && value != "false")
}

/// `cargo xtask env`: prints lines for a shell to evaluate.
pub fn print() -> Result<(), Failure> {
    for (name, value) in &Environment::prepare()?.variables {
        println!("export {name}={}", shell_quoted(&value.to_string_lossy()));
    }
    Ok(())
}

fn shell_quoted(value: &str) -> String {
    format!("'{}'", value.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_values_survive_a_shell() {
        assert_eq!(shell_quoted("/home/a b/lib"), "'/home/a b/lib'");
        assert_eq!(shell_quoted("it's"), r"'it'\''s'");
    }
}
