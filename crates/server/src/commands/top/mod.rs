//! `zenobe top`: what a running server does, second by second.

mod frame;
mod sample;
mod terminal;

use std::time::Duration;

use clap::{Args, ValueEnum};
use hyper::Method;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, sleep_until};

use self::frame::{Size, View};
use self::sample::Sample;
use self::terminal::Terminal;
use super::server_connection::{ConnectionArguments, ServerConnection};
use super::{CommandError, print_line};

/// The size of a frame that is not shown in a window.
const PLAIN_SIZE: Size = Size { columns: 120, rows: 60 };

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  zenobe top
  zenobe top --once --sort throttled

Rates are those of the last interval; keys are those of the last one to two minutes. On a terminal, q quits, and u, r, t, l and \
n sort by units, requests, throttle events, latency and name. Elsewhere, frames are printed one after the other.")]
pub struct TopArguments {
    /// Seconds between two frames
    #[arg(long, default_value = "1", value_parser = interval, value_name = "SECONDS")]
    interval: Duration,
    /// Print one frame and exit
    #[arg(long)]
    once: bool,
    /// What to sort by
    #[arg(long, default_value = "units", value_enum, value_name = "ORDER")]
    sort: Sort,
    #[command(flatten)]
    connection: ConnectionArguments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Sort {
    Units,
    Requests,
    Throttled,
    Latency,
    Name,
}

impl Sort {
    fn of_key(key: u8) -> Option<Sort> {
        Some(match key {
            b'u' => Sort::Units,
            b'r' => Sort::Requests,
            b't' => Sort::Throttled,
            b'l' => Sort::Latency,
            b'n' => Sort::Name,
            _ => return None,
        })
    }
}

fn interval(text: &str) -> Result<Duration, String> {
    let seconds: Option<f64> = text.parse().ok();
    let seconds = seconds.filter(|seconds| (0.1..=3_600.0).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "give 0.1 to 3600 seconds".to_owned())
}

pub async fn run(arguments: TopArguments) -> Result<(), CommandError> {
    let connection = ServerConnection::new(&arguments.connection)?;
    let first = ask(&connection).await?;
    let view = View {
        endpoint: arguments.connection.endpoint,
        interval: arguments.interval,
        sort: arguments.sort,
        problem: None,
    };
    let terminal = if arguments.once { None } else { Terminal::open() };
    match terminal {
        Some(terminal) => show_live(&connection, first, view, terminal).await,
        None => print_frames(&connection, first, &view, arguments.once).await,
    }
}

async fn ask(connection: &ServerConnection) -> Result<Sample, CommandError> {
    let answer = connection.admin(Method::GET, "top", None).await?;
    Ok(Sample::of(&answer))
}

async fn print_frames(
    connection: &ServerConnection,
    mut before: Sample,
    view: &View,
    once: bool,
) -> Result<(), CommandError> {
    loop {
        tokio::time::sleep(view.interval).await;
        let after = ask(connection).await?;
        let lines = frame::render(&before, &after, view, PLAIN_SIZE);
        lines.iter().try_for_each(|line| print_line(line))?;
        if once {
            return Ok(());
        }
        print_line("")?;
        before = after;
    }
}

/// Runs until q or a signal. Dropping the terminal restores it.
async fn show_live(
    connection: &ServerConnection,
    mut before: Sample,
    mut view: View,
    mut terminal: Terminal,
) -> Result<(), CommandError> {
    let listen = |kind| signal(kind).map_err(CommandError::Runtime);
    let (mut interrupt, mut terminate) =
        (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
    let mut resize = listen(SignalKind::window_change())?;
    let mut after = before.clone();
    let mut next = Instant::now() + view.interval;
    loop {
        let lines = frame::render(&before, &after, &view, terminal.size());
        terminal.draw(&lines).map_err(CommandError::Output)?;
        tokio::select! {
            _ = interrupt.recv() => return Ok(()),
            _ = terminate.recv() => return Ok(()),
            _ = resize.recv() => {}
            key = terminal.key() => match key {
                b'q' | b'Q' => return Ok(()),
                key => view.sort = Sort::of_key(key).unwrap_or(view.sort),
            },
            () = sleep_until(next) => {
                next = Instant::now() + view.interval;
                // A server that restarts is back in a moment.
                match ask(connection).await {
                    Ok(sample) => {
                        before = std::mem::replace(&mut after, sample);
                        view.problem = None;
                    }
                    Err(error) => view.problem = Some(error.to_string()),
                }
            }
        }
    }
}
