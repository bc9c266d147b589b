//! Statements as text, with their values as parameters.

use std::fmt;

use serde_json::{Value, json};
use zenobe_engine::schema::KeySchema;
use zenobe_value::limits::NESTING_LEVELS_MAX;
use zenobe_value::{AttributeType, AttributeValue, Attributes};

use super::parameters;
use crate::render::Render;
use crate::twin::condition::Test;
use crate::twin::page::Query;
use crate::twin::route::Route;
use crate::twin::update::Update;

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
            let (route, source) = (statement.route(route), statement.source(source));
            clauses += &format!(" SET {route} = {source}");
        }
        for route in &update.removes {
            clauses += &format!(" REMOVE {}", statement.route(route));
        }
        for (function, changes) in [("set_add", &update.adds), ("set_delete", &update.deletes)] {
            for (route, value) in changes {
                let (route, value) = (statement.route(route), statement.value(value));
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
        let mut statement = Statement::default();
        let columns = projection.map_or("*".to_owned(), |routes| statement.routes(routes));
        let tests: Vec<String> = key
            .iter()
            .map(|(name, value)| format!("{} = \"{name}\"", statement.value(value)))
            .collect();
        statement.text = format!("SELECT {columns} FROM \"{table}\" WHERE {}", tests.join(" AND "));
        statement
    }

    pub fn query(query: &Query, partition: &str, sort: Option<&str>) -> Statement {
        let mut statement = Statement::default();
        let mut tests = statement.key_tests(&query.conditions);
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
}

impl Render for Statement {
    fn name(&mut self, name: &str) -> String {
        format!("\"{name}\"")
    }

    fn value(&mut self, value: &AttributeValue) -> String {
        self.values.push(value.clone());
        "?".to_owned()
    }

    fn missing(path: &str) -> String {
        format!("{path} IS MISSING")
    }

    fn has_type(&mut self, path: &str, expected: AttributeType) -> String {
        format!("attribute_type({path}, '{expected}')")
    }

    fn list(members: &str) -> String {
        format!("[{members}]")
    }

    fn nested(&mut self, test: &Test) -> String {
        format!("({})", self.test(test))
    }
}
