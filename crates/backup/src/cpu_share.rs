//! Work that leaves the machine to others.

use std::time::{Duration, Instant};

/// The share of the machine's processors that a backup may use. A backup also evicts what requests keep in the processors' caches, and
/// together this must not slow requests by more than a tenth.
const PART_OF_MACHINE: f64 = 1.0 / 16.0;
/// Rests shorter than this are added up.
const REST_MIN: Duration = Duration::from_millis(5);
const REST_MAX: Duration = Duration::from_secs(2);

/// Sleeps after work, so that the work uses at most a sixteenth of the machine. Time spent waiting for the network does not count.
#[derive(Debug)]
pub struct CpuShare {
    rest_per_work: f64,
    owed: Duration,
}

impl CpuShare {
    /// For work beside requests.
    pub fn gentle() -> CpuShare {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        CpuShare::with_part_of_processor(processors as f64 * PART_OF_MACHINE)
    }

    /// For work that has the machine to itself.
    pub fn full() -> CpuShare {
        CpuShare::with_part_of_processor(1.0)
    }

    fn with_part_of_processor(part: f64) -> CpuShare {
        CpuShare { rest_per_work: 1.0 / part.min(1.0) - 1.0, owed: Duration::ZERO }
    }

    /// Rests for work that began at this time and ends now.
    pub async fn rest_since(&mut self, begin: Instant) {
        self.owed += begin.elapsed().mul_f64(self.rest_per_work);
        if self.owed >= REST_MIN {
            tokio::time::sleep(self.owed.min(REST_MAX)).await;
            self.owed = Duration::ZERO;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fifth_of_a_processor_rests_four_times_as_long_as_it_works() {
        assert!((CpuShare::with_part_of_processor(0.2).rest_per_work - 4.0).abs() < 1e-9);
        assert!(CpuShare::with_part_of_processor(3.2).rest_per_work.abs() < 1e-9);
        assert!(CpuShare::full().rest_per_work.abs() < 1e-9);
    }
}
