//! The data directory: its lock, its format version, and checkpoints of it.
//!
//! See `docs/store-format/directory.md`.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use zenobe_store::{Error, Result};

use crate::rocks_database::{RocksDatabase, io_error, rocksdb_error};
use crate::write_ahead_log::horizon::Nonce;

/// The version of everything in the directory: its layout, what this crate itself stores, and the order of the keys that
/// it is given. A change to any of them increments it, and `docs/store-format/directory.md` says what changed.
pub const FORMAT_VERSION: u32 = 3;

const FORMAT_FILE: &str = "FORMAT";
const FORMAT_FILE_NEW: &str = "FORMAT.new";
const FORMAT_NAME: &str = "zenobe-store";
const NONCE_NAME: &str = "log-nonce";
const LOCK_FILE: &str = "LOCK";
const PROBE_FILE: &str = "PROBE";
const ROCKSDB_DIRECTORY: &str = "rocksdb";
/// Where copies of the files are made before they go elsewhere.
const CHECKPOINTS_DIRECTORY: &str = "CHECKPOINTS";
/// A seed of its own, so that the identity differs from every other hash of the nonce.
const IDENTITY_SEED: u64 = 0x6964_656E_7469_7479;
/// A child process has copies of all open files until it executes its program, and with them the lock of a directory
/// that its parent has closed meanwhile. So a process waits this long for a lock that is its own, as far as it can tell:
/// in a container most servers are process 1.
const INHERITED_MAX: Duration = Duration::from_secs(2);
const INHERITED_POLL: Duration = Duration::from_millis(5);
/// Its presence says that the directory is being restored, and is not whole yet.
pub const RESTORING_FILE: &str = "RESTORING";

/// A data directory, locked for this process until the value is dropped.
pub(crate) struct Directory {
    path: PathBuf,
    nonce: Nonce,
    /// The system unlocks it when the file is closed, even if the process dies.
    _lock: File,
}

impl Directory {
    pub fn open(path: &Path) -> Result<Directory> {
        match path.join(RESTORING_FILE).exists() {
            false => Directory::open_unfinished(path),
            true => Err(open_error(
                "it holds an unfinished restore. Run the same `zenobe restore` again to finish it, or remove the directory",
            )),
        }
    }

    /// Like [`Directory::open`], also while it is being restored.
    pub fn open_unfinished(path: &Path) -> Result<Directory> {
        let failed = |error: io::Error| open_error(error);
        // The process may change its working directory later.
        let path = &std::path::absolute(path).map_err(failed)?;
        create_directories(path).map_err(failed)?;
        // Before the lock file is created: nothing is added to a directory that is not ours.
        if read_format(path)?.is_none() {
            check_nothing_foreign(path)?;
        }
        let begun = Instant::now();
        let lock = lock(path, || {
            thread::sleep(INHERITED_POLL);
            begun.elapsed() <= INHERITED_MAX
        })?;
        // Read again: another process may have created everything before this one got the lock.
        let nonce = match read_format(path)? {
            Some(nonce) => nonce,
            None => {
                check_nothing_foreign(path)?;
                let nonce = random_nonce().map_err(failed)?;
                write_format(path, nonce).map_err(failed)?;
                nonce
            }
        };
        remove_checkpoints(path);
        Ok(Directory { path: path.clone(), nonce, _lock: lock })
    }

    /// The random number that marks this store's records in its log.
    pub fn nonce(&self) -> Nonce {
        self.nonce
    }

    /// A number that the store shares with its copies. It is made of the nonce.
    pub fn identity(&self) -> u64 {
        let Nonce(nonce) = self.nonce;
        xxhash_rust::xxh3::xxh3_64_with_seed(&nonce.to_be_bytes(), IDENTITY_SEED)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn rocksdb_path(&self) -> PathBuf {
        self.path.join(ROCKSDB_DIRECTORY)
    }

    /// Where to make a copy of the files. It is on the same file system, so that they can be linked, and is removed when
    /// the directory is opened next.
    pub fn checkpoint_path(&self, name: &str) -> PathBuf {
        checkpoint_path(&self.path, name)
    }

    /// Makes the entries of the database's directory and of its parent durable. RocksDB syncs only what is inside.
    pub fn sync(&self) -> Result<()> {
        let failed = |error| io_error(self.path.display(), &error);
        sync_directory(&self.path).map_err(failed)?;
        match self.path.parent().map_or(Ok(()), sync_directory) {
            // A process that may not read the parent directory has not created this one.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
            synced => synced.map_err(failed),
        }
    }

    /// Whether there is anything of a database. RocksDB, told to create a missing one, would take a
    /// directory that lost its `CURRENT` file for a new one and delete the rest.
    pub fn holds_database(&self) -> Result<bool> {
        let failed = |error| open_error(format!("it cannot be listed: {error}"));
        let entries = match fs::read_dir(self.rocksdb_path()) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(failed(error)),
        };
        for entry in entries {
            let name = entry.map_err(failed)?.file_name();
            let name = name.to_string_lossy();
            if name == "CURRENT" || name.ends_with(".sst") || name.ends_with(".log") {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Where to make a copy of the files of a data directory, or of a copy of it. What is there is removed when the
/// directory is opened next.
pub fn checkpoint_path(directory: &Path, name: &str) -> PathBuf {
    directory.join(CHECKPOINTS_DIRECTORY).join(name)
}

/// Copies that a process left behind when it died. They keep files that compaction has replaced.
fn remove_checkpoints(path: &Path) {
    match fs::remove_dir_all(path.join(CHECKPOINTS_DIRECTORY)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!("cannot remove {CHECKPOINTS_DIRECTORY} in {}: {error}", path.display());
        }
        _ => {}
    }
}

/// Makes a restored directory one that can be served.
///
/// # Errors
/// If the disk fails.
pub fn remove_restoring_mark(path: &Path) -> io::Result<()> {
    fs::remove_file(path.join(RESTORING_FILE))?;
    sync_directory(path)
}

/// The caller adds the path, which it knows.
fn open_error(problem: impl std::fmt::Display) -> Error {
    Error::Open { detail: problem.to_string() }
}

fn random_nonce() -> io::Result<Nonce> {
    getrandom::u64().map(Nonce).map_err(|error| io::Error::other(error.to_string()))
}

/// The store's nonce, or `None` if the directory has no format file.
fn read_format(path: &Path) -> Result<Option<Nonce>> {
    let text = match fs::read(path.join(FORMAT_FILE)) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(open_error(format!("cannot read {FORMAT_FILE}: {error}"))),
    };
    let mut lines = text.lines();
    let mut value_of = |name| lines.next()?.strip_prefix(name)?.strip_prefix(' ');
    let version = value_of(FORMAT_NAME).and_then(|version| version.parse().ok());
    let nonce = value_of(NONCE_NAME).and_then(|nonce| u64::from_str_radix(nonce, 16).ok());
    match version {
        Some(FORMAT_VERSION) => match nonce {
            Some(nonce) => Ok(Some(Nonce(nonce))),
            None => Err(open_error(format!(
                "the second line of its {FORMAT_FILE} file does not say \"{NONCE_NAME} <number>\""
            ))),
        },
        Some(other) => Err(open_error(format!(
            "its data has format version {other}; this program reads version {FORMAT_VERSION}. \
                 Use the version of the program that wrote it, or a newer one"
        ))),
        None => Err(open_error(format!(
            "its {FORMAT_FILE} file does not say \"{FORMAT_NAME} <version>\""
        ))),
    }
}

/// Without a format file, only an empty directory (or one whose creation was interrupted) may be used.
fn check_nothing_foreign(path: &Path) -> Result<()> {
    let failed = |error| open_error(format!("it cannot be listed: {error}"));
    for entry in fs::read_dir(path).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let name = name.to_string_lossy();
        match &*name {
            LOCK_FILE | FORMAT_FILE_NEW | "lost+found" => {}
            ROCKSDB_DIRECTORY | "CURRENT" | "IDENTITY" => {
                return Err(open_error(format!(
                    "it holds a database ({name}) but no {FORMAT_FILE} file, so its format is \
                         unknown. If the file was lost, restore it from a backup"
                )));
            }
            _ => {
                return Err(open_error(format!(
                    "it is not a data directory: it has no {FORMAT_FILE} file but holds other \
                         files (such as {name}). Choose an empty or a new directory"
                )));
            }
        }
    }
    Ok(())
}

/// While the lock is still inherited by a child process, tries again for as long as `wait` allows it.
fn lock(path: &Path, mut wait: impl FnMut() -> bool) -> Result<File> {
    let failed = |error| open_error(format!("it cannot be locked: {error}"));
    let mut options = File::options();
    let mut file = options
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .open(path.join(LOCK_FILE))
        .map_err(failed)?;
    loop {
        match file.try_lock() {
            Ok(()) => {
                // Only for the error message of a second process, so it need not be durable, or succeed.
                let _ = file.set_len(0).and_then(|()| write_id(&mut file));
                return Ok(file);
            }
            Err(TryLockError::WouldBlock) => {
                let holder = holder(&mut file);
                let is_own = holder == Some(std::process::id());
                if !is_own || !wait() {
                    return Err(open_error(in_use(holder)));
                }
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
    }
}

fn write_id(lock: &mut File) -> io::Result<()> {
    lock.rewind()?;
    writeln!(lock, "{}", std::process::id())
}

/// The process that has the directory, as far as the lock file tells.
fn holder(lock: &mut File) -> Option<u32> {
    let mut text = String::new();
    lock.rewind().ok()?;
    lock.read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

fn in_use(holder: Option<u32>) -> String {
    match holder {
        None => "another process has it open".to_owned(),
        // In a container most servers are process 1.
        Some(id) if id == std::process::id() => {
            "this process has it open already, or a process in another container does".to_owned()
        }
        Some(id) => match fs::read_to_string(format!("/proc/{id}/comm")) {
            Ok(name) => format!("process {id} ({}) has it open", name.trim()),
            // There is no such file on other systems than Linux, and none for a process in another container.
            Err(_) => format!("another process has it open (its id is or was {id})"),
        },
    }
}

/// Writes the format file atomically: after a crash it is complete or absent.
fn write_format(path: &Path, nonce: Nonce) -> io::Result<()> {
    let new = path.join(FORMAT_FILE_NEW);
    let mut file = File::create(&new)?;
    let Nonce(nonce) = nonce;
    let text = format!("{FORMAT_NAME} {FORMAT_VERSION}\n{NONCE_NAME} {nonce:016x}\n");
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&new, path.join(FORMAT_FILE))?;
    sync_directory(path)
}

/// Creates a directory and those above it that are missing, each of them durably: what is synced in a
/// directory whose own entry is lost is lost with it.
fn create_directories(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let Some(parent) = path.parent() else { return fs::create_dir(path) };
    create_directories(parent)?;
    match create_private_directory(path) {
        // Another process was faster, and may not have synced it yet.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let problem = format!("{} is not a directory", path.display());
            return Err(io::Error::new(io::ErrorKind::NotADirectory, problem));
        }
        created => created?,
    }
    sync_directory(parent)
}

/// Only the owner may read what is stored.
fn create_private_directory(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

fn sync_directory(path: &Path) -> io::Result<()> {
    // Only Unix lets a directory be opened and synced; elsewhere a rename is durable by itself.
    match cfg!(unix) {
        true => File::open(path)?.sync_all(),
        false => Ok(()),
    }
}

/// Copies the database into a new directory that can be opened like any other.
pub(crate) fn write_checkpoint(database: &RocksDatabase, target: &Path) -> Result<()> {
    let failed = |error: io::Error| io_error(format!("checkpoint {}", target.display()), &error);
    let target = &std::path::absolute(target).map_err(failed)?;
    if let Some(parent) = target.parent() {
        create_directories(parent).map_err(failed)?;
    }
    // Fails if it exists, even if another process is just creating it.
    fs::create_dir(target).map_err(failed)?;
    let copied = rocksdb::checkpoint::Checkpoint::new(database.rocks())
        .and_then(|checkpoint| checkpoint.create_checkpoint(target.join(ROCKSDB_DIRECTORY)))
        .map_err(|error| rocksdb_error(&error))
        // The format file comes last: without it, an interrupted checkpoint is refused. The copied log has the nonce of
        // the store that wrote it.
        .and_then(|()| write_format(target, database.directory().nonce()).map_err(failed))
        .and_then(|()| target.parent().map_or(Ok(()), sync_directory).map_err(failed));
    if copied.is_err()
        && let Err(error) = fs::remove_dir_all(target)
    {
        tracing::warn!("cannot remove the failed checkpoint {}: {error}", target.display());
    }
    copied
}

/// Writes and syncs a file of `size_bytes`, and removes it. Fails while the disk lacks the space.
pub(crate) fn probe_room(path: &Path, size_bytes: usize) -> io::Result<()> {
    let probe = path.join(PROBE_FILE);
    let written = File::create(&probe).and_then(|mut file| {
        let block = vec![0; 64 << 10];
        for _ in 0..size_bytes.div_ceil(block.len()) {
            file.write_all(&block)?;
        }
        file.sync_all()
    });
    let removed = fs::remove_file(&probe);
    written.and(removed)
}

pub(crate) fn size_bytes(path: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(path) else { return 0 };
    // A file may go away while the directory is being listed; it takes no space then.
    let sizes = entries.flatten().filter_map(|entry| entry.metadata().ok());
    sizes.filter(fs::Metadata::is_file).map(|metadata| metadata.len()).sum()
}

#[cfg(test)]
mod tests {
    use super::{Directory, FORMAT_FILE, lock};
    use std::fs;
    use std::path::Path;
    use zenobe_store::Error;

    fn problem(path: &Path) -> String {
        match Directory::open(path) {
            Err(Error::Open { detail }) => detail,
            Err(error) => panic!("unexpected {error}"),
            Ok(_) => panic!("opened {}", path.display()),
        }
    }

    /// As by a child process that has not yet executed its program.
    #[test]
    fn a_lock_that_is_still_inherited_is_waited_for() {
        let directory = &tempfile::tempdir().unwrap();
        let opened = Directory::open(directory.path()).unwrap();
        let mut inherited = Some(opened._lock.try_clone().unwrap());
        drop(opened);
        let error = lock(directory.path(), || false).unwrap_err();
        assert!(error.to_string().contains("has it open"), "{error}");
        let mut waits = 0;
        let locked = lock(directory.path(), || {
            waits += 1;
            if waits == 3 {
                inherited = None;
            }
            true
        });
        assert!(locked.is_ok(), "{locked:?}");
        assert_eq!(waits, 3);
    }

    #[test]
    fn refuses_what_it_does_not_know() {
        let cases = [
            (FORMAT_FILE, "zenobe-store 2\n", "format version 2"),
            (FORMAT_FILE, "zenobe-store 3\n", "the second line"),
            (FORMAT_FILE, "zenobe-store 3\nlog-nonce x\n", "the second line"),
            (FORMAT_FILE, "zenobe-store\n", "does not say"),
            (FORMAT_FILE, "", "does not say"),
            ("CURRENT", "MANIFEST-000004\n", "no FORMAT file, so its format is unknown"),
            ("holiday.jpg", "", "such as holiday.jpg"),
        ];
        for (name, content, expected) in cases {
            let directory = tempfile::tempdir().unwrap();
            fs::write(directory.path().join(name), content).unwrap();
            let problem = problem(directory.path());
            assert!(problem.contains(expected), "{name} {content:?}: {problem}");
            let left: Vec<_> = fs::read_dir(directory.path()).unwrap().collect();
            assert_eq!(left.len(), 1, "nothing was added to a directory that is not ours");
        }
    }

    #[test]
    fn creates_and_locks() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("a/b");
        let directory = Directory::open(&path).unwrap();
        assert!(!directory.holds_database().unwrap());
        let format = fs::read_to_string(path.join(FORMAT_FILE)).unwrap();
        let nonce = directory.nonce();
        assert_eq!(format, format!("zenobe-store 3\nlog-nonce {:016x}\n", nonce.0));
        assert_eq!(
            problem(&path),
            "this process has it open already, or a process in another container does"
        );
        drop(directory);
        let directory = Directory::open(&path).unwrap();
        assert!(!directory.holds_database().unwrap());
        assert_eq!(directory.nonce(), nonce);
        assert_ne!(Directory::open(&parent.path().join("other")).unwrap().nonce(), nonce);
    }

    #[test]
    fn a_database_that_lost_its_current_file_is_not_new() {
        let directory = tempfile::tempdir().unwrap();
        drop(Directory::open(directory.path()).unwrap());
        fs::create_dir(directory.path().join("rocksdb")).unwrap();
        assert!(!Directory::open(directory.path()).unwrap().holds_database().unwrap());
        fs::write(directory.path().join("rocksdb/000012.sst"), "").unwrap();
        assert!(Directory::open(directory.path()).unwrap().holds_database().unwrap());
    }
}
