//! What happens to whole tables: creation and deletion, expiry, and the recording of changes.

use zenobe_engine::error::{BlockedChange, TimeToLiveError, UpdateTableError};
use zenobe_engine::schema::StreamViewType;
use zenobe_engine::streams::StreamEvent;
use zenobe_value::{AttributeValue, Attributes};

use super::Twin;
use super::fault::{Fault, Refusal};
use super::schema::IndexState;
use super::table::{Table, nothing_consumed};
use super::value::{Key, key_of};

/// The attribute that holds an item's expiry in seconds.
pub const EXPIRY: &str = "e";

/// Items that expired longer ago than this stay, because the time looks like a mistake.
const AGE_S_MAX: u64 = 5 * 365 * 24 * 60 * 60;

#[derive(Debug, Clone)]
pub struct Stream {
    pub view_type: StreamViewType,
    pub is_enabled: bool,
    pub records: Vec<Record>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    pub event: StreamEvent,
    pub by_service: bool,
    pub keys: Attributes,
    pub new: Option<Attributes>,
    pub old: Option<Attributes>,
}

impl Twin {
    pub fn create_table(&mut self, table: Table) -> Result<(), Refusal> {
        let name = table.name.name.clone();
        if self.tables.contains_key(&name) {
            return Err(Fault::TableExists.into());
        }
        self.tables.insert(name, table);
        Ok(())
    }

    /// The streams of a table stay.
    pub fn delete_table(&mut self, name: &str) -> Result<(), Refusal> {
        let table = self.table(name)?;
        if table.indexes.iter().any(|index| index.state != IndexState::Active) {
            return Err(Fault::IndexesInFlux.into());
        }
        let streams = self.tables.remove(name).into_iter().flat_map(|table| table.streams);
        let streams = streams.map(|stream| Stream { is_enabled: false, ..stream });
        self.past_streams.entry(name.to_owned()).or_default().extend(streams);
        Ok(())
    }

    /// All streams that tables with that name have had, in the order in which they started.
    pub fn streams(&self, name: &str) -> Vec<&Stream> {
        let past = self.past_streams.get(name).into_iter().flatten();
        past.chain(self.tables.get(name).into_iter().flat_map(|table| &table.streams)).collect()
    }

    /// Deletes expired items, and counts them.
    pub fn expire(&mut self) -> usize {
        let now_s = self.now_ms / 1_000;
        self.tables.values_mut().map(|table| table.expire(now_s)).sum()
    }
}

impl Table {
    pub fn set_time_to_live(&mut self, enabled: bool) -> Result<(), Refusal> {
        let error = match (self.expires, enabled) {
            (true, true) => TimeToLiveError::AlreadyEnabled,
            (false, false) => TimeToLiveError::AlreadyDisabled,
            _ => {
                self.expires = enabled;
                return Ok(());
            }
        };
        Err(Fault::TimeToLive(error).into())
    }

    pub fn set_stream(&mut self, view_type: Option<StreamViewType>) -> Result<(), Refusal> {
        let refuse = |error| Err(Fault::UpdateTable(error).into());
        let change = BlockedChange::Stream;
        for (deleting, busy) in [(false, self.creating()), (true, self.deleting())] {
            if !busy.is_empty() {
                return refuse(UpdateTableError::IndexesBusy { change, indexes: busy, deleting });
            }
        }
        let enabled = self.streams.iter_mut().find(|stream| stream.is_enabled);
        match (view_type, enabled) {
            (Some(_), Some(_)) => return refuse(UpdateTableError::StreamAlreadyEnabled),
            (None, None) => return refuse(UpdateTableError::NoStreamToDisable),
            (Some(view_type), None) => {
                let (is_enabled, records) = (true, Vec::new());
                self.streams.push(Stream { view_type, is_enabled, records });
            }
            (None, Some(stream)) => stream.is_enabled = false,
        }
        Ok(())
    }

    fn creating(&self) -> Vec<String> {
        let is_creating = |state: &IndexState| matches!(state, IndexState::Creating { .. });
        let indexes = self.indexes.iter().filter(|index| is_creating(&index.state));
        indexes.map(|index| index.name.clone()).collect()
    }

    fn deleting(&self) -> Vec<String> {
        let indexes = self.indexes.iter().filter(|index| index.state == IndexState::Deleting);
        indexes.map(|index| index.name.clone()).collect()
    }

    fn expire(&mut self, now_s: u64) -> usize {
        if !self.expires {
            return 0;
        }
        let is_due = |item: &Attributes| match item.get(EXPIRY) {
            Some(AttributeValue::N(number)) => {
                let second = number.to_i64().and_then(|second| u64::try_from(second).ok());
                second.is_some_and(|second| (now_s - AGE_S_MAX..now_s).contains(&second))
            }
            _ => false,
        };
        let due: Vec<Key> = self
            .items
            .iter()
            .filter(|(_, item)| is_due(item))
            .map(|(key, _)| key.clone())
            .collect();
        let count = due.len();
        for key in due {
            self.change(&key, None, 1, &mut nothing_consumed(&self.name.clone()));
            if let Some(stream) = self.streams.iter_mut().find(|stream| stream.is_enabled)
                && let Some(record) = stream.records.last_mut()
            {
                record.by_service = true;
            }
        }
        count
    }

    /// Records a change in the stream, if there is one.
    pub fn record(&mut self, old: Option<&Attributes>, new: Option<&Attributes>) {
        let attributes = self.key_attributes();
        let Some(stream) = self.streams.iter_mut().find(|stream| stream.is_enabled) else { return };
        let Some(item) = new.or(old) else { return };
        debug_assert!(key_of(&attributes, item).is_some());
        let is_key = |name: &String| attributes.iter().any(|attribute| attribute.name == *name);
        let keys = item.iter().filter(|(name, _)| is_key(name));
        let (shows_new, shows_old) = match stream.view_type {
            StreamViewType::KeysOnly => (false, false),
            StreamViewType::NewImage => (true, false),
            StreamViewType::OldImage => (false, true),
            StreamViewType::NewAndOldImages => (true, true),
        };
        stream.records.push(Record {
            event: match (old, new) {
                (None, _) => StreamEvent::Insert,
                (Some(_), Some(_)) => StreamEvent::Modify,
                (Some(_), None) => StreamEvent::Remove,
            },
            by_service: false,
            keys: keys.map(|(name, value)| (name.clone(), value.clone())).collect(),
            new: new.filter(|_| shows_new).cloned(),
            old: old.filter(|_| shows_old).cloned(),
        });
    }
}
