//! `zenobe move`: moves a database to another store.

use std::time::{Duration, Instant};

use clap::Args;
use hyper::Method;
use rustix::fs::Mode;
use serde_json::{Value, json};
use zenobe_database::{
    Durability, Location, MoveProgress, MoveStage, Options, PostgresUrl, abandon_move, move_data,
    name_of,
};
use zenobe_load::human_count;

use super::live_line::{LiveLine, bar, time_left};
use super::server_connection::{ConnectionArguments, ServerConnection};
use super::{CommandError, print_line};

/// How often to ask a server that moves itself how far it is.
const ASK_INTERVAL: Duration = Duration::from_millis(200);

#[derive(Debug, Args)]
#[command(
    after_help = "With --from, no server may use either store. Without it, the server at --endpoint copies itself while it serves, \
makes writes wait for a moment, and continues on the new store; its directory must not be served again. \
A server that verifies signatures must have been started with --allow-move-to and the same store.\n\n\
A store is a data directory or postgres://USER:PASSWORD@HOST/DATABASE. Every user of a machine can read a command line, so put \
passwords in ZENOBE_MOVE_FROM or ZENOBE_MOVE_TO.\n\n\
Each copied range is read back, and its checksum is compared. To resume an interrupted move, run the same command again.\n\n\
Examples:\n  zenobe move --from ./zenobe-data --to postgres://zenobe@db.example.com/zenobe\n  \
zenobe move --from postgres://zenobe@db.example.com/zenobe --to ./zenobe-data\n  \
zenobe move --endpoint http://127.0.0.1:8000 --to postgres://zenobe@db.example.com/zenobe\n  \
zenobe move --from ./zenobe-data --abandon"
)]
pub struct MoveArguments {
    /// Data directory or PostgreSQL to move; without it, the running server moves itself
    #[arg(long, env = "ZENOBE_MOVE_FROM", value_name = "STORE", value_parser = parse_place)]
    from: Option<Location>,
    /// Empty or new data directory, or an empty PostgreSQL
    #[arg(
        long,
        env = "ZENOBE_MOVE_TO",
        value_name = "STORE",
        value_parser = parse_place,
        required_unless_present = "abandon"
    )]
    to: Option<Location>,
    /// Make a moved or half-moved store usable again
    #[arg(long, requires = "from", conflicts_with = "to")]
    abandon: bool,
    #[command(flatten)]
    connection: ConnectionArguments,
}

/// A store by the text that names it.
pub fn parse_place(text: &str) -> Result<Location, String> {
    if text.is_empty() {
        return Err(
            "expected a directory or a URL such as postgres://user@host/database".to_owned()
        );
    }
    match text.split_once("://") {
        Some(_) => Ok(Location::Postgres { url: text.parse::<PostgresUrl>()? }),
        None => Ok(Location::Directory { path: text.into(), durability: Durability::Sync }),
    }
}

pub async fn run(arguments: &MoveArguments) -> Result<(), CommandError> {
    match (&arguments.from, &arguments.to) {
        (Some(from), Some(to)) => run_offline(from, to).await,
        (Some(from), None) => {
            let to = abandon_move(from, &Options::default()).await?;
            let from = name_of(from);
            print_line(&format!("{from} can be served again; do not use the copy at {to}"))
        }
        (None, Some(to)) => run_online(arguments, to).await,
        (None, None) => unreachable!("one of them is required"),
    }
}

async fn run_offline(from: &Location, to: &Location) -> Result<(), CommandError> {
    // Only the owner may read the files that are created.
    rustix::process::umask(Mode::RWXG | Mode::RWXO);
    crate::open_files::raise_limit(0);
    let display = parking_lot::Mutex::new(MoveDisplay::new());
    let observe = |progress: MoveProgress| display.lock().show(&ShownMove::of(progress));
    let moved = move_data(from, to, &Options::default(), &observe).await;
    display.lock().end();
    let summary = moved?;
    let (from, ranges) = (name_of(from), human_count(summary.copied.ranges));
    let copied = summary.copied.done;
    let to = serve_option(to);
    print_line(&format!(
        "moved {} rows, {} bytes; the checksums of {ranges} ranges agree\n\
         serve it with {to}; {from} is sealed",
        human_count(copied.rows),
        human_count(copied.bytes),
    ))
}

async fn run_online(arguments: &MoveArguments, to: &Location) -> Result<(), CommandError> {
    let connection = ServerConnection::new(&arguments.connection)?;
    let mut display = MoveDisplay::new();
    let text = match to {
        Location::Postgres { url } => url.with_password().to_owned(),
        Location::Directory { path, .. } => path.display().to_string(),
        Location::Memory => unreachable!("no text names it"),
    };
    let mut status = connection.admin(Method::POST, "move", Some(&json!({ "to": text }))).await?;
    while !["done", "failed"].contains(&status["stage"].as_str().unwrap_or_default()) {
        display.show(&ShownMove::parse(&status));
        tokio::time::sleep(ASK_INTERVAL).await;
        status = connection.admin(Method::GET, "move", None).await?;
    }
    display.end();
    if let Some(error) = status["error"].as_str() {
        return Err(CommandError::Refused(error.to_owned()));
    }
    let number = |value: &Value| human_count(value.as_u64().unwrap_or_default());
    print_line(&format!(
        "moved {} rows, {} bytes and {} changes; the checksums of {} ranges agree\n\
         writes waited for {} ms; the server goes on with the new store\n\
         start it with {} from now on; its old directory is sealed",
        number(&status["copied"]["rows"]),
        number(&status["copied"]["bytes"]),
        number(&status["copied"]["changes"]),
        number(&status["copied"]["ranges"]),
        number(&status["pause_ms"]),
        serve_option(to),
    ))
}

/// How to serve a store.
fn serve_option(location: &Location) -> String {
    let name = name_of(location);
    match location {
        Location::Directory { .. } => format!("--data {name}"),
        _ => format!("--store {name}"),
    }
}

/// A move's progress as it is shown, whether a server or this command carries it out.
struct ShownMove {
    stage: &'static str,
    rows: u64,
    bytes: u64,
    bytes_total: u64,
    changes: u64,
}

impl ShownMove {
    fn of(progress: MoveProgress) -> ShownMove {
        let stage = match progress.stage {
            MoveStage::Counting => "counting",
            MoveStage::Copying => "copying",
            MoveStage::Following => "following",
            MoveStage::Pausing | MoveStage::Done => "finishing",
        };
        let (done, total) = (progress.copied.done, progress.total);
        let (rows, bytes, bytes_total) = (done.rows, done.bytes, total.bytes);
        ShownMove { stage, rows, bytes, bytes_total, changes: progress.copied.changes }
    }

    fn parse(status: &Value) -> ShownMove {
        let stage = match status["stage"].as_str() {
            Some("counting") => "counting",
            Some("copying") => "copying",
            Some("following") => "following",
            _ => "finishing",
        };
        let number = |value: &Value| value.as_u64().unwrap_or_default();
        ShownMove {
            stage,
            rows: number(&status["copied"]["rows"]),
            bytes: number(&status["copied"]["bytes"]),
            bytes_total: number(&status["total"]["bytes"]),
            changes: number(&status["copied"]["changes"]),
        }
    }
}

/// What is printed of a move while it lasts.
struct MoveDisplay {
    line: LiveLine,
    /// When copying began, and what had been copied then.
    begin: Option<(Instant, u64)>,
}

impl MoveDisplay {
    fn new() -> MoveDisplay {
        MoveDisplay { line: LiveLine::new(), begin: None }
    }

    fn show(&mut self, shown: &ShownMove) {
        if shown.stage == "copying" && self.begin.is_none() {
            self.begin = Some((Instant::now(), shown.bytes));
        }
        let begin = self.begin;
        self.line.show(|| match begin {
            Some((begin, bytes)) => describe(shown, begin.elapsed(), bytes),
            None => shown.stage.to_owned(),
        });
    }

    fn end(&self) {
        self.line.end();
    }
}

fn describe(shown: &ShownMove, elapsed: Duration, bytes_before: u64) -> String {
    let ShownMove { stage, rows, bytes, bytes_total, changes } = shown;
    let total = (*bytes_total).max(*bytes).max(1);
    let per_second = (bytes - bytes_before) as f64 / elapsed.as_secs_f64().max(0.001);
    let left = time_left(total - bytes, per_second);
    let mut line = format!(
        "{stage} {}  {} of {} bytes, {} rows, {}/s, {left} left",
        bar(*bytes, total),
        human_count(*bytes),
        human_count(total),
        human_count(*rows),
        human_count(per_second as u64),
    );
    if *changes > 0 {
        line += &format!(", {} changes since", human_count(*changes));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_directory_or_a_url() {
        assert!(matches!(parse_place("./data"), Ok(Location::Directory { .. })));
        assert!(matches!(parse_place("postgres://u@h/d"), Ok(Location::Postgres { .. })));
        assert!(parse_place("mysql://u@h/d").is_err());
        assert!(parse_place("").is_err());
    }

    #[test]
    fn the_line_says_how_much_how_fast_and_how_long() {
        let shown =
            ShownMove { stage: "copying", rows: 5, bytes: 3_000, bytes_total: 12_000, changes: 7 };
        let line = describe(&shown, Duration::from_secs(2), 1_000);
        assert!(line.starts_with("copying [#####               ]  25 %"), "{line}");
        assert!(line.ends_with("9 s left, 7 changes since"), "{line}");
    }
}
