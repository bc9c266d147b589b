//! A backup as it is stored.

use zenobe_store::{Key, Value};

use crate::catalog::definition_row;
use crate::error::Result;
use crate::keyspace;
use crate::row::{Fields, corrupt};
use crate::schema::{ItemStatistics, TableDefinition};

use super::backup_arn;

/// A table as it was at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Backup {
    /// The time of the creation in 14 digits, a hyphen and 8 hexadecimal digits: ids sort by time.
    pub id: String,
    pub name: String,
    /// The table's at that moment.
    pub definition: TableDefinition,
    pub created_at_ms: u64,
    pub statistics: ItemStatistics,
    pub content: Content,
    /// The job of the latest restore. A restore and a deletion that begin at the same time both
    /// change the row, so only one of them succeeds.
    pub(crate) last_restore: Option<String>,
}

/// Where the items of a backup are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// Where they were in the table, which has been deleted. The database made the backup by itself,
    /// and forgets it.
    Remains { expires_at_ms: u64 },
    /// In the table, as of the backup's stamp: the table keeps undo rows of this era until the items
    /// have been copied.
    Held { era: u32 },
    /// In chunks of its own ([`super::chunk`]), whose keys and values have this size.
    Copied { size_bytes: u64 },
}

const FORMAT: u64 = 1;
/// Earlier versions only know backups that expire.
const FORMAT_OF_USERS: u64 = 2;
const WHAT: &str = "a backup's row";

impl Backup {
    pub fn arn(&self) -> String {
        backup_arn(&self.definition.namespace, &self.definition.name, &self.id)
    }

    /// When it expires, if the database made it by itself. A user's backup stays until it is deleted.
    pub fn expires_at_ms(&self) -> Option<u64> {
        match self.content {
            Content::Remains { expires_at_ms } => Some(expires_at_ms),
            Content::Held { .. } | Content::Copied { .. } => None,
        }
    }

    /// Whether it reads items or undo rows of its table.
    pub(super) fn needs_table_rows(&self) -> bool {
        matches!(self.content, Content::Remains { .. } | Content::Held { .. })
    }

    pub(crate) fn key(&self) -> Key {
        keyspace::backup_row(&self.definition.namespace, &self.definition.name, &self.id)
    }

    /// The prefix of what belongs to the backup alone.
    pub(crate) fn content_prefix(&self) -> Key {
        let TableDefinition { namespace, name, .. } = &self.definition;
        keyspace::backup_content_prefix(namespace, name, &self.id)
    }

    pub(super) fn encode(&self) -> Value {
        let mut fields = Fields::default();
        let is_system = self.expires_at_ms().is_some();
        fields.number("format", if is_system { FORMAT } else { FORMAT_OF_USERS });
        fields.text("id", &self.id);
        fields.map("table", definition_row::encode(&self.definition).0);
        fields.number("created_at_ms", self.created_at_ms);
        fields.number("item_count", self.statistics.item_count);
        fields.number("size_bytes", self.statistics.size_bytes);
        fields.optional_text("last_restore", self.last_restore.as_deref());
        match self.content {
            Content::Remains { expires_at_ms } => fields.number("expires_at_ms", expires_at_ms),
            Content::Held { era } => fields.number("held_era", era.into()),
            Content::Copied { size_bytes } => fields.number("copied_size_bytes", size_bytes),
        }
        if !is_system {
            fields.text("name", &self.name);
        }
        fields.encode()
    }

    pub(super) fn decode(row: &[u8]) -> Result<Backup> {
        let mut fields = Fields::decode(row, WHAT)?;
        fields.check_format(WHAT, FORMAT_OF_USERS)?;
        let definition = definition_row::decode(Fields(fields.take_map("table")?))?;
        let content = take_content(&mut fields)?;
        Ok(Backup {
            id: fields.take_text("id")?,
            name: match content {
                Content::Remains { .. } => name_of_remains(&definition),
                Content::Held { .. } | Content::Copied { .. } => fields.take_text("name")?,
            },
            definition,
            created_at_ms: fields.take_number("created_at_ms")?,
            statistics: ItemStatistics {
                item_count: fields.take_number("item_count")?,
                size_bytes: fields.take_number("size_bytes")?,
            },
            content,
            last_restore: fields.take_optional_text("last_restore")?,
        })
    }
}

/// The name of the backup that a deleted table leaves.
pub(super) fn name_of_remains(definition: &TableDefinition) -> String {
    format!("{}$DeletedTableBackup", definition.name)
}

fn take_content(fields: &mut Fields) -> Result<Content> {
    let expires_at_ms = fields.take_optional_number("expires_at_ms")?;
    let copied_size_bytes = fields.take_optional_number("copied_size_bytes")?;
    let held = fields.0.contains_key("held_era");
    match (expires_at_ms, copied_size_bytes, held) {
        (Some(expires_at_ms), None, false) => Ok(Content::Remains { expires_at_ms }),
        (None, Some(size_bytes), false) => Ok(Content::Copied { size_bytes }),
        (None, None, true) => Ok(Content::Held { era: fields.take_u32("held_era")? }),
        _ => Err(corrupt(format!("{WHAT} does not say where the items are"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::definition_row::tests::sample;
    use crate::error::Error;

    fn backup(content: Content) -> Backup {
        let definition = sample();
        Backup {
            id: "01765432100250-0a1b2c3d".to_owned(),
            name: match content {
                Content::Remains { .. } => name_of_remains(&definition),
                _ => "nightly".to_owned(),
            },
            definition,
            created_at_ms: 1_765_432_100_250,
            statistics: ItemStatistics { item_count: 3, size_bytes: 400 },
            content,
            last_restore: None,
        }
    }

    #[test]
    fn a_row_survives_the_round_trip() {
        let contents = [
            (Content::Remains { expires_at_ms: 7 }, 1),
            (Content::Held { era: 3 }, 2),
            (Content::Copied { size_bytes: 500 }, 2),
        ];
        for (content, format) in contents {
            for last_restore in [None, Some("01-job".to_owned())] {
                let backup = Backup { last_restore, ..backup(content) };
                let row = backup.encode();
                assert_eq!(Backup::decode(&row).unwrap(), backup);
                let mut fields = Fields::decode(&row, WHAT).unwrap();
                assert_eq!(fields.take_number("format").unwrap(), format);
            }
        }
    }

    #[test]
    fn a_row_that_does_not_say_where_the_items_are_is_damaged() {
        let row = backup(Content::Held { era: 3 }).encode();
        for change in ["held_era", "expires_at_ms"] {
            let mut fields = Fields::decode(&row, WHAT).unwrap();
            match change {
                "held_era" => drop(fields.take(change)),
                _ => fields.number(change, 1),
            }
            let decoded = Backup::decode(&fields.encode());
            assert!(matches!(decoded, Err(Error::Corrupt { .. })), "{change}: {decoded:?}");
        }
    }
}
