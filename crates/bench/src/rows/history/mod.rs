//! What history costs, and how fast it is read, restored, exported and backed up.

mod backup;
mod copies;
mod past;
mod recovery;

use crate::outcome::{Finding, Outcome};
use crate::{Result, progress};

use super::Context;

/// The parts, each with servers of its own.
const PARTS: [Part; 5] = [
    Part { about: "PutItem with recovery, `os`", measure: recovery::measure_os },
    Part { about: "PutItem with recovery, `sync`", measure: recovery::measure_sync },
    Part { about: "GetItem as of a time", measure: past::measure },
    Part { about: "restores and exports", measure: copies::measure },
    Part { about: "requests during a backup", measure: backup::measure },
];

struct Part {
    about: &'static str,
    measure: fn(&Context<'_>) -> Result<Outcome>,
}

/// A part that fails becomes a row that says so: the other parts still count.
pub fn measure(context: &Context<'_>) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    for Part { about, measure } in PARTS {
        match measure(context) {
            Ok(part) => outcome.add(part),
            Err(error) => {
                progress::say(&format!("  failed: {about}: {error}"));
                outcome.findings.push(Finding::failed("history", about));
            }
        }
    }
    Ok(outcome)
}
