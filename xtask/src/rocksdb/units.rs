//! RocksDB as a few large translation units.
//!
//! Its headers cost more to compile than its sources: file by file, the library takes about 27
//! minutes of processor time. Upstream has a `unity` target that includes all sources in one file,
//! so the sources allow it. We use a few files, so that all processors have work.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use crate::process::Failure;

/// Sources that nothing we link needs, not even RocksDB's C interface: tools, test doubles and
/// optional features.
const LEFT_OUT: [&str; 14] = [
    // The crate ships one that already contains the version.
    "util/build_version.cc",
    "test_util/transaction_test_util.cc",
    "tools/",
    "utilities/agg_merge/",
    "utilities/cassandra/",
    "utilities/convenience/",
    "utilities/env_mirror.cc",
    "utilities/fault_injection",
    "utilities/leveldb_options/",
    "utilities/option_change_migration/",
    "utilities/persistent_cache/",
    "utilities/secondary_index/",
    "utilities/simulator_cache/",
    "utilities/sorted_run_builder/",
];

/// One translation unit: the sources that it includes, and their total size.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Unit {
    sources: Vec<String>,
    bytes: u64,
}

/// Divides the sources among `count` units of about the same size. Neighbours in the list stay
/// together, because they include the same headers.
pub fn divide(sources: Vec<(String, u64)>, count: usize) -> Vec<Unit> {
    let total: u64 = sources.iter().map(|(_, bytes)| bytes).sum::<u64>().max(1);
    let mut units: Vec<Unit> = (0..count).map(|_| Unit::default()).collect();
    let mut bytes_before = 0;
    for (source, bytes) in sources {
        let unit = &mut units[(bytes_before * count as u64 / total) as usize];
        unit.sources.push(source);
        unit.bytes += bytes;
        bytes_before += bytes;
    }
    units.retain(|unit| !unit.sources.is_empty());
    units
}

/// The library's sources with their sizes, from the list that the crate's own build script uses.
pub fn sources(package: &Path) -> Result<Vec<(String, u64)>, Failure> {
    let list = package.join("rocksdb_lib_sources.txt");
    let text = fs::read_to_string(&list).map_err(|error| Failure::file("read", &list, &error))?;
    let wanted = |source: &&str| {
        !source.is_empty() && !LEFT_OUT.iter().any(|prefix| source.starts_with(prefix))
    };
    text.lines()
        .map(str::trim)
        .filter(wanted)
        .map(|source| {
            let path = package.join("rocksdb").join(source);
            let file = fs::metadata(&path).map_err(|error| Failure::file("read", &path, &error))?;
            Ok((source.to_owned(), file.len()))
        })
        .collect()
}

/// Writes the units into a directory, and RocksDB's version as one more. The largest comes first,
/// so that no processor is left with it at the end.
pub fn write(units: &[Unit], package: &Path, directory: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut order: Vec<&Unit> = units.iter().collect();
    order.sort_by_key(|unit| std::cmp::Reverse(unit.bytes));
    let mut paths = Vec::new();
    for (number, unit) in order.into_iter().enumerate() {
        let path = directory.join(format!("unit_{number}.cc"));
        let mut text = String::new();
        for source in &unit.sources {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "#include \"{source}\"");
        }
        fs::write(&path, text).map_err(|error| Failure::file("write", &path, &error))?;
        paths.push(path);
    }
    paths.push(package.join("build_version.cc"));
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_of_about_the_same_size_and_keep_the_order() {
        let sources: Vec<_> = (0..100).map(|number| (format!("{number}.cc"), 10)).collect();
        let units = divide(sources.clone(), 4);
        assert_eq!(units.iter().map(|unit| unit.bytes).collect::<Vec<_>>(), [250; 4]);
        let all: Vec<_> = units.into_iter().flat_map(|unit| unit.sources).collect();
        assert_eq!(all, sources.into_iter().map(|(name, _)| name).collect::<Vec<_>>());
    }

    #[test]
    fn one_large_source_leaves_no_empty_unit_behind() {
        let units = divide(vec![("a.cc".into(), 1), ("b.cc".into(), 100), ("c.cc".into(), 1)], 4);
        assert_eq!(units.len(), 2);
        assert_eq!(units[0].sources, ["a.cc", "b.cc"]);
        assert_eq!(units[1].sources, ["c.cc"]);
    }
}
