//! Models of NoSQL Workbench: tables with their keys, indexes and sample data.

use serde_json::{Map, Value, json};

use super::ImportError;

/// What NoSQL Workbench gives to tables and indexes whose model does not say more.
const CAPACITY_UNITS_DEFAULT: u64 = 5;

/// A table of a model.
pub struct ModelTable {
    pub name: String,
    /// The request of CreateTable.
    pub creation: Value,
    /// The items, as DynamoDB's JSON.
    pub items: Vec<Value>,
}

pub fn tables(source: &str, model: &Value) -> Result<Vec<ModelTable>, ImportError> {
    let tables = model["DataModel"].as_array().map(Vec::as_slice).unwrap_or_default();
    let read = |table: &Value| {
        let fault = |what: &str| ImportError::Model(source.to_owned(), what.to_owned());
        let name = table["TableName"].as_str().ok_or_else(|| fault("a table has no TableName"))?;
        let mut types = Map::new();
        let keys = key_schema(&table["KeyAttributes"], &mut types)
            .ok_or_else(|| fault(&format!("the table {name} has no KeyAttributes")))?;
        let throughput = throughput(table);
        let indexes = table["GlobalSecondaryIndexes"].as_array().cloned().unwrap_or_default();
        let mut global = Vec::with_capacity(indexes.len());
        for index in &indexes {
            let keys = key_schema(&index["KeyAttributes"], &mut types)
                .ok_or_else(|| fault(&format!("an index of {name} has no KeyAttributes")))?;
            let projection = match index["Projection"]["ProjectionType"].as_str() {
                Some(_) => index["Projection"].clone(),
                None => json!({"ProjectionType": "ALL"}),
            };
            let mut index = json!({"IndexName": index["IndexName"], "KeySchema": keys, "Projection": projection});
            if let Some(throughput) = &throughput {
                index["ProvisionedThroughput"] = throughput.clone();
            }
            global.push(index);
        }
        let definitions: Vec<Value> = types
            .iter()
            .map(|(name, of)| json!({"AttributeName": name, "AttributeType": of}))
            .collect();
        let mut creation = json!({
            "TableName": name,
            "AttributeDefinitions": definitions,
            "KeySchema": keys,
            "BillingMode": "PAY_PER_REQUEST",
        });
        if let Some(throughput) = throughput {
            creation["BillingMode"] = "PROVISIONED".into();
            creation["ProvisionedThroughput"] = throughput;
        }
        if !global.is_empty() {
            creation["GlobalSecondaryIndexes"] = global.into();
        }
        let items = table["TableData"].as_array().cloned().unwrap_or_default();
        Ok(ModelTable { name: name.to_owned(), creation, items })
    };
    tables.iter().map(read).collect()
}

/// The capacity of a provisioned table, which its indexes get too. Models say nothing of theirs.
fn throughput(table: &Value) -> Option<Value> {
    let given = &table["ProvisionedCapacitySettings"]["ProvisionedThroughput"];
    let units = |name: &str| given[name].as_u64().unwrap_or(CAPACITY_UNITS_DEFAULT);
    (table["BillingMode"] == "PROVISIONED").then(|| {
        json!({
            "ReadCapacityUnits": units("ReadCapacityUnits"),
            "WriteCapacityUnits": units("WriteCapacityUnits"),
        })
    })
}

fn key_schema(keys: &Value, types: &mut Map<String, Value>) -> Option<Value> {
    let mut schema = Vec::new();
    for (member, key_type) in [("PartitionKey", "HASH"), ("SortKey", "RANGE")] {
        let Some(name) = keys[member]["AttributeName"].as_str() else { continue };
        types.insert(name.to_owned(), keys[member]["AttributeType"].clone());
        schema.push(json!({"AttributeName": name, "KeyType": key_type}));
    }
    (!schema.is_empty()).then_some(schema.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_says_how_to_create_its_tables() {
        let model = json!({"ModelName": "m", "DataModel": [{
            "TableName": "Employee",
            "KeyAttributes": {
                "PartitionKey": {"AttributeName": "LoginAlias", "AttributeType": "S"},
            },
            "TableData": [{"LoginAlias": {"S": "johns"}, "Skills": {"SS": ["a"]}}],
            "GlobalSecondaryIndexes": [{
                "IndexName": "Name",
                "KeyAttributes": {
                    "PartitionKey": {"AttributeName": "LastName", "AttributeType": "S"},
                    "SortKey": {"AttributeName": "LoginAlias", "AttributeType": "S"},
                },
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            }],
        }]});
        let tables = tables("model.json", &model).unwrap();
        let [table] = &tables[..] else { panic!() };
        assert_eq!(table.name, "Employee");
        assert_eq!(table.items.len(), 1);
        assert_eq!(table.creation["AttributeDefinitions"].as_array().unwrap().len(), 2);
        assert_eq!(table.creation["GlobalSecondaryIndexes"][0]["KeySchema"][1]["KeyType"], "RANGE");
        assert_eq!(table.creation["BillingMode"], "PAY_PER_REQUEST");
        assert!(table.creation.get("ProvisionedThroughput").is_none());
        let broken = json!({"DataModel": [{"TableName": "t"}]});
        assert!(super::tables("model.json", &broken).is_err());
    }

    #[test]
    fn a_model_says_how_its_tables_are_billed() {
        let created = |mode: &str, settings: Value| {
            let key = json!({"PartitionKey": {"AttributeName": "pk", "AttributeType": "S"}});
            let model = json!({"DataModel": [{
                "TableName": "t",
                "KeyAttributes": key,
                "GlobalSecondaryIndexes": [{"IndexName": "i", "KeyAttributes": key}],
                "BillingMode": mode,
                "ProvisionedCapacitySettings": settings,
            }]});
            tables("model.json", &model).unwrap().remove(0).creation
        };
        let units =
            |read: u64, write: u64| json!({"ReadCapacityUnits": read, "WriteCapacityUnits": write});
        let settings = json!({"ProvisionedThroughput": units(7, 3)});
        for (settings, expected) in [(settings.clone(), units(7, 3)), (Value::Null, units(5, 5))] {
            let table = created("PROVISIONED", settings);
            assert_eq!(table["BillingMode"], "PROVISIONED");
            assert_eq!(table["ProvisionedThroughput"], expected);
            assert_eq!(table["GlobalSecondaryIndexes"][0]["ProvisionedThroughput"], expected);
        }
        let table = created("PAY_PER_REQUEST", settings);
        assert_eq!(table["BillingMode"], "PAY_PER_REQUEST");
        assert!(table.get("ProvisionedThroughput").is_none());
        assert!(table["GlobalSecondaryIndexes"][0].get("ProvisionedThroughput").is_none());
    }
}
