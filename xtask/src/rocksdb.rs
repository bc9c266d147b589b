//! The compiled RocksDB library. It takes minutes to compile, so the per-user cache keeps it under
//! a name that covers everything its bytes depend on.
//!
//! The cache may hold two: the one of released binaries, and one that is optimised less and ready
//! sooner, for a first look at the server.

pub mod awaited;
mod compiler;
mod units;

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::environment::Environment;
use crate::metadata::Metadata;
use crate::process::{self, Failure};
use crate::progress::Progress;
use crate::serve::Profile;
use crate::{cache, workspace};
use compiler::Compiler;

const PACKAGE: &str = "librocksdb-sys";
const ARCHIVE: &str = "librocksdb.a";

/// The compiler's memory for one unit when the library has four.
const UNIT_MEMORY_BYTES: u64 = 2_400 << 20;

/// Finds the library for a profile, and says what has to be compiled before anything is linked with it.
pub fn find(environment: &mut Environment, profile: Profile) -> Result<Option<Library>, Failure> {
    if std::env::var_os("ROCKSDB_LIB_DIR").is_some() {
        environment.set_default("ROCKSDB_STATIC", "1");
        return Ok(None);
    }
    let Some(library) = Library::find(profile)? else {
        eprintln!("xtask: cargo compiles RocksDB file by file here, which takes long");
        return Ok(None);
    };
    environment.set("ROCKSDB_LIB_DIR", library.entry.join("lib"));
    environment.set("ROCKSDB_STATIC", "1");
    Ok(Some(library).filter(|library| !library.is_compiled()))
}

/// A library for this machine, compiled or not.
pub struct Library {
    compiler: Compiler,
    recipe: Recipe,
    entry: PathBuf,
}

impl Library {
    /// The one for released binaries serves all. `None` where the flags are unknown.
    fn find(profile: Profile) -> Result<Option<Library>, Failure> {
        let full = Library::of(Profile::Release)?;
        match profile {
            Profile::Quick if full.as_ref().is_some_and(|full| !full.is_compiled()) => {
                Library::of(Profile::Quick)
            }
            _ => Ok(full),
        }
    }

    fn of(profile: Profile) -> Result<Option<Library>, Failure> {
        let Some(compiler) = Compiler::find(profile)? else { return Ok(None) };
        let recipe = Recipe::read(&compiler)?;
        let entry = cache::directory()?.join(recipe.entry_name());
        Ok(Some(Library { compiler, recipe, entry }))
    }

    fn is_compiled(&self) -> bool {
        archive(&self.entry).exists()
    }

    pub fn compile(&self) -> Result<(), Failure> {
        self.compile_after(|| {}, Progress::new)
    }

    /// Compiles it while cargo builds what will be linked with it. Neither keeps all processors busy
    /// by itself: RocksDB ends with one large unit, and the crates form a chain.
    pub fn compile_beside(&self, cargo: &mut Command) -> Result<(), Failure> {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        if jobs_in_memory() <= processors || std::env::var_os("CARGO_BUILD_JOBS").is_some() {
            self.compile()?;
            return process::run(cargo);
        }
        // One more job than processors, because one waits for the library. The library has precedence: what follows it
        // takes longer than what follows any other crate.
        cargo.arg("--jobs").arg((processors + 1).to_string());
        awaited::configure(cargo, &self.entry)?;
        let cargo = &mut process::at_lower_priority(cargo);
        let (is_locked, locked) = mpsc::channel();
        std::thread::scope(|scope| {
            let library = scope.spawn(move || {
                let begin = || {
                    // This thread's parent waits for it.
                    let _ = is_locked.send(());
                };
                let compiled = self.compile_after(begin, Progress::in_lines);
                // Cargo goes on for a while, and its own complaint says less.
                compiled.inspect_err(|failure| eprintln!("xtask: {failure}"))
            });
            // Fails if the lock could not be taken, and then the library says why.
            let built = locked.recv().ok().map(|()| process::run(cargo));
            if matches!(built, Some(Err(_))) && !library.is_finished() {
                eprintln!(
                    "xtask: cargo failed; RocksDB is still being compiled, for the next run. Ctrl-C stops it"
                );
            }
            let compiled = library.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            // Another run may have compiled it after this one had failed.
            let compiled = if self.is_compiled() { Ok(()) } else { compiled };
            compiled.and(built.unwrap_or(Ok(())))
        })
    }

    /// Calls `begin` once nobody else can be compiling it.
    fn compile_after(&self, begin: impl FnOnce(), progress: NewProgress) -> Result<(), Failure> {
        let _lock = cache::lock(&self.entry)?;
        begin();
        match self.is_compiled() {
            true => Ok(()),
            false => compile(&self.compiler, &self.recipe, &self.entry, progress),
        }
    }
}

/// Everything that the library's bytes depend on.
struct Recipe {
    version: String,
    /// The compiler, its libraries, its flags, and this program's choice of sources and units.
    rest: String,
}

impl Recipe {
    fn read(compiler: &Compiler) -> Result<Recipe, Failure> {
        let sources = include_str!("rocksdb/units.rs");
        let rest = format!("{}\n{}{sources}", workspace::host_triple()?, compiler.identity()?);
        Ok(Recipe { version: workspace::locked_version(PACKAGE)?, rest })
    }

    fn entry_name(&self) -> String {
        let mut hasher = DefaultHasher::new();
        self.rest.hash(&mut hasher);
        format!("rocksdb-{}-{:016x}", self.version, hasher.finish())
    }
}

fn archive(entry: &Path) -> PathBuf {
    entry.join("lib").join(ARCHIVE)
}

type NewProgress = fn(&'static str, usize) -> Progress;

fn compile(
    compiler: &Compiler,
    recipe: &Recipe,
    entry: &Path,
    progress: NewProgress,
) -> Result<(), Failure> {
    eprintln!(
        "xtask: compiling RocksDB {} once for this user, 3 to 6 minutes on two cores\n\
         xtask: the result is kept in {}",
        compiler.purpose(),
        entry.display()
    );
    let metadata = Metadata::read()?;
    let package = metadata.package(PACKAGE)?.directory();
    let lz4 = metadata.package("lz4-sys")?.directory().join("liblz4").join("lib");
    let rocksdb = package.join("rocksdb");
    let includes = [package, &rocksdb, &rocksdb.join("include"), &lz4];

    // The directory has the same name in every run, so the next run removes what an interrupted one
    // left.
    let partial = cache::beside(entry, "partial");
    cache::remove(&partial)?;
    cache::create(&partial.join("lib"))?;
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let units = units::divide(units::sources(package)?, (processors * 2).clamp(4, 16));
    let mut jobs = Vec::new();
    for source in units::write(&units, package, &partial)? {
        let name = source.file_name().unwrap_or_default();
        let object = partial.join(name).with_extension("o");
        jobs.push((compiler.compile(&source, &object, &includes), object));
    }
    let started = Instant::now();
    let progress = progress("RocksDB", jobs.len());
    let objects = run(jobs, processors.min(jobs_in_memory()), progress)?;
    let mut archiver = Command::new(std::env::var_os("AR").unwrap_or_else(|| "ar".into()));
    process::run(archiver.arg("crs").arg(archive(&partial)).args(&objects))?;

    remove_files(&partial)?;
    let note = partial.join("recipe.txt");
    fs::write(&note, &recipe.rest).map_err(|error| Failure::file("write", &note, &error))?;
    cache::publish(&partial, entry)?;
    eprintln!("xtask: compiled RocksDB in {} s", started.elapsed().as_secs());
    Ok(())
}

/// How many units can compile at a time without running out of memory.
fn jobs_in_memory() -> usize {
    usize::try_from(memory_available() / UNIT_MEMORY_BYTES).unwrap_or(usize::MAX).max(1)
}

/// In bytes. Where the system does not tell, memory is no reason to hold back.
fn memory_available() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let available = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kibibytes = available.and_then(|rest| rest.trim().trim_end_matches(" kB").parse().ok());
    kibibytes.map_or(u64::MAX, |kibibytes: u64| kibibytes << 10)
}

/// Runs the commands, a few at a time, and returns their objects. The first failure stops the
/// others.
fn run(
    jobs: Vec<(Command, PathBuf)>,
    at_a_time: usize,
    mut progress: Progress,
) -> Result<Vec<PathBuf>, Failure> {
    const POLL: Duration = Duration::from_millis(100);
    let mut waiting = jobs.into_iter();
    let mut running: Vec<(Child, PathBuf)> = Vec::new();
    let mut finished = Vec::new();
    loop {
        while running.len() < at_a_time {
            let Some((mut command, object)) = waiting.next() else { break };
            let child = command.spawn().map_err(|error| {
                stop(&mut running);
                Failure::new(format!("cannot run the C++ compiler: {error}"))
            })?;
            running.push((child, object));
        }
        if running.is_empty() {
            progress.end();
            return Ok(finished);
        }
        progress.report(finished.len());
        std::thread::sleep(POLL);
        let mut index = 0;
        while index < running.len() {
            match running[index].0.try_wait() {
                Ok(None) => index += 1,
                Ok(Some(status)) if status.success() => {
                    finished.push(running.swap_remove(index).1);
                }
                outcome => {
                    stop(&mut running);
                    progress.end();
                    let reason = match outcome {
                        Ok(Some(status)) => status.to_string(),
                        Err(error) => error.to_string(),
                        Ok(None) => String::new(),
                    };
                    return Err(Failure::new(format!("compiling RocksDB failed ({reason})")));
                }
            }
        }
    }
}

/// Kills what still runs. A compiler may have ended already.
fn stop(running: &mut Vec<(Child, PathBuf)>) {
    for (mut child, _) in running.drain(..) {
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// Removes the files of a directory, but not its subdirectories.
fn remove_files(directory: &Path) -> Result<(), Failure> {
    let entries =
        fs::read_dir(directory).map_err(|error| Failure::file("list", directory, &error))?;
    for path in entries.flatten().map(|entry| entry.path()).filter(|path| path.is_file()) {
        fs::remove_file(&path).map_err(|error| Failure::file("remove", &path, &error))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_compiler_or_flag_makes_another_entry() {
        let name =
            |rest: &str| Recipe { version: "0.19.0+11.8.1".into(), rest: rest.into() }.entry_name();
        assert_eq!(name("gcc 12 -O2"), name("gcc 12 -O2"));
        assert_ne!(name("gcc 12 -O2"), name("gcc 13 -O2"));
        assert!(name("a/b c").starts_with("rocksdb-0.19.0+11.8.1-"));
        assert_eq!(Path::new(&name("a/b c")).components().count(), 1);
    }

    #[test]
    fn a_failing_compiler_stops_the_others() {
        let shell = |script: &str, object: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            (command, PathBuf::from(object))
        };
        let jobs =
            vec![shell("true", "a.o"), shell("exit 3", "b.o"), shell("exec sleep 1000", "c.o")];
        let failure = run(jobs, 3, Progress::new("test", 3)).unwrap_err().to_string();
        assert!(failure.contains("exit status: 3"), "{failure}");
        let jobs = vec![shell("true", "a.o"), shell("true", "b.o"), shell("true", "c.o")];
        let mut objects = run(jobs, 2, Progress::new("test", 3)).unwrap();
        objects.sort();
        assert_eq!(objects, ["a.o", "b.o", "c.o"].map(PathBuf::from));
    }
}
