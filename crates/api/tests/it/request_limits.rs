//! Limits that need large requests, which are built here instead of written as cases.

use crate::cases::World;

const TABLES: [&str; 2] = ["Left", "Right"];

async fn world() -> World {
    let world = World::new().await;
    for table in TABLES {
        world.succeed("CreateTable", &format!(
            r#"{{"TableName":"{table}","AttributeDefinitions":[{{"AttributeName":"pk","AttributeType":"S"}},{{"AttributeName":"sk","AttributeType":"N"}}],"KeySchema":[{{"AttributeName":"pk","KeyType":"HASH"}},{{"AttributeName":"sk","KeyType":"RANGE"}}],"BillingMode":"PAY_PER_REQUEST"}}"#
        )).await;
    }
    world
}

impl World {
    async fn succeed(&self, operation: &str, body: &str) -> String {
        let answer = self.answer(operation, body).await;
        assert!(answer.starts_with("< 200 "), "{operation}: {}", start(&answer));
        answer
    }

    /// The request must fail with this text.
    async fn fail(&self, operation: &str, body: &str, message: &str) {
        let answer = self.answer(operation, body).await;
        let expected = format!(
            r#"< 400 {{"__type":"com.amazon.coral.validate#ValidationException","message":"{message}"}}"#
        );
        assert_eq!(start(&answer), start(&expected), "{operation}");
        assert_eq!(answer.len(), expected.len(), "{operation}");
    }

    /// Puts items 0 to `count` into the table's only partition.
    async fn fill(&self, table: &str, count: usize, item_size_bytes: usize) {
        for number in 0..count {
            let item = item(number, item_size_bytes);
            self.succeed("PutItem", &format!(r#"{{"TableName":"{table}","Item":{item}}}"#)).await;
        }
    }
}

/// Enough of a response to understand a failure.
fn start(answer: &str) -> String {
    answer.chars().take(400).collect()
}

fn key(number: usize) -> String {
    format!(r#"{{"pk":{{"S":"p"}},"sk":{{"N":"{number}"}}}}"#)
}

/// An item of exactly this size, with a number below 100.
fn item(number: usize, size_bytes: usize) -> String {
    // A number takes one byte, and one more for its pair of digits unless it is zero.
    let number_size_bytes = 1 + usize::from(number != 0);
    let filler_size_bytes = size_bytes - "pkpsk".len() - number_size_bytes - "f".len();
    let filler = "x".repeat(filler_size_bytes);
    format!(r#"{{"pk":{{"S":"p"}},"sk":{{"N":"{number}"}},"f":{{"S":"{filler}"}}}}"#)
}

fn list(numbers: impl Iterator<Item = usize>, element: impl Fn(usize) -> String) -> String {
    numbers.map(element).collect::<Vec<_>>().join(",")
}

fn keys(count: usize) -> String {
    format!(r#"{{"Keys":[{}]}}"#, list(0..count, key))
}

fn puts(count: usize) -> String {
    let put = |number| format!(r#"{{"PutRequest":{{"Item":{}}}}}"#, key(number));
    format!("[{}]", list(0..count, put))
}

/// Two tables' parts of RequestItems.
fn both(left: &str, right: &str) -> String {
    format!(r#"{{"RequestItems":{{"Left":{left},"Right":{right}}}}}"#)
}

fn left(part: &str) -> String {
    format!(r#"{{"RequestItems":{{"Left":{part}}}}}"#)
}

fn transaction(actions: &str) -> String {
    format!(r#"{{"TransactItems":[{actions}]}}"#)
}

fn java_objects(shape: &str, count: usize) -> String {
    list(0..count, |_| format!("com.amazonaws.dynamodb.v20120810.{shape}@1")).replace(',', ", ")
}

#[tokio::test]
async fn a_batch_gets_up_to_100_keys() {
    let world = world().await;
    world.succeed("BatchGetItem", &left(&keys(100))).await;
    world.succeed("BatchGetItem", &both(&keys(50), &keys(50))).await;
    let message = "1 validation error detected: Value at 'RequestItems.Left.member.Keys' failed \
        to satisfy constraint: Member must have length less than or equal to 100";
    world.fail("BatchGetItem", &left(&keys(101)), message).await;
    let message = "Too many items requested for the BatchGetItem call";
    world.fail("BatchGetItem", &both(&keys(51), &keys(50)), message).await;
}

#[tokio::test]
async fn a_batch_writes_up_to_25_items() {
    let world = world().await;
    world.succeed("BatchWriteItem", &left(&puts(25))).await;
    world.succeed("BatchWriteItem", &both(&puts(12), &puts(13))).await;
    let printed = java_objects("WriteRequest", 26);
    let message = format!(
        "1 validation error detected: Value '{{Left=[{printed}]}}' at 'requestItems' failed to \
        satisfy constraint: Map value must satisfy constraint: [Member must have length less \
        than or equal to 25, Member must have length greater than or equal to 1]"
    );
    world.fail("BatchWriteItem", &left(&puts(26)), &message).await;
    let message = "Too many items requested for the BatchWriteItem call";
    world.fail("BatchWriteItem", &both(&puts(13), &puts(13)), message).await;
}

#[tokio::test]
async fn a_batch_writes_items_of_up_to_400_kilobytes() {
    let world = world().await;
    let put = |size| left(&format!(r#"[{{"PutRequest":{{"Item":{}}}}}]"#, item(7, size)));
    world.succeed("BatchWriteItem", &put(409_600)).await;
    let message = "Item size has exceeded the maximum allowed size";
    world.fail("BatchWriteItem", &put(409_601), message).await;
    let missing = put(409_601).replace("Left", "Missing");
    world.fail("BatchWriteItem", &missing, message).await;
}

#[tokio::test]
async fn a_transaction_has_up_to_100_actions() {
    let world = world().await;
    let put = |number| format!(r#"{{"Put":{{"TableName":"Left","Item":{}}}}}"#, key(number));
    let get = |number| format!(r#"{{"Get":{{"TableName":"Left","Key":{}}}}}"#, key(number));
    world.succeed("TransactWriteItems", &transaction(&list(0..100, put))).await;
    let found = world.succeed("TransactGetItems", &transaction(&list(0..100, get))).await;
    assert_eq!(found.matches(r#"{"Item":"#).count(), 100);
    let too_many = |shape| {
        let printed = java_objects(shape, 101);
        format!(
            "1 validation error detected: Value '[{printed}]' at 'transactItems' failed to \
            satisfy constraint: Member must have length less than or equal to 100"
        )
    };
    let body = transaction(&list(0..101, put));
    world.fail("TransactWriteItems", &body, &too_many("TransactWriteItem")).await;
    let body = transaction(&list(0..101, get));
    world.fail("TransactGetItems", &body, &too_many("TransactGetItem")).await;
}

const PAYLOAD_TOO_LARGE: &str = "Transaction payload size cannot exceed 4 MB";

#[tokio::test]
async fn a_transaction_carries_up_to_4_megabytes() {
    let world = world().await;
    let put = |size| {
        move |number| format!(r#"{{"Put":{{"TableName":"Left","Item":{}}}}}"#, item(number, size))
    };
    // 16 puts of 256 KB make 4 MB, although their JSON is larger.
    let body = transaction(&list(0..16, put(256 * 1024)));
    assert!(body.len() > 4 * 1024 * 1024);
    world.succeed("TransactWriteItems", &body).await;
    let body = transaction(&format!(
        "{},{}",
        list(0..15, put(256 * 1024)),
        list(15..16, put(256 * 1024 + 1))
    ));
    world.fail("TransactWriteItems", &body, PAYLOAD_TOO_LARGE).await;
    let body = transaction(&list(0..1, put(409_601)));
    let message = "Item size has exceeded the maximum allowed size";
    world.fail("TransactWriteItems", &body, message).await;
}

#[tokio::test]
async fn deleted_items_do_not_count_in_a_transaction() {
    let world = world().await;
    world.fill("Left", 13, 400_000).await;
    let delete = |number| format!(r#"{{"Delete":{{"TableName":"Left","Key":{}}}}}"#, key(number));
    world.succeed("TransactWriteItems", &transaction(&list(0..13, delete))).await;
}

#[tokio::test]
async fn a_transaction_reads_up_to_4_megabytes() {
    let world = world().await;
    world.fill("Left", 17, 256 * 1024).await;
    let get = |number| format!(r#"{{"Get":{{"TableName":"Left","Key":{}}}}}"#, key(number));
    world.succeed("TransactGetItems", &transaction(&list(0..16, get))).await;
    let body = transaction(&list(0..17, get));
    world.fail("TransactGetItems", &body, PAYLOAD_TOO_LARGE).await;
    // The size read counts, not what a projection leaves of it.
    let get_little = |number| {
        let key = key(number);
        format!(r#"{{"Get":{{"TableName":"Left","Key":{key},"ProjectionExpression":"sk"}}}}"#)
    };
    world.succeed("TransactGetItems", &transaction(&list(0..16, get_little))).await;
    let body = transaction(&list(0..17, get_little));
    world.fail("TransactGetItems", &body, PAYLOAD_TOO_LARGE).await;
}

#[tokio::test]
async fn a_page_ends_with_the_item_that_fills_a_megabyte() {
    let world = world().await;
    world.fill("Left", 12, 100_000).await;
    let query = |more: &str| {
        format!(
            r#"{{"TableName":"Left","KeyConditionExpression":"pk = :p","ExpressionAttributeValues":{{":p":{{"S":"p"}}}},"ProjectionExpression":"sk","ReturnConsumedCapacity":"TOTAL"{more}}}"#
        )
    };
    // 11 items of 100,000 bytes are the first to reach 1,048,576 bytes: 269 blocks of 4 KB at half
    // a unit each.
    let first = world.succeed("Query", &query("")).await;
    let end = format!(
        r#""LastEvaluatedKey":{},"ScannedCount":11,"ConsumedCapacity":{{"TableName":"Left","CapacityUnits":134.5}}}}"#,
        key(10)
    );
    assert!(first.ends_with(&end), "{first}");
    let next = format!(r#","ExclusiveStartKey":{}"#, key(10));
    let second = world.succeed("Query", &query(&next)).await;
    assert!(
        second.contains(r#""Count":1,"Items":[{"sk":{"N":"11"}}],"ScannedCount":1,"#),
        "{second}"
    );
    let scan =
        r#"{"TableName":"Left","Select":"COUNT","FilterExpression":"attribute_not_exists(f)"}"#;
    let scan = world.succeed("Scan", scan).await;
    let expected =
        format!(r#"< 200 {{"Count":0,"LastEvaluatedKey":{},"ScannedCount":11}}"#, key(10));
    assert_eq!(scan, expected);
}

#[tokio::test]
async fn a_batch_get_returns_up_to_16_megabytes() {
    let world = world().await;
    world.fill("Left", 42, 400_000).await;
    world.fill("Right", 1, 1_000).await;
    let request = |table: &str, keys: &str| {
        format!(
            r##""{table}":{{"Keys":[{keys}],"ConsistentRead":true,"ProjectionExpression":"#s","ExpressionAttributeNames":{{"#s":"sk"}}}}"##
        )
    };
    let (left, right) = (request("Left", &list(0..42, key)), request("Right", &key(0)));
    let body = format!(r#"{{"RequestItems":{{{left},{right}}}}}"#);
    let answer = world.succeed("BatchGetItem", &body).await;
    // 41 items of 400,000 bytes fit in 16,777,216; the unprocessed keys can be sent again
    // unchanged.
    let found = list(0..41, |number| format!(r#"{{"sk":{{"N":"{number}"}}}}"#));
    let expected = format!(
        r#"< 200 {{"Responses":{{"Left":[{found}],"Right":[]}},"UnprocessedKeys":{{{},{}}}}}"#,
        request("Left", &key(41)),
        request("Right", &key(0))
    );
    assert_eq!(answer, expected);
}

/// Requests with very many tiny elements fail like those with a few too many, and with a short
/// text.
#[tokio::test]
async fn responses_to_endless_lists_are_short() {
    let world = World::new().await;
    let list = |element: &str, count: usize| vec![element; count].join(",");
    let tables = |value: &str, count: usize| {
        let entries: Vec<String> =
            (0..count).map(|number| format!(r#""table{number}":{value}"#)).collect();
        entries.join(",")
    };
    let check = async |operation: &str, body: String, expected: &str| {
        let answer = world.answer(operation, &body).await;
        assert!(answer.contains(expected), "{operation}: {}", start(&answer));
        assert!(answer.len() < 200 * 1024, "{operation}: {} bytes", answer.len());
    };
    for operation in ["TransactWriteItems", "TransactGetItems"] {
        let body = format!(r#"{{"TransactItems":[{}]}}"#, list("{}", 50_000));
        let expected = "'transactItems' failed to satisfy constraint: \
             Member must have length less than or equal to 100";
        check(operation, body, expected).await;
    }
    let expected = "'requestItems' failed to satisfy constraint";
    let writes = format!(r#"{{"RequestItems":{{"Left":[{}]}}}}"#, list("{}", 50_000));
    check("BatchWriteItem", writes, expected).await;
    let writes = tables(&format!("[{}]", list("{}", 26)), 5_000);
    check("BatchWriteItem", format!(r#"{{"RequestItems":{{{writes}}}}}"#), expected).await;
    let gets = tables(r#"{"Keys":[{}]}"#, 20_000);
    let expected = "Too many items requested for the BatchGetItem call";
    check("BatchGetItem", format!(r#"{{"RequestItems":{{{gets}}}}}"#), expected).await;
    let keys = format!(r#"{{"RequestItems":{{"Left":{{"Keys":[{}]}}}}}}"#, list("{}", 50_000));
    check("BatchGetItem", keys, "ValidationException").await;
}
