//! One request as a span, with the attributes of OpenTelemetry's conventions for DynamoDB.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use zenobe_engine::throughput::cause::Access;
use zenobe_engine::throughput::report::units;

use super::attributes::OtlpAttributes;
use super::trace_parent::TraceParent;
use crate::observer::ObservedRequest;

/// `SPAN_KIND_SERVER` and `STATUS_CODE_ERROR` of the protocol.
const KIND_SERVER: u32 = 2;
const STATUS_ERROR: u32 = 2;

/// A span names at most this many tables.
const TABLES_MAX: usize = 16;

/// A request, ready to be sent.
#[derive(Debug)]
pub struct Span {
    trace_id: u128,
    span_id: u64,
    parent_id: Option<u64>,
    operation: &'static str,
    error: Option<&'static str>,
    status: u16,
    started: SystemTime,
    elapsed: Duration,
    request_id: String,
    access_key: Option<String>,
    /// Half units that were read and written.
    tables: BTreeMap<String, [u64; 2]>,
    index: Option<String>,
    scanned_and_returned: Option<(u64, u64)>,
    throttle_events: u64,
}

impl Span {
    /// `None` if the caller records no trace of this request.
    pub fn of(request: &ObservedRequest<'_>) -> Option<Span> {
        let parent = request.header("traceparent").and_then(TraceParent::parse);
        if parent.is_some_and(|parent| !parent.is_sampled) {
            return None;
        }
        let facts = request.facts;
        let mut tables = BTreeMap::<String, [u64; 2]>::new();
        let of_parts = facts.parts.iter().map(|part| (&part.resource.table.name, Some(part)));
        let of_pages = facts.pages.iter().map(|page| (&page.table.name, None));
        for (name, part) in of_parts.chain(of_pages) {
            if !tables.contains_key(name) && tables.len() == TABLES_MAX {
                continue;
            }
            let halves = tables.entry(name.clone()).or_default();
            match part.map(|part| (part.access, part.halves)) {
                Some((Access::Read, read)) => halves[0] += read,
                Some((Access::Write, written)) => halves[1] += written,
                None => {}
            }
        }
        let pages = facts.pages.iter().map(|page| (page.scanned, page.returned));
        Some(Span {
            trace_id: parent.map_or_else(random_id, |parent| parent.trace_id),
            span_id: random_id() as u64 | 1,
            parent_id: parent.map(|parent| parent.span_id),
            operation: request.operation.name(),
            error: request.error,
            status: request.status,
            started: SystemTime::now().checked_sub(request.elapsed).unwrap_or(UNIX_EPOCH),
            elapsed: request.elapsed,
            request_id: request.request_id.to_owned(),
            access_key: request.access_key().map(str::to_owned),
            tables,
            index: facts.pages.iter().find_map(|page| page.index.clone()),
            scanned_and_returned: pages.reduce(|sum, page| (sum.0 + page.0, sum.1 + page.1)),
            throttle_events: facts.throttle_events(),
        })
    }

    /// The span in the JSON encoding of the protocol: ids in hexadecimal, 64-bit numbers as texts.
    pub fn encode(&self) -> Value {
        let name = match self.only_table() {
            Some(table) => format!("{} {table}", self.operation),
            None => self.operation.to_owned(),
        };
        let start = self.started.duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut span = json!({
            "traceId": format!("{:032x}", self.trace_id),
            "spanId": format!("{:016x}", self.span_id),
            "name": name,
            "kind": KIND_SERVER,
            "startTimeUnixNano": start.as_nanos().to_string(),
            "endTimeUnixNano": (start + self.elapsed).as_nanos().to_string(),
            "attributes": self.attributes(),
        });
        if let Some(parent) = self.parent_id {
            span["parentSpanId"] = json!(format!("{parent:016x}"));
        }
        // A client's mistake is not an error of the server.
        if self.status >= 500 {
            span["status"] = json!({"code": STATUS_ERROR, "message": self.error});
        }
        span
    }

    fn only_table(&self) -> Option<&str> {
        let mut tables = self.tables.keys();
        let only = tables.next()?;
        tables.next().is_none().then_some(only)
    }

    fn attributes(&self) -> Value {
        let mut attributes = OtlpAttributes::default();
        attributes.text("db.system.name", "aws.dynamodb");
        attributes.text("db.operation.name", self.operation);
        attributes.text("rpc.system", "aws-api");
        attributes.text("rpc.service", "DynamoDB");
        attributes.text("rpc.method", self.operation);
        attributes.text("aws.request_id", &self.request_id);
        attributes.number("http.response.status_code", self.status.into());
        if let Some(error) = self.error {
            attributes.text("error.type", error);
        }
        if let Some(key) = &self.access_key {
            attributes.text("zenobe.access_key", key);
        }
        if let Some(table) = self.only_table() {
            attributes.text("db.collection.name", table);
        }
        if !self.tables.is_empty() {
            attributes.texts("aws.dynamodb.table_names", self.tables.keys().cloned());
            attributes.texts("aws.dynamodb.consumed_capacity", self.consumed_capacity());
        }
        if let Some(index) = &self.index {
            attributes.text("aws.dynamodb.index_name", index);
        }
        if let Some((scanned, returned)) = self.scanned_and_returned {
            attributes.number("aws.dynamodb.scanned_count", scanned);
            attributes.number("aws.dynamodb.count", returned);
        }
        if self.throttle_events > 0 {
            attributes.number("zenobe.throttle_events", self.throttle_events);
        }
        attributes.encode()
    }

    /// One JSON text per table, as the convention says.
    fn consumed_capacity(&self) -> impl Iterator<Item = String> {
        self.tables.iter().map(|(table, [read, written])| {
            json!({
                "TableName": table,
                "CapacityUnits": units(read + written),
                "ReadCapacityUnits": units(*read),
                "WriteCapacityUnits": units(*written),
            })
            .to_string()
        })
    }
}

/// An id of zero means none.
fn random_id() -> u128 {
    rand::random::<u128>().max(1)
}
