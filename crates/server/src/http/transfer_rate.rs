//! How fast a peer must send a body or read a response.
//!
//! A peer that moves nothing for a stall timeout is cut off. So is one that trickles: it gets one
//! stall timeout plus the time that its bytes take at the lowest rate. While others wait
//! for memory, peers that hold some must be faster, so that a few slow ones cannot keep everybody
//! else waiting.

use std::time::Duration;

use tokio::time::Instant;

/// The lowest rate that a peer may have.
const RATE_BYTES_PER_SECOND_MIN: u64 = 1024;
/// The lowest rate for peers that hold memory that others wait for.
const CONTENDED_RATE_BYTES_PER_SECOND_MIN: u64 = 64 * 1024;
/// How long a peer may keep its memory once others start waiting for it.
const CONTENDED_GRACE: Duration = Duration::from_secs(1);
/// How often a peer that holds memory checks whether others wait for it.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);
/// Nothing takes longer than this many stall timeouts.
const STALL_TIMEOUTS_MAX: u32 = 10;

/// The progress of one body or response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransferProgress {
    stall_timeout: Duration,
    began: Instant,
    moved_at: Instant,
    moved_bytes: u64,
    /// When others were first seen waiting, and how much had moved by then.
    contended: Option<(Instant, u64)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransferVerdict {
    GoOn,
    TooSlow,
    /// It would be fast enough if nobody were waiting for its memory.
    Displaced,
}

impl TransferProgress {
    pub fn new(stall_timeout: Duration, now: Instant) -> TransferProgress {
        TransferProgress {
            stall_timeout,
            began: now,
            moved_at: now,
            moved_bytes: 0,
            contended: None,
        }
    }

    pub fn moved(&mut self, bytes: usize, now: Instant) {
        self.moved_at = now;
        self.moved_bytes += bytes as u64;
    }

    /// Excludes a time during which the peer could do nothing, because the server itself was
    /// waiting.
    pub fn excuse(&mut self, waited: Duration) {
        self.began += waited;
        self.moved_at += waited;
        if let Some((since, _)) = &mut self.contended {
            *since += waited;
        }
    }

    /// `is_contended` means that others wait for memory while this peer holds some.
    pub fn judge(&mut self, now: Instant, is_contended: bool) -> TransferVerdict {
        if now >= self.deadline() {
            return TransferVerdict::TooSlow;
        }
        if !is_contended {
            self.contended = None;
            return TransferVerdict::GoOn;
        }
        let (since, moved_before) = *self.contended.get_or_insert((now, self.moved_bytes));
        let moved_bytes = self.moved_bytes - moved_before;
        let time = CONTENDED_GRACE + at_rate(moved_bytes, CONTENDED_RATE_BYTES_PER_SECOND_MIN);
        if now >= since + time { TransferVerdict::Displaced } else { TransferVerdict::GoOn }
    }

    /// When to check again if nothing moves until then.
    pub fn next_look(&self, now: Instant, holds_memory: bool) -> Instant {
        match holds_memory {
            true => self.deadline().min(now + LOOK_INTERVAL),
            false => self.deadline(),
        }
    }

    fn deadline(&self) -> Instant {
        let stalled = self.moved_at + self.stall_timeout;
        let trickled = self.stall_timeout + at_rate(self.moved_bytes, RATE_BYTES_PER_SECOND_MIN);
        let whole = trickled.min(self.stall_timeout * STALL_TIMEOUTS_MAX);
        stalled.min(self.began + whole)
    }
}

/// How long this many bytes take.
fn at_rate(bytes: u64, bytes_per_second: u64) -> Duration {
    Duration::from_millis(bytes.saturating_mul(1_000) / bytes_per_second)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STALL_TIMEOUT: Duration = Duration::from_secs(30);

    /// Moves this many bytes every second, and returns when and why that ends.
    fn run(bytes_per_second: usize, is_contended: impl Fn(u64) -> bool) -> (u64, TransferVerdict) {
        let began = Instant::now();
        let mut pace = TransferProgress::new(STALL_TIMEOUT, began);
        for second in 1.. {
            let now = began + Duration::from_secs(second);
            match pace.judge(now, is_contended(second)) {
                TransferVerdict::GoOn => {}
                verdict => return (second, verdict),
            }
            if bytes_per_second > 0 {
                pace.moved(bytes_per_second, now);
                // The server had memory for each chunk, and did not have to wait.
                pace.excuse(Duration::ZERO);
            }
        }
        unreachable!("nothing takes forever")
    }

    #[test]
    fn silence_and_trickles_end_after_a_stall_timeout() {
        assert_eq!(run(0, |_| false), (30, TransferVerdict::TooSlow));
        assert_eq!(run(1, |_| false), (31, TransferVerdict::TooSlow));
        assert_eq!(run(512, |_| false), (59, TransferVerdict::TooSlow));
        // Fast enough, but not forever.
        assert_eq!(run(2_048, |_| false), (300, TransferVerdict::TooSlow));
    }

    #[test]
    fn a_peer_that_stops_gets_one_stall_timeout_however_much_has_moved() {
        let began = Instant::now();
        let mut pace = TransferProgress::new(STALL_TIMEOUT, began);
        pace.moved(1 << 30, began);
        assert_eq!(pace.next_look(began, false), began + STALL_TIMEOUT);
        assert_eq!(pace.judge(began + STALL_TIMEOUT, false), TransferVerdict::TooSlow);
    }

    #[test]
    fn the_servers_own_waits_count_against_nobody() {
        let began = Instant::now();
        let mut pace = TransferProgress::new(STALL_TIMEOUT, began);
        let waited = Duration::from_secs(29);
        for wait in 1..=20 {
            let now = began + waited * wait;
            pace.excuse(waited);
            assert_eq!(pace.judge(now, true), TransferVerdict::GoOn, "after wait {wait}");
            pace.moved(1, now);
        }
        let resumed = began + waited * 20;
        assert_eq!(pace.judge(resumed + STALL_TIMEOUT, false), TransferVerdict::TooSlow);
    }

    #[test]
    fn slow_peers_yield_when_others_wait() {
        // Counted from the first check that finds somebody waiting.
        assert_eq!(run(2_048, |second| second >= 10), (12, TransferVerdict::Displaced));
        assert_eq!(run(100_000, |second| second >= 10), (300, TransferVerdict::TooSlow));
        // The waiting peer got its memory in the meantime.
        assert_eq!(run(2_048, |second| second % 2 == 0), (300, TransferVerdict::TooSlow));
        let now = Instant::now();
        let pace = TransferProgress::new(STALL_TIMEOUT, now);
        assert_eq!(pace.next_look(now, true), now + LOOK_INTERVAL);
    }
}
