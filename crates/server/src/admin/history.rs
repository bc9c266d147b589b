//! The history of an item, and the sizes of tables' histories and backups.

use std::sync::Arc;
use std::time::Duration;

use hyper::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::time::timeout;
use zenobe_engine::Engine;
use zenobe_engine::backups::BackupSize;
use zenobe_engine::error::Error;
use zenobe_engine::history::HistorySize;
use zenobe_engine::jobs::JobRow;
use zenobe_engine::schema::Namespace;

use super::{Admin, AdminError, check_method};
use crate::prometheus::Exposition;
use crate::prometheus::MetricType::Gauge;

/// At most this many tables and jobs have their own metrics.
const SERIES_MAX: usize = 1_000;
/// How long a scrape waits for the store.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);

impl Admin {
    pub(super) async fn answer_history(
        &self,
        namespace: &Arc<Namespace>,
        method: &Method,
        body: &[u8],
    ) -> Result<Value, AdminError> {
        check_method(method, &Method::POST)?;
        let response = self.api.item_history(namespace, body).await;
        let answer: Value = serde_json::from_slice(&response.body).unwrap_or(Value::Null);
        if response.error.is_none() {
            return Ok(answer);
        }
        let status = StatusCode::from_u16(response.status).unwrap_or(StatusCode::BAD_REQUEST);
        let message = answer["message"].as_str().or(answer["Message"].as_str());
        Err(AdminError::new(status, message.unwrap_or("the body is not valid JSON")))
    }

    /// The tables with a history, the backups and the jobs under way, for `zenobe status`. A tenant sees its own.
    pub(super) async fn history_status(
        &self,
        namespace: &Namespace,
    ) -> Result<HistoryStatus, Error> {
        let is_shown = |owner: &Namespace| !self.has_tenants || owner == namespace;
        let sizes = self.engine.history_sizes().await?;
        let backups = self.engine.backup_sizes().await?;
        let jobs = self.engine.open_jobs().await?;
        let size = |size: &HistorySize| {
            json!({
                "table": size.table.name,
                "period_days": size.period_days,
                "size_bytes": size.size_bytes,
                "versions": size.versions,
            })
        };
        let backup = |size: &BackupSize| {
            json!({
                "table": size.table,
                "backups": size.backups,
                "size_bytes": size.size_bytes,
            })
        };
        let job = |job: &JobRow| {
            json!({
                "kind": job.kind,
                "id": job.id,
                "table": job.table,
                "started_at_ms": job.started_at_ms,
                "items": items_done(job),
            })
        };
        let sizes = sizes.iter().filter(|size| is_shown(&size.table.namespace));
        let backups = backups.iter().filter(|backup| is_shown(&backup.namespace));
        let jobs = jobs.iter().filter(|job| is_shown(&job.namespace));
        Ok(HistoryStatus {
            history: sizes.map(size).collect(),
            backups: backups.map(backup).collect(),
            jobs: jobs.map(job).collect(),
        })
    }
}

/// Lists, in JSON.
#[derive(Default)]
pub(super) struct HistoryStatus {
    pub history: Value,
    pub backups: Value,
    pub jobs: Value,
}

/// The sizes are left out if the store does not answer in time, so that a scrape still gets all other metrics.
pub(super) async fn render_history(engine: &Engine, out: &mut Exposition) {
    if let Ok(Ok(sizes)) = timeout(PATIENCE, engine.history_sizes()).await {
        let mut metric = out.metric("zenobe_history_bytes", Gauge);
        for HistorySize { table, size_bytes, .. } in sizes.iter().take(SERIES_MAX) {
            metric.sample(&labels(&table.name, &table.namespace), size_bytes);
        }
        let mut metric = out.metric("zenobe_history_versions", Gauge);
        for HistorySize { table, versions, .. } in sizes.iter().take(SERIES_MAX) {
            metric.sample(&labels(&table.name, &table.namespace), versions);
        }
    }
    if let Ok(Ok(sizes)) = timeout(PATIENCE, engine.backup_sizes()).await {
        let mut metric = out.metric("zenobe_backups", Gauge);
        for size in sizes.iter().take(SERIES_MAX) {
            metric.sample(&labels(&size.table, &size.namespace), size.backups);
        }
        let mut metric = out.metric("zenobe_backup_bytes", Gauge);
        for size in sizes.iter().take(SERIES_MAX) {
            metric.sample(&labels(&size.table, &size.namespace), size.size_bytes);
        }
    }
    let mut metric = out.metric("zenobe_job_items", Gauge);
    for job in engine.running_jobs().iter().take(SERIES_MAX) {
        let table = job.table.as_deref().unwrap_or_default();
        let labels = [("kind", job.kind.as_str()), ("id", &job.id), ("table", table)];
        metric.sample(&labels, items_done(job));
    }
}

/// Tables of different accounts may have the same name.
fn labels<'l>(table: &'l str, of: &'l Namespace) -> [(&'l str, &'l str); 3] {
    [("table", table), ("account", &of.account), ("region", &of.region)]
}

/// How many items a job has done, if it counts them.
fn items_done(job: &JobRow) -> u64 {
    let counts = ["items", "processed"].iter();
    let counted = counts.filter_map(|name| match job.progress.get(*name) {
        Some(zenobe_value::AttributeValue::N(number)) => number.to_i64(),
        _ => None,
    });
    counted.map(i64::unsigned_abs).next().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use futures_util::future::{BoxFuture, FutureExt, pending};
    use zenobe_api::{Api, ApiOptions, Operation};
    use zenobe_engine::EngineOptions;
    use zenobe_store::layer::Layer;
    use zenobe_store::memory::MemoryStore;
    use zenobe_store::{Key, Result, Store, Value};

    use super::*;

    /// An unreachable store: reads of many keys wait forever.
    struct HangingStore(Arc<dyn Store>);

    impl Layer for HangingStore {
        fn below(&self) -> &Arc<dyn Store> {
            &self.0
        }

        fn get_many<'a>(&'a self, _: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Value>>>> {
            pending().boxed()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn metrics_do_not_wait_for_a_store_that_is_away() {
        let store = Arc::new(HangingStore(Arc::new(MemoryStore::new())));
        let engine = Engine::open(store, EngineOptions::default()).await.unwrap();
        let mut out = Exposition::default();
        render_history(&engine, &mut out).await;
        let text = out.into_text();
        assert!(text.contains("zenobe_job_items"), "{text}");
        assert!(!text.contains("zenobe_history_bytes"), "{text}");
    }

    /// Prometheus refuses a series that appears twice.
    #[tokio::test]
    async fn tables_of_different_accounts_have_series_of_their_own() {
        let store = Arc::new(MemoryStore::new());
        let engine = Engine::open(store, EngineOptions::default()).await.unwrap();
        let api = Api::new(Arc::clone(&engine), ApiOptions::default());
        let recovery = json!({"PointInTimeRecoveryEnabled": true});
        let create = json!({
            "TableName": "Same",
            "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
            "BillingMode": "PAY_PER_REQUEST",
        });
        let requests = [
            (Operation::CreateTable, create),
            (
                Operation::UpdateContinuousBackups,
                json!({"TableName": "Same", "PointInTimeRecoverySpecification": recovery}),
            ),
            (Operation::CreateBackup, json!({"TableName": "Same", "BackupName": "first"})),
        ];
        for account in ["1", "2"] {
            let namespace = Arc::new(Namespace { account: account.into(), region: "r".into() });
            for (operation, request) in &requests {
                let body = request.to_string();
                let answer = api.handle(*operation, &namespace, body.as_bytes()).await;
                assert_eq!(answer.status, 200, "{operation:?}: {:?}", answer.body);
            }
        }
        let mut out = Exposition::default();
        render_history(&engine, &mut out).await;
        let text = out.into_text();
        for name in ["zenobe_history_bytes", "zenobe_history_versions", "zenobe_backups"] {
            for account in ["1", "2"] {
                let labels = format!("table=\"Same\",account=\"{account}\",region=\"r\"");
                let series = format!("{name}{{{labels}}} ");
                assert!(text.lines().any(|line| line.starts_with(&series)), "{series} in\n{text}");
            }
        }
    }
}
