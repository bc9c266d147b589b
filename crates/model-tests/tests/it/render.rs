//! The model's trees as text. Expressions and PartiQL statements are two dialects of one grammar:
//! [`Render`] holds what they share, and its required methods what differs.

use zenobe_value::{AttributeType, AttributeValue, PathElement};

use crate::twin::condition::{Comparison, Term, Test};
use crate::twin::page::KeyTest;
use crate::twin::route::Route;
use crate::twin::update::{Operand, Source};

pub trait Render {
    /// The name of an attribute, or a placeholder for it.
    fn name(&mut self, name: &str) -> String;

    /// A placeholder for a value.
    fn value(&mut self, value: &AttributeValue) -> String;

    /// Tests that there is nothing at a path.
    fn missing(path: &str) -> String;

    fn has_type(&mut self, path: &str, expected: AttributeType) -> String;

    /// The members of IN, in brackets.
    fn list(members: &str) -> String;

    /// A test inside another.
    fn nested(&mut self, test: &Test) -> String;

    fn test(&mut self, test: &Test) -> String {
        match test {
            Test::And(tests) => self.joined(tests, " AND "),
            Test::Or(tests) => self.joined(tests, " OR "),
            Test::Not(test) => format!("NOT {}", self.nested(test)),
            Test::Compare(left, comparison, right) => {
                format!("{} {} {}", self.term(left), symbol(*comparison), self.term(right))
            }
            Test::Between(term, low, high) => {
                format!("{} BETWEEN {} AND {}", self.term(term), self.term(low), self.term(high))
            }
            Test::In(term, list) => {
                let term = self.term(term);
                let list: Vec<String> = list.iter().map(|member| self.term(member)).collect();
                format!("{term} IN {}", Self::list(&list.join(", ")))
            }
            Test::Exists(route) => format!("attribute_exists({})", self.route(route)),
            Test::Missing(route) => Self::missing(&self.route(route)),
            Test::HasType(route, expected) => {
                let path = self.route(route);
                self.has_type(&path, *expected)
            }
            Test::BeginsWith(term, prefix) => {
                format!("begins_with({}, {})", self.term(term), self.term(prefix))
            }
            Test::Contains(container, element) => {
                format!("contains({}, {})", self.term(container), self.term(element))
            }
        }
    }

    fn joined(&mut self, tests: &[Test], operator: &str) -> String {
        assert!(!tests.is_empty(), "neither dialect can say nothing");
        let tests: Vec<String> = tests.iter().map(|test| self.nested(test)).collect();
        tests.join(operator)
    }

    fn key_tests(&mut self, tests: &[(String, KeyTest)]) -> Vec<String> {
        tests.iter().map(|(name, test)| self.key_test(name, test)).collect()
    }

    fn key_test(&mut self, name: &str, test: &KeyTest) -> String {
        let name = self.name(name);
        match test {
            KeyTest::Compare(comparison, value) => {
                format!("{name} {} {}", symbol(*comparison), self.value(value))
            }
            KeyTest::Between(low, high) => {
                format!("{name} BETWEEN {} AND {}", self.value(low), self.value(high))
            }
            KeyTest::BeginsWith(prefix) => format!("begins_with({name}, {})", self.value(prefix)),
        }
    }

    fn term(&mut self, term: &Term) -> String {
        match term {
            Term::Route(route) => self.route(route),
            Term::Literal(value) => self.value(value),
            Term::Size(route) => format!("size({})", self.route(route)),
        }
    }

    fn source(&mut self, source: &Source) -> String {
        match source {
            Source::Operand(operand) => self.operand(operand),
            Source::Plus(left, right) => {
                format!("{} + {}", self.operand(left), self.operand(right))
            }
            Source::Minus(left, right) => {
                format!("{} - {}", self.operand(left), self.operand(right))
            }
        }
    }

    fn operand(&mut self, operand: &Operand) -> String {
        match operand {
            Operand::Route(route) => self.route(route),
            Operand::Literal(value) => self.value(value),
            Operand::IfNotExists(route, default) => {
                format!("if_not_exists({}, {})", self.route(route), self.operand(default))
            }
            Operand::ListAppend(front, back) => {
                format!("list_append({}, {})", self.operand(front), self.operand(back))
            }
        }
    }

    fn routes(&mut self, routes: &[Route]) -> String {
        let routes: Vec<String> = routes.iter().map(|route| self.route(route)).collect();
        routes.join(", ")
    }

    fn route(&mut self, route: &Route) -> String {
        let mut text = String::new();
        for element in &route.0 {
            match element {
                PathElement::Name(name) if text.is_empty() => text = self.name(name),
                PathElement::Name(name) => text += &format!(".{}", self.name(name)),
                PathElement::Index(index) => text += &format!("[{index}]"),
            }
        }
        text
    }
}

fn symbol(comparison: Comparison) -> &'static str {
    match comparison {
        Comparison::Equal => "=",
        Comparison::NotEqual => "<>",
        Comparison::Less => "<",
        Comparison::LessOrEqual => "<=",
        Comparison::Greater => ">",
        Comparison::GreaterOrEqual => ">=",
    }
}
