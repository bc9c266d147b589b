//! The backslash commands.

use std::path::PathBuf;

use crate::error::ShellError;
use crate::output::Format;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// `\d`: all tables, or one.
    Describe(Option<String>),
    Timing(Switch),
    Expanded(Switch),
    Consistent(Switch),
    Format(Option<Format>),
    /// The file for results; `None` is the terminal.
    Output(Option<PathBuf>),
    Include(PathBuf),
    Help,
    Quit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switch {
    On,
    Off,
    Other,
}

impl Switch {
    pub fn apply(self, value: bool) -> bool {
        match self {
            Switch::On => true,
            Switch::Off => false,
            Switch::Other => !value,
        }
    }
}

/// The names, for completion. The help text says more.
pub const NAMES: [&str; 9] =
    ["\\?", "\\consistent", "\\d", "\\format", "\\i", "\\o", "\\q", "\\timing", "\\x"];

pub const HELP: &str = r"Statements are PartiQL and end with a semicolon; they may span several lines.
  \d                  tables
  \d TABLE            keys, indexes, sizes, billing, time to live and stream of a table
  \x [on|off]         each row as a list of its attributes
  \format [FORMAT]    table, json, dynamodb-json or csv
  \o [FILE]           write results to a file; without a file, to the terminal
  \i FILE             run the statements in a file
  \timing [on|off]    print how long each statement takes
  \consistent [on|off]  strongly consistent reads, at twice the units
  \q                  quit, like Ctrl-D
Ctrl-C cancels a statement. Tab completes tables, attributes and keywords.
";

/// Parses a command, given without its backslash.
pub fn parse(text: &str) -> Result<Command, ShellError> {
    let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let words = words(rest)?;
    let fault = ShellError::Command;
    let one = || match &words[..] {
        [] => Ok(None),
        [word] => Ok(Some(word.clone())),
        _ => Err(fault(format!("\\{name} takes one argument; put \" around it if it has blanks"))),
    };
    let none = |command: Command| match words.is_empty() {
        true => Ok(command),
        false => Err(fault(format!("\\{name} takes no argument"))),
    };
    let switch = || match one()?.as_deref() {
        None => Ok(Switch::Other),
        Some("on") => Ok(Switch::On),
        Some("off") => Ok(Switch::Off),
        Some(other) => Err(fault(format!("\\{name} is on or off, not {other}"))),
    };
    match name {
        "d" => Ok(Command::Describe(one()?)),
        "timing" => Ok(Command::Timing(switch()?)),
        "x" => Ok(Command::Expanded(switch()?)),
        "consistent" => Ok(Command::Consistent(switch()?)),
        "format" => one()?.map(|word| format(&word)).transpose().map(Command::Format),
        "o" => Ok(Command::Output(one()?.map(PathBuf::from))),
        "i" => match one()? {
            Some(path) => Ok(Command::Include(path.into())),
            None => Err(fault("\\i needs a file".to_owned())),
        },
        "?" | "h" | "help" => none(Command::Help),
        "q" | "quit" | "exit" => none(Command::Quit),
        _ => Err(fault(format!("there is no command \\{name}; \\? lists them"))),
    }
}

fn format(word: &str) -> Result<Format, ShellError> {
    Format::from_name(word).ok_or_else(|| {
        let known = Format::ALL.map(Format::name).join(", ");
        ShellError::Command(format!("there is no format {word}; there are {known}"))
    })
}

/// Splits at white space; quoted words may contain it.
fn words(text: &str) -> Result<Vec<String>, ShellError> {
    let (mut words, mut rest) = (Vec::new(), text.trim());
    while let Some(first) = rest.chars().next() {
        let (word, after) = match first {
            '"' | '\'' => rest[1..].split_once(first).ok_or_else(|| {
                ShellError::Command(format!("a closing {first} is missing after {rest}"))
            })?,
            _ => rest.split_once(char::is_whitespace).unwrap_or((rest, "")),
        };
        // People type the semicolon out of habit.
        words.push(word.strip_suffix(';').unwrap_or(word).to_owned());
        rest = after.trim_start_matches(|letter: char| letter.is_whitespace() || letter == ';');
    }
    words.retain(|word| !word.is_empty());
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read() {
        for (text, expected) in [
            ("d", Command::Describe(None)),
            ("d Music", Command::Describe(Some("Music".into()))),
            ("d \"Music\" ;", Command::Describe(Some("Music".into()))),
            ("d Music;", Command::Describe(Some("Music".into()))),
            ("timing", Command::Timing(Switch::Other)),
            ("x on", Command::Expanded(Switch::On)),
            ("consistent off", Command::Consistent(Switch::Off)),
            ("format", Command::Format(None)),
            ("format csv", Command::Format(Some(Format::Csv))),
            ("format dynamodb-json", Command::Format(Some(Format::DynamodbJson))),
            ("o", Command::Output(None)),
            ("o 'a b.csv'", Command::Output(Some("a b.csv".into()))),
            ("i x.sql", Command::Include("x.sql".into())),
            ("?", Command::Help),
            ("q", Command::Quit),
        ] {
            assert_eq!(parse(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn unknown_commands_are_reported() {
        for (text, expected) in [
            ("", "there is no command \\; \\? lists them"),
            ("foo", "there is no command \\foo; \\? lists them"),
            ("d a b", "\\d takes one argument; put \" around it if it has blanks"),
            ("q now", "\\q takes no argument"),
            ("x maybe", "\\x is on or off, not maybe"),
            ("format xml", "there is no format xml; there are table, json, dynamodb-json, csv"),
            ("i", "\\i needs a file"),
            ("d \"a", "a closing \" is missing after \"a"),
        ] {
            assert_eq!(parse(text).unwrap_err().to_string(), expected, "{text}");
        }
    }
}
