//! Logs go to standard error.

use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{fmt, registry};

use crate::config::{LogFormat, Settings};

pub fn start(settings: &Settings) {
    let colours = std::io::IsTerminal::is_terminal(&std::io::stderr());
    let lines = fmt::layer().with_writer(std::io::stderr).with_ansi(colours);
    let filtered = registry().with(settings.log.clone());
    match settings.log_format {
        LogFormat::Text => filtered.with(lines).init(),
        LogFormat::Json => filtered.with(lines.json()).init(),
    }
}
