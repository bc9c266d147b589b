//! Runs the golden cases of `tests/cases/api` against an engine on the memory store.

mod cases;
mod compat;
mod item_limits;
mod item_properties;
mod memory;
mod mutations;
mod paging;
mod request_limits;
mod statements;

#[global_allocator]
static ALLOCATOR: zenobe_testing::allocations::Counting = zenobe_testing::allocations::Counting;

#[tokio::test]
async fn golden_cases() {
    let mut failures = Vec::new();
    for file in cases::files() {
        failures.extend(cases::check(&file).await);
    }
    assert!(failures.is_empty(), "{} answers differ\n{}", failures.len(), failures.join("\n"));
}

/// A server runs requests on whichever thread is free.
#[tokio::test]
async fn requests_can_move_between_threads() {
    let world = cases::World::new().await;
    let answer = tokio::spawn(async move { world.answer("ListTables", "{}").await });
    assert_eq!(answer.await.unwrap(), r#"< 200 {"TableNames":[]}"#);
}
