//! Objects that are stored part by part, because they don't fit into memory.

use bytes::Bytes;
use object_store::{MultipartUpload, PutMultipartOptions};

use super::{Bucket, ObjectError, path};

/// The size of every part but the last. S3 takes 10,000 parts, none smaller than 5 MiB, and some stores want equal ones.
pub const PART_BYTES: usize = 8 << 20;

/// An object that does not exist before [`Upload::finish`].
#[derive(Debug)]
pub struct Upload {
    bucket: Bucket,
    key: String,
    parts: Box<dyn MultipartUpload>,
}

impl Bucket {
    /// Begins to store an object in parts.
    pub async fn begin_upload(&self, key: &str) -> Result<Upload, ObjectError> {
        let options = PutMultipartOptions::default();
        let begun = self.store.put_multipart_opts(&path(key)?, options).await;
        let parts = begun.map_err(|error| self.error(error, Some(key)))?;
        Ok(Upload { bucket: self.clone(), key: key.to_owned(), parts })
    }
}

impl Upload {
    /// Stores the next part: [`PART_BYTES`], or less if it is the last.
    pub async fn add(&mut self, part: Bytes) -> Result<(), ObjectError> {
        let stored = self.parts.put_part(part.into()).await;
        stored.map_err(|error| self.bucket.error(error, Some(&self.key)))
    }

    pub async fn finish(mut self) -> Result<(), ObjectError> {
        let finished = self.parts.complete().await;
        finished.map(drop).map_err(|error| self.bucket.error(error, Some(&self.key)))
    }

    /// Gives up. Whatever can't be removed now costs space until the bucket's own rules remove it.
    pub async fn abort(mut self) {
        if let Err(error) = self.parts.abort().await {
            tracing::debug!(key = self.key, %error, "an upload that failed could not be removed");
        }
    }
}
