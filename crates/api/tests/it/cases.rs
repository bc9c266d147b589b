//! The case files and their runner.
//!
//! A file is a list of cases, each on a fresh engine with a clock that stands still:
//!
//! ```text
//! ## what the case shows
//! > Operation request body, to the end of the line
//! < status response body
//! @ advance 1000      (milliseconds)
//! @ work              (what the background has to do)
//! @ wording newer     (error texts of the newer front end)
//! @ region NAME       (of the requests from here on)
//! @ as-of TIME        (the header x-zenobe-as-of, until the next `@ as-of`)
//! @ given Operation request body, which has to succeed with whatever answer
//! @ repeat COUNT Operation request body, as if it were given so many times
//! @ object-store      (one that is configured, though no job ever reaches it)
//! ```
//!
//! Nothing in a case depends on this runner, so that one can be aimed at another endpoint.
//! `ZENOBE_BLESS=1` rewrites the answers; review them as a diff.

use std::path::PathBuf;
use std::sync::Arc;

use zenobe_api::{Api, ApiOptions, Operation, Wording};
use zenobe_engine::clock::ManualClock;
use zenobe_engine::schema::Namespace;
use zenobe_engine::{Engine, EngineOptions};
use zenobe_store::memory::MemoryStore;
use zenobe_testing::{CaseStep, replay_case_file};
use zenobe_transfer::objects::{ObjectStoreEndpoint, ObjectStoreOptions};

const START_MS: u64 = 1_765_432_100_250;

/// The names of all case files, sorted.
pub fn files() -> Vec<String> {
    let entries = std::fs::read_dir(directory()).expect("the case directory is readable");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("a directory entry").file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Runs a file's cases and compares (or rewrites) the responses. Returns a report per difference.
pub async fn check(file: &str) -> Vec<String> {
    let mut world = World::new().await;
    let carry_out = async |step: CaseStep<'_>| match step {
        CaseStep::Begin => {
            world = World::new().await;
            None
        }
        CaseStep::Request(operation, body) => Some(world.answer(operation, body).await),
        CaseStep::Directive(directive) => {
            world.obey(directive).await;
            None
        }
    };
    replay_case_file(&directory().join(file), carry_out).await
}

pub fn text(file: &str) -> String {
    std::fs::read_to_string(directory().join(file)).expect("the case file is readable")
}

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases/api")
}

pub struct World {
    clock: Arc<ManualClock>,
    engine: Arc<Engine>,
    api: Api,
    as_of: Option<String>,
    namespace: Arc<Namespace>,
}

impl World {
    pub async fn new() -> World {
        let clock = Arc::new(ManualClock::new(START_MS));
        let options = EngineOptions {
            clock: clock.clone(),
            random_seed: Some(7),
            ..EngineOptions::default()
        };
        let store = Arc::new(MemoryStore::new());
        let engine = Engine::open(store, options).await.expect("the engine opens");
        let api = Api::new(Arc::clone(&engine), ApiOptions::default());
        let namespace = Arc::new(Namespace {
            account: "000000000000".to_owned(),
            region: "us-east-1".to_owned(),
        });
        World { clock, engine, api, as_of: None, namespace }
    }

    pub async fn answer(&self, operation: &str, body: &str) -> String {
        let service = match operation {
            "DescribeStream" | "GetRecords" | "GetShardIterator" | "ListStreams" => {
                "DynamoDBStreams_20120810"
            }
            _ => "DynamoDB_20120810",
        };
        let operation = Operation::from_target(&format!("{service}.{operation}"))
            .unwrap_or_else(|| panic!("{operation} is not an operation"));
        let past = self.as_of.as_ref().map(|as_of| self.api.as_of(operation, as_of));
        let response = match &past {
            None => self.api.handle(operation, &self.namespace, body.as_bytes()).await,
            Some(Ok(past)) => past.handle(operation, &self.namespace, body.as_bytes()).await,
            Some(Err(refusal)) => refusal.clone(),
        };
        let body = String::from_utf8(response.body.to_vec()).expect("responses are UTF-8");
        format!("< {} {body}", response.status).trim_end().to_owned()
    }

    async fn carry_out(&self, request: &str) {
        let (operation, body) = request.split_once(' ').unwrap_or((request, ""));
        let answer = self.answer(operation, body).await;
        assert!(answer.starts_with("< 200 "), "{request}\n{answer}");
    }

    async fn obey(&mut self, directive: &str) {
        match directive.split_once(' ').unwrap_or((directive, "")) {
            ("advance", milliseconds) => {
                self.clock.advance_ms(milliseconds.trim().parse().expect("milliseconds"));
            }
            ("given", request) => self.carry_out(request).await,
            ("repeat", repeated) => {
                let (count, request) = repeated.split_once(' ').expect("a count and a request");
                for _ in 0..count.parse::<usize>().expect("a count") {
                    self.carry_out(request).await;
                }
            }
            ("as-of", time) => self.as_of = Some(time.to_owned()).filter(|time| !time.is_empty()),
            ("region", region) => {
                let (account, region) = (self.namespace.account.clone(), region.to_owned());
                self.namespace = Arc::new(Namespace { account, region });
            }
            ("wording", "newer") => {
                let options = ApiOptions { wording: Wording::Newer, ..ApiOptions::default() };
                self.api = Api::new(Arc::clone(&self.engine), options);
            }
            ("object-store", _) => {
                let object_store =
                    ObjectStoreOptions::new(ObjectStoreEndpoint::Directory("/".into()));
                let options =
                    ApiOptions { object_store: Some(object_store), ..ApiOptions::default() };
                self.api = Api::new(Arc::clone(&self.engine), options);
            }
            ("work", _) => self.engine.run_pending_work().await.expect("background work"),
            _ => panic!("unknown directive: {directive}"),
        }
    }
}
