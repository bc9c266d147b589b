use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::atomic::Ordering;

use zenobe_api::Operation;
use zenobe_store::layer::Layer;
use zenobe_store::{CommitOutcome, Decide, Decision, Error, Mutation, Value, WriteSet};
use zenobe_testing::TemporaryDirectory;

use super::*;
use crate::moving::{abandon_move, move_data};
use crate::{OpenError, Unservable};

/// What happens to the write that declares the target complete.
#[derive(Clone, Copy, PartialEq)]
enum Finish {
    /// It fails, and nothing is written.
    Fails,
    /// It is written, and nothing else ever happens: the process is killed.
    IsTheLast,
}

struct Target {
    below: Arc<dyn Store>,
    finish: Finish,
    has_finished: AtomicBool,
}

impl Layer for Target {
    fn below(&self) -> &Arc<dyn Store> {
        &self.below
    }

    fn write<'a>(
        &'a self,
        set: WriteSet<'a>,
        decide: &'a mut Decide<'a>,
    ) -> Pin<Box<dyn Future<Output = zenobe_store::Result<CommitOutcome>> + Send + 'a>> {
        Box::pin(async move {
            let mut is_last = false;
            let mut decide = |reads: &[Option<Value>]| {
                let Decision::Commit(batch) = decide(reads) else { return Decision::Abort };
                is_last = batch.mutations.iter().any(|mutation| {
                    matches!(mutation, Mutation::Put { value, .. } if value.ends_with(b"\ncomplete\n"))
                });
                match is_last && self.finish == Finish::Fails {
                    true => Decision::Abort,
                    false => Decision::Commit(batch),
                }
            };
            let written = self.below.write(set, &mut decide).await;
            if is_last {
                match self.finish {
                    Finish::Fails => return Err(Error::Unavailable { detail: "away".into() }),
                    Finish::IsTheLast => {
                        self.has_finished.store(true, Ordering::SeqCst);
                        pending::<()>().await;
                    }
                }
            }
            written
        })
    }
}

struct Places {
    _directory: TemporaryDirectory,
    here: Location,
    there: Location,
}

impl Places {
    fn new(name: &str) -> Places {
        let directory = TemporaryDirectory::new(name);
        let place = |name| Options::directory(directory.path().join(name)).location;
        let (here, there) = (place("here"), place("there"));
        Places { _directory: directory, here, there }
    }

    fn options(&self, location: &Location) -> Options {
        Options { location: location.clone(), ..Options::default() }
    }

    /// A database with a table, and what it takes to move it.
    async fn filled(&self) -> (Database, MovedDatabase) {
        let database = Database::open_with(self.options(&self.here)).await.unwrap();
        let table = br#"{"TableName": "table", "BillingMode": "PAY_PER_REQUEST",
            "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
            "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}]}"#;
        let namespace = database.namespace().clone();
        let created = database.handle(Operation::CreateTable, &namespace, table).await;
        assert_eq!(created.status, 200);
        let moved = MovedDatabase {
            engine: Arc::clone(database.engine()),
            embedded: database.open.embedded.clone(),
            options: database.open.options.clone(),
            is_moving: Arc::default(),
        };
        (database, moved)
    }

    /// Moves the database to a target that ends as it should.
    async fn move_with(
        &self,
        moved: &MovedDatabase,
        finish: Finish,
    ) -> (Arc<Target>, Option<Result<MoveSummary, MoveError>>) {
        let below = open(&self.there, &moved.options).await.unwrap();
        let target = Arc::new(Target { below, finish, has_finished: AtomicBool::new(false) });
        let store = Arc::clone(&target) as Arc<dyn Store>;
        let source = moved.embedded.as_ref().unwrap();
        let (from, to) = (name_of(&self.here), name_of(&self.there));
        let moving = copy(moved, source, &store, &from, &to, &|_| {});
        let ended = tokio::select! {
            biased;
            moved = moving => Some(moved),
            () = until(|| target.has_finished.load(Ordering::SeqCst)) => None,
        };
        (target, ended)
    }
}

async fn until(holds: impl Fn() -> bool) {
    while !holds() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn why(opened: Result<Database, OpenError>) -> Unservable {
    match opened {
        Err(OpenError::Unservable { why, .. }) => why,
        other => panic!("{other:?}"),
    }
}

/// Two that can be served would both be written to.
#[tokio::test]
async fn a_crash_after_the_target_is_complete_leaves_one_that_can_be_served() {
    let places = Places::new("move-crash");
    let (database, moved) = places.filled().await;
    let (target, ended) = places.move_with(&moved, Finish::IsTheLast).await;
    assert!(ended.is_none(), "it was killed");
    // What a killed process leaves: nothing more is written.
    database.store().close().await.unwrap();
    drop((database, moved));
    target.below.close().await.unwrap();
    drop(target);

    let refused = why(Database::open_with(places.options(&places.here)).await);
    assert!(matches!(refused, Unservable::Moving { .. }), "{refused:?}");
    let options = Options::default();
    move_data(&places.here, &places.there, &options, &|_| {}).await.unwrap();
    let refused = why(Database::open_with(places.options(&places.here)).await);
    assert!(matches!(refused, Unservable::Moved { .. }), "{refused:?}");
    let arrived = Database::open_with(places.options(&places.there)).await.unwrap();
    let namespace = arrived.namespace().clone();
    let tables = arrived.handle(Operation::ListTables, &namespace, b"{}").await;
    assert!(String::from_utf8_lossy(&tables.body).contains("\"table\""));
    arrived.close().await.unwrap();
}

#[tokio::test]
async fn a_target_that_cannot_be_completed_leaves_the_source_as_it_was() {
    let places = Places::new("move-fails");
    let (database, moved) = places.filled().await;
    let (target, ended) = places.move_with(&moved, Finish::Fails).await;
    assert!(matches!(ended, Some(Err(MoveError::Copy(_)))), "{ended:?}");
    target.below.close().await.unwrap();
    drop(target);
    // It takes writes, and can be opened again.
    let namespace = database.namespace().clone();
    let deleted =
        database.handle(Operation::DeleteTable, &namespace, b"{\"TableName\": \"table\"}");
    assert_eq!(deleted.await.status, 200);
    database.close().await.unwrap();
    drop((database, moved));
    let database = Database::open_with(places.options(&places.here)).await.unwrap();
    database.close().await.unwrap();
    drop(database);
    let refused = why(Database::open_with(places.options(&places.there)).await);
    assert!(matches!(refused, Unservable::Incomplete { .. }), "{refused:?}");
    let not_sealed = abandon_move(&places.here, &Options::default()).await;
    assert!(matches!(not_sealed, Err(MoveError::NotSealed(_))), "{not_sealed:?}");
}
