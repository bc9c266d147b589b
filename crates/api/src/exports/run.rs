//! Runs an export: reads the table as of its stamp, and writes data file after data file, and the manifests last.
//!
//! A data file is stored whole, and its key depends only on the export and its number. The progress says which files are stored
//! and where the next one begins. So after an interruption the export continues with the next file, and overwrites a file
//! that was stored but not noted under the same key. `manifest-summary.json` is stored last: once it exists, the export is complete.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, try_join, try_join_all};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::spawn_blocking;
use xxhash_rust::xxh3::xxh3_128;
use zenobe_engine::Engine;
use zenobe_engine::clock::iso8601_without_zone;
use zenobe_engine::error::{Error, Result};
use zenobe_engine::export::ExportSource;
use zenobe_engine::jobs::{FailedTable, Job, JobHandler};
use zenobe_transfer::export_layout::Layout;
use zenobe_transfer::manifest::{self, ExportWindow, Summary};
use zenobe_transfer::objects::{Bucket, ObjectStoreOptions};

use super::files::{OpenFile, Part, Rendering, WholeFile};
use super::progress::WrittenFile;
use super::{
    BoundFilter, EXPORT_VIEW, ExportParameters, ExportProgress, ExportView, KIND, SSE_ALGORITHM,
    arn_of_table, billed_size_bytes, export_arn,
};
use crate::object_jobs::{Stop, damaged, judge, object_store};

/// How many steps are rendered at the same time. It bounds the memory that they take, and the processors that they keep busy.
const STEPS_PER_SLICE: usize = 4;

/// Does the jobs of ExportTableToPointInTime.
pub struct Exporter {
    object_store: Option<ObjectStoreOptions>,
}

impl Exporter {
    pub fn new(object_store: Option<ObjectStoreOptions>) -> Exporter {
        Exporter { object_store }
    }
}

impl JobHandler for Exporter {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn run<'a>(&'a self, engine: &'a Engine, job: &'a mut Job) -> BoxFuture<'a, Result<()>> {
        async move {
            let object_store = object_store(self.object_store.as_ref(), "an export")?;
            let progress = ExportProgress::decode(&job.row().progress);
            let parameters = ExportParameters::decode(&job.row().parameters);
            let mut export = Export { engine, job, progress };
            let outcome = match parameters {
                Some(parameters) => export.run(&parameters, object_store).await,
                None => Err(damaged()),
            };
            export.end(outcome).await
        }
        .boxed()
    }
}

struct Export<'a> {
    engine: &'a Engine,
    job: &'a mut Job,
    progress: ExportProgress,
}

/// Where the files of an export go.
struct Destination<'a> {
    parameters: &'a ExportParameters,
    bucket: Bucket,
    layout: Layout,
}

impl Export<'_> {
    async fn run(
        &mut self,
        parameters: &ExportParameters,
        object_store: &ObjectStoreOptions,
    ) -> Result<(), Stop> {
        let given = &parameters.given;
        let encryption = given.sse().encryption(given.kms_key.as_deref());
        let destination = Destination {
            parameters,
            bucket: Bucket::open_encrypted(object_store, &given.bucket, &encryption)?,
            layout: parameters.layout(&self.job.row().id),
        };
        if self.progress.files.is_empty() {
            destination.put(&destination.layout.started(), Vec::new()).await?;
        }
        if !self.progress.is_written {
            self.write_data(&destination).await?;
        }
        self.write_manifests(&destination).await
    }

    /// Reads, renders and stores, all at the same time.
    async fn write_data(&mut self, destination: &Destination<'_>) -> Result<(), Stop> {
        let parameters = destination.parameters;
        let bound = parameters.given.filter.as_ref().map(|filter| filter.bind()).transpose();
        let BoundFilter { filter, projection, .. } =
            bound.map_err(|_| damaged())?.unwrap_or_default();
        let rendering = Rendering {
            format: parameters.given.format(),
            view: parameters.given.incremental.map_or(ExportView::NewImage, |it| it.view()),
            keys: parameters.keys.clone(),
            filter,
            projection,
        };
        let source = ExportReader {
            engine: self.engine,
            source: &parameters.source,
            rendering: Arc::new(rendering),
        };
        // One file is stored while the next one is filled.
        let (full, files) = channel(1);
        let reading = source.read(self.progress.position.clone(), full);
        try_join(reading, self.store(destination, files)).await?;
        Ok(())
    }

    async fn store(
        &mut self,
        destination: &Destination<'_>,
        mut files: Receiver<WholeFile>,
    ) -> Result<(), Stop> {
        while let Some(file) = files.recv().await {
            let key = destination.data_file(self.progress.files.len());
            let stored = destination.bucket.put_checked(&key, file.bytes).await?;
            let progress = &mut self.progress;
            let etag = stored.etag.unwrap_or_default();
            progress.files.push(WrittenFile { items: file.items, md5: stored.md5, etag });
            progress.items += file.items;
            progress.size_bytes += file.size_bytes;
            progress.is_written = file.position.is_none();
            progress.position = file.position;
            progress.attempts = 0;
            self.save().await?;
        }
        match self.progress.is_written {
            true => Ok(()),
            false => {
                let detail = "the files of an export ended before the table".to_owned();
                Err(Error::Unavailable { detail }.into())
            }
        }
    }

    /// The summary comes last: it says that everything is there.
    async fn write_manifests(&mut self, destination: &Destination<'_>) -> Result<(), Stop> {
        let layout = &destination.layout;
        let files: Vec<manifest::DataFile> = self
            .progress
            .files
            .iter()
            .enumerate()
            .map(|(at, file)| destination.line(at, file))
            .collect();
        let files = manifest::files_to_json(&files);
        let summary = self.summary(destination).to_json();
        let md5 = |bytes: &[u8]| manifest::md5_base64(bytes).into_bytes();
        destination.put(&layout.files_md5(), md5(&files)).await?;
        destination.put(&layout.files(), files).await?;
        destination.put(&layout.summary_md5(), md5(&summary)).await?;
        destination.put(&layout.summary(), summary).await
    }

    fn summary(&self, destination: &Destination<'_>) -> Summary {
        let Destination { parameters, layout, .. } = destination;
        let (given, row) = (&parameters.given, self.job.row());
        let time = |at_ms: u64| format!("{}Z", iso8601_without_zone(at_ms));
        let window = match given.incremental {
            None => {
                let at_ms = given.export_time_ms.unwrap_or(row.started_at_ms);
                ExportWindow::Full { export_time: time(at_ms) }
            }
            Some(incremental) => ExportWindow::Incremental {
                from: time(incremental.from_ms),
                to: time(parameters.to_ms),
                output_view: EXPORT_VIEW.name_of(&incremental.view()).to_owned(),
            },
        };
        Summary {
            export_arn: export_arn(row),
            start_time: time(row.started_at_ms),
            end_time: time(self.engine.clock().now_ms()),
            table_arn: arn_of_table(row),
            table_id: parameters.table_id.clone(),
            window,
            bucket: given.bucket.clone(),
            prefix: given.prefix.clone(),
            sse_algorithm: SSE_ALGORITHM.name_of(&given.sse()).to_owned(),
            sse_kms_key_id: given.kms_key.clone(),
            files_key: layout.files(),
            billed_size_bytes: billed_size_bytes(parameters, &self.progress),
            item_count: self.progress.items,
            format: given.format(),
        }
    }

    async fn save(&mut self) -> Result<()> {
        self.job.save(self.engine, self.progress.encode()).await
    }

    async fn end(mut self, outcome: Result<(), Stop>) -> Result<()> {
        let (code, message) = match outcome {
            Ok(()) => return self.job.finish(self.engine, self.progress.ended().encode()).await,
            Err(Stop::Engine(error)) => return Err(error),
            Err(Stop::Failed { code, message }) => (code, message),
            Err(Stop::Cancelled) => ("Cancelled", "The export was cancelled".to_owned()),
            Err(Stop::Objects(error)) => {
                let verdict = judge(&error, &mut self.progress.attempts);
                verdict.settle(self.save()).await?
            }
        };
        let progress = self.progress.ended().encode();
        self.job.fail(self.engine, code, &message, progress, FailedTable::Keep).await
    }
}

impl Destination<'_> {
    async fn put(&self, key: &str, bytes: Vec<u8>) -> Result<(), Stop> {
        self.bucket.put_checked(key, bytes.into()).await?;
        Ok(())
    }

    /// The key of a data file, by its number.
    fn data_file(&self, number: usize) -> String {
        let ExportParameters { given, source, seed, .. } = self.parameters;
        let random = xxh3_128(format!("{seed}/{number}").as_bytes());
        self.layout.data_file(random, given.format(), source.is_incremental())
    }

    fn line(&self, number: usize, file: &WrittenFile) -> manifest::DataFile {
        manifest::DataFile {
            item_count: file.items,
            md5: manifest::base64(&file.md5),
            etag: file.etag.trim_matches('"').to_owned(),
            key: self.data_file(number),
        }
    }
}

/// What an export reads, and how it is rendered.
struct ExportReader<'a> {
    engine: &'a Engine,
    source: &'a ExportSource,
    rendering: Arc<Rendering>,
}

impl ExportReader<'_> {
    /// Reads slice after slice, and joins what they yield into files. A slice's time includes both reading and rendering, and the
    /// export rests in proportion to it.
    async fn read(
        &self,
        mut position: Option<Vec<u8>>,
        files: Sender<WholeFile>,
    ) -> Result<(), Stop> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = cores.min(STEPS_PER_SLICE) as u32;
        let mut file = OpenFile::default();
        loop {
            for part in self.engine.paced_on(threads, self.slice(position.as_deref())).await? {
                file.add(&part);
                let is_last = part.position.is_none();
                position = part.position;
                if is_last || file.is_full() {
                    let full = std::mem::take(&mut file).close(position.clone());
                    // If nobody receives files any more, the receiver has failed, and reports why.
                    if files.send(full).await.is_err() || is_last {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Reads some steps, and renders each on a thread of its own while the next one is read.
    async fn slice(&self, position: Option<&[u8]>) -> Result<Vec<Part>, Stop> {
        let mut position = position.map(<[u8]>::to_vec);
        let mut rendered = Vec::with_capacity(STEPS_PER_SLICE);
        loop {
            let read = self.engine.read_export(self.source, position.as_deref()).await?;
            let step = read.ok_or_else(gone)?;
            position = step.position.clone();
            let rendering = Arc::clone(&self.rendering);
            rendered.push(spawn_blocking(move || rendering.render(step)));
            if position.is_none() || rendered.len() == STEPS_PER_SLICE {
                break;
            }
        }
        let rendered = try_join_all(rendered).await;
        let is_gone =
            |_| Error::Unavailable { detail: "an export could not be rendered".to_owned() };
        Ok(rendered.map_err(is_gone)?)
    }
}

fn gone() -> Stop {
    Stop::Failed {
        code: "PointInTimeRecoveryUnavailable",
        message: "Point in time recovery was switched off while the table was exported".to_owned(),
    }
}
