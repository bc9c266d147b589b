//! PartiQL through the AWS SDK for Rust: typed requests, typed errors, pages by token.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::ProvideErrorMetadata;
use aws_sdk_dynamodb::operation::execute_statement::{
    ExecuteStatementError, ExecuteStatementOutput,
};
use aws_sdk_dynamodb::types::{
    AttributeValue, BatchStatementErrorCodeEnum, BatchStatementRequest, ParameterizedStatement,
    ReturnConsumedCapacity, ReturnValuesOnConditionCheckFailure,
};
use zenobe_testing::ServerProcess;

use crate::tables::create_simple;
use crate::typed_client::client;

const TABLE: &str = "statements";

struct Fixture {
    client: Client,
    _server: ServerProcess,
}

impl Fixture {
    fn new() -> Fixture {
        let server = ServerProcess::fresh("statements");
        create_simple(&mut server.client(), TABLE);
        Fixture { client: client(&server, "test"), _server: server }
    }

    async fn run(
        &self,
        statement: &str,
        parameters: &[AttributeValue],
    ) -> Result<ExecuteStatementOutput, ExecuteStatementError> {
        let parameters = (!parameters.is_empty()).then(|| parameters.to_vec());
        let request = self.client.execute_statement().statement(statement);
        let request = request.set_parameters(parameters);
        let request = request
            .return_consumed_capacity(ReturnConsumedCapacity::Total)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        request.send().await.map_err(|error| error.into_service_error())
    }
}

fn text(value: &str) -> AttributeValue {
    AttributeValue::S(value.into())
}

fn number(value: impl std::fmt::Display) -> AttributeValue {
    AttributeValue::N(value.to_string())
}

#[tokio::test]
async fn statements_have_typed_answers_and_errors() {
    let fixture = Fixture::new();
    let insert = format!("INSERT INTO {TABLE} VALUE {{'pk': ?, 'n': ?}}");
    let inserted = fixture.run(&insert, &[text("a"), number(1)]).await.unwrap();
    assert_eq!(inserted.items(), []);
    assert_eq!(inserted.consumed_capacity().unwrap().capacity_units(), Some(1.0));
    let duplicate = fixture.run(&insert, &[text("a"), number(2)]).await.unwrap_err();
    assert!(matches!(duplicate, ExecuteStatementError::DuplicateItemException(_)), "{duplicate}");

    let update = format!("UPDATE {TABLE} SET n = n + 1 WHERE pk = ? AND n = ? RETURNING ALL NEW *");
    let updated = fixture.run(&update, &[text("a"), number(1)]).await.unwrap();
    assert_eq!(updated.items()[0]["n"], number(2));
    match fixture.run(&update, &[text("a"), number(1)]).await.unwrap_err() {
        ExecuteStatementError::ConditionalCheckFailedException(failed) => {
            assert_eq!(failed.item().unwrap()["n"], number(2));
        }
        other => panic!("{other}"),
    }
    let selected =
        fixture.run(&format!("SELECT n FROM {TABLE} WHERE pk = 'a'"), &[]).await.unwrap();
    assert_eq!(selected.items()[0]["n"], number(2));
    assert_eq!(selected.next_token(), None);
    let fault = fixture.run("SELECT * FROM", &[]).await.unwrap_err();
    assert_eq!(fault.code(), Some("ValidationException"));
    let text = "Statement wasn't well formed, can't be processed: Unexpected term";
    assert_eq!(fault.message(), Some(text));
}

#[tokio::test]
async fn pages_follow_their_tokens() {
    let fixture = Fixture::new();
    for index in 0..7 {
        let insert = format!("INSERT INTO {TABLE} VALUE {{'pk': 'item {index}', 'n': {index}}}");
        fixture.run(&insert, &[]).await.unwrap();
    }
    let (mut found, mut pages, mut token) = (Vec::new(), 0, None);
    loop {
        let statement = format!("SELECT n FROM {TABLE} WHERE n >= 2");
        let request = fixture.client.execute_statement().statement(statement).limit(3);
        let page = request.set_next_token(token).send().await.unwrap();
        found.extend(page.items().iter().map(|item| item["n"].as_n().unwrap().clone()));
        pages += 1;
        token = page.next_token().map(str::to_owned);
        if token.is_none() {
            break;
        }
    }
    found.sort();
    assert_eq!((found.join(","), pages), ("2,3,4,5,6".to_owned(), 3));
}

#[tokio::test]
async fn batches_and_transactions_answer_by_statement() {
    let fixture = Fixture::new();
    let statement =
        |text: String| BatchStatementRequest::builder().statement(text).build().unwrap();
    let batch = fixture
        .client
        .batch_execute_statement()
        .statements(statement(format!("INSERT INTO {TABLE} VALUE {{'pk': 'a'}}")))
        .statements(statement(format!("UPDATE {TABLE} SET n = 1 WHERE pk = 'b'")))
        .send()
        .await
        .unwrap();
    let errors: Vec<_> = batch.responses().iter().map(|response| response.error()).collect();
    assert!(errors[0].is_none());
    let code = errors[1].and_then(|error| error.code());
    assert_eq!(code, Some(&BatchStatementErrorCodeEnum::ConditionalCheckFailed));

    let statement =
        |text: String| ParameterizedStatement::builder().statement(text).build().unwrap();
    let transaction = || {
        let exists = format!("EXISTS(SELECT * FROM {TABLE} WHERE pk = 'a' AND n IS MISSING)");
        let insert = format!("INSERT INTO {TABLE} VALUE {{'pk': 'b'}}");
        let request = fixture.client.execute_transaction().transact_statements(statement(exists));
        request.transact_statements(statement(insert))
    };
    transaction().send().await.unwrap();
    let cancelled = transaction().send().await.unwrap_err().into_service_error();
    let reasons = match cancelled {
        aws_sdk_dynamodb::operation::execute_transaction::ExecuteTransactionError::TransactionCanceledException(
            cancelled,
        ) => cancelled.cancellation_reasons().to_vec(),
        other => panic!("{other}"),
    };
    let codes: Vec<_> = reasons.iter().filter_map(|reason| reason.code()).collect();
    assert_eq!(codes, ["None", "DuplicateItem"]);
    let select = statement(format!("SELECT pk FROM {TABLE} WHERE pk = 'b'"));
    let read =
        fixture.client.execute_transaction().transact_statements(select).send().await.unwrap();
    assert_eq!(read.responses()[0].item().unwrap()["pk"], text("b"));
}
