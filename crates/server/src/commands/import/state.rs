//! How far an import is, in a file, so that it can be continued.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::ImportError;

pub struct ImportState {
    path: Option<PathBuf>,
    source: String,
    table: String,
    done: BTreeSet<String>,
    current: Option<(String, u64)>,
}

impl ImportState {
    /// The state of an earlier run with the same source and table, or a new one.
    pub fn open(path: Option<PathBuf>, source: &str, table: &str) -> ImportState {
        let mut state = ImportState {
            source: source.to_owned(),
            table: table.to_owned(),
            done: BTreeSet::new(),
            current: None,
            path,
        };
        let text = state.path.as_ref().and_then(|path| std::fs::read(path).ok());
        let stored: Option<Value> = text.and_then(|text| serde_json::from_slice(&text).ok());
        if let Some(stored) = stored.filter(|it| it["source"] == source && it["table"] == table) {
            let done = stored["done"].as_array().map(Vec::as_slice).unwrap_or_default();
            state.done = done.iter().filter_map(Value::as_str).map(str::to_owned).collect();
            let current = (stored["current"].as_str(), stored["records"].as_u64());
            if let (Some(current), Some(records)) = current {
                state.current = Some((current.to_owned(), records));
            }
        }
        state
    }

    pub fn is_done(&self, key: &str) -> bool {
        self.done.contains(key)
    }

    /// How many records of a file are written.
    pub fn records(&self, key: &str) -> u64 {
        self.current.as_ref().filter(|(current, _)| current == key).map_or(0, |(_, done)| *done)
    }

    pub fn advance(&mut self, key: &str, records: u64) -> Result<(), ImportError> {
        self.current = Some((key.to_owned(), records));
        self.save()
    }

    pub fn complete(&mut self, key: &str) -> Result<(), ImportError> {
        self.done.insert(key.to_owned());
        self.current = None;
        self.save()
    }

    /// The import has ended, and nothing is left to continue.
    pub fn remove(&self) {
        if let Some(path) = &self.path {
            // It may never have been written.
            let _ = std::fs::remove_file(path);
        }
    }

    fn save(&self) -> Result<(), ImportError> {
        let Some(path) = &self.path else { return Ok(()) };
        let (current, records) = match &self.current {
            Some((current, records)) => (Some(current), *records),
            None => (None, 0),
        };
        let state = json!({
            "source": self.source,
            "table": self.table,
            "done": self.done,
            "current": current,
            "records": records,
        });
        // Renamed into place, so that an interruption leaves the old one or the new one.
        let partial = path.with_extension("state-new");
        let written = std::fs::write(&partial, state.to_string())
            .and_then(|()| std::fs::rename(&partial, path));
        written.map_err(|error| ImportError::Write { path: path.clone(), error })
    }
}
