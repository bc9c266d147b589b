//! A server for examples, and the check of their output.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use crate::documents;
use crate::process::{self, Failure};

const EXPECTED: &str = "Sinnerman: 2 plays";

pub struct Server {
    child: Child,
    endpoint: String,
}

impl Server {
    pub fn start() -> Result<Server, Failure> {
        let mut child = Command::new(documents::server_binary())
            .args(["serve", "--memory", "--listen", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| Failure::new(format!("cannot run the server: {error}")))?;
        let output = child.stdout.take().ok_or_else(|| Failure::new("the server has no output"))?;
        let endpoint = BufReader::new(output).lines().map_while(Result::ok).find_map(|line| {
            line.split_whitespace().find(|word| word.starts_with("http://")).map(str::to_owned)
        });
        let endpoint = endpoint.ok_or_else(|| Failure::new("the server printed no address"))?;
        Ok(Server { child, endpoint })
    }

    /// Runs an example as docs/clients.md says: the environment names the server.
    pub fn check(&self, language: &str, example: &mut Command) -> Result<(), Failure> {
        let printed = process::output(
            example
                .env("AWS_ENDPOINT_URL_DYNAMODB", &self.endpoint)
                .env("AWS_ACCESS_KEY_ID", "local")
                .env("AWS_SECRET_ACCESS_KEY", "local")
                .env("AWS_REGION", "us-east-1")
                .env("AWS_DEFAULT_REGION", "us-east-1")
                .env("AWS_EC2_METADATA_DISABLED", "true")
                .env_remove("AWS_PROFILE"),
        )
        .map_err(|failure| Failure::new(format!("{language}: {failure}")))?;
        // Maven prints a terminal reset before the program's output.
        match printed.lines().any(|line| line.ends_with(EXPECTED)) {
            true => Ok(()),
            false => Err(Failure::new(format!("{language} prints `{}`", printed.trim()))),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The server keeps nothing, and nobody needs to know if it is already gone.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
