//! Runs statements and commands, and prints their results.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::time::Instant;

use serde_json::{Value, json};
use zenobe_expression::partiql::{self, SelectStatement, Statement};
use zenobe_load::{human_count, human_time};

use crate::command::{self, Command};
use crate::error::ShellError;
use crate::output::{Format, Style, render};
use crate::paging::Pages;
use crate::scan::{self, units_text};
use crate::script::{self, Piece, ScriptSource};
use crate::session::Session;
use crate::sink::Sink;
use crate::value::Row;
use crate::{Options, describe};

const INCLUDES_MAX: usize = 16;
/// How many rows to print before asking whether to continue.
const SCREEN_ROWS: usize = 100;
/// Above this many tables `\d` lists only names instead of describing each table.
const DESCRIBED_TABLES_MAX: usize = 50;

/// Asks whether to continue after this many rows.
pub type Ask = Box<dyn FnMut(usize) -> Result<bool, ShellError>>;

pub struct Shell {
    session: Rc<RefCell<Session>>,
    sink: Sink,
    format: Format,
    expanded: bool,
    timing: bool,
    consistent: bool,
    rows_max: Option<usize>,
    quiet: bool,
    keep_going: bool,
    program: String,
    /// Set while the shell is interactive.
    ask: Option<Ask>,
    includes: usize,
    failures: usize,
    is_done: bool,
}

impl Shell {
    pub fn new(session: Session, options: &Options) -> Shell {
        Shell {
            session: Rc::new(RefCell::new(session)),
            sink: Sink::Standard,
            format: options.format,
            expanded: options.expanded,
            timing: options.timing,
            consistent: options.consistent_read,
            rows_max: options.rows_max,
            quiet: options.quiet,
            keep_going: options.keep_going,
            program: options.program.clone(),
            ask: None,
            includes: 0,
            failures: 0,
            is_done: false,
        }
    }

    /// Makes the shell interactive: it greets, handles Ctrl-C, and asks before it prints more than
    /// a screen.
    pub fn begin(&mut self, ask: Ask) -> Result<(), ShellError> {
        let mut session = self.session.borrow_mut();
        match session.call("ListTables", &json!({ "Limit": 1 })) {
            // A user without permission to list tables can still use them.
            Ok(_) | Err(ShellError::Refused { .. }) => {}
            Err(error) => return Err(error),
        }
        session.heed_interrupts()?;
        let greeting = format!(
            "{} on {}. \\? for help, \\q or Ctrl-D to leave.\n",
            self.program,
            session.place()
        );
        drop(session);
        self.ask = Some(ask);
        self.sink.write(&greeting)
    }

    pub fn session(&self) -> Rc<RefCell<Session>> {
        Rc::clone(&self.session)
    }

    pub fn is_done(&self) -> bool {
        self.is_done
    }

    /// The error of a script that continued after failures.
    pub fn finish(&self) -> Result<(), ShellError> {
        match self.failures {
            0 => Ok(()),
            count => Err(ShellError::Several { count }),
        }
    }

    pub fn run_file(&mut self, path: &Path) -> Result<(), ShellError> {
        let read = std::fs::read_to_string(path);
        let text = read.map_err(|error| ShellError::File { path: path.to_owned(), error })?;
        self.run_text(&text, &ScriptSource::File(path.to_owned()))
    }

    pub fn run_text(&mut self, text: &str, source: &ScriptSource) -> Result<(), ShellError> {
        for piece in script::pieces(text)? {
            self.run_piece(&piece, source)?;
            if self.is_done {
                break;
            }
        }
        Ok(())
    }

    pub fn run_piece(&mut self, piece: &Piece, source: &ScriptSource) -> Result<(), ShellError> {
        let (outcome, line) = match piece {
            Piece::Statement { text, line } => (self.execute(text), *line),
            Piece::Command { text, line } => {
                (command::parse(text).and_then(|command| self.obey(command)), *line)
            }
        };
        let Err(error) = outcome else { return Ok(()) };
        let error = match source.place(line) {
            Some(place) => ShellError::At { place, error: Box::new(error) },
            None => error,
        };
        if self.keep_going && error.is_of_statement() {
            eprintln!("zenobe: {error}");
            self.failures += 1;
            return Ok(());
        }
        Err(error)
    }

    // ---- statements -----------------------------------------------------------------------------

    fn execute(&mut self, text: &str) -> Result<(), ShellError> {
        // The endpoint decides what it understands, so it also gets statements that don't parse
        // here.
        let statement = partiql::parse(text).ok();
        if let Some(count) = statement.as_ref().map(|one| one.parameters).filter(|count| *count > 0)
        {
            return Err(ShellError::Parameters { count });
        }
        self.session.borrow_mut().take_interrupt();
        if let Some(statement) = &statement {
            self.warn(statement);
        }
        let select = statement.as_deref().and_then(scan::select);
        let started = Instant::now();
        let mut pages = match select {
            Some(_) => {
                let rows = if self.ask.is_some() { Some(SCREEN_ROWS) } else { self.rows_max };
                Pages::of_read(text, self.consistent, rows)
            }
            None => Pages::of_write(text),
        };
        let columns = select.map(|select| self.first_columns(select)).unwrap_or_default();
        let printed = self.print_pages(&mut pages, &columns, statement.as_deref())?;
        self.print_footer(&pages, printed, select.is_some(), started)
    }

    /// Warns about a scan. If the table can't be described, there is no warning.
    fn warn(&mut self, statement: &Statement) {
        if self.quiet || scan::select(statement).is_none() {
            return;
        }
        let mut session = self.session.borrow_mut();
        let Ok(table) = session.table(statement.table()) else { return };
        if let Some(warning) = scan::warning(statement, table, self.consistent) {
            eprintln!("zenobe: warning: {}", crate::value::escaped(&warning));
        }
    }

    /// The columns that a SELECT names, or the keys of what it reads.
    fn first_columns(&mut self, select: &SelectStatement) -> Vec<String> {
        if let Some(columns) = &select.columns {
            return columns.iter().map(|column| column.name.clone()).collect();
        }
        let mut session = self.session.borrow_mut();
        let Ok(table) = session.table(&select.source.table) else { return Vec::new() };
        let mut keys = scan::keys(table);
        let index = select.source.index.as_deref().and_then(|name| scan::find_index(table, name));
        if let Some(index) = index {
            let table_keys = std::mem::replace(&mut keys, scan::keys(index));
            keys.extend(table_keys.into_iter().filter(|key| !scan::keys(index).contains(key)));
        }
        keys
    }

    /// Prints pages until they end, enough rows are printed, or the user stops. Returns the number
    /// of rows printed.
    fn print_pages(
        &mut self,
        pages: &mut Pages,
        columns: &[String],
        statement: Option<&Statement>,
    ) -> Result<usize, ShellError> {
        let (mut rows, mut printed): (Vec<Row>, usize) = (Vec::new(), 0);
        let mut is_first = true;
        loop {
            let page = pages.next(&mut self.session.borrow_mut());
            let failure = match page {
                Ok(page) => {
                    rows.extend(page);
                    None
                }
                Err(error) => Some(error),
            };
            if self.ask.is_none()
                && let Some(max) = self.rows_max
            {
                rows.truncate(max - printed);
            }
            let is_enough = self.ask.is_none() && self.rows_max == Some(printed + rows.len());
            let is_over = pages.is_last() || is_enough || failure.is_some();
            let is_screen = self.ask.is_some() && rows.len() >= SCREEN_ROWS;
            if is_over || is_screen || self.format.is_by_line() {
                if let Some(statement) = statement {
                    self.session.borrow_mut().learn_attributes(statement.table(), &rows);
                }
                // Only a successful SELECT prints the header of an empty result.
                if !rows.is_empty() || (is_first && failure.is_none() && !columns.is_empty()) {
                    self.print_rows(&rows, columns)?;
                }
                printed += rows.len();
                rows.clear();
                is_first = false;
            }
            match failure {
                Some(error) => return Err(error),
                None if is_over => return Ok(printed),
                None if is_screen => {
                    let go_on = self.ask.as_mut().map_or(Ok(true), |ask| ask(printed))?;
                    if !go_on {
                        return Ok(printed);
                    }
                }
                None => {}
            }
        }
    }

    fn print_rows(&mut self, rows: &[Row], columns: &[String]) -> Result<(), ShellError> {
        let style =
            Style { format: self.format, expanded: self.expanded, width: self.sink.width() };
        self.sink.write(&render(rows, columns, style))
    }

    /// What the statement cost. It is for people, so programs don't get to read it.
    fn print_footer(
        &mut self,
        pages: &Pages,
        printed: usize,
        is_select: bool,
        started: Instant,
    ) -> Result<(), ShellError> {
        if self.quiet {
            return Ok(());
        }
        let mut parts = match is_select || printed > 0 {
            true => vec![plural(printed as u64, "row")],
            false => vec!["done".to_owned()],
        };
        let units = units_text(pages.units);
        parts.push(format!("{units} unit{}", if pages.units == 1.0 { "" } else { "s" }));
        if self.timing {
            parts.push(human_time(started.elapsed()));
        }
        let footer = format!("({})\n", parts.join(", "));
        match self.format == Format::Table && self.sink.is_standard() {
            true => self.sink.write(&footer)?,
            false => eprint!("{footer}"),
        }
        let has_more = !pages.is_last() || pages.rows > printed;
        if has_more && self.ask.is_none() {
            eprintln!("zenobe: there may be more rows; --max-rows 0 prints all");
        }
        Ok(())
    }

    // ---- commands -------------------------------------------------------------------------------

    fn obey(&mut self, command: Command) -> Result<(), ShellError> {
        match command {
            Command::Describe(None) => self.print_tables(),
            Command::Describe(Some(name)) => self.print_table(&name),
            Command::Timing(switch) => {
                self.timing = switch.apply(self.timing);
                self.say(&format!("timing is {}", on_or_off(self.timing)))
            }
            Command::Expanded(switch) => {
                self.expanded = switch.apply(self.expanded);
                self.say(&format!("expanded rows are {}", on_or_off(self.expanded)))
            }
            Command::Consistent(switch) => {
                self.consistent = switch.apply(self.consistent);
                self.say(&format!("strongly consistent reads are {}", on_or_off(self.consistent)))
            }
            Command::Format(format) => {
                self.format = format.unwrap_or(self.format);
                self.say(&format!("the format is {}", self.format.name()))
            }
            Command::Output(path) => {
                self.sink = path.map_or(Ok(Sink::Standard), Sink::file)?;
                Ok(())
            }
            Command::Include(path) => self.include(&path),
            Command::Help => self.sink.write(command::HELP),
            Command::Quit => {
                self.is_done = true;
                Ok(())
            }
        }
    }

    fn include(&mut self, path: &Path) -> Result<(), ShellError> {
        if self.includes == INCLUDES_MAX {
            return Err(ShellError::Includes { max: INCLUDES_MAX });
        }
        self.includes += 1;
        let outcome = self.run_file(path);
        self.includes -= 1;
        outcome
    }

    fn print_tables(&mut self) -> Result<(), ShellError> {
        let mut session = self.session.borrow_mut();
        let names = session.tables()?.to_vec();
        let width = self.sink.width();
        let text = if names.is_empty() {
            "there are no tables\n".to_owned()
        } else if names.len() > DESCRIBED_TABLES_MAX {
            describe::names(&names, width)
        } else {
            let described: Result<Vec<Value>, ShellError> =
                names.iter().map(|name| session.describe(name).cloned()).collect();
            match described {
                Ok(tables) => describe::tables(&tables, width),
                // Permission to list tables does not include permission to describe them.
                Err(ShellError::Refused { .. }) => describe::names(&names, width),
                Err(error) => return Err(error),
            }
        };
        drop(session);
        self.sink.write(&text)?;
        match names.len() {
            0 => Ok(()),
            count => self.say(&format!("({})", plural(count as u64, "table"))),
        }
    }

    fn print_table(&mut self, name: &str) -> Result<(), ShellError> {
        let mut session = self.session.borrow_mut();
        let table = session.describe(name)?.clone();
        let time_to_live = session.call("DescribeTimeToLive", &json!({ "TableName": name }));
        drop(session);
        let time_to_live = match time_to_live {
            Ok(mut answer) => Some(answer["TimeToLiveDescription"].take()),
            Err(ShellError::Refused { .. }) => None,
            Err(error) => return Err(error),
        };
        let text = describe::table(&table, time_to_live.as_ref(), self.sink.width());
        self.sink.write(&text)
    }

    /// A remark for people.
    fn say(&mut self, text: &str) -> Result<(), ShellError> {
        if self.quiet {
            return Ok(());
        }
        match self.sink.is_standard() && self.ask.is_some() {
            true => self.sink.write(&format!("{text}\n")),
            false => {
                eprintln!("{text}");
                Ok(())
            }
        }
    }
}

fn plural(count: u64, what: &str) -> String {
    format!("{} {what}{}", human_count(count), if count == 1 { "" } else { "s" })
}

fn on_or_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}
