//! LastEvaluatedKey, sent back as ExclusiveStartKey, leads through everything once, whatever the
//! keys.

use crate::cases::World;

const CREATE_TABLE: &str = r#"{"TableName":"Odd","BillingMode":"PAY_PER_REQUEST",
    "AttributeDefinitions":[{"AttributeName":"p","AttributeType":"S"},{"AttributeName":"s","AttributeType":"B"},{"AttributeName":"n","AttributeType":"N"}],
    "KeySchema":[{"AttributeName":"p","KeyType":"HASH"},{"AttributeName":"s","KeyType":"RANGE"}],
    "LocalSecondaryIndexes":[{"IndexName":"local","KeySchema":[{"AttributeName":"p","KeyType":"HASH"},{"AttributeName":"n","KeyType":"RANGE"}],"Projection":{"ProjectionType":"KEYS_ONLY"}}],
    "GlobalSecondaryIndexes":[{"IndexName":"global","KeySchema":[{"AttributeName":"n","KeyType":"HASH"}],"Projection":{"ProjectionType":"ALL"}}]}"#;

/// Texts as JSON spells them.
const PARTITIONS: [&str; 4] = ["plain", r#"\"quoted\"\\"#, r"\u0000\u0001", "é😀"];
const SORT_KEYS: [&str; 4] = ["AA==", "AAA=", "AP8=", "////"];
const NUMBERS: [&str; 4] = ["-1E+125", "0", "1E-130", "12345678901234567890.123456789012345678"];

#[tokio::test]
async fn pages_lead_through_everything_once() {
    let world = filled().await;
    let all = PARTITIONS.len() * SORT_KEYS.len();
    check(&world, "Scan", "", all).await;
    check(&world, "Scan", r#","IndexName":"local""#, all).await;
    check(&world, "Scan", r#","IndexName":"global","Select":"ALL_ATTRIBUTES""#, all).await;
    for partition in PARTITIONS {
        for options in
            ["", r#","IndexName":"local""#, r#","IndexName":"local","Select":"ALL_ATTRIBUTES""#]
        {
            let query = query("p", &format!(r#"{{"S":"{partition}"}}"#)) + options;
            check(&world, "Query", &query, SORT_KEYS.len()).await;
            check(&world, "Query", &(query + r#","ScanIndexForward":false"#), SORT_KEYS.len())
                .await;
        }
    }
    for number in NUMBERS {
        let query = query("n", &format!(r#"{{"N":"{number}"}}"#)) + r#","IndexName":"global""#;
        check(&world, "Query", &query, PARTITIONS.len()).await;
    }
}

#[tokio::test]
async fn segments_together_have_everything() {
    let world = filled().await;
    for total in [1, 2, 3, 10] {
        let mut found = Vec::new();
        for segment in 0..total {
            let options = format!(r#","Segment":{segment},"TotalSegments":{total}"#);
            found.extend(pages(&world, "Scan", &options).await);
        }
        assert_eq!(distinct(&found), PARTITIONS.len() * SORT_KEYS.len());
        assert_eq!(found.len(), PARTITIONS.len() * SORT_KEYS.len());
    }
}

/// Every number is in every partition, with a different sort key in each.
async fn filled() -> World {
    let world = World::new().await;
    assert!(world.answer("CreateTable", CREATE_TABLE).await.starts_with("< 200"));
    for (shift, partition) in PARTITIONS.iter().enumerate() {
        for (position, sort_key) in SORT_KEYS.iter().enumerate() {
            let number = NUMBERS[(position + shift) % NUMBERS.len()];
            let put = format!(
                r#"{{"TableName":"Odd","Item":{{"p":{{"S":"{partition}"}},"s":{{"B":"{sort_key}"}},"n":{{"N":"{number}"}}}}}}"#
            );
            assert_eq!(world.answer("PutItem", &put).await, "< 200 {}");
        }
    }
    world
}

fn query(attribute: &str, value: &str) -> String {
    format!(
        r#","KeyConditionExpression":"{attribute} = :v","ExpressionAttributeValues":{{":v":{value}}}"#
    )
}

async fn check(world: &World, operation: &str, options: &str, count: usize) {
    let found = pages(world, operation, options).await;
    assert_eq!((found.len(), distinct(&found)), (count, count), "{operation} {options} {found:?}");
}

fn distinct(found: &[String]) -> usize {
    found.iter().collect::<std::collections::BTreeSet<_>>().len()
}

/// The items of all pages of one item each.
async fn pages(world: &World, operation: &str, options: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut start = String::new();
    loop {
        let body = format!(r#"{{"TableName":"Odd","Limit":1{options}{start}}}"#);
        let answer = world.answer(operation, &body).await;
        assert!(answer.starts_with("< 200"), "{body}\n{answer}");
        let Some(key) = between(&answer, r#""LastEvaluatedKey":"#, r#","ScannedCount""#) else {
            assert!(answer.contains(r#""Count":0,"Items":[]"#), "{answer}");
            return found;
        };
        start = format!(r#","ExclusiveStartKey":{key}"#);
        let item = between(&answer, r#""Items":["#, r#"],"LastEvaluatedKey""#);
        found.push(item.unwrap_or_else(|| panic!("a page of one item: {answer}")).to_owned());
    }
}

fn between<'t>(text: &'t str, before: &str, after: &str) -> Option<&'t str> {
    let (_, text) = text.split_once(before)?;
    text.split_once(after).map(|(text, _)| text)
}
