//! Sheds load that a worker can't serve in time.
//!
//! A *turn* is one pass of a worker over its connections. It serves the requests that have arrived when
//! it begins, one after the other; later ones wait for the next turn. So no request waits longer than
//! two turns take. While a worker has no idle time, a task on it times its turns. If a turn has taken
//! too long and a crowd is waiting, the rest of its requests get a throttling error, after which SDKs
//! back off and retry. Without a crowd every request is served, however long it takes: a few clients
//! with expensive requests do not overload a worker.
//!
//! Two thirds of the cost of a small request are the kernel's, and an error costs the kernel as much
//! as any other answer. So the error is delayed: the more connections wait for one, the longer. A
//! connection is quiet meanwhile, so refusals take only a bounded share of the worker's time, and
//! turns stay short.
//!
//! This is controlled delay, as in CoDel: a queue that empties now and then is left alone, however
//! long it gets; only a standing queue is bounded.
//!
//! A worker that is idle between requests, as nearly all are, pays for one counter per request and
//! one per idle time.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// When to shed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shedding {
    /// How long a turn may take before its requests are refused.
    pub turn_max: Duration,
    /// The minimum number of requests a turn serves, even if something else used up the worker's time.
    pub served_min: u32,
    /// How many clients must be waiting before any is refused: those served in the turn, and those
    /// whose refusal is delayed.
    pub crowd_min: u32,
    /// How many requests a worker serves without being idle before it looks at the clock.
    pub untimed_requests: u32,
    /// How long a worker may go without being idle before its turns are timed: bursts are served.
    pub standing_min: Duration,
    /// The shortest average delay of errors.
    pub hold_min: Duration,
    /// How much each waiting client adds to the average delay, once that makes more than `hold_min`.
    pub hold_per_client: Duration,
}

/// How long turns are timed after the last request was shed.
const ALERT: Duration = Duration::from_secs(1);
/// How long to wait after a turn that was short enough before turns are timed again.
const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// The shortest time between two log lines about shedding.
const WARNING_DISTANCE: Duration = Duration::from_secs(60);

impl Default for Shedding {
    fn default() -> Shedding {
        Shedding {
            turn_max: Duration::from_micros(250),
            // The runtime polls for new requests after every 61 tasks, so a turn may have about half as many
            // requests again as the worker has connections. 200 connections on one worker do not overload it.
            crowd_min: 320,
            served_min: 8,
            untimed_requests: 256,
            standing_min: Duration::from_millis(100),
            hold_min: Duration::from_millis(100),
            // A refusal takes about 10 µs, so all of them take a fifth of the worker's time.
            hold_per_client: Duration::from_micros(50),
        }
    }
}

/// A request that is shed. It belongs to the crowd until this is dropped.
#[derive(Debug)]
pub struct Shed {
    hold: Duration,
    _held: Held,
}

impl Shed {
    /// Waits until the error may be sent.
    pub async fn wait(self) {
        tokio::time::sleep(self.hold).await;
    }
}

/// Counts a request whose refusal is delayed, on the thread that serves its connection.
#[derive(Debug)]
struct Held;

impl Held {
    fn new(turns: &Turns) -> Held {
        turns.held.set(turns.held.get() + 1);
        Held
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // The thread-local is gone if the thread is ending.
        let _ = WORKER.try_with(|turns| turns.held.set(turns.held.get().saturating_sub(1)));
    }
}

thread_local! {
    static WORKER: Turns = const { Turns::new() };
}

/// Notes that this thread is idle. The runtime calls this before it parks the thread.
pub fn note_rest() {
    WORKER.with(Turns::rest);
}

impl Shedding {
    /// Sheds what would wait longer than this. A request waits for two turns at most, and the refusals in
    /// them, the kernel and the client take as long again.
    pub fn after(wait_max: Duration) -> Shedding {
        Shedding { turn_max: wait_max / 4, ..Shedding::default() }
    }

    /// Admits a request on this thread, or sheds it.
    pub fn admit(&self) -> Result<(), Shed> {
        WORKER.with(|turns| {
            if turns.is_untimed(self) {
                return Ok(());
            }
            let verdict = turns.judge(self, Instant::now());
            if verdict == Verdict::AdmitAndTime {
                tokio::spawn(time_turns(*self));
            }
            match verdict {
                Verdict::Admit | Verdict::AdmitAndTime => Ok(()),
                Verdict::Shed => Err(Shed { hold: turns.next_hold(self), _held: Held::new(turns) }),
            }
        })
    }
}

/// Times the turns of this thread while it is overloaded. A task that yields runs again after all
/// tasks that were ready when it yielded: that is one turn.
async fn time_turns(shedding: Shedding) {
    let _timing = TimingGuard;
    WORKER.with(|turns| turns.begin(Instant::now()));
    loop {
        tokio::task::yield_now().await;
        if !WORKER.with(|turns| turns.end(&shedding, Instant::now())) {
            return;
        }
    }
}

/// Ends the timing, even if the task is dropped.
struct TimingGuard;

impl Drop for TimingGuard {
    fn drop(&mut self) {
        // The thread-local is gone if the thread is ending.
        let _ = WORKER.try_with(Turns::end_timing);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Admit,
    /// Admit, and begin to time the turns.
    AdmitAndTime,
    Shed,
}

/// What a worker knows about its turns.
#[derive(Debug)]
struct Turns {
    /// Requests since the worker was last idle.
    without_rest: Cell<u32>,
    /// Since when the worker has not been idle, as far as it has looked at the clock.
    standing_since: Cell<Option<Instant>>,
    /// Whether turns are being timed.
    is_timed: Cell<bool>,
    /// When the current turn began, if it is timed.
    turn_since: Cell<Option<Instant>>,
    requests_in_turn: Cell<u32>,
    served_in_turn: Cell<u32>,
    /// Refused requests whose error is still delayed.
    held: Cell<u32>,
    look_again_at: Cell<Option<Instant>>,
    last_shed_at: Cell<Option<Instant>>,
    warned_at: Cell<Option<Instant>>,
    shed: Cell<u64>,
}

impl Turns {
    const fn new() -> Turns {
        Turns {
            without_rest: Cell::new(0),
            standing_since: Cell::new(None),
            is_timed: Cell::new(false),
            turn_since: Cell::new(None),
            requests_in_turn: Cell::new(0),
            served_in_turn: Cell::new(0),
            held: Cell::new(0),
            look_again_at: Cell::new(None),
            last_shed_at: Cell::new(None),
            warned_at: Cell::new(None),
            shed: Cell::new(0),
        }
    }

    fn rest(&self) {
        self.without_rest.set(0);
    }

    /// Whether the worker was idle so recently that no turn needs to be timed.
    fn is_untimed(&self, shedding: &Shedding) -> bool {
        let requests = self.without_rest.get();
        if requests < shedding.untimed_requests && self.last_shed_at.get().is_none() {
            if requests == 0 {
                self.standing_since.set(None);
            }
            self.without_rest.set(requests + 1);
            return true;
        }
        false
    }

    fn judge(&self, shedding: &Shedding, now: Instant) -> Verdict {
        if self.last_shed_at.get().is_some_and(|at| now.duration_since(at) > ALERT) {
            self.last_shed_at.set(None);
        }
        if let Some(since) = self.turn_since.get() {
            let is_long = now.duration_since(since) >= shedding.turn_max;
            let served = self.served_in_turn.get();
            let is_crowd = self.crowd() >= shedding.crowd_min;
            self.requests_in_turn.set(self.requests_in_turn.get().saturating_add(1));
            if is_long && is_crowd && served >= shedding.served_min {
                self.note_shed(now);
                return Verdict::Shed;
            }
            self.served_in_turn.set(served.saturating_add(1));
            return Verdict::Admit;
        }
        let standing_since = self.standing_since.get().unwrap_or(now);
        self.standing_since.set(Some(standing_since));
        let is_alert = self.last_shed_at.get().is_some();
        let is_standing = now.duration_since(standing_since) >= shedding.standing_min;
        let is_due = self.look_again_at.get().is_none_or(|at| now >= at);
        if !self.is_timed.get() && (is_alert || (is_standing && is_due)) {
            self.is_timed.set(true);
            return Verdict::AdmitAndTime;
        }
        Verdict::Admit
    }

    fn begin(&self, now: Instant) {
        self.turn_since.set(Some(now));
        self.requests_in_turn.set(0);
        self.served_in_turn.set(0);
    }

    /// Ends a turn. Returns whether the next one is to be timed too.
    fn end(&self, shedding: &Shedding, now: Instant) -> bool {
        let Some(since) = self.turn_since.get() else { return false };
        // A turn without requests means that nobody waits. Timing further turns would keep the worker
        // from going idle.
        let is_empty = self.requests_in_turn.get() == 0;
        let is_alert = self.last_shed_at.get().is_some();
        let is_long = now.duration_since(since) >= shedding.turn_max;
        if !is_empty && (is_alert || is_long) {
            self.begin(now);
            return true;
        }
        self.look_again_at.set(Some(now + LOOK_AGAIN));
        self.end_timing();
        false
    }

    fn end_timing(&self) {
        self.turn_since.set(None);
        self.is_timed.set(false);
    }

    fn note_shed(&self, now: Instant) {
        self.last_shed_at.set(Some(now));
        self.shed.set(self.shed.get() + 1);
        if self.warned_at.get().is_none_or(|at| now.duration_since(at) > WARNING_DISTANCE) {
            self.warned_at.set(Some(now));
            tracing::warn!(
                "more requests arrive than this server can serve; some are answered with \
                 ThrottlingException"
            );
        }
    }

    fn crowd(&self) -> u32 {
        self.served_in_turn.get().saturating_add(self.held.get())
    }

    /// Spread evenly from half to one and a half times the average, so that those who were shed
    /// together don't come back together.
    fn next_hold(&self, shedding: &Shedding) -> Duration {
        let average = shedding.hold_min.max(shedding.hold_per_client * self.crowd());
        // Multiples of the golden ratio, modulo one, leave no gaps and form no clusters.
        const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
        let fraction = (self.shed.get().wrapping_mul(GOLDEN) >> 54) as u32;
        average / 2 + average * fraction / 1024
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLISECOND: Duration = Duration::from_millis(1);

    fn shedding() -> Shedding {
        Shedding { crowd_min: 3, served_min: 0, untimed_requests: 2, ..Shedding::default() }
    }

    fn timed(shedding: &Shedding, now: Instant) -> Turns {
        let turns = Turns::new();
        while turns.is_untimed(shedding) {}
        assert_eq!(turns.judge(shedding, now), Verdict::Admit);
        let later = now + shedding.standing_min;
        assert_eq!(turns.judge(shedding, later), Verdict::AdmitAndTime);
        assert_eq!(turns.judge(shedding, later), Verdict::Admit, "one task times them");
        turns
    }

    #[test]
    fn a_worker_that_rests_is_not_timed() {
        let (turns, shedding) = (Turns::new(), shedding());
        for _ in 0..10 {
            assert!(turns.is_untimed(&shedding));
            assert!(turns.is_untimed(&shedding));
            turns.rest();
        }
        assert!(turns.is_untimed(&shedding) && turns.is_untimed(&shedding));
        assert!(!turns.is_untimed(&shedding));
    }

    #[test]
    fn a_burst_is_served() {
        let (turns, shedding, now) = (Turns::new(), shedding(), Instant::now());
        while turns.is_untimed(&shedding) {}
        for milliseconds in 0..100 {
            assert_eq!(turns.judge(&shedding, now + milliseconds * MILLISECOND), Verdict::Admit);
        }
        // After a rest, the time without one begins again.
        turns.rest();
        while turns.is_untimed(&shedding) {}
        assert_eq!(turns.judge(&shedding, now + 150 * MILLISECOND), Verdict::Admit);
        assert_eq!(turns.judge(&shedding, now + 249 * MILLISECOND), Verdict::Admit);
        assert_eq!(turns.judge(&shedding, now + 250 * MILLISECOND), Verdict::AdmitAndTime);
    }

    #[test]
    fn a_few_are_served_whatever_they_take_and_a_crowd_while_the_turn_is_short() {
        let (shedding, mut now) = (shedding(), Instant::now());
        let turns = timed(&shedding, now);
        now += MILLISECOND;
        turns.begin(now);
        for _ in 0..10 {
            assert_eq!(turns.judge(&shedding, now), Verdict::Admit, "the turn is short");
        }
        now += 2 * MILLISECOND;
        assert_eq!(turns.judge(&shedding, now), Verdict::Shed);
        assert!(turns.end(&shedding, now));
        for _ in 0..3 {
            now += 10 * MILLISECOND;
            assert_eq!(turns.judge(&shedding, now), Verdict::Admit, "three are not a crowd");
        }
        assert_eq!(turns.judge(&shedding, now), Verdict::Shed);
        assert_eq!(turns.shed.get(), 2);
    }

    #[test]
    fn requests_whose_refusal_is_delayed_belong_to_the_crowd() {
        let (shedding, mut now) = (shedding(), Instant::now());
        let turns = timed(&shedding, now);
        WORKER.with(|worker| assert_eq!(worker.held.get(), 0));
        turns.begin(now);
        turns.held.set(2);
        now += 2 * MILLISECOND;
        assert_eq!(turns.judge(&shedding, now), Verdict::Admit, "the third client");
        assert_eq!(turns.judge(&shedding, now), Verdict::Shed);
        assert!(turns.end(&shedding, now));
        turns.held.set(3);
        assert_eq!(turns.judge(&shedding, now), Verdict::Admit, "the turn is short");
        now += 2 * MILLISECOND;
        assert_eq!(turns.judge(&shedding, now), Verdict::Shed);
        turns.held.set(0);
        assert_eq!(turns.judge(&shedding, now), Verdict::Admit, "the crowd has gone");
    }

    #[test]
    fn every_turn_serves_some_whatever_else_takes_its_time() {
        let (shedding, mut now) = (Shedding { served_min: 2, ..shedding() }, Instant::now());
        let turns = timed(&shedding, now);
        turns.held.set(1_000);
        turns.begin(now);
        now += 10 * MILLISECOND;
        for _ in 0..2 {
            assert_eq!(turns.judge(&shedding, now), Verdict::Admit);
        }
        assert_eq!(turns.judge(&shedding, now), Verdict::Shed);
    }

    #[test]
    fn a_refusal_is_held_until_it_was_sent_or_its_client_left() {
        let held = || WORKER.with(|turns| turns.held.get());
        let shed = || WORKER.with(|turns| Shed { hold: MILLISECOND, _held: Held::new(turns) });
        let (sent, dropped) = (shed(), shed());
        assert_eq!(held(), 2);
        drop(dropped);
        assert_eq!(held(), 1);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(sent.wait());
        assert_eq!(held(), 0);
    }

    #[test]
    fn turns_are_timed_until_nobody_is_shed_or_waits() {
        let (shedding, mut now) = (shedding(), Instant::now());
        let turns = timed(&shedding, now);
        turns.begin(now);
        assert_eq!(turns.judge(&shedding, now), Verdict::Admit);
        assert!(!turns.end(&shedding, now), "a short turn sheds nobody");
        assert_eq!(turns.judge(&shedding, now + 9 * MILLISECOND), Verdict::Admit, "not so soon");
        now += shedding.standing_min;
        assert_eq!(turns.judge(&shedding, now), Verdict::AdmitAndTime);
        turns.begin(now);
        now += 10 * MILLISECOND;
        (0..3).for_each(|_| assert_eq!(turns.judge(&shedding, now), Verdict::Admit));
        assert_eq!(turns.judge(&shedding, now), Verdict::Shed);
        assert!(turns.end(&shedding, now));
        assert!(!turns.end(&shedding, now), "an empty turn");
        // Soon after, the worker is timed even if it has rested.
        turns.rest();
        assert!(!turns.is_untimed(&shedding));
        assert_eq!(turns.judge(&shedding, now), Verdict::AdmitAndTime);
        turns.begin(now);
        assert_eq!(turns.judge(&shedding, now), Verdict::Admit);
        assert!(turns.end(&shedding, now), "short, but somebody was shed a moment ago");
        now += ALERT + MILLISECOND;
        turns.begin(now);
        assert_eq!(turns.judge(&shedding, now), Verdict::Admit);
        assert!(!turns.end(&shedding, now));
        turns.rest();
        assert!(turns.is_untimed(&shedding));
    }

    #[test]
    fn errors_are_held_back_for_different_times() {
        let (turns, shedding) = (Turns::new(), Shedding::default());
        let holds: Vec<Duration> = (0..100)
            .map(|number| {
                turns.shed.set(number);
                turns.next_hold(&shedding)
            })
            .collect();
        assert!(holds.iter().all(|hold| (50..150).contains(&hold.as_millis())));
        let first_half = holds.iter().filter(|hold| hold.as_millis() < 100).count();
        assert!((45..=55).contains(&first_half), "{first_half}");
        // 4,000 errors every 200 ms take 40 of them.
        turns.held.set(4_000);
        turns.shed.set(0);
        assert_eq!(turns.next_hold(&shedding), 100 * MILLISECOND, "half of the average");
    }
}
