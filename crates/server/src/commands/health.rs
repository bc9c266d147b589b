//! `zenobe health`: for container health checks, so that images need no other client.

use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use hyper::Method;
use hyper::header::HeaderMap;

use super::{CommandError, print_bytes, print_line};
use crate::outbound::{self, Outgoing, Url};

const TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug, Args)]
#[command(
    after_help = "Exits with 0 if the server can read and write, and with 1 otherwise.\n\nExample:\n  \
zenobe health --endpoint http://127.0.0.1:8000"
)]
pub struct HealthArguments {
    /// Address of the server
    #[arg(
        long,
        env = "ZENOBE_ENDPOINT",
        default_value = "http://127.0.0.1:8000",
        value_name = "URL"
    )]
    endpoint: String,
    /// Only check whether the server answers at all
    #[arg(long)]
    live: bool,
}

pub async fn run(arguments: &HealthArguments) -> Result<(), CommandError> {
    let url: Url = arguments.endpoint.parse()?;
    let path = if arguments.live { "/_zenobe/health/live" } else { "/_zenobe/health/ready" };
    let (headers, body) = (HeaderMap::new(), Bytes::new());
    let outgoing = Outgoing { method: Method::GET, path: path.to_owned(), headers, body };
    let answered = outbound::send(&url, outgoing, TIMEOUT).await?;
    let text = String::from_utf8_lossy(&answered.body);
    match answered.is_success() {
        true if text.ends_with('\n') => print_bytes(text.as_bytes()),
        true => print_line(&text),
        false => {
            let status = answered.status;
            Err(CommandError::Refused(format!("{url} is not ready: {status} {}", text.trim_end())))
        }
    }
}
