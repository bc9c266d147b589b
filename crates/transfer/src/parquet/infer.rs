//! Infers a column's type from all of its values.
//!
//! The rule: a column whose values are all of one scalar type has that type. Numbers are INT64 if all are integers that fit, else
//! an exact DECIMAL if 38 digits suffice for all of them, else DOUBLE. Sets are lists of their members. Lists and maps are LIST and
//! MAP if all members of all of them have one scalar type. Everything else, nested or mixed, is JSON in a string. NULL is null, like an
//! attribute that is missing.

use std::collections::BTreeMap;

use zenobe_value::{AttributeType, ItemRef, ValueRef, ValueView};

/// With more names than this, the names themselves are data (such as ids) and don't make columns.
const COLUMNS_MAX: usize = 2_000;
/// How many digits a DECIMAL can have.
const DECIMAL_DIGITS_MAX: usize = 38;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scalar {
    Text,
    Bool,
    Binary,
    Int64,
    Double,
    Decimal {
        precision: u8,
        scale: u8,
    },
    /// Any value, as a text of JSON.
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnType {
    Scalar(Scalar),
    List(Scalar),
    /// A map with text keys.
    Map(Scalar),
}

/// The columns that items need, by the names of their attributes.
#[derive(Debug, Clone, Default)]
pub struct Columns {
    columns: BTreeMap<String, Seen>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the items have more than {COLUMNS_MAX} different attributes, which is too many for columns"
)]
pub struct TooManyColumns;

impl Columns {
    /// Takes an item into account.
    ///
    /// # Errors
    /// If there are too many attributes.
    pub fn add(&mut self, item: ItemRef<'_>) -> Result<(), TooManyColumns> {
        for (name, value) in item.iter() {
            if !self.columns.contains_key(name) {
                if self.columns.len() == COLUMNS_MAX {
                    return Err(TooManyColumns);
                }
                self.columns.insert(name.to_owned(), Seen::default());
            }
            if let Some(seen) = self.columns.get_mut(name) {
                seen.add(value);
            }
        }
        Ok(())
    }

    /// The types of all columns: those with the given names first, the others in the order of their names.
    pub fn types(&self, first: &[String]) -> Vec<(String, ColumnType)> {
        let of = |name: &String| Some((name.clone(), self.columns.get(name)?.column_type()));
        let others = self.columns.keys().filter(|name| !first.contains(name));
        first.iter().chain(others).filter_map(of).collect()
    }
}

/// The values of a column.
#[derive(Debug, Clone, Default)]
struct Seen {
    values: Types,
    /// The members of lists, sets and maps.
    members: Types,
}

/// Types, as a set, and what the numbers among them are like.
#[derive(Debug, Clone, Default)]
struct Types {
    present: Vec<AttributeType>,
    has_large: bool,
    integer_digits_max: usize,
    scale_max: usize,
}

impl Seen {
    fn add(&mut self, value: ValueRef<'_>) {
        self.values.add(value);
        match value.view() {
            ValueView::L(list) => list.iter().for_each(|member| self.members.add(member)),
            ValueView::M(map) => map.iter().for_each(|(_, member)| self.members.add(member)),
            ValueView::Ns(set) => set.texts().for_each(|number| self.members.add_number(number)),
            _ => {}
        }
    }

    fn column_type(&self) -> ColumnType {
        let of_members = || self.members.scalar();
        let json = ColumnType::Scalar(Scalar::Json);
        match self.values.present[..] {
            [AttributeType::Ss] => ColumnType::List(Scalar::Text),
            [AttributeType::Bs] => ColumnType::List(Scalar::Binary),
            [AttributeType::Ns] => ColumnType::List(self.members.number()),
            [AttributeType::L] => of_members().map_or(json, ColumnType::List),
            [AttributeType::M] => of_members().map_or(json, ColumnType::Map),
            _ => ColumnType::Scalar(self.values.scalar().unwrap_or(Scalar::Json)),
        }
    }
}

impl Types {
    fn add(&mut self, value: ValueRef<'_>) {
        match value.attribute_type() {
            AttributeType::Null => {}
            of => {
                if !self.present.contains(&of) {
                    self.present.push(of);
                }
                if let ValueView::N(number) = value.view() {
                    self.add_number(number);
                }
            }
        }
    }

    fn add_number(&mut self, text: &str) {
        self.has_large |= text.parse::<i64>().is_err();
        let magnitude = text.trim_start_matches('-');
        let (integer, fraction) = magnitude.split_once('.').unwrap_or((magnitude, ""));
        let integer_digits = if integer == "0" { 0 } else { integer.len() };
        self.integer_digits_max = self.integer_digits_max.max(integer_digits);
        self.scale_max = self.scale_max.max(fraction.len());
    }

    /// The one scalar type of all values; `None` if there are others.
    fn scalar(&self) -> Option<Scalar> {
        match self.present[..] {
            [] | [AttributeType::S] => Some(Scalar::Text),
            [AttributeType::N] => Some(self.number()),
            [AttributeType::B] => Some(Scalar::Binary),
            [AttributeType::Bool] => Some(Scalar::Bool),
            _ => None,
        }
    }

    fn number(&self) -> Scalar {
        let digits = (self.integer_digits_max + self.scale_max).max(1);
        match (self.has_large, u8::try_from(digits), u8::try_from(self.scale_max)) {
            (false, _, _) => Scalar::Int64,
            (true, Ok(precision), Ok(scale)) if digits <= DECIMAL_DIGITS_MAX => {
                Scalar::Decimal { precision, scale }
            }
            _ => Scalar::Double,
        }
    }
}
