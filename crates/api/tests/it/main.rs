//! Runs the golden cases of `tests/cases/api` against an engine on the memory store.

mod cases;

#[tokio::test]
async fn golden_cases() {
    let mut failures = Vec::new();
    for file in cases::files() {
        failures.extend(cases::check(&file).await);
    }
    assert!(failures.is_empty(), "{} answers differ\n{}", failures.len(), failures.join("\n"));
}
