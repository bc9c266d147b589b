//! `zenobe bench`: the load generator of `zenobe_load` on the command line.

mod arguments;
mod interrupt;
mod progress;

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

use zenobe_load::{
    Identity, LoadError, Plan, Report, Stop, drop_table, html, human_count, json, plot, prepare,
    run_until, summary,
};

pub use self::arguments::BenchArguments;
use self::arguments::{JsonOutput, PlotOutput};
use self::interrupt::Interrupt;
use self::progress::BenchDisplay;

const IDENTITY: Identity<'static> =
    Identity { version: env!("CARGO_PKG_VERSION"), commit: option_env!("ZENOBE_COMMIT") };

#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    #[error("{0}")]
    Load(#[from] LoadError),
    #[error("cannot write {}: {error}", path.display())]
    File { path: PathBuf, error: io::Error },
    #[error("cannot print: {0}")]
    Print(io::Error),
    #[error("{} of {} operations failed; --allow-errors accepts that", human_count(*failed), human_count(*all))]
    Errors { failed: u64, all: u64 },
    #[error("no operation was answered")]
    Nothing,
}

pub fn run(arguments: &BenchArguments) -> Result<(), BenchError> {
    let plan = arguments.plan()?;
    plan.check()?;
    check_writable(arguments)?;
    let measured = measure(arguments, &plan);
    // Whatever went wrong, an unwanted table may cost money. Dropping checks by itself whether the
    // table is ours.
    let dropped = match arguments.drop {
        true => drop_table(&plan),
        false => Ok(()),
    };
    match (measured, dropped) {
        (Ok(report), Ok(())) => judge(arguments, &report),
        (Ok(_), Err(undropped)) => Err(undropped.into()),
        (Err(error), Ok(())) => Err(error),
        (Err(error), Err(undropped)) => {
            eprintln!("the table is kept: {undropped}");
            Err(error)
        }
    }
}

/// Fails before the run if the results can't be written: nobody should learn that after an hour.
fn check_writable(arguments: &BenchArguments) -> Result<(), BenchError> {
    let json = match &arguments.json {
        Some(JsonOutput::File(path)) => Some(path),
        Some(JsonOutput::Standard) | None => None,
    };
    let plot = arguments.plot.as_ref().map(|(PlotOutput::Svg(path) | PlotOutput::Html(path))| path);
    for path in json.into_iter().chain(plot) {
        // A dangling link is not new.
        let is_new = path.symlink_metadata().is_err();
        let opened = fs::OpenOptions::new().create(true).append(true).open(path);
        let checked = match opened {
            Ok(_) if is_new => fs::remove_file(path),
            Ok(_) => Ok(()),
            Err(error) => Err(error),
        };
        checked.map_err(|error| BenchError::File { path: path.clone(), error })?;
    }
    Ok(())
}

/// Loads the table, sends the load and writes the results.
fn measure(arguments: &BenchArguments, plan: &Plan) -> Result<Report, BenchError> {
    let mut progress = BenchDisplay::new();
    let stop = Stop::new();
    let interrupt = Interrupt::watch(stop.clone());
    prepare(plan, &mut |step| progress.load(plan, step))?;
    interrupt.run_begins();
    progress.begin(plan);
    let measured = run_until(plan, &stop, &mut |interval| progress.interval(interval));
    progress.end();
    let report = measured?;
    write(arguments, plan, &report)?;
    Ok(report)
}

fn write(arguments: &BenchArguments, plan: &Plan, report: &Report) -> Result<(), BenchError> {
    let text = summary(plan, report);
    match &arguments.json {
        Some(JsonOutput::Standard) => {
            eprint!("{text}");
            print(&format!("{:#}\n", json(&IDENTITY, plan, report)))?;
        }
        Some(JsonOutput::File(path)) => {
            print(&text)?;
            write_file(path, &format!("{:#}\n", json(&IDENTITY, plan, report)))?;
        }
        None => print(&text)?,
    }
    match &arguments.plot {
        Some(PlotOutput::Svg(path)) => write_file(path, &plot(plan, report)),
        Some(PlotOutput::Html(path)) => write_file(path, &html(&IDENTITY, plan, report)),
        None => Ok(()),
    }
}

fn judge(arguments: &BenchArguments, report: &Report) -> Result<(), BenchError> {
    let failed = report.error_count();
    if failed > 0 && !arguments.allow_errors {
        return Err(BenchError::Errors { failed, all: failed + report.requests });
    }
    // A user who interrupts the warm-up knows that nothing was measured.
    if report.requests == 0 && failed == 0 && !report.stopped {
        return Err(BenchError::Nothing);
    }
    Ok(())
}

fn print(text: &str) -> Result<(), BenchError> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // The reader has closed the pipe because it has read enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        outcome => outcome.map_err(BenchError::Print),
    }
}

fn write_file(path: &PathBuf, text: &str) -> Result<(), BenchError> {
    fs::write(path, text).map_err(|error| BenchError::File { path: path.clone(), error })
}
