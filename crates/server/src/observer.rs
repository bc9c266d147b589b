//! The observers of this server's requests. The trait is the API's, so that crates without HTTP can
//! implement it too.

use std::sync::Arc;

use zenobe_api::GatheredFacts;
use zenobe_monitoring::totals::Totals;
use zenobe_monitoring::traffic::Traffic;

use crate::hot_keys::HotKeys;
use crate::metrics::Metrics;
use crate::otlp::ExporterCounts;

pub use zenobe_api::observer::{ObservedRequest, Observers, RequestHeaders, RequestObserver};

/// The observers of a server's requests, and what admin requests show of them. The server of a fork
/// has none: its tables have the same ids as the original's.
#[derive(Clone, Default)]
pub struct Observability {
    pub observers: Observers,
    pub facts: GatheredFacts,
    pub hot_keys: Option<Arc<HotKeys>>,
    /// The counters that are stored every minute, if metrics or costs are kept.
    pub traffic: Option<Arc<Traffic>>,
    /// What tables did since the process started. They outlive a database that a test replaces.
    pub totals: Arc<Totals>,
    /// How long CloudWatch's metrics are kept; 0 keeps none.
    pub metrics_retention_days: u32,
    /// How long traffic is kept for `zenobe cost`; 0 keeps none.
    pub cost_retention_days: u32,
    pub metrics: Arc<Metrics>,
    /// How many spans were sent and dropped, if they are exported.
    pub exporter: Arc<ExporterCounts>,
}

impl Observability {
    pub fn add(&mut self, observer: Arc<dyn RequestObserver>) {
        self.observers.0.push(observer);
    }

    /// All observers as one, or none.
    pub fn observer(&self) -> Option<Arc<dyn RequestObserver>> {
        match &self.observers.0[..] {
            [] => None,
            [only] => Some(Arc::clone(only)),
            _ => Some(Arc::new(self.observers.clone())),
        }
    }
}
