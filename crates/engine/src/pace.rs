//! How fast to walk whole tables: at full speed while there are no requests, otherwise slowly
//! enough that requests come first.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;
use zenobe_store::yield_now;

/// While there are requests, a walk rests this many times as long as each step took: requests need
/// the processors, the locks and the disk more. The busier these are, the longer the steps take,
/// and the longer the walk rests.
const REST_FACTOR: u32 = 2;

/// The pace of walks, which is set by whether requests arrive.
#[derive(Default)]
pub(crate) struct RequestPace {
    /// How many steps have started.
    steps: AtomicU64,
    /// The last step that had started when a request arrived.
    requested_in: AtomicU64,
}

impl RequestPace {
    /// Records a request. Between two steps only the first request writes anything.
    pub fn request(&self) {
        let step = self.steps.load(Ordering::Relaxed);
        if self.requested_in.load(Ordering::Relaxed) < step {
            self.requested_in.store(step, Ordering::Relaxed);
        }
    }

    pub fn begin_step(&self) -> PacedStep<'_> {
        let number = self.steps.fetch_add(1, Ordering::Relaxed) + 1;
        PacedStep { pace: self, number, begin: Instant::now() }
    }
}

/// A step of a walk.
pub(crate) struct PacedStep<'a> {
    pace: &'a RequestPace,
    number: u64,
    begin: Instant,
}

impl PacedStep<'_> {
    /// Rests after the step.
    pub async fn rest(self) {
        self.rest_from(1).await;
    }

    /// Rests after a step that several processors have worked on.
    pub async fn rest_from(self, processors: u32) {
        match self.rest_after(self.begin.elapsed() * processors) {
            // A timer would take a millisecond.
            Duration::ZERO => yield_now().await,
            rest => tokio::time::sleep(rest).await,
        }
    }

    fn rest_after(&self, took: Duration) -> Duration {
        match self.pace.requested_in.load(Ordering::Relaxed) >= self.number {
            true => took * REST_FACTOR,
            false => Duration::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{REST_FACTOR, RequestPace};
    use crate::command::TableName;
    use crate::schema::Namespace;
    use crate::{Engine, EngineOptions};
    use std::sync::Arc;
    use std::time::Duration;
    use zenobe_store::memory::MemoryStore;

    #[test]
    fn walks_rest_only_beside_requests() {
        let took = Duration::from_millis(3);
        let pace = RequestPace::default();
        pace.request();
        let [first, other] = [pace.begin_step(), pace.begin_step()];
        assert_eq!(first.rest_after(took), Duration::ZERO, "it came before");
        pace.request();
        for step in [first, other] {
            assert_eq!(step.rest_after(took), took * REST_FACTOR);
        }
        assert_eq!(pace.begin_step().rest_after(took), Duration::ZERO);
    }

    #[tokio::test]
    async fn every_request_for_a_table_counts() {
        let options = EngineOptions::default();
        let engine = Engine::open(Arc::new(MemoryStore::new()), options).await.unwrap();
        let step = engine.background.pace.begin_step();
        let (account, region) = ("000000000000".into(), "us-east-1".into());
        let namespace = Arc::new(Namespace { account, region });
        let name = TableName { namespace, name: "there-is-none".to_owned() };
        assert!(engine.table(&name).await.is_err());
        assert_ne!(step.rest_after(Duration::from_millis(3)), Duration::ZERO);
    }
}
