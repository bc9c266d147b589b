//! A partition map in its stored form, with the peaks of the traffic that it has seen.

use zenobe_store::{Key, Value};

use super::partition_map::{PartitionMap, PartitionStart};
use crate::error::Result;
use crate::row::{Fields, corrupt};

const FORMAT: u64 = 1;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MapRow {
    pub map: PartitionMap,
    pub peaks: Peaks,
}

/// The highest traffic that an on-demand table has settled at, in units per second. It serves twice
/// as much at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Peaks {
    pub read_units: u64,
    pub write_units: u64,
}

impl MapRow {
    pub fn encode(&self) -> Value {
        let partition = |partition: &PartitionStart| {
            let mut fields = Fields::default();
            fields.number("id", partition.id.into());
            fields.bytes("first", &partition.first);
            fields.0
        };
        let mut fields = Fields::default();
        fields.number("format", FORMAT);
        fields.number("next_id", self.map.next_id().into());
        fields.number("peak_read_units", self.peaks.read_units);
        fields.number("peak_write_units", self.peaks.write_units);
        fields.list("partitions", self.map.partitions().iter().map(partition));
        fields.encode()
    }

    pub fn decode(row: &[u8]) -> Result<MapRow> {
        let what = "a partition map";
        let mut fields = Fields::decode(row, what)?;
        fields.check_format(what, FORMAT)?;
        let partition = |partition| {
            let mut fields = Fields(partition);
            let first = Key::from(fields.take_bytes("first")?);
            Ok(PartitionStart { id: fields.take_u32("id")?, first })
        };
        let partitions = fields.take_filled_list("partitions", partition)?;
        let map = PartitionMap::from_parts(partitions, fields.take_u32("next_id")?);
        Ok(MapRow {
            map: map.ok_or_else(|| corrupt(format!("{what} with gaps or out of order")))?,
            peaks: Peaks {
                read_units: fields.take_number("peak_read_units")?,
                write_units: fields.take_number("peak_write_units")?,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_decode_to_what_was_encoded() {
        let mut map = PartitionMap::even(3);
        map.split(&Key::from([&[0xF0; 16][..], b"inside"].concat()));
        let row = MapRow { map, peaks: Peaks { read_units: 13_000, write_units: 0 } };
        assert_eq!(MapRow::decode(&row.encode()).unwrap(), row);
        assert!(MapRow::decode(b"?").is_err());
    }

    #[test]
    fn a_map_with_gaps_does_not_decode() {
        let whole = MapRow { map: PartitionMap::even(2), peaks: Peaks::default() };
        let mut fields = Fields::decode(&whole.encode(), "").unwrap();
        let partitions = fields.take_list("partitions", Ok).unwrap();
        fields.list("partitions", partitions.into_iter().skip(1));
        assert!(MapRow::decode(&fields.encode()).is_err());
    }
}
