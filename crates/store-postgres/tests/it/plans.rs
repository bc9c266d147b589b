//! How the server carries statements out. Plans are made when a connection first needs them, which may be while there is no data at all.

use zenobe_store::conformance::block_on;
use zenobe_store::{Batch, Decision, Key, Reader, Store, Value, WriteSet};
use zenobe_store_postgres::{Options, PostgresStore};
use zenobe_testing::{Postgres, wait_until};

use crate::support::{Database, number};

/// A read and a write of every kind, except of ranges.
fn touch(store: &PostgresStore) {
    let (guards, keys) = ([Key::from("guard")], [Key::from("k"), Key::from("gone")]);
    let mut decide = |reads: &[Option<Value>]| {
        let mut batch = Batch::new();
        let next = number(reads[1].as_ref()) + 1;
        batch.put("k", next.to_string());
        match next % 2 {
            0 => batch.delete("gone"),
            _ => batch.put("gone", "1"),
        }
        batch.add("count", 1);
        Decision::Commit(batch)
    };
    let set = WriteSet { guards: &guards, keys: &keys };
    block_on(store.write(set, &mut decide)).expect("the write commits");
    block_on(store.get_many(&keys)).expect("the read succeeds");
}

/// A plan that was made for an empty table does not walk the table once it is large.
#[test]
fn plans_do_not_depend_on_how_much_there_was() {
    const ROWS: u64 = 20_000;
    let database = Database::new(Options::default());
    let store = database.store();
    (0..4).for_each(|_| touch(&store));
    let server = Postgres::shared();
    let name = database.url.rsplit('/').next().unwrap().split('?').next().unwrap();
    // Key by key like everything else, but at once.
    server.execute(
        name,
        &format!(
            "INSERT INTO zenobe_kv (h, d, s, v, rev)
             SELECT decode(lpad(to_hex(i), 8, '0'), 'hex'), '', 0, 'x', i
             FROM generate_series(1, {ROWS}) AS i"
        ),
    );
    let statistics = || -> (u64, u64) {
        let query = "SELECT idx_scan, idx_tup_read FROM pg_stat_user_indexes
                     WHERE indexrelname = 'zenobe_kv_pkey'";
        let line = server.execute(name, query);
        let (scans, entries) = line.trim().split_once('|').expect("two numbers");
        (scans.parse().unwrap(), entries.parse().unwrap())
    };
    // The server tells what it has done only now and then.
    let (scans_before, entries_before) = statistics();
    wait_until(|| {
        (0..20).for_each(|_| touch(&store));
        statistics().0 > scans_before + 100
    });
    let (scans, entries) = statistics();
    let (scans, entries) = (scans - scans_before, entries - entries_before);
    assert!(entries < scans * 20, "{entries} entries in {scans} scans of {ROWS} rows");
}
