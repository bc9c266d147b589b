//! Statements as text, with their values as parameters.

use std::fmt;

use serde_json::{Value, json};
use zenobe_engine::schema::KeySchema;
use zenobe_value::limits::NESTING_LEVELS_MAX;
use zenobe_value::{AttributeValue, Attributes, PathElement};

use super::parameters;
use crate::twin::condition::{Comparison, Term, Test};
use crate::twin::page::{KeyTest, Query};
use crate::twin::route::Route;
use crate::twin::update::{Operand, Source, Update};

#[derive(Debug, Clone, Default)]
pub struct Statement {
    text: String,
    values: Vec<AttributeValue>,
    returning: &'static str,
}

impl fmt::Display for Statement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}{} with {:?}", self.text, self.returning, self.values)
    }
}

impl Statement {
    pub fn request(&self) -> Value {
        let mut request = json!({ "Statement": format!("{}{}", self.text, self.returning) });
        if !self.values.is_empty() {
            request["Parameters"] = parameters(&self.values);
        }
        request
    }

    /// Whether a value nests deeper than the API allows, whatever the item.
    pub fn is_too_deep(&self) -> bool {
        self.values.iter().any(|value| value.depth() > NESTING_LEVELS_MAX)
    }

    pub fn without_returning(self) -> Statement {
        Statement { returning: "", ..self }
    }

    pub fn insert(table: &str, item: &Attributes) -> Statement {
        let mut statement = Statement::default();
        let fields: Vec<String> = item
            .iter()
            .map(|(name, value)| format!("'{name}': {}", statement.value(value)))
            .collect();
        statement.text = format!("INSERT INTO \"{table}\" VALUE {{{}}}", fields.join(", "));
        statement
    }

    pub fn update(
        table: &str,
        keys: &KeySchema,
        key: &Attributes,
        update: &Update,
        condition: Option<&Test>,
    ) -> Statement {
        let mut statement = Statement { returning: " RETURNING ALL NEW *", ..Statement::default() };
        let mut clauses = String::new();
        for (route, source) in &update.sets {
            let source = statement.source(source);
            clauses += &format!(" SET {} = {source}", path(route));
        }
        for route in &update.removes {
            clauses += &format!(" REMOVE {}", path(route));
        }
        for (function, changes) in [("set_add", &update.adds), ("set_delete", &update.deletes)] {
            for (route, value) in changes {
                let (route, value) = (path(route), statement.value(value));
                clauses += &format!(" SET {route} = {function}({route}, {value})");
            }
        }
        statement.text = format!("UPDATE \"{table}\"{clauses} WHERE ");
        statement.key_and_condition(keys, key, condition);
        statement
    }

    pub fn delete(
        table: &str,
        keys: &KeySchema,
        key: &Attributes,
        condition: Option<&Test>,
    ) -> Statement {
        let text = format!("DELETE FROM \"{table}\" WHERE ");
        let returning = " RETURNING ALL OLD *";
        let mut statement = Statement { text, returning, ..Statement::default() };
        statement.key_and_condition(keys, key, condition);
        statement
    }

    pub fn exists(table: &str, keys: &KeySchema, key: &Attributes, condition: &Test) -> Statement {
        let text = format!("EXISTS(SELECT * FROM \"{table}\" WHERE ");
        let mut statement = Statement { text, ..Statement::default() };
        statement.key_and_condition(keys, key, Some(condition));
        statement.text.push(')');
        statement
    }

    pub fn get(table: &str, key: &Attributes, projection: Option<&[Route]>) -> Statement {
        let columns = match projection {
            None => "*".to_owned(),
            Some(routes) => routes.iter().map(path).collect::<Vec<_>>().join(", "),
        };
        let mut statement = Statement::default();
        let tests: Vec<String> = key
            .iter()
            .map(|(name, value)| format!("{} = \"{name}\"", statement.value(value)))
            .collect();
        statement.text = format!("SELECT {columns} FROM \"{table}\" WHERE {}", tests.join(" AND "));
        statement
    }

    pub fn query(query: &Query, partition: &str, sort: Option<&str>) -> Statement {
        let mut statement = Statement::default();
        let mut tests: Vec<String> =
            query.conditions.iter().map(|(name, test)| statement.key_test(name, test)).collect();
        if let Some(filter) = &query.reading.filter {
            tests.push(format!("({})", statement.test(filter)));
        }
        let index = query.reading.index.as_ref();
        let index = index.map_or(String::new(), |index| format!(".\"{index}\""));
        let order = match (query.forward, sort) {
            (true, Some(sort)) => format!(" ORDER BY \"{partition}\", \"{sort}\" ASC"),
            (true, None) => String::new(),
            // Keys that ORDER BY doesn't name descend.
            (false, _) => format!(" ORDER BY \"{partition}\""),
        };
        let table = &query.table;
        statement.text =
            format!("SELECT * FROM \"{table}\"{index} WHERE {}{order}", tests.join(" AND "));
        statement
    }

    /// Compares a condition that mentions a key with true: otherwise it could be mistaken for the
    /// key.
    fn key_and_condition(&mut self, keys: &KeySchema, key: &Attributes, condition: Option<&Test>) {
        let mut tests: Vec<String> =
            key.iter().map(|(name, value)| format!("\"{name}\" = {}", self.value(value))).collect();
        if let Some(condition) = condition {
            let mentions_key = condition.routes().iter().any(|route| keys.contains(route.root()));
            let text = self.test(condition);
            let compared = if mentions_key { " = true" } else { "" };
            tests.push(format!("({text}){compared}"));
        }
        self.text += &tests.join(" AND ");
    }

    fn value(&mut self, value: &AttributeValue) -> &'static str {
        self.values.push(value.clone());
        "?"
    }

    fn key_test(&mut self, name: &str, test: &KeyTest) -> String {
        match test {
            KeyTest::Compare(comparison, value) => {
                format!("\"{name}\" {} {}", symbol(*comparison), self.value(value))
            }
            KeyTest::Between(low, high) => {
                format!("\"{name}\" BETWEEN {} AND {}", self.value(low), self.value(high))
            }
            KeyTest::BeginsWith(prefix) => {
                format!("begins_with(\"{name}\", {})", self.value(prefix))
            }
        }
    }

    fn test(&mut self, test: &Test) -> String {
        match test {
            Test::And(tests) => self.joined(tests, " AND ", "true"),
            Test::Or(tests) => self.joined(tests, " OR ", "false"),
            Test::Not(test) => format!("NOT ({})", self.test(test)),
            Test::Compare(left, comparison, right) => {
                format!("{} {} {}", self.term(left), symbol(*comparison), self.term(right))
            }
            Test::Between(term, low, high) => {
                format!("{} BETWEEN {} AND {}", self.term(term), self.term(low), self.term(high))
            }
            Test::In(term, list) => {
                let term = self.term(term);
                let list: Vec<String> = list.iter().map(|member| self.term(member)).collect();
                format!("{term} IN [{}]", list.join(", "))
            }
            Test::Exists(route) => format!("attribute_exists({})", path(route)),
            Test::Missing(route) => format!("{} IS MISSING", path(route)),
            Test::HasType(route, expected) => {
                format!("attribute_type({}, '{expected}')", path(route))
            }
            Test::BeginsWith(term, prefix) => {
                format!("begins_with({}, {})", self.term(term), self.term(prefix))
            }
            Test::Contains(container, element) => {
                format!("contains({}, {})", self.term(container), self.term(element))
            }
        }
    }

    fn joined(&mut self, tests: &[Test], operator: &str, empty: &str) -> String {
        if tests.is_empty() {
            return empty.to_owned();
        }
        let tests: Vec<String> =
            tests.iter().map(|test| format!("({})", self.test(test))).collect();
        tests.join(operator)
    }

    fn term(&mut self, term: &Term) -> String {
        match term {
            Term::Route(route) => path(route),
            Term::Literal(value) => self.value(value).to_owned(),
            Term::Size(route) => format!("size({})", path(route)),
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
            Operand::Route(route) => path(route),
            Operand::Literal(value) => self.value(value).to_owned(),
            Operand::IfNotExists(route, default) => {
                format!("if_not_exists({}, {})", path(route), self.operand(default))
            }
            Operand::ListAppend(front, back) => {
                format!("list_append({}, {})", self.operand(front), self.operand(back))
            }
        }
    }
}

fn path(route: &Route) -> String {
    let mut text = String::new();
    for element in &route.0 {
        match element {
            PathElement::Name(name) if text.is_empty() => text = format!("\"{name}\""),
            PathElement::Name(name) => text += &format!(".\"{name}\""),
            PathElement::Index(index) => text += &format!("[{index}]"),
        }
    }
    text
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
