//! Steps that change items.

use crate::step::Step;
use crate::twin::write::{Action, BatchRequest, Write};

use super::Generator;
use super::shape::Shape;

impl Generator {
    pub fn single_write(&mut self) -> Step {
        let shape = self.shape();
        let write = self.write(&shape, 90);
        Step::Write { table: shape.name, write }
    }

    /// An action drawn from the first `kinds` of a hundred; the last ten are checks.
    fn write(&mut self, shape: &Shape, kinds: usize) -> Write {
        let action = match self.dice.below(kinds) {
            0..2 => Action::Put(self.nearly_too_large(shape)),
            2..35 => Action::Put(self.item(shape)),
            35..48 => Action::Delete(self.key(shape)),
            48..52 => Action::Update(self.key(shape), None),
            52..90 => {
                let key = self.key(shape);
                Action::Update(key, Some(self.update()))
            }
            _ => Action::Check(self.key(shape)),
        };
        let condition = match action {
            Action::Check(_) => Some(self.condition()),
            _ => self.maybe_condition(),
        };
        Write { action, condition }
    }

    pub fn batch_write(&mut self) -> Step {
        let count = self.dice.between(1, 3);
        let mut tables: Vec<(String, Vec<BatchRequest>)> = Vec::new();
        for _ in 0..count {
            let shape = self.shape();
            if tables.iter().any(|(table, _)| *table == shape.name) {
                continue;
            }
            let mut requests = Vec::new();
            // The writes of a batch race each other. Where they might fill a collection, the
            // outcome would be random, so such a batch has one request.
            let is_luck =
                shape.name == "range" && self.settings.collection_size_bytes_max < 1 << 30;
            let count = if is_luck { 1 } else { self.dice.between(1, 6) };
            for _ in 0..count {
                let request = if self.dice.chance(70) {
                    BatchRequest::Put(self.item(&shape))
                } else {
                    BatchRequest::Delete(self.key(&shape))
                };
                let is_repeated =
                    requests.iter().any(|other| key_of(&shape, other) == key_of(&shape, &request));
                // Duplicates fail the whole batch, so they must be rare.
                if !is_repeated || self.dice.one_in(20) {
                    requests.push(request);
                }
            }
            tables.push((shape.name, requests));
        }
        Step::BatchWrite(tables)
    }

    pub fn transact_write(&mut self) -> Step {
        if !self.tokened.is_empty() && self.dice.one_in(4) {
            return self.repetition();
        }
        let mut writes: Vec<(String, Write)> = Vec::new();
        for _ in 0..self.dice.between(1, 4) {
            let shape = self.shape();
            let mut write = self.write(&shape, 100);
            // Most conditions fail, and one failure cancels everything.
            if !matches!(write.action, Action::Check(_)) && self.dice.chance(85) {
                write.condition = None;
            }
            writes.push((shape.name, write));
        }
        let token = self.dice.chance(30).then(|| format!("token-{}", self.dice.below(40)));
        if let Some(token) = &token {
            self.tokened.push((token.clone(), writes.clone()));
        }
        Step::TransactWrite { token, writes }
    }

    /// An earlier transaction again, or something else under its token.
    fn repetition(&mut self) -> Step {
        let recent = self.tokened.len().saturating_sub(4);
        let (token, writes) = self.dice.pick(&self.tokened[recent..]).clone();
        let writes =
            if self.dice.one_in(5) { self.dice.pick(&self.tokened).1.clone() } else { writes };
        Step::TransactWrite { token: Some(token), writes }
    }
}

fn key_of(shape: &Shape, request: &BatchRequest) -> Vec<Option<zenobe_value::AttributeValue>> {
    let (BatchRequest::Put(attributes) | BatchRequest::Delete(attributes)) = request;
    shape.keys.attributes().map(|key| attributes.get(&key.name).cloned()).collect()
}
