//! Scan: everything in a table or an index, in the order of the hash space, or a segment of it.

use zenobe_store::{Direction, Key, KeyRange};

use crate::Engine;
use crate::catalog::Table;
use crate::command::{PageOutcome, Scan, Segment};
use crate::error::{PageError, Result};
use crate::keyspace;

use super::page::Plan;
use super::select::{Selection, check_page_paths};
use super::source::Source;
use super::start_key::StartKey;

impl Engine {
    pub async fn scan(&self, command: &Scan) -> Result<PageOutcome> {
        let mut table = self.table(&command.table).await?;
        loop {
            let outcome = self.scan_once(&table, command).await;
            if self.is_current(&table).await? {
                return outcome;
            }
            table = self.refresh(&table).await?;
        }
    }

    async fn scan_once(&self, table: &Table, command: &Scan) -> Result<PageOutcome> {
        let page = &command.page;
        let source = Source::resolve(table, command.index.as_deref(), page.consistent)?;
        let range = match command.segment {
            Some(segment) => segment_range(source.prefix(), segment),
            None => KeyRange::prefix(source.prefix().clone()),
        };
        let range = match &page.start_key {
            Some(key) => {
                let start = StartKey::resolve(source, key)?;
                check_segment(&range, &start, command.segment)?;
                start.cut(range, Direction::Forward)
            }
            None => range,
        };
        check_page_paths(source, page)?;
        let selection = Selection::resolve(source, page)?;
        let direction = Direction::Forward;
        let plan =
            Plan { table: &command.table, source, selection, range, direction, request: page };
        plan.read(self).await
    }
}

/// Segments split the hash space evenly; a partition, having one hash, is never split.
fn segment_range(prefix: &Key, segment: Segment) -> KeyRange {
    let boundary = |number: u32| {
        let boundary = (u128::from(number) << 64) / u128::from(segment.total);
        u64::try_from(boundary).ok()
    };
    match boundary(segment.number) {
        Some(first) => keyspace::hash_range(prefix, first, boundary(segment.number + 1)),
        None => KeyRange::new(prefix.clone(), prefix.clone()),
    }
}

fn check_segment(
    range: &KeyRange,
    start: &StartKey,
    segment: Option<Segment>,
) -> Result<(), PageError> {
    match segment {
        Some(Segment { number, total }) if !range.contains(&start.key) => {
            Err(PageError::StartKeyOutsideSegment { total, segment: number })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::TableId;

    #[test]
    fn segments_cover_the_hash_space_without_gaps_or_overlaps() {
        let prefix = keyspace::item_prefix(TableId(1));
        for total in [1, 2, 3, 7, 1_000_000] {
            let range = |number| segment_range(&prefix, Segment { number, total });
            assert_eq!(range(0).start, keyspace::hash_range(&prefix, 0, None).start);
            for number in 1..total.min(1000) {
                assert_eq!(range(number - 1).end, Some(range(number).start), "{number}/{total}");
            }
            assert_eq!(range(total - 1).end, KeyRange::prefix(prefix.clone()).end);
        }
    }
}
