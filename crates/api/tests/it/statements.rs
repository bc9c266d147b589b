//! PartiQL that takes more than one request: pages, and statements of any size.

use crate::cases::World;

async fn world() -> World {
    let world = World::new().await;
    let table = r#"{"TableName":"Pair","AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"},{"AttributeName":"sk","AttributeType":"N"}],"KeySchema":[{"AttributeName":"pk","KeyType":"HASH"},{"AttributeName":"sk","KeyType":"RANGE"}],"BillingMode":"PAY_PER_REQUEST"}"#;
    assert!(world.answer("CreateTable", table).await.starts_with("< 200"));
    world
}

async fn fill(world: &World, partitions: &[&str], count: usize, filler: &str) {
    for partition in partitions {
        for number in 0..count {
            let item = format!(
                r#"{{"TableName":"Pair","Item":{{"pk":{{"S":"{partition}"}},"sk":{{"N":"{number}"}},"f":{{"S":"{filler}"}}}}}}"#
            );
            assert!(world.answer("PutItem", &item).await.starts_with("< 200"));
        }
    }
}

/// A JSON string in the response.
fn member<'a>(answer: &'a str, name: &str) -> Option<&'a str> {
    let start = answer.find(&format!("\"{name}\":\""))? + name.len() + 4;
    answer[start..].split('"').next()
}

fn sort_keys(answer: &str) -> Vec<String> {
    answer
        .split("\"sk\":{\"N\":\"")
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap().to_owned())
        .collect()
}

/// All rows, page by page, and the number of pages.
async fn pages(world: &World, statement: &str, limit: usize) -> (Vec<String>, usize) {
    let (mut rows, mut count, mut token) = (Vec::new(), 0, None::<String>);
    loop {
        let token_member =
            token.map_or(String::new(), |token| format!(r#","NextToken":"{token}""#));
        let body = format!(r#"{{"Statement":"{statement}","Limit":{limit}{token_member}}}"#);
        let answer = world.answer("ExecuteStatement", &body).await;
        assert!(answer.starts_with("< 200"), "{answer}");
        let page = sort_keys(&answer);
        assert!(page.len() <= limit, "{answer}");
        rows.extend(page);
        count += 1;
        token = member(&answer, "NextToken").map(str::to_owned);
        if token.is_none() {
            return (rows, count);
        }
    }
}

#[tokio::test]
async fn pages_go_on_through_all_reads() {
    let world = world().await;
    fill(&world, &["a", "b", "c"], 5, "x").await;
    let numbers = |list: &[usize]| -> Vec<String> { list.iter().map(usize::to_string).collect() };
    for limit in 1..8 {
        let query = "SELECT sk FROM Pair WHERE pk = 'a' AND sk > 0";
        assert_eq!(pages(&world, query, limit).await.0, numbers(&[1, 2, 3, 4]), "{limit}");
        let several = "SELECT sk FROM Pair WHERE pk IN ['c', 'none', 'a'] AND sk < 3";
        assert_eq!(pages(&world, several, limit).await.0, numbers(&[0, 1, 2, 0, 1, 2]), "{limit}");
        let items = "SELECT sk FROM Pair WHERE pk IN ['a', 'b'] AND sk IN [4, 9, 1]";
        assert_eq!(pages(&world, items, limit).await.0, numbers(&[1, 4, 1, 4]), "{limit}");
        let ordered = "SELECT sk FROM Pair WHERE pk IN ['b', 'a'] AND sk > 2 ORDER BY pk, sk DESC";
        assert_eq!(pages(&world, ordered, limit).await.0, numbers(&[4, 3, 4, 3]), "{limit}");
        let filtered = "SELECT sk FROM Pair WHERE pk = 'a' AND sk <> 2 AND f = 'x'";
        assert_eq!(pages(&world, filtered, limit).await.0, numbers(&[0, 1, 3, 4]), "{limit}");
        assert_eq!(pages(&world, "SELECT sk FROM Pair", limit).await.0.len(), 15, "{limit}");
        let nothing = "SELECT sk FROM Pair WHERE f = 'y'";
        assert_eq!(pages(&world, nothing, limit).await, (vec![], 15 / limit + 1), "{limit}");
    }
}

/// A query that can find at most one item has no second page, but further reads may follow.
#[tokio::test]
async fn pages_go_on_through_tables_without_sort_keys() {
    let world = World::new().await;
    let table = r#"{"TableName":"Plain","AttributeDefinitions":[{"AttributeName":"sk","AttributeType":"N"}],"KeySchema":[{"AttributeName":"sk","KeyType":"HASH"}],"BillingMode":"PAY_PER_REQUEST"}"#;
    assert!(world.answer("CreateTable", table).await.starts_with("< 200"));
    for number in 0..4 {
        let insert = format!(r#"{{"Statement":"INSERT INTO Plain VALUE {{'sk': {number}}}"}}"#);
        assert!(world.answer("ExecuteStatement", &insert).await.starts_with("< 200"));
    }
    for limit in 1..6 {
        let statement = "SELECT sk FROM Plain WHERE sk IN [3, 9, 0, 1]";
        assert_eq!(pages(&world, statement, limit).await.0, ["3", "0", "1"], "{limit}");
        let filtered = "SELECT sk FROM Plain WHERE sk IN [3, 9, 0, 1] AND f IS MISSING";
        assert_eq!(pages(&world, filtered, limit).await.0, ["3", "0", "1"], "{limit}");
    }
    assert_eq!(pages(&world, "SELECT sk FROM Plain WHERE sk = 1", 1).await.1, 1);
}

/// A megabyte ends a page, whichever read reaches it.
#[tokio::test]
async fn a_page_has_about_a_megabyte() {
    let world = world().await;
    fill(&world, &["a", "b", "c", "d"], 2, &"x".repeat(300_000)).await;
    let statement = "SELECT sk FROM Pair WHERE pk IN ['a', 'b', 'c', 'd']";
    let (rows, count) = pages(&world, statement, 100).await;
    assert_eq!((rows.len(), count), (8, 2));
}

#[tokio::test]
async fn tokens_belong_to_their_statement_and_parameters() {
    let world = world().await;
    fill(&world, &["a", "b"], 3, "x").await;
    let request = |statement: &str, parameter: &str, more: &str| {
        format!(r#"{{"Statement":"{statement}","Parameters":[{{"S":"{parameter}"}}]{more}}}"#)
    };
    let statement = "SELECT sk FROM Pair WHERE pk = ?";
    let answer = world.answer("ExecuteStatement", &request(statement, "a", r#","Limit":1"#)).await;
    let token = member(&answer, "NextToken").unwrap().to_owned();
    let with = |token: &str, more: &str| format!(r#","NextToken":"{token}"{more}"#);
    // Limit and consistency may change.
    let more = with(&token, r#","Limit":2,"ConsistentRead":true"#);
    let answer = world.answer("ExecuteStatement", &request(statement, "a", &more)).await;
    assert_eq!(sort_keys(&answer), ["1", "2"]);
    let refused = async |statement: &str, parameter: &str, token: &str, text: &str| {
        let answer = world
            .answer("ExecuteStatement", &request(statement, parameter, &with(token, "")))
            .await;
        assert!(answer.contains(&format!("\"message\":\"{text}\"")), "{answer}");
    };
    refused(statement, "b", &token, "NextToken does not match request").await;
    refused("SELECT sk FROM Pair WHERE ? = pk", "a", &token, "NextToken does not match request")
        .await;
    refused("SELECT  sk FROM Pair WHERE pk = ?", "a", &token, "NextToken does not match request")
        .await;
    for damaged in ["x", "AAAA", &token[1..], &token[..token.len() - 4], &token.replace('A', "B")] {
        refused(statement, "a", damaged, "Invalid NextToken").await;
    }
}

#[tokio::test]
async fn statements_of_any_size_are_answered() {
    let world = world().await;
    let statement = async |text: &str, parameters: usize| {
        let parameters = vec![r#"{"S":"x"}"#; parameters].join(",");
        let parameters = if parameters.is_empty() {
            String::new()
        } else {
            format!(r#","Parameters":[{parameters}]"#)
        };
        world.answer("ExecuteStatement", &format!(r#"{{"Statement":"{text}"{parameters}}}"#)).await
    };
    let select = "SELECT * FROM Pair WHERE pk = 'a'";
    let longest = format!("{select}{}", " ".repeat(8192 - select.len()));
    assert_eq!(statement(&longest, 0).await, r#"< 200 {"Items":[]}"#);
    let too_long = statement(&format!("{longest} "), 0).await;
    assert!(
        too_long.ends_with("Member must have length less than or equal to 8192\"}"),
        "{}",
        &too_long[..200]
    );
    // A character counts once, however many bytes it has.
    let wide = format!("SELECT * FROM Pair WHERE pk = '{}'", "é".repeat(8160));
    assert!(statement(&wide, 0).await.contains("maximum size limit of2048 bytes"));
    // More values than any statement can use are checked and dropped.
    assert_eq!(statement(&select.replace("'a'", "?"), 100_000).await, r#"< 200 {"Items":[]}"#);
    let values =
        format!("INSERT INTO Pair VALUE {{'pk': 'many', 'sk': 1{}}}", ", '': ?".repeat(1000));
    assert!(statement(&values, 1000).await.contains("Empty attribute name"));
    for deep in ["(", "[", "{'a':", "NOT ", "size(", "- ", "a = ", "<<", "a.", "a[0]", "?, ", "'"] {
        let text = format!("{select} AND {}", deep.repeat(8000 / deep.len() - 10));
        let answer = statement(&text, 0).await;
        assert!(answer.starts_with("< 400"), "{deep}: {}", &answer[..200]);
    }
}
