//! Where results go.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use crate::error::ShellError;

pub enum Sink {
    Standard,
    File { path: PathBuf, file: File },
}

impl Sink {
    pub fn file(path: PathBuf) -> Result<Sink, ShellError> {
        match File::create(&path) {
            Ok(file) => Ok(Sink::File { path, file }),
            Err(error) => Err(ShellError::Write { path, error }),
        }
    }

    pub fn is_standard(&self) -> bool {
        matches!(self, Sink::Standard)
    }

    /// The width of a line: that of the terminal, if there is one.
    pub fn width(&self) -> Option<usize> {
        if !self.is_standard() || !io::stdout().is_terminal() {
            return None;
        }
        terminal_size::terminal_size().map(|(width, _)| usize::from(width.0))
    }

    pub fn write(&mut self, text: &str) -> Result<(), ShellError> {
        match self {
            Sink::Standard => {
                let mut out = io::stdout().lock();
                match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
                    // The reader has closed the pipe because it has read enough.
                    Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                        std::process::exit(0)
                    }
                    outcome => outcome.map_err(ShellError::Output),
                }
            }
            Sink::File { path, file } => {
                let written = file.write_all(text.as_bytes());
                written.map_err(|error| ShellError::Write { path: path.clone(), error })
            }
        }
    }
}
