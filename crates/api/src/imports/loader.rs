//! Puts the items of objects into a table, object by object, for imports and for bulk puts.
//!
//! The job's progress names the object being read and how many of its records are done. The write that puts items also
//! stores the progress, so nothing is put twice: a second time could overwrite what a client has written meanwhile, and a
//! condition could fail for what the first time had put. After a crash the object is read again from its start, and the
//! records that are done are skipped.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use zenobe_engine::catalog::Table;
use zenobe_engine::error::{Error, Result};
use zenobe_engine::jobs::Job;
use zenobe_engine::schema::IndexKind;
use zenobe_engine::{Engine, ItemLoad, LoadedSizes};
use zenobe_transfer::objects::{Bucket, Object, ObjectError};
use zenobe_transfer::{export_layout, manifest};
use zenobe_value::EncodedItem;

use super::ImportProgress;
use super::read::{Batch, Reading, batches};
use crate::json::{Writer, write_item};
use crate::messages::engine::{Subject, engine_error};
use crate::object_jobs::{Stop, judge};

/// AWS's limit for one import.
pub(super) const OBJECTS_MAX: usize = 50_000;
/// A manifest of that many objects is smaller.
const MANIFEST_SIZE_BYTES_MAX: u64 = 64 << 20;

/// How records that can't be put are reported: where to, and in which words.
pub(super) struct Faults {
    pub(super) bucket: String,
    /// The ARN of the job, and the member of an event that holds it.
    pub(super) arn: String,
    pub(super) arn_member: &'static str,
    /// Where reports go, instead of the log.
    pub(super) report: Option<Report>,
}

/// Reports in an object store, in parts: each is stored before the step that it is about. If that step is lost, it is stored
/// again under the same key.
pub(super) struct Report {
    pub(super) bucket: Bucket,
    pub(super) prefix: String,
    /// Whether records that can't be put are reported here. If not, they go to the log.
    pub(super) has_errors: bool,
    /// Whether items whose condition has failed are reported here.
    pub(super) has_conditions: bool,
    /// Whether the next step may be one that an earlier attempt has reported, perhaps otherwise.
    pub(super) may_repeat: bool,
}

pub(super) struct Loader<'a> {
    pub(super) engine: &'a Engine,
    pub(super) job: &'a mut Job,
    pub(super) progress: ImportProgress,
    pub(super) faults: Faults,
    /// How many write units per second the job may take.
    pub(super) units_per_second: Option<u64>,
    /// Whether to add up the sizes of the items that it puts.
    pub(super) measures: bool,
}

/// What one atomic write does: some records of a batch.
#[derive(Default)]
struct Step {
    records: u64,
    /// What is wrong with some of them, in their order.
    faults: Vec<(u64, String)>,
    /// Items whose condition has failed, each with the item that was there.
    failed_conditions: Vec<FailedCondition>,
    units: u64,
    sizes: LoadedSizes,
}

struct FailedCondition {
    number: u64,
    item: EncodedItem,
    existing: Option<EncodedItem>,
}

impl Loader<'_> {
    pub(super) async fn load_all(
        &mut self,
        mut table: Arc<Table>,
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
            self.load(&mut table, bucket, object, md5, reading).await?;
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
        table: &mut Arc<Table>,
        bucket: &Bucket,
        object: &Object,
        md5: Option<String>,
        reading: Reading,
    ) -> Result<(), Stop> {
        let mut batches = batches(bucket.read(object, md5), reading);
        while let Some(batch) = batches.recv().await {
            self.put(table, object, batch?).await?;
        }
        Ok(())
    }

    /// Puts the items of a batch. If the table's definition changes meanwhile, `table` becomes the newer one.
    async fn put(
        &mut self,
        table: &mut Arc<Table>,
        object: &Object,
        batch: Batch,
    ) -> Result<(), Stop> {
        self.progress.size_bytes = self.progress.size_bytes_before + batch.size_bytes;
        let (mut first, mut is_done) = (0, batch.records() == 0);
        while !is_done {
            let begin = Instant::now();
            let conditions = batch.conditions.get(first..).unwrap_or_default();
            let items = &batch.items[first..];
            let mut load = ItemLoad::new(table, items, conditions);
            let (step, progress) = loop {
                let mut step = step(&batch, first, &load);
                if self.measures {
                    step.sizes = load.sizes();
                }
                self.faults.store(object, &self.progress, &step).await?;
                let progress = self.progress.after(&step);
                let encoded = progress.encode();
                let loading = self.job.load(self.engine, &mut load, &encoded);
                if self.engine.paced(loading).await? {
                    break (step, progress);
                }
            };
            table.clone_from(load.table());
            self.progress = progress;
            self.faults.log(object, &step.faults);
            if self.job.is_cancelled() {
                return Err(Stop::Cancelled);
            }
            self.rest(&step, begin).await;
            first += load.errors().len();
            is_done = first == batch.items.len();
        }
        Ok(())
    }

    /// Waits until the units that a step took are there.
    async fn rest(&self, step: &Step, begin: Instant) {
        if let Some(units_per_second) = self.units_per_second {
            let due = Duration::from_secs_f64(step.units as f64 / units_per_second.max(1) as f64);
            tokio::time::sleep(due.saturating_sub(begin.elapsed())).await;
        }
    }

    pub(super) async fn save(&mut self) -> Result<()> {
        self.job.save(self.engine, self.progress.encode()).await
    }

    /// The code and message of a failure, or the error after which the job is tried again.
    pub(super) async fn failure(&mut self, error: &ObjectError) -> Result<(&'static str, String)> {
        judge(error, &mut self.progress.attempts).settle(self.save()).await
    }
}

/// What a load does, of whose items the one at `first` of the batch is the first one.
fn step(batch: &Batch, first: usize, load: &ItemLoad<'_>) -> Step {
    let errors = load.errors();
    let end = first + errors.len();
    let from = if first == 0 { 0 } else { batch.item_numbers[first] };
    let until = batch.item_numbers.get(end).copied().unwrap_or(u64::MAX);
    let is_here = |(number, _): &&(u64, String)| (from..until).contains(number);
    let mut step =
        Step { faults: batch.faults.iter().filter(is_here).cloned().collect(), ..Step::default() };
    step.records = (errors.len() + step.faults.len()) as u64;
    let items = batch.item_numbers[first..end].iter().zip(&batch.items[first..end]);
    for ((number, item), error) in items.zip(errors) {
        match error {
            None => step.units += (item.as_item().size_bytes() as u64).div_ceil(1_024),
            Some(Error::ConditionFailed { item: existing }) => {
                let (number, item, existing) = (*number, item.clone(), existing.clone());
                step.failed_conditions.push(FailedCondition { number, item, existing });
            }
            Some(error) => step.faults.push((*number, text_of(error.clone()))),
        }
    }
    step.faults.sort_by_key(|(number, _)| *number);
    step
}

impl ImportProgress {
    fn after(&self, step: &Step) -> ImportProgress {
        let mut progress = self.clone();
        let failed = (step.faults.len() + step.failed_conditions.len()) as u64;
        progress.records_done += step.records;
        progress.processed += step.records;
        progress.errors += step.faults.len() as u64;
        progress.imported += step.records - failed;
        progress.put_size_bytes += step.sizes.table_bytes;
        for (kind, name, size_bytes) in &step.sizes.indexes {
            let sizes = match kind {
                IndexKind::Local => &mut progress.local_indexes_put_size_bytes,
                IndexKind::Global => &mut progress.global_indexes_put_size_bytes,
            };
            *sizes.entry(name.clone()).or_default() += size_bytes;
        }
        progress.failed_conditions += step.failed_conditions.len() as u64;
        progress.attempts = 0;
        progress
    }
}

impl Faults {
    /// Stores the reports about a step that comes after `progress`.
    async fn store(
        &self,
        object: &Object,
        progress: &ImportProgress,
        step: &Step,
    ) -> Result<(), ObjectError> {
        let Some(report) = &self.report else { return Ok(()) };
        let errors = step.faults.iter().map(|(number, fault)| self.error(object, *number, fault));
        let conditions = step.failed_conditions.iter().map(|failed| self.condition(object, failed));
        // Rendered only if wanted: the existing items may be far larger than the ones that were sent.
        let mut reports: Vec<(&str, Vec<u8>)> = Vec::new();
        if report.has_errors {
            reports.push(("error", errors.collect::<Vec<_>>().concat()));
        }
        if report.has_conditions {
            reports.push(("condition-check-failure", conditions.collect::<Vec<_>>().concat()));
        }
        for (folder, lines) in reports {
            if report.may_repeat || !lines.is_empty() {
                let (object, first) = (progress.objects_begun, progress.records_done);
                let key = format!("{}/{folder}/{object:06}-{first:012}.json", report.prefix);
                report.bucket.put(&key, lines.into()).await?;
            }
        }
        Ok(())
    }

    /// Logs the faults of a finished step's records, unless a report lists them.
    fn log(&mut self, object: &Object, faults: &[(u64, String)]) {
        if let Some(report) = &mut self.report {
            report.may_repeat = false;
            if report.has_errors {
                return;
            }
        }
        for (number, fault) in faults {
            let event = self.error(object, *number, fault);
            let event = String::from_utf8_lossy(event.trim_ascii_end());
            tracing::warn!(target: "zenobe_import", "{event}");
        }
    }

    /// Describes a record's fault in the form of AWS's log events.
    fn error(&self, object: &Object, number: u64, fault: &str) -> Vec<u8> {
        self.event(object, number, |writer| {
            writer.name("errorMessages").array([fault], |writer, fault| writer.string(fault));
        })
    }

    fn condition(&self, object: &Object, failed: &FailedCondition) -> Vec<u8> {
        self.event(object, failed.number, |writer| {
            write_item(writer.name("Item"), failed.item.as_item());
            if let Some(existing) = &failed.existing {
                write_item(writer.name("ExistingItem"), existing.as_item());
            }
        })
    }

    fn event(&self, object: &Object, number: u64, what: impl FnOnce(&mut Writer)) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.object(|writer| {
            writer.name("itemS3Pointer").object(|writer| {
                writer.name("bucket").string(&self.bucket);
                writer.name("key").string(&object.key);
                writer.name("itemIndex").integer(number);
            });
            writer.name(self.arn_member).string(&self.arn);
            what(writer);
        });
        let mut event = writer.finish();
        event.push(b'\n');
        event
    }
}

/// The MD5 checksums of the objects that belong to an export, by key.
async fn checksums(
    bucket: &Bucket,
    objects: &[Object],
) -> Result<HashMap<String, String>, ObjectError> {
    let mut keys: Vec<String> =
        objects.iter().filter_map(|object| export_layout::files_beside(&object.key)).collect();
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
