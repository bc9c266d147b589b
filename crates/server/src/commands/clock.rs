//! `zenobe clock`: the time of a running server.

use clap::Subcommand;
use hyper::Method;
use serde_json::Value;

use super::server_connection::{ConnectionArguments, ServerConnection};
use super::{CommandError, print_line};
use crate::time::iso8601;

#[derive(Debug, Subcommand)]
pub enum ClockCommand {
    /// Show the server's time, and whether a clock jump has paused expiry
    #[command(after_help = "Example:\n  zenobe clock status")]
    Status {
        #[command(flatten)]
        connection: ConnectionArguments,
    },
    /// Confirm the server's time after a jump; expiry then resumes
    #[command(after_help = "Example:\n  zenobe clock confirm")]
    Confirm {
        #[command(flatten)]
        connection: ConnectionArguments,
    },
}

pub async fn run(command: ClockCommand) -> Result<(), CommandError> {
    let status = match command {
        ClockCommand::Status { connection } => {
            ServerConnection::new(&connection)?.admin(Method::GET, "clock", None).await?
        }
        ClockCommand::Confirm { connection } => {
            ServerConnection::new(&connection)?.admin(Method::POST, "clock/confirm", None).await?
        }
    };
    print_line(&describe(&status))
}

fn describe(status: &Value) -> String {
    let time = |name: &str| iso8601(status[name].as_u64().unwrap_or_default());
    let now = time("now_ms");
    match status["expiry_paused"].as_bool() {
        Some(true) => format!(
            "{now}, but {} was expected: nothing expires and no stream is trimmed until you run `zenobe clock confirm` or \
             correct the clock",
            time("expected_ms")
        ),
        _ => format!("{now}, as expected"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_jump_is_described_with_what_to_do() {
        let status =
            |is_paused| json!({"now_ms": 86_400_000, "expected_ms": 0, "expiry_paused": is_paused});
        assert_eq!(describe(&status(false)), "1970-01-02T00:00:00.000Z, as expected");
        let paused = describe(&status(true));
        assert!(paused.contains("1970-01-01T00:00:00.000Z was expected"), "{paused}");
        assert!(paused.contains("zenobe clock confirm"), "{paused}");
    }
}
