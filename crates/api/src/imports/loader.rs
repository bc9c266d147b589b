//! Puts the items of objects into a table, object by object, for imports and for bulk puts.
//!
//! The job's progress names the object being read and how many of its records are done. After a
//! crash the object is read again from its start, and the records that are done are skipped. Those
//! that were put after the last save are put again, which changes nothing.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use zenobe_engine::catalog::Table;
use zenobe_engine::error::{Error, Result};
use zenobe_engine::jobs::Job;
use zenobe_engine::{Engine, IndexKeyCheck};
use zenobe_transfer::manifest;
use zenobe_transfer::objects::{Bucket, Object, ObjectError};

use super::ImportProgress;
use super::read::{Batch, Reading, batches};
use crate::json::Writer;
use crate::messages::engine::{Subject, engine_error};
use crate::object_jobs::{Stop, Verdict, judge};

/// AWS's limit for one import.
pub(super) const OBJECTS_MAX: usize = 50_000;
/// A manifest of that many objects is smaller.
const MANIFEST_SIZE_BYTES_MAX: u64 = 64 << 20;
/// How often to store the progress within an object.
const SAVE_INTERVAL: Duration = Duration::from_secs(1);

/// What is said about records that can't be put.
pub(super) struct Faults {
    pub(super) bucket: String,
    /// The ARN of the job, and the member of an event that holds it.
    pub(super) arn: String,
    pub(super) arn_member: &'static str,
    /// Where reports go, instead of the log.
    pub(super) report: Option<Report>,
}

/// Reports in an object store, in parts: each is stored before the progress that it belongs to, and
/// is stored again under the same key if that progress is lost.
pub(super) struct Report {
    pub(super) bucket: Bucket,
    pub(super) prefix: String,
    pub(super) lines: Vec<u8>,
}

pub(super) struct Loader<'a> {
    pub(super) engine: &'a Engine,
    pub(super) job: &'a mut Job,
    pub(super) progress: ImportProgress,
    pub(super) faults: Faults,
    /// How many write units per second the job may take.
    pub(super) units_per_second: Option<u64>,
}

impl Loader<'_> {
    pub(super) async fn load_all(
        &mut self,
        table: &Arc<Table>,
        bucket: &Bucket,
        objects: &[Object],
        reading: &Reading,
    ) -> Result<(), Stop> {
        let checksums = checksums(bucket, objects).await?;
        for object in objects {
            if self.progress.object.as_ref().is_some_and(|current| object.key < *current) {
                continue;
            }
            let reading = Reading { skip: self.begin(object), ..reading.clone() };
            let md5 = checksums.get(&object.key).cloned();
            self.load(table, bucket, object, md5, reading).await?;
        }
        Ok(())
    }

    /// Turns to an object, and returns how many of its records are done.
    fn begin(&mut self, object: &Object) -> u64 {
        if self.progress.object.as_deref() != Some(&object.key) {
            self.progress.object = Some(object.key.clone());
            self.progress.objects_begun += 1;
            self.progress.records_done = 0;
            self.progress.size_bytes_before = self.progress.size_bytes;
        }
        self.progress.records_done
    }

    async fn load(
        &mut self,
        table: &Arc<Table>,
        bucket: &Bucket,
        object: &Object,
        md5: Option<String>,
        reading: Reading,
    ) -> Result<(), Stop> {
        let mut batches = batches(bucket.read(object, md5), reading);
        let (mut saved_at, mut saved_records) = (Instant::now(), self.progress.records_done);
        while let Some(batch) = batches.recv().await {
            self.put(table, object, batch?).await?;
            if saved_at.elapsed() >= SAVE_INTERVAL {
                self.save_after(saved_records).await?;
                (saved_at, saved_records) = (Instant::now(), self.progress.records_done);
            }
        }
        self.progress.attempts = 0;
        self.save_after(saved_records).await
    }

    async fn put(&mut self, table: &Arc<Table>, object: &Object, batch: Batch) -> Result<(), Stop> {
        let begin = Instant::now();
        let loading =
            self.engine.load_items(table, &batch.items, IndexKeyCheck::Strict, self.job.lease());
        let errors = self.job.pace(self.engine, loading).await?;
        let mut faults = batch.faults.clone();
        let mut put_size_bytes = 0;
        let mut units = 0;
        for ((number, item), error) in batch.item_numbers.iter().zip(&batch.items).zip(errors) {
            match error {
                Some(error) => faults.push((*number, text_of(error))),
                None => {
                    let size_bytes = item.as_item().size_bytes() as u64;
                    put_size_bytes += size_bytes;
                    units += size_bytes.div_ceil(1_024);
                }
            }
        }
        faults.sort_by_key(|(number, _)| *number);
        for (number, fault) in &faults {
            self.faults.add(object, *number, fault);
        }
        let progress = &mut self.progress;
        progress.records_done += batch.records();
        progress.processed += batch.records();
        progress.errors += faults.len() as u64;
        progress.imported += batch.records() - faults.len() as u64;
        progress.put_size_bytes += put_size_bytes;
        progress.size_bytes = progress.size_bytes_before + batch.size_bytes;
        if let Some(units_per_second) = self.units_per_second {
            let due = Duration::from_secs_f64(units as f64 / units_per_second.max(1) as f64);
            tokio::time::sleep(due.saturating_sub(begin.elapsed())).await;
        }
        Ok(())
    }

    /// Stores the progress, after the report about the records since the last time.
    async fn save_after(&mut self, first_record: u64) -> Result<(), Stop> {
        if let Some(report) = &mut self.faults.report
            && !report.lines.is_empty()
        {
            let object = self.progress.objects_begun;
            let key = format!("{}/error/{object:06}-{first_record:012}.json", report.prefix);
            report.bucket.put(&key, std::mem::take(&mut report.lines).into()).await?;
        }
        self.save().await?;
        if self.job.is_cancelled() { Err(Stop::Cancelled) } else { Ok(()) }
    }

    pub(super) async fn save(&mut self) -> Result<()> {
        self.job.save(self.engine, self.progress.encode()).await
    }

    /// The code and message of a failure, or the error after which the job is tried again.
    pub(super) async fn failure(&mut self, error: &ObjectError) -> Result<(&'static str, String)> {
        match judge(error, &mut self.progress.attempts) {
            Verdict::Failed { code, message } => Ok((code, message)),
            Verdict::Again(error) => {
                self.save().await?;
                Err(error)
            }
        }
    }
}

impl Faults {
    /// Tells what is wrong with a record, in the form of AWS's log events.
    fn add(&mut self, object: &Object, number: u64, fault: &str) {
        let mut writer = Writer::new();
        writer.object(|writer| {
            writer.name("itemS3Pointer").object(|writer| {
                writer.name("bucket").string(&self.bucket);
                writer.name("key").string(&object.key);
                writer.name("itemIndex").integer(number);
            });
            writer.name(self.arn_member).string(&self.arn);
            writer.name("errorMessages").array([fault], |writer, fault| writer.string(fault));
        });
        let event = writer.finish();
        match &mut self.report {
            Some(report) => {
                report.lines.extend_from_slice(&event);
                report.lines.push(b'\n');
            }
            None => {
                let event = String::from_utf8_lossy(&event);
                tracing::warn!(target: "zenobe_import", "{event}");
            }
        }
    }
}

/// The MD5 checksums of the objects that belong to an export, by key.
async fn checksums(
    bucket: &Bucket,
    objects: &[Object],
) -> Result<HashMap<String, String>, ObjectError> {
    let mut keys: Vec<String> =
        objects.iter().filter_map(|object| manifest::files_beside(&object.key)).collect();
    keys.dedup();
    let mut checksums = HashMap::new();
    for key in keys {
        let files = match bucket.get(&key, MANIFEST_SIZE_BYTES_MAX).await {
            Ok(files) => files,
            // The data files may have been copied without their manifest.
            Err(ObjectError::NoSuchKey { .. }) => continue,
            Err(error) => return Err(error),
        };
        let files = manifest::parse_files(&files).unwrap_or_default();
        checksums.extend(files.into_iter().map(|file| (file.key, file.md5)));
    }
    Ok(checksums)
}

/// What PutItem would say.
pub(super) fn text_of(error: Error) -> String {
    engine_error(error, Subject::Items).message().unwrap_or_default().to_owned()
}
