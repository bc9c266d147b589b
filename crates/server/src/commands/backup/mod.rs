//! `zenobe backup`: backs up a running server, and lists, verifies and prunes what is there.

mod list;
mod progress;
mod prune;
mod verify;

use std::time::Duration;

use clap::{Args, Subcommand};
use hyper::Method;
use serde_json::{Value, json};
use zenobe_load::human_bytes;
use zenobe_transfer::objects::{ObjectLocation, ObjectStoreEndpoint, ObjectStoreOptions};

use super::server_connection::{ConnectionArguments, ServerConnection};
use super::{CommandError, print_line};
use crate::time::iso8601;

pub use progress::BackupDisplay;

/// How often to ask the server how far it is.
const ASK_INTERVAL: Duration = Duration::from_millis(200);

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "The server at --endpoint copies its whole database while it serves: it links its files in milliseconds, reads them to compute checksums, \
and stores those that no earlier backup at the same place has stored. It uses at most a sixteenth of the machine's processors. For s3:// places it uses its \
own --s3-endpoint and access keys. A path is one on the server's machine.\n\n\
The manifest is written last: a backup without one does not count. `zenobe restore` restores a backup.\n\n\
Examples:\n  zenobe backup --to file:///var/backups/zenobe\n  zenobe backup --to s3://bucket/zenobe --endpoint http://127.0.0.1:8000\n  \
zenobe backup list --from file:///var/backups/zenobe\n  zenobe backup verify --from file:///var/backups/zenobe\n  \
zenobe backup prune --from file:///var/backups/zenobe --keep 7"
)]
pub struct BackupArguments {
    /// Where to: a directory on the server's machine, file:///DIRECTORY or s3://BUCKET/PREFIX
    #[arg(long, value_name = "PLACE", required = true)]
    to: Option<String>,
    #[command(flatten)]
    connection: ConnectionArguments,
    #[command(subcommand)]
    command: Option<BackupCommand>,
}

#[derive(Debug, Subcommand)]
pub enum BackupCommand {
    /// List the backups at a place, and the times that can be restored
    List(list::ListArguments),
    /// Restore a backup into a scratch directory, read all of it, and compare it
    Verify(verify::VerifyArguments),
    /// Remove old backups
    Prune(prune::PruneArguments),
}

/// Where backups are, for commands that read them by themselves.
#[derive(Debug, Args)]
pub struct PlaceArguments {
    /// Where the backups are: a directory, file:///DIRECTORY or s3://BUCKET/PREFIX
    #[arg(long, value_name = "PLACE")]
    from: String,
    /// Object store of s3:// places: `aws` or the URL of a server that is compatible with S3. Access keys come from
    /// AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or as usual on AWS
    #[arg(long, env = "ZENOBE_S3_ENDPOINT", default_value = "aws", value_name = "URL")]
    s3_endpoint: ObjectStoreEndpoint,
}

impl PlaceArguments {
    pub fn location(&self) -> Result<ObjectLocation, CommandError> {
        self.from.parse().map_err(|error| CommandError::Refused(format!("--from: {error}")))
    }

    pub fn object_store(&self) -> ObjectStoreOptions {
        ObjectStoreOptions::new(self.s3_endpoint.clone())
    }
}

pub async fn run(arguments: &BackupArguments) -> Result<(), CommandError> {
    match &arguments.command {
        Some(BackupCommand::List(arguments)) => list::run(arguments).await,
        Some(BackupCommand::Verify(arguments)) => verify::run(arguments).await,
        Some(BackupCommand::Prune(arguments)) => prune::run(arguments).await,
        None => back_up(arguments).await,
    }
}

async fn back_up(arguments: &BackupArguments) -> Result<(), CommandError> {
    let to = server_place(arguments.to.as_deref().unwrap_or_default())?;
    let connection = ServerConnection::new(&arguments.connection)?;
    let mut display = BackupDisplay::new();
    let request = json!({ "to": to });
    let mut status = connection.admin(Method::POST, "backup", Some(&request)).await?;
    while !["done", "failed"].contains(&status["stage"].as_str().unwrap_or_default()) {
        display.show_status(&status);
        tokio::time::sleep(ASK_INTERVAL).await;
        status = connection.admin(Method::GET, "backup", None).await?;
    }
    display.end();
    match status["error"].as_str() {
        Some(error) => Err(CommandError::Refused(error.to_owned())),
        None => print_line(&describe(&status)),
    }
}

/// The server may run in another directory than this command.
fn server_place(to: &str) -> Result<String, CommandError> {
    let refused = |problem: String| CommandError::Refused(format!("--to: {problem}"));
    match to.parse::<ObjectLocation>().map_err(|error| refused(error.to_string()))? {
        ObjectLocation::Objects { .. } => Ok(to.to_owned()),
        ObjectLocation::Path(path) if path.as_os_str().is_empty() => {
            Err(refused("expected a directory, file:///DIRECTORY or s3://BUCKET/PREFIX".to_owned()))
        }
        ObjectLocation::Path(path) => {
            let path = std::path::absolute(&path).map_err(|error| refused(error.to_string()))?;
            Ok(path.display().to_string())
        }
    }
}

fn describe(status: &Value) -> String {
    let number = |value: &Value| value.as_u64().unwrap_or_default();
    let files = &status["files"];
    let new = number(&files["total"]) - number(&files["known"]);
    let new_bytes = number(&files["bytes_total"]) - number(&files["bytes_known"]);
    format!(
        "backup {} of {}: {new} new files with {}, {} known with {}; checksums of {} rows in {} ranges",
        status["id"].as_str().unwrap_or_default(),
        iso8601(number(&status["at_ms"])),
        human_bytes(new_bytes as f64),
        number(&files["known"]),
        human_bytes(number(&files["bytes_known"]) as f64),
        number(&status["rows"]),
        number(&status["ranges"]),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_made_absolute_for_the_server() {
        assert_eq!(server_place("s3://b/p").unwrap(), "s3://b/p");
        assert_eq!(server_place("file:///x").unwrap(), "/x");
        assert!(server_place("x").unwrap().starts_with('/'));
        assert!(server_place("").is_err());
        assert!(server_place("gs://x").is_err());
    }
}
