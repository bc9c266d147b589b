//! Operations by name.

use zenobe_api::{Operation, Response};

use crate::Database;

/// Why a call has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    #[error("DynamoDB has no operation `{0}`")]
    UnknownOperation(String),
    /// The operation was rejected or failed, as DynamoDB reports it.
    #[error("{exception}: {body}")]
    Exception {
        /// For example `ConditionalCheckFailedException`.
        exception: &'static str,
        /// The HTTP status of the response.
        status: u16,
        /// JSON with `__type` and `message`.
        body: String,
    },
}

impl Database {
    /// Runs an operation of DynamoDB or DynamoDB Streams, given its name and the JSON of its
    /// request. Returns the JSON of its result.
    ///
    /// # Errors
    /// Every response that DynamoDB would send with a status other than 200.
    pub async fn call(&self, operation: &str, body: impl AsRef<[u8]>) -> Result<String, CallError> {
        let operation = Operation::from_name(operation)
            .ok_or_else(|| CallError::UnknownOperation(operation.to_owned()))?;
        let Response { status, body, error, .. } =
            self.handle(operation, self.namespace(), body.as_ref()).await;
        let body = String::from_utf8_lossy(&body).into_owned();
        match error {
            None => Ok(body),
            Some(exception) => Err(CallError::Exception { exception, status, body }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use serde_json::Value;
    use zenobe_testing::TemporaryDirectory;

    use super::*;
    use crate::{Clock, ManualClock, Options};

    const TABLE: &str = r#"{
        "TableName": "Music",
        "AttributeDefinitions": [{"AttributeName": "Artist", "AttributeType": "S"}],
        "KeySchema": [{"AttributeName": "Artist", "KeyType": "HASH"}],
        "BillingMode": "PAY_PER_REQUEST"
    }"#;
    const PUT: &str =
        r#"{"TableName": "Music", "Item": {"Artist": {"S": "Nina"}, "at": {"N": "1"}}}"#;
    const SCAN: &str = r#"{"TableName": "Music"}"#;

    async fn count(database: &Database) -> Value {
        let scanned = database.call("Scan", SCAN).await.unwrap();
        serde_json::from_str::<Value>(&scanned).unwrap()["Count"].clone()
    }

    #[tokio::test]
    async fn writes_survive_closing_and_opening() {
        let directory = TemporaryDirectory::new("database");
        let database = Database::open(directory.path()).await.unwrap();
        database.call("CreateTable", TABLE).await.unwrap();
        database.call("PutItem", PUT).await.unwrap();
        assert!(Database::open(directory.path()).await.is_err(), "one process, one time");
        database.close().await.unwrap();
        assert!(database.call("PutItem", PUT).await.is_err());
        drop(database);
        let database = Database::open(directory.path()).await.unwrap();
        assert_eq!(count(&database).await, 1);
    }

    #[tokio::test]
    async fn dropping_the_last_clone_releases_the_directory() {
        let directory = TemporaryDirectory::new("dropped");
        for _ in 0..3 {
            let database = Database::open(directory.path()).await.unwrap();
            let clone = database.clone();
            drop(database);
            clone.call("ListTables", "{}").await.unwrap();
        }
    }

    #[tokio::test]
    async fn errors_are_dynamodbs() {
        let database = Database::in_memory().await.unwrap();
        let error = database.call("Scan", SCAN).await.unwrap_err();
        let CallError::Exception { exception, status, body } = &error else { panic!("{error}") };
        assert_eq!((*exception, *status), ("ResourceNotFoundException", 400));
        assert!(body.contains("Requested resource not found"), "{body}");
        let unknown = database.call("PutItems", "{}").await.unwrap_err();
        assert_eq!(unknown.to_string(), "DynamoDB has no operation `PutItems`");
    }

    #[tokio::test]
    async fn statuses_of_indexes_are_held() {
        let index_status_delay = Duration::from_secs(1);
        let options = Options { index_status_delay, ..Options::default() };
        let database = Database::open_with(options).await.unwrap();
        database.call("CreateTable", TABLE).await.unwrap();
        let update = |change: &str| {
            format!(
                r#"{{"TableName": "Music", "AttributeDefinitions": [
                    {{"AttributeName": "Artist", "AttributeType": "S"}},
                    {{"AttributeName": "Song", "AttributeType": "S"}}],
                    "GlobalSecondaryIndexUpdates": [{change}]}}"#
            )
        };
        let statuses_until = async |last: &str| {
            let mut statuses: Vec<String> = Vec::new();
            while statuses.last().is_none_or(|status| status != last) {
                let described = database.call("DescribeTable", SCAN).await.unwrap();
                let described: Value = serde_json::from_str(&described).unwrap();
                let index = &described["Table"]["GlobalSecondaryIndexes"][0];
                let status = format!("{} {}", index["IndexStatus"], index["Backfilling"]);
                if statuses.last() != Some(&status) {
                    statuses.push(status);
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            statuses
        };
        let create = r#"{"Create": {"IndexName": "songs", "Projection": {"ProjectionType": "ALL"},
            "KeySchema": [{"AttributeName": "Song", "KeyType": "HASH"}]}}"#;
        database.call("UpdateTable", update(create)).await.unwrap();
        let passed = statuses_until("\"ACTIVE\" null").await;
        let creating = ["\"CREATING\" false", "\"CREATING\" true", "\"ACTIVE\" null"];
        assert_eq!(passed, creating);
        let delete = r#"{"Delete": {"IndexName": "songs"}}"#;
        database.call("UpdateTable", update(delete)).await.unwrap();
        assert_eq!(statuses_until("null null").await[0], "\"DELETING\" null");
    }

    #[tokio::test]
    async fn a_driven_clock_expires_items() {
        let clock = Arc::new(ManualClock::new(1_000_000));
        let options = Options { clock: clock.clone(), ..Options::default() };
        let database = Database::open_with(options).await.unwrap();
        database.call("CreateTable", TABLE).await.unwrap();
        let enable = r#"{"TableName": "Music",
            "TimeToLiveSpecification": {"AttributeName": "at", "Enabled": true}}"#;
        database.call("UpdateTimeToLive", enable).await.unwrap();
        let item = PUT.replace("\"1\"", "\"1500\"");
        database.call("PutItem", item).await.unwrap();
        assert_eq!(count(&database).await, 1);
        clock.set_ms(2_000_000);
        assert_eq!(clock.now_ms(), 2_000_000);
        database.engine().run_pending_work().await.unwrap();
        assert_eq!(count(&database).await, 0);
    }
}
