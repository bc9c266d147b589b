//! Ranges of sort keys: combines the conditions on one sort key, and checks whether two ranges
//! overlap.

use zenobe_expression::{Comparator, KeyOperator};
use zenobe_value::{AttributeValue, key_bytes};

use super::branch::{Branch, Conjunct, by_partition_bytes};
use crate::error::ApiError;
use crate::messages::partiql as messages;

/// A condition that is a range of sort keys.
#[derive(Debug, Clone, Copy)]
pub(super) enum SortTest<'p> {
    Equal(&'p AttributeValue),
    Low(Bound<'p>),
    High(Bound<'p>),
    Between(&'p AttributeValue, &'p AttributeValue),
    BeginsWith(&'p AttributeValue),
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Bound<'p> {
    value: &'p AttributeValue,
    inclusive: bool,
}

impl<'p> SortTest<'p> {
    pub(super) fn values(self) -> impl Iterator<Item = &'p AttributeValue> {
        let (first, second) = match self {
            SortTest::Equal(value) | SortTest::BeginsWith(value) => (value, None),
            SortTest::Low(bound) | SortTest::High(bound) => (bound.value, None),
            SortTest::Between(low, high) => (low, Some(high)),
        };
        std::iter::once(first).chain(second)
    }

    pub(super) fn comparison(
        comparator: Comparator,
        value: &'p AttributeValue,
    ) -> Option<SortTest<'p>> {
        let bound = |inclusive| Bound { value, inclusive };
        Some(match comparator {
            Comparator::Equal => SortTest::Equal(value),
            Comparator::Less => SortTest::High(bound(false)),
            Comparator::LessOrEqual => SortTest::High(bound(true)),
            Comparator::Greater => SortTest::Low(bound(false)),
            Comparator::GreaterOrEqual => SortTest::Low(bound(true)),
            Comparator::NotEqual => return None,
        })
    }
}

/// A branch's conditions on its sort key. One range is pushed down to the query; the filter gets
/// what doesn't fit into it.
#[derive(Debug, Default)]
pub(super) struct SortRange<'p> {
    tests: Vec<(Conjunct<'p>, SortTest<'p>)>,
    pushed: Option<KeyOperator>,
    /// Whether the branch negates a condition on the sort key.
    pub(super) is_negated: bool,
}

impl<'p> SortRange<'p> {
    pub(super) fn add(&mut self, part: Conjunct<'p>, test: SortTest<'p>) {
        self.tests.push((part, test));
    }

    /// Decides what is pushed down, and returns the rest.
    pub(super) fn resolve(&mut self) -> Vec<Conjunct<'p>> {
        let find = |wanted: fn(&SortTest<'p>) -> bool| {
            self.tests.iter().position(|(_, test)| wanted(test))
        };
        let exact = find(|test| matches!(test, SortTest::Equal(_)))
            .or_else(|| find(|test| matches!(test, SortTest::BeginsWith(_))));
        match exact {
            Some(pushed) => {
                self.pushed = Some(match self.tests[pushed].1 {
                    SortTest::BeginsWith(prefix) => KeyOperator::BeginsWith(prefix.clone()),
                    SortTest::Equal(value) => KeyOperator::Equal(value.clone()),
                    other => unreachable!("{other:?} is a pair of bounds"),
                });
                let others = self.tests.iter().enumerate().filter(|(at, _)| *at != pushed);
                others.map(|(_, (part, _))| *part).collect()
            }
            None => {
                self.pushed = self.bounds();
                Vec::new()
            }
        }
    }

    /// All bounds combined.
    fn bounds(&self) -> Option<KeyOperator> {
        let (mut low, mut high): (Option<Bound<'p>>, Option<Bound<'p>>) = (None, None);
        let mut raise = |bound: Bound<'p>| low = Some(tighter(low, bound, true));
        let mut lower = |bound: Bound<'p>| high = Some(tighter(high, bound, false));
        for (_, test) in &self.tests {
            match test {
                SortTest::Low(bound) => raise(*bound),
                SortTest::High(bound) => lower(*bound),
                SortTest::Between(low, high) => {
                    raise(Bound { value: low, inclusive: true });
                    lower(Bound { value: high, inclusive: true });
                }
                SortTest::Equal(_) | SortTest::BeginsWith(_) => {}
            }
        }
        Some(match (low, high) {
            (None, None) => return None,
            (Some(low), None) if low.inclusive => KeyOperator::GreaterOrEqual(low.value.clone()),
            (Some(low), None) => KeyOperator::Greater(low.value.clone()),
            (None, Some(high)) if high.inclusive => KeyOperator::LessOrEqual(high.value.clone()),
            (None, Some(high)) => KeyOperator::Less(high.value.clone()),
            (Some(low), Some(high)) => KeyOperator::Within {
                low: low.value.clone(),
                low_inclusive: low.inclusive,
                high: high.value.clone(),
                high_inclusive: high.inclusive,
            },
        })
    }

    /// What is pushed down; `None` is the whole partition.
    pub(super) fn operator(&self) -> Option<KeyOperator> {
        self.pushed.clone()
    }

    /// The conditions that were pushed down or filtered.
    pub(super) fn parts(&self) -> impl Iterator<Item = Conjunct<'p>> {
        self.tests.iter().map(|(part, _)| *part)
    }

    /// The start and end of the range in key bytes.
    pub(super) fn bytes(&self) -> ByteRange {
        let at = |value: &AttributeValue| {
            let mut bytes = Vec::new();
            key_bytes::encode(value, &mut bytes).expect("the type was checked");
            bytes
        };
        // No key is a prefix of another, so nothing lies between a key and this.
        let behind = |value: &AttributeValue| [&at(value)[..], &[0]].concat();
        let from = |value, inclusive| if inclusive { at(value) } else { behind(value) };
        let to = |value, inclusive| Some(if inclusive { behind(value) } else { at(value) });
        let (start, end) = match &self.pushed {
            None => (Vec::new(), None),
            Some(KeyOperator::Equal(value)) => (at(value), to(value, true)),
            Some(KeyOperator::Less(value)) => (Vec::new(), to(value, false)),
            Some(KeyOperator::LessOrEqual(value)) => (Vec::new(), to(value, true)),
            Some(KeyOperator::Greater(value)) => (from(value, false), None),
            Some(KeyOperator::GreaterOrEqual(value)) => (from(value, true), None),
            Some(KeyOperator::Between(low, high)) => (from(low, true), to(high, true)),
            Some(KeyOperator::Within { low, low_inclusive, high, high_inclusive }) => {
                (from(low, *low_inclusive), to(high, *high_inclusive))
            }
            Some(KeyOperator::BeginsWith(prefix)) => prefix_range(prefix),
            Some(KeyOperator::NotIndexable) => (Vec::new(), None),
        };
        ByteRange { start, end }
    }
}

/// Half open; `None` is unbounded.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ByteRange {
    pub(super) start: Vec<u8>,
    end: Option<Vec<u8>>,
}

impl ByteRange {
    fn meets(&self, other: &ByteRange) -> bool {
        let is_before =
            |end: &Option<Vec<u8>>, start: &Vec<u8>| end.as_ref().is_some_and(|end| end <= start);
        let is_empty = |range: &ByteRange| is_before(&range.end, &range.start);
        !is_empty(self)
            && !is_empty(other)
            && !is_before(&self.end, &other.start)
            && !is_before(&other.end, &self.start)
    }
}

/// Two branches may not read the same items. A branch with a negation has no range to compare.
pub(super) fn check_overlaps(branches: &[Branch<'_>]) -> Result<(), ApiError> {
    if branches.len() == 1 {
        return Ok(());
    }
    for group in by_partition_bytes(branches).values().filter(|group| group.len() > 1) {
        let ranged = group.iter().filter(|branch| !branch.is_unranged());
        let mut ranges: Vec<ByteRange> = ranged.map(|branch| branch.sort.bytes()).collect();
        ranges.retain(|range| range.meets(range));
        ranges.sort_unstable();
        // Sorted by start, a range that meets any earlier one meets the one that reaches furthest.
        if ranges.windows(2).any(|pair| pair[0].meets(&pair[1])) {
            return Err(messages::overlapping_ranges());
        }
    }
    Ok(())
}

fn tighter<'p>(known: Option<Bound<'p>>, other: Bound<'p>, is_low: bool) -> Bound<'p> {
    let Some(known) = known else { return other };
    let bytes = |bound: &Bound<'p>| {
        let mut bytes = Vec::new();
        key_bytes::encode(bound.value, &mut bytes).expect("the type was checked");
        bytes
    };
    let order = bytes(&known).cmp(&bytes(&other));
    let order = if is_low { order } else { order.reverse() };
    match order {
        std::cmp::Ordering::Less => other,
        std::cmp::Ordering::Greater => known,
        std::cmp::Ordering::Equal => {
            Bound { value: known.value, inclusive: known.inclusive && other.inclusive }
        }
    }
}

/// The keys that start with a string or binary. A number has no prefix; the query rejects it.
fn prefix_range(prefix: &AttributeValue) -> (Vec<u8>, Option<Vec<u8>>) {
    let mut start = Vec::new();
    match prefix {
        AttributeValue::S(text) => key_bytes::encode_string_prefix(text.as_bytes(), &mut start),
        AttributeValue::B(bytes) => key_bytes::encode_binary_prefix(bytes, &mut start),
        _ => return (Vec::new(), None),
    }
    let mut end = start.clone();
    while end.last() == Some(&u8::MAX) {
        end.pop();
    }
    match end.last_mut() {
        Some(last) => {
            *last += 1;
            (start, Some(end))
        }
        None => (start, None),
    }
}
