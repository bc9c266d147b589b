//! A Parquet file: the pages of all columns, one row group, and what describes them.

use zenobe_value::{ItemRef, ValueRef, ValueView};

use super::column::{DECIMAL_LENGTH, Leaf, PLAIN, RLE};
use super::infer::{ColumnType, Scalar};
use super::thrift::Thrift;

const MAGIC: &[u8] = b"PAR1";
const GZIP: i32 = 2;

/// How much of a path is there: nothing, an empty list, a member that is null, a member. A scalar column only knows the first and
/// the second, which is its value.
const MISSING: u8 = 0;
const PRESENT: u8 = 1;
const EMPTY: u8 = 1;
const NULL_MEMBER: u8 = 2;
const MEMBER: u8 = 3;

/// A file in memory, to which items are added.
pub struct PartFile {
    columns: Vec<Column>,
    rows: u64,
}

struct Column {
    name: String,
    column_type: ColumnType,
    /// The values; for a map its keys first.
    leaves: Vec<Leaf>,
}

impl PartFile {
    pub fn new(columns: &[(String, ColumnType)]) -> PartFile {
        let column = |(name, column_type): &(String, ColumnType)| Column::new(name, *column_type);
        PartFile { columns: columns.iter().map(column).collect(), rows: 0 }
    }

    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// About how large the file is so far.
    pub fn size_bytes(&self) -> usize {
        self.columns.iter().flat_map(|column| &column.leaves).map(Leaf::size_bytes).sum()
    }

    /// Adds a row. The columns' types must be those that its values were inferred to have.
    pub fn add(&mut self, item: ItemRef<'_>) {
        for column in &mut self.columns {
            column.add(item.get(&column.name));
        }
        self.rows += 1;
    }

    pub fn finish(mut self) -> Vec<u8> {
        let mut file = MAGIC.to_vec();
        let mut chunks = Vec::new();
        for column in &mut self.columns {
            for leaf in &mut column.leaves {
                leaf.end_page();
                chunks.push(Chunk { offset: file.len(), length: leaf.pages.len() });
                file.append(&mut leaf.pages);
            }
        }
        let footer = self.footer(&chunks);
        let length = u32::try_from(footer.len()).expect("columns are bounded");
        file.extend(footer);
        file.extend(length.to_le_bytes());
        file.extend(MAGIC);
        file
    }

    fn footer(&self, chunks: &[Chunk]) -> Vec<u8> {
        let mut elements = vec![Element::group("schema", None, None, self.columns.len())];
        self.columns.iter().for_each(|column| column.describe(&mut elements));
        let leaves = self.columns.iter().flat_map(|column| &column.leaves);
        let leaves: Vec<(&Leaf, &Chunk)> = leaves.zip(chunks).collect();
        let uncompressed = leaves.iter().map(|(leaf, _)| leaf.uncompressed_size_bytes).sum();
        Thrift::structure(|metadata| {
            metadata.i32(1, 1);
            metadata.structures(2, &elements, |thrift, element| element.write(thrift));
            metadata.i64(3, signed(self.rows));
            metadata.structures(4, &[()], |group, ()| {
                group.structures(1, &leaves, |column, (leaf, chunk)| chunk.write(column, leaf));
                group.i64(2, signed(uncompressed));
                group.i64(3, signed(self.rows));
            });
            metadata.text(6, concat!("zenobe version ", env!("CARGO_PKG_VERSION")));
        })
    }
}

impl Column {
    fn new(name: &str, column_type: ColumnType) -> Column {
        let leaves = match column_type {
            ColumnType::Scalar(scalar) => vec![Leaf::new(&[name], scalar, PRESENT, false)],
            ColumnType::List(scalar) => {
                vec![Leaf::new(&[name, "list", "element"], scalar, MEMBER, true)]
            }
            ColumnType::Map(scalar) => vec![
                Leaf::new(&[name, "key_value", "key"], Scalar::Text, NULL_MEMBER, true),
                Leaf::new(&[name, "key_value", "value"], scalar, MEMBER, true),
            ],
        };
        Column { name: name.to_owned(), column_type, leaves }
    }

    fn add(&mut self, value: Option<ValueRef<'_>>) {
        let is_null = |value: &ValueRef<'_>| matches!(value.view(), ValueView::Null);
        let Some(value) = value.filter(|value| !is_null(value)) else {
            return self.leaves.iter_mut().for_each(|leaf| leaf.push_missing(0, MISSING));
        };
        match (self.column_type, value.view()) {
            (ColumnType::Scalar(_), _) => self.leaves[0].push(0, value),
            (_, ValueView::Ss(set) | ValueView::Ns(set) | ValueView::Bs(set)) => {
                for (position, member) in set.iter().enumerate() {
                    self.leaves[0].push_member(repetition(position), member);
                }
            }
            (_, ValueView::L(list)) if list.is_empty() => self.add_empty(),
            (_, ValueView::M(map)) if map.is_empty() => self.add_empty(),
            (_, ValueView::L(list)) => {
                for (position, member) in list.iter().enumerate() {
                    push_member(&mut self.leaves[0], position, member);
                }
            }
            (_, ValueView::M(map)) => {
                for (position, (name, member)) in map.iter().enumerate() {
                    self.leaves[0].push_text(repetition(position), name);
                    push_member(&mut self.leaves[1], position, member);
                }
            }
            _ => unreachable!("the column's type is that of all its values"),
        }
    }

    fn add_empty(&mut self) {
        self.leaves.iter_mut().for_each(|leaf| leaf.push_missing(0, EMPTY));
    }

    fn describe<'a>(&'a self, elements: &mut Vec<Element<'a>>) {
        let name = self.name.as_str();
        match self.column_type {
            ColumnType::Scalar(scalar) => elements.push(Element::leaf(name, scalar, OPTIONAL)),
            ColumnType::List(scalar) => {
                elements.push(Element::group(name, Some(OPTIONAL), Some(Meaning::LIST), 1));
                elements.push(Element::group("list", Some(REPEATED), None, 1));
                elements.push(Element::leaf("element", scalar, OPTIONAL));
            }
            ColumnType::Map(scalar) => {
                elements.push(Element::group(name, Some(OPTIONAL), Some(Meaning::MAP), 1));
                elements.push(Element::group("key_value", Some(REPEATED), None, 2));
                elements.push(Element::leaf("key", Scalar::Text, REQUIRED));
                elements.push(Element::leaf("value", scalar, OPTIONAL));
            }
        }
    }
}

fn push_member(leaf: &mut Leaf, position: usize, member: ValueRef<'_>) {
    match member.view() {
        ValueView::Null => leaf.push_missing(repetition(position), NULL_MEMBER),
        _ => leaf.push(repetition(position), member),
    }
}

/// Whether a member begins its row or goes on in its list.
fn repetition(position: usize) -> u8 {
    u8::from(position > 0)
}

/// Where the pages of a leaf are.
struct Chunk {
    offset: usize,
    length: usize,
}

impl Chunk {
    fn write(&self, thrift: &mut Thrift, leaf: &Leaf) {
        let (physical, _) = physical(leaf.scalar);
        thrift.i64(2, signed(self.offset as u64));
        thrift.nested(3, |metadata| {
            metadata.i32(1, physical);
            metadata.i32s(2, &[PLAIN, RLE]);
            metadata.texts(3, &leaf.path);
            metadata.i32(4, GZIP);
            metadata.i64(5, signed(leaf.value_count));
            metadata.i64(6, signed(leaf.uncompressed_size_bytes));
            metadata.i64(7, signed(self.length as u64));
            metadata.i64(9, signed(self.offset as u64));
        });
    }
}

/// A node of the schema.
struct Element<'a> {
    name: &'a str,
    scalar: Option<Scalar>,
    repetition: Option<i32>,
    meaning: Option<Meaning>,
    children: usize,
}

const REQUIRED: i32 = 0;
const OPTIONAL: i32 = 1;
const REPEATED: i32 = 2;

/// What the bytes of a value mean, in the old way (the converted type) and in the new one (the member of the logical type).
#[derive(Clone, Copy)]
struct Meaning {
    converted: i32,
    logical: i16,
}

impl Meaning {
    const TEXT: Meaning = Meaning { converted: 0, logical: 1 };
    const MAP: Meaning = Meaning { converted: 1, logical: 2 };
    const LIST: Meaning = Meaning { converted: 3, logical: 3 };
    const DECIMAL: Meaning = Meaning { converted: 5, logical: 5 };
    const JSON: Meaning = Meaning { converted: 19, logical: 12 };
}

impl<'a> Element<'a> {
    fn group(
        name: &'a str,
        repetition: Option<i32>,
        meaning: Option<Meaning>,
        children: usize,
    ) -> Element<'a> {
        Element { name, scalar: None, repetition, meaning, children }
    }

    fn leaf(name: &'a str, scalar: Scalar, repetition: i32) -> Element<'a> {
        let (_, meaning) = physical(scalar);
        Element { name, scalar: Some(scalar), repetition: Some(repetition), meaning, children: 0 }
    }

    fn write(&self, thrift: &mut Thrift) {
        if let Some(scalar) = self.scalar {
            thrift.i32(1, physical(scalar).0);
        }
        let decimal = match self.scalar {
            Some(Scalar::Decimal { precision, scale }) => {
                thrift.i32(2, DECIMAL_LENGTH);
                Some((i32::from(precision), i32::from(scale)))
            }
            _ => None,
        };
        if let Some(repetition) = self.repetition {
            thrift.i32(3, repetition);
        }
        thrift.text(4, self.name);
        if self.scalar.is_none() {
            thrift.i32(5, i32::try_from(self.children).expect("columns are bounded"));
        }
        let Some(meaning) = self.meaning else { return };
        thrift.i32(6, meaning.converted);
        if let Some((precision, scale)) = decimal {
            thrift.i32(7, scale);
            thrift.i32(8, precision);
        }
        thrift.nested(10, |logical| {
            logical.nested(meaning.logical, |of| {
                if let Some((precision, scale)) = decimal {
                    of.i32(1, scale);
                    of.i32(2, precision);
                }
            });
        });
    }
}

/// How a scalar is stored, and what that means.
fn physical(scalar: Scalar) -> (i32, Option<Meaning>) {
    match scalar {
        Scalar::Bool => (0, None),
        Scalar::Int64 => (2, None),
        Scalar::Double => (5, None),
        Scalar::Binary => (6, None),
        Scalar::Text => (6, Some(Meaning::TEXT)),
        Scalar::Json => (6, Some(Meaning::JSON)),
        Scalar::Decimal { .. } => (7, Some(Meaning::DECIMAL)),
    }
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
