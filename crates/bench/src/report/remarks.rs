//! Why a target is missed, where it is. A remark is shown only while its row is missed, so a stale one does no harm.

/// The row's name and what there is to say about it.
const REMARKS: [(&str, &str); 9] = [
    (
        "query",
        "a page costs the system's network stack a third of its time, and the rest is spread: rendering 12 KB of JSON, \
         walking RocksDB, validating stored items, copying (docs/performance.md)",
    ),
    (
        "put-os",
        "all lanes write into one server here, so flushes and compactions of all of them take processor time beside it, and \
         three tables share the cache of values",
    ),
    (
        "put-sync",
        "processor time, not the disk: 22 to 28 µs in the server against 10 in the bare one, plus 5 to 10 % idle while everybody \
         waits for a sync (docs/performance.md)",
    ),
    ("update-os", "PutItem became faster than UpdateItem did"),
    ("update-sync", "PutItem became faster than UpdateItem did"),
    (
        "peers-get",
        "client and server share two cores, and the client costs as much per request as the server: the bare server below is the \
         most that this machine answers, so compare the processor time per request too",
    ),
    (
        "peers-query",
        "client and server share two cores: the bare server below is the most that this machine answers",
    ),
    (
        "peers-put-memory",
        "client and server share two cores: the bare server below is the most that this machine answers",
    ),
    (
        "peers-put-os",
        "client and server share two cores: the bare server below is the most that this machine answers",
    ),
];

pub fn find(row: &str) -> &'static str {
    REMARKS.iter().find(|(name, _)| *name == row).map_or("", |(_, remark)| remark)
}
