//! What the counts depend on besides the code, and the simulator itself.

use std::process::Command;

use crate::process::{self, Failure};
use crate::workspace;

/// Names and versions, in the baseline's order.
pub type Toolchain = Vec<(String, String)>;

pub fn current() -> Result<Toolchain, Failure> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let rustc = process::output(Command::new(rustc).arg("--version"))?;
    let valgrind = process::output(Command::new("valgrind").arg("--version"))?;
    // Functions of the C library are counted as well. Systems with another library lack this
    // program.
    let library = process::output(Command::new("getconf").arg("GNU_LIBC_VERSION"));
    let entry = |name: &str, version: &str| (name.to_owned(), version.trim().to_owned());
    Ok(vec![
        entry("rustc", rustc.trim().trim_start_matches("rustc ")),
        entry("host", &workspace::host_triple()?),
        entry("valgrind", valgrind.trim().trim_start_matches("valgrind-")),
        entry("libc", library.as_deref().unwrap_or("unknown")),
    ])
}

pub enum Availability {
    Present,
    Missing { reason: String },
}

pub fn find_valgrind() -> Availability {
    if workspace::has_program("valgrind") {
        return Availability::Present;
    }
    let reason = "valgrind is needed to count instructions.\n\
                  Install it (Debian: apt-get install valgrind; Fedora: dnf install valgrind).";
    Availability::Missing { reason: reason.to_owned() }
}
