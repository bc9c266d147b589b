//! The workspace and all its dependencies, from `cargo metadata`.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use tinyjson::JsonValue;

use crate::process::{self, Failure};
use crate::workspace;

pub struct Metadata {
    packages: Vec<Package>,
    /// The ids of what each package needs to compile and run, tests excluded.
    dependencies: HashMap<String, Vec<String>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    pub id: String,
    pub name: String,
    pub version: String,
    /// The oldest Rust that the package claims to support.
    pub rust_version: Option<String>,
    /// An SPDX expression.
    pub license: Option<String>,
    manifest: PathBuf,
}

impl Package {
    pub fn directory(&self) -> &Path {
        self.manifest.parent().unwrap_or(&self.manifest)
    }
}

impl Metadata {
    /// Asks cargo, which downloads the sources of missing dependencies.
    pub fn read() -> Result<Metadata, Failure> {
        let mut command = workspace::cargo();
        let text = process::output(command.args(["metadata", "--locked", "--format-version=1"]))?;
        Metadata::parse(&text)
            .ok_or_else(|| Failure::new("`cargo metadata` answered something unexpected"))
    }

    fn parse(text: &str) -> Option<Metadata> {
        let root: JsonValue = text.parse().ok()?;
        let packages = array(&root, "packages")?.iter().map(package).collect::<Option<_>>()?;
        let nodes = root.get::<HashMap<String, JsonValue>>()?.get("resolve")?;
        let dependencies = array(nodes, "nodes")?.iter().map(node).collect::<Option<_>>()?;
        Some(Metadata { packages, dependencies })
    }

    /// The one package of this name.
    pub fn package(&self, name: &str) -> Result<&Package, Failure> {
        self.packages
            .iter()
            .find(|package| package.name == name)
            .ok_or_else(|| Failure::new(format!("cargo metadata does not name {name}")))
    }

    /// The package and everything that it needs to compile and run, sorted by id.
    pub fn with_dependencies(&self, name: &str) -> Result<Vec<&Package>, Failure> {
        let mut wanted = BTreeSet::new();
        let mut pending = vec![self.package(name)?.id.clone()];
        while let Some(id) = pending.pop() {
            if wanted.insert(id.clone()) {
                pending.extend(self.dependencies.get(&id).into_iter().flatten().cloned());
            }
        }
        Ok(self.packages.iter().filter(|package| wanted.contains(&package.id)).collect())
    }
}

fn package(value: &JsonValue) -> Option<Package> {
    Some(Package {
        id: string(value, "id")?,
        name: string(value, "name")?,
        version: string(value, "version")?,
        rust_version: string(value, "rust_version"),
        license: string(value, "license"),
        manifest: string(value, "manifest_path")?.into(),
    })
}

fn node(value: &JsonValue) -> Option<(String, Vec<String>)> {
    let dependencies = array(value, "deps")?.iter().filter(|dependency| is_built(dependency));
    let ids = dependencies.map(|dependency| string(dependency, "pkg")).collect::<Option<_>>()?;
    Some((string(value, "id")?, ids))
}

/// Whether a dependency is more than a development dependency.
fn is_built(dependency: &JsonValue) -> bool {
    let kinds = array(dependency, "dep_kinds").into_iter().flatten();
    kinds.into_iter().any(|kind| string(kind, "kind").as_deref() != Some("dev"))
}

fn array<'a>(value: &'a JsonValue, member: &str) -> Option<&'a Vec<JsonValue>> {
    value.get::<HashMap<String, JsonValue>>()?.get(member)?.get()
}

fn string(value: &JsonValue, member: &str) -> Option<String> {
    value.get::<HashMap<String, JsonValue>>()?.get(member)?.get::<String>().cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{
        "packages": [
            {"id": "a#1", "name": "a", "version": "1.0.0", "rust_version": null, "license": "MIT",
             "manifest_path": "/x/a \"quoted\"/Cargo.toml"},
            {"id": "b#1", "name": "b", "version": "2.0.0", "rust_version": "1.85", "license": null,
             "manifest_path": "/x/b/Cargo.toml"},
            {"id": "c#1", "name": "c", "version": "3.0.0", "rust_version": null, "license": null,
             "manifest_path": "/x/c/Cargo.toml"}
        ],
        "resolve": {"nodes": [
            {"id": "a#1", "deps": [
                {"pkg": "b#1", "dep_kinds": [{"kind": null}]},
                {"pkg": "c#1", "dep_kinds": [{"kind": "dev"}]}]},
            {"id": "b#1", "deps": []},
            {"id": "c#1", "deps": []}
        ]}
    }"#;

    #[test]
    fn paths_and_versions_are_read_as_json() {
        let metadata = Metadata::parse(TEXT).unwrap();
        let package = metadata.package("a").unwrap();
        assert_eq!(package.directory(), Path::new("/x/a \"quoted\""));
        assert_eq!(metadata.package("b").unwrap().rust_version.as_deref(), Some("1.85"));
        assert!(metadata.package("d").is_err());
    }

    #[test]
    fn development_dependencies_are_not_followed() {
        let metadata = Metadata::parse(TEXT).unwrap();
        let names = metadata.with_dependencies("a").unwrap();
        assert_eq!(names.iter().map(|package| &package.name[..]).collect::<Vec<_>>(), ["a", "b"]);
    }
}
