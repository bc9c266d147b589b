//! Connects to the database, and finds or creates the store's tables.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;
use zenobe_store::Error;

use crate::connect::Hosts;
use crate::dialect::Dialect;
use crate::options::Options;
use crate::sql::{CREATE, CREATE_POSTGRES, SCHEMA_VERSION};
use crate::statement_error::{StatementError, text};

const RETRY_PAUSE: Duration = Duration::from_millis(100);

/// Waits for the store as long as a request would, creates missing tables, and returns the dialect.
pub async fn prepare(hosts: &Hosts, options: &Options) -> Result<Dialect, Error> {
    let deadline = Instant::now() + options.patience;
    loop {
        let attempt = timeout(options.patience, try_prepare(hosts)).await;
        let detail = match attempt {
            Ok(Ok(dialect)) => return Ok(dialect),
            Ok(Err(Attempt::Refused(detail))) => return Err(Error::Open { detail }),
            Ok(Err(Attempt::Again(detail))) => detail,
            Err(_) => "no response in time".to_owned(),
        };
        if Instant::now() >= deadline {
            let detail = format!("the store cannot be reached: {detail}");
            return Err(Error::Open { detail });
        }
        sleep(RETRY_PAUSE).await;
    }
}

enum Attempt {
    Again(String),
    Refused(String),
}

impl From<tokio_postgres::Error> for Attempt {
    fn from(error: tokio_postgres::Error) -> Attempt {
        let detail = text(&error);
        // `IF NOT EXISTS` does not keep two nodes from failing when they create the same table at once.
        let collisions = [SqlState::DUPLICATE_OBJECT, SqlState::DUPLICATE_TABLE];
        if error.code().is_some_and(|code| collisions.contains(code)) {
            return Attempt::Again(detail);
        }
        match StatementError::from(error) {
            StatementError::Lost(_) | StatementError::Conflict => Attempt::Again(detail),
            StatementError::Refused(_) | StatementError::NoCounter => Attempt::Refused(detail),
        }
    }
}

impl From<StatementError> for Attempt {
    fn from(error: StatementError) -> Attempt {
        match error {
            StatementError::Lost(detail) => Attempt::Again(detail),
            StatementError::Refused(detail) => Attempt::Refused(detail),
            other => Attempt::Refused(other.into_error().to_string()),
        }
    }
}

async fn try_prepare(hosts: &Hosts) -> Result<Dialect, Attempt> {
    let client = hosts.connect().await?;
    let version: String = client.query_one("SELECT version()", &[]).await?.get(0);
    let dialect = Dialect::of(&version).map_err(|error| match error {
        Error::Open { detail } => Attempt::Refused(detail),
        other => Attempt::Refused(other.to_string()),
    })?;
    if !dialect.is_tested() {
        tracing::warn!(
            version,
            "this store speaks PostgreSQL's protocol, but Zenobe is not tested on it"
        );
    }
    if !has_schema(&client).await? {
        create(&client, dialect).await?;
    }
    check_version(&client).await?;
    Ok(dialect)
}

async fn has_schema(client: &Client) -> Result<bool, Attempt> {
    let query = "SELECT 1 FROM information_schema.tables
                 WHERE table_name = 'zenobe_schema' AND table_schema = ANY (current_schemas(false))";
    Ok(client.query_opt(query, &[]).await?.is_some())
}

/// Writes the row with the version last: if it is there, all tables are.
async fn create(client: &Client, dialect: Dialect) -> Result<(), Attempt> {
    let statements = match dialect {
        Dialect::Postgres => CREATE_POSTGRES,
        Dialect::Cockroach | Dialect::Yugabyte => CREATE,
    };
    for statement in statements {
        client.batch_execute(statement).await?;
    }
    let insert =
        "INSERT INTO zenobe_schema (one, version) VALUES (1, $1) ON CONFLICT (one) DO NOTHING";
    client.execute(insert, &[&SCHEMA_VERSION]).await?;
    Ok(())
}

async fn check_version(client: &Client) -> Result<(), Attempt> {
    let row = client.query_opt("SELECT version FROM zenobe_schema WHERE one = 1", &[]).await?;
    match row.map(|row| row.get::<_, i32>(0)) {
        Some(SCHEMA_VERSION) => Ok(()),
        // Another node is about to write it.
        None => Err(Attempt::Again("its tables are being created".to_owned())),
        Some(newer) => Err(Attempt::Refused(format!(
            "its tables have version {newer}, and this Zenobe knows versions up to {SCHEMA_VERSION}: \
             use the newer Zenobe that made them"
        ))),
    }
}
