//! How far a generation has been shipped: without this, nobody would miss a last segment that is lost.

use serde_json::json;
use zenobe_store::Stamp;

use crate::error::Result;
use crate::json::{Members, seal, unseal};

const KIND: &str = "head";
const VERSION: u32 = 1;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Head {
    /// The number of the last segment that was stored, or 0.
    pub segments: u64,
    /// Every group up to this stamp is in them.
    pub until: Stamp,
}

impl Head {
    pub fn encode(&self) -> Vec<u8> {
        let document = json!({"segments": self.segments, "until": self.until.to_bits()});
        seal(KIND, VERSION, &document)
    }

    /// # Errors
    /// If the bytes are damaged. `object` is where they were found.
    pub fn decode(object: &str, bytes: &[u8]) -> Result<Head> {
        let value = &unseal(KIND, VERSION, object, bytes)?;
        let members = Members { object, value };
        let until = Stamp::from_bits(members.number("until")?);
        Ok(Head { segments: members.number("segments")?, until })
    }
}
