//! ConsumedCapacity.

use std::borrow::Cow;
use std::collections::BTreeMap;

use zenobe_engine::command::{Consumed, TransactionalUnits};

use crate::json::Writer;
use crate::operations::enumerations::ReturnCapacity;

/// The member `ConsumedCapacity` of operations on one table, if requested. `table` is what the
/// request calls it: its name or its ARN.
pub(crate) fn write_consumed_member(
    writer: &mut Writer,
    table: &str,
    consumed: &Consumed,
    asked: ReturnCapacity,
) {
    if asked != ReturnCapacity::None {
        let style = CapacityStyle::default();
        write_consumed(writer.name("ConsumedCapacity"), table, consumed, asked, style);
    }
}

/// The member `ConsumedCapacity` of operations on several tables, if requested, with what the
/// request calls each table.
pub(crate) fn write_consumed_list_member<'c>(
    writer: &mut Writer,
    consumed: impl IntoIterator<Item = (Cow<'c, str>, &'c Consumed)>,
    asked: ReturnCapacity,
) {
    if asked != ReturnCapacity::None {
        let style = CapacityStyle::default();
        writer.name("ConsumedCapacity").array(consumed, |writer, (table, consumed)| {
            write_consumed(writer, &table, consumed, asked, style);
        });
    }
}

/// Like [`write_consumed_list_member`], for BatchExecuteStatement: each table comes with the cost
/// of its failed writes, which counts in the total and nowhere else.
pub(crate) fn write_batch_consumed_member<'c>(
    writer: &mut Writer,
    consumed: impl IntoIterator<Item = (&'c Consumed, u64)>,
    asked: ReturnCapacity,
) {
    let mut consumed = consumed.into_iter().peekable();
    if asked != ReturnCapacity::None && consumed.peek().is_some() {
        writer.name("ConsumedCapacity").array(consumed, |writer, (consumed, failed_halves)| {
            let style = CapacityStyle { failed_halves, ..CapacityStyle::default() };
            write_consumed(writer, &consumed.table.name, consumed, asked, style);
        });
    }
}

/// Like [`write_consumed_list_member`], for ExecuteTransaction, which separates reads from writes
/// at every level.
pub(crate) fn write_transaction_consumed_member(
    writer: &mut Writer,
    consumed: &[Consumed],
    asked: ReturnCapacity,
) {
    if asked != ReturnCapacity::None {
        let style = CapacityStyle { indexes_tell_units: true, ..CapacityStyle::default() };
        writer.name("ConsumedCapacity").array(consumed, |writer, consumed| {
            write_consumed(writer, &consumed.table.name, consumed, asked, style);
        });
    }
}

/// How PartiQL's operations differ.
#[derive(Clone, Copy, Default)]
struct CapacityStyle {
    failed_halves: u64,
    indexes_tell_units: bool,
}

fn write_consumed(
    writer: &mut Writer,
    table: &str,
    consumed: &Consumed,
    asked: ReturnCapacity,
    style: CapacityStyle,
) {
    let transactional = consumed.transactional;
    let index_units = transactional.filter(|_| style.indexes_tell_units);
    writer.object(|writer| {
        writer.name("TableName").string(table);
        write_units(writer, consumed.total_halves() + style.failed_halves, transactional);
        if asked == ReturnCapacity::Indexes {
            writer.name("Table").object(|writer| {
                write_units(writer, consumed.table_halves, transactional);
            });
            let (local, global) = (&consumed.local_index_halves, &consumed.global_index_halves);
            write_indexes(writer, "LocalSecondaryIndexes", local, index_units);
            write_indexes(writer, "GlobalSecondaryIndexes", global, index_units);
        }
    });
}

fn write_indexes(
    writer: &mut Writer,
    member: &str,
    indexes: &BTreeMap<String, u64>,
    transactional: Option<TransactionalUnits>,
) {
    if indexes.is_empty() {
        return;
    }
    writer.name(member).object(|writer| {
        for (index, halves) in indexes {
            writer.name(index).object(|writer| write_units(writer, *halves, transactional));
        }
    });
}

/// Only transactions separate reads from writes, and most of them only for the table and in total.
fn write_units(writer: &mut Writer, halves: u64, transactional: Option<TransactionalUnits>) {
    writer.name("CapacityUnits").halves(halves);
    match transactional {
        None => {}
        Some(TransactionalUnits::Read) => writer.name("ReadCapacityUnits").halves(halves),
        Some(TransactionalUnits::Write) => writer.name("WriteCapacityUnits").halves(halves),
    }
}
