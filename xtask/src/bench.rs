//! `cargo xtask bench`: measure the release server.

use crate::environment::Environment;
use crate::process::{self, Failure};
use crate::{serve, workspace};

pub fn run(arguments: &[String]) -> Result<(), Failure> {
    let environment = Environment::prepare()?;
    serve::build_release(&environment)?;
    let mut command = environment.cargo();
    command.args(["run", "--quiet", "--locked", "--release", "--package", "zenobe-bench", "--"]);
    command.args(serve::options(arguments)).env("ZENOBE_BINARY", workspace::server_binary());
    process::run(&mut command)
}
