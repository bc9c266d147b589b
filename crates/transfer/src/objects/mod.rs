//! Object stores: S3 or what is compatible with it, or a directory whose subdirectories are the
//! buckets.
//!
//! Requests are repeated with back-off, by the client for whole requests and here for bodies that
//! break off. What is read is compared with the length, the version and, where one is known, the
//! checksum that it should have.

mod http;
mod location;
mod read;
mod upload;
mod write;

use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::TryStreamExt;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{BackoffConfig, ObjectStore, RetryConfig};

pub use location::{LocationError, ObjectLocation};
pub use read::ObjectReader;
pub use upload::{PART_BYTES, Upload, UploadTag};
pub use write::Stored;

/// How to reach the buckets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObjectStoreEndpoint {
    /// Amazon S3.
    Aws,
    /// A server that is compatible with S3.
    Url(String),
    /// A directory whose subdirectories are the buckets.
    Directory(PathBuf),
}

impl std::str::FromStr for ObjectStoreEndpoint {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<ObjectStoreEndpoint, &'static str> {
        if text == "aws" {
            return Ok(ObjectStoreEndpoint::Aws);
        }
        if let Some(directory) = text.strip_prefix("file://") {
            return match directory.starts_with('/') {
                true => Ok(ObjectStoreEndpoint::Directory(directory.into())),
                false => Err("a file URL must name an absolute path: file:///directory"),
            };
        }
        match text.starts_with("http://") || text.starts_with("https://") {
            true => Ok(ObjectStoreEndpoint::Url(text.to_owned())),
            false => Err("it must be http://…, https://…, file:///… or `aws`"),
        }
    }
}

#[derive(Clone, PartialEq, Eq)]
pub struct ObjectStoreOptions {
    pub endpoint: ObjectStoreEndpoint,
    /// The region to sign for; that of the environment if not set.
    pub region: Option<String>,
    /// Access key and secret key; those of the environment if not set.
    pub credentials: Option<(String, String)>,
}

/// How the store encrypts what is written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Encryption {
    /// As it does by itself.
    #[default]
    Default,
    /// With a key of KMS, or else the account's own one.
    Kms { key: Option<String> },
}

/// Without the secret key.
impl std::fmt::Debug for ObjectStoreOptions {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let access_key = self.credentials.as_ref().map(|(access_key, _)| access_key);
        out.debug_struct("ObjectStoreOptions")
            .field("endpoint", &self.endpoint)
            .field("region", &self.region)
            .field("access_key", &access_key)
            .finish()
    }
}

impl ObjectStoreOptions {
    pub fn new(endpoint: ObjectStoreEndpoint) -> ObjectStoreOptions {
        ObjectStoreOptions { endpoint, region: None, credentials: None }
    }
}

/// Why an object can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ObjectError {
    #[error("The specified bucket does not exist: {bucket}")]
    NoSuchBucket { bucket: String },
    #[error("The specified key does not exist: {key}")]
    NoSuchKey { key: String },
    #[error("Access Denied: {detail}")]
    AccessDenied { detail: String },
    #[error("the object {key} changed while it was read")]
    Changed { key: String },
    #[error("the object {key} ends after {actual} of {expected} bytes")]
    Truncated { key: String, actual: u64, expected: u64 },
    #[error("the MD5 of the object {key} is {actual} instead of {expected}")]
    Checksum { key: String, actual: String, expected: String },
    #[error("the object {key} has more than {limit} bytes")]
    TooLarge { key: String, limit: u64 },
    #[error("more than {limit} objects begin with the prefix")]
    TooManyObjects { limit: usize },
    #[error("`{0}` is not a key that can be used")]
    Key(String),
    /// The store took it, but has something else.
    #[error("the object {key} was not stored: {problem}")]
    NotStored { key: String, problem: String },
    /// The store is a directory. It may have space later.
    #[error("no space is left in {bucket}: {detail}")]
    Full { bucket: String, detail: String },
    /// Repeating it later may help.
    #[error("the object store can't be reached: {detail}")]
    Unavailable { detail: String },
}

impl ObjectError {
    /// Whether the same request may succeed later.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            ObjectError::Unavailable { .. }
                | ObjectError::Full { .. }
                | ObjectError::Truncated { .. }
                | ObjectError::NotStored { .. }
        )
    }
}

/// An object in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    pub key: String,
    pub size_bytes: u64,
    pub etag: Option<String>,
}

/// One bucket.
#[derive(Debug, Clone)]
pub struct Bucket {
    name: String,
    store: Arc<dyn ObjectStore>,
    /// Whether entity tags may be checksums.
    is_s3: bool,
}

/// How often the client repeats a request that the store throttles or can't serve.
const RETRIES_MAX: usize = 8;
const RETRY_TIMEOUT: Duration = Duration::from_secs(60);

impl Bucket {
    pub fn open(options: &ObjectStoreOptions, bucket: &str) -> Result<Bucket, ObjectError> {
        Bucket::open_encrypted(options, bucket, &Encryption::Default)
    }

    /// A bucket in which everything is stored encrypted. A directory can't do that, and ignores it.
    pub fn open_encrypted(
        options: &ObjectStoreOptions,
        bucket: &str,
        encryption: &Encryption,
    ) -> Result<Bucket, ObjectError> {
        let url = match &options.endpoint {
            ObjectStoreEndpoint::Directory(directory) => {
                return Bucket::in_directory(&directory.join(bucket), bucket);
            }
            ObjectStoreEndpoint::Url(url) => Some(url),
            ObjectStoreEndpoint::Aws => None,
        };
        let mut builder =
            AmazonS3Builder::from_env().with_bucket_name(bucket).with_retry(retries());
        builder = builder.with_http_connector(http::HyperConnector);
        if let Some(url) = url {
            builder = builder.with_endpoint(url).with_allow_http(url.starts_with("http://"));
        }
        if let Some(region) = &options.region {
            builder = builder.with_region(region);
        } else if builder.get_config_value(&AmazonS3ConfigKey::Region).is_none() {
            builder = builder.with_region("us-east-1");
        }
        if let Some((access_key, secret_key)) = &options.credentials {
            builder = builder.with_access_key_id(access_key).with_secret_access_key(secret_key);
        }
        builder = match encryption {
            Encryption::Default => builder,
            Encryption::Kms { key: Some(key) } => builder.with_sse_kms_encryption(key),
            Encryption::Kms { key: None } => {
                let setting = "aws_server_side_encryption".parse();
                builder.with_config(setting.map_err(|error| unavailable(&error))?, "aws:kms")
            }
        };
        let store = builder.build().map_err(|error| unavailable(&error))?;
        Ok(Bucket { name: bucket.to_owned(), store: Arc::new(store), is_s3: true })
    }

    /// A directory as a bucket. What is stored there survives a power cut, as in any other store.
    pub fn in_directory(directory: &FilePath, name: &str) -> Result<Bucket, ObjectError> {
        if !directory.is_dir() {
            return Err(ObjectError::NoSuchBucket { bucket: name.to_owned() });
        }
        let store =
            LocalFileSystem::new_with_prefix(directory).map_err(|error| unavailable(&error))?;
        let store = Arc::new(store.with_fsync(true));
        Ok(Bucket { name: name.to_owned(), store, is_s3: false })
    }

    /// Any store as a bucket, such as one that fails as a test wants.
    pub fn over(store: Arc<dyn ObjectStore>, name: &str) -> Bucket {
        Bucket { name: name.to_owned(), store, is_s3: true }
    }

    /// Whether entity tags may be checksums, so that computing them is worth it.
    pub fn is_s3(&self) -> bool {
        self.is_s3
    }

    /// The objects whose keys begin with `prefix`, in the order of their keys. Empty objects are
    /// left out: they hold nothing, and some tools mark folders with them.
    pub async fn list(&self, prefix: &str, limit: usize) -> Result<Vec<Object>, ObjectError> {
        // The client lists folders, but a prefix may end in the middle of a name.
        let folder = prefix.rsplit_once('/').map_or("", |(folder, _)| folder);
        let folder = path(folder)?;
        let mut listed = self.store.list(Some(&folder));
        let mut objects = Vec::new();
        let next = listed.try_next().await;
        let mut next = next.map_err(|error| self.error(error, None))?;
        while let Some(meta) = next {
            let key = meta.location.as_ref().to_owned();
            if key.starts_with(prefix) && meta.size > 0 {
                if objects.len() == limit {
                    return Err(ObjectError::TooManyObjects { limit });
                }
                objects.push(Object { key, size_bytes: meta.size, etag: meta.e_tag });
            }
            next = listed.try_next().await.map_err(|error| self.error(error, None))?;
        }
        objects.sort_by(|one, other| one.key.cmp(&other.key));
        Ok(objects)
    }

    /// The object with this key, without its content.
    pub async fn find(&self, key: &str) -> Result<Object, ObjectError> {
        let options = object_store::GetOptions { head: true, ..Default::default() };
        let found = self.store.get_opts(&path(key)?, options).await;
        let meta = found.map_err(|error| self.error(error, Some(key)))?.meta;
        Ok(Object { key: key.to_owned(), size_bytes: meta.size, etag: meta.e_tag })
    }

    /// A whole object, which must not be larger than `limit`.
    pub async fn get(&self, key: &str, limit: u64) -> Result<Bytes, ObjectError> {
        let path = path(key)?;
        let options = object_store::GetOptions::default();
        let found = self.store.get_opts(&path, options).await;
        let found = found.map_err(|error| self.error(error, Some(key)))?;
        if found.meta.size > limit {
            return Err(ObjectError::TooLarge { key: key.to_owned(), limit });
        }
        found.bytes().await.map_err(|error| self.error(error, Some(key)))
    }

    /// The first bytes of an object.
    pub async fn get_start(&self, key: &str, length: u64) -> Result<Bytes, ObjectError> {
        self.get_part(key, 0, length).await
    }

    /// Bytes of an object, from `start` on: as many as `length`, unless it ends before.
    pub async fn get_part(&self, key: &str, start: u64, length: u64) -> Result<Bytes, ObjectError> {
        let path = path(key)?;
        let range = Some(object_store::GetRange::Bounded(start..start + length));
        let options = object_store::GetOptions { range, ..Default::default() };
        let found = self.store.get_opts(&path, options).await;
        let found = found.map_err(|error| self.error(error, Some(key)))?;
        found.bytes().await.map_err(|error| self.error(error, Some(key)))
    }

    /// What a failure of the client means. `key` is the object that the request named.
    fn error(&self, error: object_store::Error, key: Option<&str>) -> ObjectError {
        use object_store::Error;
        match (error, key) {
            (Error::NotFound { .. }, Some(key)) => ObjectError::NoSuchKey { key: key.to_owned() },
            (Error::NotFound { .. }, None) => {
                ObjectError::NoSuchBucket { bucket: self.name.clone() }
            }
            (error @ (Error::PermissionDenied { .. } | Error::Unauthenticated { .. }), _) => {
                ObjectError::AccessDenied { detail: detail(&error) }
            }
            (Error::Precondition { .. } | Error::NotModified { .. }, key) => {
                ObjectError::Changed { key: key.unwrap_or_default().to_owned() }
            }
            (error, _) if is_full(&error) => {
                ObjectError::Full { bucket: self.name.clone(), detail: detail(&error) }
            }
            (error, None) => self.listing_error(detail(&error)),
            (error, Some(_)) => unavailable(&error),
        }
    }
}

impl Bucket {
    /// What a failure to list means. The client hands on only the text of S3's answer.
    fn listing_error(&self, detail: String) -> ObjectError {
        let has_one_of = |codes: &[&str]| codes.iter().any(|code| detail.contains(code));
        if has_one_of(&["<Code>NoSuchBucket<", "status code: 404"]) {
            return ObjectError::NoSuchBucket { bucket: self.name.clone() };
        }
        if has_one_of(&["<Code>AccessDenied<", "status code: 403", "status code: 401"]) {
            return ObjectError::AccessDenied { detail };
        }
        ObjectError::Unavailable { detail }
    }
}

fn retries() -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig::default(),
        max_retries: RETRIES_MAX,
        retry_timeout: RETRY_TIMEOUT,
    }
}

fn path(key: &str) -> Result<Path, ObjectError> {
    Path::parse(key).map_err(|_| ObjectError::Key(key.to_owned()))
}

fn unavailable(error: &object_store::Error) -> ObjectError {
    ObjectError::Unavailable { detail: detail(error) }
}

/// Whether a file could not be written because its disk is full, a quota is used up, or files can't be so large.
fn is_full(error: &object_store::Error) -> bool {
    use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    let causes = std::iter::successors(Some(error as &dyn std::error::Error), |it| it.source());
    let mut kinds = causes.filter_map(|it| Some(it.downcast_ref::<std::io::Error>()?.kind()));
    kinds.any(|kind| matches!(kind, StorageFull | QuotaExceeded | FileTooLarge))
}

/// The error with its causes, which the outermost text often leaves out.
fn detail(error: &object_store::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        let inner = error.to_string();
        if !text.contains(&inner) {
            text = format!("{text}: {inner}");
        }
        cause = error.source();
    }
    text
}
