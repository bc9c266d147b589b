//! Everything that can go wrong, in words for the person at the terminal.

use std::io;
use std::path::PathBuf;

use zenobe_load::LoadError;

#[derive(Debug, thiserror::Error)]
pub enum ShellError {
    #[error("{0}")]
    Endpoint(#[from] LoadError),
    /// The endpoint's own message.
    #[error("{name}: {message}")]
    Refused { name: String, message: String },
    #[error("{operation} got no answer within {seconds} s")]
    TimedOut { operation: String, seconds: u64 },
    #[error("{operation} got an answer that is not JSON; is this a DynamoDB endpoint?")]
    NotJson { operation: String },
    #[error("cancelled")]
    Cancelled,
    #[error("cannot read the input: {0}")]
    Input(io::Error),
    #[error("cannot read {}: {error}", path.display())]
    File { path: PathBuf, error: io::Error },
    #[error("cannot write to {}: {error}", path.display())]
    Write { path: PathBuf, error: io::Error },
    #[error("cannot print: {0}")]
    Output(io::Error),
    #[error("cannot use the terminal: {0}")]
    Terminal(#[from] rustyline::error::ReadlineError),
    #[error("the text ends inside {0}")]
    Unfinished(&'static str),
    #[error(
        "a statement with its comments may have at most {max} bytes; is a ; or a closing quote missing?"
    )]
    TooLong { max: usize },
    #[error("{0}")]
    Command(String),
    #[error(
        "the shell takes no parameters; replace each ? ({count} in this statement) with a literal"
    )]
    Parameters { count: usize },
    #[error("included files are nested more than {max} deep")]
    Includes { max: usize },
    #[error("{place}: {error}")]
    At { place: String, error: Box<ShellError> },
    /// After `--keep-going`.
    #[error("{count} of the statements failed")]
    Several { count: usize },
}

impl ShellError {
    /// Whether the statement failed, not the shell: the next one may succeed.
    pub fn is_of_statement(&self) -> bool {
        match self {
            ShellError::At { error, .. } => error.is_of_statement(),
            ShellError::Output(_) | ShellError::Input(_) | ShellError::Terminal(_) => false,
            _ => true,
        }
    }
}
