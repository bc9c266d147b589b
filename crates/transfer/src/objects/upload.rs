//! Objects that are stored part by part, because they don't fit into memory.

use bytes::Bytes;
use md5::{Digest, Md5};
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

    /// Returns the entity tag. In S3 without KMS it is [`UploadTag::finish`] of what was stored.
    pub async fn finish(mut self) -> Result<Option<String>, ObjectError> {
        let finished = self.parts.complete().await;
        let stored = finished.map_err(|error| self.bucket.error(error, Some(&self.key)))?;
        Ok(stored.e_tag.map(|etag| etag.trim_matches('"').to_owned()))
    }

    /// Gives up. Whatever can't be removed now costs space until the bucket's own rules remove it.
    pub async fn abort(mut self) {
        if let Err(error) = self.parts.abort().await {
            tracing::debug!(key = self.key, %error, "an upload that failed could not be removed");
        }
    }
}

/// The entity tag that S3 gives to an object of these parts: the MD5 of their MD5s, and how many there are.
#[derive(Debug, Default)]
pub struct UploadTag {
    digests: Md5,
    parts: u64,
}

impl UploadTag {
    pub fn add(&mut self, part: &[u8]) {
        self.digests.update(Md5::digest(part));
        self.parts += 1;
    }

    pub fn finish(self) -> String {
        format!("{}-{}", hex::encode(self.digests.finalize()), self.parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `(printf a | openssl md5 -binary; printf b | openssl md5 -binary) | openssl md5`
    #[test]
    fn the_tag_of_an_upload_is_that_of_s3() {
        let mut tag = UploadTag::default();
        tag.add(b"a");
        tag.add(b"b");
        assert_eq!(tag.finish(), "96e024ba2074fe77e8e965ba43a704be-2");
    }
}
