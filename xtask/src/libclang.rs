//! libclang, which bindgen needs to read RocksDB's headers.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cache;
use crate::environment::Environment;
use crate::process::{self, Failure};
use crate::wheel::{Wheel, children};

/// The directory of the cache that holds the unpacked wheel. The version must match the
/// requirements.
const ENTRY: &str = "libclang-18.1.1";

const WHEEL: Wheel =
    Wheel { name: "libclang", size_mb: 24, requirements: "libclang-requirements.txt" };

/// Finds libclang, or downloads it into the cache.
pub fn provide(environment: &mut Environment) -> Result<(), Failure> {
    // Only clang itself ships the compiler's own headers (stddef.h and so on); the wheel and
    // Debian's bare library don't. The C compiler's headers serve just as well.
    if let Some(include) = compiler_include_directory() {
        environment.set_default("BINDGEN_EXTRA_CLANG_ARGS", format!("-I{}", include.display()));
    }
    if std::env::var_os("LIBCLANG_PATH").is_some() || is_installed() {
        return Ok(());
    }
    let entry = cache::directory()?.join(ENTRY);
    if library_directory(&entry).is_none() {
        let is_whole = |entry: &Path| library_directory(entry).is_some();
        WHEEL.fetch(&entry, is_whole, |_| Ok(())).map_err(|failure| explain(&failure))?;
    }
    let directory = library_directory(&entry)
        .ok_or_else(|| Failure::new(format!("no libclang in {}", entry.display())))?;
    environment.set("LIBCLANG_PATH", directory);
    Ok(())
}

fn compiler_include_directory() -> Option<PathBuf> {
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let path = process::output(Command::new(compiler).arg("-print-file-name=include")).ok()?;
    // A compiler without such a directory echoes the bare name.
    Some(PathBuf::from(path.trim())).filter(|path| path.is_absolute())
}

/// Whether bindgen would find libclang by itself. It looks in the same places.
fn is_installed() -> bool {
    let from_llvm_config = process::output(Command::new("llvm-config").arg("--libdir"));
    let mut directories: Vec<PathBuf> =
        from_llvm_config.map(|text| PathBuf::from(text.trim())).into_iter().collect();
    for parent in ["/usr/lib", "/usr/local", "/usr/lib64", "/usr/local/lib"] {
        directories.push(parent.into());
        for child in children(Path::new(parent)) {
            directories.push(child.join("lib"));
            directories.push(child);
        }
    }
    directories.iter().any(|directory| holds_libclang(directory))
}

/// The directory of an unpacked wheel that holds the shared library. Wheels keep it either at the
/// top or below a `.data` directory, which pip would merge.
fn library_directory(entry: &Path) -> Option<PathBuf> {
    let roots = children(entry).into_iter().map(|child| child.join("platlib"));
    std::iter::once(entry.to_path_buf())
        .chain(roots)
        .map(|root| root.join("clang").join("native"))
        .find(|directory| holds_libclang(directory))
}

fn holds_libclang(directory: &Path) -> bool {
    children(directory).iter().any(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // libclang-cpp is clang's C++ interface, which bindgen doesn't use.
        let is_library = name.starts_with("libclang.") || name.starts_with("libclang-");
        let is_shared = name.contains(".so") || name.ends_with(".dylib");
        is_library && is_shared && !name.contains("-cpp.")
    })
}

fn explain(failure: &Failure) -> Failure {
    Failure::new(format!(
        "libclang is needed to build the bindings to RocksDB and could not be downloaded ({failure}).\n\
         Install it (Debian: apt-get install libclang-dev; Fedora: dnf install clang-devel;\n\
         macOS: xcode-select --install), set LIBCLANG_PATH to the directory that holds it, or install\n\
         pip, with which it can be downloaded (Debian: apt-get install python3-venv)."
    ))
}
