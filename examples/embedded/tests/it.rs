//! The example as its readers run it, and what else the SDK's clients do in-process.

use std::process::Command;

use aws_sdk_dynamodb::config::{Config, Credentials, Region};
use aws_sdk_dynamodb::types::AttributeValue;
use zenobe::Database;
use zenobe_example_embedded::{client, create_table, visit};
use zenobe_testing::TemporaryDirectory;

#[test]
fn visits_are_counted_from_run_to_run() {
    let directory = TemporaryDirectory::new("guest-book");
    let run = |guest: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_zenobe-example-embedded"));
        let output = command.arg(directory.path()).arg(guest).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(run("Ada"), "Ada: 1\n");
    assert_eq!(run("Ada"), "Ada: 2\n");
    assert_eq!(run("Grace"), "Grace: 1\n");
}

#[tokio::test]
async fn errors_are_the_sdks_own_types() {
    let client = client(&Database::in_memory().await.unwrap());
    create_table(&client).await.unwrap();
    let put = || {
        let put = client.put_item().table_name("GuestBook");
        put.item("guest", AttributeValue::S("Ada".into()))
            .condition_expression("attribute_not_exists(guest)")
    };
    put().send().await.unwrap();
    let refused = put().send().await.unwrap_err().into_service_error();
    assert!(refused.is_conditional_check_failed_exception(), "{refused:?}");
    let missing = client.scan().table_name("Nowhere").send().await.unwrap_err();
    assert!(missing.into_service_error().is_resource_not_found_exception());
}

#[tokio::test]
async fn clients_of_streams_take_the_same_connection() {
    let database = Database::in_memory().await.unwrap();
    let client = client(&database);
    create_table(&client).await.unwrap();
    visit(&client, "Ada").await.unwrap();
    let streams = aws_sdk_dynamodbstreams::Client::from_conf(
        aws_sdk_dynamodbstreams::Config::builder()
            .http_client(database.http_client())
            .region(Region::new("us-east-1"))
            .credentials_provider(Credentials::new("embedded", "embedded", None, None, "embedded"))
            .build(),
    );
    let listed = streams.list_streams().table_name("GuestBook").send().await.unwrap();
    assert_eq!(listed.streams().len(), 1);
}

#[tokio::test]
async fn two_databases_of_one_program_are_apart() {
    let [one, other] = [Database::in_memory().await.unwrap(), Database::in_memory().await.unwrap()];
    create_table(&client(&one)).await.unwrap();
    assert_eq!(client(&other).list_tables().send().await.unwrap().table_names().len(), 0);
    // Clients may be built by the caller's own configuration just as well.
    let config = Config::builder()
        .http_client(one.http_client())
        .region(Region::new("eu-west-1"))
        .credentials_provider(Credentials::new("a", "b", None, None, "test"))
        .build();
    let tables = aws_sdk_dynamodb::Client::from_conf(config).list_tables().send().await.unwrap();
    assert_eq!(tables.table_names(), ["GuestBook"]);
}
