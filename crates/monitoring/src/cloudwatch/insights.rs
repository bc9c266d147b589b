//! Reports of Contributor Insights. Keys are counted elsewhere; CloudWatch only asks for the report.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use zenobe_engine::schema::Namespace;

/// The keys that contribute most to what a rule counts.
#[derive(Debug, Clone, PartialEq)]
pub struct InsightReport {
    /// The names of the key's attributes.
    pub key_labels: Vec<String>,
    /// The greatest first.
    pub contributors: Vec<Contributor>,
    /// The time that was counted.
    pub from_ms: u64,
    pub to_ms: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Contributor {
    /// The values of the key's attributes, as text.
    pub keys: Vec<String>,
    pub value: f64,
}

pub trait InsightReports: Send + Sync {
    /// The report of a rule by its name; `None` if there is no such rule.
    fn report<'a>(
        &'a self,
        namespace: &'a Arc<Namespace>,
        rule: &'a str,
    ) -> BoxFuture<'a, Option<InsightReport>>;
}
