use zenobe_engine::EngineOptions;
use zenobe_engine::clock::{Clock, ManualClock};
use zenobe_engine::lease::Lease;
use zenobe_store::Store;
use zenobe_store::memory::MemoryStore;

use super::*;

const NOW_MS: u64 = 1_794_971_040_000;

struct Node {
    storage: Storage,
    clock: Arc<ManualClock>,
    store: Arc<dyn Store>,
}

async fn node(store: Arc<dyn Store>) -> Node {
    let clock = Arc::new(ManualClock::new(NOW_MS));
    let options =
        EngineOptions { clock: clock.clone() as Arc<dyn Clock>, ..EngineOptions::default() };
    let engine = Engine::open(Arc::clone(&store), options).await.unwrap();
    Node { storage: Storage::new(engine, 15), clock, store }
}

fn namespace() -> Arc<Namespace> {
    Arc::new(Namespace { account: "1".into(), region: "r".into() })
}

fn point(name: &str, at_ms: u64, value: f64) -> Point {
    let metric = Metric::with("Test", name, Vec::new()).unwrap();
    Point { metric, unit: Unit::COUNT, at_ms, statistics: StatisticSet::uniform(value, 1.0) }
}

async fn sums(
    storage: &Storage,
    name: &str,
    from_ms: u64,
    to_ms: u64,
    period_ms: u64,
) -> Vec<(u64, f64)> {
    let metric = Metric::with("Test", name, Vec::new()).unwrap();
    let range = Range { metric: &metric, unit: None, from_ms, to_ms };
    let points = storage.read(&namespace(), range, period_ms).await.unwrap();
    points.into_iter().map(|((at_ms, _), it)| (at_ms, it.sum)).collect()
}

#[tokio::test]
async fn points_of_all_nodes_and_restarts_add_up() {
    let first = node(Arc::new(MemoryStore::default())).await;
    let second = node(Arc::clone(&first.store)).await;
    for value in [1.0, 2.0] {
        first.storage.add(&namespace(), &[point("a", NOW_MS, value)]).await.unwrap().unwrap();
    }
    let more = [
        point("a", NOW_MS + 5_000, 10.0),
        point("a", NOW_MS - MINUTE_MS, 7.0),
        point("b", NOW_MS, 9.0),
    ];
    second.storage.add(&namespace(), &more).await.unwrap().unwrap();
    let third = node(Arc::clone(&first.store)).await;
    third.storage.add(&namespace(), &[point("a", NOW_MS, 100.0)]).await.unwrap().unwrap();
    let hour = (NOW_MS - HOUR_MS, NOW_MS + MINUTE_MS);
    for storage in [&first.storage, &second.storage, &third.storage] {
        let found = sums(storage, "a", hour.0, hour.1, MINUTE_MS).await;
        assert_eq!(found, [(NOW_MS - MINUTE_MS, 7.0), (NOW_MS, 113.0)]);
        // Periods count from the beginning of what is read.
        let from_ms = NOW_MS - 3 * MINUTE_MS;
        assert_eq!(
            sums(storage, "a", from_ms, hour.1, 2 * MINUTE_MS).await,
            [(NOW_MS - MINUTE_MS, 120.0)]
        );
    }
    assert_eq!(
        sums(&first.storage, "a", hour.0, NOW_MS, MINUTE_MS).await,
        [(NOW_MS - MINUTE_MS, 7.0)]
    );
    assert_eq!(sums(&first.storage, "c", hour.0, hour.1, MINUTE_MS).await, []);
}

#[tokio::test]
async fn days_are_read_across_their_border() {
    let node = node(Arc::new(MemoryStore::default())).await;
    let points: Vec<Point> = (0..60).map(|hour| point("a", NOW_MS - hour * HOUR_MS, 1.0)).collect();
    node.storage.add(&namespace(), &points).await.unwrap().unwrap();
    let found = sums(&node.storage, "a", NOW_MS - 50 * HOUR_MS, NOW_MS, 10 * HOUR_MS).await;
    assert_eq!(found.len(), 5);
    assert!(found.iter().all(|(_, sum)| *sum == 10.0), "{found:?}");
}

#[tokio::test]
async fn what_is_too_old_is_trimmed_with_its_series() {
    let node = node(Arc::new(MemoryStore::default())).await;
    let old: Vec<Point> =
        (0..700).map(|minute| point("old", NOW_MS + minute * 20 * MINUTE_MS, 1.0)).collect();
    node.storage.add(&namespace(), &old).await.unwrap().unwrap();
    node.clock.advance_ms(20 * DAY_MS);
    let now_ms = node.clock.now_ms();
    node.storage.add(&namespace(), &[point("new", now_ms, 1.0)]).await.unwrap().unwrap();
    // What is too old is not read, even before it is trimmed.
    let before = sums(&node.storage, "old", NOW_MS, now_ms, MINUTE_MS).await.len();
    while node.storage.trim(&namespace(), &Lease::default()).await.unwrap() {}
    assert_eq!(sums(&node.storage, "old", NOW_MS, now_ms, MINUTE_MS).await.len(), before);
    let all = node.storage.rows(&namespace(), vec![0]..vec![2]).await.unwrap();
    let first = all.iter().filter_map(|row| HourKey::parse(&row.key)).map(|key| key.hour).min();
    assert!(first.unwrap() >= node.storage.first_ms() / HOUR_MS);
    node.clock.advance_ms(10 * DAY_MS);
    while node.storage.trim(&namespace(), &Lease::default()).await.unwrap() {}
    let (series, _) =
        node.storage.list(&namespace(), SeriesFilter::default(), 10, |_| true).await.unwrap();
    let names: Vec<_> = series.iter().map(|series| series.metric.name.as_str()).collect();
    assert_eq!(names, ["new"]);
}

#[tokio::test]
async fn a_node_that_does_not_trim_forgets_old_series_too() {
    let node = node(Arc::new(MemoryStore::default())).await;
    let old: Vec<Point> =
        (0..SERIES_MAX).map(|it| point(&format!("old{it}"), NOW_MS, 1.0)).collect();
    node.storage.add(&namespace(), &old).await.unwrap().unwrap();
    let new = point("new", NOW_MS, 1.0);
    assert_eq!(node.storage.add(&namespace(), &[new]).await.unwrap(), Err(TooManySeries));
    node.clock.advance_ms(17 * DAY_MS);
    let new = point("new", node.clock.now_ms(), 1.0);
    assert_eq!(node.storage.add(&namespace(), &[new]).await.unwrap(), Ok(()));
}

#[tokio::test]
async fn series_are_bounded_and_listed_in_pages() {
    let node = node(Arc::new(MemoryStore::default())).await;
    let points: Vec<Point> =
        (0..SERIES_MAX + 2).map(|it| point(&format!("m{it}"), NOW_MS, 1.0)).collect();
    assert_eq!(node.storage.add(&namespace(), &points).await.unwrap(), Err(TooManySeries));
    assert_eq!(node.storage.dropped_points(), 2);
    assert_eq!(node.storage.add(&namespace(), &points[..5]).await.unwrap(), Ok(()));
    let (mut found, mut after) = (0, None);
    loop {
        let filter = SeriesFilter { namespace: Some("Test"), name: None, after };
        let (page, next) = node.storage.list(&namespace(), filter, 3_000, |_| true).await.unwrap();
        found += page.len();
        after = next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(found, SERIES_MAX);
    let filter = SeriesFilter { namespace: Some("Test"), name: Some("m7"), after: None };
    let (page, _) = node.storage.list(&namespace(), filter, 10, |_| true).await.unwrap();
    assert_eq!(page.len(), 1);
}
