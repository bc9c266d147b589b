//! Requests from operators and tests besides DynamoDB's API: JSON over HTTP, under one path.
//!
//! | request | response |
//! |---|---|
//! | `GET /_zenobe/backup` | how far the server's backup is |
//! | `POST /_zenobe/backup` | begins to back up the server |
//! | `GET /_zenobe/clock` | the server's time |
//! | `POST /_zenobe/clock` | moves the time of a server with a driven clock |
//! | `POST /_zenobe/clock/confirm` | confirms the clock after a jump |
//! | `GET /_zenobe/cost` | the tables whose traffic has been recorded, and when |
//! | `GET /_zenobe/cost/TABLE` | the traffic and the size of a table, for `zenobe cost` |
//! | `POST /_zenobe/history` | the versions of an item, newest first |
//! | `GET /_zenobe/health/live`, `…/ready` | whether the server runs, and whether it reads and writes |
//! | `GET /_zenobe/hot-keys/TABLE` | the hottest keys of a table and its global indexes, and the heat of their partitions |
//! | `GET /_zenobe/move` | how far the server's move to another store is |
//! | `POST /_zenobe/move` | begins to move the server to another store |
//! | `GET /_zenobe/partitions/TABLE` | how a table and its global indexes are partitioned, and what they consumed |
//! | `GET /_zenobe/status` | the nodes that share the store, and who does which work |
//! | `GET`, `PUT /_zenobe/throughput/TABLE` | what happens to requests of a table that DynamoDB would throttle |
//! | `/_zenobe/test/…` | what a test may do to the server ([`test_control`]) |
//! | `GET /_zenobe/top` | operations, tables and keys, for `zenobe top` |
//! | `GET /_zenobe/triggers` | all triggers and their status |
//! | `POST /_zenobe/triggers` | adds a trigger |
//! | `GET`, `DELETE /_zenobe/triggers/NAME` | shows or removes one |

mod backup;
mod clock;
mod cost;
pub mod health;
mod history;
mod hot_keys;
mod long_work;
mod moving;
mod partitions;
mod shipping;
mod status;
mod table_metrics;
mod test_control;
mod throughput;
mod top;
mod triggers;

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use hyper::{Method, StatusCode};
use serde_json::{Value, json};
use zenobe_api::Api;
use zenobe_backup::ship::ShippingStatus;
use zenobe_database::Database;
use zenobe_engine::clock::ManualClock;
use zenobe_engine::schema::Namespace;
use zenobe_engine::{CacheStatistics, Engine};
use zenobe_monitoring::cloudwatch::CloudWatch;
use zenobe_monitoring::minute::MinuteWorker;
use zenobe_scaling::Scaling;

use crate::access::AdminRefusal;
use crate::config::Settings;
use crate::http::response::HttpAnswer;
use crate::observer::Observability;
use crate::prometheus::Exposition;
use crate::prometheus::MetricType::{Counter, Gauge};
use crate::services;
use crate::test_control::TestControl;
use crate::triggers::Triggers;

pub use backup::BackupPermission;
pub use moving::MovePermission;

/// The path of admin requests.
pub const PATH: &str = "/_zenobe/";
/// The path of health checks, open to anybody.
pub const HEALTH_PATH: &str = "/_zenobe/health/";

pub struct Admin {
    pub health: health::Health,
    engine: Arc<Engine>,
    api: Arc<Api>,
    /// The engine's clock, if it can be driven.
    clock: Option<clock::DrivenClock>,
    triggers: Arc<Triggers>,
    scaling: Arc<Scaling>,
    mover: moving::Mover,
    /// Dangling on a server without `--test-control`.
    control: Weak<TestControl>,
    backups: backup::BackupMaker,
    /// Set if the log is shipped.
    shipping: Option<Arc<ShippingStatus>>,
    /// Whether the server has several tenants, who must not know of each other.
    has_tenants: bool,
    observability: Observability,
    /// Set if the traffic of every minute is stored.
    minutes: Option<Arc<MinuteWorker>>,
    /// Set if metrics are kept.
    cloudwatch: Option<Arc<CloudWatch>>,
}

/// What the admin requests of a database depend on besides the database.
pub struct Surroundings {
    /// Dangling on a server without `--test-control`.
    pub control: Weak<TestControl>,
    /// Set if the log is shipped.
    pub shipping: Option<Arc<ShippingStatus>>,
    /// Whether the server has several tenants, who must not know of each other.
    pub has_tenants: bool,
    /// What watches the requests.
    pub observability: Observability,
    pub move_permission: MovePermission,
    pub backup_permission: BackupPermission,
}

impl Surroundings {
    pub fn of(settings: &Settings, control: Weak<TestControl>) -> Surroundings {
        Surroundings {
            control,
            shipping: None,
            has_tenants: settings.has_tenants(),
            observability: Observability::default(),
            move_permission: settings.move_permission(),
            backup_permission: settings.backup_permission(),
        }
    }
}

/// A rejected request, with advice on what to do.
#[derive(Debug)]
struct AdminError {
    status: StatusCode,
    message: String,
}

impl Admin {
    pub fn new(
        database: Database,
        clock: Option<Arc<ManualClock>>,
        triggers: Arc<Triggers>,
        minutes: Option<Arc<MinuteWorker>>,
        cloudwatch: Option<Arc<CloudWatch>>,
        scaling: Arc<Scaling>,
        surroundings: Surroundings,
    ) -> Admin {
        let engine = database.engine().clone();
        let health = health::Health::new(engine.clone());
        let api = database.api().clone();
        let clock = clock.map(clock::DrivenClock::new);
        let Surroundings {
            control,
            shipping,
            has_tenants,
            observability,
            move_permission,
            backup_permission,
        } = surroundings;
        let backups = backup::BackupMaker::new(backup_permission, database.clone());
        let mover = moving::Mover::new(move_permission, database, triggers.clone());
        Admin {
            health,
            engine,
            api,
            clock,
            triggers,
            scaling,
            mover,
            control,
            backups,
            shipping,
            has_tenants,
            observability,
            minutes,
            cloudwatch,
        }
    }

    /// Stores what has been counted so far, so that the next read includes it.
    async fn store_traffic(&self) {
        if let Some(minutes) = &self.minutes {
            minutes.flush().await;
        }
    }

    pub async fn answer(
        &self,
        namespace: &Arc<Namespace>,
        method: &Method,
        path: &str,
        query: &str,
        body: &[u8],
    ) -> HttpAnswer {
        let path = path.strip_prefix(PATH).unwrap_or_default();
        // What replaces the database can't hold it meanwhile.
        let control = self.control.upgrade().filter(|_| !path.starts_with("test/"));
        let held = match &control {
            Some(control) => Some(control.hold().await),
            None => None,
        };
        // Another database may have taken its place while this waited.
        let admin = held.as_ref().map_or(self, |instance| &instance.admin);
        admin.answer_held(namespace, method, path, query, body).await
    }

    async fn answer_held(
        &self,
        namespace: &Arc<Namespace>,
        method: &Method,
        path: &str,
        query: &str,
        body: &[u8],
    ) -> HttpAnswer {
        let outcome = match path {
            "backup" => self.backups.answer(method, body),
            "clock" => self.answer_clock(method, body).await,
            "clock/confirm" => self.confirm_clock(method).await,
            "cost" => self.answer_cost(namespace, method, query).await,
            "history" => self.answer_history(namespace, method, body).await,
            "move" => self.mover.answer(method, body),
            "status" => self.answer_status(namespace, method).await,
            "top" => self.answer_top(method),
            "triggers" => self.answer_triggers(namespace, method, body).await,
            rest => match rest.split_once('/') {
                Some(("cost", table)) => {
                    self.answer_table_cost(namespace, method, table, query).await
                }
                Some(("hot-keys", table)) => self.answer_hot_keys(namespace, method, table).await,
                Some(("partitions", table)) => {
                    self.answer_partitions(namespace, method, table).await
                }
                Some(("throughput", table)) => {
                    self.answer_throughput(namespace, method, table, body).await
                }
                Some(("triggers", name)) => self.answer_trigger(namespace, method, name).await,
                Some(("test", rest)) => self.answer_test(namespace, method, rest, body).await,
                _ => Err(AdminError::new(StatusCode::NOT_FOUND, "there is no such admin request")),
            },
        };
        match outcome {
            Ok(answer) => HttpAnswer::json(StatusCode::OK, &answer),
            Err(AdminError { status, message }) => {
                HttpAnswer::json(status, &json!({"error": message}))
            }
        }
    }

    /// Rejects requests that affect every tenant.
    fn check_alone(&self, advice: &str) -> Result<(), AdminError> {
        match self.has_tenants {
            true => {
                let message = format!("this concerns everybody who uses the server; {advice}");
                Err(AdminError::new(StatusCode::FORBIDDEN, message))
            }
            false => Ok(()),
        }
    }

    pub async fn render_metrics(&self, out: &mut Exposition) {
        out.single("zenobe_expired_items_total", Counter, self.engine.expired_items());
        out.single("zenobe_background_panics_total", Counter, self.engine.background_panics());
        let clock = self.engine.clock_status();
        let jump_ms = clock.now_ms.saturating_sub(clock.expected_ms);
        out.single("zenobe_expiry_paused", Gauge, u64::from(clock.is_paused));
        out.single("zenobe_clock_jump_seconds", Gauge, jump_ms / 1_000);
        out.single("zenobe_leases_held", Gauge, self.engine.held_leases());
        render_cache("item", self.engine.item_cache_statistics(), out);
        render_cache("query", self.engine.query_cache_statistics(), out);
        self.render_tables(out).await;
        self.render_observability(out);
        if let Some(cloudwatch) = &self.cloudwatch {
            services::render_metrics(cloudwatch, out);
        }
        history::render_history(&self.engine, out).await;
        if let Some(shipping) = &self.shipping {
            shipping::render_metrics(shipping, out);
        }
        self.triggers.render_metrics(out);
    }
}

fn render_cache(name: &str, statistics: Option<CacheStatistics>, out: &mut Exposition) {
    let Some(CacheStatistics { hits, misses, evictions, entries, size_bytes }) = statistics else {
        return;
    };
    let metric = |what: &str| format!("zenobe_{name}_cache_{what}");
    out.single(&metric("hits_total"), Counter, hits);
    out.single(&metric("misses_total"), Counter, misses);
    out.single(&metric("evictions_total"), Counter, evictions);
    out.single(&metric("entries"), Gauge, entries);
    out.single(&metric("bytes"), Gauge, size_bytes);
}

impl Admin {
    fn render_observability(&self, out: &mut Exposition) {
        let Observability { hot_keys, exporter, traffic, .. } = &self.observability;
        let not_recorded = traffic.as_ref().map_or(0, |traffic| traffic.uncounted());
        out.single("zenobe_traffic_uncounted_total", Counter, not_recorded);
        let uncounted = hot_keys.as_ref().map_or(0, |keys| keys.uncounted());
        out.single("zenobe_hot_keys_uncounted_total", Counter, uncounted);
        let (sent, dropped) = (&exporter.sent_spans, &exporter.dropped_spans);
        out.single("zenobe_otlp_sent_spans_total", Counter, sent.load(Ordering::Relaxed));
        out.single("zenobe_otlp_dropped_spans_total", Counter, dropped.load(Ordering::Relaxed));
    }
}

pub fn refuse(refusal: &AdminRefusal) -> HttpAnswer {
    HttpAnswer::json(StatusCode::FORBIDDEN, &json!({"error": refusal.to_string()}))
}

impl AdminError {
    fn new(status: StatusCode, message: impl Into<String>) -> AdminError {
        AdminError { status, message: message.into() }
    }

    fn method(allowed: &str) -> AdminError {
        AdminError::new(StatusCode::METHOD_NOT_ALLOWED, format!("this path takes {allowed}"))
    }
}

/// For paths that take one method.
fn check_method(method: &Method, allowed: &Method) -> Result<(), AdminError> {
    match method == allowed {
        true => Ok(()),
        false => Err(AdminError::method(allowed.as_str())),
    }
}

/// For paths that take GET and POST: what was posted, if anything was.
fn posted(method: &Method, body: &[u8]) -> Result<Option<Value>, AdminError> {
    match *method {
        Method::GET => Ok(None),
        Method::POST => parse(body).map(Some),
        _ => Err(AdminError::method("GET and POST")),
    }
}

fn parse(body: &[u8]) -> Result<Value, AdminError> {
    serde_json::from_slice(body).map_err(|error| {
        AdminError::new(StatusCode::BAD_REQUEST, format!("the body is not valid JSON: {error}"))
    })
}
