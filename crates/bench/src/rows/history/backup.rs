//! What a whole online backup costs the requests that arrive meanwhile.

use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use zenobe_load::{Plan, Workload};

use crate::cleanup::Process;
use crate::measure::{Lane, interleave};
use crate::outcome::{Finding, Outcome, Section};
use crate::rows::Context;
use crate::subjects::server::{Keeping, Server};
use crate::{Result, load};

const TITLE: &str = "requests during a backup";
const SHARE_MIN: f64 = 0.9;
const CONNECTIONS: usize = 64;
const BACKUP_PATIENCE: Duration = Duration::from_secs(300);

pub fn measure(context: &Context<'_>) -> Result<Outcome> {
    let effort = context.effort;
    let server = Server::start(context.binary, &context.scratch.path("backed-up"), Keeping::Os)?;
    let get = load::plan(server.address, Workload::Get, effort.items, CONNECTIONS)?;
    let put = Plan { workload: Workload::Put, ..get.clone() };
    load::prepare(TITLE, &get)?;
    let backups = Backups { context, server: &server, begun: AtomicUsize::new(0) };
    let lanes = vec![
        plain("GetItem", &server, get.clone()),
        backups.lane("GetItem during a backup", get),
        plain("PutItem", &server, put.clone()),
        backups.lane("PutItem during a backup", put),
    ];
    let series = interleave(TITLE, effort.rounds, effort.duration, lanes)?;
    let finding = |row, name: &str, during, without| {
        let what = format!("{name} during a full online backup");
        Finding::share(row, what, SHARE_MIN, name, during, without)
    };
    let findings = vec![
        finding("history-backup-get", "GetItem", &series[1], &series[0]),
        finding("history-backup-put", "PutItem", &series[3], &series[2]),
    ];
    let note = format!(
        "{CONNECTIONS} connections, durability `os`. `zenobe backup` copies the running server to a new directory, and begins again while requests \
         are measured: {} whole backups in all. Each run begins when the server is idle.",
        backups.begun.load(Ordering::Relaxed)
    );
    let sections = vec![Section::of_series("History: requests during a backup", &note, &series)];
    Ok(Outcome { findings, sections, charts: Vec::new() })
}

fn plain<'a>(name: &str, server: &'a Server, plan: Plan) -> Lane<'a> {
    server.at_rest(TITLE, name, move |duration| load::sample(&plan, duration))
}

struct Backups<'a> {
    context: &'a Context<'a>,
    server: &'a Server,
    begun: AtomicUsize,
}

impl Backups<'_> {
    fn lane(&self, name: &str, plan: Plan) -> Lane<'_> {
        self.server.at_rest(TITLE, name, move |duration| {
            let ended = AtomicBool::new(false);
            std::thread::scope(|scope| {
                let backups = scope.spawn(|| -> Result<()> {
                    while !ended.load(Ordering::Acquire) {
                        self.back_up()?;
                    }
                    Ok(())
                });
                let sample = load::sample(&plan, duration);
                ended.store(true, Ordering::Release);
                backups.join().map_err(|_| "the thread that makes backups panicked")??;
                sample
            })
        })
    }

    /// To a place of its own, so that it is a full one.
    fn back_up(&self) -> Result<()> {
        let number = self.begun.fetch_add(1, Ordering::Relaxed);
        let place = self.context.scratch.path(&format!("backup-{number}"));
        let mut command = Command::new(self.context.binary);
        let endpoint = format!("http://{}", self.server.address);
        command.args(["backup", "--endpoint", &endpoint, "--to"]).arg(&place);
        Process::start(&mut command)?.wait(BACKUP_PATIENCE)?;
        std::fs::remove_dir_all(&place)?;
        Ok(())
    }
}
