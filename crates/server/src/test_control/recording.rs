//! Records requests and how they were answered, one JSON object per line, for `zenobe test replay`.

use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::thread::JoinHandle;
use std::time::Instant;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use zenobe_api::{Operation, RequestId, Response};

/// How many lines may wait for the disk. Requests beyond that wait as well.
const LINES_MAX: usize = 1_024;

pub struct RequestRecorder {
    started: Instant,
    lines: Mutex<Option<mpsc::Sender<String>>>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl RequestRecorder {
    /// Starts a new file; an earlier one of this name is lost.
    pub fn create(path: &Path) -> io::Result<RequestRecorder> {
        let file = std::fs::File::create(path)?;
        let (sender, receiver) = mpsc::channel(LINES_MAX);
        let path = path.to_owned();
        let writer =
            std::thread::Builder::new().name("zenobe-recorder".into()).spawn(move || {
                if let Err(error) = write_lines(BufWriter::new(file), receiver) {
                    let path = path.display();
                    tracing::error!(%path, %error, "the recording cannot be written and ends here");
                }
            })?;
        Ok(RequestRecorder {
            started: Instant::now(),
            lines: Mutex::new(Some(sender)),
            writer: Mutex::new(Some(writer)),
        })
    }

    /// The time of a request that arrives now.
    pub fn at_ms(&self) -> f64 {
        self.started.elapsed().as_secs_f64() * 1_000.0
    }

    /// Records an answered request, or one whose connection was dropped.
    pub async fn record(
        &self,
        at_ms: f64,
        operation: Operation,
        body: &[u8],
        response: Option<&Response>,
    ) {
        // What is not JSON is kept as a text, so that a replay sends the same again.
        let body = serde_json::from_slice(body)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(body).into_owned()));
        let id = RequestId::current();
        let line = json!({
            "request_id": id.as_ref().map(RequestId::as_str),
            "at_ms": (at_ms * 1_000.0).round() / 1_000.0,
            "operation": operation.name(),
            "body": body,
            "status": response.map(|response| response.status),
            "error": response.and_then(|response| response.error),
        });
        let lines = self.lines.lock().clone();
        if let Some(lines) = lines {
            // If the writer has failed, it has said so.
            let _ = lines.send(line.to_string()).await;
        }
    }

    /// Writes the lines that are still waiting, and ends the recording.
    pub fn finish(&self) {
        drop(self.lines.lock().take());
        if let Some(writer) = self.writer.lock().take() {
            // Its panic has been reported already.
            let _ = writer.join();
        }
    }
}

/// Whenever no line waits, the file is complete.
fn write_lines(mut file: impl Write, mut lines: mpsc::Receiver<String>) -> io::Result<()> {
    while let Some(line) = lines.blocking_recv() {
        writeln!(file, "{line}")?;
        if lines.is_empty() {
            file.flush()?;
        }
    }
    file.flush()
}
