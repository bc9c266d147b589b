//! How a statement was executed, in one line for people: the response header `x-zenobe-plan`.

use std::fmt::Write;

use zenobe_engine::command::{Consumed, TransactAction};

use super::plan::{AccessPath, KeyedRead, ReadPlan};
use super::read::SelectedPage;

/// For example `Query; table=Music; index=ByYear; reads=2; filtered; evaluated=10; returned=3;
/// units=0.5`.
pub(crate) fn of_select(plan: &ReadPlan, page: &SelectedPage) -> String {
    let mut line = String::with_capacity(96);
    line.push_str(operation(plan));
    add_source(&mut line, &page.consumed.table.name, plan);
    let _ = write!(line, "; evaluated={}; returned={}", page.evaluated, page.row_count());
    add_units(&mut line, page.consumed.total_halves());
    line
}

/// For example `Scan; table=Music; refused`.
pub(crate) fn of_refused_scan(table: &str, plan: &ReadPlan) -> String {
    let mut line = String::from(operation(plan));
    add_source(&mut line, table, plan);
    line.push_str("; refused");
    line
}

/// For example `UpdateItem; table=Music; units=1`.
pub(crate) fn of_write(action: &'static str, consumed: &Consumed) -> String {
    let mut line = format!("{action}; table={}", consumed.table.name);
    add_units(&mut line, consumed.total_halves());
    line
}

/// For example `TransactWriteItems; statements=3; units=6`.
pub(crate) fn of_many(operation: &str, statements: usize, halves: u64) -> String {
    let mut line = format!("{operation}; statements={statements}");
    add_units(&mut line, halves);
    line
}

pub(crate) fn write_operation(action: &TransactAction) -> &'static str {
    match action {
        TransactAction::Put(_) => "PutItem",
        TransactAction::Update(_) => "UpdateItem",
        TransactAction::Delete(_) => "DeleteItem",
        TransactAction::Check { .. } => "ConditionCheck",
    }
}

fn operation(plan: &ReadPlan) -> &'static str {
    match &plan.access {
        AccessPath::Scan { .. } => "Scan",
        AccessPath::Reads(reads) => {
            let is_item = |read: &KeyedRead| matches!(read, KeyedRead::Item { .. });
            if reads.iter().all(is_item) { "GetItem" } else { "Query" }
        }
    }
}

fn add_source(line: &mut String, table: &str, plan: &ReadPlan) {
    let _ = write!(line, "; table={table}");
    if let Some(index) = &plan.index {
        let _ = write!(line, "; index={index}");
    }
    let is_filtered = match &plan.access {
        AccessPath::Scan { filter } => filter.is_some(),
        AccessPath::Reads(reads) => {
            if reads.len() > 1 {
                let _ = write!(line, "; reads={}", reads.len());
            }
            let is_filtered =
                |read: &KeyedRead| matches!(read, KeyedRead::Range { filter: Some(_), .. });
            reads.iter().any(is_filtered)
        }
    };
    if is_filtered {
        line.push_str("; filtered");
    }
}

/// Units in the shortest form: `1`, `0.5`.
fn add_units(line: &mut String, halves: u64) {
    let fraction = if halves.is_multiple_of(2) { "" } else { ".5" };
    let _ = write!(line, "; units={}{fraction}", halves / 2);
}
