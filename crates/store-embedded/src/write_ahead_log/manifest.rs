//! A torn end of the manifest, which says what tables and logs there are.
//!
//! RocksDB appends records to the manifest, and syncs it before it acts on them. If the power fails in between, the disk
//! may hold the file's new length and only some of its new sectors. RocksDB takes such a record for damage and refuses
//! the database forever, although nothing depends on the record. So a torn end is cut off, but only if the database
//! is complete without it: all of its tables are there, and so is the first log that it then needs. (Logs are deleted
//! or reused in order, and only after the manifest has been synced.) Otherwise it is real damage: nothing is changed,
//! and RocksDB reports it.
//!
//! **Which log is the first?** After a flush, the manifest names it. But when RocksDB opens a database, it names the
//! number behind the last log that it has replayed, or 0, and no log ever gets that number. The log that it creates then
//! has the number before that of the manifest, which it creates next, and the file with its options gets a number after
//! both. (A manifest that grew too large is replaced without writing options.)

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use zenobe_store::{Error, Result};

use super::check::{AcceptDamage, check, oldest_needed_log};
use super::horizon::Nonce;
use super::reader::{BLOCK_BYTES, HEADER_BYTES, Part, parse_fragment};
use crate::options::Options;

/// A short-lived copy beside the database: the database as it would be without the torn end of its manifest.
const TRIAL_DIRECTORY: &str = "TRIAL";

/// Cuts off a torn end of a database's manifest, before RocksDB opens it.
pub(crate) fn mend_manifest(database: &Path, nonce: Nonce, options: &Options) -> Result<()> {
    let failed = |error: io::Error| Error::Open {
        detail: format!("{}: the manifest cannot be read: {error}", database.display()),
    };
    let trial = database.with_file_name(TRIAL_DIRECTORY);
    // Left by a process that ended in the middle of it.
    remove(&trial).map_err(failed)?;
    // A database without a manifest is RocksDB's to judge.
    let Ok(current) = fs::read_to_string(database.join("CURRENT")) else { return Ok(()) };
    let manifest = database.join(current.trim_end());
    let Ok(content) = fs::read(&manifest) else { return Ok(()) };
    let Some(end) = torn_at(&content) else { return Ok(()) };
    prepare(&trial, database, &manifest, &content[..end]).map_err(failed)?;
    let is_whole = is_whole(&trial, number_in(&manifest), nonce, options);
    remove(&trial).map_err(failed)?;
    if is_whole {
        tracing::warn!(
            "{} is torn at byte {end}, where a crash interrupted a change that nothing depends on; dropping its end",
            manifest.display()
        );
        truncate(&manifest, end as u64).map_err(failed)?;
    }
    Ok(())
}

/// Whether a database has all that its manifest, which has this number, asks for.
fn is_whole(database: &Path, manifest: Option<u64>, nonce: Nonce, options: &Options) -> bool {
    let has_log = |number: u64| database.join(format!("{number:06}.log")).exists();
    oldest_needed_log(database, options).is_ok_and(|needed| match manifest {
        Some(manifest) if needed < manifest && is_of_opening(database, manifest) => {
            has_log(manifest - 1)
        }
        _ => has_log(needed),
    }) && check(database, nonce, options, AcceptDamage::No).is_ok()
}

/// Whether a manifest was created when the database was opened last. The options follow it then, unless the creation of
/// the database was interrupted before it had any.
fn is_of_opening(database: &Path, manifest: u64) -> bool {
    let Ok(entries) = fs::read_dir(database) else { return false };
    let names = entries.flatten().map(|entry| entry.path());
    let is_options = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("OPTIONS-"))
    };
    let newest = names.filter(is_options).filter_map(|path| number_in(&path)).max();
    newest.is_none_or(|newest| newest > manifest)
}

/// The number in a name such as `MANIFEST-000005`.
fn number_in(path: &Path) -> Option<u64> {
    path.file_name()?.to_str()?.split_once('-')?.1.parse().ok()
}

/// Where the first record begins that RocksDB would take for damage. An incomplete record at the end of the file is none.
fn torn_at(content: &[u8]) -> Option<usize> {
    let mut begun = None;
    // Where sectors begin that never arrived. They are damage only if something follows.
    let mut empty = None;
    for (number, block) in content.chunks(BLOCK_BYTES).enumerate() {
        let mut position = 0;
        while let Some(header) = block[position..].first_chunk::<HEADER_BYTES>() {
            let here = number * BLOCK_BYTES + position;
            let Some(fragment) = parse_fragment(&block[position..]) else {
                let length = usize::from(u16::from_le_bytes([header[4], header[5]]));
                let is_empty = header[6] == 0 && length == 0;
                let is_cut_off =
                    block.len() < BLOCK_BYTES && position + HEADER_BYTES + length > block.len();
                match (is_empty, begun.or(empty)) {
                    (true, None) => {
                        empty = Some(here);
                        break;
                    }
                    (true, Some(_)) if begun.is_none() => break,
                    (_, None) if is_cut_off => return None,
                    (_, Some(_)) if is_cut_off && empty.is_none() => return None,
                    (_, damage) => return Some(damage.unwrap_or(here)),
                }
            };
            begun = match fragment.part {
                _ if empty.is_some() => return empty,
                Part::First => Some(here),
                Part::Middle | Part::Last if begun.is_none() => return Some(here),
                Part::Middle => begun,
                Part::Full | Part::Last | Part::Other => None,
            };
            position += fragment.size_bytes;
        }
    }
    None
}

/// The database with another manifest. Its files are shared where the file system allows; nothing writes to them.
fn prepare(trial: &Path, database: &Path, manifest: &Path, content: &[u8]) -> io::Result<()> {
    fs::create_dir(trial)?;
    for entry in fs::read_dir(database)? {
        let path: PathBuf = entry?.path();
        let target = trial.join(path.file_name().unwrap_or_default());
        if path == manifest {
            fs::write(target, content)?;
        } else if fs::hard_link(&path, &target).is_err() {
            fs::copy(&path, &target)?;
        }
    }
    Ok(())
}

fn truncate(file: &Path, length: u64) -> io::Result<()> {
    let file = File::options().write(true).open(file)?;
    file.set_len(length)?;
    file.sync_all()
}

fn remove(directory: &Path) -> io::Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: u8 = 1;
    const FIRST: u8 = 2;
    const LAST: u8 = 4;

    /// A fragment as RocksDB's log writer makes it.
    fn fragment(part: u8, payload: &[u8]) -> Vec<u8> {
        let checksum = crc32c::crc32c_append(crc32c::crc32c(&[part]), payload);
        let masked = checksum.rotate_right(15).wrapping_add(0xA282_EAD8);
        let length = u16::try_from(payload.len()).unwrap();
        [&masked.to_le_bytes()[..], &length.to_le_bytes(), &[part], payload].concat()
    }

    /// A record, then one that begins at the end of the first block and ends in the second. Yields where that begins.
    fn crossing() -> (Vec<u8>, usize) {
        let begins = BLOCK_BYTES - 200;
        let mut content = fragment(FULL, &vec![1; begins - HEADER_BYTES]);
        content.extend(fragment(FIRST, &[2; 200 - HEADER_BYTES]));
        assert_eq!(content.len(), BLOCK_BYTES);
        content.extend(fragment(LAST, &[3; 50]));
        (content, begins)
    }

    #[test]
    fn whole_records_are_not_torn() {
        let (mut content, _) = crossing();
        assert_eq!(torn_at(&content), None);
        content.extend([0; 300]);
        assert_eq!(torn_at(&content), None, "the length was there before the content");
        let cut = content.len() - 320;
        assert_eq!(
            torn_at(&content[..cut]),
            None,
            "RocksDB knows how to leave out an incomplete end"
        );
    }

    #[test]
    fn a_record_whose_beginning_never_arrived_is_torn_there() {
        let (mut content, begins) = crossing();
        content[begins..BLOCK_BYTES].fill(0);
        assert_eq!(torn_at(&content), Some(begins));
        // Another record in the second block changes nothing.
        content.extend(fragment(FULL, &[4; 30]));
        assert_eq!(torn_at(&content), Some(begins));
    }

    #[test]
    fn a_record_that_starts_a_block_behind_nothing_is_torn_as_well() {
        let (mut content, begins) = crossing();
        content.truncate(begins);
        content.resize(BLOCK_BYTES, 0);
        content.extend(fragment(FULL, &[4; 30]));
        assert_eq!(torn_at(&content), Some(begins));
    }

    #[test]
    fn a_record_whose_end_never_arrived_is_torn_where_it_begins() {
        let (mut content, begins) = crossing();
        content[BLOCK_BYTES + 10] ^= 1;
        content.extend(fragment(FULL, &[4; 30]));
        assert_eq!(torn_at(&content), Some(begins));
    }
}
