//! The rules that hold now, with how often each has matched and fired.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::RwLock;
use serde_json::{Value, json};
use zenobe_api::Operation;
use zenobe_database::Lateness;
use zenobe_engine::Engine;
use zenobe_engine::command::TableName;
use zenobe_engine::schema::Namespace;
use zenobe_engine::throughput::cause::Access;

use super::draw::Draws;
use super::request_subjects::RequestSubjects;
use super::rule::{Rule, RuleKind};
use super::tagged::TaggedTables;

/// Each request is compared with all of them.
const RULES_MAX: usize = 100;

/// The column of a rule's numbers that decides whether it fires.
const FIRES: u64 = 0;

pub struct Rules {
    seed: u64,
    /// Those of the command line, which [`Rules::reset`] returns to.
    initial: Vec<Rule>,
    active: RwLock<Active>,
    tagged: TaggedTables,
}

#[derive(Clone, Default)]
struct Active {
    rules: Arc<Vec<Arc<ActiveRule>>>,
    last_id: u64,
}

pub struct ActiveRule {
    id: u64,
    pub rule: Rule,
    draws: Draws,
    matched: AtomicU64,
    fired: AtomicU64,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there are {RULES_MAX} rules already; remove some first")]
pub struct TooManyRules;

impl Rules {
    pub fn new(seed: u64, initial: Vec<Rule>) -> Rules {
        let active = RwLock::new(activate(seed, &initial));
        Rules { seed, initial, active, tagged: TaggedTables::default() }
    }

    /// The same rules, none of which has matched yet: whoever uses them meets the same faults again.
    pub fn copied(&self) -> Rules {
        let active = self.active.read().clone();
        let again = |rule: &Arc<ActiveRule>| {
            Arc::new(ActiveRule::new(self.seed, rule.id, rule.rule.clone()))
        };
        let rules = Arc::new(active.rules.iter().map(again).collect());
        let active = RwLock::new(Active { rules, last_id: active.last_id });
        let (initial, tagged) = (self.initial.clone(), TaggedTables::default());
        Rules { seed: self.seed, initial, active, tagged }
    }

    /// Takes also the rules in the tags of the engine's tables.
    pub fn follow(&self, engine: &Arc<Engine>) {
        self.tagged.follow(engine);
    }

    /// Returns to the rules of the command line, as after a start.
    pub fn reset(&self) {
        *self.active.write() = activate(self.seed, &self.initial);
    }

    pub fn add(&self, rule: Rule) -> Result<Arc<ActiveRule>, TooManyRules> {
        let mut active = self.active.write();
        if active.rules.len() >= RULES_MAX {
            return Err(TooManyRules);
        }
        active.last_id += 1;
        let added = Arc::new(ActiveRule::new(self.seed, active.last_id, rule));
        active.rules = Arc::new(active.rules.iter().cloned().chain([added.clone()]).collect());
        Ok(added)
    }

    /// Returns whether there was such a rule.
    pub fn remove(&self, id: u64) -> bool {
        let mut active = self.active.write();
        let before = active.rules.len();
        active.rules = Arc::new(active.rules.iter().filter(|it| it.id != id).cloned().collect());
        active.rules.len() < before
    }

    pub fn clear(&self) {
        self.active.write().rules = Arc::default();
    }

    pub fn describe(&self) -> Value {
        let mut rules: Vec<Value> = self.active().iter().map(|rule| rule.describe()).collect();
        let tagged = self.tagged.rules(self.seed);
        let mut tagged: Vec<Value> = tagged.values().flatten().map(|it| it.describe()).collect();
        tagged.sort_by_key(|description| description["rule"].to_string());
        rules.append(&mut tagged);
        json!({"seed": self.seed, "faults": rules})
    }

    pub fn are_empty(&self) -> bool {
        self.active().is_empty() && self.tagged.rules(self.seed).is_empty()
    }

    /// The rules that a request about these tables may meet: those of the server, then those of the tables.
    pub fn of_tables(&self, namespace: &Arc<Namespace>, tables: &[String]) -> Vec<Arc<ActiveRule>> {
        let mut rules = Vec::clone(&self.active());
        let tagged = self.tagged.rules(self.seed);
        if !tagged.is_empty() {
            for table in tables {
                let name = TableName { namespace: Arc::clone(namespace), name: table.clone() };
                rules.extend(tagged.get(&name).into_iter().flatten().map(|it| it.rule.clone()));
            }
        }
        rules
    }

    pub fn active(&self) -> Arc<Vec<Arc<ActiveRule>>> {
        self.active.read().rules.clone()
    }

    /// The rules of this kind about a table or an index.
    fn about(
        &self,
        kind: RuleKind,
        table: &TableName,
        index: Option<&str>,
    ) -> Vec<Arc<ActiveRule>> {
        let mut rules = self.of_tables(&table.namespace, std::slice::from_ref(&table.name));
        rules.retain(|it| it.rule.kind == kind && it.rule.matches_table(&table.name, index));
        rules
    }

    /// The rules that say how long a change of the table's status takes.
    pub fn of_status(&self, table: &TableName) -> Vec<Arc<ActiveRule>> {
        self.about(RuleKind::Status, table, None)
    }
}

fn activate(seed: u64, rules: &[Rule]) -> Active {
    let numbered = (1..).zip(rules);
    let rules: Vec<_> =
        numbered.map(|(id, rule)| Arc::new(ActiveRule::new(seed, id, rule.clone()))).collect();
    Active { last_id: rules.len() as u64, rules: Arc::new(rules) }
}

/// A rule that has decided to happen.
pub struct Fired<'r> {
    pub rule: &'r ActiveRule,
    /// Which of the rule's matches it was.
    position: u64,
}

impl Fired<'_> {
    pub fn delay_ms(&self) -> u64 {
        self.rule.rule.delay.draw_ms(self.rule.draws, self.position)
    }

    /// One of this many, chosen by the same draw.
    pub fn choose(&self, count: usize) -> usize {
        let chosen = self.rule.draws.at(FIRES + 3, self.position) * count as f64;
        (chosen as usize).min(count.saturating_sub(1))
    }
}

impl ActiveRule {
    pub fn new(seed: u64, id: u64, rule: Rule) -> ActiveRule {
        let draws = Draws::new(seed, id);
        ActiveRule { id, rule, draws, matched: AtomicU64::new(0), fired: AtomicU64::new(0) }
    }

    pub fn matches(&self, operation: Operation, subjects: &RequestSubjects) -> bool {
        // A statement may read or write.
        let is_access = !self.rule.kind.is_of_shards() || subjects.access == Some(Access::Write);
        is_access && self.rule.matches(operation, &subjects.tables, subjects.index.as_deref())
    }

    /// Counts a match, and decides whether the rule happens to it.
    pub fn fire(&self) -> Option<Fired<'_>> {
        let position = self.matched.fetch_add(1, Ordering::Relaxed);
        if self.draws.at(FIRES, position) >= self.rule.rate {
            return None;
        }
        let times = self.rule.times.unwrap_or(u64::MAX);
        let counted = self.fired.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |fired| {
            (fired < times).then_some(fired + 1)
        });
        counted.ok().map(|_| Fired { rule: self, position })
    }

    /// A time that is always the same for the same thing, which is not counted.
    fn fixed_delay_ms(&self, thing: u64) -> u64 {
        self.rule.delay.draw_ms(self.draws, thing)
    }

    pub fn describe(&self) -> Value {
        let mut description = json!({"id": self.id, "rule": self.rule.to_string()});
        if !matches!(self.rule.kind, RuleKind::Expiry | RuleKind::Stream) {
            description["matched"] = self.matched.load(Ordering::Relaxed).into();
            description["fired"] = self.fired.load(Ordering::Relaxed).into();
        }
        description
    }
}

/// The engine asks these. A property of a table is drawn once for the table.
impl Lateness for Rules {
    fn read_lag_ms_max(&self) -> u64 {
        let (rules, tagged) = (self.active(), self.tagged.rules(self.seed));
        let rules = rules.iter().chain(tagged.values().flatten().map(|it| &it.rule));
        let stale = rules.filter(|it| it.rule.kind == RuleKind::Stale);
        stale.map(|it| it.rule.delay.max_ms()).max().unwrap_or(0)
    }

    fn read_lag_ms(&self, table: &TableName, index: Option<&str>) -> u64 {
        let rules = self.about(RuleKind::Stale, table, index);
        rules.iter().filter_map(|rule| rule.fire()).map(|fired| fired.delay_ms()).max().unwrap_or(0)
    }

    fn index_status_delay(&self, table: &TableName) -> Duration {
        let rules = self.of_status(table);
        let held_ms = rules.iter().map(|rule| rule.fixed_delay_ms(number_of(&table.name))).max();
        Duration::from_millis(held_ms.unwrap_or(0))
    }

    fn expiry_delay_ms(&self, table: &TableName) -> u64 {
        let rules = self.about(RuleKind::Expiry, table, None);
        rules.iter().map(|rule| rule.fixed_delay_ms(number_of(&table.name))).max().unwrap_or(0)
    }

    fn record_delay_ms(&self, table: &TableName, shard: u32, entry: u64) -> u64 {
        let record = (u64::from(shard) << 40) ^ entry;
        let rules = self.about(RuleKind::Stream, table, None);
        rules.iter().map(|rule| rule.fixed_delay_ms(record)).max().unwrap_or(0)
    }
}

/// A number for a name, the same in every run (FNV-1a).
pub fn number_of(name: &str) -> u64 {
    name.bytes().fold(0xCBF2_9CE4_8422_2325, |number, byte| {
        (number ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(texts: &[&str]) -> Rules {
        Rules::new(42, texts.iter().map(|text| text.parse().unwrap()).collect())
    }

    fn pattern(rules: &Rules, count: usize) -> Vec<bool> {
        let rule = rules.active()[0].clone();
        (0..count).map(|_| rule.fire().is_some()).collect()
    }

    #[test]
    fn a_rule_fires_at_its_rate_and_repeats_after_a_reset_and_in_a_copy() {
        let rules = rules(&["kind=error rate=0.25"]);
        let first = pattern(&rules, 1_000);
        let fired = first.iter().filter(|fired| **fired).count();
        assert!((200..300).contains(&fired), "{fired}");
        let description = &rules.describe()["faults"][0];
        assert_eq!(description["matched"], 1_000);
        assert_eq!(description["fired"], fired);
        assert_eq!(pattern(&rules.copied(), 1_000), first);
        rules.reset();
        assert_eq!(pattern(&rules, 1_000), first);
        assert_ne!(pattern(&rules, 1_000), first, "it goes on");
    }

    #[test]
    fn a_rule_fires_no_more_often_than_it_may() {
        let rules = rules(&["kind=error times=3"]);
        assert_eq!(pattern(&rules, 5), [true, true, true, false, false]);
    }

    #[test]
    fn rules_come_and_go_but_those_of_the_command_line_return() {
        let rules = rules(&["kind=drop"]);
        let added = rules.add("kind=error".parse().unwrap()).unwrap();
        assert_eq!(added.describe()["id"], 2);
        assert!(rules.remove(1) && !rules.remove(1));
        assert_eq!(rules.active().len(), 1);
        rules.clear();
        assert!(rules.active().is_empty());
        rules.reset();
        assert_eq!(rules.describe()["faults"][0]["rule"], "kind=drop");
        for _ in 1..RULES_MAX {
            rules.add("kind=error".parse().unwrap()).unwrap();
        }
        assert_eq!(rules.add("kind=error".parse().unwrap()).err(), Some(TooManyRules));
    }

    #[test]
    fn the_longest_lag_counts() {
        let rules =
            rules(&["kind=stale table=a delay=10ms", "kind=stale table=a index=i delay=1s"]);
        let name = |name: &str| TableName {
            namespace: Arc::new(Namespace { account: "0".into(), region: "r".into() }),
            name: name.to_owned(),
        };
        assert_eq!(rules.read_lag_ms_max(), 1_000);
        assert_eq!(rules.read_lag_ms(&name("a"), None), 10);
        assert_eq!(rules.read_lag_ms(&name("a"), Some("i")), 1_000);
        assert_eq!(rules.read_lag_ms(&name("b"), None), 0);
    }
}
