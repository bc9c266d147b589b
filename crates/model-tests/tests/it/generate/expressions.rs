//! Routes, conditions, projections and updates. The text of each is valid.

use zenobe_value::limits::NESTING_LEVELS_MAX;
use zenobe_value::{AttributeType, AttributeValue, PathElement};

use crate::twin::condition::{Comparison, Term, Test};
use crate::twin::route::Route;
use crate::twin::update::{Operand, Source, Update};
use crate::twin::value::order;

use super::Generator;
use super::values::{number, scalar};
use zenobe_engine::schema::ScalarType;

const ATTRIBUTES: [&str; 12] =
    ["a", "b", "c", "x", "y", "m", "l", "t", "n", "odd.name", "sk", "pk"];
const COMPARISONS: [Comparison; 6] = [
    Comparison::Equal,
    Comparison::NotEqual,
    Comparison::Less,
    Comparison::LessOrEqual,
    Comparison::Greater,
    Comparison::GreaterOrEqual,
];

impl Generator {
    pub fn maybe_condition(&mut self) -> Option<Test> {
        self.dice.chance(40).then(|| self.condition())
    }

    pub fn condition(&mut self) -> Test {
        self.test(2, 12)
    }

    /// A query's filter avoids keys, with rare exceptions.
    pub fn filter(&mut self) -> Test {
        let attributes = if self.dice.one_in(30) { 12 } else { 10 };
        self.test(2, attributes)
    }

    fn test(&mut self, depth: usize, attributes: usize) -> Test {
        let several = |generator: &mut Generator| -> Vec<Test> {
            let count = generator.dice.between(2, 3);
            (0..count).map(|_| generator.test(depth - 1, attributes)).collect()
        };
        match self.dice.below(if depth == 0 { 70 } else { 100 }) {
            0..25 => self.comparison(attributes),
            25..33 => self.between(attributes),
            33..40 => {
                let term = self.place(attributes);
                let list = (0..self.dice.between(1, 4))
                    .map(|_| Term::Literal(self.literal_for(&term)))
                    .collect();
                Test::In(term, list)
            }
            40..46 => Test::Exists(self.route(attributes)),
            46..52 => Test::Missing(self.route(attributes)),
            52..56 => {
                let attribute_type = *self.dice.pick(&AttributeType::ALL);
                Test::HasType(self.route(attributes), attribute_type)
            }
            56..62 => {
                let prefix_type = *self.dice.pick(&[ScalarType::S, ScalarType::B]);
                let prefix = scalar(&mut self.dice, prefix_type);
                Test::BeginsWith(Term::Route(self.route(attributes)), Term::Literal(prefix))
            }
            62..70 => {
                let container = self.route(attributes);
                let element = Term::Route(self.route(attributes));
                let element = match element {
                    Term::Route(route) if route != container && self.dice.chance(20) => {
                        Term::Route(route)
                    }
                    _ => Term::Literal(self.any_value()),
                };
                Test::Contains(Term::Route(container), element)
            }
            70..82 => Test::And(several(self)),
            82..92 => Test::Or(several(self)),
            _ => Test::Not(Box::new(self.test(depth - 1, attributes))),
        }
    }

    fn comparison(&mut self, attributes: usize) -> Test {
        let left = self.place(attributes);
        let comparison = *self.dice.pick(&COMPARISONS);
        let other = self.place(attributes);
        let right = if other != left && self.dice.chance(15) {
            other
        } else {
            let literal = self.literal_for(&left);
            let is_ordering = !matches!(comparison, Comparison::Equal | Comparison::NotEqual);
            let is_ordered = order(&literal, &literal).is_some();
            Term::Literal(if is_ordering && !is_ordered { number(&mut self.dice) } else { literal })
        };
        Test::Compare(left, comparison, right)
    }

    fn between(&mut self, attributes: usize) -> Test {
        let term = self.place(attributes);
        let scalar_type = match &term {
            Term::Size(_) => ScalarType::N,
            _ => *self.dice.pick(&[ScalarType::S, ScalarType::N, ScalarType::B]),
        };
        let (one, other) =
            (scalar(&mut self.dice, scalar_type), scalar(&mut self.dice, scalar_type));
        let (low, high) = if order(&one, &other).is_some_and(|order| order.is_le()) {
            (one, other)
        } else {
            (other, one)
        };
        Test::Between(term, Term::Literal(low), Term::Literal(high))
    }

    fn place(&mut self, attributes: usize) -> Term {
        let route = self.route(attributes);
        if self.dice.one_in(8) { Term::Size(route) } else { Term::Route(route) }
    }

    fn literal_for(&mut self, term: &Term) -> AttributeValue {
        match term {
            Term::Route(route) if !route.is_nested() && self.dice.chance(70) => {
                let name = route.root().to_owned();
                self.attribute(&name)
            }
            Term::Size(_) => AttributeValue::N(self.dice.below(4).to_string().parse_number()),
            _ => self.any_value(),
        }
    }

    /// A route into one of the first `attributes` attributes.
    pub fn route(&mut self, attributes: usize) -> Route {
        let root = ATTRIBUTES[self.dice.below(attributes)];
        let mut elements = vec![PathElement::Name(root.into())];
        let is_document = ["m", "l", "x", "y"].contains(&root);
        let depth = match self.dice.below(100) {
            0..50 => 0,
            50..80 if is_document => 1,
            80..97 if is_document => 2,
            97 => 1,
            _ => 0,
        };
        for _ in 0..depth {
            let indexed = if root == "l" && elements.len() == 1 { 90 } else { 35 };
            elements.push(if self.dice.chance(indexed) {
                PathElement::Index(*self.dice.pick(&[0, 0, 1, 2, 7]))
            } else {
                PathElement::Name((*self.dice.pick(&["k", "l", "n", "z"])).into())
            });
        }
        Route(elements)
    }

    pub fn maybe_projection(&mut self) -> Option<Vec<Route>> {
        self.dice.chance(35).then(|| self.projection())
    }

    pub fn projection(&mut self) -> Vec<Route> {
        let count = self.dice.between(1, 4);
        let mut routes: Vec<Route> = Vec::new();
        for _ in 0..count {
            let route = self.route(12);
            if !routes.iter().any(|other| other.clashes(&route)) {
                routes.push(route);
            }
        }
        routes
    }

    pub fn update(&mut self) -> Update {
        let mut update = Update::default();
        // Updates avoid keys as targets; the rare one that doesn't must fail.
        let attributes = if self.dice.one_in(40) { 12 } else { 10 };
        for _ in 0..self.dice.between(1, 4) {
            let target = self.route(attributes);
            if update.targets().iter().any(|other| other.clashes(&target)) {
                continue;
            }
            match self.dice.below(10) {
                0..5 => {
                    let source = self.set_source(&target);
                    update.sets.push((target, source));
                }
                5..7 => update.removes.push(target),
                7..9 => {
                    let is_number = matches!(target.root(), "n" | "b") || self.dice.chance(30);
                    let value = if is_number { number(&mut self.dice) } else { self.set() };
                    update.adds.push((target, value));
                }
                _ => {
                    let value = self.set();
                    update.deletes.push((target, value));
                }
            }
        }
        update
    }

    fn set_source(&mut self, target: &Route) -> Source {
        match self.dice.below(100) {
            0..55 => Source::Operand(Operand::Literal(self.new_value(target))),
            55..62 => Source::Operand(Operand::Route(self.route(12))),
            62..70 => {
                let default = Box::new(Operand::Literal(self.new_value(target)));
                Source::Operand(Operand::IfNotExists(self.route(12), default))
            }
            70..85 => {
                let (front, back) = (self.list_operand(), self.list_operand());
                Source::Operand(Operand::ListAppend(Box::new(front), Box::new(back)))
            }
            85..93 => Source::Plus(self.number_operand(), self.number_operand()),
            _ => Source::Minus(self.number_operand(), self.number_operand()),
        }
    }

    fn new_value(&mut self, target: &Route) -> AttributeValue {
        if self.dice.one_in(60) {
            // As deep as an item may be here, or one level deeper.
            let levels = NESTING_LEVELS_MAX + 1 - target.0.len() + self.dice.below(2);
            return self.nested(levels);
        }
        if target.is_nested() {
            return self.any_value();
        }
        let name = target.root().to_owned();
        self.attribute(&name)
    }

    fn number_operand(&mut self) -> Operand {
        let route = Route(vec![PathElement::Name((*self.dice.pick(&["n", "b", "n", "x"])).into())]);
        match self.dice.below(3) {
            0 => Operand::Route(route),
            1 => Operand::Literal(number(&mut self.dice)),
            _ => Operand::IfNotExists(route, Box::new(Operand::Literal(number(&mut self.dice)))),
        }
    }

    fn list_operand(&mut self) -> Operand {
        let route = Route(vec![PathElement::Name("l".into())]);
        let literal = loop {
            let value = self.attribute("l");
            if value.attribute_type() == AttributeType::L {
                break Operand::Literal(value);
            }
        };
        match self.dice.below(4) {
            0 => Operand::Route(route),
            1 => Operand::IfNotExists(route, Box::new(literal)),
            _ => literal,
        }
    }
}

trait ParseNumber {
    fn parse_number(&self) -> zenobe_value::Number;
}

impl ParseNumber for String {
    fn parse_number(&self) -> zenobe_value::Number {
        zenobe_value::Number::parse(self).expect("a valid number")
    }
}
