//! Which table files are damaged, where RocksDB does not say.
//!
//! RocksDB interprets the properties of a table before it verifies their checksum, and reports what it stumbles over
//! as damage of the manifest. An operator who reads that would repair the wrong file. So when a database can't be opened
//! because it is damaged, this module verifies the blocks that describe each table. RocksDB names the file of all other
//! damage itself.
//!
//! A table ends with its metaindex block, which says where the other blocks of this kind are, and a footer. Behind each
//! block are its compression (one byte) and a checksum. See `table/format.cc` in RocksDB.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use xxhash_rust::xxh3::xxh3_64;

const FOOTER_BYTES: usize = 53;
const TRAILER_BYTES: u64 = 5;
const MAGIC_NUMBER: [u8; 8] = 0x88e2_41b7_85f4_cff7_u64.to_le_bytes();
const EXTENDED_MAGIC_NUMBER: [u8; 4] = [0x3e, 0, 0x7a, 0];
/// The number of the kind of checksum that is RocksDB's default.
const XXH3: u8 = 4;
/// How RocksDB mixes the last byte into such a checksum.
const LAST_BYTE_FACTOR: u32 = 0x6b90_83d9;
/// The upper bits of the number of restart points are flags.
const RESTARTS_MASK: u32 = (1 << 28) - 1;

/// The names of the tables whose description is damaged, in order. A table that can't be read is not among them:
/// RocksDB has said so.
pub(crate) fn damaged_table_files(database: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(database) else { return Vec::new() };
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let is_damaged = |name: &String| {
        name.ends_with(".sst") && matches!(is_damaged(&database.join(name)), Ok(true))
    };
    let mut damaged: Vec<String> = names.filter(is_damaged).collect();
    damaged.sort();
    damaged
}

fn is_damaged(path: &Path) -> io::Result<bool> {
    let Some(mut table) = SstFile::open(path)? else { return Ok(false) };
    let Some(metaindex) = table.read_block(table.metaindex)? else { return Ok(true) };
    let Some(blocks) = parse_metaindex(&metaindex) else { return Ok(true) };
    for block in blocks {
        if table.read_block(block)?.is_none() {
            return Ok(true);
        }
    }
    Ok(false)
}

struct SstFile {
    file: File,
    /// Where the footer begins, and the blocks end.
    footer_offset: u64,
    /// Part of each checksum, so that a block of another file is noticed.
    base_checksum: u32,
    metaindex: Block,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Block {
    offset: u64,
    size_bytes: u64,
}

impl SstFile {
    /// `None` if its footer is not one of ours. RocksDB verifies footers before it interprets them.
    fn open(path: &Path) -> io::Result<Option<SstFile>> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        let Some(footer_offset) = length.checked_sub(FOOTER_BYTES as u64) else { return Ok(None) };
        let mut footer = [0; FOOTER_BYTES];
        file.seek(SeekFrom::Start(footer_offset))?;
        file.read_exact(&mut footer)?;
        let [kind, m0, m1, m2, m3, _, _, _, _, c0, c1, c2, c3, s0, s1, s2, s3, ..] = footer;
        let is_ours = kind == XXH3
            && [m0, m1, m2, m3] == EXTENDED_MAGIC_NUMBER
            && footer.ends_with(&MAGIC_NUMBER);
        let size_bytes = u64::from(u32::from_le_bytes([s0, s1, s2, s3]));
        let offset = footer_offset.checked_sub(size_bytes + TRAILER_BYTES).filter(|_| is_ours);
        Ok(offset.map(|offset| SstFile {
            file,
            footer_offset,
            base_checksum: u32::from_le_bytes([c0, c1, c2, c3]),
            metaindex: Block { offset, size_bytes },
        }))
    }

    /// The content of a block, or `None` if it is damaged.
    fn read_block(&mut self, block: Block) -> io::Result<Option<Vec<u8>>> {
        let Block { offset, size_bytes } = block;
        let end = offset.checked_add(size_bytes).and_then(|end| end.checked_add(TRAILER_BYTES));
        if end.is_none_or(|end| end > self.footer_offset) {
            return Ok(None);
        }
        let mut content = Vec::new();
        self.file.seek(SeekFrom::Start(offset))?;
        (&mut self.file).take(size_bytes + TRAILER_BYTES).read_to_end(&mut content)?;
        let Some(&[compression, c0, c1, c2, c3]) = content.last_chunk() else { return Ok(None) };
        content.truncate(content.len() - TRAILER_BYTES as usize);
        let checksum = checksum(&content, compression);
        let place = self.base_checksum ^ ((offset as u32).wrapping_add((offset >> 32) as u32));
        let is_whole = checksum.wrapping_add(place) == u32::from_le_bytes([c0, c1, c2, c3]);
        Ok(is_whole.then_some(content))
    }
}

fn checksum(content: &[u8], last_byte: u8) -> u32 {
    xxh3_64(content) as u32 ^ u32::from(last_byte).wrapping_mul(LAST_BYTE_FACTOR)
}

/// The blocks that a metaindex lists. Each entry has a name and a place; no entry shares bytes with the one before it.
fn parse_metaindex(content: &[u8]) -> Option<Vec<Block>> {
    let (rest, restarts) = content.split_last_chunk()?;
    let restarts = u32::from_le_bytes(*restarts) & RESTARTS_MASK;
    let mut rest = &rest[..rest.len().checked_sub(4 * restarts as usize)?];
    let mut blocks = Vec::new();
    while !rest.is_empty() {
        let [_shared, name_bytes, place_bytes] =
            [take_varint(&mut rest)?, take_varint(&mut rest)?, take_varint(&mut rest)?];
        let (_name, behind) = rest.split_at_checked(name_bytes as usize)?;
        let (mut place, behind) = behind.split_at_checked(place_bytes as usize)?;
        let [offset, size_bytes] = [take_varint(&mut place)?, take_varint(&mut place)?];
        blocks.push(Block { offset, size_bytes });
        rest = behind;
    }
    Some(blocks)
}

fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7F) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{SstFile, damaged_table_files, parse_metaindex};
    use crate::options::{Options, entries_options, rocksdb_options};
    use rocksdb::{ColumnFamilyDescriptor, DB};
    use std::fs;

    /// Every byte of the blocks that describe a table counts, and none of a sound one is taken for damage.
    #[test]
    fn each_damaged_byte_is_noticed() {
        let directory = tempfile::tempdir().unwrap();
        let options = Options::default();
        let mut rocks = entries_options(&rocksdb_options(&options), &options);
        rocks.create_if_missing(true);
        let family = ColumnFamilyDescriptor::new("default", rocks.clone());
        let database = DB::open_cf_descriptors(&rocks, directory.path(), [family]).unwrap();
        for number in 0..3_000_u32 {
            database.put(number.to_be_bytes(), number.to_string().repeat(9)).unwrap();
        }
        database
            .delete_range_cf(database.cf_handle("default").unwrap(), [0; 4], [0, 0, 1, 0])
            .unwrap();
        database.flush().unwrap();
        drop(database);
        assert_eq!(damaged_table_files(directory.path()), Vec::<String>::new());

        let mut names = fs::read_dir(directory.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.ends_with(".sst"));
        let (name, None) = (&*names.next().unwrap(), names.next()) else { panic!("one table") };
        let path = directory.path().join(name);
        let mut table = SstFile::open(&path).unwrap().unwrap();
        let metaindex = table.read_block(table.metaindex).unwrap().unwrap();
        let blocks = parse_metaindex(&metaindex).unwrap();
        assert!(blocks.len() >= 4, "filter, index, properties and deleted ranges: {blocks:?}");
        let content = fs::read(&path).unwrap();
        for block in blocks.into_iter().chain([table.metaindex]) {
            for position in (block.offset..block.offset + block.size_bytes).step_by(31) {
                let mut damaged = content.clone();
                damaged[position as usize] ^= 1;
                fs::write(&path, damaged).unwrap();
                assert_eq!(damaged_table_files(directory.path()), [name], "byte {position}");
            }
        }
    }
}
