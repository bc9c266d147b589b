//! DynamoDB Local: Java (17 or newer) and SQLite, from Maven Central.

use std::path::Path;
use std::process::Command;

use crate::process::{self, Failure};

use super::{Peer, copy, require_program};

pub const PEER: Peer = Peer {
    name: "dynamodb-local",
    version: "3.3.1",
    install,
    require: || require_program("java", &["default-jre-headless"]),
};

fn install(directory: &Path) -> Result<(), Failure> {
    require_program("mvn", &["maven"])?;
    copy("dynamodb-local/pom.xml", directory)?;
    let mut maven = Command::new("mvn");
    maven.args(["--batch-mode", "--quiet", "dependency:copy-dependencies"]);
    maven.args(["-DincludeScope=runtime", "-DoutputDirectory=lib"]).current_dir(directory);
    process::run(&mut maven)
}
