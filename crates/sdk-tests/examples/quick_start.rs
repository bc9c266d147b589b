use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::{BehaviorVersion, Config, Credentials, Region};
use aws_sdk_dynamodb::types::{
    AttributeDefinition, AttributeValue, BillingMode, KeySchemaElement, KeyType,
    ScalarAttributeType,
};

type Fault = Box<dyn std::error::Error>;

#[tokio::main]
async fn main() -> Result<(), Fault> {
    let endpoint = std::env::var("AWS_ENDPOINT_URL_DYNAMODB")
        .unwrap_or_else(|_| "http://127.0.0.1:8000".to_owned());
    let config = Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .endpoint_url(endpoint)
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("local", "local", None, None, "example"))
        .http_client(aws_smithy_http_client::Builder::new().build_http())
        .build();
    let client = Client::from_conf(config);

    client
        .create_table()
        .table_name("Music")
        .attribute_definitions(text("Artist")?)
        .attribute_definitions(text("Song")?)
        .key_schema(key("Artist", KeyType::Hash)?)
        .key_schema(key("Song", KeyType::Range)?)
        .billing_mode(BillingMode::PayPerRequest)
        .send()
        .await?;

    let artist = AttributeValue::S("Nina Simone".to_owned());
    let song = AttributeValue::S("Sinnerman".to_owned());
    let one = AttributeValue::N("1".to_owned());
    client
        .put_item()
        .table_name("Music")
        .item("Artist", artist.clone())
        .item("Song", song.clone())
        .item("Plays", one.clone())
        .condition_expression("attribute_not_exists(Artist)")
        .send()
        .await?;
    client
        .update_item()
        .table_name("Music")
        .key("Artist", artist.clone())
        .key("Song", song)
        .update_expression("ADD Plays :one")
        .expression_attribute_values(":one", one)
        .send()
        .await?;
    let found = client
        .query()
        .table_name("Music")
        .key_condition_expression("Artist = :artist")
        .expression_attribute_values(":artist", artist)
        .send()
        .await?;
    for item in found.items() {
        if let (Some(AttributeValue::S(song)), Some(AttributeValue::N(plays))) =
            (item.get("Song"), item.get("Plays"))
        {
            println!("{song}: {plays} plays");
        }
    }

    client.delete_table().table_name("Music").send().await?;
    Ok(())
}

fn text(name: &str) -> Result<AttributeDefinition, Fault> {
    let kind = ScalarAttributeType::S;
    Ok(AttributeDefinition::builder().attribute_name(name).attribute_type(kind).build()?)
}

fn key(name: &str, kind: KeyType) -> Result<KeySchemaElement, Fault> {
    Ok(KeySchemaElement::builder().attribute_name(name).key_type(kind).build()?)
}
