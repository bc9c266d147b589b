//! Who watches the requests of this server. The trait is the API's, so that crates without HTTP can
//! watch too.

use std::sync::Arc;

use zenobe_api::GatheredFacts;
use zenobe_monitoring::traffic::Traffic;

use crate::hot_keys::HotKeys;
use crate::metrics::Metrics;
use crate::otlp::ExporterCounts;

pub use zenobe_api::observer::{ObservedRequest, Observers, RequestObserver};

/// What watches a server's requests, and what admin requests show of it. The server of a fork watches
/// nothing: its tables have the ids of others.
#[derive(Clone, Default)]
pub struct Watch {
    pub observers: Observers,
    pub facts: GatheredFacts,
    pub hot_keys: Option<Arc<HotKeys>>,
    /// Counts what is stored every minute, if anything is.
    pub traffic: Option<Arc<Traffic>>,
    /// How long CloudWatch's metrics are kept; 0 keeps none.
    pub metrics_retention_days: u32,
    /// How long traffic is kept for `zenobe cost`; 0 keeps none.
    pub cost_retention_days: u32,
    pub metrics: Arc<Metrics>,
    /// What became of the spans, if they are exported.
    pub exporter: Arc<ExporterCounts>,
}

impl Watch {
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
