//! How the shipper is doing, for operators.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use zenobe_store::shipping::FollowError;
use zenobe_store::{Stamp, system_time_ms};

use crate::error::BackupError;
use crate::stored_files::FileProgress;

/// The same failure is logged once in this time.
const REPEAT_AFTER: Duration = Duration::from_secs(60);

pub struct ShippingStatus {
    place: String,
    begun_at_ms: u64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    shown: ShippingState,
    /// The latest state of this server that can be restored.
    restorable: Option<Stamp>,
    has_snapshot: bool,
    /// How far the generation's segments go.
    until: Stamp,
    reported_at: Option<Instant>,
}

/// The shipper's state at a moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShippingState {
    pub place: String,
    pub generation: Option<String>,
    /// The last moment whose state can be restored, in milliseconds since 1970; `None` before the first snapshot.
    pub restorable_until_ms: Option<u64>,
    /// How much would be lost if the machine were lost now.
    pub age_ms: u64,
    pub waiting_bytes: u64,
    pub segments: u64,
    /// Of segments.
    pub bytes: u64,
    pub generations: u64,
    pub gaps: u64,
    pub snapshots: u64,
    pub snapshot: FileProgress,
    /// What is wrong now.
    pub problem: Option<String>,
    pub is_running: bool,
}

impl ShippingStatus {
    pub(super) fn new(place: &str) -> ShippingStatus {
        let shown =
            ShippingState { place: place.to_owned(), is_running: true, ..ShippingState::default() };
        let state = Mutex::new(State { shown, ..State::default() });
        ShippingStatus { place: place.to_owned(), begun_at_ms: system_time_ms(), state }
    }

    pub fn place(&self) -> &str {
        &self.place
    }

    pub fn get(&self) -> ShippingState {
        let state = self.state.lock();
        let mut shown = state.shown.clone();
        shown.restorable_until_ms = state.restorable.map(Stamp::at_ms);
        let since_ms = shown.restorable_until_ms.unwrap_or(self.begun_at_ms);
        shown.age_ms = system_time_ms().saturating_sub(since_ms);
        shown
    }

    pub(super) fn begin_generation(&self, generation: &str) {
        let mut state = self.state.lock();
        state.has_snapshot = false;
        state.until = Stamp::default();
        state.shown.generation = Some(generation.to_owned());
        state.shown.generations += 1;
    }

    pub(super) fn waiting(&self, bytes: usize) {
        self.state.lock().shown.waiting_bytes = bytes as u64;
    }

    pub(super) fn shipped(&self, segments: u64, bytes: u64, until: Stamp) {
        let mut state = self.state.lock();
        state.shown.segments += segments;
        state.shown.bytes += bytes;
        state.until = until;
        state.advance();
    }

    pub(super) fn snapshot_progress(&self, progress: FileProgress) {
        self.state.lock().shown.snapshot = progress;
    }

    pub(super) fn snapshot_done(&self) {
        let mut state = self.state.lock();
        state.has_snapshot = true;
        state.shown.snapshots += 1;
        state.advance();
    }

    pub(super) fn succeeded(&self) {
        self.state.lock().shown.problem = None;
    }

    /// Returns whether to log it: one that lasts is not logged every second.
    pub(super) fn failed(&self, error: &BackupError) -> bool {
        let mut state = self.state.lock();
        let is_first = state.shown.problem.replace(error.to_string()).is_none();
        state.is_report_due() || is_first
    }

    /// The age of the copy in seconds, if it is worth a warning.
    pub(super) fn lag_to_report(&self) -> Option<u64> {
        let age_ms = self.get().age_ms;
        let mut state = self.state.lock();
        let is_late = state.restorable.is_some() && age_ms > REPEAT_AFTER.as_millis() as u64;
        (is_late && state.is_report_due()).then_some(age_ms / 1_000)
    }

    pub(super) fn lost(&self, error: &FollowError) {
        let mut state = self.state.lock();
        state.shown.gaps += 1;
        state.shown.problem = Some(error.to_string());
    }

    pub(super) fn ended(&self) {
        self.state.lock().shown.is_running = false;
    }
}

impl State {
    fn is_report_due(&mut self) -> bool {
        let is_due =
            self.reported_at.is_none_or(|reported_at| reported_at.elapsed() > REPEAT_AFTER);
        if is_due {
            self.reported_at = Some(Instant::now());
        }
        is_due
    }

    /// Segments count once there is a snapshot before them.
    fn advance(&mut self) {
        if self.has_snapshot && self.until > Stamp::default() {
            self.restorable = self.restorable.max(Some(self.until));
        }
    }
}
