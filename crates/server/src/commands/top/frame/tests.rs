use super::*;

fn operation(
    name: &str,
    requests: u64,
    failed: u64,
    elapsed_us: u64,
    buckets: [u64; 3],
) -> OperationSample {
    OperationSample { name: name.into(), requests, failed, elapsed_us, buckets: buckets.into() }
}

fn table(name: &str, requests: u64, units: [f64; 2], throttle_events: u64) -> TableSample {
    let [read_units, write_units] = units;
    let elapsed_us = requests * 400;
    TableSample {
        name: name.into(),
        requests,
        elapsed_us,
        read_units,
        write_units,
        throttle_events,
    }
}

fn key(key: &str, table: &str, accesses: u64, units: [f64; 2], throttle_events: u64) -> HotKey {
    let [read_units, write_units] = units;
    HotKey {
        table: table.into(),
        key: key.into(),
        accesses,
        read_units,
        write_units,
        throttle_events,
    }
}

/// Two seconds of a server.
fn samples() -> (Sample, Sample) {
    let before = Sample {
        version: "0.1.0".into(),
        now_ms: 1_765_432_100_000,
        connections: 3,
        store_size_bytes: 1_234_567,
        is_metering: true,
        bounds_us: vec![100, 1_000, 2_000_000],
        operations: vec![operation("GetItem", 10, 1, 5_000, [5, 5, 0])],
        tables: vec![table("Orders", 10, [5.0, 0.0], 0)],
        keys: Vec::new(),
    };
    let after = Sample {
        now_ms: before.now_ms + 2_000,
        operations: vec![
            operation("GetItem", 2_010, 3, 505_000, [1_005, 1_000, 5]),
            operation("PutItem", 4, 0, 20_000_000, [0, 0, 2]),
        ],
        tables: vec![
            table("Orders", 2_010, [1_005.5, 4.0], 7),
            table("Orders/by-owner", 4, [0.0, 4.0], 0),
        ],
        keys: vec![
            key("owner=alice", "Orders", 1_500, [750.0, 3.0], 7),
            key(
                "owner=a-very-long-name-that-needs-more-than-the-window-has",
                "Orders",
                2,
                [1.0, 0.5],
                0,
            ),
        ],
        ..before.clone()
    };
    (before, after)
}

fn view(sort: Sort) -> View {
    View {
        endpoint: "http://127.0.0.1:8000".into(),
        interval: Duration::from_secs(2),
        sort,
        problem: None,
    }
}

fn trimmed(lines: &[String]) -> Vec<&str> {
    lines.iter().map(|line| line.trim_end()).collect()
}

#[test]
fn a_frame_shows_rates_and_keys() {
    let (before, after) = samples();
    let size = Size { columns: 100, rows: 30 };
    let lines = render(&before, &after, &view(Sort::Units), size);
    let expected = include_str!("frame.txt");
    if std::env::var_os("ZENOBE_BLESS").is_some_and(|value| value == "1") {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/commands/top/frame/frame.txt");
        std::fs::write(path, trimmed(&lines).join("\n") + "\n").unwrap();
        return;
    }
    assert_eq!(trimmed(&lines).join("\n") + "\n", expected);
}

#[test]
fn a_frame_fits_its_window() {
    let (before, mut after) = samples();
    after.keys =
        (0..50).map(|number| key(&format!("k={number}"), "Orders", 1, [1.0, 0.0], 0)).collect();
    for (columns, rows) in [(20, 5), (80, 24), (80, 14), (200, 50), (1, 1)] {
        let lines = render(&before, &after, &view(Sort::Units), Size { columns, rows });
        assert!(lines.len() <= rows, "{} lines in {rows} rows", lines.len());
        assert!(lines.iter().all(|line| line.chars().count() <= columns), "{columns} columns");
    }
    let lines = render(&before, &after, &view(Sort::Units), Size { columns: 80, rows: 40 });
    assert_eq!(lines.len(), 40, "keys fill the window");
}

#[test]
fn lists_are_sorted_as_asked() {
    let (before, mut after) = samples();
    let size = Size { columns: 100, rows: 30 };
    let first = |after: &Sample, sort, heading: &str| {
        let lines = render(&before, after, &view(sort), size);
        let heading = lines.iter().position(|line| line.starts_with(heading)).unwrap();
        lines[heading + 1].split_whitespace().next().unwrap().to_owned()
    };
    assert_eq!(first(&after, Sort::Requests, "OPERATION"), "GetItem");
    assert_eq!(first(&after, Sort::Latency, "OPERATION"), "PutItem");
    assert_eq!(first(&after, Sort::Throttled, "TABLE"), "Orders");
    after.keys.reverse();
    assert_eq!(first(&after, Sort::Throttled, "PARTITION"), "owner=alice");
    assert_eq!(first(&after, Sort::Requests, "PARTITION"), "owner=alice");
}

#[test]
fn a_server_that_is_away_is_mentioned() {
    let (before, after) = samples();
    let problem = Some("cannot connect".to_owned());
    let view = View { problem, ..view(Sort::Units) };
    let lines = render(&before, &after, &view, Size { columns: 100, rows: 30 });
    assert!(lines[0].ends_with("cannot connect"), "{}", lines[0]);
    let off = Sample { is_metering: false, tables: Vec::new(), ..after };
    let lines = render(&before, &off, &view, Size { columns: 100, rows: 30 });
    assert!(lines.iter().any(|line| line.contains("--throughput off")));
}
