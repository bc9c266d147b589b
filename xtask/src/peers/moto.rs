//! moto: Python, from PyPI.

use std::path::Path;

use crate::process::Failure;
use crate::python;

use super::{Peer, source};

pub const PEER: Peer = Peer { name: "moto", version: "5.2.5", install, require: || Ok(()) };

fn install(directory: &Path) -> Result<(), Failure> {
    python::install(&source("moto/requirements.txt"), directory).map(drop)
}
