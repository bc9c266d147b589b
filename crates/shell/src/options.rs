//! What the command line decides.

use std::path::PathBuf;

use zenobe_load::Target;

use crate::output::Format;

#[derive(Debug)]
pub struct Options {
    pub target: Target,
    pub input: Input,
    pub format: Format,
    /// Each row as a list of its attributes instead of a line of a table.
    pub expanded: bool,
    pub timing: bool,
    pub consistent_read: bool,
    /// How many rows a statement prints where nobody can be asked for more; `None` is all.
    pub rows_max: Option<usize>,
    /// Without warnings, and without the line after each statement.
    pub quiet: bool,
    /// Goes on with the next statement after one has failed.
    pub keep_going: bool,
    /// What the shell calls itself when it greets.
    pub program: String,
}

#[derive(Debug)]
pub enum Input {
    Commands(Vec<String>),
    File(PathBuf),
    /// A person, if it is a terminal.
    Standard,
}
