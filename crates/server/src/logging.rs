//! Logs go to standard error.

use std::borrow::Cow;

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

/// How much of a foreign text to keep in a log line or a response.
const FOREIGN_TEXT_LENGTH_MAX: usize = 500;

/// The start of a foreign text, and how much is left out.
pub fn shortened(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(FOREIGN_TEXT_LENGTH_MAX) {
        None => Cow::Borrowed(text),
        Some((end, _)) => {
            let left_out = text.len() - end;
            Cow::Owned(format!("{}… ({left_out} more bytes)", &text[..end]))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_between_characters() {
        let text = "é".repeat(FOREIGN_TEXT_LENGTH_MAX);
        assert_eq!(shortened(&text), text);
        let longer = format!("{text}éa");
        assert_eq!(shortened(&longer), format!("{text}… (3 more bytes)"));
    }
}
