//! What jobs on object stores have in common: when they try again, and how they fail.

use zenobe_engine::error::Error;
use zenobe_transfer::objects::{ObjectError, ObjectStoreOptions};

use crate::json::Writer;

/// How often a job that can't reach its objects is tried again before it fails.
const ATTEMPTS_MAX: u64 = 6;

/// Why a job stops before its end.
pub(crate) enum Stop {
    /// It has failed.
    Failed {
        code: &'static str,
        message: String,
    },
    Objects(ObjectError),
    Engine(Error),
    Cancelled,
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Engine(error)
    }
}

impl From<ObjectError> for Stop {
    fn from(error: ObjectError) -> Stop {
        Stop::Objects(error)
    }
}

/// The object store of a job. Without one, the job waits. `job` is what the log calls it.
pub(crate) fn object_store<'o>(
    given: Option<&'o ObjectStoreOptions>,
    job: &str,
) -> Result<&'o ObjectStoreOptions, Error> {
    given.ok_or_else(|| Error::Unavailable { detail: format!("{job} waits for --s3-endpoint") })
}

/// How a job fails whose stored request does not decode: the code and the message.
pub(crate) const DAMAGED: (&str, &str) =
    ("InternalServerError", "The stored request does not decode");

pub(crate) fn damaged() -> Stop {
    let (code, message) = DAMAGED;
    Stop::Failed { code, message: message.to_owned() }
}

/// The members of a description that say why a job failed.
pub(crate) fn write_failure(writer: &mut Writer, code: &str, message: &str) {
    writer.name("FailureCode").string(code);
    writer.name("FailureMessage").string(message);
}

/// What comes after a failure of the object store.
pub(crate) enum Verdict {
    /// The job is tried again later, if it ends with this error.
    Again(Error),
    Failed {
        code: &'static str,
        message: String,
    },
}

impl Verdict {
    /// The code and message of a failure. A job that is tried again is saved before it ends with its error.
    pub(crate) async fn settle(
        self,
        save: impl Future<Output = Result<(), Error>>,
    ) -> Result<(&'static str, String), Error> {
        match self {
            Verdict::Failed { code, message } => Ok((code, message)),
            Verdict::Again(error) => {
                save.await?;
                Err(error)
            }
        }
    }
}

/// Decides whether to try again. `attempts` counts the failures in a row; the job stores it, because the next attempt may be on
/// another node.
pub(crate) fn judge(error: &ObjectError, attempts: &mut u64) -> Verdict {
    *attempts += u64::from(error.is_transient());
    match error.is_transient() && *attempts < ATTEMPTS_MAX {
        true => Verdict::Again(Error::Unavailable { detail: error.to_string() }),
        false => Verdict::Failed { code: failure_code(error), message: error.to_string() },
    }
}

fn failure_code(error: &ObjectError) -> &'static str {
    match error {
        ObjectError::NoSuchBucket { .. } => "S3NoSuchBucket",
        ObjectError::NoSuchKey { .. } => "S3NoSuchKey",
        ObjectError::AccessDenied { .. } => "S3AccessDenied",
        ObjectError::Changed { .. } => "S3ObjectChanged",
        ObjectError::Checksum { .. } | ObjectError::NotStored { .. } => "S3ChecksumMismatch",
        ObjectError::TooManyObjects { .. } | ObjectError::TooLarge { .. } => "S3LimitExceeded",
        ObjectError::Key(_) => "S3InvalidKey",
        ObjectError::Truncated { .. }
        | ObjectError::Full { .. }
        | ObjectError::Unavailable { .. } => "S3Unavailable",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_may_pass_is_tried_again_and_not_for_ever() {
        let mut attempts = 0;
        let missing = ObjectError::NoSuchBucket { bucket: "b".to_owned() };
        let Verdict::Failed { code, .. } = judge(&missing, &mut attempts) else { panic!() };
        assert_eq!((code, attempts), ("S3NoSuchBucket", 0));
        let lying = ObjectError::NotStored { key: "k".to_owned(), problem: "gone".to_owned() };
        for _ in 1..ATTEMPTS_MAX {
            assert!(matches!(judge(&lying, &mut attempts), Verdict::Again(_)));
        }
        let Verdict::Failed { code, message } = judge(&lying, &mut attempts) else { panic!() };
        assert_eq!(code, "S3ChecksumMismatch");
        assert_eq!(message, "the object k was not stored: gone");
    }
}
