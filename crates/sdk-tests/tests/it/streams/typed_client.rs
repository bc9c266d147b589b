//! The AWS SDK for Rust: a stream from its table's first item to its end, with typed records and errors.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::{
    AttributeDefinition, AttributeValue, BillingMode, KeySchemaElement, KeyType,
    ScalarAttributeType, StreamSpecification, StreamViewType,
};
use aws_sdk_dynamodbstreams::config::{BehaviorVersion, Credentials, Region};
use aws_sdk_dynamodbstreams::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodbstreams::types::{
    AttributeValue as Image, OperationType, Record, ShardFilter, ShardFilterType,
    ShardIteratorType, StreamStatus,
};
use aws_sdk_dynamodbstreams::{Client as Streams, Config};
use zenobe_testing::ServerProcess;

use crate::typed_client::client;

const TABLE: &str = "Orders";

struct Fixture {
    dynamodb: aws_sdk_dynamodb::Client,
    streams: Streams,
    stream: String,
    _server: ServerProcess,
}

impl Fixture {
    async fn new() -> Fixture {
        let server = ServerProcess::fresh("typed-streams");
        let (dynamodb, streams) = (client(&server, "test"), streams(&server));
        let stream = create_table(&dynamodb).await;
        Fixture { dynamodb, streams, stream, _server: server }
    }

    async fn put(&self, order: &str, state: &str) {
        let put = self.dynamodb.put_item().table_name(TABLE);
        let put = put.item("order", AttributeValue::S(order.into()));
        put.item("state", AttributeValue::S(state.into())).send().await.expect("a put works");
    }

    async fn delete(&self, order: &str) {
        let delete = self.dynamodb.delete_item().table_name(TABLE);
        delete.key("order", AttributeValue::S(order.into())).send().await.expect("a delete works");
    }

    /// All records of all shards, parents first, up to the last page with records.
    async fn records(&self) -> Vec<Record> {
        let described = self.streams.describe_stream().stream_arn(&self.stream).send().await;
        let description = described.expect("a stream is described").stream_description.unwrap();
        let mut records = Vec::new();
        for shard in description.shards() {
            let request = self.streams.get_shard_iterator().stream_arn(&self.stream);
            let request = request.shard_id(shard.shard_id().unwrap());
            let answer = request.shard_iterator_type(ShardIteratorType::TrimHorizon).send().await;
            let mut iterator = answer.expect("a shard has an iterator").shard_iterator;
            while let Some(at) = iterator {
                let page = self.streams.get_records().shard_iterator(at).limit(2).send().await;
                let page = page.expect("records can be read");
                let found = page.records.unwrap_or_default();
                iterator = page.next_shard_iterator.filter(|_| !found.is_empty());
                records.extend(found);
            }
        }
        records
    }
}

/// The SDK without TLS and without retries: an error arrives as the server sent it.
fn streams(server: &ServerProcess) -> Streams {
    let config = Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("test", "test", None, None, "test"))
        .endpoint_url(server.endpoint())
        .http_client(aws_smithy_http_client::Builder::new().build_http())
        .retry_config(aws_sdk_dynamodbstreams::config::retry::RetryConfig::disabled())
        .build();
    Streams::from_conf(config)
}

/// Returns the stream's ARN.
async fn create_table(client: &aws_sdk_dynamodb::Client) -> String {
    let specification = StreamSpecification::builder()
        .stream_enabled(true)
        .stream_view_type(StreamViewType::NewAndOldImages)
        .build()
        .unwrap();
    let definition = AttributeDefinition::builder()
        .attribute_name("order")
        .attribute_type(ScalarAttributeType::S);
    let key = KeySchemaElement::builder().attribute_name("order").key_type(KeyType::Hash);
    let request = client.create_table().table_name(TABLE).billing_mode(BillingMode::PayPerRequest);
    let request = request.attribute_definitions(definition.build().unwrap());
    let request = request.key_schema(key.build().unwrap()).stream_specification(specification);
    let created = request.send().await.expect("a table can be created");
    created.table_description.unwrap().latest_stream_arn.expect("the stream is named at once")
}

fn image(order: &str, state: &str) -> HashMap<String, Image> {
    let text = |text: &str| Image::S(text.into());
    HashMap::from([("order".into(), text(order)), ("state".into(), text(state))])
}

/// The code and text of an error from the service.
fn refusal<E: ProvideErrorMetadata, R>(error: &SdkError<E, R>) -> (&str, &str) {
    (error.code().unwrap_or_default(), error.message().unwrap_or_default())
}

#[tokio::test]
async fn records_arrive_typed() {
    let fixture = Fixture::new().await;
    fixture.put("1", "new").await;
    fixture.put("1", "paid").await;
    fixture.put("1", "paid").await;
    fixture.delete("1").await;
    let records = fixture.records().await;
    let events: Vec<_> = records.iter().map(|record| record.event_name().unwrap()).collect();
    assert_eq!(events, [&OperationType::Insert, &OperationType::Modify, &OperationType::Remove]);
    let body = records[1].dynamodb().unwrap();
    assert_eq!(body.keys(), Some(&HashMap::from([("order".into(), Image::S("1".into()))])));
    assert_eq!(body.old_image(), Some(&image("1", "new")));
    assert_eq!(body.new_image(), Some(&image("1", "paid")));
    assert_eq!(body.size_bytes(), Some(6 + 14 + 15));
    assert!(body.approximate_creation_date_time().is_some_and(|time| time.subsec_nanos() == 0));
    let numbers: Vec<u128> = records
        .iter()
        .map(|record| record.dynamodb().unwrap().sequence_number().unwrap().parse().unwrap())
        .collect();
    assert!(numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");
    assert!(records.iter().all(|record| record.user_identity().is_none()));
}

#[tokio::test]
async fn streams_are_listed_and_described() {
    let fixture = Fixture::new().await;
    let listed = fixture.streams.list_streams().table_name(TABLE).send().await.unwrap();
    let arns: Vec<_> = listed.streams().iter().map(|stream| stream.stream_arn().unwrap()).collect();
    assert_eq!(arns, [&fixture.stream]);

    let off = StreamSpecification::builder().stream_enabled(false).build().unwrap();
    let update = fixture.dynamodb.update_table().table_name(TABLE).stream_specification(off);
    update.send().await.expect("a stream can be disabled");
    let request = fixture.streams.describe_stream().stream_arn(&fixture.stream);
    let description = request.clone().send().await.unwrap().stream_description.unwrap();
    assert_eq!(description.stream_status(), Some(&StreamStatus::Disabled));
    let first = &description.shards()[0];
    let span = first.sequence_number_range().unwrap();
    assert!(span.ending_sequence_number().is_some(), "a disabled stream has no open shard");

    let filter = ShardFilter::builder()
        .r#type(ShardFilterType::ChildShards)
        .shard_id(first.shard_id().unwrap())
        .build();
    let children = request.shard_filter(filter).send().await.unwrap().stream_description.unwrap();
    assert_eq!(children.shards(), []);
}

#[tokio::test]
async fn errors_arrive_typed() {
    let fixture = Fixture::new().await;
    let missing = fixture.stream.replace(TABLE, "Missing");
    let request = fixture.streams.describe_stream().stream_arn(&missing);
    let error = request.send().await.expect_err("there is no such stream");
    let text = format!("Requested resource not found: Stream: {missing} not found");
    assert_eq!(refusal(&error), ("ResourceNotFoundException", text.as_str()));
    assert!(error.into_service_error().is_resource_not_found_exception());

    let request = fixture.streams.get_records().shard_iterator("never made");
    let error = request.send().await.expect_err("this is no iterator");
    assert_eq!(refusal(&error), ("ValidationException", "Invalid ShardIterator"));
}
