//! Outcomes in the form that scripts print.

use std::fmt::Write;

use zenobe_engine::command::{
    Consumed, ItemCollection, PageOutcome, ReadOutcome, TransactionalUnits, WriteOutcome,
};
use zenobe_engine::error::{CancellationReason, Error};
use zenobe_value::EncodedItem;

use super::notation::print_item;

pub fn encoded(item: &EncodedItem) -> String {
    print_item(&item.as_item().decode())
}

pub fn write(outcome: &WriteOutcome) -> String {
    let mut text = String::new();
    for (label, item) in [("old", &outcome.old), ("new", &outcome.new)] {
        if let Some(item) = item {
            writeln!(text, "{label} {}", encoded(item)).expect("a string takes all text");
        }
    }
    text += &consumed(&outcome.consumed);
    text + &outcome.collection.iter().map(collection).collect::<String>()
}

pub fn read(outcome: &ReadOutcome) -> String {
    let item = outcome.item.as_ref().map_or("nothing".into(), encoded);
    format!("{item}\n{}", consumed(&outcome.consumed))
}

pub fn page(outcome: &PageOutcome) -> String {
    let mut text = String::new();
    for item in outcome.items.iter() {
        text += &format!("{}\n", print_item(&item.decode()));
    }
    text += &format!("count {} of {}\n", outcome.count, outcome.scanned_count);
    if let Some(key) = &outcome.last_evaluated_key {
        text += &format!("last {}\n", print_item(key));
    }
    text + &consumed(&outcome.consumed)
}

pub fn collection(collection: &ItemCollection) -> String {
    format!("collection {} {} bytes\n", print_item(&collection.key), collection.size_bytes)
}

/// In units, as clients see them.
pub fn consumed(consumed: &Consumed) -> String {
    let units = |halves: u64| halves as f64 / 2.0;
    let kind = match consumed.transactional {
        None => "",
        Some(TransactionalUnits::Read) => " (transactional reads)",
        Some(TransactionalUnits::Write) => " (transactional writes)",
    };
    let mut text = format!("consumed {}: {}", consumed.table.name, units(consumed.table_halves));
    for (name, halves) in consumed.local_index_halves.iter().chain(&consumed.global_index_halves) {
        text += &format!(", {name}: {}", units(*halves));
    }
    text + kind + "\n"
}

pub fn error(error: &Error) -> String {
    match error {
        Error::TransactionCancelled(reasons) => {
            reasons.iter().fold("error: cancelled\n".into(), |text, one| text + &reason(one))
        }
        Error::ConditionFailed { item } => {
            let item = item.as_ref().map_or("nothing".into(), encoded);
            format!("error: condition failed on {item}\n")
        }
        other => format!("error: {other:?}\n"),
    }
}

fn reason(reason: &CancellationReason) -> String {
    match reason {
        CancellationReason::None => "- none\n".into(),
        CancellationReason::ConditionFailed { item } => {
            let item = item.as_ref().map_or("nothing".into(), encoded);
            format!("- condition failed on {item}\n")
        }
        CancellationReason::Invalid(invalid) => format!("- {}", error(invalid)),
        CancellationReason::Conflict => "- conflict\n".into(),
        CancellationReason::CollectionTooLarge => "- collection too large\n".into(),
        CancellationReason::Throttled(throttled) => format!("- throttled {throttled:?}\n"),
    }
}
