//! Hands the traffic of each minute to the sinks that store it.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{Mutex, watch};
use tokio::task::JoinHandle;
use zenobe_engine::Engine;

use crate::totals::Totals;
use crate::traffic::{Traffic, TrafficSink};

pub const MINUTE_MS: u64 = 60_000;

/// How often to check a driven clock.
const DRIVEN_POLL: Duration = Duration::from_secs(1);

/// Stores the traffic at every full minute of the engine's clock, and once more when it stops.
pub struct MinuteWorker {
    engine: Arc<Engine>,
    traffic: Arc<Traffic>,
    /// Sums what is taken from the traffic.
    totals: Arc<Totals>,
    sinks: Vec<Arc<dyn TrafficSink>>,
    /// The minute to which the counted traffic belongs. Locked while it is stored.
    minute: Mutex<u64>,
    stop: watch::Sender<bool>,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl MinuteWorker {
    /// Runs on `runtime` until [`MinuteWorker::stop`].
    pub fn start(
        engine: Arc<Engine>,
        traffic: Arc<Traffic>,
        totals: Arc<Totals>,
        sinks: Vec<Arc<dyn TrafficSink>>,
        runtime: &Handle,
    ) -> Arc<MinuteWorker> {
        let worker = MinuteWorker::new(engine, traffic, totals, sinks);
        let running = Arc::clone(&worker);
        let task = runtime.spawn(async move { running.run().await });
        *worker.task.try_lock().expect("nobody else knows it yet") = Some(task);
        worker
    }

    fn new(
        engine: Arc<Engine>,
        traffic: Arc<Traffic>,
        totals: Arc<Totals>,
        sinks: Vec<Arc<dyn TrafficSink>>,
    ) -> Arc<MinuteWorker> {
        traffic.set_metering(engine.is_metering());
        let minute = Mutex::new(engine.clock().now_ms() / MINUTE_MS);
        let (stop, task) = (watch::Sender::new(false), Mutex::new(None));
        Arc::new(MinuteWorker { engine, traffic, totals, sinks, minute, stop, task })
    }

    async fn run(&self) {
        let mut stopping = self.stop.subscribe();
        loop {
            tokio::select! {
                () = tokio::time::sleep(self.until_next_minute()) => self.tick().await,
                () = stopped(&mut stopping) => return,
            }
        }
    }

    fn until_next_minute(&self) -> Duration {
        let clock = self.engine.clock();
        match clock.is_driven() {
            true => DRIVEN_POLL,
            false => Duration::from_millis(MINUTE_MS - clock.now_ms() % MINUTE_MS),
        }
    }

    /// Stores the minute that has passed, if one has.
    async fn tick(&self) {
        let mut minute = self.minute.lock().await;
        if self.engine.clock().now_ms() / MINUTE_MS != *minute {
            self.store(&mut minute).await;
        }
    }

    /// Stores what has been counted so far. Call it before a driven clock moves, and before a read of the
    /// stored traffic that should include the present.
    pub async fn flush(&self) {
        let mut minute = self.minute.lock().await;
        self.store(&mut minute).await;
    }

    async fn store(&self, minute: &mut u64) {
        let taken = self.totals.take(&self.engine, &self.traffic, *minute * MINUTE_MS);
        for sink in &self.sinks {
            sink.store_minute(&taken).await;
        }
        *minute = self.engine.clock().now_ms() / MINUTE_MS;
        self.traffic.set_metering(self.engine.is_metering());
    }

    /// Stores the rest. Nothing is stored afterwards.
    pub async fn stop(&self) {
        self.stop.send_replace(true);
        if let Some(task) = self.task.lock().await.take() {
            // The task is never cancelled, and a sink that panicked has been reported.
            let _ = task.await;
            self.flush().await;
        }
    }
}

async fn stopped(stopping: &mut watch::Receiver<bool>) {
    // The sender lives as long as the worker.
    let _ = stopping.wait_for(|is_stopping| *is_stopping).await;
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use futures_util::future::BoxFuture;
    use zenobe_api::Operation;
    use zenobe_api::observer::{ObservedRequest, RequestObserver};
    use zenobe_engine::clock::ManualClock;
    use zenobe_engine::request_facts::RequestFacts;
    use zenobe_engine::schema::Namespace;
    use zenobe_engine::{EngineOptions, clock::Clock};
    use zenobe_store::memory::MemoryStore;

    use super::*;
    use crate::traffic::TrafficMinute;

    #[derive(Default)]
    struct Kept(parking_lot::Mutex<Vec<(u64, u64)>>);

    impl TrafficSink for Kept {
        fn store_minute<'a>(&'a self, minute: &'a TrafficMinute) -> BoxFuture<'a, ()> {
            let requests = minute.rows.iter().map(|row| row.counts.requests).sum();
            self.0.lock().push((minute.start_ms, requests));
            std::future::ready(()).boxed()
        }
    }

    fn request(traffic: &Traffic) {
        traffic.observe(ObservedRequest {
            request_id: "1",
            operation: Operation::ListTables,
            namespace: Some(&Arc::new(Namespace { account: "1".into(), region: "r".into() })),
            error: None,
            status: 200,
            elapsed: Duration::ZERO,
            facts: &RequestFacts::default(),
            headers: &(),
        });
    }

    #[tokio::test(start_paused = true)]
    async fn every_minute_is_stored_and_what_is_left_when_it_stops() {
        let clock = Arc::new(ManualClock::new(10 * MINUTE_MS + 59_000));
        let options =
            EngineOptions { clock: clock.clone() as Arc<dyn Clock>, ..EngineOptions::default() };
        let engine = Engine::open(Arc::new(MemoryStore::default()), options).await.unwrap();
        let (traffic, kept) = (Arc::new(Traffic::default()), Arc::new(Kept::default()));
        let sinks: Vec<Arc<dyn TrafficSink>> = vec![kept.clone()];
        let totals = Arc::new(Totals::default());
        let runtime = Handle::current();
        let worker = MinuteWorker::start(engine, traffic.clone(), totals, sinks, &runtime);
        request(&traffic);
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(*kept.0.lock(), []);
        clock.advance_ms(1_500);
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(*kept.0.lock(), [(10 * MINUTE_MS, 1)]);
        request(&traffic);
        request(&traffic);
        worker.flush().await;
        request(&traffic);
        worker.stop().await;
        clock.advance_ms(10 * MINUTE_MS);
        tokio::time::sleep(Duration::from_secs(5)).await;
        let minute = 11 * MINUTE_MS;
        assert_eq!(*kept.0.lock(), [(10 * MINUTE_MS, 1), (minute, 2), (minute, 1)]);
    }
}
