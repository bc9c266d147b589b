//! Steps that only read.

use zenobe_engine::command::Select;
use zenobe_engine::schema::{KeyAttribute, KeySchema, ScalarType};
use zenobe_value::Attributes;

use crate::step::{BatchGetTable, Step};
use crate::twin::condition::Comparison;
use crate::twin::page::{KeyTest, Query, Reading};
use crate::twin::transaction::Get;
use crate::twin::value::order;

use super::Generator;
use super::shape::{Shape, late_indexes};
use super::values::{few_scalars, scalar};

impl Generator {
    pub fn get(&mut self) -> Step {
        let consistent = self.dice.chance(50);
        Step::Get { get: self.some_get(), consistent }
    }

    fn some_get(&mut self) -> Get {
        let shape = self.shape();
        let key = self.key(&shape);
        Get { table: shape.name, key, projection: self.maybe_projection() }
    }

    pub fn transact_get(&mut self) -> Step {
        let count = self.dice.between(1, 4);
        Step::TransactGet((0..count).map(|_| self.some_get()).collect())
    }

    pub fn batch_get(&mut self) -> Step {
        let mut tables: Vec<BatchGetTable> = Vec::new();
        for _ in 0..self.dice.between(1, 3) {
            let shape = self.shape();
            if tables.iter().any(|other| other.table == shape.name) {
                continue;
            }
            let count = self.dice.between(1, 20);
            let keys = (0..count).map(|_| self.valid_key(&shape)).collect();
            let (projection, consistent) = (self.maybe_projection(), self.dice.chance(50));
            tables.push(BatchGetTable { table: shape.name, keys, projection, consistent });
        }
        Step::BatchGet(tables)
    }

    pub fn scan(&mut self) -> Step {
        let shape = self.shape();
        let (index, _) = self.source(&shape);
        let mut reading = self.reading(&shape, index);
        reading.filter = self.maybe_condition();
        let segments = self.dice.chance(30).then(|| self.dice.between(1, 6) as u32);
        Step::Scan { table: shape.name, reading, segments }
    }

    pub fn query(&mut self) -> Step {
        let shape = self.shape();
        let (index, keys) = self.source(&shape);
        let mut reading = self.reading(&shape, index);
        reading.filter = self.dice.chance(30).then(|| self.filter());
        let mut conditions = self.key_conditions(&keys);
        if self.dice.one_in(40) {
            self.spoil(&mut conditions);
        }
        let start = self.dice.chance(15).then(|| self.start_key(&shape, &keys, &conditions));
        let forward = self.dice.chance(60);
        Step::Query(Query { table: shape.name, reading, conditions, forward, start })
    }

    /// A source to read from, and its keys.
    fn source(&mut self, shape: &Shape) -> (Option<String>, KeySchema) {
        match self.dice.below(100) {
            0..35 => (None, shape.keys.clone()),
            35..90 => {
                let index = self.dice.pick(&shape.indexes);
                (Some(index.name.clone()), index.keys.clone())
            }
            _ => {
                let index = self.dice.pick(&late_indexes()).clone();
                let attribute = |(name, scalar_type): &(String, ScalarType)| KeyAttribute {
                    name: name.clone(),
                    scalar_type: *scalar_type,
                };
                let keys = KeySchema {
                    partition: index.partition.iter().map(attribute).collect(),
                    sort: index.sort.iter().map(attribute).collect(),
                };
                (Some(index.name), keys)
            }
        }
    }

    fn reading(&mut self, shape: &Shape, index: Option<String>) -> Reading {
        let is_global = index.as_ref().is_some_and(|name| !name.starts_with("local"));
        let consistent = if is_global { self.dice.one_in(40) } else { self.dice.chance(40) };
        let limit = self.dice.chance(60).then(|| self.dice.between(1, 5) as u32);
        let mut reading = Reading { index, limit, consistent, ..Reading::default() };
        match self.dice.below(100) {
            0..50 => {}
            50..62 => reading.select = Some(Select::Count),
            62..74 => reading.select = Some(Select::AllAttributes),
            74..80 if reading.index.is_some() => {
                reading.select = Some(Select::AllProjectedAttributes);
            }
            _ => {
                reading.select = self.dice.chance(50).then_some(Select::SpecificAttributes);
                reading.projection = Some(self.projection());
                // Most projections name something that a global index lacks; few of them suffice.
                if is_global && !self.dice.one_in(6) {
                    let key = shape.keys.partition[0].name.clone();
                    let routes = reading.projection.iter_mut().flatten();
                    let keep = |root: &str| root == "pk" || root == "sk" || root == "a";
                    let kept: Vec<_> = routes
                        .filter(|route| keep(route.root()))
                        .map(|route| route.clone())
                        .collect();
                    let fallback =
                        crate::twin::route::Route(vec![zenobe_value::PathElement::Name(
                            key.into(),
                        )]);
                    reading.projection = Some(if kept.is_empty() { vec![fallback] } else { kept });
                }
            }
        }
        reading
    }

    fn key_conditions(&mut self, keys: &KeySchema) -> Vec<(String, KeyTest)> {
        let mut conditions: Vec<(String, KeyTest)> = Vec::new();
        for key in &keys.partition {
            let value = few_scalars(&mut self.dice, key.scalar_type);
            conditions.push((key.name.clone(), KeyTest::Compare(Comparison::Equal, value)));
        }
        for key in keys.sort.iter().take(self.dice.below(keys.sort.len() + 1)) {
            let is_last = !self.dice.chance(40);
            let test = if is_last {
                self.key_test(key.scalar_type)
            } else {
                KeyTest::Compare(Comparison::Equal, scalar(&mut self.dice, key.scalar_type))
            };
            conditions.push((key.name.clone(), test));
            if is_last && !self.dice.one_in(50) {
                break;
            }
        }
        if self.dice.chance(30) {
            conditions.reverse();
        }
        conditions
    }

    fn key_test(&mut self, scalar_type: ScalarType) -> KeyTest {
        let (one, other) =
            (scalar(&mut self.dice, scalar_type), scalar(&mut self.dice, scalar_type));
        let in_order = order(&one, &other).is_some_and(|order| order.is_le());
        match self.dice.below(7) {
            0 => KeyTest::Compare(Comparison::Equal, one),
            1 => KeyTest::Compare(Comparison::Less, one),
            2 => KeyTest::Compare(Comparison::LessOrEqual, one),
            3 => KeyTest::Compare(Comparison::Greater, one),
            4 => KeyTest::Compare(Comparison::GreaterOrEqual, one),
            5 if scalar_type != ScalarType::N => KeyTest::BeginsWith(one),
            _ if in_order => KeyTest::Between(one, other),
            _ => KeyTest::Between(other, one),
        }
    }

    /// Adds conditions that no key schema, or not this one, can use.
    fn spoil(&mut self, conditions: &mut Vec<(String, KeyTest)>) {
        let scalar_type = *self.dice.pick(&[ScalarType::S, ScalarType::N, ScalarType::B]);
        let test = self.key_test(scalar_type);
        match self.dice.below(3) {
            0 if conditions.len() > 1 => drop(conditions.remove(0)),
            1 => conditions.push(("n".to_owned(), test)),
            _ => conditions[0].1 = test,
        }
    }

    /// Usually somewhere in the queried partition.
    fn start_key(
        &mut self,
        shape: &Shape,
        keys: &KeySchema,
        conditions: &[(String, KeyTest)],
    ) -> Attributes {
        let mut start = self.key(shape);
        for key in keys.attributes() {
            let queried = conditions.iter().find(|(name, _)| *name == key.name);
            let value = match queried {
                Some((_, test)) if !self.dice.one_in(20) => (*test.values()[0]).clone(),
                _ => few_scalars(&mut self.dice, key.scalar_type),
            };
            start.insert(key.name.clone(), value);
        }
        start
    }
}
