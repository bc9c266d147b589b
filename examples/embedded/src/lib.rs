//! A guest book in a database that is part of the program: no server, no port, no container.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::{Config, Credentials, Region};
use aws_sdk_dynamodb::types::{
    AttributeDefinition, AttributeValue, BillingMode, KeySchemaElement, KeyType,
    ScalarAttributeType, StreamSpecification, StreamViewType,
};
use zenobe::Database;

pub type Failure = Box<dyn std::error::Error + Send + Sync>;

const TABLE: &str = "GuestBook";

/// A client of the AWS SDK whose requests never leave the process. The SDK wants credentials to sign with, and any will do.
pub fn client(database: &Database) -> Client {
    let config = Config::builder()
        .http_client(database.http_client())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("embedded", "embedded", None, None, "embedded"))
        .build();
    Client::from_conf(config)
}

/// Creates the table, unless an earlier run has.
pub async fn create_table(client: &Client) -> Result<(), Failure> {
    if client.list_tables().send().await?.table_names().iter().any(|name| name == TABLE) {
        return Ok(());
    }
    let attribute = |name: &str| {
        let attribute = AttributeDefinition::builder().attribute_name(name);
        attribute.attribute_type(ScalarAttributeType::S).build()
    };
    let key = |name: &str, kind: KeyType| {
        KeySchemaElement::builder().attribute_name(name).key_type(kind).build()
    };
    let changes = StreamSpecification::builder()
        .stream_enabled(true)
        .stream_view_type(StreamViewType::NewAndOldImages)
        .build()?;
    client
        .create_table()
        .table_name(TABLE)
        .attribute_definitions(attribute("guest")?)
        .key_schema(key("guest", KeyType::Hash)?)
        .billing_mode(BillingMode::PayPerRequest)
        .stream_specification(changes)
        .send()
        .await?;
    Ok(())
}

/// Counts a visit and returns how many the guest has made.
pub async fn visit(client: &Client, guest: &str) -> Result<u64, Failure> {
    let updated = client
        .update_item()
        .table_name(TABLE)
        .key("guest", AttributeValue::S(guest.to_owned()))
        .update_expression("ADD visits :one")
        .expression_attribute_values(":one", AttributeValue::N("1".to_owned()))
        .return_values(aws_sdk_dynamodb::types::ReturnValue::UpdatedNew)
        .send()
        .await?;
    let visits = updated.attributes().and_then(|attributes| attributes.get("visits"));
    let visits = visits.and_then(|value| value.as_n().ok()).ok_or("the count is missing")?;
    Ok(visits.parse()?)
}
