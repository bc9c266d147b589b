//! A database whose object store is a directory of buckets.

use serde_json::Value;
use zenobe_database::{CallError, Database, ObjectStoreEndpoint, ObjectStoreOptions, Options};
use zenobe_testing::TemporaryDirectory;

/// The database, and the directory of its buckets, of which there are none yet.
pub async fn open_with_buckets(options: Options) -> (Database, TemporaryDirectory) {
    let buckets = TemporaryDirectory::new("buckets");
    let endpoint = ObjectStoreEndpoint::Directory(buckets.path().to_owned());
    let object_store = Some(ObjectStoreOptions::new(endpoint));
    let database = Database::open_with(Options { object_store, ..options }).await.unwrap();
    (database, buckets)
}

pub async fn call(database: &Database, operation: &str, body: Value) -> Result<Value, CallError> {
    let answer = database.call(operation, body.to_string()).await?;
    Ok(serde_json::from_str(&answer).unwrap())
}
