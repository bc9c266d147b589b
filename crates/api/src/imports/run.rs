//! Runs an import: lists the objects, creates the table, and puts item after item into it.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use zenobe_engine::Engine;
use zenobe_engine::catalog::Table;
use zenobe_engine::command::{CreateTable, TableName};
use zenobe_engine::error::{Error, Result};
use zenobe_engine::jobs::{FailedTable, Job, JobHandler};
use zenobe_engine::schema::Filling;
use zenobe_transfer::objects::{Bucket, ObjectStoreOptions};

use super::loader::{Faults, Loader, OBJECTS_MAX};
use super::read::Reading;
use super::{ImportParameters, ImportProgress, KIND, import_arn};
use crate::messages::engine::{Subject, engine_error};
use crate::messages::transfer::ITEMS_FAILED;
use crate::object_jobs::{Stop, damaged, object_store};

/// Does the jobs of ImportTable.
pub struct Importer {
    object_store: Option<ObjectStoreOptions>,
}

impl Importer {
    pub fn new(object_store: Option<ObjectStoreOptions>) -> Importer {
        Importer { object_store }
    }
}

impl JobHandler for Importer {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn run<'a>(&'a self, engine: &'a Engine, job: &'a mut Job) -> BoxFuture<'a, Result<()>> {
        async move {
            let object_store = object_store(self.object_store.as_ref(), "an import")?;
            let row = job.row();
            let parameters = ImportParameters::decode(&row.parameters);
            let faults = Faults {
                bucket: parameters.as_ref().map_or_else(String::new, |it| it.bucket.clone()),
                arn: import_arn(&row.namespace, row),
                arn_member: "importArn",
                report: None,
            };
            let progress = ImportProgress::decode(&row.progress);
            let mut loader =
                Loader { engine, job, progress, faults, units_per_second: None, measures: false };
            match run(&mut loader, parameters, object_store).await {
                Ok(()) => finish(loader).await,
                Err(stop) => end(loader, stop).await,
            }
        }
        .boxed()
    }
}

async fn run(
    loader: &mut Loader<'_>,
    parameters: Option<ImportParameters>,
    object_store: &ObjectStoreOptions,
) -> Result<(), Stop> {
    let row = loader.job.row();
    let parameters = parameters.ok_or_else(damaged)?;
    let name = TableName {
        namespace: Arc::new(row.namespace.clone()),
        name: row.table.clone().ok_or_else(damaged)?,
    };
    let creation = parameters.creation(name).map_err(|_| damaged())?;
    // Before the table: an import from a bucket that is missing creates none.
    let bucket = Bucket::open(object_store, &parameters.bucket)?;
    let prefix = parameters.prefix.as_deref().unwrap_or_default();
    let objects = bucket.list(prefix, OBJECTS_MAX).await?;
    let reading = Reading {
        format: parameters.format,
        compression: parameters.compression,
        csv: parameters.csv(&creation),
        takes_conditions: false,
        skip: 0,
    };
    let table = table(loader, creation).await?;
    loader.load_all(table, &bucket, &objects, &reading).await
}

/// The table, which an earlier attempt may have created.
async fn table(loader: &mut Loader<'_>, creation: CreateTable) -> Result<Arc<Table>, Stop> {
    let (name, id) = (creation.table.clone(), loader.job.row().id.clone());
    let table = match loader.engine.filling_table(&name, &id).await? {
        Some(table) => table,
        None => {
            let filling = Filling { job_kind: KIND.to_owned(), job_id: id, source: None };
            let lease = loader.job.lease();
            let created = loader.engine.create_filling_table(creation, filling, lease).await;
            created.map_err(|error| match error {
                Error::TableExists { name } | Error::TableFilling { name } => Stop::Failed {
                    code: "TableAlreadyExists",
                    message: format!("Table already exists: {name}"),
                },
                Error::Limit(_) => {
                    let subject =
                        Subject::Table { name: &name.name, region: &name.namespace.region };
                    let text =
                        engine_error(error, subject).message().unwrap_or_default().to_owned();
                    Stop::Failed { code: "LimitExceeded", message: text }
                }
                other => Stop::Engine(other),
            })?
        }
    };
    loader.progress.table_id = Some(table.definition().uuid.clone());
    loader.save().await?;
    Ok(table)
}

async fn finish(loader: Loader<'_>) -> Result<()> {
    let progress = loader.progress.encode();
    match loader.progress.errors {
        0 => loader.job.finish(loader.engine, progress).await,
        _ => {
            let (code, table) = ("ItemValidationError", FailedTable::Keep);
            loader.job.fail(loader.engine, code, ITEMS_FAILED, progress, table).await
        }
    }
}

async fn end(mut loader: Loader<'_>, stop: Stop) -> Result<()> {
    let (code, message) = match stop {
        Stop::Engine(error) => return Err(error),
        Stop::Failed { code, message } => (code, message),
        Stop::Objects(error) => loader.failure(&error).await?,
        Stop::Cancelled => {
            let progress = loader.progress.encode();
            return loader.job.cancel(loader.engine, progress, FailedTable::Delete).await;
        }
    };
    let progress = loader.progress.encode();
    loader.job.fail(loader.engine, code, &message, progress, FailedTable::Delete).await
}
