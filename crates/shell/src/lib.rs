//! A terminal shell for PartiQL on any DynamoDB endpoint, AWS included.
//!
//! [`run`] reads text from an [`Input`], splits it into statements and backslash commands
//! ([`script`]), sends the statements with ExecuteStatement and prints the results. All calls to
//! the endpoint go through [`session`]. Pure functions in [`output`] and [`describe`] render
//! everything that is printed.
//!
//! **Invariant:** nothing from the endpoint reaches the terminal with control characters in it.

mod command;
mod complete;
mod describe;
mod editor;
mod error;
mod options;
mod output;
mod paging;
mod profile;
mod scan;
mod script;
mod session;
mod shell;
mod sink;
mod value;

use std::io::{BufRead, IsTerminal};

pub use error::ShellError;
pub use options::{Input, Options};
pub use output::Format;
pub use profile::{Profile, ProfileError};

use crate::script::ScriptSource;
use crate::session::Session;
use crate::shell::Shell;

/// Runs until the input ends, or until a statement fails without `--keep-going`.
pub fn run(options: Options) -> Result<(), ShellError> {
    let session = Session::open(options.target.clone())?;
    let mut shell = Shell::new(session, &options);
    match options.input {
        Input::Commands(commands) => {
            commands
                .iter()
                .try_for_each(|text| shell.run_text(text, &ScriptSource::CommandLine))?;
        }
        Input::File(path) => shell.run_file(&path)?,
        Input::Standard if std::io::stdin().is_terminal() && std::io::stdout().is_terminal() => {
            editor::interact(&mut shell)?;
        }
        Input::Standard => run_lines(&mut shell, std::io::stdin().lock())?,
    }
    shell.finish()
}

/// Runs each statement as soon as it is complete, so that another program can feed statements one
/// by one.
fn run_lines(shell: &mut Shell, lines: impl BufRead) -> Result<(), ShellError> {
    let mut reader = script::LineReader::default();
    for line in lines.lines() {
        let line = line.map_err(ShellError::Input)?;
        for piece in reader.push(&line)? {
            shell.run_piece(&piece, &ScriptSource::Standard)?;
        }
        if shell.is_done() {
            return Ok(());
        }
    }
    match reader.finish()? {
        Some(piece) => shell.run_piece(&piece, &ScriptSource::Standard),
        None => Ok(()),
    }
}
