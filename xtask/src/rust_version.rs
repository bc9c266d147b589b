//! The oldest Rust that compiles the product, as `rust-version` in Cargo.toml promises. Clippy
//! checks our own code against it (`incompatible_msrv`); this checks the dependencies.

use std::collections::BTreeSet;

use crate::metadata::{Metadata, Package};
use crate::process::{self, Failure};
use crate::workspace;

const PRODUCT: &str = "zenobe";

pub fn check() -> Result<(), Failure> {
    let metadata = Metadata::read()?;
    let promised = metadata
        .package(PRODUCT)?
        .rust_version
        .clone()
        .ok_or_else(|| Failure::new("Cargo.toml names no rust-version"))?;
    let built = packages_built_by_default()?;
    let faults: Vec<String> = metadata
        .with_dependencies(PRODUCT)?
        .into_iter()
        .filter(|package| built.contains(&format!("{} v{}", package.name, package.version)))
        .filter(|package| needs_more_than(package, &promised))
        .map(|package| format!("{} {} needs a newer one", package.name, package.version))
        .collect();
    match faults.is_empty() {
        true => Ok(()),
        false => Err(Failure::new(format!(
            "Cargo.toml promises Rust {promised}, but {}",
            faults.join(", ")
        ))),
    }
}

/// `name vVERSION` of everything in the product with its default features. The metadata does not
/// show this: it includes whatever any member of the workspace enables, and one member enables the
/// connector for the AWS SDK, which requires a newer Rust.
fn packages_built_by_default() -> Result<BTreeSet<String>, Failure> {
    let mut command = workspace::cargo();
    command.args(["tree", "--locked", "--package", PRODUCT, "--edges", "normal,build"]);
    let lines = process::output(command.args(["--prefix", "none", "--format", "{p}"]))?;
    // A path or a mark may follow the version.
    let named = |line: &str| line.split(' ').take(2).collect::<Vec<_>>().join(" ");
    Ok(lines.lines().map(named).collect())
}

fn needs_more_than(package: &Package, promised: &str) -> bool {
    package.rust_version.as_deref().is_some_and(|needed| parts(needed) > parts(promised))
}

/// `1.89` and `1.89.0` are equal.
fn parts(version: &str) -> [u32; 3] {
    let mut numbers = version.split('.').map(|part| part.parse().unwrap_or(0));
    [(); 3].map(|()| numbers.next().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_by_number() {
        assert!(parts("1.100") > parts("1.89.1"));
        assert_eq!(parts("1.89"), parts("1.89.0"));
    }
}
