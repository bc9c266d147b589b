//! Reads the tables of SQLite's database files, row by row.
//!
//! DynamoDB Local keeps its tables in such files. An import needs only the oldest part of the
//! [format](https://www.sqlite.org/fileformat2.html): b-trees of rows and their overflow pages. There
//! is no SQL here, no index, no journal and no writing. SQLite itself is a quarter of a million
//! lines of C, which would take a sixth of the time of a first build.
//!
//! Nothing in a file is trusted. Every position is checked, and neither a loop of pages nor an
//! absurd length makes a reader work for longer than the file is large.

mod record;
mod schema;

use std::io::{self, Read, Seek, SeekFrom};

pub use record::Value;

use record::{read_varint, values};

const MAGIC: &[u8] = b"SQLite format 3\0";
const FILE_HEADER_BYTES: usize = 100;

/// No row of a legal item is longer.
const PAYLOAD_SIZE_BYTES_MAX: u64 = 16 << 20;

/// A tree of pages with at least two entries each can't be higher.
const LEVELS_MAX: usize = 40;

#[derive(Debug, thiserror::Error)]
pub enum SqliteError {
    #[error("it is not a database file of SQLite")]
    NotSqlite,
    #[error("{0}, which is not supported")]
    Unsupported(&'static str),
    #[error("page {page} is damaged: {problem}")]
    Damaged { page: u32, problem: &'static str },
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// An open file.
pub struct SqliteFile<R> {
    reader: R,
    page_size_bytes: usize,
    /// A page without the bytes at its end that belong to extensions.
    usable_size_bytes: usize,
    page_count: u32,
}

/// A table, as the file's schema describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    pub name: String,
    pub columns: Vec<String>,
    root: u32,
}

impl Table {
    /// The position of a column in each row.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column == name)
    }
}

impl<R: Read + Seek> SqliteFile<R> {
    pub fn open(mut reader: R) -> Result<SqliteFile<R>, SqliteError> {
        let size_bytes = reader.seek(SeekFrom::End(0))?;
        reader.seek(SeekFrom::Start(0))?;
        let mut header = [0; FILE_HEADER_BYTES];
        if size_bytes < header.len() as u64 {
            return Err(SqliteError::NotSqlite);
        }
        reader.read_exact(&mut header)?;
        if !header.starts_with(MAGIC) {
            return Err(SqliteError::NotSqlite);
        }
        let damaged = |problem| SqliteError::Damaged { page: 1, problem };
        let page_size_bytes = match u16::from_be_bytes([header[16], header[17]]) {
            1 => 65_536,
            size if size >= 512 && size.is_power_of_two() => usize::from(size),
            _ => return Err(damaged("the size of pages is not a power of two")),
        };
        let usable_size_bytes = page_size_bytes - usize::from(header[20]);
        if usable_size_bytes < 480 {
            return Err(damaged("too much of each page is reserved"));
        }
        if header[59] > 1 {
            return Err(SqliteError::Unsupported("text is in UTF-16"));
        }
        let page_count = u32::try_from(size_bytes / page_size_bytes as u64)
            .map_err(|_| damaged("there are too many pages"))?;
        // The header counts the pages, unless a program has written that did not know of it.
        let is_counted = header[24..28] == header[92..96];
        if is_counted && page_number(&header[28..32]).is_some_and(|count| count > page_count) {
            return Err(damaged("the end of the file is missing"));
        }
        Ok(SqliteFile { reader, page_size_bytes, usable_size_bytes, page_count })
    }

    /// All tables, also those that SQLite keeps for itself.
    pub fn tables(&mut self) -> Result<Vec<Table>, SqliteError> {
        let mut tables = Vec::new();
        let mut rows = Rows::new(self.borrowed(), 1)?;
        while let Some(row) = rows.next_row()? {
            tables.extend(schema::table(row));
        }
        Ok(tables)
    }

    /// The rows of a table in the order of the file.
    pub fn rows(&mut self, table: &Table) -> Result<Rows<&mut R>, SqliteError> {
        Rows::new(self.borrowed(), table.root)
    }

    /// Like [`SqliteFile::rows`], but consumes the file.
    pub fn into_rows(self, table: &Table) -> Result<Rows<R>, SqliteError> {
        Rows::new(self, table.root)
    }

    fn borrowed(&mut self) -> SqliteFile<&mut R> {
        let SqliteFile { ref mut reader, page_size_bytes, usable_size_bytes, page_count } = *self;
        SqliteFile { reader, page_size_bytes, usable_size_bytes, page_count }
    }

    fn page(&mut self, number: u32) -> Result<Vec<u8>, SqliteError> {
        if number == 0 || number > self.page_count {
            return Err(damaged(number, "the file has no such page"));
        }
        let position = u64::from(number - 1) * self.page_size_bytes as u64;
        self.reader.seek(SeekFrom::Start(position))?;
        let mut bytes = vec![0; self.page_size_bytes];
        self.reader.read_exact(&mut bytes)?;
        bytes.truncate(self.usable_size_bytes);
        Ok(bytes)
    }
}

/// A walk over the rows of one table.
pub struct Rows<R> {
    file: SqliteFile<R>,
    /// The pages from the root to the current one.
    path: Vec<TreePage>,
    /// How many pages may still be read. A sound tree has fewer than the file.
    pages_left: u32,
}

impl<R: Read + Seek> Rows<R> {
    fn new(file: SqliteFile<R>, root: u32) -> Result<Rows<R>, SqliteError> {
        let pages_left = file.page_count;
        let mut rows = Rows { file, path: Vec::new(), pages_left };
        rows.descend(root)?;
        Ok(rows)
    }

    /// The values of the next row, or `None` after the last one. A column that was added to the
    /// table later is missing in older rows.
    pub fn next_row(&mut self) -> Result<Option<Vec<Value>>, SqliteError> {
        while let Some(page) = self.path.last_mut() {
            match page.next()? {
                Next::Row(payload) => {
                    let number = page.number;
                    let payload = self.whole(payload, number)?;
                    let values = values(&payload).map_err(|problem| damaged(number, problem))?;
                    return Ok(Some(values));
                }
                Next::Child(child) => self.descend(child)?,
                Next::End => drop(self.path.pop()),
            }
        }
        Ok(None)
    }

    /// How many rows there are from here to the end.
    pub fn count(mut self) -> Result<u64, SqliteError> {
        let mut count = 0;
        while let Some(page) = self.path.last_mut() {
            match page.kind {
                Kind::Leaf => {
                    count += (page.cell_count - page.next_cell) as u64;
                    self.path.pop();
                }
                Kind::Interior { .. } => match page.next()? {
                    Next::Child(child) => self.descend(child)?,
                    Next::Row(_) | Next::End => drop(self.path.pop()),
                },
            }
        }
        Ok(count)
    }

    fn descend(&mut self, number: u32) -> Result<(), SqliteError> {
        if self.path.len() == LEVELS_MAX {
            return Err(damaged(number, "the tree of pages is too high"));
        }
        let bytes = self.take_page(number)?;
        self.path.push(TreePage::parse(number, bytes)?);
        Ok(())
    }

    fn take_page(&mut self, number: u32) -> Result<Vec<u8>, SqliteError> {
        let left = self.pages_left.checked_sub(1);
        self.pages_left = left.ok_or_else(|| damaged(number, "pages refer to each other"))?;
        self.file.page(number)
    }

    /// A payload with the part of it that lies on overflow pages.
    fn whole(&mut self, payload: Payload, on: u32) -> Result<Vec<u8>, SqliteError> {
        let Payload { mut bytes, length, mut overflow } = payload;
        while bytes.len() < length {
            let number = overflow.ok_or_else(|| damaged(on, "a row has no end"))?;
            let page = self.take_page(number)?;
            let (next, content) = page.split_at(4);
            bytes.extend_from_slice(&content[..content.len().min(length - bytes.len())]);
            overflow = page_number(next);
        }
        Ok(bytes)
    }
}

/// A page of a b-tree of rows, and how far it has been read.
struct TreePage {
    number: u32,
    bytes: Vec<u8>,
    kind: Kind,
    /// Where the positions of the cells begin.
    cells_at: usize,
    cell_count: usize,
    next_cell: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Leaf,
    Interior { rightmost: Option<u32> },
}

enum Next {
    Row(Payload),
    Child(u32),
    End,
}

/// The part of a row that lies on its page.
struct Payload {
    bytes: Vec<u8>,
    /// The length of the whole row.
    length: usize,
    overflow: Option<u32>,
}

impl TreePage {
    fn parse(number: u32, bytes: Vec<u8>) -> Result<TreePage, SqliteError> {
        let start = if number == 1 { FILE_HEADER_BYTES } else { 0 };
        let header = &bytes[start..];
        let (kind, header_bytes) = match header[0] {
            0x0D => (Kind::Leaf, 8),
            0x05 => (Kind::Interior { rightmost: page_number(&header[8..12]) }, 12),
            0x02 | 0x0A => return Err(SqliteError::Unsupported("a table without row ids")),
            _ => return Err(damaged(number, "it is not a page of a table")),
        };
        let cell_count = usize::from(u16::from_be_bytes([header[3], header[4]]));
        let cells_at = start + header_bytes;
        if cells_at + 2 * cell_count > bytes.len() {
            return Err(damaged(number, "it has too many cells"));
        }
        Ok(TreePage { number, bytes, kind, cells_at, cell_count, next_cell: 0 })
    }

    fn next(&mut self) -> Result<Next, SqliteError> {
        let position = self.next_cell;
        self.next_cell += 1;
        match self.kind {
            Kind::Interior { rightmost } if position == self.cell_count => {
                rightmost.map(Next::Child).ok_or_else(|| self.damaged("it has no last child"))
            }
            _ if position >= self.cell_count => Ok(Next::End),
            Kind::Leaf => self.payload(self.cell(position)?).map(Next::Row),
            Kind::Interior { .. } => {
                let child = self.cell(position)?.get(..4).and_then(page_number);
                child.map(Next::Child).ok_or_else(|| self.damaged("a cell has no child"))
            }
        }
    }

    fn cell(&self, position: usize) -> Result<&[u8], SqliteError> {
        let at = self.cells_at + 2 * position;
        let at = usize::from(u16::from_be_bytes([self.bytes[at], self.bytes[at + 1]]));
        self.bytes.get(at..).ok_or_else(|| self.damaged("a cell lies outside"))
    }

    fn payload(&self, cell: &[u8]) -> Result<Payload, SqliteError> {
        let cut_off = || self.damaged("a row is cut off");
        let (length, rest) = read_varint(cell).ok_or_else(cut_off)?;
        let (_row_id, rest) = read_varint(rest).ok_or_else(cut_off)?;
        if length > PAYLOAD_SIZE_BYTES_MAX {
            return Err(self.damaged("a row is too long"));
        }
        let length = length as usize;
        let local = local_length(length, self.bytes.len());
        let bytes = rest.get(..local).ok_or_else(cut_off)?.to_vec();
        let overflow = rest.get(local..local + 4).filter(|_| local < length);
        Ok(Payload { bytes, length, overflow: overflow.and_then(page_number) })
    }

    fn damaged(&self, problem: &'static str) -> SqliteError {
        damaged(self.number, problem)
    }
}

/// How much of a row lies on its own page.
fn local_length(length: usize, usable_size_bytes: usize) -> usize {
    let most = usable_size_bytes - 35;
    if length <= most {
        return length;
    }
    let least = (usable_size_bytes - 12) * 32 / 255 - 23;
    let rest_fills_pages = least + (length - least) % (usable_size_bytes - 4);
    if rest_fills_pages <= most { rest_fills_pages } else { least }
}

/// `None` for zero, which is not a page.
fn page_number(bytes: &[u8]) -> Option<u32> {
    let number = u32::from_be_bytes(bytes.try_into().ok()?);
    (number != 0).then_some(number)
}

fn damaged(page: u32, problem: &'static str) -> SqliteError {
    SqliteError::Damaged { page, problem }
}

#[cfg(test)]
mod tests;
