//! The options that `zenobe export` and `zenobe import` share.

use clap::Args;
use zenobe_load::{LoadError, Target};
use zenobe_transfer::objects::ObjectStoreEndpoint;

use super::server_connection::ConnectionArguments;

#[derive(Debug, Args)]
pub struct TransferArguments {
    #[command(flatten)]
    connection: ConnectionArguments,
    /// Object store of s3:// places: `aws` or the URL of a server that is compatible with S3
    #[arg(long, env = "ZENOBE_S3_ENDPOINT", default_value = "aws", value_name = "URL")]
    pub s3_endpoint: ObjectStoreEndpoint,
    /// Show no progress
    #[arg(long, short)]
    pub quiet: bool,
}

impl TransferArguments {
    /// The server whose table is read or written.
    pub fn target(&self) -> Result<Target, LoadError> {
        Target::from_environment(&self.connection.endpoint, &self.connection.region)
    }
}

/// What an export or an import runs in.
pub fn transfer_runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()
}
