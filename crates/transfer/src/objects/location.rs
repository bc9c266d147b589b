//! Places that a command line names: `s3://bucket/prefix`, `file:///directory` or a plain path.

use std::path::PathBuf;
use std::str::FromStr;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObjectLocation {
    Objects { bucket: String, prefix: String },
    Path(PathBuf),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LocationError {
    #[error("`{0}` names no bucket; write s3://bucket/prefix")]
    NoBucket(String),
    #[error("`{0}` has a scheme other than s3:// and file://")]
    Scheme(String),
}

impl FromStr for ObjectLocation {
    type Err = LocationError;

    fn from_str(text: &str) -> Result<ObjectLocation, LocationError> {
        if let Some(rest) = text.strip_prefix("s3://") {
            let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
            return match bucket.is_empty() {
                true => Err(LocationError::NoBucket(text.to_owned())),
                false => {
                    Ok(ObjectLocation::Objects { bucket: bucket.into(), prefix: prefix.into() })
                }
            };
        }
        match text.split_once("://") {
            Some(("file", path)) => Ok(ObjectLocation::Path(path.into())),
            Some(_) => Err(LocationError::Scheme(text.to_owned())),
            None => Ok(ObjectLocation::Path(text.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_buckets_or_paths() {
        let objects = |bucket: &str, prefix: &str| {
            Ok(ObjectLocation::Objects { bucket: bucket.into(), prefix: prefix.into() })
        };
        assert_eq!("s3://b/a/c".parse(), objects("b", "a/c"));
        assert_eq!("s3://b".parse(), objects("b", ""));
        assert_eq!("file:///x/y".parse(), Ok(ObjectLocation::Path("/x/y".into())));
        assert_eq!("x.json".parse(), Ok(ObjectLocation::Path("x.json".into())));
        assert!("s3:///x".parse::<ObjectLocation>().is_err());
        assert!("gs://x".parse::<ObjectLocation>().is_err());
    }
}
