//! The progress of a job that copies items in the order of their keys: a backup or a restore.

use zenobe_store::Key;
use zenobe_value::{Attributes, EncodedItem};

use crate::error::Result;
use crate::row::Fields;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct CopyProgress {
    /// Everything up to this key of the source has been copied.
    pub position: Option<Vec<u8>>,
    pub items: u64,
    /// In DynamoDB's measure.
    pub size_bytes: u64,
    /// The keys and values of a backup's chunks. A restore has none.
    pub stored_bytes: u64,
}

impl CopyProgress {
    /// The progress after these items have been copied, up to `passed`.
    pub fn after<'a>(
        &self,
        items: impl Iterator<Item = &'a EncodedItem>,
        passed: &Key,
    ) -> CopyProgress {
        let mut next = CopyProgress { position: Some(passed.to_vec()), ..self.clone() };
        for item in items {
            next.items += 1;
            next.size_bytes += item.as_item().size_bytes() as u64;
        }
        next
    }

    pub fn encode(&self) -> Attributes {
        let mut fields = Fields::default();
        if let Some(position) = &self.position {
            fields.bytes("position", position);
        }
        fields.number("items", self.items);
        fields.number("size_bytes", self.size_bytes);
        fields.number("stored_bytes", self.stored_bytes);
        fields.0
    }

    /// A job that has just begun has no progress.
    pub fn decode(progress: &Attributes) -> Result<CopyProgress> {
        if progress.is_empty() {
            return Ok(CopyProgress::default());
        }
        let mut fields = Fields(progress.clone());
        let has_position = fields.0.contains_key("position");
        Ok(CopyProgress {
            position: has_position.then(|| fields.take_bytes("position")).transpose()?,
            items: fields.take_number("items")?,
            size_bytes: fields.take_number("size_bytes")?,
            stored_bytes: fields.take_optional_number("stored_bytes")?.unwrap_or_default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use zenobe_value::AttributeValue;

    use super::*;

    #[test]
    fn progress_survives_its_row_and_damage_is_an_error() {
        let start = CopyProgress::default();
        assert_eq!(CopyProgress::decode(&Attributes::default()).unwrap(), start);
        let item = EncodedItem::encode(&Attributes::default());
        let next = start.after([&item, &item].into_iter(), &Key::from_static(b"key"));
        assert_eq!((next.items, next.position.as_deref()), (2, Some(&b"key"[..])));
        assert_eq!(CopyProgress::decode(&next.encode()).unwrap(), next);
        let mut damaged = next.encode();
        damaged.insert("position".into(), AttributeValue::S("key".into()));
        assert!(CopyProgress::decode(&damaged).is_err());
    }
}
