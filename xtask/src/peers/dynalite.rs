//! dynalite: Node.js and LevelDB, from npm.

use std::path::Path;
use std::process::Command;

use crate::process::{self, Failure};

use super::{Peer, copy, require_program};

pub const PEER: Peer = Peer {
    name: "dynalite",
    version: "4.0.0",
    install,
    require: || {
        require_program("node", &["nodejs", "npm"])?;
        require_program("npm", &["npm"])
    },
};

fn install(directory: &Path) -> Result<(), Failure> {
    copy("dynalite/package.json", directory)?;
    copy("dynalite/package-lock.json", directory)?;
    // The package contains a compiled LevelDB, so no script needs to run.
    let arguments = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
    process::run(Command::new("npm").args(arguments).current_dir(directory))
}
