//! Objects that are written, and checked afterwards.

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use md5::{Digest, Md5};
use object_store::ObjectStoreExt;

use super::{Bucket, ObjectError, path};

/// Larger objects take their checksum on a thread that may block.
const CHECKSUM_BYTES_HERE: usize = 1 << 20;

/// What is known of an object that was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    pub md5: [u8; 16],
    pub etag: Option<String>,
}

impl Bucket {
    /// Stores a whole object. The store gets its checksum with it, so a body that breaks off is not
    /// stored.
    pub async fn put(&self, key: &str, bytes: Bytes) -> Result<Option<String>, ObjectError> {
        let path = path(key)?;
        let stored =
            self.store.put_opts(&path, bytes.into(), object_store::PutOptions::default()).await;
        stored.map(|stored| stored.e_tag).map_err(|error| self.put_error(error, key))
    }

    /// Stores a whole object, and compares what the store says about it with what it is.
    ///
    /// # Errors
    /// [`ObjectError::NotStored`] if the store has something else.
    pub async fn put_checked(&self, key: &str, bytes: Bytes) -> Result<Stored, ObjectError> {
        let md5 = checksum(&bytes).await;
        let length = bytes.len() as u64;
        let etag = self.put(key, bytes).await?;
        let stored = Stored { md5, etag };
        let etag = stored.etag.as_deref().map(|etag| etag.trim_matches('"'));
        if etag == Some(&hex::encode(md5)) {
            return Ok(stored);
        }
        // Only some entity tags are checksums: directories have none, and encryption by KMS changes them. Then it is read again.
        let found = self.find(key).await.map_err(|error| match error {
            ObjectError::NoSuchKey { key } => not_stored(key, "it is missing"),
            error => error,
        })?;
        if found.size_bytes != length {
            let problem = format!("it has {} of {length} bytes", found.size_bytes);
            return Err(not_stored(key, &problem));
        }
        if checksum(&self.get(key, length).await?).await != md5 {
            return Err(not_stored(key, "its checksum is another one"));
        }
        Ok(stored)
    }

    /// Deletes an object. One that is missing is not an error.
    pub async fn delete(&self, key: &str) -> Result<(), ObjectError> {
        match self.store.delete(&path(key)?).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.error(error, Some(key))),
        }
    }

    /// Deletes objects, up to a thousand with one request where the store knows how to. Those that are missing are not an error.
    pub async fn delete_many(&self, keys: &[String]) -> Result<(), ObjectError> {
        let paths: Vec<_> = keys.iter().map(|key| path(key)).collect::<Result<_, _>>()?;
        let mut deleted = self.store.delete_stream(stream::iter(paths).map(Ok).boxed());
        while let Some(outcome) = deleted.next().await {
            match outcome {
                Ok(_) | Err(object_store::Error::NotFound { .. }) => {}
                Err(error) => return Err(self.error(error, None)),
            }
        }
        Ok(())
    }

    /// What a failure to store means. Where the key need not exist, only the bucket can be missing.
    fn put_error(&self, error: object_store::Error, key: &str) -> ObjectError {
        match self.error(error, Some(key)) {
            ObjectError::NoSuchKey { .. } => {
                ObjectError::NoSuchBucket { bucket: self.name.clone() }
            }
            error => error,
        }
    }
}

/// The thread that asks has other work, too.
async fn checksum(bytes: &Bytes) -> [u8; 16] {
    let copy = bytes.clone();
    match bytes.len() < CHECKSUM_BYTES_HERE {
        true => Md5::digest(copy).into(),
        false => {
            let digest = tokio::task::spawn_blocking(move || Md5::digest(copy).into()).await;
            digest.expect("a digest can be computed of any bytes")
        }
    }
}

fn not_stored(key: impl Into<String>, problem: &str) -> ObjectError {
    ObjectError::NotStored { key: key.into(), problem: problem.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zenobe_testing::TemporaryDirectory;

    #[tokio::test]
    async fn what_was_stored_is_checked() {
        let directory = TemporaryDirectory::new("stored");
        let bucket = Bucket::in_directory(directory.path(), "bucket").unwrap();
        let stored = bucket.put_checked("a/b", Bytes::from_static(b"abc")).await.unwrap();
        assert_eq!(hex::encode(stored.md5), "900150983cd24fb0d6963f7d28e17f72");
        assert_eq!(std::fs::read(directory.path().join("a/b")).unwrap(), b"abc");
        bucket.delete("a/b").await.unwrap();
        bucket.delete("a/b").await.unwrap();
        assert!(matches!(bucket.find("a/b").await, Err(ObjectError::NoSuchKey { .. })));
        let keys = ["c", "d/e", "missing"].map(str::to_owned);
        for key in &keys[..2] {
            bucket.put(key, Bytes::from_static(b"x")).await.unwrap();
        }
        bucket.delete_many(&keys).await.unwrap();
        assert!(matches!(bucket.find("d/e").await, Err(ObjectError::NoSuchKey { .. })));
    }
}
