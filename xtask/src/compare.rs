//! `cargo xtask compare`: measures the release server against its limits and its peers.

use std::ffi::OsString;

use crate::environment::Environment;
use crate::peers::{self, Provided};
use crate::process::Failure;
use crate::{measuring, postgres, serve};

const WITHOUT_PEERS: &str = "--without-peers";
/// The groups that need a PostgreSQL.
const POSTGRES_GROUP: &str = "many-nodes";

pub fn run(arguments: &[String]) -> Result<(), Failure> {
    let options = serve::options(arguments);
    let peers = match options.iter().any(|option| option == WITHOUT_PEERS) {
        true => Vec::new(),
        false => peers::provide()?,
    };
    if needs_postgres(options) {
        // Without it, the group fails and says so; the others still count.
        if let Err(failure) = postgres::provide() {
            eprintln!("xtask: {failure}");
        }
    }
    let mut command = measuring::command(&Environment::prepare()?, "compare")?;
    for peer in peers {
        command.args(describe(peer));
    }
    serve::execute(command.args(options.iter().filter(|option| *option != WITHOUT_PEERS)))
}

/// Whether the group is among those to be measured, which are all unless `--only` names some.
fn needs_postgres(options: &[String]) -> bool {
    let mut named = options.iter().skip_while(|option| !option.starts_with("--only"));
    match named.next() {
        None => true,
        Some(only) => {
            only.contains(POSTGRES_GROUP)
                || named.next().is_some_and(|groups| groups.contains(POSTGRES_GROUP))
        }
    }
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

#[cfg(test)]
mod tests {
    use super::needs_postgres;

    #[test]
    fn postgres_is_needed_unless_other_groups_are_named() {
        let needs = |words: &str| {
            let options: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
            needs_postgres(&options)
        };
        for words in ["", "--quick", "--only reads,many-nodes", "--only=many-nodes --quick"] {
            assert!(needs(words), "{words}");
        }
        for words in ["--only reads", "--quick --only=scan,load --without-peers"] {
            assert!(!needs(words), "{words}");
        }
    }
}
