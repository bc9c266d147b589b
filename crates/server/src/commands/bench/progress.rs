//! Lines on standard error while the load generator works.

use std::io::{self, IsTerminal, Write};

use zenobe_load::{Interval, LoadProgress, Pacing, Plan, human_count, human_time};

pub struct BenchDisplay {
    /// On a terminal a line replaces the previous one.
    in_place: bool,
    errors: u64,
}

impl BenchDisplay {
    pub fn new() -> BenchDisplay {
        BenchDisplay { in_place: io::stderr().is_terminal(), errors: 0 }
    }

    pub fn load(&mut self, plan: &Plan, step: LoadProgress) {
        let table = &plan.table;
        match step {
            LoadProgress::Reused => self.line(&format!("table {table} is loaded already"), false),
            LoadProgress::Replacing => {
                self.line(&format!("deleting table {table}, which holds other items"), false);
            }
            LoadProgress::Creating => self.line(&format!("creating table {table}"), false),
            LoadProgress::Loading { done, total } if self.in_place || done == total => {
                let (done_text, total_text) = (human_count(done), human_count(total));
                let text = format!("loading {done_text} of {total_text} items into {table}");
                self.line(&text, done < total);
            }
            LoadProgress::Loading { .. } => (),
        }
    }

    pub fn begin(&mut self, plan: &Plan) {
        let pace = match plan.pacing {
            Pacing::Closed => "as fast as it answers".to_owned(),
            Pacing::Open { requests_per_second } => format!("at {requests_per_second} requests/s"),
        };
        let text = format!(
            "running {} on {} with {} connections, {pace}",
            plan.workload, plan.target, plan.connections
        );
        self.line(&text, false);
    }

    pub fn interval(&mut self, interval: &Interval) {
        self.errors += interval.errors;
        let text = format!(
            "{:>8} {:>4.0} s  {:>9} requests/s  p50 {:>8}  p99 {:>8}  max {:>8}  errors {}",
            if interval.warmup { "warm-up" } else { "" },
            (interval.start + interval.length).as_secs_f64(),
            human_count(interval.requests_per_second().round() as u64),
            human_time(interval.p50),
            human_time(interval.p99),
            human_time(interval.max),
            human_count(self.errors),
        );
        self.line(&text, true);
    }

    /// Clears the live line, if there is one.
    pub fn end(&mut self) {
        if self.in_place {
            eprint!("\r\x1b[2K");
        }
        let _ = io::stderr().flush();
    }

    /// A `live` line will be replaced, if possible.
    fn line(&mut self, text: &str, live: bool) {
        match (self.in_place, live) {
            (false, _) => eprintln!("{text}"),
            (true, false) => eprintln!("\r\x1b[2K{text}"),
            (true, true) => eprint!("\r\x1b[2K{text}"),
        }
        let _ = io::stderr().flush();
    }
}
