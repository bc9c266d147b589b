//! Lists, maps and sets in validated bytes.

use std::borrow::Cow;
use std::fmt;

use super::value_ref::{ValueRef, trusted, trusted_text};
use crate::Attributes;
use crate::reader::ByteReader;

/// The members of a list, in order.
#[derive(Clone, Copy)]
pub struct ListRef<'a> {
    count: usize,
    payload: &'a [u8],
}

impl<'a> ListRef<'a> {
    pub(super) fn read(payload: &'a [u8]) -> ListRef<'a> {
        let mut reader = ByteReader::new(payload);
        let count = trusted(reader.length());
        ListRef { count, payload: reader.rest() }
    }

    pub fn len(&self) -> usize {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = ValueRef<'a>> + use<'a> {
        let mut reader = ByteReader::new(self.payload);
        (0..self.count).map(move |_| trusted(ValueRef::read(&mut reader)))
    }

    pub fn get(&self, index: usize) -> Option<ValueRef<'a>> {
        self.iter().nth(index)
    }
}

impl fmt::Debug for ListRef<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.iter()).finish()
    }
}

/// The members of a map, ascending by name.
#[derive(Clone, Copy)]
pub struct MapRef<'a> {
    count: usize,
    payload: &'a [u8],
}

impl<'a> MapRef<'a> {
    /// The payload starts after the count.
    pub(super) fn new(count: usize, payload: &'a [u8]) -> MapRef<'a> {
        MapRef { count, payload }
    }

    pub(super) fn read(payload: &'a [u8]) -> MapRef<'a> {
        let mut reader = ByteReader::new(payload);
        let count = trusted(reader.length());
        MapRef { count, payload: reader.rest() }
    }

    pub fn len(&self) -> usize {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&'a str, ValueRef<'a>)> + use<'a> {
        self.entries().map(|entry| (entry.name(), entry.value))
    }

    /// Like [`MapRef::iter`], for callers that only copy the names: it does not validate their
    /// UTF-8 again.
    pub fn iter_utf8(&self) -> impl ExactSizeIterator<Item = (&'a [u8], ValueRef<'a>)> + use<'a> {
        self.entries().map(|entry| (entry.name, entry.value))
    }

    pub fn get(&self, name: &str) -> Option<ValueRef<'a>> {
        // Comparing every name beats stopping at the sort position: names of different lengths
        // differ at once.
        let entry = self.entries().find(|entry| entry.name == name.as_bytes())?;
        Some(entry.value)
    }

    pub fn decode(&self) -> Attributes {
        self.iter().map(|(name, value)| (name.to_owned(), value.decode())).collect()
    }

    pub(super) fn payload(&self) -> &'a [u8] {
        self.payload
    }

    pub(super) fn entries(&self) -> Entries<'a> {
        Entries { remaining: self.count, reader: ByteReader::new(self.payload) }
    }
}

impl fmt::Debug for MapRef<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_map().entries(self.iter()).finish()
    }
}

/// One named value, with the slice that holds both.
pub(super) struct Entry<'a> {
    pub name: &'a [u8],
    pub value: ValueRef<'a>,
    pub encoded: &'a [u8],
}

/// Names to look for. A request may name as many attributes as an item has, so a long list is
/// sorted first.
pub(super) struct NameSet<'n> {
    names: Cow<'n, [&'n str]>,
}

const UNSORTED_NAMES_MAX: usize = 8;

impl<'n> NameSet<'n> {
    pub fn new(names: &'n [&'n str]) -> NameSet<'n> {
        let mut names = Cow::Borrowed(names);
        if names.len() > UNSORTED_NAMES_MAX {
            names.to_mut().sort_unstable();
        }
        NameSet { names }
    }

    fn contains(&self, wanted: &[u8]) -> bool {
        match self.names.len() {
            0..=UNSORTED_NAMES_MAX => self.names.iter().any(|name| name.as_bytes() == wanted),
            _ => self.names.binary_search_by(|name| name.as_bytes().cmp(wanted)).is_ok(),
        }
    }
}

impl<'a> Entry<'a> {
    pub fn name(&self) -> &'a str {
        trusted_text(self.name)
    }

    pub fn is_one_of(&self, names: &NameSet<'_>) -> bool {
        names.contains(self.name)
    }

    /// The size of the attribute as DynamoDB measures it.
    pub fn size_bytes(&self) -> usize {
        self.name.len() + self.value.size_bytes()
    }
}

pub(super) struct Entries<'a> {
    remaining: usize,
    reader: ByteReader<'a>,
}

impl<'a> Iterator for Entries<'a> {
    type Item = Entry<'a>;

    /// Always inlined: rendering an item calls it once per attribute, and with many callers in the program the compiler
    /// would rather share it.
    #[inline(always)]
    fn next(&mut self) -> Option<Entry<'a>> {
        self.remaining = self.remaining.checked_sub(1)?;
        let start = self.reader.rest();
        let name = trusted(self.reader.prefixed());
        let value = trusted(ValueRef::read(&mut self.reader));
        let encoded = &start[..start.len() - self.reader.rest().len()];
        Some(Entry { name, value, encoded })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.remaining, Some(self.remaining))
    }
}

impl ExactSizeIterator for Entries<'_> {}

/// The members of a set: strings and binaries ascending by bytes, numbers by value.
#[derive(Clone, Copy)]
pub struct SetRef<'a> {
    count: usize,
    payload: &'a [u8],
}

impl<'a> SetRef<'a> {
    pub(super) fn read(payload: &'a [u8]) -> SetRef<'a> {
        let mut reader = ByteReader::new(payload);
        let count = trusted(reader.length());
        SetRef { count, payload: reader.rest() }
    }

    pub fn len(&self) -> usize {
        self.count
    }

    /// Never true: DynamoDB has no empty sets.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The members' bytes. For numbers these are the canonical texts.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'a [u8]> + use<'a> {
        let mut reader = ByteReader::new(self.payload);
        (0..self.count).map(move |_| trusted(reader.prefixed()))
    }

    /// The members of a set of strings or numbers.
    ///
    /// # Panics
    /// If this is a set of binaries that are not UTF-8.
    pub fn texts(&self) -> impl ExactSizeIterator<Item = &'a str> + use<'a> {
        self.iter().map(trusted_text)
    }

    /// Whether the set has a member with these bytes. For numbers they are the canonical text.
    pub fn contains(&self, member: &[u8]) -> bool {
        self.iter().any(|candidate| candidate == member)
    }
}

impl fmt::Debug for SetRef<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let members = self.iter().map(|member| member.escape_ascii().to_string());
        formatter.debug_set().entries(members).finish()
    }
}
