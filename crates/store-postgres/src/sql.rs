//! All statements, and the connection on which they are prepared.
//!
//! They use only what PostgreSQL, CockroachDB and YugabyteDB have in common: no advisory locks, no procedures, `ASC` primary keys, one
//! data-modifying part per table in a `WITH`. A failed condition must abort a transaction whose `COMMIT` has already been sent. So it
//! divides by zero, which is an error in each of them.
//!
//! Plans are made once per connection, perhaps while the tables are empty, when walking a whole table looks cheaper than looking keys up.
//! So no statement leaves that choice: each key of an array is looked up by a lateral subquery that can't be merged into the rest, with a
//! lock or `OFFSET 0`. Arrays are in the order of their keys, and so rows are locked in that order.

use futures_util::future::try_join_all;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error, Statement};

/// The version of the tables below. A store with a newer one is refused.
pub const SCHEMA_VERSION: i32 = 1;

/// `zenobe_kv`: slot 0 (`s`) of a key holds its value in `v`, and in `rev` a number that no other state of the key ever has.
/// Additions to a counter are in the other slots, with the `rev` of the row that they add to: replacing or deleting that row
/// invalidates them. A row of slot 0 without a value belongs to a counter, or is the placeholder of an absent key.
pub const CREATE: [&str; 4] = [
    "CREATE TABLE IF NOT EXISTS zenobe_kv (
        h bytea NOT NULL, d bytea NOT NULL, s smallint NOT NULL,
        k bytea, v bytea, n numeric, rev bigint NOT NULL,
        PRIMARY KEY (h ASC, d ASC, s ASC))",
    "CREATE TABLE IF NOT EXISTS zenobe_log (
        log bytea NOT NULL, last bigint NOT NULL, stamp bigint NOT NULL, PRIMARY KEY (log ASC))",
    "CREATE TABLE IF NOT EXISTS zenobe_commit (
        id bytea NOT NULL, fenced boolean NOT NULL, at timestamptz NOT NULL, PRIMARY KEY (id ASC))",
    "CREATE TABLE IF NOT EXISTS zenobe_schema (
        one smallint NOT NULL, version integer NOT NULL, PRIMARY KEY (one ASC))",
];

/// PostgreSQL does not accept `ASC` in a primary key, where it has no other order.
pub const CREATE_POSTGRES: [&str; 4] = [
    "CREATE TABLE IF NOT EXISTS zenobe_kv (
        h bytea NOT NULL, d bytea NOT NULL, s smallint NOT NULL,
        k bytea, v bytea, n numeric, rev bigint NOT NULL,
        PRIMARY KEY (h, d, s))",
    "CREATE TABLE IF NOT EXISTS zenobe_log (
        log bytea NOT NULL, last bigint NOT NULL, stamp bigint NOT NULL, PRIMARY KEY (log))",
    "CREATE TABLE IF NOT EXISTS zenobe_commit (
        id bytea NOT NULL, fenced boolean NOT NULL, at timestamptz NOT NULL, PRIMARY KEY (id))",
    "CREATE TABLE IF NOT EXISTS zenobe_schema (
        one smallint NOT NULL, version integer NOT NULL, PRIMARY KEY (one))",
];

pub const BEGIN_VIEW: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// One connection. The server executes statements in the order in which they were sent.
pub struct Session {
    pub client: Client,
    pub statements: Statements,
}

impl Session {
    pub fn is_closed(&self) -> bool {
        self.client.is_closed()
    }
}

macro_rules! statements {
    ($($name:ident($($type:ident),*): $sql:expr;)*) => {
        pub struct Statements {
            $(pub $name: Statement,)*
        }

        impl Statements {
            pub async fn prepare(client: &Client) -> Result<Statements, Error> {
                let all = [$(client.prepare_typed($sql, const { &[$(Type::$type),*] }),)*];
                let mut prepared = try_join_all(all).await?.into_iter();
                Ok(Statements {
                    $($name: prepared.next().expect("one for each"),)*
                })
            }
        }
    };
}

statements! {
    get(BYTEA, BYTEA):
        "SELECT s, v, n::text, rev FROM zenobe_kv WHERE h = $1 AND d = $2";
    get_many(BYTEA_ARRAY, BYTEA_ARRAY, INT4_ARRAY):
        "SELECT kv.s, kv.v, kv.n::text, kv.rev, e.i
         FROM unnest($1, $2, $3) AS e(h, d, i) CROSS JOIN LATERAL (
             SELECT s, v, n, rev FROM zenobe_kv WHERE h = e.h AND d = e.d OFFSET 0) AS kv";
    scan_forward(BYTEA, BYTEA, BYTEA, BYTEA, INT8):
        "SELECT s, v, n::text, rev, h, d FROM zenobe_kv
         WHERE h >= $1 AND h <= $2 AND coalesce(k, h) >= $3 AND (coalesce(k, h) < $4) IS NOT FALSE
         ORDER BY h, d, s LIMIT $5";
    scan_reverse(BYTEA, BYTEA, BYTEA, BYTEA, INT8):
        "SELECT s, v, n::text, rev, h, d FROM zenobe_kv
         WHERE h >= $1 AND h <= $2 AND coalesce(k, h) >= $3 AND (coalesce(k, h) < $4) IS NOT FALSE
         ORDER BY h DESC, d DESC, s DESC LIMIT $5";
    run_forward(BYTEA, BYTEA, BYTEA, INT8):
        "SELECT s, v, n::text, rev, k FROM zenobe_kv
         WHERE h = $1 AND d > '' AND k >= $2 AND (k < $3) IS NOT FALSE ORDER BY k, s LIMIT $4";
    run_reverse(BYTEA, BYTEA, BYTEA, INT8):
        "SELECT s, v, n::text, rev, k FROM zenobe_kv
         WHERE h = $1 AND d > '' AND k >= $2 AND (k < $3) IS NOT FALSE ORDER BY k DESC, s DESC LIMIT $4";
    validate_exclusive(BYTEA_ARRAY, BYTEA_ARRAY, INT8_ARRAY, INT8):
        "SELECT 1 / (CASE WHEN count(*) = $4 THEN 1 ELSE 0 END) FROM (
             SELECT kv.rev FROM unnest($1, $2, $3) AS e(h, d, rev) CROSS JOIN LATERAL (
                 SELECT rev FROM zenobe_kv
                 WHERE h = e.h AND d = e.d AND s = 0 AND rev = e.rev FOR UPDATE) AS kv) AS locked";
    validate_shared(BYTEA_ARRAY, BYTEA_ARRAY, INT8_ARRAY, INT8):
        "SELECT 1 / (CASE WHEN count(*) = $4 THEN 1 ELSE 0 END) FROM (
             SELECT kv.rev FROM unnest($1, $2, $3) AS e(h, d, rev) CROSS JOIN LATERAL (
                 SELECT rev FROM zenobe_kv
                 WHERE h = e.h AND d = e.d AND s = 0 AND rev = e.rev FOR SHARE) AS kv) AS locked";
    // Validates and puts at once. A row that is gone is inserted with the revision that it should have had, and not counted.
    replace(BYTEA_ARRAY, BYTEA_ARRAY, BYTEA_ARRAY, BYTEA_ARRAY, INT8_ARRAY, INT8, INT8):
        "WITH replaced AS (
             INSERT INTO zenobe_kv AS kv (h, d, s, k, v, rev)
             SELECT e.h, e.d, 0, e.k, e.v, e.rev FROM unnest($1, $2, $3, $4, $5) AS e(h, d, k, v, rev)
             ON CONFLICT (h, d, s) DO UPDATE SET v = excluded.v, rev = $6 WHERE kv.rev = excluded.rev
             RETURNING kv.rev)
         SELECT 1 / (CASE WHEN count(*) = $7 THEN 1 ELSE 0 END) FROM replaced WHERE rev = $6";
    claim(BYTEA_ARRAY, BYTEA_ARRAY, BYTEA_ARRAY, BYTEA_ARRAY, INT8):
        "INSERT INTO zenobe_kv (h, d, s, k, v, rev)
         SELECT e.h, e.d, 0, e.k, e.v, $5 FROM unnest($1, $2, $3, $4) AS e(h, d, k, v)";
    put(BYTEA_ARRAY, BYTEA_ARRAY, BYTEA_ARRAY, BYTEA_ARRAY, INT8):
        "INSERT INTO zenobe_kv (h, d, s, k, v, rev)
         SELECT e.h, e.d, 0, e.k, e.v, $5 FROM unnest($1, $2, $3, $4) AS e(h, d, k, v)
         ON CONFLICT (h, d, s) DO UPDATE SET v = excluded.v, rev = excluded.rev";
    delete(BYTEA_ARRAY, BYTEA_ARRAY):
        "DELETE FROM zenobe_kv
         WHERE h = ANY($1) AND s = 0
             AND (h, d) IN (SELECT e.h, e.d FROM unnest($1, $2) AS e(h, d))";
    delete_range(BYTEA, BYTEA, BYTEA, BYTEA):
        "DELETE FROM zenobe_kv
         WHERE h >= $1 AND h <= $2 AND coalesce(k, h) >= $3 AND (coalesce(k, h) < $4) IS NOT FALSE";
    mark_counters(BYTEA_ARRAY, BYTEA_ARRAY, BYTEA_ARRAY, INT8):
        "INSERT INTO zenobe_kv (h, d, s, k, rev)
         SELECT e.h, e.d, 0, e.k, $4 FROM unnest($1, $2, $3) AS e(h, d, k)
         ON CONFLICT (h, d, s) DO NOTHING";
    // A text that is not a number rejects a value that is not a counter. A count that is too low rejects a row that was just deleted, and a
    // slot that adds to another row: that of an earlier state of the counter, or of a later one, because this looks at the row without a lock.
    add(BYTEA_ARRAY, BYTEA_ARRAY, BYTEA_ARRAY, TEXT_ARRAY, INT2, INT8):
        "WITH added AS (
             INSERT INTO zenobe_kv AS kv (h, d, s, k, n, rev)
             SELECT e.h, e.d, $5, e.k, CAST(e.n AS numeric) + CAST(
                 CASE WHEN base.v IS NULL OR octet_length(base.v) = 8 THEN '0' ELSE 'no counter' END
                 AS numeric), base.rev
             FROM unnest($1, $2, $3, $4) AS e(h, d, k, n) CROSS JOIN LATERAL (
                 SELECT v, rev FROM zenobe_kv WHERE h = e.h AND d = e.d AND s = 0 OFFSET 0) AS base
             ON CONFLICT (h, d, s) DO UPDATE SET n = kv.n + excluded.n WHERE kv.rev = excluded.rev
             RETURNING 1)
         SELECT 1 / (CASE WHEN count(*) = $6 THEN 1 ELSE 0 END) FROM added";
    // The same for counters to whose present row this slot may not have added before. It locks the row, so a slot that adds to another row adds to an
    // earlier one, and begins again.
    add_first(BYTEA_ARRAY, BYTEA_ARRAY, BYTEA_ARRAY, TEXT_ARRAY, INT2, INT8):
        "WITH added AS (
             INSERT INTO zenobe_kv AS kv (h, d, s, k, n, rev)
             SELECT e.h, e.d, $5, e.k, CAST(e.n AS numeric) + CAST(
                 CASE WHEN base.v IS NULL OR octet_length(base.v) = 8 THEN '0' ELSE 'no counter' END
                 AS numeric), base.rev
             FROM unnest($1, $2, $3, $4) AS e(h, d, k, n) CROSS JOIN LATERAL (
                 SELECT v, rev FROM zenobe_kv WHERE h = e.h AND d = e.d AND s = 0 FOR SHARE) AS base
             ON CONFLICT (h, d, s) DO UPDATE SET
                 n = CASE WHEN kv.rev = excluded.rev THEN kv.n + excluded.n ELSE excluded.n END,
                 rev = excluded.rev
             RETURNING 1)
         SELECT 1 / (CASE WHEN count(*) = $6 THEN 1 ELSE 0 END) FROM added";
    create_logs(BYTEA_ARRAY):
        "INSERT INTO zenobe_log (log, last, stamp) SELECT e.log, 0, 0 FROM unnest($1) AS e(log)
         ON CONFLICT (log) DO NOTHING";
    lock_logs(BYTEA_ARRAY):
        "SELECT log, last, stamp FROM zenobe_log WHERE log = ANY($1) ORDER BY log FOR UPDATE";
    move_logs(BYTEA_ARRAY, INT8_ARRAY, INT8_ARRAY):
        "UPDATE zenobe_log SET last = e.last, stamp = e.stamp
         FROM unnest($1, $2, $3) AS e(log, last, stamp) WHERE zenobe_log.log = e.log";
    set_logs(BYTEA_ARRAY, INT8_ARRAY, INT8_ARRAY):
        "INSERT INTO zenobe_log (log, last, stamp)
         SELECT e.log, e.last, e.stamp FROM unnest($1, $2, $3) AS e(log, last, stamp)
         ON CONFLICT (log) DO UPDATE SET last = excluded.last, stamp = excluded.stamp";
    list_logs(BYTEA, INT8):
        "SELECT log, last, stamp FROM zenobe_log WHERE log >= $1 ORDER BY log LIMIT $2";
    forget_logs(BYTEA_ARRAY):
        "DELETE FROM zenobe_log WHERE log = ANY($1)";
    record_commit(BYTEA, BOOL):
        "INSERT INTO zenobe_commit (id, fenced, at) VALUES ($1, $2, now())";
    find_commit(BYTEA):
        "SELECT fenced FROM zenobe_commit WHERE id = $1";
    // A row that is no commit's, because its id is shorter, says when records were last collected.
    claim_collection(FLOAT8):
        "INSERT INTO zenobe_commit (id, fenced, at) VALUES ('collected'::bytea, true, now())
         ON CONFLICT (id) DO UPDATE SET at = excluded.at
         WHERE zenobe_commit.at < excluded.at - $1 * interval '1 second'";
    collect_commits(FLOAT8):
        "DELETE FROM zenobe_commit WHERE at < now() - $1 * interval '1 second'";
}
