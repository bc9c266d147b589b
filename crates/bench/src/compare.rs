//! `zenobe-bench compare`: measures the chosen groups of rows and writes the documents.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use clap::Args;

use crate::outcome::{Chart, Finding, Outcome, Verdict};
use crate::provenance::{self, first_line};
use crate::report::{self, Run};
use crate::rows::{Context, Effort, GROUPS, Group};
use crate::subjects::peers::Installation;
use crate::surroundings::Surroundings;
use crate::{Result, machine, progress};

const SECONDS: f64 = 3.0;
const ITEMS: u64 = 100_000;
const LARGE_ITEMS: u64 = 10_000_000;
const DRAINED_ITEMS: u64 = 1_000_000;
const DRAINED_ITEMS_QUICK: u64 = 200_000;
/// Where the document of a partial run goes, below the repository.
const PARTIAL_DIRECTORY: &str = "target/compare";

#[derive(Args)]
pub struct CompareOptions {
    /// Interleaved rounds; the median counts [default: 5, with --quick 3]
    #[arg(long)]
    rounds: Option<usize>,
    /// Seconds per measurement [default: 3, with --quick 1]
    #[arg(long)]
    seconds: Option<f64>,
    /// A third of the time, with less certain figures and a large table of only one million items. As with other options that
    /// measure less, the document is written to target/compare, not to docs
    #[arg(long)]
    quick: bool,
    /// Only these groups of rows
    #[arg(long, value_delimiter = ',', value_parser = group_names())]
    only: Vec<String>,
    /// Items of the large table [default: 10 million, with --quick 1 million]
    #[arg(long)]
    large_items: Option<u64>,
    /// Items of the drained queue [default: 1 million, with --quick 200,000]
    #[arg(long)]
    drained_items: Option<u64>,
    /// Items of the other tables
    #[arg(long, default_value_t = ITEMS)]
    items: u64,
    #[command(flatten)]
    surroundings: Surroundings,
    /// A peer: its name, its version and where it is installed
    #[arg(long = "peer", num_args = 3, value_names = ["NAME", "VERSION", "DIRECTORY"])]
    peers: Vec<String>,
    /// A peer that can't be compared: its name, its version and why
    #[arg(long = "absent-peer", num_args = 3, value_names = ["NAME", "VERSION", "REASON"])]
    #[arg(allow_hyphen_values = true)]
    absent_peers: Vec<String>,
}

/// Returns whether everything could be measured. A missed target is a result, not a failure.
pub fn run(options: &CompareOptions) -> Result<bool> {
    let scratch = options.surroundings.scratch()?;
    let peers = options.installations();
    let context = Context {
        binary: &options.surroundings.binary,
        repository: &options.surroundings.repository,
        scratch: &scratch,
        peers: &peers,
        effort: options.effort(),
    };
    let run = describe(options, &peers)?;
    let outcomes: Vec<Outcome> =
        options.groups().map(|group| measure_group(group, &context)).collect();
    let repository = &options.surroundings.repository;
    match options.is_whole() {
        true => {
            write_document(&repository.join("docs"), &run, &outcomes)?;
            update_readme(&repository.join("README.md"), &run, &outcomes)?;
        }
        false => write_document(&repository.join(PARTIAL_DIRECTORY), &run, &outcomes)?,
    }
    println!("{}", report::targets(&outcomes));
    let mut findings = outcomes.iter().flat_map(|outcome| &outcome.findings);
    Ok(findings.all(|finding| finding.verdict != Verdict::Failed))
}

impl CompareOptions {
    fn groups(&self) -> impl Iterator<Item = &'static Group> {
        let wanted = |group: &&Group| {
            self.only.is_empty() || self.only.iter().any(|name| name == group.name)
        };
        GROUPS.iter().filter(wanted)
    }

    /// Whether the run measures everything, as thoroughly as it should. Only then may it replace
    /// the published figures. (The document states the number of rounds.)
    fn is_whole(&self) -> bool {
        let effort = self.effort();
        !self.quick
            && self.only.is_empty()
            && self.with_peers()
            && effort.duration.as_secs_f64() >= SECONDS
            && effort.items == ITEMS
            && effort.large_items >= LARGE_ITEMS
            && effort.drained_items >= DRAINED_ITEMS
    }

    fn with_peers(&self) -> bool {
        !(self.peers.is_empty() && self.absent_peers.is_empty())
    }

    fn effort(&self) -> Effort {
        let seconds = self.seconds.unwrap_or(if self.quick { 1.0 } else { SECONDS });
        Effort {
            rounds: self.rounds.unwrap_or(if self.quick { 3 } else { 5 }).max(1),
            duration: Duration::from_secs_f64(seconds.max(0.1)),
            items: self.items,
            large_items: self.large_items.unwrap_or(if self.quick {
                1_000_000
            } else {
                LARGE_ITEMS
            }),
            drained_items: self.drained_items.unwrap_or(if self.quick {
                DRAINED_ITEMS_QUICK
            } else {
                DRAINED_ITEMS
            }),
        }
    }

    fn installations(&self) -> Vec<Installation> {
        let installation = |words: &[String], directory| Installation {
            name: words[0].clone(),
            version: words[1].clone(),
            directory,
        };
        let installed =
            self.peers.chunks(3).map(|words| installation(words, Ok(PathBuf::from(&words[2]))));
        let absent =
            self.absent_peers.chunks(3).map(|words| installation(words, Err(words[2].clone())));
        installed.chain(absent).collect()
    }

    /// The command that repeats this run, without options that only say where things are.
    fn command(&self) -> String {
        let mut command = String::from("cargo xtask compare");
        let mut add = |text: String| {
            command.push(' ');
            command.push_str(&text);
        };
        if self.quick {
            add("--quick".into());
        }
        if let Some(rounds) = self.rounds {
            add(format!("--rounds {rounds}"));
        }
        if let Some(seconds) = self.seconds {
            add(format!("--seconds {seconds}"));
        }
        if self.items != ITEMS {
            add(format!("--items {}", self.items));
        }
        if let Some(items) = self.large_items {
            add(format!("--large-items {items}"));
        }
        if let Some(items) = self.drained_items {
            add(format!("--drained-items {items}"));
        }
        if !self.only.is_empty() {
            add(format!("--only {}", self.only.join(",")));
        }
        if !self.with_peers() {
            add("--without-peers".into());
        }
        command
    }
}

/// A group that fails becomes a row that says so: the other groups still count.
fn measure_group(group: &Group, context: &Context<'_>) -> Outcome {
    progress::say(&format!("{}: {}", group.name, group.about));
    match (group.measure)(context) {
        Ok(outcome) => {
            progress::show("");
            for finding in &outcome.findings {
                let word = finding.verdict.word().replace('*', "");
                progress::say(&format!("  {word}: {}: {}", finding.what, finding.measured));
            }
            outcome
        }
        Err(error) => {
            progress::say(&format!("  failed: {error}"));
            let finding = Finding::failed(group.name, group.about);
            Outcome { findings: vec![finding], ..Outcome::default() }
        }
    }
}

fn write_document(directory: &Path, run: &Run, outcomes: &[Outcome]) -> Result<()> {
    std::fs::create_dir_all(directory)?;
    let charts: Vec<&Chart> = outcomes.iter().flat_map(|outcome| &outcome.charts).collect();
    let chart = if charts.is_empty() { "" } else { "benchmarks.svg" };
    if !chart.is_empty() {
        std::fs::write(directory.join(chart), report::draw(&charts))?;
    }
    let document = directory.join("benchmarks.md");
    std::fs::write(&document, report::render(run, outcomes, chart))?;
    progress::say(&format!("wrote {}", document.display()));
    Ok(())
}

fn update_readme(readme: &Path, run: &Run, outcomes: &[Outcome]) -> Result<()> {
    let text = std::fs::read_to_string(readme)?;
    std::fs::write(readme, report::update_summary(&text, run, outcomes)?)?;
    progress::say("wrote the summary in README.md");
    Ok(())
}

fn describe(options: &CompareOptions, peers: &[Installation]) -> Result<Run> {
    Ok(Run {
        command: options.command(),
        commit: provenance::commit(&options.surroundings.repository),
        date: provenance::today(),
        machine: machine::describe(),
        file_system: options.surroundings.durable_file_system()?,
        versions: versions(options, peers),
        method: method(&options.effort()),
    })
}

fn method(effort: &Effort) -> String {
    format!(
        "Reads and writes are medians of {} rounds of {} s in which everything that is compared is measured in turn (reads in three \
         times as many rounds, each a third as long); the other sections say how often and how long they measured. A ratio is the median of the \
         ratios of single rounds, not the ratio of two medians, because the machine's speed varies. The range after it covers the middle \
         half of the rounds, or all of three. Another run should find most of its ratios there. Client and server share the machine, \
         and the client (the library behind `zenobe bench`) has one thread. Absolute rates differ from machine to machine and from minute to \
         minute; ratios less so. Items have about 400 bytes, tables hold {} items before anything is measured, keys are drawn evenly from \
         all of them, and every write writes new values. The large table has {} items.",
        effort.rounds,
        effort.duration.as_secs_f64(),
        crate::outcome::count(effort.items as f64),
        crate::outcome::count(effort.large_items as f64),
    )
}

/// The versions of everything measured and of what it runs on.
fn versions(options: &CompareOptions, peers: &[Installation]) -> Vec<String> {
    let mut versions =
        Vec::from_iter(first_line(Command::new(&options.surroundings.binary).arg("--version")));
    versions.extend(first_line(Command::new("rustc").arg("--version")));
    for peer in peers {
        let runs_on = match peer.name.as_str() {
            "dynalite" => first_line(Command::new("node").arg("--version"))
                .map(|version| format!(" on Node.js {version}")),
            "dynamodb-local" => first_line(Command::new("java").arg("--version"))
                .map(|version| format!(" on {version}")),
            "moto" => first_line(Command::new("python3").arg("--version"))
                .map(|version| format!(" behind gunicorn on {version}")),
            _ => None,
        };
        let runs_on = runs_on.unwrap_or_default();
        versions.push(format!("{} {}{runs_on}", peer.title(), peer.version));
    }
    versions
}

fn group_names() -> clap::builder::PossibleValuesParser {
    GROUPS.iter().map(|group| group.name).collect::<Vec<_>>().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cleanup::Scratch;
    use crate::surroundings::parsed;

    fn options(words: &str) -> CompareOptions {
        parsed(words)
    }

    #[test]
    fn an_error_does_not_reach_the_document() {
        let failing = Group {
            name: "failing",
            about: "a group that fails",
            measure: |_| Err("cannot open /home/somebody/data".into()),
        };
        let directory = tempfile::tempdir().unwrap();
        let context = Context {
            binary: Path::new("b"),
            repository: Path::new("r"),
            scratch: &Scratch::create(directory.path()).unwrap(),
            peers: &[],
            effort: options("").effort(),
        };
        let outcome = measure_group(&failing, &context);
        assert_eq!(outcome.findings[0].verdict, Verdict::Failed);
        assert!(!format!("{outcome:?}").contains("somebody"));
    }

    #[test]
    fn only_a_whole_run_may_replace_the_published_figures() {
        let peer = "--peer dynalite 4.0.0 d";
        for (words, is_whole) in [
            ("", true),
            ("--rounds 3", true),
            ("--seconds 5", true),
            ("--items 100000 --large-items 20000000", true),
            ("--absent-peer moto 5 why", true),
            ("--quick", false),
            ("--only scan", false),
            ("--seconds 1", false),
            ("--items 1000", false),
            ("--large-items 1000000", false),
            ("--drained-items 200000", false),
        ] {
            assert_eq!(options(&format!("{peer} {words}")).is_whole(), is_whole, "{words}");
        }
        assert!(!options("").is_whole());
    }

    #[test]
    fn the_command_repeats_the_run() {
        for words in [
            "",
            "--quick --rounds 2 --seconds 0.5 --items 1000 --large-items 5000 --drained-items 2000 --only scan,rest",
        ] {
            let with_peers = format!("--peer dynalite 4.0.0 d {words}");
            let command = format!("cargo xtask compare {words}");
            assert_eq!(options(&with_peers).command(), command.trim_end());
            let command = format!("{} --without-peers", command.trim_end());
            assert_eq!(options(words).command(), command);
        }
    }
}
