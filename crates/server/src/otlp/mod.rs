//! Sends traces and metrics to an OpenTelemetry collector: OTLP over HTTP, in its JSON encoding.
//!
//! Each request becomes a span in a queue of fixed length. A thread of its own takes spans from the queue
//! and sends them in batches. If the collector is unreachable or slow, spans are dropped and counted: no
//! request waits for it, and memory is bounded.
//!
//! The protocol's JSON is a few objects, so this needs neither protocol buffers nor OpenTelemetry's
//! crates.

mod attributes;
mod metrics;
mod span;
mod trace_parent;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use hyper::Method;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};

use self::metrics::Period;
use self::span::Span;
use crate::observer::{Observability, ObservedRequest, RequestObserver};
use crate::outbound::{self, Outgoing, Url};

/// How many spans may be queued.
const QUEUE_LENGTH_MAX: usize = 4_096;
/// How many spans one request to the collector has at most.
const BATCH_LENGTH_MAX: usize = 512;
/// How long a span waits for others to be sent with.
const BATCH_WINDOW: Duration = Duration::from_secs(1);
const METRICS_INTERVAL: Duration = Duration::from_secs(10);
/// How long the collector may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// A batch that the collector can't take now is sent again after these times, and then dropped.
const RETRY_DELAYS: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(2)];
/// How long the last batches may take when the server stops.
const FINISH_TIMEOUT: Duration = Duration::from_secs(3);
/// The shortest time between two log lines about a collector that takes nothing.
const COMPLAINT_INTERVAL: Duration = Duration::from_secs(60);

/// How many spans were sent and dropped.
#[derive(Debug, Default)]
pub struct ExporterCounts {
    pub sent_spans: AtomicU64,
    pub dropped_spans: AtomicU64,
}

/// Turns requests into spans.
pub struct OtlpExporter {
    spans: mpsc::Sender<Span>,
    counts: Arc<ExporterCounts>,
}

impl RequestObserver for OtlpExporter {
    fn observe(&self, request: ObservedRequest<'_>) {
        // If the queue is full, the span is not even built.
        let place = match self.spans.try_reserve() {
            Ok(place) => place,
            Err(_) => {
                self.counts.dropped_spans.fetch_add(1, Ordering::Relaxed);
                return;
            }
        };
        if let Some(span) = Span::of(&request) {
            place.send(span);
        }
    }
}

/// Ends the exporter.
pub struct ExporterHandle {
    stop: oneshot::Sender<()>,
    stopped: oneshot::Receiver<()>,
}

impl ExporterHandle {
    /// Sends what is left, if the collector takes it soon.
    pub async fn finish(self) {
        let _ = self.stop.send(());
        let _ = timeout(FINISH_TIMEOUT, self.stopped).await;
    }
}

impl OtlpExporter {
    /// Sends spans of the requests that it will observe, and the metrics of `observability`.
    pub fn start(
        url: Url,
        node: String,
        observability: Observability,
    ) -> (Arc<OtlpExporter>, ExporterHandle) {
        let (spans, queue) = mpsc::channel(QUEUE_LENGTH_MAX);
        let (stop, stopping) = oneshot::channel();
        let (ended, stopped) = oneshot::channel();
        let counts = observability.exporter.clone();
        let sender = Sender::new(url, node, observability);
        let thread = std::thread::Builder::new().name("otlp".to_owned());
        let run = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            match runtime {
                Ok(runtime) => runtime.block_on(sender.run(queue, stopping)),
                Err(error) => tracing::error!(%error, "cannot start the OpenTelemetry exporter"),
            }
            let _ = ended.send(());
        };
        if let Err(error) = thread.spawn(run) {
            tracing::error!(%error, "cannot start the OpenTelemetry exporter");
        }
        (Arc::new(OtlpExporter { spans, counts }), ExporterHandle { stop, stopped })
    }
}

/// The side of the queue that talks to the collector.
struct Sender {
    url: Url,
    node: String,
    observability: Observability,
    started: SystemTime,
    complained_at: Option<Instant>,
}

impl Sender {
    fn new(url: Url, node: String, observability: Observability) -> Sender {
        Sender { url, node, observability, started: SystemTime::now(), complained_at: None }
    }

    async fn run(mut self, mut queue: mpsc::Receiver<Span>, mut stopping: oneshot::Receiver<()>) {
        let ticks = |period| {
            let mut ticks = interval_at(Instant::now() + period, period);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            ticks
        };
        let (mut batches, mut metrics) = (ticks(BATCH_WINDOW), ticks(METRICS_INTERVAL));
        let mut batch = Vec::new();
        loop {
            let room = BATCH_LENGTH_MAX - batch.len();
            tokio::select! {
                _ = &mut stopping => break,
                received = queue.recv_many(&mut batch, room) => match received {
                    // Nobody observes requests any more.
                    0 => break,
                    _ if batch.len() == BATCH_LENGTH_MAX => {
                        self.send_spans(&mut batch, &RETRY_DELAYS).await;
                    }
                    _ => {}
                },
                _ = batches.tick() => self.send_spans(&mut batch, &RETRY_DELAYS).await,
                _ = metrics.tick() => self.send_metrics().await,
            }
        }
        queue.close();
        loop {
            let room = BATCH_LENGTH_MAX - batch.len();
            let received = queue.recv_many(&mut batch, room).await;
            if received == 0 && batch.is_empty() {
                break;
            }
            self.send_spans(&mut batch, &[]).await;
        }
        self.send_metrics().await;
    }

    async fn send_spans(&mut self, batch: &mut Vec<Span>, delays: &[Duration]) {
        if batch.is_empty() {
            return;
        }
        let spans: Vec<Value> = batch.drain(..).map(|span| span.encode()).collect();
        let count = spans.len() as u64;
        let scope = json!({"scope": scope(), "spans": spans});
        let body = json!({
            "resourceSpans": [{"resource": self.resource(), "scopeSpans": [scope]}],
        });
        let counts = Arc::clone(&self.observability.exporter);
        match self.send("v1/traces", &body, delays).await {
            true => counts.sent_spans.fetch_add(count, Ordering::Relaxed),
            false => counts.dropped_spans.fetch_add(count, Ordering::Relaxed),
        };
    }

    /// Metrics are cumulative: the next ones make up for those that are lost.
    async fn send_metrics(&mut self) {
        let nanoseconds =
            |time: SystemTime| time.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let period =
            Period { start_ns: nanoseconds(self.started), now_ns: nanoseconds(SystemTime::now()) };
        let dropped = self.observability.exporter.dropped_spans.load(Ordering::Relaxed);
        let metrics = metrics::encode(&self.observability, dropped, period);
        let scope = json!({"scope": scope(), "metrics": metrics});
        let body = json!({
            "resourceMetrics": [{"resource": self.resource(), "scopeMetrics": [scope]}],
        });
        self.send("v1/metrics", &body, &[]).await;
    }

    /// Whether the collector has taken the body.
    async fn send(&mut self, path: &str, body: &Value, delays: &[Duration]) -> bool {
        let path = format!("{}/{path}", self.url.path().trim_end_matches('/'));
        let body = Bytes::from(body.to_string());
        let mut delays = delays.iter();
        loop {
            let content_type = (CONTENT_TYPE, HeaderValue::from_static("application/json"));
            let outgoing = Outgoing {
                method: Method::POST,
                path: path.clone(),
                headers: HeaderMap::from_iter([content_type]),
                body: body.clone(),
            };
            let (problem, is_final) =
                match outbound::send(&self.url, outgoing, ANSWER_TIMEOUT).await {
                    Ok(answered) if answered.is_success() => return true,
                    Ok(answered) => {
                        (format!("it answered {}", answered.status), !is_busy(answered.status))
                    }
                    Err(error) => (error.to_string(), false),
                };
            match delays.next().filter(|_| !is_final) {
                Some(delay) => tokio::time::sleep(*delay).await,
                None => {
                    self.complain(&path, &problem);
                    return false;
                }
            }
        }
    }

    fn complain(&mut self, path: &str, problem: &str) {
        let now = Instant::now();
        if self.complained_at.is_some_and(|last| now - last < COMPLAINT_INTERVAL) {
            return;
        }
        self.complained_at = Some(now);
        let url = self.url.authority();
        tracing::warn!(url, path, problem, "the OpenTelemetry collector accepted nothing");
    }

    fn resource(&self) -> Value {
        let mut attributes = attributes::OtlpAttributes::default();
        attributes.text("service.name", "zenobe");
        attributes.text("service.version", env!("CARGO_PKG_VERSION"));
        attributes.text("service.instance.id", &self.node);
        json!({"attributes": attributes.encode()})
    }
}

fn scope() -> Value {
    json!({"name": "zenobe", "version": env!("CARGO_PKG_VERSION")})
}

/// The answers after which the protocol lets a client try again.
fn is_busy(status: u16) -> bool {
    matches!(status, 429 | 502 | 503 | 504)
}
