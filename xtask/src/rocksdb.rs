//! The compiled RocksDB library. It takes about a quarter of an hour to compile, so it is kept in the
//! per-user cache under a name that says everything its bytes depend on.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

use crate::environment::Environment;
use crate::process::{self, Failure};
use crate::{cache, workspace};

const PACKAGE: &str = "librocksdb-sys";
const ARCHIVE: &str = "librocksdb.a";

/// Finds the library or compiles it into the cache.
pub fn provide(environment: &mut Environment) -> Result<(), Failure> {
    if std::env::var_os("ROCKSDB_LIB_DIR").is_some() {
        environment.set_default("ROCKSDB_STATIC", "1");
        return Ok(());
    }
    let entry = cache::directory()?.join(Recipe::read()?.entry_name());
    if !archive(&entry).exists() {
        compile(environment, &entry)?;
    }
    environment.set("ROCKSDB_LIB_DIR", entry.join("lib"));
    environment.set("ROCKSDB_STATIC", "1");
    Ok(())
}

/// What the library's bytes depend on.
struct Recipe {
    version: String,
    features: String,
    triple: String,
    cxx_flags: String,
}

impl Recipe {
    fn read() -> Result<Recipe, Failure> {
        let triple = workspace::host_triple()?;
        Ok(Recipe {
            version: workspace::locked_version(PACKAGE)?,
            features: enabled_features()?,
            cxx_flags: cxx_flags(&triple),
            triple,
        })
    }

    fn entry_name(&self) -> String {
        let parts = ["rocksdb", &self.version, &self.features, &self.triple, &self.cxx_flags];
        let parts = parts.iter().map(|part| part.replace([' ', '/', '='], ""));
        parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
    }
}

/// The flags that turn on RocksDB's hardware checksums. Every x86-64 processor since 2011 has them.
fn cxx_flags(triple: &str) -> String {
    let own = if triple.starts_with("x86_64") { "-msse4.2 -mpclmul" } else { "" };
    let users = std::env::var("CXXFLAGS").unwrap_or_default();
    format!("{users} {own}").trim().to_owned()
}

/// The features of the `rocksdb` crate as the workspace's manifest names them, joined by `+`.
fn enabled_features() -> Result<String, Failure> {
    let path = workspace::root().join("Cargo.toml");
    let manifest =
        fs::read_to_string(&path).map_err(|error| Failure::file("read", &path, &error))?;
    features_in_manifest(&manifest)
        .ok_or_else(|| Failure::new("Cargo.toml does not name the features of rocksdb"))
}

fn features_in_manifest(manifest: &str) -> Option<String> {
    let line = manifest.lines().find(|line| line.starts_with("rocksdb = "))?;
    let (list, _) = line.split_once("features = [")?.1.split_once(']')?;
    let mut names: Vec<_> = list.split(',').map(|name| name.trim().trim_matches('"')).collect();
    names.sort_unstable();
    Some(names.join("+"))
}

fn archive(entry: &Path) -> PathBuf {
    entry.join("lib").join(ARCHIVE)
}

fn compile(environment: &Environment, entry: &Path) -> Result<(), Failure> {
    let _lock = cache::lock(entry)?;
    if archive(entry).exists() {
        return Ok(());
    }
    let source_count = count_sources()?;
    eprintln!(
        "xtask: compiling RocksDB once for this user, about 15 minutes on two cores\n\
         xtask: the result is kept in {}",
        entry.display()
    );
    // The build directory keeps its name from run to run, so an interrupted build leaves nothing that
    // the next one doesn't clean up or reuse.
    let build = cache::beside(entry, "build");
    let started = Instant::now();
    let child = start_build(environment, &build)?;
    follow(child, &build, source_count, started)?;

    let built = find(&build, &|path| path.ends_with(ARCHIVE))
        .pop()
        .ok_or_else(|| Failure::new(format!("the build left no {ARCHIVE}")))?;
    let finished = cache::beside(entry, "partial");
    cache::remove(&finished)?;
    cache::create(&finished.join("lib"))?;
    let copy = archive(&finished);
    fs::copy(&built, &copy).map_err(|error| Failure::file("copy", &built, &error))?;
    cache::publish(&finished, entry)?;
    cache::remove(&build)?;
    eprintln!("xtask: compiled RocksDB in {} s", started.elapsed().as_secs());
    Ok(())
}

/// Only the C++ library is wanted, without debug information, which would make it ten times as big.
fn start_build(environment: &Environment, build: &Path) -> Result<Child, Failure> {
    let mut command = environment.cargo();
    command
        .args(["build", "--quiet", "--locked", "--release", "--package", PACKAGE])
        .arg("--target-dir")
        .arg(build)
        .env("CARGO_PROFILE_RELEASE_DEBUG", "0")
        .env("CXXFLAGS", cxx_flags(&workspace::host_triple()?))
        .env_remove("ROCKSDB_STATIC");
    command.spawn().map_err(|error| Failure::new(format!("cannot run cargo: {error}")))
}

/// Reports how many object files are there, until the build ends.
fn follow(
    mut child: Child,
    build: &Path,
    source_count: usize,
    started: Instant,
) -> Result<(), Failure> {
    const POLL: Duration = Duration::from_millis(500);
    let mut progress = Progress::new(source_count);
    loop {
        let status = child
            .try_wait()
            .map_err(|error| Failure::new(format!("cannot wait for cargo: {error}")))?;
        if let Some(status) = status {
            progress.end();
            return match status.success() {
                true => Ok(()),
                false => Err(Failure::new(format!("compiling RocksDB failed ({status})"))),
            };
        }
        let objects = find(build, &|path| is_rocksdb_object(path)).len();
        progress.report(objects, started.elapsed());
        std::thread::sleep(POLL);
    }
}

fn is_rocksdb_object(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "o")
        && path.to_string_lossy().contains(PACKAGE)
}

/// On a terminal one line that changes; in a log a line for each tenth.
struct Progress {
    total: usize,
    terminal: bool,
    last_reported: Option<usize>,
}

impl Progress {
    fn new(total: usize) -> Progress {
        let terminal = std::io::IsTerminal::is_terminal(&std::io::stderr());
        Progress { total, terminal, last_reported: None }
    }

    fn report(&mut self, done: usize, elapsed: Duration) {
        let step = if self.terminal { done } else { done * 10 / self.total.max(1) };
        if !self.terminal && self.last_reported == Some(step) {
            return;
        }
        self.last_reported = Some(step);
        let seconds = elapsed.as_secs();
        let line = format!(
            "xtask: RocksDB {done}/{} files, {}:{:02} min",
            self.total,
            seconds / 60,
            seconds % 60
        );
        match self.terminal {
            true => eprint!("\r{line}"),
            false => eprintln!("{line}"),
        }
    }

    fn end(&self) {
        if self.terminal {
            eprintln!();
        }
    }
}

/// How many files the library is made of, from the list that its build script uses.
fn count_sources() -> Result<usize, Failure> {
    // The answer also makes sure that the sources are downloaded, before any progress is reported.
    let metadata =
        process::output(workspace::cargo().args(["metadata", "--locked", "--format-version=1"]))?;
    let manifest = metadata
        .split("\"manifest_path\":\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .map(Path::new)
        .find(|path| path.parent().is_some_and(is_package_directory))
        .ok_or_else(|| Failure::new(format!("cargo metadata does not name {PACKAGE}")))?;
    let list = manifest.with_file_name("rocksdb_lib_sources.txt");
    let text = fs::read_to_string(&list).map_err(|error| Failure::file("read", &list, &error))?;
    Ok(text.lines().count())
}

fn is_package_directory(directory: &Path) -> bool {
    directory.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PACKAGE))
}

fn find(directory: &Path, wanted: &dyn Fn(&Path) -> bool) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut pending = vec![directory.to_path_buf()];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            let path = entry.path();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => pending.push(path),
                _ if wanted(&path) => found.push(path),
                _ => {}
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_read_from_the_manifest_in_a_stable_order() {
        let manifest = "[workspace.dependencies]\n\
            rocksdb = { version = \"0.25\", default-features = false, features = [\"zstd\", \"lz4\"] }\n";
        assert_eq!(features_in_manifest(manifest).as_deref(), Some("lz4+zstd"));
        assert_eq!(features_in_manifest("rocksdb = \"0.25\"\n"), None);
    }

    #[test]
    fn the_name_of_a_cache_entry_is_one_path_component() {
        let recipe = Recipe {
            version: "0.19.0+11.8.1".into(),
            features: "lz4+zstd".into(),
            triple: "x86_64-unknown-linux-gnu".into(),
            cxx_flags: "-msse4.2 -I/opt/x".into(),
        };
        let name = recipe.entry_name();
        assert_eq!(Path::new(&name).components().count(), 1);
        assert_eq!(name, "rocksdb-0.19.0+11.8.1-lz4+zstd-x86_64-unknown-linux-gnu--msse4.2-Ioptx");
    }
}
