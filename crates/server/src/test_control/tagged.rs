//! Rules that tables carry with them, as tags: `zenobe:test:latency` with the value `delay=exp:20ms`. They hold while the
//! table has the tag, also after a restart and in every copy.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use serde_json::Value;
use zenobe_api::Operation;
use zenobe_engine::Engine;
use zenobe_engine::catalog::Tables;
use zenobe_engine::command::TableName;

use super::rule::{Rule, RuleError};
use super::rules::{ActiveRule, number_of};

/// What follows is the kind of the rule. The value has its other pairs.
const TAG_PREFIX: &str = "zenobe:test:";

/// A rule of a table, and where it comes from.
pub struct TaggedRule {
    tag: (String, String),
    pub rule: Arc<ActiveRule>,
}

impl TaggedRule {
    pub fn describe(&self) -> Value {
        let mut description = self.rule.describe();
        description["id"] = Value::Null;
        description["tag"] = self.tag.0.as_str().into();
        description
    }
}

/// The rules of all tables that have some.
pub type TaggedRules = HashMap<TableName, Vec<Arc<TaggedRule>>>;

/// The rules in the tags of an engine's tables.
#[derive(Default)]
pub struct TaggedTables {
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    engine: Weak<Engine>,
    /// The tables from which the rules were read. Every change of a definition makes a new map.
    tables: Option<Arc<Tables>>,
    rules: Arc<TaggedRules>,
}

impl TaggedTables {
    /// From now on the tables of this engine count. No rule has matched yet.
    pub fn follow(&self, engine: &Arc<Engine>) {
        *self.known.lock() = Known { engine: Arc::downgrade(engine), ..Known::default() };
    }

    pub fn rules(&self, seed: u64) -> Arc<TaggedRules> {
        let mut known = self.known.lock();
        let Some(engine) = known.engine.upgrade() else { return Arc::default() };
        let tables = engine.known_tables();
        if known.tables.as_ref().is_none_or(|read| !Arc::ptr_eq(read, &tables)) {
            known.rules = Arc::new(read(&tables, &known.rules, seed));
            known.tables = Some(tables);
        }
        Arc::clone(&known.rules)
    }
}

/// The rules of all tables. One that was there before goes on counting.
fn read(tables: &Tables, before: &TaggedRules, seed: u64) -> TaggedRules {
    let mut found = TaggedRules::new();
    for (name, table) in tables {
        let tags = table.definition().tags.iter().filter(|(tag, _)| tag.starts_with(TAG_PREFIX));
        let rules: Vec<_> = tags
            .filter_map(|(tag, value)| {
                let known = before.get(name).into_iter().flatten();
                let same = |rule: &&Arc<TaggedRule>| rule.tag.0 == *tag && rule.tag.1 == *value;
                match known.clone().find(same) {
                    Some(rule) => Some(Arc::clone(rule)),
                    None => new_rule(name, tag, value, seed),
                }
            })
            .collect();
        if !rules.is_empty() {
            found.insert(name.clone(), rules);
        }
    }
    found
}

/// A tag that is not a rule was set without test control, where nobody checks it.
fn new_rule(table: &TableName, tag: &str, value: &str, seed: u64) -> Option<Arc<TaggedRule>> {
    match rule_of(&table.name, tag, value)? {
        Ok(rule) => {
            // The same table meets the same faults in every run.
            let id = number_of(&format!("{} {tag}", table.name));
            let rule = Arc::new(ActiveRule::new(seed, id, rule));
            Some(Arc::new(TaggedRule { tag: (tag.to_owned(), value.to_owned()), rule }))
        }
        Err(error) => {
            tracing::warn!("the tag {tag} of table {} has no effect: {error}", table.name);
            None
        }
    }
}

/// The rule that a tag asks for, if it is about rules at all.
fn rule_of(table: &str, tag: &str, value: &str) -> Option<Result<Rule, RuleError>> {
    let kind = tag.strip_prefix(TAG_PREFIX)?;
    // AWS allows no `|` in a tag.
    let pairs = value.split_whitespace().map(|pair| match pair.starts_with("operation=") {
        true => pair.replace('/', "|"),
        false => pair.to_owned(),
    });
    let pairs: Vec<String> = pairs.collect();
    Some(format!("kind={kind} table={table} {}", pairs.join(" ")).parse())
}

/// The first tag that a request sets and that is not a rule although it should be, with what is wrong.
pub fn wrong_tag(operation: Operation, request: &Value) -> Option<(String, RuleError)> {
    if !sets_tags(operation) {
        return None;
    }
    request["Tags"].as_array()?.iter().find_map(|tag| {
        let (name, value) = (tag["Key"].as_str()?, tag["Value"].as_str()?);
        Some((name.to_owned(), rule_of("Table", name, value)?.err()?))
    })
}

pub fn sets_tags(operation: Operation) -> bool {
    matches!(operation, Operation::CreateTable | Operation::TagResource)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_tag_has_the_pairs_of_a_rule() {
        let rule = |tag, value| rule_of("Orders", tag, value);
        for (tag, value, expected) in [
            ("zenobe:test:drop", "", "kind=drop table=Orders"),
            (
                "zenobe:test:latency",
                "delay=normal:50ms/10ms",
                "kind=latency table=Orders delay=normal:50ms/10ms",
            ),
            (
                "zenobe:test:throttle",
                "operation=PutItem/UpdateItem rate=0.1",
                "kind=throttle table=Orders operation=PutItem|UpdateItem rate=0.1",
            ),
        ] {
            assert_eq!(rule(tag, value).unwrap().unwrap().to_string(), expected);
        }
        assert!(rule("zenobe:throughput", "enforce").is_none());
        assert_eq!(rule("zenobe:test:drop", "table=x"), Some(Err(RuleError::Twice("table"))));
    }

    #[test]
    fn a_wrong_tag_is_named() {
        let tag = |operation, name, value| {
            wrong_tag(operation, &json!({"Tags": [{"Key": name, "Value": value}]}))
        };
        assert_eq!(tag(Operation::TagResource, "team", "x"), None);
        assert_eq!(tag(Operation::TagResource, "zenobe:test:drop", "times=1"), None);
        let wrong = RuleError::Kind { given: "slow".to_owned() };
        let expected = Some(("zenobe:test:slow".to_owned(), wrong));
        assert_eq!(tag(Operation::CreateTable, "zenobe:test:slow", ""), expected);
        assert_eq!(tag(Operation::PutItem, "zenobe:test:slow", ""), None);
    }
}
