//! Why a target is missed, where it is. A remark is shown only while its row is missed, so a stale one does no harm.

/// Names of rows and what there is to say about them.
const REMARKS: &[(&[&str], &str)] = &[
    (
        &["query"],
        "a page costs the system's network stack a third of its time, and the rest is spread: rendering 12 KB of JSON, \
         walking RocksDB, validating stored items, copying (docs/performance.md)",
    ),
    (
        &["put-os"],
        "all lanes write into one server here, so three tables share its cache of values",
    ),
    (
        &["put-sync"],
        "processor time, not the disk: 60 % of the bare server's rate leaves 29 µs of the two cores for a request, of which the \
         client takes 8. The workers take 24 with the commit, syncing 3, flushes and compactions 2: together 37, which is about half \
         of the bare server's rate (docs/performance.md)",
    ),
    (&["update-os", "update-sync"], "PutItem became faster than UpdateItem did"),
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
        "not a stall of the store, whose commits take 8 ms at most, but a queue: requests that come one by one cost client and server \
         about twice as much as in batches, and while a flush and a compaction run beside them two cores are too few for the rate \
         (docs/performance.md)",
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
