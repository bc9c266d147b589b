//! The C++ compiler, and its flags for RocksDB.

use std::path::Path;
use std::process::Command;

use crate::process::{self, Failure};
use crate::serve::Profile;
use crate::workspace;

pub struct Compiler {
    program: String,
    flags: Vec<String>,
    profile: Profile,
}

impl Compiler {
    /// The compiler for this machine. `None` on a system whose flags are unknown here: RocksDB's
    /// own build script must then compile it.
    pub fn find(profile: Profile) -> Result<Option<Compiler>, Failure> {
        let triple = workspace::host_triple()?;
        let Some(system) = system_flags(&triple) else { return Ok(None) };
        let program = std::env::var("CXX").unwrap_or_else(|_| "c++".into());
        let users = std::env::var("CXXFLAGS").unwrap_or_default();
        let flags = ["-std=c++20", optimisation(profile)]
            .into_iter()
            .chain(COMMON)
            .chain(system.iter().copied())
            .chain(processor_flags(&triple).iter().copied())
            .chain(users.split_whitespace());
        let flags = flags.map(str::to_owned).collect();
        Ok(Some(Compiler { program, flags, profile }))
    }

    /// Which builds its library is for.
    pub fn purpose(&self) -> &'static str {
        match self.profile {
            Profile::Quick => "for quick builds",
            Profile::Release => "for tests and releases",
        }
    }

    /// What the compiled bytes depend on besides the sources: the compiler, its standard library,
    /// the C library and the flags.
    pub fn identity(&self) -> Result<String, Failure> {
        let mut command = Command::new(&self.program);
        command.args(["-std=c++20", "-x", "c++", "-dM", "-E", "-include", "cstddef", "/dev/null"]);
        let macros = process::output(&mut command).map_err(|failure| {
            Failure::new(format!(
                "a C++ compiler is needed, and `{}` does not work ({failure}).\n\
                 Install one (Debian: apt-get install g++; Fedora: dnf install gcc-c++;\n\
                 macOS: xcode-select --install), or name yours in CXX.",
                self.program
            ))
        })?;
        let telling = [
            "__VERSION__",
            "__GLIBCXX__",
            "_LIBCPP_VERSION",
            "__GLIBC__",
            "__GLIBC_MINOR__",
            "__x86_64__",
            "__aarch64__",
        ];
        let mut lines: Vec<&str> = macros
            .lines()
            .filter_map(|line| line.strip_prefix("#define "))
            .filter(|line| telling.iter().any(|name| line.split(' ').next() == Some(name)))
            .collect();
        lines.sort_unstable();
        Ok(format!("{}\n{}\n", lines.join("\n"), self.flags.join(" ")))
    }

    /// A command that compiles one source.
    pub fn compile(&self, source: &Path, object: &Path, includes: &[&Path]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.flags);
        for include in includes {
            command.arg("-I").arg(include);
        }
        command.arg("-c").arg(source).arg("-o").arg(object);
        command
    }
}

/// `-O2` is upstream's own default, where the crate's build script has cargo's `-O3`. `-O1` takes
/// two thirds of its time.
fn optimisation(profile: Profile) -> &'static str {
    match profile {
        Profile::Quick => "-O1",
        Profile::Release => "-O2",
    }
}

/// The other flags of the crate's build script, without warnings, which are upstream's to fix.
const COMMON: [&str; 11] = [
    "-g0",
    "-w",
    "-fPIC",
    "-ffunction-sections",
    "-fdata-sections",
    "-include",
    "cstdint",
    "-DNDEBUG",
    "-DLZ4",
    "-DHAVE_ALIGNED_NEW",
    "-DHAVE_UINT128_EXTENSION",
];

fn system_flags(triple: &str) -> Option<&'static [&'static str]> {
    const LINUX: [&str; 7] = [
        "-DOS_LINUX",
        "-DROCKSDB_PLATFORM_POSIX",
        "-DROCKSDB_LIB_IO_POSIX",
        "-DROCKSDB_SCHED_GETCPU_PRESENT",
        "-DROCKSDB_AUXV_GETAUXVAL_PRESENT",
        "-DROCKSDB_FALLOCATE_PRESENT",
        "-DROCKSDB_RANGESYNC_PRESENT",
    ];
    const MACOS: [&str; 3] = ["-DOS_MACOSX", "-DROCKSDB_PLATFORM_POSIX", "-DROCKSDB_LIB_IO_POSIX"];
    if triple.contains("linux-gnu") {
        Some(&LINUX)
    } else if triple.contains("apple-darwin") {
        Some(&MACOS)
    } else {
        None
    }
}

/// The instructions for RocksDB's checksums, the same that `.cargo/config.toml` allows rustc to
/// use.
fn processor_flags(triple: &str) -> &'static [&'static str] {
    if triple.starts_with("x86_64") {
        &["-msse4.2", "-mpclmul"]
    } else if triple.starts_with("aarch64-unknown-linux") {
        &["-march=armv8-a+crc+crypto"]
    } else {
        &[]
    }
}
