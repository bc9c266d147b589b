//! The shell at a terminal: line editing, completion and history.

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{CompletionType, Config, Context, Editor, Helper};
use serde_json::Value;

use crate::complete::{Catalogue, complete};
use crate::error::ShellError;
use crate::script::{LineReader, Open, ScriptSource};
use crate::session::Session;
use crate::shell::{Ask, Shell};

const HISTORY_ENTRIES_MAX: usize = 2_000;
/// Tab must not wait for a slow endpoint.
const COMPLETION_PATIENCE: Duration = Duration::from_secs(2);

pub fn interact(shell: &mut Shell) -> Result<(), ShellError> {
    let mut editor = editor()?;
    shell.begin(ask()?)?;
    editor.set_helper(Some(Completions { session: shell.session(), pending: String::new() }));
    let history = history_file();
    if let Some(path) = &history {
        // The file does not exist the first time.
        let _ = editor.load_history(path);
    }
    let outcome = converse(shell, &mut editor, history.as_ref());
    if let (Some(path), Ok(())) = (&history, &outcome) {
        remember(&mut editor, path);
    }
    outcome
}

fn converse(
    shell: &mut Shell,
    editor: &mut Editor<Completions, FileHistory>,
    history: Option<&PathBuf>,
) -> Result<(), ShellError> {
    let (mut reader, mut entry) = (LineReader::default(), String::new());
    while !shell.is_done() {
        if let Some(completions) = editor.helper_mut() {
            completions.pending.clone_from(&entry);
        }
        match editor.readline(prompt(reader.open())) {
            Ok(line) => {
                entry.push_str(&line);
                let pieces = match reader.push(&line) {
                    Ok(pieces) => pieces,
                    Err(error) => {
                        eprintln!("{error}");
                        reader.forget();
                        entry.clear();
                        continue;
                    }
                };
                if reader.open() == Open::Nothing {
                    editor.add_history_entry(entry.trim_end())?;
                    entry.clear();
                    if let Some(path) = history {
                        remember(editor, path);
                    }
                } else {
                    entry.push('\n');
                }
                for piece in pieces {
                    match shell.run_piece(&piece, &ScriptSource::Terminal) {
                        Ok(()) => {}
                        Err(error) if error.is_of_statement() => {
                            eprintln!("{error}");
                            break;
                        }
                        Err(error) => return Err(error),
                    }
                }
            }
            // Ctrl-C drops the current input, Ctrl-D quits.
            Err(ReadlineError::Interrupted) => {
                reader.forget();
                entry.clear();
            }
            Err(ReadlineError::Eof) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn prompt(open: Open) -> &'static str {
    match open {
        Open::Nothing => "zenobe> ",
        Open::Statement => "     -> ",
        Open::String => "     '> ",
        Open::Name => "     \"> ",
        Open::Comment => "     *> ",
    }
}

fn editor<H: Helper>() -> Result<Editor<H, FileHistory>, ShellError> {
    let config = Config::builder()
        .max_history_size(HISTORY_ENTRIES_MAX)?
        .history_ignore_space(true)
        .completion_type(CompletionType::List)
        .build();
    Ok(Editor::with_config(config)?)
}

fn ask() -> Result<Ask, ShellError> {
    let mut editor: Editor<(), FileHistory> = editor()?;
    Ok(Box::new(move |rows| {
        let question = format!("-- {rows} rows so far: Enter for more, q to stop -- ");
        match editor.readline(question.as_str()) {
            Ok(answer) => Ok(!answer.trim_start().starts_with(['q', 'Q', 'n', 'N'])),
            Err(ReadlineError::Interrupted | ReadlineError::Eof) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }))
}

/// `sql_history` in the user's state directory.
fn history_file() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let state = variable("XDG_STATE_HOME").map(PathBuf::from);
    let state = state.or_else(|| Some(PathBuf::from(variable("HOME")?).join(".local/state")))?;
    Some(state.join("zenobe").join("sql_history"))
}

/// Statements hold data, so only the user may read the file: rustyline creates it with mode 0600.
fn remember(editor: &mut Editor<Completions, FileHistory>, path: &PathBuf) {
    use std::os::unix::fs::DirBuilderExt;
    let directory = path.parent().unwrap_or(path);
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
    let kept = made.map_err(ReadlineError::from).and_then(|()| editor.append_history(path));
    if let Err(error) = kept {
        eprintln!("zenobe: cannot write the history to {}: {error}", path.display());
    }
}

struct Completions {
    session: Rc<RefCell<Session>>,
    /// The earlier lines of the current statement.
    pending: String,
}

impl Helper for Completions {}
impl Hinter for Completions {
    type Hint = String;
}
impl Highlighter for Completions {}
impl Validator for Completions {}

impl Completer for Completions {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let before = format!("{}{}", self.pending, &line[..position]);
        let Ok(mut session) = self.session.try_borrow_mut() else {
            return Ok((position, Vec::new()));
        };
        session.patience = COMPLETION_PATIENCE;
        let (start, candidates) = complete(&before, &line[position..], &mut *session);
        session.patience = Session::PATIENCE;
        // A word never starts in an earlier line.
        Ok((start.saturating_sub(self.pending.len()), candidates))
    }
}

impl Catalogue for Session {
    fn tables(&mut self) -> Vec<String> {
        Session::tables(self).map(<[String]>::to_vec).unwrap_or_default()
    }

    fn indexes(&mut self, table: &str) -> Vec<String> {
        let Ok(description) = self.table(table) else { return Vec::new() };
        let kinds = ["GlobalSecondaryIndexes", "LocalSecondaryIndexes"];
        let indexes = kinds.iter().flat_map(|kind| description[*kind].as_array()).flatten();
        indexes.filter_map(|index: &Value| index["IndexName"].as_str().map(str::to_owned)).collect()
    }

    fn attributes(&mut self, table: &str) -> Vec<String> {
        Session::attributes(self, table)
    }
}
