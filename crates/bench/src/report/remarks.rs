//! Why a target is missed. A remark shows only while its row misses its target, so a stale one does
//! no harm.

/// Names of rows, and the remark on them.
const REMARKS: &[(&[&str], &str)] = &[
    (
        &["query"],
        "45 % of the bare server's rate leaves 53 µs of the two cores for a page. The client takes about 13, and the server about 40: \
         12 in the system, 10 to walk RocksDB, 6 to validate items and render JSON, the rest is spread. Some pages lie in the \
         memtable and others in a file; with smaller tables, as among the peers below, a page is cheaper (docs/performance.md)",
    ),
    (
        &["put-os"],
        "half of the bare server's rate leaves 40 µs of the two cores for a request, of which the client takes about 8 and the server \
         25 when nothing else runs (docs/performance.md)",
    ),
    (
        &["put-sync"],
        "processor time, not the disk: 60 % of the bare server's rate leaves 29 µs of the two cores for a request, of which the \
         client takes 8. The workers take 24 with the commit, syncing 3, flushes and compactions 2: together 37, which is about half \
         of the bare server's rate (docs/performance.md)",
    ),
    (
        &["update-os", "update-sync"],
        "its condition and its arithmetic take 21,000 instructions beside the 42,000 of a PutItem (`cargo xtask instructions`), about \
         5 µs beside the 37 of client and server",
    ),
    (
        &["peers-get"],
        "the limit is the machine's: client and server share two cores, and the bare server itself, which does nothing, is only about 3 × \
         the best peer. In the server's processor time per request, below, it is more than 3 ×",
    ),
    (
        &["peers-query", "peers-put-memory", "peers-put-os"],
        "client and server share two cores: the bare server below is the most that this machine answers",
    ),
    (
        &["growth-get-open", "growth-query-open", "growth-get-closed", "growth-query-closed"],
        "keys are drawn evenly from 20 times as much data as the cache holds, so nearly every read fetches and decompresses a block, or \
         two to three for a page: 20 µs of processor time each beside the 15 of a GetItem, on cores that the client needs too. That alone \
         is 2.3 ×; less is reached only while cores are idle (docs/performance.md)",
    ),
    (
        &["memory"],
        "all that the process has allocated, with what its allocator keeps of memory that was given back",
    ),
    (&["load"], "flushes and compactions share the cores with requests (docs/performance.md)"),
    (
        &["tail-os", "tail-sync"],
        "the machine has a tail of its own: that of the bare server, which has nothing to flush, to compact or to wait for, and which the \
         row shows too. What the store adds is a queue, not a stall: its commits take 8 ms at most, but while a flush and a compaction run, two \
         cores are too few for requests that come one by one (docs/performance.md)",
    ),
];

pub fn find(row: &str) -> &'static str {
    REMARKS.iter().find(|(rows, _)| rows.contains(&row)).map_or("", |(_, remark)| remark)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_one_remark_that_fits_into_a_cell() {
        let mut rows: Vec<&str> = REMARKS.iter().flat_map(|(rows, _)| *rows).copied().collect();
        rows.sort_unstable();
        assert!(rows.windows(2).all(|pair| pair[0] != pair[1]), "{rows:?}");
        assert!(REMARKS.iter().all(|(_, remark)| !remark.contains(['|', '\n'])));
    }

    #[test]
    fn rows_of_growth_memory_and_tails_have_remarks() {
        for row in ["growth-get-open", "growth-query-closed", "memory", "tail-os", "tail-sync"] {
            assert_ne!(find(row), "", "{row}");
        }
        assert_eq!(find("no such row"), "");
    }
}
