//! `cargo xtask compare`: measures the release server against its limits and its peers.

use std::ffi::OsString;

use crate::environment::Environment;
use crate::peers::{self, Provided};
use crate::process::Failure;
use crate::{measuring, serve};

const WITHOUT_PEERS: &str = "--without-peers";

pub fn run(arguments: &[String]) -> Result<(), Failure> {
    let options = serve::options(arguments);
    let peers = match options.iter().any(|option| option == WITHOUT_PEERS) {
        true => Vec::new(),
        false => peers::provide()?,
    };
    let mut command = measuring::command(&Environment::prepare()?, "compare")?;
    for peer in peers {
        command.args(describe(peer));
    }
    serve::execute(command.args(options.iter().filter(|option| *option != WITHOUT_PEERS)))
}

/// The options that describe one peer to the measuring program.
fn describe(peer: Provided) -> [OsString; 4] {
    let (option, value): (&str, OsString) = match peer.directory {
        Ok(directory) => ("--peer", directory.into()),
        Err(failure) => {
            let failure = failure.to_string();
            eprintln!("xtask: {} is not compared: {failure}", peer.name);
            ("--absent-peer", failure.lines().next().unwrap_or_default().into())
        }
    };
    [option.into(), peer.name.into(), peer.version.into(), value]
}
