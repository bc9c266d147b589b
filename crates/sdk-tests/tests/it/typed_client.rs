//! The AWS SDK for Rust: typed requests, typed errors, its waiters and paginators.

use std::collections::HashMap;
use std::time::Duration;

use aws_sdk_dynamodb::client::Waiters;
use aws_sdk_dynamodb::config::{BehaviorVersion, Credentials, Region};
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, AttributeValue, BillingMode, ConditionCheck, Delete, Get,
    GlobalSecondaryIndex, KeySchemaElement, KeyType, KeysAndAttributes, Projection, ProjectionType,
    Put, PutRequest, ReturnConsumedCapacity, ReturnValue, ReturnValuesOnConditionCheckFailure,
    ScalarAttributeType, TableStatus, TransactGetItem, TransactWriteItem, Update, WriteRequest,
};
use aws_sdk_dynamodb::{Client, Config};
use zenobe_testing::{ServerOptions, ServerProcess, TemporaryDirectory};

const TABLE: &str = "Music";
const INDEX: &str = "by-genre";

type Item = HashMap<String, AttributeValue>;

/// A server with the table that all these tests use, and a client for it.
struct Fixture {
    client: Client,
    _server: ServerProcess,
}

impl Fixture {
    async fn new() -> Fixture {
        let server = ServerProcess::fresh("typed");
        let client = client(&server, "test");
        create_table(&client).await;
        Fixture { client, _server: server }
    }

    async fn put(&self, item: Item) {
        self.client
            .put_item()
            .table_name(TABLE)
            .set_item(Some(item))
            .send()
            .await
            .expect("a put works");
    }

    async fn get(&self, artist: &str, song: &str) -> Option<Item> {
        let request = self.client.get_item().table_name(TABLE).consistent_read(true);
        let answer = request.set_key(Some(key(artist, song))).send().await;
        answer.expect("a get works").item
    }
}

/// The SDK without TLS and without retries: an error arrives as the server sent it.
pub fn client(server: &ServerProcess, secret: &str) -> Client {
    let config = Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("test", secret, None, None, "test"))
        .endpoint_url(server.endpoint())
        .http_client(aws_smithy_http_client::Builder::new().build_http())
        .retry_config(aws_sdk_dynamodb::config::retry::RetryConfig::disabled())
        .build();
    Client::from_conf(config)
}

async fn create_table(client: &Client) {
    let element = |name: &str, key_type| {
        KeySchemaElement::builder().attribute_name(name).key_type(key_type).build().unwrap()
    };
    let definition = |name: &str, kind| {
        AttributeDefinition::builder().attribute_name(name).attribute_type(kind).build().unwrap()
    };
    let index = GlobalSecondaryIndex::builder()
        .index_name(INDEX)
        .key_schema(element("Genre", KeyType::Hash))
        .key_schema(element("Plays", KeyType::Range))
        .projection(Projection::builder().projection_type(ProjectionType::All).build())
        .build()
        .unwrap();
    let created = client
        .create_table()
        .table_name(TABLE)
        .billing_mode(BillingMode::PayPerRequest)
        .attribute_definitions(definition("Artist", ScalarAttributeType::S))
        .attribute_definitions(definition("Song", ScalarAttributeType::S))
        .attribute_definitions(definition("Genre", ScalarAttributeType::S))
        .attribute_definitions(definition("Plays", ScalarAttributeType::N))
        .key_schema(element("Artist", KeyType::Hash))
        .key_schema(element("Song", KeyType::Range))
        .global_secondary_indexes(index)
        .send()
        .await
        .expect("a table can be created");
    let description = created.table_description().expect("a created table is described");
    assert_eq!(description.table_status(), Some(&TableStatus::Creating));
    let waiter = client.wait_until_table_exists().table_name(TABLE);
    waiter.wait(Duration::from_secs(60)).await.expect("the table becomes active");
}

fn text(value: &str) -> AttributeValue {
    AttributeValue::S(value.into())
}

fn number(value: impl std::fmt::Display) -> AttributeValue {
    AttributeValue::N(value.to_string())
}

fn key(artist: &str, song: &str) -> Item {
    HashMap::from([("Artist".into(), text(artist)), ("Song".into(), text(song))])
}

fn song(artist: &str, song: &str, genre: &str, plays: u32) -> Item {
    let mut item = key(artist, song);
    item.insert("Genre".into(), text(genre));
    item.insert("Plays".into(), number(plays));
    item
}

/// The code and text of an error from the service.
fn refusal<E: ProvideErrorMetadata, R>(error: &SdkError<E, R>) -> (&str, &str) {
    (error.code().unwrap_or_default(), error.message().unwrap_or_default())
}

#[tokio::test]
async fn every_type_comes_back_as_it_was_sent() {
    let fixture = Fixture::new().await;
    let mut item = key("Nina Simone", "Sinnerman");
    let values = [
        ("number", number("12345678901234567890123456789012345678")),
        ("binary", AttributeValue::B(Blob::new([0, 255, 127]))),
        ("flag", AttributeValue::Bool(true)),
        ("nothing", AttributeValue::Null(true)),
        ("strings", AttributeValue::Ss(vec!["only".into()])),
        ("numbers", AttributeValue::Ns(vec!["-1.5".into()])),
        ("binaries", AttributeValue::Bs(vec![Blob::new("b")])),
        ("list", AttributeValue::L(vec![text(""), number(0), AttributeValue::L(vec![])])),
        ("map", AttributeValue::M(HashMap::from([("inner".into(), text("ü"))]))),
    ];
    item.extend(values.map(|(name, value)| (name.to_owned(), value)));
    fixture.put(item.clone()).await;
    assert_eq!(fixture.get("Nina Simone", "Sinnerman").await, Some(item));
    assert_eq!(fixture.get("Nina Simone", "Feeling Good").await, None);
}

#[tokio::test]
async fn an_update_returns_what_it_changed() {
    let fixture = Fixture::new().await;
    fixture.put(song("Nina Simone", "Sinnerman", "jazz", 1)).await;
    let update = fixture.client.update_item().table_name(TABLE);
    let answer = update
        .set_key(Some(key("Nina Simone", "Sinnerman")))
        .update_expression("ADD Plays :one SET Rating = :rating")
        .expression_attribute_values(":one", number(1))
        .expression_attribute_values(":rating", number("4.50"))
        .return_values(ReturnValue::UpdatedNew)
        .return_consumed_capacity(ReturnConsumedCapacity::Total)
        .send()
        .await
        .expect("an update works");
    let expected =
        HashMap::from([("Plays".to_owned(), number(2)), ("Rating".to_owned(), number("4.5"))]);
    assert_eq!(answer.attributes, Some(expected));
    // One unit for the table, two for the entry that moved in the index.
    assert_eq!(answer.consumed_capacity.and_then(|consumed| consumed.capacity_units), Some(3.0));
}

#[tokio::test]
async fn queries_are_paged_by_the_sdk() {
    let fixture = Fixture::new().await;
    for plays in 0..25 {
        let genre = if plays % 2 == 0 { "jazz" } else { "soul" };
        fixture.put(song("Nina Simone", &format!("song {plays:02}"), genre, plays)).await;
    }
    let query = fixture.client.query().table_name(TABLE);
    let pages = query
        .key_condition_expression("Artist = :artist AND begins_with(Song, :prefix)")
        .expression_attribute_values(":artist", text("Nina Simone"))
        .expression_attribute_values(":prefix", text("song 1"))
        .limit(4)
        .into_paginator()
        .items()
        .send();
    let found = pages.collect::<Result<Vec<_>, _>>().await.expect("all pages can be read");
    let songs: Vec<_> = found.iter().map(|item| item["Song"].as_s().unwrap().clone()).collect();
    assert_eq!(songs, (10..20).map(|plays| format!("song {plays}")).collect::<Vec<_>>());

    let answer = fixture
        .client
        .query()
        .table_name(TABLE)
        .index_name(INDEX)
        .key_condition_expression("Genre = :genre AND Plays > :least")
        .expression_attribute_values(":genre", text("jazz"))
        .expression_attribute_values(":least", number(15))
        .scan_index_forward(false)
        .send()
        .await
        .expect("an index can be queried");
    let plays: Vec<_> =
        answer.items().iter().map(|item| item["Plays"].as_n().unwrap().as_str()).collect();
    assert_eq!(plays, ["24", "22", "20", "18", "16"]);
}

#[tokio::test]
async fn a_failed_condition_carries_the_item() {
    let fixture = Fixture::new().await;
    let stored = song("Nina Simone", "Sinnerman", "jazz", 1);
    fixture.put(stored.clone()).await;
    let put = fixture.client.put_item().table_name(TABLE).set_item(Some(stored.clone()));
    let error = put
        .condition_expression("attribute_not_exists(Song)")
        .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
        .send()
        .await
        .expect_err("the item is there");
    assert_eq!(
        refusal(&error),
        ("ConditionalCheckFailedException", "The conditional request failed")
    );
    let error = error.into_service_error();
    assert!(error.is_conditional_check_failed_exception());
    let aws_sdk_dynamodb::operation::put_item::PutItemError::ConditionalCheckFailedException(
        failed,
    ) = error
    else {
        panic!("the error has its type");
    };
    assert_eq!(failed.item, Some(stored));
}

#[tokio::test]
async fn missing_tables_and_bad_requests_have_their_types() {
    let fixture = Fixture::new().await;
    let get = fixture.client.get_item().table_name("Nowhere").set_key(Some(key("a", "b")));
    let error = get.send().await.expect_err("there is no such table");
    assert_eq!(refusal(&error), ("ResourceNotFoundException", "Requested resource not found"));
    assert!(error.into_service_error().is_resource_not_found_exception());

    let get = fixture.client.get_item().table_name(TABLE).key("Artist", text("a"));
    let error = get.send().await.expect_err("half a key is no key");
    let expected = ("ValidationException", "The provided key element does not match the schema");
    assert_eq!(refusal(&error), expected);

    let describe = fixture.client.describe_table().table_name("Nowhere");
    let error = describe.send().await.expect_err("there is no such table");
    let text = "Requested resource not found: Table: Nowhere not found";
    assert_eq!(refusal(&error), ("ResourceNotFoundException", text));

    let error = fixture.client.delete_table().table_name(TABLE).send().await;
    error.expect("a table can be deleted");
    let waiter = fixture.client.wait_until_table_not_exists().table_name(TABLE);
    waiter.wait(Duration::from_secs(60)).await.expect("the table goes away");
}

#[tokio::test]
async fn an_existing_table_is_in_use() {
    let fixture = Fixture::new().await;
    let element = KeySchemaElement::builder().attribute_name("pk").key_type(KeyType::Hash);
    let definition =
        AttributeDefinition::builder().attribute_name("pk").attribute_type(ScalarAttributeType::S);
    let error = fixture
        .client
        .create_table()
        .table_name(TABLE)
        .billing_mode(BillingMode::PayPerRequest)
        .key_schema(element.build().unwrap())
        .attribute_definitions(definition.build().unwrap())
        .send()
        .await
        .expect_err("the name is taken");
    assert_eq!(refusal(&error), ("ResourceInUseException", "Table already exists: Music"));
    assert!(error.into_service_error().is_resource_in_use_exception());
}

#[tokio::test]
async fn transactions_happen_wholly_or_not_at_all() {
    let fixture = Fixture::new().await;
    fixture.put(song("Nina Simone", "Sinnerman", "jazz", 1)).await;
    fixture.put(song("Nina Simone", "Old Song", "jazz", 1)).await;
    let put = |name: &str| {
        let put =
            Put::builder().table_name(TABLE).set_item(Some(song("Nina Simone", name, "soul", 5)));
        TransactWriteItem::builder().put(put.build().unwrap()).build()
    };
    let update = Update::builder()
        .table_name(TABLE)
        .set_key(Some(key("Nina Simone", "Sinnerman")))
        .update_expression("SET Plays = Plays + :one")
        .expression_attribute_values(":one", number(1));
    let update = TransactWriteItem::builder().update(update.build().unwrap()).build();
    let delete = Delete::builder().table_name(TABLE).set_key(Some(key("Nina Simone", "Old Song")));
    let delete = TransactWriteItem::builder().delete(delete.build().unwrap()).build();
    let check = |song: &str| {
        let check = ConditionCheck::builder()
            .table_name(TABLE)
            .set_key(Some(key("Nina Simone", song)))
            .condition_expression("attribute_exists(Song)");
        TransactWriteItem::builder().condition_check(check.build().unwrap()).build()
    };

    let refused = fixture.client.transact_write_items();
    let error = refused
        .set_transact_items(Some(vec![put("New Song"), update.clone(), check("Never")]))
        .send()
        .await
        .expect_err("one condition fails");
    let error = error.into_service_error();
    let aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError::TransactionCanceledException(
        cancelled,
    ) = error
    else {
        panic!("the error has its type: {error:?}");
    };
    let codes: Vec<_> =
        cancelled.cancellation_reasons().iter().map(|reason| reason.code()).collect();
    assert_eq!(codes, [Some("None"), Some("None"), Some("ConditionalCheckFailed")]);
    assert_eq!(fixture.get("Nina Simone", "New Song").await, None);

    let accepted = fixture.client.transact_write_items();
    let actions = vec![put("New Song"), update, delete];
    accepted.set_transact_items(Some(actions)).send().await.expect("no condition fails");

    let get = |name: &str| {
        let get = Get::builder().table_name(TABLE).set_key(Some(key("Nina Simone", name)));
        TransactGetItem::builder().get(get.build().unwrap()).build()
    };
    let gets = vec![get("New Song"), get("Sinnerman"), get("Old Song")];
    let answer = fixture.client.transact_get_items().set_transact_items(Some(gets)).send().await;
    let answer = answer.expect("a transaction can be read");
    let items: Vec<_> =
        answer.responses().iter().map(|response| response.item().cloned()).collect();
    let expected = [
        Some(song("Nina Simone", "New Song", "soul", 5)),
        Some(song("Nina Simone", "Sinnerman", "jazz", 2)),
        None,
    ];
    assert_eq!(items, expected);
}

#[tokio::test]
async fn batches_write_and_read() {
    let fixture = Fixture::new().await;
    let name = |number: u32| format!("song {number:02}");
    let requests: Vec<_> = (0..25)
        .map(|number| {
            let item = song("Nina Simone", &name(number), "jazz", number);
            let put = PutRequest::builder().set_item(Some(item)).build().unwrap();
            WriteRequest::builder().put_request(put).build()
        })
        .collect();
    let answer = fixture.client.batch_write_item().request_items(TABLE, requests).send().await;
    assert_eq!(answer.expect("a batch can be written").unprocessed_items, Some(HashMap::new()));
    let keys = (0..30).map(|number| key("Nina Simone", &name(number))).collect();
    let wanted = KeysAndAttributes::builder().set_keys(Some(keys)).projection_expression("Plays");
    let answer = fixture.client.batch_get_item().request_items(TABLE, wanted.build().unwrap());
    let answer = answer.send().await.expect("a batch can be read");
    let found = &answer.responses().expect("responses")[TABLE];
    let mut plays: Vec<u32> =
        found.iter().map(|item| item["Plays"].as_n().unwrap().parse().unwrap()).collect();
    plays.sort_unstable();
    assert_eq!(plays, (0..25).collect::<Vec<_>>());
}

#[tokio::test]
async fn signatures_are_verified_where_keys_are_known() {
    let directory = TemporaryDirectory::new("signed");
    let keys = directory.secret_file("keys", "test:right\n");
    let arguments = vec!["--credentials".into(), keys.into()];
    let options = ServerOptions { arguments, ..ServerOptions::default() };
    let server = ServerProcess::start_with(&directory.path().join("data"), &options);
    create_table(&client(&server, "right")).await;
    let error =
        client(&server, "wrong").list_tables().send().await.expect_err("the secret is wrong");
    assert_eq!(error.code(), Some("InvalidSignatureException"));
}
