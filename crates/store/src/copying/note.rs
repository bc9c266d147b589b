//! The rows by which stores say what became of them: a copy that is not complete, and content that
//! has gone elsewhere. They are short texts, a word and its value on each line.

use super::Amount;
use crate::{Error, Key, Reader, Result, Store, Value};

const COPY_KEY: &[u8] = b"\0zenobe/copy";
const SEAL_KEY: &[u8] = b"\0zenobe/seal";
const VERSION: &str = "1";

/// In the target: how far the copy is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyNote {
    /// Distinguishes this copy from all others.
    pub id: u64,
    /// What the source is called.
    pub from: String,
    pub state: CopyState,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CopyState {
    /// All entries before this key have been copied and verified, this many.
    Copying {
        verified: Key,
        done: Amount,
    },
    Complete,
}

/// In the source: where its content has gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seal {
    /// The id of the copy.
    pub id: u64,
    /// What the target is called.
    pub to: String,
    pub state: SealState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SealState {
    /// The copy is being made, or was interrupted.
    Moving,
    Moved,
}

/// Why a store must not be served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obstacle {
    Sealed(Seal),
    Incomplete(CopyNote),
}

/// Returns why a store must not be served, if there is a reason.
pub async fn check_servable(store: &dyn Reader) -> Result<Option<Obstacle>> {
    if let Some(seal) = seal(store).await? {
        return Ok(Some(Obstacle::Sealed(seal)));
    }
    let note = copy_note(store).await?;
    Ok(note.filter(|note| note.state != CopyState::Complete).map(Obstacle::Incomplete))
}

pub async fn copy_note(store: &dyn Reader) -> Result<Option<CopyNote>> {
    store.get(COPY_KEY).await?.as_ref().map(CopyNote::decode).transpose()
}

pub async fn seal(store: &dyn Reader) -> Result<Option<Seal>> {
    store.get(SEAL_KEY).await?.as_ref().map(Seal::decode).transpose()
}

impl CopyNote {
    pub(super) fn key() -> Key {
        Key::from_static(COPY_KEY)
    }

    pub(super) fn encode(&self) -> Value {
        let state = match &self.state {
            CopyState::Copying { verified, done: Amount { rows, bytes } } => {
                format!("verified {}\ndone {rows} {bytes}", hex::encode(verified))
            }
            CopyState::Complete => "complete".to_owned(),
        };
        let CopyNote { id, from, .. } = self;
        format!("zenobe-copy {VERSION}\nid {id:016x}\nfrom {}\n{state}\n", line(from)).into()
    }

    fn decode(value: &Value) -> Result<CopyNote> {
        let decoded = || {
            let mut lines = std::str::from_utf8(value).ok()?.lines();
            lines.next()?.strip_prefix("zenobe-copy ")?.eq(VERSION).then_some(())?;
            let id = u64::from_str_radix(lines.next()?.strip_prefix("id ")?, 16).ok()?;
            let from = lines.next()?.strip_prefix("from ")?.to_owned();
            let state = match lines.next()? {
                "complete" => CopyState::Complete,
                other => {
                    let verified = hex::decode(other.strip_prefix("verified ")?).ok()?.into();
                    let (rows, bytes) = lines.next()?.strip_prefix("done ")?.split_once(' ')?;
                    let done = Amount { rows: rows.parse().ok()?, bytes: bytes.parse().ok()? };
                    CopyState::Copying { verified, done }
                }
            };
            Some(CopyNote { id, from, state })
        };
        decoded().ok_or_else(|| unknown("copy"))
    }
}

impl Seal {
    pub fn key() -> Key {
        Key::from_static(SEAL_KEY)
    }

    pub fn encode(&self) -> Value {
        let state = match self.state {
            SealState::Moving => "moving",
            SealState::Moved => "moved",
        };
        let Seal { id, to, .. } = self;
        format!("zenobe-seal {VERSION}\nid {id:016x}\nto {}\n{state}\n", line(to)).into()
    }

    fn decode(value: &Value) -> Result<Seal> {
        let decoded = || {
            let mut lines = std::str::from_utf8(value).ok()?.lines();
            lines.next()?.strip_prefix("zenobe-seal ")?.eq(VERSION).then_some(())?;
            let id = u64::from_str_radix(lines.next()?.strip_prefix("id ")?, 16).ok()?;
            let to = lines.next()?.strip_prefix("to ")?.to_owned();
            let state = match lines.next()? {
                "moving" => SealState::Moving,
                "moved" => SealState::Moved,
                _ => return None,
            };
            Some(Seal { id, to, state })
        };
        decoded().ok_or_else(|| unknown("seal"))
    }

    pub async fn put(&self, store: &dyn Store) -> Result<()> {
        store.seal(Seal::key(), Some(self.encode())).await
    }

    /// Makes the store usable again.
    pub async fn remove(store: &dyn Store) -> Result<()> {
        store.seal(Seal::key(), None).await
    }
}

/// A newer version may write what this one doesn't know; that must not be served either.
fn unknown(what: &str) -> Error {
    Error::Corrupt { detail: format!("the row \"{what}\" of a move does not decode") }
}

/// Names may hold any characters, and must not end their line.
fn line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back() {
        for state in [
            CopyState::Copying { verified: Key::new(), done: Amount::default() },
            CopyState::Copying {
                verified: Key::from_static(&[0, 0xFF, b'\n']),
                done: Amount { rows: 1, bytes: 2 },
            },
            CopyState::Complete,
        ] {
            let note = CopyNote { id: u64::MAX, from: "./a directory".into(), state };
            assert_eq!(CopyNote::decode(&note.encode()).unwrap(), note);
        }
        for state in [SealState::Moving, SealState::Moved] {
            let seal = Seal { id: 1, to: "postgres://u@h/d".into(), state };
            assert_eq!(Seal::decode(&seal.encode()).unwrap(), seal);
        }
        assert!(CopyNote::decode(&Value::from_static(b"zenobe-copy 2\n")).is_err());
        assert!(Seal::decode(&Value::new()).is_err());
    }
}
