//! What a request is about, as far as rules care: the tables, the index, and how many actions.

use serde_json::Value;
use zenobe_api::{Operation, table_of_iterator};
use zenobe_engine::throughput::cause::Access;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RequestSubjects {
    pub tables: Vec<String>,
    pub index: Option<String>,
    /// Of a transaction.
    pub actions: usize,
    /// Which throughput of its tables it takes; `None` if it is not about items.
    pub access: Option<Access>,
}

/// What an operation does with items. Statements say it themselves.
fn access_of(operation: Operation) -> Option<Access> {
    match operation {
        Operation::GetItem
        | Operation::Query
        | Operation::Scan
        | Operation::BatchGetItem
        | Operation::TransactGetItems => Some(Access::Read),
        Operation::PutItem
        | Operation::UpdateItem
        | Operation::DeleteItem
        | Operation::BatchWriteItem
        | Operation::TransactWriteItems => Some(Access::Write),
        _ => None,
    }
}

impl RequestSubjects {
    /// Reads as much as it understands. What is wrong with the request, the database says.
    pub fn of(operation: Operation, request: &Value) -> RequestSubjects {
        let mut subjects =
            RequestSubjects { access: access_of(operation), ..RequestSubjects::default() };
        match operation {
            Operation::BatchGetItem | Operation::BatchWriteItem => {
                let tables = request["RequestItems"].as_object().into_iter().flatten();
                tables.for_each(|(table, _)| subjects.add(table));
            }
            Operation::TransactWriteItems | Operation::TransactGetItems => {
                let actions = request["TransactItems"].as_array().into_iter().flatten();
                for action in actions {
                    subjects.actions += 1;
                    let parts = action.as_object().into_iter().flat_map(|action| action.values());
                    parts
                        .filter_map(|part| part["TableName"].as_str())
                        .for_each(|it| subjects.add(it));
                }
            }
            Operation::GetRecords => {
                let table = request["ShardIterator"].as_str().and_then(table_of_iterator);
                table.into_iter().for_each(|table| subjects.add(&table.name));
            }
            Operation::ExecuteStatement => subjects.add_statement(&request["Statement"]),
            Operation::BatchExecuteStatement => subjects.add_statements(&request["Statements"]),
            Operation::ExecuteTransaction => {
                subjects.add_statements(&request["TransactStatements"]);
            }
            _ => {
                let named = ["TableName", "ResourceArn", "StreamArn"].iter();
                let table = named.filter_map(|name| request[*name].as_str()).next();
                table.into_iter().for_each(|table| subjects.add(table));
                subjects.index = request["IndexName"].as_str().map(str::to_owned);
            }
        }
        subjects
    }

    fn add_statements(&mut self, statements: &Value) {
        for statement in statements.as_array().into_iter().flatten() {
            self.actions += 1;
            self.add_statement(&statement["Statement"]);
        }
    }

    /// The name after FROM, INTO or UPDATE, with an index behind a dot.
    fn add_statement(&mut self, statement: &Value) {
        let mut words = statement.as_str().unwrap_or_default().split_whitespace().peekable();
        let reads = words.peek().is_some_and(|word| word.eq_ignore_ascii_case("SELECT"));
        self.access = self.access.or(Some(if reads { Access::Read } else { Access::Write }));
        let is_before_table = |word: &&str| {
            ["FROM", "INTO", "UPDATE"].iter().any(|keyword| word.eq_ignore_ascii_case(keyword))
        };
        let Some(place) = words.find(is_before_table).and_then(|_| words.next()) else { return };
        let mut names =
            place.split('"').flat_map(|part| part.split('.')).filter(|name| !name.is_empty());
        if let Some(table) = names.next() {
            self.add(table);
            self.index = names.next().map(str::to_owned);
        }
    }

    /// A table by its name, or by an ARN of it or of its stream.
    fn add(&mut self, table: &str) {
        let name = match table.split_once(":table/") {
            Some((_, rest)) => rest.split('/').next().unwrap_or(rest),
            None => table,
        };
        if !self.tables.iter().any(|known| known == name) {
            self.tables.push(name.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn requests_name_their_tables_in_many_ways() {
        let check = |operation: &str, request: Value, tables: &[&str], index: Option<&str>| {
            let operation = Operation::from_name(operation).unwrap();
            let subjects = RequestSubjects::of(operation, &request);
            assert_eq!(subjects.tables, tables, "{request}");
            assert_eq!(subjects.index.as_deref(), index, "{request}");
        };
        check("GetItem", json!({"TableName": "a"}), &["a"], None);
        check("Query", json!({"TableName": "a", "IndexName": "i"}), &["a"], Some("i"));
        let arn = "arn:aws:dynamodb:us-east-1:000000000000:table/a";
        check("PutItem", json!({ "TableName": arn }), &["a"], None);
        let stream = format!("{arn}/stream/2026-11-17T00:00:00.000");
        check("DescribeStream", json!({ "StreamArn": stream }), &["a"], None);
        check("GetShardIterator", json!({ "StreamArn": stream }), &["a"], None);
        check("GetRecords", json!({"ShardIterator": "no iterator"}), &[], None);
        check("BatchGetItem", json!({"RequestItems": {"a": {}, "b": {}}}), &["a", "b"], None);
        let puts = json!([{"Put": {"TableName": "a"}}, {"Delete": {"TableName": "b"}}, {"Put": {"TableName": "a"}}]);
        check("TransactWriteItems", json!({ "TransactItems": puts }), &["a", "b"], None);
        check(
            "ExecuteStatement",
            json!({"Statement": "SELECT * FROM \"a\".\"i\" WHERE x = 1"}),
            &["a"],
            Some("i"),
        );
        check("ExecuteStatement", json!({"Statement": "insert into a value {}"}), &["a"], None);
        check("ListTables", json!({}), &[], None);
        check("GetItem", json!([]), &[], None);
        let subjects =
            RequestSubjects::of(Operation::TransactWriteItems, &json!({ "TransactItems": puts }));
        assert_eq!((subjects.actions, subjects.access), (3, Some(Access::Write)));
        let access = |operation, request| RequestSubjects::of(operation, &request).access;
        let statement = |text: &str| json!({ "Statement": text });
        let of_statement = |text| access(Operation::ExecuteStatement, statement(text));
        assert_eq!(of_statement("select * FROM a"), Some(Access::Read));
        assert_eq!(of_statement("DELETE FROM a WHERE x = 1"), Some(Access::Write));
        assert_eq!(access(Operation::GetItem, json!({"TableName": "a"})), Some(Access::Read));
        assert_eq!(access(Operation::DescribeTable, json!({"TableName": "a"})), None);
    }
}
