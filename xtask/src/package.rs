//! `cargo xtask package`: the release binary with its man pages, completions and licences, in the
//! layout of a file system, and an archive of it.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::environment::Environment;
use crate::metadata::Metadata;
use crate::process::{self, Failure};
use crate::serve::{self, Profile};
use crate::{licences, workspace};

/// Where each shell looks for completions, below `share`.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "bash-completion/completions/zenobe"),
    ("zsh", "zsh/vendor-completions/_zenobe"),
    ("fish", "fish/vendor_completions.d/zenobe.fish"),
];
const DOCUMENTS: [&str; 4] = ["README.md", "CHANGELOG.md", "LICENSE", "NOTICE"];

pub fn run(arguments: &[String]) -> Result<(), Failure> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let home = workspace::target_directory().join("package");
    match words[..] {
        [] => {
            stage(&home.join("stage"))?;
            archive(&home)
        }
        ["--deb"] => {
            stage(&home.join("stage"))?;
            debian(&home)
        }
        ["--check"] => check_crates(),
        ["--stage", directory] => stage(&workspace::root().join(directory)),
        _ => Err(Failure::new("expected nothing, --check, --deb, or --stage <directory>")),
    }
}

/// Checks that the crates of the binary can be published: their manifests have everything that a
/// registry requires. It does not compile the packages again.
pub fn check_crates() -> Result<(), Failure> {
    let metadata = Metadata::read()?;
    let root = workspace::root();
    let packages = metadata.with_dependencies("zenobe")?;
    let mut cargo = workspace::cargo();
    cargo.args(["package", "--quiet", "--locked", "--offline", "--no-verify", "--allow-dirty"]);
    for package in packages.iter().filter(|package| package.directory().starts_with(&root)) {
        cargo.args(["--package", &package.name]);
    }
    process::output(&mut cargo).map(drop)
}

/// Builds the binary and puts it into the directory with everything that belongs to it.
fn stage(directory: &Path) -> Result<(), Failure> {
    serve::build(&Environment::prepare()?, Profile::Release)?;
    // The directory may not exist yet.
    let _ = fs::remove_dir_all(directory);
    let binary = directory.join("bin/zenobe");
    copy(&workspace::server_binary(Profile::Release), &binary)?;
    let share = directory.join("share");
    let pages = share.join("man/man1");
    create(&pages)?;
    process::output(Command::new(&binary).args(["man", "--output"]).arg(&pages))?;
    for (shell, path) in COMPLETIONS {
        let text = process::output(Command::new(&binary).args(["completions", shell]))?;
        let path = share.join(path);
        create(path.parent().unwrap_or(&share))?;
        fs::write(&path, text).map_err(|error| Failure::file("write", &path, &error))?;
    }
    let documents = share.join("doc/zenobe");
    for name in DOCUMENTS {
        copy(&workspace::root().join(name), &documents.join(name))?;
    }
    licences::write_texts(&documents.join("THIRD-PARTY-LICENCES.txt"))
}

/// An archive and its checksum, in the form that the client packages download.
fn archive(home: &Path) -> Result<(), Failure> {
    let binary = home.join("stage/bin/zenobe");
    let version = process::output(Command::new(binary).arg("--version"))?;
    let version = version.split_whitespace().nth(1).unwrap_or("unknown");
    let name = format!("zenobe-{version}-{}", workspace::host_triple()?);
    let directory = home.join(&name);
    let _ = fs::remove_dir_all(&directory);
    fs::rename(home.join("stage"), &directory)
        .map_err(|error| Failure::file("rename", &directory, &error))?;
    let file = format!("{name}.tar.gz");
    process::run(Command::new("tar").current_dir(home).args(["-czf", &file, &name]))?;
    let sum = checksum(home, &file)?;
    let path = home.join(format!("{file}.sha256"));
    fs::write(&path, sum).map_err(|error| Failure::file("write", &path, &error))?;
    println!("{}", home.join(file).display());
    Ok(())
}

/// In the format of `sha256sum --check`. macOS has another program for it.
fn checksum(directory: &Path, file: &str) -> Result<String, Failure> {
    let sha256sum = process::output(Command::new("sha256sum").current_dir(directory).arg(file));
    sha256sum.or_else(|_| {
        let mut shasum = Command::new("shasum");
        process::output(shasum.current_dir(directory).args(["-a", "256", file]))
    })
}

/// The metadata of the package is in the manifest of crates/server.
fn debian(home: &Path) -> Result<(), Failure> {
    let mut cargo = workspace::cargo();
    cargo.args(["deb", "--package", "zenobe", "--no-build", "--no-strip", "--output"]).arg(home);
    process::run(&mut cargo).map_err(|failure| {
        Failure::new(format!("{failure}\n`cargo install cargo-deb` provides the command"))
    })
}

fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    create(to.parent().unwrap_or(to))?;
    fs::copy(from, to).map(drop).map_err(|error| Failure::file("copy", from, &error))
}

fn create(directory: &Path) -> Result<(), Failure> {
    fs::create_dir_all(directory).map_err(|error| Failure::file("create", directory, &error))
}
