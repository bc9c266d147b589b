//! Lines on standard error while the load generator works.

use zenobe_load::{Interval, LoadProgress, Pacing, Plan, human_count, human_time};

use crate::commands::live_line::LiveLine;

pub struct BenchDisplay {
    line: LiveLine,
    errors: u64,
}

impl BenchDisplay {
    pub fn new() -> BenchDisplay {
        BenchDisplay { line: LiveLine::new(), errors: 0 }
    }

    pub fn load(&mut self, plan: &Plan, step: LoadProgress) {
        let table = &plan.table;
        match step {
            LoadProgress::Reused => self.line.say(&format!("table {table} is loaded already")),
            LoadProgress::Replacing => {
                self.line.say(&format!("deleting table {table}, which holds other items"));
            }
            LoadProgress::Creating => self.line.say(&format!("creating table {table}")),
            LoadProgress::Loading { done, total } if self.line.is_in_place() || done == total => {
                let (done_text, total_text) = (human_count(done), human_count(total));
                let text = format!("loading {done_text} of {total_text} items into {table}");
                match done < total {
                    true => self.line.replace(&text),
                    false => self.line.say(&text),
                }
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
        self.line.say(&text);
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
        self.line.replace(&text);
    }

    /// Clears the live line, if there is one.
    pub fn end(&self) {
        self.line.end();
    }
}
