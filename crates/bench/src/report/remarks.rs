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
        "all lanes write into one server here, so flushes and compactions of all of them take processor time beside it, and \
         three tables share the cache of values",
    ),
    (
        &["put-sync"],
        "processor time, not the disk: about 26 µs in the server against 10 in the bare one, plus 10 to 15 % idle or in the system's \
         threads while everybody waits for a sync (docs/performance.md)",
    ),
    (&["update-os", "update-sync"], "PutItem became faster than UpdateItem did"),
    (
        &["peers-get"],
        "client and server share two cores, and the client costs as much per request as the server: the bare server below is the \
         most that this machine answers, so compare the processor time per request too",
    ),
    (
        &["peers-query", "peers-put-memory", "peers-put-os"],
        "client and server share two cores: the bare server below is the most that this machine answers",
    ),
    (
        &["growth-get-open", "growth-query-open", "growth-get-closed", "growth-query-closed"],
        "keys are drawn evenly from 20 times as much data as the cache holds, so nearly every read fetches and decompresses a \
         block: 20 µs of processor time beside the 15 of a GetItem, on cores that the client needs too (docs/performance.md)",
    ),
    (
        &["memory"],
        "all that the process has allocated, with what its allocator keeps of memory that was given back",
    ),
    (&["load"], "flushes and compactions share the cores with requests (docs/performance.md)"),
    (
        &["tail-os", "tail-sync"],
        "not the store, whose commits take 8 ms at most, but turns: client, server and compactions have two cores, and the scheduler \
         lets a thread run for 4 ms before another's turn, many times the median (docs/performance.md)",
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
