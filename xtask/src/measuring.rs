//! The measuring program, built together with the server that it measures.

use std::process::Command;

use crate::environment::Environment;
use crate::process::{self, Failure};
use crate::serve::Profile;
use crate::workspace;

/// Builds both in release mode and returns the program's command of this name.
pub fn command(environment: &Environment, name: &str) -> Result<Command, Failure> {
    let mut build = environment.cargo();
    build.args(["build", "--locked", "--release", "--package", "zenobe", "--package"]);
    process::run(build.arg("zenobe-bench"))?;
    let server = workspace::server_binary(Profile::Release);
    let mut command = Command::new(server.with_file_name("zenobe-bench"));
    command.arg(name).arg("--binary").arg(server);
    command.arg("--repository").arg(workspace::root());
    Ok(command)
}
