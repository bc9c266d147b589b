//! What backups and moves have in common: callers start them and ask for their progress, if the operator allows it.

use hyper::StatusCode;

use super::AdminError;

/// Where callers may have the server's data copied to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Permission<P> {
    Nowhere,
    To(P),
    Anywhere,
}

/// The answers to callers who may not copy the data at all, or not to this place.
pub struct Refusals {
    pub nowhere: &'static str,
    pub elsewhere: &'static str,
}

impl<P: Clone> Permission<P> {
    /// The place that a caller asks for, as the operator has named it.
    pub(super) fn check(
        &self,
        asked: P,
        is_same: impl Fn(&P, &P) -> bool,
        refusals: &Refusals,
    ) -> Result<P, AdminError> {
        let refuse = |message: &str| Err(AdminError::new(StatusCode::FORBIDDEN, message));
        match self {
            Permission::Anywhere => Ok(asked),
            Permission::To(allowed) if is_same(allowed, &asked) => Ok(allowed.clone()),
            Permission::To(_) => refuse(refusals.elsewhere),
            Permission::Nowhere => refuse(refusals.nowhere),
        }
    }
}

/// The last run since the server was started.
pub struct LastRun<P, S> {
    pub to: Option<String>,
    pub progress: P,
    pub outcome: Option<Result<S, String>>,
}

impl<P: Default, S> Default for LastRun<P, S> {
    fn default() -> LastRun<P, S> {
        LastRun { to: None, progress: P::default(), outcome: None }
    }
}

impl<P: Default, S> LastRun<P, S> {
    /// Replaces a run that has ended by a new one. `conflict` is the answer if the run has not ended.
    pub(super) fn begin(&mut self, to: String, conflict: &str) -> Result<(), AdminError> {
        if self.to.is_some() && self.outcome.is_none() {
            return Err(AdminError::new(StatusCode::CONFLICT, conflict));
        }
        *self = LastRun { to: Some(to), ..LastRun::default() };
        Ok(())
    }

    /// The stage that callers see. `running` is its name while the run lasts.
    pub fn stage(&self, running: &'static str) -> &'static str {
        match (&self.to, &self.outcome) {
            (None, _) => "none",
            (_, Some(Ok(_))) => "done",
            (_, Some(Err(_))) => "failed",
            (_, None) => running,
        }
    }

    pub fn summary(&self) -> Option<&S> {
        self.outcome.as_ref().and_then(|outcome| outcome.as_ref().ok())
    }

    pub fn error(&self) -> Option<&String> {
        self.outcome.as_ref().and_then(|outcome| outcome.as_ref().err())
    }
}
