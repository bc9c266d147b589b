//! What happens to requests that DynamoDB would throttle: by the engine's options, or by a tag of
//! their table.

use std::collections::BTreeMap;
use std::str::FromStr;

use crate::Engine;
use crate::catalog::Table;
use crate::command::TableName;
use crate::error::Result;
use crate::schema::TableDefinition;

/// What to do with requests that DynamoDB would throttle. The laxest mode is the least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum ThroughputMode {
    /// Nothing is counted.
    Off,
    /// They are counted.
    #[default]
    Observe,
    /// They are refused.
    Enforce,
}

impl ThroughputMode {
    pub const ALL: [ThroughputMode; 3] =
        [ThroughputMode::Off, ThroughputMode::Observe, ThroughputMode::Enforce];

    pub fn name(self) -> &'static str {
        match self {
            ThroughputMode::Off => "off",
            ThroughputMode::Observe => "observe",
            ThroughputMode::Enforce => "enforce",
        }
    }

    /// The mode that a table's tags ask for. A value that is not a mode asks for none; no request can set one.
    pub fn of(definition: &TableDefinition) -> Option<ThroughputMode> {
        definition.tags.get(MODE_TAG)?.parse().ok()
    }
}

/// The tag that sets a table's own mode.
pub const MODE_TAG: &str = "zenobe:throughput";

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a throughput mode is one of off, observe and enforce")]
pub struct UnknownMode;

/// Why a table can't have a tag that sets its mode.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModeTagError {
    #[error("`{value}` is not a throughput mode; use off, observe or enforce")]
    Unknown { value: String },
    #[error("no table may have the throughput mode {}: the server requires at least {}", mode.name(), min.name())]
    TooLax { mode: ThroughputMode, min: ThroughputMode },
}

impl FromStr for ThroughputMode {
    type Err = UnknownMode;

    fn from_str(text: &str) -> Result<ThroughputMode, UnknownMode> {
        ThroughputMode::ALL.into_iter().find(|mode| mode.name() == text).ok_or(UnknownMode)
    }
}

impl Engine {
    /// What this engine does with the requests of a table that DynamoDB would throttle. A table that
    /// reports its hottest keys is metered at least.
    pub fn throughput_mode(&self, table: &Table) -> ThroughputMode {
        let mode = table.throughput_mode().unwrap_or(self.meters.mode);
        match mode.max(self.meters.mode_min) {
            ThroughputMode::Off if table.has_insights() => ThroughputMode::Observe,
            mode => mode,
        }
    }

    /// Tells the operator of tables whose tags have no effect because their mode is ruled out.
    pub(crate) fn warn_of_overridden_modes(&self) {
        let min = self.meters.mode_min;
        let tables = self.known_tables();
        let is_lax = |table: &Table| table.throughput_mode().is_some_and(|mode| mode < min);
        let mut lax = tables.iter().filter(|(_, table)| is_lax(table)).peekable();
        if let Some((name, _)) = lax.peek().copied() {
            tracing::warn!(
                tables = lax.count(),
                "the tag {MODE_TAG} of table {} in account {} has no effect: the mode of all tables is at least {}",
                name.name,
                name.namespace.account,
                min.name()
            );
        }
    }

    /// The mode in a table's tag, if any, and the mode in effect.
    pub async fn throughput_modes(
        &self,
        name: &TableName,
    ) -> Result<(Option<ThroughputMode>, ThroughputMode)> {
        let table = self.current_table(name).await?;
        Ok((table.throughput_mode(), self.throughput_mode(&table)))
    }

    /// Refuses tags that ask for no mode, or for one that the operator has ruled out.
    pub(crate) fn check_mode_tag(
        &self,
        tags: &BTreeMap<String, String>,
    ) -> Result<(), ModeTagError> {
        let Some(value) = tags.get(MODE_TAG) else { return Ok(()) };
        let unknown = |_| ModeTagError::Unknown { value: value.clone() };
        let mode: ThroughputMode = value.parse().map_err(unknown)?;
        let min = self.meters.mode_min;
        if mode < min { Err(ModeTagError::TooLax { mode, min }) } else { Ok(()) }
    }

    /// Sets or removes a table's own mode. It is stored, so it holds on every node and after restarts.
    pub async fn set_throughput_mode(
        &self,
        name: &TableName,
        mode: Option<ThroughputMode>,
    ) -> Result<()> {
        match mode {
            Some(mode) => {
                let tag = (MODE_TAG.to_owned(), mode.name().to_owned());
                self.tag_resource(name, [tag].into()).await
            }
            None => self.untag_resource(name, &[MODE_TAG.to_owned()]).await,
        }
    }
}
