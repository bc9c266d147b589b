//! How far an import is, in a file, so that it can be continued.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::ImportError;
use super::report::Report;

/// The form of the file.
const VERSION: u64 = 2;

/// What an import does. Records that one import has written are written only for those that do the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Purpose {
    pub source: String,
    pub endpoint: String,
    pub table: String,
    /// How files are read.
    pub reading: String,
    /// What replaces values; see [`AnonymiseRules::fingerprint`](zenobe_transfer::anonymise::AnonymiseRules::fingerprint).
    pub rules: String,
}

pub struct ImportState {
    path: Option<PathBuf>,
    purpose: Purpose,
    /// The version of each file that is written.
    done: BTreeMap<String, String>,
    current: Option<Current>,
}

struct Current {
    file: String,
    version: String,
    records: u64,
}

impl ImportState {
    /// The state of an earlier run, with its report, or new ones.
    pub fn open(
        path: Option<PathBuf>,
        purpose: Purpose,
    ) -> Result<(ImportState, Report), ImportError> {
        let mut state = ImportState { path, purpose, done: BTreeMap::new(), current: None };
        let Some(path) = state.path.clone() else { return Ok((state, Report::default())) };
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok((state, Report::default()));
            }
            Err(error) => {
                let file = path.display().to_string();
                return Err(ImportError::Read { file, error: error.to_string() });
            }
        };
        let stored = serde_json::from_slice(&bytes).unwrap_or_default();
        let Some(report) = state.read(&stored) else {
            return Err(ImportError::UnreadableState { path });
        };
        match state.purpose.difference(&stored["purpose"]) {
            Some(what) => Err(ImportError::OtherState { path, what }),
            None => Ok((state, report)),
        }
    }

    /// Takes everything but the purpose from a file.
    fn read(&mut self, stored: &Value) -> Option<Report> {
        if stored["version"] != VERSION {
            return None;
        }
        for (file, version) in stored["done"].as_object()? {
            self.done.insert(file.clone(), version.as_str()?.to_owned());
        }
        if let Some(current) = stored["current"].as_object() {
            self.current = Some(Current {
                file: current.get("file")?.as_str()?.to_owned(),
                version: current.get("version")?.as_str()?.to_owned(),
                records: current.get("records")?.as_u64()?,
            });
        }
        Report::from_json(&stored["report"])
    }

    /// Whether this version of a file is written.
    ///
    /// # Errors
    /// If another version of it is: then nobody knows which records are.
    pub fn is_done(&self, file: &str, version: &str) -> Result<bool, ImportError> {
        let current = self.current.as_ref().filter(|current| current.file == file);
        let known = self.done.get(file).or_else(|| current.map(|current| &current.version));
        match (known, &self.path) {
            (Some(known), Some(path)) if known != version => {
                let (file, path) = (file.to_owned(), path.clone());
                Err(ImportError::Changed { file, path })
            }
            _ => Ok(self.done.contains_key(file)),
        }
    }

    /// How many records of a file are written.
    pub fn records(&self, file: &str) -> u64 {
        let current = self.current.as_ref().filter(|current| current.file == file);
        current.map_or(0, |current| current.records)
    }

    /// Remembers how many records of a file are written, and what became of all records so far.
    pub fn advance(
        &mut self,
        file: &str,
        version: &str,
        records: u64,
        report: &Report,
    ) -> Result<(), ImportError> {
        let (file, version) = (file.to_owned(), version.to_owned());
        self.current = Some(Current { file, version, records });
        self.save(report)
    }

    pub fn complete(
        &mut self,
        file: &str,
        version: &str,
        report: &Report,
    ) -> Result<(), ImportError> {
        self.done.insert(file.to_owned(), version.to_owned());
        self.current = None;
        self.save(report)
    }

    /// The import has ended, and nothing is left to continue.
    pub fn remove(&self) {
        if let Some(path) = &self.path {
            // It may never have been written.
            let _ = std::fs::remove_file(path);
        }
    }

    fn save(&self, report: &Report) -> Result<(), ImportError> {
        let Some(path) = &self.path else { return Ok(()) };
        let current = self.current.as_ref().map(|Current { file, version, records }| {
            json!({"file": file, "version": version, "records": records})
        });
        let state = json!({
            "version": VERSION,
            "purpose": self.purpose.to_json(),
            "done": self.done,
            "current": current,
            "report": report.to_json(),
        });
        replace(path, &state.to_string())
            .map_err(|error| ImportError::Write { path: path.clone(), error })
    }
}

impl Purpose {
    /// Each part with what another one is to the user.
    fn parts(&self) -> [(&'static str, &'static str, &str); 5] {
        [
            ("source", "another source", &self.source),
            ("endpoint", "another endpoint", &self.endpoint),
            ("table", "another table", &self.table),
            ("reading", "another --format, --delimiter or --header", &self.reading),
            ("rules", "other --anonymise rules or another key", &self.rules),
        ]
    }

    fn to_json(&self) -> Value {
        let parts = self.parts().map(|(name, _, value)| (name.to_owned(), value.into()));
        Value::Object(Map::from_iter(parts))
    }

    /// What is different in the purpose of another run.
    fn difference(&self, stored: &Value) -> Option<&'static str> {
        let mut parts = self.parts().into_iter();
        parts.find(|(name, _, value)| stored[*name] != *value).map(|(_, shown, _)| shown)
    }
}

/// Renames the new content into place, so that an interruption leaves the old one or the new one.
fn replace(path: &Path, content: &str) -> io::Result<()> {
    let partial = path.with_extension("state-new");
    std::fs::write(&partial, content)?;
    std::fs::rename(&partial, path)
}

#[cfg(test)]
mod tests {
    use zenobe_testing::TemporaryDirectory;

    use super::*;

    fn purpose() -> Purpose {
        Purpose {
            source: "a.json".to_owned(),
            endpoint: "http://127.0.0.1:8000".to_owned(),
            table: "t".to_owned(),
            reading: "-".to_owned(),
            rules: String::new(),
        }
    }

    fn open(path: &Path, purpose: Purpose) -> Result<(ImportState, Report), ImportError> {
        ImportState::open(Some(path.to_owned()), purpose)
    }

    #[test]
    fn a_state_remembers_what_was_rejected() {
        let directory = TemporaryDirectory::new("import-state");
        let path = directory.path().join("t.state");
        let (mut state, mut report) = open(&path, purpose()).unwrap();
        report.imported = 7;
        report.deleted = 1;
        report.reject("one", 2, "bad".to_owned());
        state.complete("one", "v1", &report).unwrap();
        report.reject("two", 0, "worse".to_owned());
        state.advance("two", "v2", 200, &report).unwrap();
        let (state, again) = open(&path, purpose()).unwrap();
        assert_eq!(again.to_json(), report.to_json());
        assert_eq!(again.rejected, 2);
        assert!(state.is_done("one", "v1").unwrap());
        assert!(!state.is_done("two", "v2").unwrap());
        assert_eq!((state.records("one"), state.records("two")), (0, 200));
        assert!(!state.is_done("three", "v3").unwrap());
        for (file, version) in [("one", "v2"), ("two", "v1")] {
            let changed = state.is_done(file, version).unwrap_err();
            assert!(changed.to_string().contains("has changed since"), "{changed}");
        }
        state.remove();
        assert_eq!(open(&path, purpose()).unwrap().1.rejected, 0);
    }

    #[test]
    fn a_state_is_of_one_purpose() {
        let directory = TemporaryDirectory::new("import-purpose");
        let path = directory.path().join("t.state");
        let (mut state, report) = open(&path, purpose()).unwrap();
        state.advance("a.json", "v", 1, &report).unwrap();
        let other = || "other".to_owned();
        for (purpose, what) in [
            (Purpose { source: other(), ..purpose() }, "another source"),
            (Purpose { endpoint: other(), ..purpose() }, "another endpoint"),
            (Purpose { table: other(), ..purpose() }, "another table"),
            (Purpose { reading: other(), ..purpose() }, "another --format"),
            (Purpose { rules: other(), ..purpose() }, "other --anonymise"),
        ] {
            let refused = open(&path, purpose).err().expect(what).to_string();
            assert!(refused.contains(what), "{refused}");
        }
        for damaged in ["", "{}", r#"{"source":"a.json","table":"t","done":[]}"#] {
            std::fs::write(&path, damaged).unwrap();
            let refused = open(&path, purpose()).err().expect(damaged);
            assert!(matches!(refused, ImportError::UnreadableState { .. }), "{refused}");
        }
    }
}
