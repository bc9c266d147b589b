//! `cargo xtask licences`: checks that everything in the binary may be redistributed, and that
//! NOTICE states the terms.
//!
//! This is the part of the check that needs no network. `cargo deny`, which runs in the workflows
//! of the repository's host, also checks advisories and yanked versions.

mod expression;
mod texts;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;

use crate::metadata::{Metadata, Package};
use crate::process::{self, Failure};
use crate::workspace;

pub use texts::write as write_texts;

pub fn run(arguments: &[String]) -> Result<(), Failure> {
    match arguments {
        [] => check(),
        [write] if write == "--write" => {
            let path = workspace::root().join("NOTICE");
            let text = notice(&shipped(&Metadata::read()?)?);
            fs::write(&path, text).map_err(|error| Failure::file("write", &path, &error))
        }
        [texts, path] if texts == "--texts" => write_texts(&workspace::root().join(path)),
        _ => Err(Failure::new("expected nothing, --write, or --texts <file>")),
    }
}

/// The step of `cargo xtask test`.
pub fn check() -> Result<(), Failure> {
    let metadata = Metadata::read()?;
    let packages = shipped(&metadata)?;
    let allowed = allowed_licences()?;
    let is_allowed = |name: &str| allowed.iter().any(|allowed| allowed == name);
    let refused: Vec<String> = packages
        .iter()
        .filter(|package| {
            let licence = package.license.as_deref().unwrap_or_default();
            !expression::is_satisfied(licence, &is_allowed)
        })
        .map(|package| format!("{} {}: {:?}", package.name, package.version, package.license))
        .collect();
    if !refused.is_empty() {
        return Err(Failure::new(format!(
            "deny.toml does not allow these licences:\n{}",
            refused.join("\n")
        )));
    }
    let path = workspace::root().join("NOTICE");
    let found = fs::read_to_string(&path).map_err(|error| Failure::file("read", &path, &error))?;
    match found == notice(&packages) {
        true => Ok(()),
        false => Err(Failure::new("NOTICE is not up to date: run `cargo xtask licences --write`")),
    }
}

/// Everything in the binary besides the crates of this workspace. `cargo metadata` alone would
/// include features that other members of the workspace enable.
pub fn shipped(metadata: &Metadata) -> Result<Vec<&Package>, Failure> {
    let mut cargo = workspace::cargo();
    cargo.args(["tree", "--locked", "--package", "zenobe", "--edges", "normal,build"]);
    let tree = process::output(cargo.args(["--target", "all", "--prefix", "none"]))?;
    let compiled: BTreeSet<(&str, &str)> = tree.lines().filter_map(name_and_version).collect();
    let root = workspace::root();
    let mut packages = metadata.with_dependencies("zenobe")?;
    packages.retain(|package| {
        compiled.contains(&(package.name.as_str(), package.version.as_str()))
            && !package.directory().starts_with(&root)
    });
    Ok(packages)
}

/// Parses a line such as `tokio v1.54.0 (*)`.
fn name_and_version(line: &str) -> Option<(&str, &str)> {
    let mut words = line.split_whitespace();
    Some((words.next()?, words.next()?.strip_prefix('v')?))
}

/// The list in deny.toml, so that both checks use the same one.
fn allowed_licences() -> Result<Vec<String>, Failure> {
    let path = workspace::root().join("deny.toml");
    let text = fs::read_to_string(&path).map_err(|error| Failure::file("read", &path, &error))?;
    allowed_in(&text).ok_or_else(|| Failure::new("deny.toml has no list `allow` of [licenses]"))
}

fn allowed_in(text: &str) -> Option<Vec<String>> {
    let (_, licenses) = text.split_once("[licenses]")?;
    let (_, list) = licenses.split_once("allow = [")?;
    let (list, _) = list.split_once(']')?;
    Some(list.split('"').skip(1).step_by(2).map(str::to_owned).collect())
}

const HEAD: &str = "\
Zenobe
Copyright The Zenobe authors

Licensed under the Apache License, Version 2.0; see LICENSE.
Amazon DynamoDB is a trademark of Amazon.com, Inc. This project is not affiliated with it.

The binary contains these libraries in C and C++, compiled from the sources that the named crates hold:

  RocksDB (librocksdb-sys)     Apache-2.0, chosen of Apache-2.0 and GPL-2.0; parts under the BSD licence of LevelDB
  LZ4 (lz4-sys)                BSD-2-Clause
  mimalloc (libmimalloc-sys)   MIT
  ring's parts of BoringSSL    Apache-2.0 AND ISC

and these crates. Packages hold the texts of all licences in THIRD-PARTY-LICENCES.txt, which
`cargo xtask package` writes.

This list is written by `cargo xtask licences --write`.
";

fn notice(packages: &[&Package]) -> String {
    let mut by_licence: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in packages {
        let names = by_licence.entry(package.license.as_deref().unwrap_or("none")).or_default();
        names.push(&package.name);
    }
    let mut text = String::from(HEAD);
    for (licence, mut names) in by_licence {
        names.sort_unstable();
        names.dedup();
        let _ = write!(text, "\n{licence}\n");
        for name in names {
            let _ = writeln!(text, "  {name}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_allowed_licences_are_read_from_their_section() {
        let text = "[graph]\ntargets = [\"x\"]\n[licenses]\nallow = [\n  \"MIT\",\n  \"ISC\",\n]\n";
        assert_eq!(allowed_in(text).unwrap(), ["MIT", "ISC"]);
        assert_eq!(allowed_in("[graph]\n"), None);
    }

    #[test]
    fn names_and_versions_are_read_from_the_tree() {
        assert_eq!(name_and_version("tokio v1.54.0 (*)"), Some(("tokio", "1.54.0")));
        assert_eq!(name_and_version("[build-dependencies]"), None);
    }
}
