//! The alternatives of a WHERE clause: what each pins of the key, and what is left for its filter.

use std::collections::{BTreeMap, BTreeSet};

use zenobe_engine::schema::{KeyAttribute, KeySchema};
use zenobe_expression::partiql::{Predicate, PredicateOperand};
use zenobe_expression::{Comparator, Condition, KeyCondition, KeyOperator};
use zenobe_value::limits::{PARTITION_KEY_SIZE_BYTES_MAX, SORT_KEY_SIZE_BYTES_MAX};
use zenobe_value::{AttributeValue, Attributes, Path, key_bytes};

use super::range::{SortRange, SortTest};
use super::{KeyedRead, PlanFault};
use crate::error::ApiError;
use crate::messages::key_value::{partition_key_too_long, sort_key_too_long};
use crate::messages::partiql as messages;

/// Far more than a plan may read, so that faults that outrank the limit are still found.
const BRANCHES_MAX: usize = 1_000;

/// One alternative: a partition, a range of its sort keys, and the conditions left for the filter.
#[derive(Debug)]
pub(super) struct Branch<'p> {
    partition: &'p AttributeValue,
    partition_bytes: Vec<u8>,
    pub(super) sort: SortRange<'p>,
    filter: ResidualFilter<'p>,
}

#[derive(Debug)]
enum ResidualFilter<'p> {
    /// All of these.
    All(Vec<Conjunct<'p>>),
    /// One of these alternatives of the same partition.
    Any(Vec<Vec<Conjunct<'p>>>),
}

/// A condition that holds in one alternative. IN becomes many equalities.
#[derive(Debug, Clone, Copy)]
pub(super) enum Conjunct<'p> {
    PartitionEquals(&'p AttributeValue),
    SortEquals(&'p AttributeValue),
    Other(&'p Predicate<'p>),
}

/// The alternatives of a keyed predicate. Their keys have the schema's types.
pub(super) fn expand<'p>(
    predicate: &'p Predicate<'p>,
    keys: &KeySchema,
) -> Result<Vec<Branch<'p>>, PlanFault> {
    let alternatives = alternatives(predicate, keys)?;
    alternatives.into_iter().map(|parts| Branch::new(parts, keys)).collect()
}

fn alternatives<'p>(
    predicate: &'p Predicate<'p>,
    keys: &KeySchema,
) -> Result<Vec<Vec<Conjunct<'p>>>, ApiError> {
    let mentions_key = || keys.attributes().any(|key| predicate.mentions(&key.name));
    match predicate {
        Predicate::And(parts) => {
            let mut product: Vec<Vec<Conjunct<'p>>> = vec![Vec::new()];
            for part in parts {
                let choices = alternatives(part, keys)?;
                check_count(product.len() * choices.len())?;
                product = multiplied(product, choices);
            }
            Ok(product)
        }
        Predicate::Or(parts) if mentions_key() => {
            let mut sum = Vec::new();
            for part in parts {
                sum.extend(alternatives(part, keys)?);
                check_count(sum.len())?;
            }
            Ok(sum)
        }
        other => Ok(leaf_alternatives(other, keys)),
    }
}

fn check_count(count: usize) -> Result<(), ApiError> {
    if count > BRANCHES_MAX { Err(messages::too_many_reads()) } else { Ok(()) }
}

/// Combines each of one kind with each of the other.
fn multiplied<'p>(
    mut product: Vec<Vec<Conjunct<'p>>>,
    mut choices: Vec<Vec<Conjunct<'p>>>,
) -> Vec<Vec<Conjunct<'p>>> {
    if let [choice] = &mut choices[..] {
        let choice = std::mem::take(choice);
        product.iter_mut().for_each(|parts| parts.extend_from_slice(&choice));
        return product;
    }
    let joined =
        |parts: &Vec<Conjunct<'p>>, choice: &Vec<Conjunct<'p>>| [&parts[..], &choice[..]].concat();
    let pairs = product.iter().flat_map(|parts| choices.iter().map(move |choice| (parts, choice)));
    pairs.map(|(parts, choice)| joined(parts, choice)).collect()
}

fn leaf_alternatives<'p>(predicate: &'p Predicate<'p>, keys: &KeySchema) -> Vec<Vec<Conjunct<'p>>> {
    let partition = predicate.equalities(&keys.partition[0].name);
    if !partition.is_empty() {
        return partition.into_iter().map(|value| vec![Conjunct::PartitionEquals(value)]).collect();
    }
    let sort = keys.sort.first().map(|sort| predicate.equalities(&sort.name));
    let sort = sort.unwrap_or_default();
    if !sort.is_empty() {
        return sort.into_iter().map(|value| vec![Conjunct::SortEquals(value)]).collect();
    }
    vec![vec![Conjunct::Other(predicate)]]
}

impl<'p> Branch<'p> {
    fn new(parts: Vec<Conjunct<'p>>, keys: &KeySchema) -> Result<Branch<'p>, PlanFault> {
        let partition_key = &keys.partition[0];
        let mut partition = None;
        let mut sort = SortRange::default();
        let mut filter = Vec::new();
        for part in parts {
            match part {
                Conjunct::PartitionEquals(value) => {
                    check_type(partition_key, value)?;
                    check_partition_size(value)?;
                    match partition {
                        None => partition = Some(value),
                        Some(pinned) if pinned == value => {}
                        // No item has two different keys; the filter will reject all.
                        Some(_) => filter.push(part),
                    }
                }
                Conjunct::SortEquals(value) => {
                    keys.sort.first().map_or(Ok(()), |key| check_type(key, value))?;
                    check_sort_size(SortTest::Equal(value))?;
                    sort.add(part, SortTest::Equal(value));
                }
                Conjunct::Other(predicate) => match sort_test(predicate, keys.sort.first()) {
                    Some(test) => {
                        check_sort_size(test)?;
                        sort.add(part, test);
                    }
                    None => {
                        sort.is_negated |= negates(predicate, keys.sort.first());
                        filter.push(part);
                    }
                },
            }
        }
        filter.extend(sort.resolve());
        let partition = partition.expect("a keyed alternative pins the partition key");
        let mut partition_bytes = Vec::new();
        key_bytes::encode(partition, &mut partition_bytes).expect("the type was checked");
        Ok(Branch { partition, partition_bytes, sort, filter: ResidualFilter::All(filter) })
    }

    pub(super) fn partition_bytes(&self) -> &[u8] {
        &self.partition_bytes
    }

    /// Whether the branch negates a condition on its sort key and says nothing else about it.
    pub(super) fn is_unranged(&self) -> bool {
        self.sort.is_negated && self.sort.operator().is_none()
    }

    /// One read of the whole partition, for alternatives that their ranges don't distinguish.
    pub(super) fn merged(branches: Vec<Branch<'p>>) -> Option<Branch<'p>> {
        let mut merged: Option<Branch<'p>> = None;
        let mut alternatives = Vec::with_capacity(branches.len());
        for branch in branches {
            let mut parts = match branch.filter {
                ResidualFilter::All(parts) => parts,
                ResidualFilter::Any(_) => unreachable!("branches are merged once"),
            };
            parts.extend(branch.sort.parts());
            alternatives.push(parts);
            merged.get_or_insert(Branch {
                partition: branch.partition,
                partition_bytes: branch.partition_bytes,
                sort: SortRange::default(),
                filter: ResidualFilter::All(Vec::new()),
            });
        }
        merged.map(|branch| Branch { filter: ResidualFilter::Any(alternatives), ..branch })
    }

    /// The top-level attributes in the filter that are `wanted`.
    pub(super) fn filtered_attributes(&self, wanted: impl Fn(&str) -> bool) -> Vec<String> {
        let ResidualFilter::All(parts) = &self.filter else { return Vec::new() };
        let mut attributes = Vec::new();
        for part in parts {
            let Conjunct::Other(predicate) = part else { continue };
            for path in predicate.lower().paths() {
                let root = path.root();
                if wanted(root) && !attributes.iter().any(|known| known == root) {
                    attributes.push(root.to_owned());
                }
            }
        }
        attributes
    }

    pub(super) fn into_read(
        self,
        keys: &KeySchema,
        is_table: bool,
        forward: bool,
        lowered: &mut LoweredConditions,
    ) -> KeyedRead {
        let partition = &keys.partition[0].name;
        let sort_key = keys.sort.first().map(|sort| sort.name.as_str());
        let filter = self.lowered_filter(partition, sort_key, lowered);
        let operator = self.sort.operator();
        let sort_value = match (&operator, sort_key) {
            (_, None) => Some(None),
            (Some(KeyOperator::Equal(value)), Some(name)) => Some(Some((name, value.clone()))),
            _ => None,
        };
        if let (true, None, Some(sort)) = (is_table, &filter, sort_value) {
            let mut key = Attributes::from([(partition.clone(), self.partition.clone())]);
            key.extend(sort.map(|(name, value)| (name.to_owned(), value)));
            return KeyedRead::Item { key };
        }
        let condition =
            |attribute: &str, operator| KeyCondition { attribute: attribute.to_owned(), operator };
        let mut conditions = vec![condition(partition, KeyOperator::Equal(self.partition.clone()))];
        if let (Some(name), Some(operator)) = (sort_key, operator) {
            conditions.push(condition(name, operator));
        }
        KeyedRead::Range { conditions, forward, filter }
    }

    fn lowered_filter(
        &self,
        partition: &str,
        sort: Option<&str>,
        lowered: &mut LoweredConditions,
    ) -> Option<Condition> {
        let mut all = |parts: &[Conjunct<'p>]| {
            let mut conditions: Vec<Condition> =
                parts.iter().map(|part| part.lower(partition, sort, lowered)).collect();
            match conditions.len() {
                1 => conditions.remove(0),
                _ => Condition::And(conditions),
            }
        };
        match &self.filter {
            ResidualFilter::All(parts) if parts.is_empty() => None,
            ResidualFilter::All(parts) => Some(all(parts)),
            ResidualFilter::Any(alternatives) => {
                Some(Condition::Or(alternatives.iter().map(|parts| all(parts)).collect()))
            }
        }
    }
}

/// Lowered conditions by the address of their predicate. Alternatives share them and their values,
/// which may be large.
#[derive(Debug, Default)]
pub(super) struct LoweredConditions {
    conditions: BTreeMap<usize, Condition>,
}

impl Conjunct<'_> {
    fn lower(
        &self,
        partition: &str,
        sort: Option<&str>,
        lowered: &mut LoweredConditions,
    ) -> Condition {
        let equals = |attribute: &str, value: &AttributeValue| {
            let path = Path::top_level(attribute);
            Predicate::Compare {
                left: PredicateOperand::Path(&path),
                comparator: Comparator::Equal,
                right: PredicateOperand::Value(value),
            }
            .lower()
        };
        match self {
            Conjunct::PartitionEquals(value) => equals(partition, value),
            Conjunct::SortEquals(value) => equals(sort.unwrap_or_default(), value),
            Conjunct::Other(predicate) => {
                let address = std::ptr::from_ref::<Predicate<'_>>(predicate) as usize;
                lowered.conditions.entry(address).or_insert_with(|| predicate.lower()).clone()
            }
        }
    }
}

/// Checked before an alternative takes a copy: there may be many, and the values may be as large as
/// the request.
fn check_partition_size(value: &AttributeValue) -> Result<(), ApiError> {
    match value.size_bytes() > PARTITION_KEY_SIZE_BYTES_MAX {
        true => Err(partition_key_too_long()),
        false => Ok(()),
    }
}

fn check_sort_size(test: SortTest<'_>) -> Result<(), ApiError> {
    match test.values().any(|value| value.size_bytes() > SORT_KEY_SIZE_BYTES_MAX) {
        true => Err(sort_key_too_long()),
        false => Ok(()),
    }
}

fn check_type(key: &KeyAttribute, value: &AttributeValue) -> Result<(), PlanFault> {
    match value.attribute_type() == key.scalar_type.attribute_type() {
        true => Ok(()),
        false => Err(PlanFault::KeyType { attribute: key.name.clone() }),
    }
}

/// A condition on the sort key that is a range of keys. A comparison with a value of another type
/// is not: it never holds, and the filter finds that out.
fn sort_test<'p>(
    predicate: &'p Predicate<'p>,
    sort: Option<&KeyAttribute>,
) -> Option<SortTest<'p>> {
    let sort = sort?;
    let of_its_type = |value: &'p AttributeValue| {
        Some(value).filter(|value| value.attribute_type() == sort.scalar_type.attribute_type())
    };
    match predicate {
        Predicate::Compare { left, comparator, right } => {
            let (comparator, value) = if left.is_attribute(&sort.name) {
                (*comparator, right.value()?)
            } else if right.is_attribute(&sort.name) {
                (comparator.mirrored(), left.value()?)
            } else {
                return None;
            };
            SortTest::comparison(comparator, of_its_type(value)?)
        }
        Predicate::Between { operand, low, high } if operand.is_attribute(&sort.name) => {
            Some(SortTest::Between(of_its_type(low.value()?)?, of_its_type(high.value()?)?))
        }
        Predicate::BeginsWith { operand, prefix } if operand.is_attribute(&sort.name) => {
            Some(SortTest::BeginsWith(of_its_type(prefix.value()?)?))
        }
        _ => None,
    }
}

/// Whether a condition negates something about the sort key, which leaves no range.
fn negates(predicate: &Predicate<'_>, sort: Option<&KeyAttribute>) -> bool {
    let is_negation = matches!(
        predicate,
        Predicate::Not(_) | Predicate::Compare { comparator: Comparator::NotEqual, .. }
    );
    is_negation && sort.is_some_and(|sort| predicate.mentions(&sort.name))
}

pub(super) fn by_partition_bytes<'b, 'p>(
    branches: &'b [Branch<'p>],
) -> BTreeMap<&'b [u8], Vec<&'b Branch<'p>>> {
    let mut groups: BTreeMap<&[u8], Vec<&Branch<'p>>> = BTreeMap::new();
    for branch in branches {
        groups.entry(branch.partition_bytes()).or_default().push(branch);
    }
    groups
}

/// Groups branches by partition, in the order of first mention.
pub(super) fn by_partition(branches: Vec<Branch<'_>>) -> Vec<Vec<Branch<'_>>> {
    let distinct: BTreeSet<&[u8]> = branches.iter().map(Branch::partition_bytes).collect();
    if distinct.len() == branches.len() {
        return branches.into_iter().map(|branch| vec![branch]).collect();
    }
    let mut groups: Vec<Vec<Branch<'_>>> = Vec::with_capacity(distinct.len());
    for branch in branches {
        let same =
            groups.iter_mut().find(|group| group[0].partition_bytes == branch.partition_bytes);
        match same {
            Some(group) => group.push(branch),
            None => groups.push(vec![branch]),
        }
    }
    groups
}
