//! The driven clock: time that moves on request.

use std::sync::Arc;

use hyper::{Method, StatusCode};
use parking_lot::Mutex;
use serde_json::{Value, json};
use zenobe_engine::ClockStatus;
use zenobe_engine::clock::{Clock, ManualClock};

use super::{Admin, AdminError, check_method, posted};

/// The last millisecond of the year 9999: a stream's label can't hold later times.
const NOW_MS_MAX: u64 = 253_402_300_799_999;

pub struct DrivenClock {
    clock: Arc<ManualClock>,
    moving: Mutex<()>,
}

impl DrivenClock {
    pub fn new(clock: Arc<ManualClock>) -> DrivenClock {
        DrivenClock { clock, moving: Mutex::new(()) }
    }

    fn advance(&self, to_ms: impl Fn(u64) -> Option<u64>) -> Result<(), AdminError> {
        let _alone = self.moving.lock();
        let now_ms = self.clock.now_ms();
        let fault = |message| AdminError::new(StatusCode::BAD_REQUEST, message);
        match to_ms(now_ms).filter(|to_ms| *to_ms <= NOW_MS_MAX) {
            Some(to_ms) if to_ms < now_ms => Err(fault("time moves forward only")),
            Some(to_ms) => {
                self.clock.set_ms(to_ms);
                Ok(())
            }
            None => Err(fault("that is beyond the year 9999")),
        }
    }
}

impl Admin {
    pub(super) async fn answer_clock(
        &self,
        method: &Method,
        body: &[u8],
    ) -> Result<Value, AdminError> {
        if let Some(request) = posted(method, body)? {
            self.move_clock(&request).await?;
        }
        Ok(self.describe_clock())
    }

    /// Confirms that the time is right after a jump of the clock. Items expire again.
    pub(super) async fn confirm_clock(&self, method: &Method) -> Result<Value, AdminError> {
        check_method(method, &Method::POST)?;
        self.check_alone("restart the server with --clock-jump-seconds 0 if its clock is right")?;
        self.engine.confirm_clock().await.map_err(|error| {
            let message = format!("the confirmation could not be stored: {error}");
            AdminError::new(StatusCode::INTERNAL_SERVER_ERROR, message)
        })?;
        Ok(self.describe_clock())
    }

    fn describe_clock(&self) -> Value {
        let ClockStatus { now_ms, expected_ms, is_paused } = self.engine.clock_status();
        json!({
            "now_ms": now_ms,
            "driven": self.clock.is_some(),
            "expected_ms": expected_ms,
            "expiry_paused": is_paused,
        })
    }

    /// Returns once everything that became due is done: the caller then sees items expired and tables
    /// scaled.
    async fn move_clock(&self, request: &Value) -> Result<(), AdminError> {
        let Some(clock) = &self.clock else {
            let message = "the server was started without --driven-clock";
            return Err(AdminError::new(StatusCode::CONFLICT, message));
        };
        self.check_alone("start one for your tests alone")?;
        // What was counted so far happened before the move.
        self.store_traffic().await;
        let members: Vec<_> = request.as_object().into_iter().flatten().collect();
        match members[..] {
            [(name, value)] if name == "advance_ms" && value.is_u64() => {
                let by_ms = value.as_u64().unwrap_or_default();
                clock.advance(|now_ms| now_ms.checked_add(by_ms))?;
            }
            [(name, value)] if name == "set_ms" && value.is_u64() => {
                clock.advance(|_| value.as_u64())?;
            }
            _ => {
                let message = "expected {\"advance_ms\": n} or {\"set_ms\": n} with a whole number";
                return Err(AdminError::new(StatusCode::BAD_REQUEST, message));
            }
        }
        self.store_traffic().await;
        self.engine.wake_background();
        let worked = match self.engine.run_pending_work().await {
            Ok(()) => self.scaling.run_due().await,
            failed => failed,
        };
        worked.map_err(|error| {
            let message = format!("the clock was moved, but what became due failed: {error}");
            AdminError::new(StatusCode::INTERNAL_SERVER_ERROR, message)
        })
    }
}
