//! A rule: which requests something happens to, what, and how often.
//!
//! ```text
//! kind=throttle table=Orders operation=PutItem rate=0.1
//! kind=latency delay=exp:20ms
//! kind=drop when=after times=1
//! ```

use std::fmt;
use std::str::FromStr;

use serde_json::Value;
use zenobe_api::Operation;

use super::distribution::DelayDistribution;

#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    pub kind: RuleKind,
    pub table: Option<Pattern>,
    pub index: Option<Pattern>,
    /// All operations of the kind, if empty.
    pub operations: Vec<Operation>,
    /// How many of the matching requests it happens to: more than 0, at most 1.
    pub rate: f64,
    /// Of those kinds that take time.
    pub delay: DelayDistribution,
    pub when: When,
    /// It happens no more often.
    pub times: Option<u64>,
}

/// What happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleKind {
    Throttle,
    Conflict,
    Error,
    Unavailable,
    Drop,
    Latency,
    Unprocessed,
    Stale,
    Status,
    Expiry,
    Stream,
    Rollover,
    Split,
}

/// Whether a request fails before its work is done, or only its answer is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum When {
    #[default]
    Before,
    After,
}

/// A name, or the beginning of names before a `*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern(String);

impl Pattern {
    pub fn matches(&self, name: &str) -> bool {
        match self.0.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => name == self.0,
        }
    }
}

impl RuleKind {
    pub const ALL: [RuleKind; 13] = [
        RuleKind::Throttle,
        RuleKind::Conflict,
        RuleKind::Error,
        RuleKind::Unavailable,
        RuleKind::Drop,
        RuleKind::Latency,
        RuleKind::Unprocessed,
        RuleKind::Stale,
        RuleKind::Status,
        RuleKind::Expiry,
        RuleKind::Stream,
        RuleKind::Rollover,
        RuleKind::Split,
    ];

    pub fn name(self) -> &'static str {
        match self {
            RuleKind::Throttle => "throttle",
            RuleKind::Conflict => "conflict",
            RuleKind::Error => "error",
            RuleKind::Unavailable => "unavailable",
            RuleKind::Drop => "drop",
            RuleKind::Latency => "latency",
            RuleKind::Unprocessed => "unprocessed",
            RuleKind::Stale => "stale",
            RuleKind::Status => "status",
            RuleKind::Expiry => "expiry",
            RuleKind::Stream => "stream",
            RuleKind::Rollover => "rollover",
            RuleKind::Split => "split",
        }
    }

    /// Whether a write of a table has this effect on its stream.
    pub fn is_of_shards(self) -> bool {
        matches!(self, RuleKind::Rollover | RuleKind::Split)
    }

    /// Whether it is something that requests meet one by one, and not a property of tables.
    pub fn is_of_requests(self) -> bool {
        !matches!(self, RuleKind::Stale | RuleKind::Status | RuleKind::Expiry | RuleKind::Stream)
    }

    fn takes_delay(self) -> bool {
        !self.is_of_requests() || self == RuleKind::Latency
    }

    /// Whether it can happen to only some of what it matches.
    fn takes_rate(self) -> bool {
        self.is_of_requests() || self == RuleKind::Stale
    }

    fn takes_index(self) -> bool {
        (self.is_of_requests() && !self.is_of_shards()) || self == RuleKind::Stale
    }

    fn takes_when(self) -> bool {
        matches!(self, RuleKind::Error | RuleKind::Unavailable | RuleKind::Drop)
    }

    /// Whether DynamoDB may do this to the operation.
    pub fn applies_to(self, operation: Operation) -> bool {
        use Operation::{
            BatchExecuteStatement, BatchGetItem, BatchWriteItem, DeleteItem, ExecuteStatement,
            ExecuteTransaction, PutItem, TransactGetItems, TransactWriteItems, UpdateItem,
        };
        match self {
            RuleKind::Conflict => matches!(
                operation,
                PutItem
                    | UpdateItem
                    | DeleteItem
                    | TransactWriteItems
                    | TransactGetItems
                    | ExecuteTransaction
            ),
            RuleKind::Unprocessed => matches!(operation, BatchGetItem | BatchWriteItem),
            RuleKind::Rollover | RuleKind::Split => matches!(
                operation,
                PutItem
                    | UpdateItem
                    | DeleteItem
                    | BatchWriteItem
                    | TransactWriteItems
                    | ExecuteStatement
                    | BatchExecuteStatement
                    | ExecuteTransaction
            ),
            _ => self.is_of_requests(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    #[error("`{0}` is not `name=value`; write a rule such as kind=throttle table=Orders rate=0.1")]
    NotAPair(String),
    #[error(
        "a rule has no `{0}`; it has kind, table, index, operation, rate, delay, when and times"
    )]
    Unknown(String),
    #[error("`{0}` is given twice")]
    Twice(&'static str),
    #[error("the rule needs a kind: {}", kinds())]
    NoKind,
    #[error("`{given}` is not a kind; the kinds are {}", kinds())]
    Kind { given: String },
    #[error(
        "`{0}` is not an operation of DynamoDB; write it as in PutItem, several with | between"
    )]
    Operation(String),
    #[error("kind={kind} has no effect on {operation}")]
    WrongOperation { kind: &'static str, operation: &'static str },
    #[error("`{0}` is not a rate; write a number above 0 and at most 1, such as 0.1")]
    Rate(String),
    #[error("times: `{0}` is not a whole number of at least 1")]
    Times(String),
    #[error("when={0} is neither before nor after (the work is done)")]
    When(String),
    #[error(transparent)]
    Delay(#[from] super::distribution::NotATime),
    #[error("kind={0} needs a delay, such as delay=100ms or delay=exp:20ms")]
    NoDelay(&'static str),
    #[error("kind={kind} takes no `{member}`")]
    Useless { kind: &'static str, member: &'static str },
    #[error(
        "a rule in JSON is an object of strings and numbers, such as {{\"kind\": \"throttle\"}}"
    )]
    NotAnObject,
}

pub fn kinds() -> String {
    RuleKind::ALL.map(RuleKind::name).join(", ")
}

/// The members of a rule as they are given.
#[derive(Default)]
struct Members {
    values: [Option<String>; NAMES.len()],
}

const NAMES: [&str; 8] = ["kind", "table", "index", "operation", "rate", "delay", "when", "times"];

impl Members {
    fn set(&mut self, name: &str, value: String) -> Result<(), RuleError> {
        let position = NAMES.iter().position(|known| *known == name);
        let position = position.ok_or_else(|| RuleError::Unknown(name.to_owned()))?;
        match self.values[position].replace(value) {
            None => Ok(()),
            Some(_) => Err(RuleError::Twice(NAMES[position])),
        }
    }

    fn rule(self) -> Result<Rule, RuleError> {
        let [kind, table, index, operation, rate, delay, when, times] = self.values;
        let kind = parse_kind(&kind.ok_or(RuleError::NoKind)?)?;
        let useless = |member| Err(RuleError::Useless { kind: kind.name(), member });
        match () {
            () if rate.is_some() && !kind.takes_rate() => return useless("rate"),
            () if times.is_some() && !kind.takes_rate() => return useless("times"),
            () if delay.is_some() && !kind.takes_delay() => return useless("delay"),
            () if when.is_some() && !kind.takes_when() => return useless("when"),
            () if operation.is_some() && !kind.is_of_requests() => return useless("operation"),
            () if index.is_some() && !kind.takes_index() => return useless("index"),
            () => {}
        }
        let delay = delay.map(|text| text.parse::<DelayDistribution>()).transpose()?;
        Ok(Rule {
            kind,
            table: table.map(Pattern),
            index: index.map(Pattern),
            operations: parse_operations(kind, operation.as_deref())?,
            rate: rate.map_or(Ok(1.0), |text| parse_rate(&text))?,
            delay: match delay {
                None if kind.takes_delay() => return Err(RuleError::NoDelay(kind.name())),
                delay => delay.unwrap_or(DelayDistribution::Fixed(0)),
            },
            when: when.map_or(Ok(When::Before), |text| parse_when(&text))?,
            times: times.map(|text| parse_times(&text)).transpose()?,
        })
    }
}

fn parse_kind(text: &str) -> Result<RuleKind, RuleError> {
    let kind = RuleKind::ALL.into_iter().find(|kind| kind.name() == text);
    kind.ok_or_else(|| RuleError::Kind { given: text.to_owned() })
}

fn parse_operations(kind: RuleKind, text: Option<&str>) -> Result<Vec<Operation>, RuleError> {
    let names = text.into_iter().flat_map(|text| text.split('|'));
    let parse = |name: &str| {
        let operation = Operation::from_name(name);
        let operation = operation.ok_or_else(|| RuleError::Operation(name.to_owned()))?;
        match kind.applies_to(operation) {
            true => Ok(operation),
            false => {
                Err(RuleError::WrongOperation { kind: kind.name(), operation: operation.name() })
            }
        }
    };
    names.map(parse).collect()
}

fn parse_rate(text: &str) -> Result<f64, RuleError> {
    let rate = text.parse::<f64>().ok().filter(|rate| *rate > 0.0 && *rate <= 1.0);
    rate.ok_or_else(|| RuleError::Rate(text.to_owned()))
}

fn parse_times(text: &str) -> Result<u64, RuleError> {
    let times = text.parse().ok().filter(|times| *times > 0);
    times.ok_or_else(|| RuleError::Times(text.to_owned()))
}

fn parse_when(text: &str) -> Result<When, RuleError> {
    match text {
        "before" => Ok(When::Before),
        "after" => Ok(When::After),
        _ => Err(RuleError::When(text.to_owned())),
    }
}

impl FromStr for Rule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Rule, RuleError> {
        let mut members = Members::default();
        for pair in text.split_whitespace() {
            let (name, value) = pair
                .split_once('=')
                .filter(|(_, value)| !value.is_empty())
                .ok_or_else(|| RuleError::NotAPair(pair.to_owned()))?;
            members.set(name, value.to_owned())?;
        }
        members.rule()
    }
}

impl Rule {
    /// A rule as a JSON object with the same members.
    pub fn from_json(value: &Value) -> Result<Rule, RuleError> {
        let mut members = Members::default();
        for (name, value) in value.as_object().ok_or(RuleError::NotAnObject)? {
            let text = match value {
                Value::String(text) => text.clone(),
                Value::Number(number) => number.to_string(),
                _ => return Err(RuleError::NotAnObject),
            };
            members.set(name, text)?;
        }
        members.rule()
    }

    /// Whether it is about this operation on one of these tables, or on this index of them.
    pub fn matches(&self, operation: Operation, tables: &[String], index: Option<&str>) -> bool {
        let is_operation = match self.operations.is_empty() {
            true => self.kind.applies_to(operation),
            false => self.operations.contains(&operation),
        };
        let is_table = match &self.table {
            None => true,
            Some(pattern) => tables.iter().any(|table| pattern.matches(table)),
        };
        is_operation && is_table && self.matches_index(index)
    }

    pub fn matches_table(&self, table: &str, index: Option<&str>) -> bool {
        self.table.as_ref().is_none_or(|pattern| pattern.matches(table))
            && self.matches_index(index)
    }

    fn matches_index(&self, index: Option<&str>) -> bool {
        match &self.index {
            None => true,
            Some(pattern) => index.is_some_and(|index| pattern.matches(index)),
        }
    }
}

impl fmt::Display for Rule {
    /// In the form that it is parsed from.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "kind={}", self.kind.name())?;
        if let Some(Pattern(table)) = &self.table {
            write!(out, " table={table}")?;
        }
        if let Some(Pattern(index)) = &self.index {
            write!(out, " index={index}")?;
        }
        if !self.operations.is_empty() {
            let names: Vec<&str> = self.operations.iter().map(Operation::name).collect();
            write!(out, " operation={}", names.join("|"))?;
        }
        if self.rate < 1.0 {
            write!(out, " rate={}", self.rate)?;
        }
        if self.kind.takes_delay() {
            write!(out, " delay={}", self.delay)?;
        }
        if self.when == When::After {
            write!(out, " when=after")?;
        }
        if let Some(times) = self.times {
            write!(out, " times={times}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rules_are_read_and_shown() {
        for text in [
            "kind=throttle table=Orders operation=PutItem|UpdateItem rate=0.1",
            "kind=conflict times=3",
            "kind=error when=after",
            "kind=unavailable",
            "kind=drop table=Test*",
            "kind=latency operation=Query rate=0.5 delay=exp:20ms",
            "kind=unprocessed operation=BatchWriteItem rate=0.25",
            "kind=stale table=Orders index=ByCustomer delay=uniform:10ms..50ms",
            "kind=status delay=2000ms",
            "kind=expiry table=Sessions delay=86400000ms",
            "kind=stream delay=normal:50ms/10ms",
            "kind=rollover table=Orders times=1",
            "kind=split operation=PutItem|BatchWriteItem rate=0.01",
        ] {
            let rule: Rule = text.parse().unwrap();
            assert_eq!(rule.to_string(), text);
        }
        let json = json!({"kind": "throttle", "table": "Orders", "rate": 0.1, "times": 2});
        let rule = Rule::from_json(&json).unwrap();
        assert_eq!(rule.to_string(), "kind=throttle table=Orders rate=0.1 times=2");
    }

    #[test]
    fn bad_rules_say_what_is_wrong() {
        for (text, expected) in [
            ("", "the rule needs a kind: throttle, conflict"),
            ("kind=slow", "`slow` is not a kind; the kinds are throttle"),
            ("kind", "`kind` is not `name=value`"),
            ("kind=drop table=", "`table=` is not `name=value`"),
            ("kind=drop ratio=1", "a rule has no `ratio`"),
            ("kind=drop kind=drop", "`kind` is given twice"),
            ("kind=drop operation=Put", "`Put` is not an operation"),
            ("kind=conflict operation=Query", "kind=conflict has no effect on Query"),
            ("kind=drop rate=0", "`0` is not a rate"),
            ("kind=drop rate=1.5", "`1.5` is not a rate"),
            ("kind=drop rate=NaN", "`NaN` is not a rate"),
            ("kind=drop times=0", "times: `0` is not a whole number of at least 1"),
            ("kind=drop when=later", "when=later is neither before nor after"),
            ("kind=drop delay=1s", "kind=drop takes no `delay`"),
            ("kind=latency", "kind=latency needs a delay"),
            ("kind=latency delay=fast", "`fast` is not a time"),
            ("kind=throttle when=after", "kind=throttle takes no `when`"),
            ("kind=status delay=1s rate=0.5", "kind=status takes no `rate`"),
            ("kind=stale delay=1s operation=Query", "kind=stale takes no `operation`"),
            ("kind=stream delay=1s index=i", "kind=stream takes no `index`"),
            ("kind=split index=i", "kind=split takes no `index`"),
            ("kind=split delay=1s", "kind=split takes no `delay`"),
            ("kind=rollover operation=GetItem", "kind=rollover has no effect on GetItem"),
        ] {
            let error = text.parse::<Rule>().expect_err(text).to_string();
            assert!(error.starts_with(expected), "{text}: {error}");
        }
        for json in [json!([]), json!({"kind": ["drop"]})] {
            assert_eq!(Rule::from_json(&json), Err(RuleError::NotAnObject));
        }
    }

    #[test]
    fn a_rule_matches_what_it_names() {
        let rule: Rule = "kind=throttle table=Or* index=i operation=Query".parse().unwrap();
        let tables = |name: &str| vec![name.to_owned()];
        assert!(rule.matches(Operation::Query, &tables("Orders"), Some("i")));
        assert!(!rule.matches(Operation::Query, &tables("Orders"), None));
        assert!(!rule.matches(Operation::Query, &tables("Items"), Some("i")));
        assert!(!rule.matches(Operation::Scan, &tables("Orders"), Some("i")));
        let any: Rule = "kind=unprocessed".parse().unwrap();
        assert!(any.matches(Operation::BatchGetItem, &[], None));
        assert!(!any.matches(Operation::GetItem, &[], None));
    }
}
