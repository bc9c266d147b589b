//! Scan: everything in a table or an index in hash order, or one segment of it.

use zenobe_store::{Direction, Key, KeyRange};

use crate::Engine;
use crate::cache::CachedRequest;
use crate::catalog::Table;
use crate::command::{PageOutcome, PageRequest, RuleSet, Scan, Segment, TableName};
use crate::error::{PageError, Result};
use crate::history::AsOf;
use crate::keyspace::{self, part_start};
use crate::request_facts::PageAccess;
use crate::schema::BillingMode;

use super::page::{Origin, PagePlan, Read};
use super::page_command::PageCommand;
use super::page_partitions::PagePartitions;
use super::select::{Selection, check_filter_paths, check_projection_paths};
use super::source::ReadSource;
use super::start_key::{self, StartKey};

impl Engine {
    pub async fn scan(&self, command: &Scan) -> Result<PageOutcome> {
        self.scan_as(RuleSet::Expressions, command).await
    }

    pub async fn scan_as(&self, rules: RuleSet, command: &Scan) -> Result<PageOutcome> {
        self.page_at(None, rules, command).await
    }
}

impl PageCommand for Scan {
    fn table(&self) -> &TableName {
        &self.table
    }

    fn index(&self) -> Option<&str> {
        self.index.as_deref()
    }

    fn page(&self) -> &PageRequest {
        &self.page
    }

    fn cached(&self, rules: RuleSet) -> CachedRequest<'_> {
        CachedRequest::Scan(rules, self)
    }

    async fn read(
        &self,
        origin: Origin<'_>,
        table: &Table,
        as_of: Option<AsOf>,
        rules: RuleSet,
    ) -> Result<Read> {
        let Origin { engine, .. } = origin;
        let page = &self.page;
        let source = ReadSource::resolve(table, self.index.as_deref(), page.consistent)?;
        let past = engine.past_of(source, as_of).await?;
        let range = match self.segment {
            Some(segment) => segment_range(source.prefix(), segment),
            None => KeyRange::prefix(source.prefix().clone()),
        };
        if let Some(key) = &page.start_key {
            start_key::check_names(source, key)?;
            start_key::check_index_part(source, key)?;
        }
        let selection = Selection::resolve(source, page, rules)?;
        let range = match &page.start_key {
            Some(key) => {
                let start = StartKey::of_scan(source, key)?;
                check_segment(&range, &start, self.segment)?;
                start.cut(range, Direction::Forward)
            }
            None => range,
        };
        check_projection_paths(source, page)?;
        check_filter_paths(source, page)?;
        let rounds_up_each =
            source.index.is_none() && table.definition().billing_mode == BillingMode::PayPerRequest;
        let partitions = rounds_up_each.then(|| {
            let partitions = engine.capacity_of(table).table().partitions();
            PagePartitions::new(source.prefix(), &range, Direction::Forward, partitions)
        });
        let plan = PagePlan {
            table: &self.table,
            source,
            selection,
            range,
            direction: Direction::Forward,
            request: page,
            partitions,
            rounds_up_each,
            access: PageAccess::Scan,
            past: past.as_ref(),
            can_continue: true,
        };
        plan.read(origin).await
    }
}

/// Segments split the hash space evenly: a partition belongs to segment `floor(hash × total /
/// 2^128)`. It has one hash, so it is never split.
fn segment_range(prefix: &Key, segment: Segment) -> KeyRange {
    let end = part_start(segment.number + 1, segment.total);
    match part_start(segment.number, segment.total) {
        Some(first) => keyspace::hash_range(prefix, first, end),
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
    use crate::keyspace::KeyHash;
    use crate::schema::TableId;

    /// AWS's worked examples.
    #[test]
    fn segments_are_those_of_aws() {
        let prefix = keyspace::item_prefix(TableId(1));
        for (hash, of_four, of_ten) in [
            (0x8b542929238862fe7069b842ce6b6946_u128, 2, 5),
            (0xf913dd54df501b2be14e0f09ea2713e0, 3, 9),
            (0x7c24c3cc726244b299750e0bc10b13b2, 1, 4),
        ] {
            let hash = KeyHash::from_bytes(hash.to_be_bytes());
            let key = keyspace::entry_key(&prefix, hash, b"key");
            for (total, expected) in [(4, of_four), (10, of_ten)] {
                let holds = |number: &u32| {
                    segment_range(&prefix, Segment { number: *number, total }).contains(&key)
                };
                assert_eq!((0..total).filter(holds).collect::<Vec<_>>(), [expected]);
            }
        }
    }

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
