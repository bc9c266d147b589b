//! Scan: everything in a table or an index in hash order, or one segment of it.

use zenobe_store::{Direction, Key, KeyRange};

use crate::Engine;
use crate::cache::CachedRequest;
use crate::catalog::Table;
use crate::command::{PageOutcome, RuleSet, Scan, Segment};
use crate::error::{PageError, Result};
use crate::history::AsOf;
use crate::keyspace;
use crate::schema::BillingMode;

use super::page::{Origin, PagePlan, Read};
use super::scan_charge::ScanCharge;
use super::select::{Selection, check_filter_paths, check_projection_paths};
use super::source::Source;
use super::start_key::{self, StartKey};

impl Engine {
    pub async fn scan(&self, command: &Scan) -> Result<PageOutcome> {
        self.scan_as(RuleSet::Expressions, command).await
    }

    pub async fn scan_as(&self, rules: RuleSet, command: &Scan) -> Result<PageOutcome> {
        self.scan_at(None, rules, command).await
    }

    pub(super) async fn scan_at(
        &self,
        as_of: Option<AsOf>,
        rules: RuleSet,
        command: &Scan,
    ) -> Result<PageOutcome> {
        match &self.query_cache {
            Some(cache) if as_of.is_none() && !command.page.consistent => {
                let request = CachedRequest::Scan(rules, command);
                let read = self.scan_stored(None, rules, command);
                Box::pin(self.page_through(cache, request, read)).await
            }
            _ => self.scan_stored(as_of, rules, command).await,
        }
    }

    async fn scan_stored(
        &self,
        as_of: Option<AsOf>,
        rules: RuleSet,
        command: &Scan,
    ) -> Result<PageOutcome> {
        let mut table = self.table(&command.table).await?;
        let (index, is_exact) = (command.index.as_deref(), as_of.is_some());
        let replica = self.replica(table.name(), index, command.page.consistent || is_exact);
        if let Some(replica) = replica {
            let origin = Origin { engine: self, replica: Some(&*replica) };
            let read = self.scan_once(origin, &table, None, rules, command).await;
            if let Ok(Read { outcome, is_current: true }) = read {
                return Ok(outcome);
            }
        }
        let origin = Origin { engine: self, replica: None };
        loop {
            let read = self.scan_once(origin, &table, as_of, rules, command).await;
            if let Some(outcome) = self.accept_read(read, &mut table).await? {
                return Ok(outcome);
            }
        }
    }

    async fn scan_once(
        &self,
        origin: Origin<'_>,
        table: &Table,
        as_of: Option<AsOf>,
        rules: RuleSet,
        command: &Scan,
    ) -> Result<Read> {
        let page = &command.page;
        let source = Source::resolve(table, command.index.as_deref(), page.consistent)?;
        let past = self.past_of(source, as_of).await?;
        let range = match command.segment {
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
                check_segment(&range, &start, command.segment)?;
                start.cut(range, Direction::Forward)
            }
            None => range,
        };
        check_projection_paths(source, page)?;
        check_filter_paths(source, page)?;
        let is_charged_by_partition =
            source.index.is_none() && table.definition().billing_mode == BillingMode::PayPerRequest;
        let scan_charge = is_charged_by_partition.then(|| ScanCharge::new(source.prefix(), &range));
        let plan = PagePlan {
            table: &command.table,
            source,
            selection,
            range,
            direction: Direction::Forward,
            request: page,
            scan_charge,
            past: past.as_ref(),
            can_continue: true,
        };
        plan.read(origin).await
    }
}

/// Segments split the hash space evenly: a partition belongs to segment `floor(hash × total /
/// 2^128)`. It has one hash, so it is never split.
fn segment_range(prefix: &Key, segment: Segment) -> KeyRange {
    let end = boundary(segment.number + 1, segment.total);
    match boundary(segment.number, segment.total) {
        Some(first) => keyspace::hash_range(prefix, first, end),
        None => KeyRange::new(prefix.clone(), prefix.clone()),
    }
}

/// The first hash of a segment: `number × 2^128 / total`, rounded up. `None` after the last one.
fn boundary(number: u32, total: u32) -> Option<u128> {
    if number >= total {
        return None;
    }
    // Computes 64 bits of the quotient at a time: both dividends have fewer than 64 + 32 bits.
    let total = u128::from(total);
    let upper = u128::from(number) << 64;
    let lower = (upper % total) << 64;
    let quotient = ((upper / total) << 64) | (lower / total);
    Some(if lower.is_multiple_of(total) { quotient } else { quotient + 1 })
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
    fn boundaries_are_exact() {
        assert_eq!(boundary(0, 3), Some(0));
        // The first h with floor(3h / 2^128) = 1.
        assert_eq!(boundary(1, 3), Some(u128::MAX / 3 + 1));
        assert_eq!(boundary(1, 2), Some(1 << 127));
        let last = 340_282_026_638_571_542_524_911_144_057_160_779_688;
        assert_eq!(boundary(999_999, 1_000_000), Some(last));
        assert_eq!(boundary(3, 3), None);
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
