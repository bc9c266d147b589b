//! ConsumedCapacity.

use std::collections::BTreeMap;

use zenobe_engine::command::{Consumed, TransactionalUnits};

use crate::json::Writer;
use crate::operations::enumerations::ReturnCapacity;

/// The member `ConsumedCapacity` of operations on one table, if it was asked for.
pub(crate) fn write_consumed_member(
    writer: &mut Writer,
    consumed: &Consumed,
    asked: ReturnCapacity,
) {
    if asked != ReturnCapacity::None {
        write_consumed(writer.name("ConsumedCapacity"), consumed, asked);
    }
}

/// The member `ConsumedCapacity` of operations on several tables, if it was asked for.
pub(crate) fn write_consumed_list_member<'c>(
    writer: &mut Writer,
    consumed: impl IntoIterator<Item = &'c Consumed>,
    asked: ReturnCapacity,
) {
    if asked != ReturnCapacity::None {
        writer.name("ConsumedCapacity").array(consumed, |writer, consumed| {
            write_consumed(writer, consumed, asked);
        });
    }
}

fn write_consumed(writer: &mut Writer, consumed: &Consumed, asked: ReturnCapacity) {
    let transactional = consumed.transactional;
    writer.object(|writer| {
        writer.name("TableName").string(&consumed.table.name);
        write_units(writer, consumed.total_halves(), transactional);
        if asked == ReturnCapacity::Indexes {
            writer.name("Table").object(|writer| {
                write_units(writer, consumed.table_halves, transactional);
            });
            let (local, global) = (&consumed.local_index_halves, &consumed.global_index_halves);
            write_indexes(writer, "LocalSecondaryIndexes", local);
            write_indexes(writer, "GlobalSecondaryIndexes", global);
        }
    });
}

fn write_indexes(writer: &mut Writer, member: &str, indexes: &BTreeMap<String, u64>) {
    if indexes.is_empty() {
        return;
    }
    writer.name(member).object(|writer| {
        for (index, halves) in indexes {
            writer.name(index).object(|writer| write_units(writer, *halves, None));
        }
    });
}

/// Only transactions tell reads from writes, and only for the table and in total.
fn write_units(writer: &mut Writer, halves: u64, transactional: Option<TransactionalUnits>) {
    writer.name("CapacityUnits").halves(halves);
    match transactional {
        None => {}
        Some(TransactionalUnits::Read) => writer.name("ReadCapacityUnits").halves(halves),
        Some(TransactionalUnits::Write) => writer.name("WriteCapacityUnits").halves(halves),
    }
}
