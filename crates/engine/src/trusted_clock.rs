//! The engine's view of its clock, which can be wrong.
//!
//! The engine remembers the last time seen, in the store as well. It serves two purposes:
//!
//! - **What is past.** A clock that jumps forward by more than a day may be right (the machine was
//!   off) or wrong (and everything with a time to live would be deleted). Only an operator can
//!   tell. Until one does, or the clock is plausible again, nothing expires and nothing is trimmed.
//! - **Later writes get later times.** A clock that was set back must not make new data older than
//!   earlier data. Log entries ensure this themselves ([`zenobe_store::Mutation::Append`]);
//!   everything else that outlives its moment uses [`Moment::stamp_ms`]. History uses
//!   [`Moment::plausible_ms`].

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use zenobe_store::{Batch, Reader, WriteSet, write_with};

use crate::Engine;
use crate::clock::{Clock, iso8601_without_zone};
use crate::error::{Error, Result};
use crate::{keyspace, row};

/// How far the last time seen may be ahead of the stored one.
const SAVED_EVERY_MS: u64 = 60 * 60 * 1_000;

pub(crate) struct TrustedClock {
    clock: Arc<dyn Clock>,
    /// How far the clock may run ahead of the time that has passed; `None` always trusts it.
    jump_ms_max: Option<u64>,
    latest: Mutex<LatestTime>,
}

struct LatestTime {
    /// The latest time that the clock has shown, without unconfirmed jumps.
    at_ms: u64,
    /// When the clock showed it.
    since: Instant,
    /// The time in the store.
    saved_ms: Option<u64>,
    is_paused: bool,
}

/// A reading of the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment {
    /// What the clock shows.
    pub now_ms: u64,
    /// Never earlier than any time that the clock showed before.
    pub stamp_ms: u64,
    /// Like `stamp_ms`, but a jump counts only once it is confirmed. Times that every later one must
    /// exceed are derived from this. From `stamp_ms`, one wrong reading would push them all into the
    /// future.
    pub plausible_ms: u64,
    /// Anything due by this time counts as past. It is the clock's time, unless the clock has
    /// jumped.
    pub past_ms: u64,
    /// Whether the clock has jumped, so that nothing may be deleted for its age.
    pub is_paused: bool,
}

/// The engine's time, for operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockStatus {
    pub now_ms: u64,
    /// Where the clock would be if it had not jumped.
    pub expected_ms: u64,
    /// Whether expiry, trimming and auto scaling wait for confirmation.
    pub is_paused: bool,
}

impl TrustedClock {
    pub async fn open(
        reader: &dyn Reader,
        clock: Arc<dyn Clock>,
        jump_ms_max: Option<u64>,
    ) -> Result<TrustedClock> {
        let saved_ms = match reader.get(&keyspace::last_time()).await? {
            Some(row) => Some(row::decode_number(&row)?),
            None => None,
        };
        let at_ms = saved_ms.unwrap_or_else(|| clock.now_ms());
        let latest = LatestTime { at_ms, since: Instant::now(), saved_ms, is_paused: false };
        // A driven clock moves on purpose, so it is always trusted.
        let jump_ms_max = jump_ms_max.filter(|_| !clock.is_driven());
        Ok(TrustedClock { clock, jump_ms_max, latest: Mutex::new(latest) })
    }

    /// Reads the clock, and records the time if it is plausible.
    pub fn read(&self) -> Moment {
        let now_ms = self.clock.now_ms();
        let mut latest = self.latest.lock();
        let expected_ms = latest.expected_ms();
        let has_jumped = self
            .jump_ms_max
            .is_some_and(|jump_ms_max| now_ms.saturating_sub(expected_ms) > jump_ms_max);
        if has_jumped != latest.is_paused {
            latest.is_paused = has_jumped;
            report(has_jumped, expected_ms, now_ms);
        }
        if !has_jumped && now_ms > latest.at_ms {
            latest.at_ms = now_ms;
            latest.since = Instant::now();
        }
        Moment {
            now_ms,
            stamp_ms: now_ms.max(latest.at_ms),
            plausible_ms: if has_jumped { expected_ms } else { now_ms.max(latest.at_ms) },
            past_ms: if has_jumped { expected_ms } else { now_ms },
            is_paused: has_jumped,
        }
    }

    /// Trusts the clock, wherever it has jumped to.
    fn confirm(&self) {
        let now_ms = self.clock.now_ms();
        let mut latest = self.latest.lock();
        if latest.is_paused {
            tracing::warn!(
                "the time {} is confirmed; expiry, trimming and auto scaling resume",
                iso8601_without_zone(now_ms)
            );
        }
        *latest =
            LatestTime { at_ms: now_ms, since: Instant::now(), saved_ms: None, is_paused: false };
    }

    /// The last time seen, if it should be stored. It doesn't matter where every clock is trusted.
    fn unsaved_ms(&self) -> Option<u64> {
        self.jump_ms_max?;
        let latest = self.latest.lock();
        let is_due =
            latest.saved_ms.is_none_or(|saved_ms| latest.at_ms >= saved_ms + SAVED_EVERY_MS);
        is_due.then_some(latest.at_ms)
    }
}

impl LatestTime {
    /// Where the clock should be by now.
    fn expected_ms(&self) -> u64 {
        self.at_ms.saturating_add(milliseconds(self.since.elapsed()))
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn report(has_jumped: bool, expected_ms: u64, now_ms: u64) {
    let (expected, now) = (iso8601_without_zone(expected_ms), iso8601_without_zone(now_ms));
    match has_jumped {
        true => tracing::warn!(
            "the clock says {now}, but about {expected} was expected. No item expires, no stream is trimmed and no table is scaled until \
             you correct the clock or run `zenobe clock confirm`"
        ),
        false => tracing::warn!(
            "the clock is back to an expected time, {now}; expiry, trimming and auto scaling resume"
        ),
    }
}

impl Engine {
    pub fn clock_status(&self) -> ClockStatus {
        let Moment { now_ms, past_ms, is_paused, .. } = self.trusted_clock.read();
        ClockStatus { now_ms, expected_ms: past_ms, is_paused }
    }

    /// Trusts the clock from now on, after it has jumped.
    pub async fn confirm_clock(&self) -> Result<()> {
        self.trusted_clock.confirm();
        self.remember_time().await?;
        self.background.wake();
        Ok(())
    }

    /// Stores the last time seen, now and then.
    pub(crate) async fn remember_time(&self) -> Result<()> {
        self.trusted_clock.read();
        let Some(at_ms) = self.trusted_clock.unsaved_ms() else { return Ok(()) };
        let keys = [keyspace::last_time()];
        let set = WriteSet { guards: &[], keys: &keys };
        let decision = write_with(&*self.store, set, |reads| {
            let mut batch = Batch::new();
            let saved_ms = reads[0].as_ref().map(|row| row::decode_number(row)).transpose()?;
            // Another node's clock may be ahead of this one's.
            let at_ms = if self.is_shared() { at_ms.max(saved_ms.unwrap_or(0)) } else { at_ms };
            batch.put(keys[0].clone(), row::encode_number(at_ms));
            Ok::<_, Error>((batch, at_ms))
        });
        let (saved_ms, _) = decision.await??;
        self.trusted_clock.latest.lock().saved_ms = Some(saved_ms);
        Ok(())
    }
}
