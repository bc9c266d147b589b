//! Limits on items: at the limit and one past it. The inputs are too large for case files.

use crate::cases::World;

const ITEM_SIZE_BYTES_MAX: usize = 409_600;
const PLACEHOLDERS_SIZE_BYTES_MAX: usize = 2 << 20;

const ACCEPTED: &str = "< 200 {}";
const NOT_FOUND: &str = r#"< 400 {"__type":"com.amazonaws.dynamodb.v20120810#ResourceNotFoundException","message":"Requested resource not found"}"#;

fn invalid(message: &str) -> String {
    format!(
        r#"< 400 {{"__type":"com.amazon.coral.validate#ValidationException","message":"{message}"}}"#
    )
}

/// A world with the table `hash`, whose key `p` is a string.
async fn world_with_table() -> World {
    let world = World::new().await;
    let create = r#"{"TableName":"hash","BillingMode":"PAY_PER_REQUEST",
        "AttributeDefinitions":[{"AttributeName":"p","AttributeType":"S"}],
        "KeySchema":[{"AttributeName":"p","KeyType":"HASH"}]}"#;
    let answer = world.answer("CreateTable", create).await;
    assert!(answer.starts_with("< 200 "), "{answer}");
    world
}

/// An item `{p: k, s: aaa…, <more>}` of the given size, including `more_size_bytes` for `more`.
fn item(size_bytes: usize, more: &str, more_size_bytes: usize) -> String {
    let text = "a".repeat(size_bytes - "pk".len() - "s".len() - more_size_bytes);
    format!(r#"{{"p":{{"S":"k"}},"s":{{"S":"{text}"}}{more}}}"#)
}

async fn put(world: &World, table: &str, item: &str) -> String {
    let body = format!(r#"{{"TableName":"{table}","Item":{item}}}"#);
    world.answer("PutItem", &body).await
}

#[tokio::test]
async fn an_item_has_at_most_400_kilobytes() {
    let world = world_with_table().await;
    let too_large = invalid("Item size has exceeded the maximum allowed size");
    // Further attributes of the item, and their size by DynamoDB's rules.
    let shapes = [
        ("", 0),
        (r#","é":{"S":"é"}"#, 4),
        (r#","b":{"B":"AAAA"}"#, 4),
        (r#","n":{"N":"-1.23e120"}"#, 1 + 4),
        (r#","n":{"N":"11111111111111111111111111111111111111"}"#, 1 + 20),
        (r#","t":{"BOOL":true},"z":{"NULL":true}"#, 4),
        (r#","x":{"SS":["ab","c"]},"y":{"NS":["1","0"]}"#, 1 + 3 + 1 + 3),
        (r#","l":{"L":[{"S":"ab"},{"L":[]}]}"#, 1 + 3 + (1 + 2) + (1 + 3)),
        (r#","m":{"M":{"key":{"N":"0"},"k":{"M":{}}}}"#, 1 + 3 + (1 + 3 + 1) + (1 + 1 + 3)),
    ];
    for (more, more_size_bytes) in shapes {
        let largest = item(ITEM_SIZE_BYTES_MAX, more, more_size_bytes);
        assert_eq!(put(&world, "hash", &largest).await, ACCEPTED, "{more}");
        let larger = item(ITEM_SIZE_BYTES_MAX + 1, more, more_size_bytes);
        assert_eq!(put(&world, "hash", &larger).await, too_large, "{more}");
    }
}

#[tokio::test]
async fn the_size_of_a_put_is_checked_before_its_table_and_expected() {
    let world = World::new().await;
    let too_large = invalid("Item size has exceeded the maximum allowed size");
    let largest = item(ITEM_SIZE_BYTES_MAX, "", 0);
    let larger = item(ITEM_SIZE_BYTES_MAX + 1, "", 0);
    assert_eq!(put(&world, "nope", &largest).await, NOT_FOUND);
    assert_eq!(put(&world, "nope", &larger).await, too_large);
    let with_expected = format!(r#"{larger},"Expected":{{"a":{{}}}}"#);
    assert_eq!(put(&world, "nope", &with_expected).await, too_large);
}

/// An update counts the item without its key, plus 3 bytes, plus some for each action.
#[tokio::test]
async fn an_update_counts_its_own_overhead() {
    /// The size of an attribute `n` with a number of one or two digits.
    const N_SIZE_BYTES: usize = 1 + 2;
    let key_size_bytes = "pk".len();
    let cases = [
        ("SET n = :n", 19),
        ("ADD n :n", 19),
        ("SET n = :n REMOVE x, y", 19 + 2 + 2),
        ("SET n = if_not_exists(n, :n) + if_not_exists(m, :n)", 19 + 50),
    ];
    let too_large = invalid("Item size to update has exceeded the maximum allowed size");
    for (update, actions_size_bytes) in cases {
        let largest = ITEM_SIZE_BYTES_MAX + key_size_bytes - 3 - actions_size_bytes;
        for (size_bytes, expected) in [(largest, ACCEPTED), (largest + 1, &*too_large)] {
            let world = world_with_table().await;
            let without_n = item(size_bytes - N_SIZE_BYTES, "", 0);
            assert_eq!(put(&world, "hash", &without_n).await, ACCEPTED);
            let body = format!(
                r#"{{"TableName":"hash","Key":{{"p":{{"S":"k"}}}},"UpdateExpression":"{update}",
                "ExpressionAttributeValues":{{":n":{{"N":"1"}}}}}}"#
            );
            assert_eq!(world.answer("UpdateItem", &body).await, expected, "{update}");
        }
    }
}

#[tokio::test]
async fn placeholders_amount_to_at_most_2_megabytes() {
    let world = World::new().await;
    let too_large = invalid(
        "Combined size of ExpressionAttributeNames and ExpressionAttributeValues exceeds max size",
    );
    let rest_size_bytes = "#a".len() + "name".len() + ":a".len();
    for (excess, expected) in [(0, NOT_FOUND), (1, &*too_large)] {
        let text = "a".repeat(PLACEHOLDERS_SIZE_BYTES_MAX - rest_size_bytes + excess);
        let body = format!(
            r##"{{"TableName":"nope","Key":{{}},"ConditionExpression":"#a = :a",
            "ExpressionAttributeNames":{{"#a":"name"}},
            "ExpressionAttributeValues":{{":a":{{"S":"{text}"}}}}}}"##
        );
        assert_eq!(world.answer("DeleteItem", &body).await, expected);
    }
}

#[tokio::test]
async fn attribute_names_have_less_than_64_kilobytes() {
    let world = world_with_table().await;
    let too_long = invalid("Attribute name is too large, must be less than 65536 bytes");
    for (length, expected) in [(65_535, ACCEPTED), (65_536, &*too_long)] {
        let name = "a".repeat(length);
        let item = item(100_000, &format!(r#","{name}":{{"BOOL":true}}"#), length + 1);
        assert_eq!(put(&world, "hash", &item).await, expected);
    }
}

/// The limit holds in an item's maps and in every parameter that names attributes. With a legal
/// name the request fails later, because there is no table.
#[tokio::test]
async fn no_name_of_an_attribute_is_longer_anywhere() {
    let world = World::new().await;
    let too_long = invalid("Attribute name is too large, must be less than 65536 bytes");
    type Members = fn(&str) -> String;
    let requests: [(&str, Members); 8] = [
        ("PutItem", |name| format!(r#""Item":{{"p":{{"M":{{"{name}":{{"BOOL":true}}}}}}}}"#)),
        ("GetItem", |name| format!(r#""Key":{{"{name}":{{"S":"a"}}}}"#)),
        ("GetItem", |name| format!(r#""Key":{{}},"AttributesToGet":["{name}"]"#)),
        ("UpdateItem", |name| {
            format!(r#""Key":{{}},"AttributeUpdates":{{"{name}":{{"Value":{{"S":"a"}}}}}}"#)
        }),
        ("UpdateItem", |name| {
            format!(
                r##""Key":{{}},"UpdateExpression":"REMOVE #a","ExpressionAttributeNames":{{"#a":"{name}"}}"##
            )
        }),
        ("DeleteItem", |name| format!(r#""Key":{{}},"Expected":{{"{name}":{{"Exists":false}}}}"#)),
        ("Scan", |name| format!(r#""ScanFilter":{{"{name}":{{"ComparisonOperator":"NULL"}}}}"#)),
        ("Query", |name| {
            format!(
                r#""KeyConditions":{{"{name}":{{"ComparisonOperator":"EQ","AttributeValueList":[{{"S":"a"}}]}}}}"#
            )
        }),
    ];
    for (operation, members) in requests {
        for (length, expected) in [(65_535, NOT_FOUND), (65_536, &*too_long)] {
            let body = format!(r#"{{"TableName":"nope",{}}}"#, members(&"a".repeat(length)));
            assert_eq!(world.answer(operation, &body).await, expected, "{operation} {length}");
        }
    }
}
