//! The settings from the command line.

use std::path::PathBuf;

use zenobe_load::Target;

use crate::output::Format;

#[derive(Debug)]
pub struct Options {
    pub target: Target,
    pub input: Input,
    pub format: Format,
    /// Print each row as a list of its attributes instead of a table row.
    pub expanded: bool,
    pub timing: bool,
    pub consistent_read: bool,
    /// How many rows a statement prints when nobody can be asked for more; `None` prints all.
    pub rows_max: Option<usize>,
    /// Print no warnings, and no summary after each statement.
    pub quiet: bool,
    /// Continue with the next statement after one has failed.
    pub keep_going: bool,
    /// The program's name in the greeting.
    pub program: String,
}

#[derive(Debug)]
pub enum Input {
    Commands(Vec<String>),
    File(PathBuf),
    /// Interactive if it is a terminal.
    Standard,
}
