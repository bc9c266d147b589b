//! The rows of leases and of nodes: items in the engine's own encoding.

use zenobe_store::Value;

use crate::error::Result;
use crate::row::Fields;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LeaseRow {
    pub work: String,
    pub node: String,
    pub term: u64,
    /// Rises with every renewal, so that others see that the holder is alive.
    pub renewals: u64,
    /// How long it must stay unchanged before another node takes it over.
    pub period_ms: u64,
    /// When the holder took it, by the holder's clock. For operators.
    pub since_ms: u64,
}

impl LeaseRow {
    pub fn is_held_by(&self, node: &str, term: u64) -> bool {
        self.node == node && self.term == term
    }

    /// Whether the stored row shows the same term of the lease.
    pub fn is_still_in(&self, stored: Option<&Value>) -> Result<bool> {
        let stored = stored.map(LeaseRow::decode).transpose()?;
        Ok(stored.is_some_and(|stored| stored.is_held_by(&self.node, self.term)))
    }

    pub fn next(&self) -> LeaseRow {
        LeaseRow { renewals: self.renewals + 1, ..self.clone() }
    }

    pub fn encode(&self) -> Value {
        let mut fields = Fields::default();
        fields.text("work", &self.work);
        fields.text("node", &self.node);
        fields.number("term", self.term);
        fields.number("renewals", self.renewals);
        fields.number("period_ms", self.period_ms);
        fields.number("since_ms", self.since_ms);
        fields.encode()
    }

    pub fn decode(row: &Value) -> Result<LeaseRow> {
        let mut fields = Fields::decode(row, "the row of a lease")?;
        Ok(LeaseRow {
            work: fields.take_text("work")?,
            node: fields.take_text("node")?,
            term: fields.take_number("term")?,
            renewals: fields.take_number("renewals")?,
            period_ms: fields.take_number("period_ms")?,
            since_ms: fields.take_number("since_ms")?,
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NodeRow {
    pub id: String,
    /// The name that operators use.
    pub name: String,
    pub started_at_ms: u64,
    pub period_ms: u64,
    pub renewals: u64,
    /// What the node's clock showed when it wrote this.
    pub clock_ms: u64,
}

impl NodeRow {
    pub fn encode(&self) -> Value {
        let mut fields = Fields::default();
        fields.text("id", &self.id);
        fields.text("name", &self.name);
        fields.number("started_at_ms", self.started_at_ms);
        fields.number("period_ms", self.period_ms);
        fields.number("renewals", self.renewals);
        fields.number("clock_ms", self.clock_ms);
        fields.encode()
    }

    pub fn decode(row: &Value) -> Result<NodeRow> {
        let mut fields = Fields::decode(row, "the row of a node")?;
        Ok(NodeRow {
            id: fields.take_text("id")?,
            name: fields.take_text("name")?,
            started_at_ms: fields.take_number("started_at_ms")?,
            period_ms: fields.take_number("period_ms")?,
            renewals: fields.take_number("renewals")?,
            clock_ms: fields.take_number("clock_ms")?,
        })
    }
}
