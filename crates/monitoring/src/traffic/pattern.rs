//! Access patterns: what people name when they talk about a data model.

use std::fmt;
use std::str::FromStr;

use zenobe_engine::request_facts::{KeyScope, PageAccess, PageFacts, Part};
use zenobe_engine::throughput::cause::Access;

/// How a request finds what it reads or writes. With the operation, the table and the index this is an
/// access pattern. There are few of them, whatever clients do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Pattern {
    /// Reads single items by their whole key.
    Key,
    /// Reads a page of one partition key.
    Query(QueryPattern),
    /// Reads on through the whole table or index.
    Scan { filtered: bool, local_index: bool },
    /// Writes single items.
    Write,
    /// Keeps a global index up to date with a write of its table.
    IndexWrite,
    /// Reached no table, or there were too many patterns to tell apart.
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QueryPattern {
    pub sort: SortCondition,
    pub backward: bool,
    pub filtered: bool,
    /// A local index, which uses the capacity of its table.
    pub local_index: bool,
}

/// The condition on the sort key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum SortCondition {
    None,
    Equal,
    /// `<`, `<=`, `>` or `>=`.
    Compare,
    Between,
    BeginsWith,
}

impl SortCondition {
    const ALL: [SortCondition; 5] = [
        SortCondition::None,
        SortCondition::Equal,
        SortCondition::Compare,
        SortCondition::Between,
        SortCondition::BeginsWith,
    ];

    fn of(operator: Option<&str>) -> SortCondition {
        match operator {
            Some("=") => SortCondition::Equal,
            Some("<" | "<=" | ">" | ">=") => SortCondition::Compare,
            Some("BETWEEN") => SortCondition::Between,
            Some("begins_with") => SortCondition::BeginsWith,
            _ => SortCondition::None,
        }
    }

    fn text(self) -> &'static str {
        match self {
            SortCondition::None => "partition key",
            SortCondition::Equal => "partition key and sort =",
            SortCondition::Compare => "partition key and sort < or >",
            SortCondition::Between => "partition key and sort between",
            SortCondition::BeginsWith => "partition key and sort begins_with",
        }
    }
}

impl Pattern {
    /// The pattern of a part of a request, and of the page that it read, if it is known.
    pub(super) fn of(part: &Part, page: Option<&PageFacts>) -> Pattern {
        let is_of_index = part.resource.index.is_some();
        match (part.access, part.scope) {
            (Access::Write, _) if is_of_index => Pattern::IndexWrite,
            (Access::Write, _) => Pattern::Write,
            (Access::Read, KeyScope::Item) => Pattern::Key,
            (Access::Read, KeyScope::Collection | KeyScope::Range) => {
                let filtered = page.is_some_and(|page| page.has_filter);
                let local_index = !is_of_index && page.is_some_and(|page| page.index.is_some());
                let sort = match page.map(|page| page.access) {
                    Some(PageAccess::Query { sort_condition }) => SortCondition::of(sort_condition),
                    _ => SortCondition::None,
                };
                let backward = page.is_some_and(|page| page.is_backward);
                match part.scope {
                    KeyScope::Range => Pattern::Scan { filtered, local_index },
                    _ => Pattern::Query(QueryPattern { sort, backward, filtered, local_index }),
                }
            }
        }
    }

    /// Whether it reads or writes; `None` if that is not known.
    pub fn access(self) -> Option<Access> {
        match self {
            Pattern::Key | Pattern::Query(_) | Pattern::Scan { .. } => Some(Access::Read),
            Pattern::Write | Pattern::IndexWrite => Some(Access::Write),
            Pattern::Other => None,
        }
    }

    /// A small number that is unique to the pattern.
    pub(super) fn code(self) -> u16 {
        match self {
            Pattern::Other => 0,
            Pattern::Key => 1,
            Pattern::Write => 2,
            Pattern::IndexWrite => 3,
            Pattern::Scan { filtered, local_index } => {
                4 + u16::from(filtered) + 2 * u16::from(local_index)
            }
            Pattern::Query(QueryPattern { sort, backward, filtered, local_index }) => {
                let flags =
                    u16::from(backward) + 2 * u16::from(filtered) + 4 * u16::from(local_index);
                8 + 8 * u16::from(sort as u8) + flags
            }
        }
    }

    /// All patterns.
    pub fn all() -> impl Iterator<Item = Pattern> {
        let simple = [Pattern::Other, Pattern::Key, Pattern::Write, Pattern::IndexWrite];
        let flags = [false, true];
        let scans = flags.into_iter().flat_map(move |filtered| {
            flags.map(|local_index| Pattern::Scan { filtered, local_index })
        });
        let queries = SortCondition::ALL.into_iter().flat_map(|sort| {
            (0..8).map(move |bits| {
                Pattern::Query(QueryPattern {
                    sort,
                    backward: bits & 1 != 0,
                    filtered: bits & 2 != 0,
                    local_index: bits & 4 != 0,
                })
            })
        });
        simple.into_iter().chain(scans).chain(queries)
    }
}

/// In the words of a data model, such as `partition key and sort begins_with, backward, filtered`.
impl fmt::Display for Pattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (text, flags) = match *self {
            Pattern::Key => ("key", [false; 3]),
            Pattern::Write => ("write", [false; 3]),
            Pattern::IndexWrite => ("index write", [false; 3]),
            Pattern::Other => ("other", [false; 3]),
            Pattern::Scan { filtered, local_index } => ("scan", [false, filtered, local_index]),
            Pattern::Query(QueryPattern { sort, backward, filtered, local_index }) => {
                (sort.text(), [backward, filtered, local_index])
            }
        };
        out.write_str(text)?;
        for (flag, name) in flags.into_iter().zip(["backward", "filtered", "local index"]) {
            if flag {
                write!(out, ", {name}")?;
            }
        }
        Ok(())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("there is no such access pattern")]
pub struct UnknownPattern;

impl FromStr for Pattern {
    type Err = UnknownPattern;

    fn from_str(text: &str) -> Result<Pattern, UnknownPattern> {
        Pattern::all().find(|pattern| pattern.to_string() == text).ok_or(UnknownPattern)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_pattern_has_a_name_and_a_code_of_its_own() {
        let names: HashSet<String> = Pattern::all().map(|pattern| pattern.to_string()).collect();
        let codes: HashSet<u16> = Pattern::all().map(Pattern::code).collect();
        assert_eq!((names.len(), codes.len()), (48, 48));
        for pattern in Pattern::all() {
            assert_eq!(pattern.to_string().parse(), Ok(pattern));
        }
        assert_eq!("by luck".parse::<Pattern>(), Err(UnknownPattern));
    }

    #[test]
    fn operators_of_conditions_are_told_apart() {
        let names = [None, Some("="), Some("<"), Some(">="), Some("BETWEEN"), Some("begins_with")];
        let expected = [
            SortCondition::None,
            SortCondition::Equal,
            SortCondition::Compare,
            SortCondition::Compare,
            SortCondition::Between,
            SortCondition::BeginsWith,
        ];
        assert_eq!(names.map(SortCondition::of), expected);
        let query = QueryPattern {
            sort: SortCondition::BeginsWith,
            backward: true,
            filtered: true,
            local_index: false,
        };
        let text = "partition key and sort begins_with, backward, filtered";
        assert_eq!(Pattern::Query(query).to_string(), text);
    }
}
