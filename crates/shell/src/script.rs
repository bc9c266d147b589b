//! Splits text into statements and backslash commands.
//!
//! A statement ends with a semicolon outside quotes and comments. A backslash where a statement
//! could start begins a command, which ends with the line.

use std::path::PathBuf;

use crate::error::ShellError;

/// DynamoDB accepts statements of up to 8,192 characters; comments may make the text longer.
const PENDING_BYTES_MAX: usize = 64 * 1024;

/// One unit to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// The text excludes the semicolon. `line` is the first line, counted from 1.
    Statement { text: String, line: usize },
    /// The text excludes the backslash.
    Command { text: String, line: usize },
}

/// Where the text comes from, for messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScriptSource {
    CommandLine,
    Standard,
    File(PathBuf),
    Terminal,
}

impl ScriptSource {
    /// The location of a fault, if naming it helps.
    pub fn place(&self, line: usize) -> Option<String> {
        match self {
            ScriptSource::CommandLine | ScriptSource::Terminal => None,
            ScriptSource::Standard => Some(format!("line {line}")),
            ScriptSource::File(path) => Some(format!("{}:{line}", path.display())),
        }
    }
}

/// Collects lines until they complete a piece.
#[derive(Debug, Default)]
pub struct LineReader {
    pending: String,
    /// The number of lines before `pending`.
    lines_before: usize,
}

/// Why a statement continues on the next line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Open {
    /// No statement has started.
    Nothing,
    Statement,
    String,
    Name,
    Comment,
}

impl Open {
    fn what(self) -> Option<&'static str> {
        match self {
            Open::Nothing | Open::Statement => None,
            Open::String => Some("a string: a closing ' is missing"),
            Open::Name => Some("a quoted name: a closing \" is missing"),
            Open::Comment => Some("a comment: a closing */ is missing"),
        }
    }
}

impl LineReader {
    /// Takes a line, without its line break, and returns the pieces that it completes.
    pub fn push(&mut self, line: &str) -> Result<Vec<Piece>, ShellError> {
        self.pending.push_str(line);
        self.pending.push('\n');
        let (mut pieces, mut consumed) = (Vec::new(), 0);
        while let Next::Piece { kind, text, end } = next(&self.pending[consumed..]) {
            let start = consumed + text.start;
            let line = self.lines_before + 1 + count_lines(&self.pending[..start]);
            let text = self.pending[start..consumed + text.end].trim_end().to_owned();
            pieces.push(match kind {
                Kind::Statement => Piece::Statement { text, line },
                Kind::Command => Piece::Command { text, line },
            });
            consumed += end;
        }
        if self.open_after(consumed) == Open::Nothing {
            consumed = self.pending.len();
        }
        self.lines_before += count_lines(&self.pending[..consumed]);
        self.pending.drain(..consumed);
        // Each new line scans all pending text again, so it must stay short.
        match self.pending.len() {
            ..=PENDING_BYTES_MAX => Ok(pieces),
            _ => Err(ShellError::TooLong { max: PENDING_BYTES_MAX }),
        }
    }

    pub fn open(&self) -> Open {
        self.open_after(0)
    }

    pub fn forget(&mut self) {
        self.pending.clear();
    }

    /// Whatever is left when the text ends: the last statement may lack its semicolon.
    pub fn finish(self) -> Result<Option<Piece>, ShellError> {
        let Next::Incomplete(open, start) = next(&self.pending) else { return Ok(None) };
        match open.what() {
            Some(what) => Err(ShellError::Unfinished(what)),
            None => {
                let line = self.lines_before + 1 + count_lines(&self.pending[..start]);
                let text = self.pending[start..].trim_end().to_owned();
                Ok(Some(Piece::Statement { text, line }))
            }
        }
    }

    fn open_after(&self, consumed: usize) -> Open {
        match next(&self.pending[consumed..]) {
            Next::Incomplete(open, _) => open,
            Next::Nothing | Next::Piece { .. } => Open::Nothing,
        }
    }
}

/// All pieces of a text.
pub fn pieces(text: &str) -> Result<Vec<Piece>, ShellError> {
    let mut reader = LineReader::default();
    let mut pieces = Vec::new();
    for line in text.lines() {
        pieces.extend(reader.push(line)?);
    }
    pieces.extend(reader.finish()?);
    Ok(pieces)
}

enum Kind {
    Statement,
    Command,
}

enum Next {
    /// Only white space and comments.
    Nothing,
    /// `text` is the piece itself, `end` the start of the rest.
    Piece { kind: Kind, text: std::ops::Range<usize>, end: usize },
    /// What is open, and where the statement starts.
    Incomplete(Open, usize),
}

/// Finds the first piece. Every delimiter is ASCII, so looking at bytes suffices.
fn next(text: &str) -> Next {
    let bytes = text.as_bytes();
    let mut at = 0;
    loop {
        match bytes.get(at) {
            None => return Next::Nothing,
            Some(byte) if byte.is_ascii_whitespace() || *byte == b';' => at += 1,
            Some(_) => match comment_end(text, at) {
                Some(Some(end)) => at = end,
                Some(None) => return Next::Incomplete(Open::Comment, at),
                None => break,
            },
        }
    }
    let start = at;
    if bytes[at] == b'\\' {
        let length = text[at..].find('\n').unwrap_or(text.len() - at);
        return Next::Piece { kind: Kind::Command, text: at + 1..at + length, end: at + length };
    }
    while let Some(byte) = bytes.get(at) {
        match byte {
            b';' => return Next::Piece { kind: Kind::Statement, text: start..at, end: at + 1 },
            quote @ (b'\'' | b'"') => match text[at + 1..].find(char::from(*quote)) {
                // A doubled quote reads as the end of one string and the start of another, with the
                // same result.
                Some(length) => at += length + 2,
                None => {
                    let open = if *quote == b'"' { Open::Name } else { Open::String };
                    return Next::Incomplete(open, start);
                }
            },
            _ => match comment_end(text, at) {
                Some(Some(end)) => at = end,
                Some(None) => return Next::Incomplete(Open::Comment, start),
                None => at += 1,
            },
        }
    }
    Next::Incomplete(Open::Statement, start)
}

/// Where the comment ends that starts here. The outer `None` means that there is no comment, the
/// inner that it never ends.
fn comment_end(text: &str, at: usize) -> Option<Option<usize>> {
    let rest = &text.as_bytes()[at..];
    let until = |end: &str| text[at + 2..].find(end).map(|length| at + 2 + length + end.len());
    if rest.starts_with(b"--") {
        Some(Some(until("\n").unwrap_or(text.len())))
    } else if rest.starts_with(b"/*") {
        Some(until("*/"))
    } else {
        None
    }
}

fn count_lines(text: &str) -> usize {
    text.bytes().filter(|byte| *byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let shown = |piece: &Piece| match piece {
            Piece::Statement { text, line } => format!("{line}:{text}"),
            Piece::Command { text, line } => format!("{line}:\\{text}"),
        };
        match pieces(text) {
            Ok(pieces) => pieces.iter().map(shown).collect::<Vec<_>>().join(" | "),
            Err(error) => format!("! {error}"),
        }
    }

    #[test]
    fn text_is_split_into_pieces() {
        for (text, expected) in [
            ("", ""),
            (" ;; \n ; ", ""),
            ("SELECT 1", "1:SELECT 1"),
            ("a;b ; c", "1:a | 1:b | 1:c"),
            ("a\n  ;\n\nb;", "1:a | 4:b"),
            ("SELECT ';' FROM \"a;b\"; x", "1:SELECT ';' FROM \"a;b\" | 1:x"),
            ("SELECT 'it''s;' ;", "1:SELECT 'it''s;'"),
            ("a -- no; end\n b; c", "1:a -- no; end\n b | 2:c"),
            ("a /* ; */ b; /* c; */", "1:a /* ; */ b"),
            ("-- only a comment\n/* and\nanother */", ""),
            ("-- first\n\\d Music\n\\q", "2:\\d Music | 3:\\q"),
            ("a \\d;", "1:a \\d"),
            ("a; \\timing\nb;", "1:a | 1:\\timing | 2:b"),
            ("é';';ü", "1:é';' | 1:ü"),
            ("SELECT 'a", "! the text ends inside a string: a closing ' is missing"),
            ("SELECT \"a", "! the text ends inside a quoted name: a closing \" is missing"),
            ("a; /* b", "! the text ends inside a comment: a closing */ is missing"),
            ("a /* b", "! the text ends inside a comment: a closing */ is missing"),
        ] {
            assert_eq!(shown(text), expected, "{text:?}");
        }
    }

    #[test]
    fn endless_statements_are_rejected() {
        let text = format!("/*{}", format!("{}\n", "x".repeat(999)).repeat(70));
        assert_eq!(
            shown(&text),
            "! a statement with its comments may have at most 65536 bytes; is a ; or a closing quote missing?"
        );
        let many = "SELECT 1;\n".repeat(20_000);
        assert_eq!(pieces(&many).unwrap().len(), 20_000);
    }

    #[test]
    fn lines_say_what_they_leave_open() {
        for (lines, open) in [
            (&["SELECT *"][..], Open::Statement),
            (&["SELECT *", "FROM t;"], Open::Nothing),
            (&["SELECT '"], Open::String),
            (&["SELECT '", "';"], Open::Nothing),
            (&["SELECT \"x"], Open::Name),
            (&["/* a"], Open::Comment),
            (&["a; b"], Open::Statement),
            (&["-- a"], Open::Nothing),
            (&["\\d"], Open::Nothing),
        ] {
            let mut reader = LineReader::default();
            lines.iter().for_each(|line| drop(reader.push(line).unwrap()));
            assert_eq!(reader.open(), open, "{lines:?}");
        }
    }
}
