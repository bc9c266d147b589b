//! The table to import into.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use zenobe_load::{Client, Target};
use zenobe_value::{AttributeType, Attributes};

use super::ImportError;

/// Names and types of key attributes, the partition key first.
pub type Keys = Vec<(String, AttributeType)>;

/// What an import must know about a table.
#[derive(Debug, Clone)]
pub struct TableKeys {
    pub keys: Keys,
    /// The types of all attributes that are keys of the table or of an index.
    pub types: BTreeMap<String, AttributeType>,
    /// What tells this table from all others: of other accounts and regions, and from one of the same name that was
    /// deleted. Empty if there is no table yet.
    pub identity: String,
}

impl TableKeys {
    /// The key of an item, or what is wrong with it.
    pub fn of(&self, item: &Attributes) -> Result<Attributes, String> {
        let mut key = Attributes::new();
        for (name, expected) in &self.keys {
            let value = item.get(name).ok_or_else(|| format!("the key {name} is missing"))?;
            if value.attribute_type() != *expected {
                let (actual, expected) = (value.attribute_type().name(), expected.name());
                return Err(format!("the key {name} has the type {actual} instead of {expected}"));
            }
            key.insert(name.clone(), value.clone());
        }
        Ok(key)
    }
}

/// Reads `pk:S` or `pk:S,sk:N`.
pub fn parse_keys(text: &str) -> Result<Keys, ImportError> {
    let key = |part: &str| {
        let (name, of) = part.rsplit_once(':')?;
        let of = AttributeType::from_name(of)?;
        let is_key = matches!(of, AttributeType::S | AttributeType::N | AttributeType::B);
        (is_key && !name.is_empty()).then(|| (name.to_owned(), of))
    };
    let keys: Option<Keys> = text.split(',').map(key).collect();
    keys.filter(|keys| keys.len() <= 2).ok_or_else(|| ImportError::Keys(text.to_owned()))
}

/// Finds the table, or creates it with the given keys.
pub async fn prepare(
    target: &Target,
    name: &str,
    keys: Option<&[(String, AttributeType)]>,
    is_dry_run: bool,
) -> Result<TableKeys, ImportError> {
    let mut client = Client::new(target.clone())?;
    if let Some(found) = describe(&mut client, name).await? {
        return Ok(found);
    }
    let keys = keys.ok_or_else(|| ImportError::TableMissing(name.to_owned()))?;
    let definition = |(name, of): &(String, AttributeType)| json!({"AttributeName": name, "AttributeType": of.name()});
    let element = |((name, _), key_type): (&(String, AttributeType), &str)| json!({"AttributeName": name, "KeyType": key_type});
    let creation = json!({
        "TableName": name,
        "AttributeDefinitions": keys.iter().map(definition).collect::<Vec<_>>(),
        "KeySchema": keys.iter().zip(["HASH", "RANGE"]).map(element).collect::<Vec<_>>(),
        "BillingMode": "PAY_PER_REQUEST",
    });
    if is_dry_run {
        let types = keys.iter().cloned().collect();
        return Ok(TableKeys { keys: keys.to_vec(), types, identity: String::new() });
    }
    create(target, name, &creation).await
}

/// Creates a table unless it exists, and waits until it is ready.
pub async fn create(
    target: &Target,
    name: &str,
    creation: &Value,
) -> Result<TableKeys, ImportError> {
    let mut client = Client::new(target.clone())?;
    let answer = client.call("CreateTable", creation.to_string().as_bytes()).await?;
    if !answer.is_success() && answer.error_name() != "ResourceInUseException" {
        let message = answer.error_message();
        return Err(ImportError::Refused { operation: "CreateTable", message });
    }
    loop {
        if let Some(found) = describe(&mut client, name).await? {
            return Ok(found);
        }
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
}

/// Lets items expire by this attribute, unless they do already.
pub async fn enable_time_to_live(
    target: &Target,
    name: &str,
    attribute: &str,
) -> Result<(), ImportError> {
    let mut client = Client::new(target.clone())?;
    let request = json!({"TableName": name}).to_string();
    let answer = client.call("DescribeTimeToLive", request.as_bytes()).await?;
    let described: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    if described["TimeToLiveDescription"]["AttributeName"] == attribute {
        return Ok(());
    }
    let specification = json!({"Enabled": true, "AttributeName": attribute});
    let request = json!({"TableName": name, "TimeToLiveSpecification": specification}).to_string();
    let answer = client.call("UpdateTimeToLive", request.as_bytes()).await?;
    match answer.is_success() {
        true => Ok(()),
        false => {
            let message = answer.error_message();
            Err(ImportError::Refused { operation: "UpdateTimeToLive", message })
        }
    }
}

/// The keys of a table that is ready.
async fn describe(client: &mut Client, name: &str) -> Result<Option<TableKeys>, ImportError> {
    let request = json!({"TableName": name}).to_string();
    let answer = client.call("DescribeTable", request.as_bytes()).await?;
    if answer.error_name() == "ResourceNotFoundException" {
        return Ok(None);
    }
    if !answer.is_success() {
        let message = answer.error_message();
        return Err(ImportError::Refused { operation: "DescribeTable", message });
    }
    let described: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let table = &described["Table"];
    if table["TableStatus"] == "CREATING" {
        return Ok(None);
    }
    Ok(Some(keys_of(table)))
}

/// The keys in a description of a table, or in the request that creates it.
pub fn keys_of(table: &Value) -> TableKeys {
    let list = |name: &str| table[name].as_array().cloned().unwrap_or_default();
    let types: BTreeMap<String, AttributeType> = list("AttributeDefinitions")
        .iter()
        .filter_map(|it| {
            let of = AttributeType::from_name(it["AttributeType"].as_str()?)?;
            Some((it["AttributeName"].as_str()?.to_owned(), of))
        })
        .collect();
    let key = |element: &Value| {
        let name = element["AttributeName"].as_str()?;
        Some((name.to_owned(), *types.get(name)?))
    };
    let keys = list("KeySchema").iter().filter_map(key).collect();
    let text = |name: &str| table[name].as_str().unwrap_or_default();
    let identity = [text("TableArn"), text("TableId")].join(" ");
    TableKeys { keys, types, identity }
}
