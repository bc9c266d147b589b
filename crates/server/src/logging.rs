//! Logs go to standard error.

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;

use crate::config::{LogFormat, Settings};

pub fn start(settings: &Settings) {
    // The filter was checked with the settings; what could still be wrong in it is ignored.
    let filter = EnvFilter::builder().parse_lossy(&settings.log);
    let colours = std::io::IsTerminal::is_terminal(&std::io::stderr());
    let builder = fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(colours);
    match settings.log_format {
        LogFormat::Text => builder.init(),
        LogFormat::Json => builder.json().init(),
    }
}
