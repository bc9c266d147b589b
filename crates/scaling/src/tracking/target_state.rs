//! What the worker knows about a target from one minute to the next. It is stored, so that it
//! survives restarts and moves with the lease.

use zenobe_engine::error::Result;
use zenobe_engine::row::Fields;
use zenobe_value::Attributes;

use super::IN_MINUTES;
use crate::usage::MINUTE_MS;

/// A clock that was this far ahead had jumped.
const JUMP_MS: u64 = 24 * 3_600 * 1_000;

#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct TargetState {
    /// The id of the target. A row with another id belongs to an earlier target of the same name, and
    /// is ignored.
    pub target_id: String,
    /// Until when scheduled actions have been run.
    pub checked_ms: u64,
    /// The minutes whose consumption is known, the oldest first.
    pub samples: Vec<Sample>,
    pub scaled_out: Option<ScaledOut>,
    pub scaled_in_at_ms: Option<u64>,
    /// The last failure, so that it isn't reported every minute.
    pub report: Option<Report>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sample {
    pub minute: u64,
    /// What was consumed, in half units.
    pub halves: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ScaledOut {
    pub at_ms: u64,
    /// By how many units.
    pub step: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Report {
    pub text: String,
    pub at_ms: u64,
}

/// Whether something happened so far ahead of now that the clock must have been wrong then.
pub(crate) fn has_jumped_back(happened_ms: u64, now_ms: u64) -> bool {
    happened_ms.saturating_sub(now_ms) > JUMP_MS
}

impl TargetState {
    /// Forgets what happened while the clock was far ahead. Otherwise no minute would count and cooldowns would last, until the
    /// clock got there again.
    pub(crate) fn forget_future(&mut self, now_ms: u64) {
        self.samples.retain(|sample| !has_jumped_back(sample.minute * MINUTE_MS, now_ms));
        self.scaled_out.take_if(|scaled| has_jumped_back(scaled.at_ms, now_ms));
        self.scaled_in_at_ms.take_if(|at_ms| has_jumped_back(*at_ms, now_ms));
        self.report.take_if(|report| has_jumped_back(report.at_ms, now_ms));
    }

    /// Adds a minute, unless it or a later one is known already.
    pub(crate) fn add(&mut self, sample: Sample) {
        if self.samples.last().is_none_or(|last| last.minute < sample.minute) {
            self.samples.push(sample);
            let surplus = self.samples.len().saturating_sub(IN_MINUTES);
            self.samples.drain(..surplus);
        }
    }

    /// The last `count` minutes up to this one, if all of them are known.
    pub(super) fn last_minutes(&self, minute: u64, count: usize) -> Option<&[Sample]> {
        let recent = &self.samples[self.samples.len().checked_sub(count)?..];
        let first = (minute + 1).checked_sub(count as u64)?;
        let minutes = recent.iter().map(|sample| sample.minute);
        minutes.eq(first..=minute).then_some(recent)
    }

    pub(crate) fn encode(&self) -> Attributes {
        let mut fields = Fields::default();
        fields.text("target", &self.target_id);
        fields.number("checked", self.checked_ms);
        let samples = self.samples.iter().map(|Sample { minute, halves }| {
            let mut sample = Fields::default();
            sample.number("minute", *minute);
            sample.number("halves", *halves);
            sample.0
        });
        fields.list("samples", samples);
        if let Some(ScaledOut { at_ms, step }) = self.scaled_out {
            fields.number("scaled_out", at_ms);
            fields.number("step", step);
        }
        fields.optional_number("scaled_in", self.scaled_in_at_ms);
        if let Some(Report { text, at_ms }) = &self.report {
            fields.text("report", text);
            fields.number("reported", *at_ms);
        }
        fields.0
    }

    pub(crate) fn decode(row: Attributes) -> Result<TargetState> {
        let mut fields = Fields(row);
        let sample = |row: Attributes| {
            let mut fields = Fields(row);
            let (minute, halves) = (fields.take_number("minute")?, fields.take_number("halves")?);
            Ok(Sample { minute, halves })
        };
        let scaled_out = match fields.take_optional_number("scaled_out")? {
            Some(at_ms) => Some(ScaledOut { at_ms, step: fields.take_number("step")? }),
            None => None,
        };
        let report = match fields.take_optional_text("report")? {
            Some(text) => Some(Report { text, at_ms: fields.take_number("reported")? }),
            None => None,
        };
        Ok(TargetState {
            target_id: fields.take_text("target")?,
            checked_ms: fields.take_number("checked")?,
            samples: fields.take_list("samples", sample)?,
            scaled_out,
            scaled_in_at_ms: fields.take_optional_number("scaled_in")?,
            report,
        })
    }
}
