//! A compiler of Rust that waits for the library. Cargo runs this program in its place, and only the
//! crate that contains the library waits for it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::archive;
use crate::cache;
use crate::process::Failure;
use crate::serve;
use crate::workspace;

/// The name of rustc for the package that contains the library.
const CRATE: &str = "librocksdb_sys";
/// The library's entry in the cache. Its presence says that this program runs as a compiler.
const ENTRY: &str = "XTASK_AWAITED_LIBRARY";

/// Lets cargo call this program as its compiler.
pub fn configure(cargo: &mut Command, entry: &Path) -> Result<(), Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::new(format!("this program can't find itself: {error}")))?;
    // A wrapper that the user has set is the next one.
    let next = WRAPPERS.iter().find_map(std::env::var_os).map(PathBuf::from).unwrap_or_default();
    // Cargo would look for a relative one here, but runs compilers elsewhere.
    let next = match next.components().count() > 1 {
        true => workspace::root().join(next),
        false => next,
    };
    cargo.env("RUSTC_WRAPPER", program).env(ENTRY, entry).env(NEXT, next);
    Ok(())
}

/// Where cargo looks for a wrapper. One in its configuration file is not called for this build, which costs nothing but its cache.
const WRAPPERS: [&str; 2] = ["RUSTC_WRAPPER", "CARGO_BUILD_RUSTC_WRAPPER"];

/// The wrapper that cargo would have called.
const NEXT: &str = "XTASK_NEXT_WRAPPER";

/// If cargo has called this program as its compiler, becomes the compiler.
pub fn run_as_compiler() -> Option<Result<(), Failure>> {
    let entry = PathBuf::from(std::env::var_os(ENTRY)?);
    Some(compile(&entry, std::env::args_os().skip(1)))
}

fn compile(entry: &Path, arguments: impl Iterator<Item = OsString>) -> Result<(), Failure> {
    let next = std::env::var_os(NEXT).filter(|wrapper| !wrapper.is_empty());
    let mut words = next.into_iter().chain(arguments).collect::<Vec<_>>().into_iter();
    let Some(program) = words.next() else {
        return Err(Failure::new("cargo named no compiler"));
    };
    let words: Vec<OsString> = words.collect();
    if contains_library(&words) {
        // Whoever compiles the library holds the lock.
        let _lock = cache::lock_silently(entry)?;
        if !archive(entry).exists() {
            return Err(Failure::new("RocksDB could not be compiled"));
        }
    }
    serve::execute(Command::new(program).args(words))
}

fn contains_library(words: &[OsString]) -> bool {
    words.windows(2).any(|pair| pair[0] == "--crate-name" && pair[1] == CRATE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_crate_with_the_library_waits() {
        let waits = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            contains_library(&words)
        };
        assert!(waits("--crate-name librocksdb_sys --edition=2021 src/lib.rs"));
        assert!(!waits("--crate-name build_script_build --edition=2021 build.rs"));
        assert!(!waits("--crate-name rocksdb --extern librocksdb_sys=lib.rmeta"));
        assert!(!waits("-vV"));
    }
}
