//! COMPAT.md says of every operation what the server does with it.

use std::collections::BTreeMap;

use zenobe_api::Operation;

use crate::cases::World;

#[tokio::test]
async fn compat_lists_every_operation_and_whether_it_is_built() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../COMPAT.md");
    let page = std::fs::read_to_string(page).expect("the page is readable");
    let states: BTreeMap<Operation, &str> = page.lines().filter_map(row).collect();
    let world = World::new().await;
    for operation in Operation::ALL {
        let name = operation.name();
        let state = states.get(operation).unwrap_or_else(|| panic!("COMPAT.md lacks {name}"));
        let answer = world.answer(name, "{}").await;
        let is_unknown = answer.contains("UnknownOperationException");
        assert_eq!(is_unknown, *state == "error", "COMPAT.md calls {name} {state}; {answer}");
    }
}

/// The operation and its state in a row of the page's tables.
fn row(line: &str) -> Option<(Operation, &str)> {
    let mut cells = line.strip_prefix("| ")?.split(" | ");
    Some((Operation::from_name(cells.next()?)?, cells.next()?))
}
