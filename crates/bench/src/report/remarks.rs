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
        "processor time, not the disk: 22 to 28 µs in the server against 10 in the bare one, plus 5 to 10 % idle while everybody \
         waits for a sync (docs/performance.md)",
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
        "little of the large table is in the cache, and index and filter blocks are read through the cache like the data \
         (docs/performance.md)",
    ),
    (
        &["memory"],
        "all that the process has allocated, with what its allocator keeps of memory that was given back",
    ),
    (
        &["load", "tail-os", "tail-sync"],
        "flushes and compactions share the cores with requests (docs/performance.md)",
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
