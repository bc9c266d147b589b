//! The case files in `tests/cases/scaling`: `## title`, `> Operation body` and `< status answer`. Each case has a fresh engine with
//! a table. `@ minutes 3` passes minutes. `ZENOBE_BLESS=1` rewrites the answers; review them as a diff.

use std::path::PathBuf;

use zenobe_testing::{CaseStep, replay_case_file};

use crate::world::World;

#[tokio::test]
async fn answers_are_as_recorded() {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases/scaling");
    let mut reports = Vec::new();
    for entry in std::fs::read_dir(directory).expect("the case directory is readable") {
        let path = entry.expect("a directory entry").path();
        let mut world = World::new().await;
        let carry_out = async |step: CaseStep<'_>| match step {
            CaseStep::Begin => {
                world = World::new().await;
                world.create_table(5).await;
                None
            }
            CaseStep::Request(operation, body) => {
                let (status, answer) = world.scaling(operation, body).await;
                Some(format!("< {status} {answer}"))
            }
            CaseStep::Directive(directive) => {
                if let Some(minutes) = directive.strip_prefix("minutes ") {
                    world.pass_minutes(minutes.parse().expect("a number of minutes")).await;
                }
                None
            }
        };
        reports.extend(replay_case_file(&path, carry_out).await);
    }
    assert!(reports.is_empty(), "{}", reports.join("\n"));
}
