//! Why a target is missed. A remark shows only while its row misses its target. It holds no
//! figures: those of one machine would be wrong on another.

/// Names of rows, and the remark on them.
const REMARKS: &[(&[&str], &str)] = &[
    (
        &["query"],
        "A page costs more processor time than the target leaves beside the client's: the system, walking RocksDB, validating items and \
         rendering JSON. With smaller tables, as among the peers below, a page is cheaper (docs/performance.md)",
    ),
    (
        &["put-os"],
        "client and server together need more processor time for a request than the target leaves (docs/performance.md)",
    ),
    (
        &["put-sync"],
        "The limit is processor time, not the disk: client, workers, syncs, flushes and compactions together need more of it than the \
         target leaves (docs/performance.md)",
    ),
    (
        &["update-os", "update-sync"],
        "the condition and the arithmetic add instructions to those of a PutItem (`cargo xtask instructions` counts both)",
    ),
    (
        &["peers-get"],
        "The limit is the machine: client and server share its cores, and the bare server below, which does nothing, bounds every program. \
         The processor time per request, below, shows the difference without that limit",
    ),
    (
        &["peers-query", "peers-put-memory", "peers-put-os"],
        "client and server share the cores: the bare server below is the most that this machine answers",
    ),
    (
        &["growth-get-open", "growth-query-open", "growth-get-closed", "growth-query-closed"],
        "Keys are drawn evenly from far more data than the cache holds, so nearly every read fetches and decompresses a block, or two to \
         three for a page, on cores that the client needs too (docs/performance.md)",
    ),
    (
        &["memory"],
        "everything the process has allocated, including freed memory that its allocator keeps",
    ),
    (
        &["nodes-get"],
        "client, node and PostgreSQL share the cores, and the bare client needs none for HTTP",
    ),
    (
        &["nodes-put"],
        "client, node and PostgreSQL share the cores. A PutItem takes PostgreSQL a fraction of the processor time of a transaction of pgbench, but client and node \
         need theirs as well: how much is said below",
    ),
    (
        &["nodes-two"],
        "Each write of an item that the other node has changed since has to be read first. And clients, nodes and PostgreSQL share the cores: what each \
         takes, and what is left, is said below",
    ),
    (
        &["nodes-two-apart"],
        "clients, nodes and PostgreSQL share the cores, so a second node adds none: what each takes, and what is left, is said below",
    ),
    (
        &["nodes-growth-get", "nodes-growth-query", "nodes-growth-put"],
        "The large table does not fit into the caches of the processor and the node, so PostgreSQL walks a deeper index, and a PutItem reads the item first",
    ),
    (&["load"], "flushes and compactions share the cores with requests (docs/performance.md)"),
    (
        &["tail-os", "tail-sync"],
        "The machine has a tail of its own: the row also shows that of the bare server, which never flushes, compacts or waits. The store \
         adds a queue, not a stall: while a flush and a compaction run, too few cores are left for requests that arrive one by one \
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

    /// The page is generated on any machine.
    #[test]
    fn no_remark_holds_a_figure() {
        for (_, remark) in REMARKS {
            assert!(!remark.contains(|character: char| character.is_ascii_digit()), "{remark}");
        }
    }
}
