//! `cargo xtask soak`: minutes of mixed load, with all background work at once.

use crate::environment::Environment;
use crate::process::Failure;
use crate::{measuring, serve};

pub fn run(arguments: &[String]) -> Result<(), Failure> {
    let environment = Environment::prepare()?;
    serve::execute(measuring::command(&environment, "soak")?.args(serve::options(arguments)))
}
