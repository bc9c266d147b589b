//! Reads as of a time, if one is given. They are the reads of the present, with another reader of the table: this file only
//! chooses the reader, and `history::past` finds what the table held then.

use crate::Engine;
use crate::catalog::Table;
use crate::command::{
    BatchGet, BatchGetOutcome, GetItem, PageOutcome, Query, ReadOutcome, RuleSet, Scan,
};
use crate::error::{HistoryError, Result};
use crate::history::{AsOf, Past};

use zenobe_store::Reader;

use super::source::ReadSource;
use super::{item_key, read_outcome};

/// Reads of the present, or all as of the same time.
#[derive(Clone, Copy)]
pub struct Reads<'a> {
    engine: &'a Engine,
    as_of: Option<AsOf>,
}

impl Engine {
    pub fn reads(&self, as_of: Option<AsOf>) -> Reads<'_> {
        Reads { engine: self, as_of }
    }

    /// The past of what a page reads, if a time is given.
    pub(super) async fn past_of(
        &self,
        source: ReadSource<'_>,
        as_of: Option<AsOf>,
    ) -> Result<Option<Past>> {
        let Some(as_of) = as_of else { return Ok(None) };
        if let Some(index) = source.index {
            return Err(HistoryError::Index { index: index.definition.name.clone() }.into());
        }
        // On the heap, so that reads of the present don't have to make room for it.
        Ok(Some(Box::pin(self.past(source.table, as_of)).await?))
    }

    async fn get_item_at(&self, as_of: AsOf, command: &GetItem) -> Result<ReadOutcome> {
        let mut table = self.table(&command.table).await?;
        loop {
            let read = self.get_past_once(&table, as_of, command).await;
            if self.is_current(&table).await? {
                return read;
            }
            table = self.refresh(&table).await?;
        }
    }

    async fn get_past_once(
        &self,
        table: &Table,
        as_of: AsOf,
        command: &GetItem,
    ) -> Result<ReadOutcome> {
        let key = item_key(table, command)?;
        let ticket = self.admit_get(table, &key, command.consistent)?;
        let stored = self.past(table, as_of).await?.get(&key).await?;
        let outcome = read_outcome(command, stored.as_ref())?;
        ticket.settle(outcome.consumed.table_halves);
        Ok(outcome)
    }
}

impl Reads<'_> {
    pub async fn get_item(&self, command: &GetItem) -> Result<ReadOutcome> {
        match self.as_of {
            None => self.engine.get_item(command).await,
            Some(as_of) => Box::pin(self.engine.get_item_at(as_of, command)).await,
        }
    }

    pub async fn query(&self, rules: RuleSet, command: &Query) -> Result<PageOutcome> {
        self.engine.page_at(self.as_of, rules, command).await
    }

    pub async fn scan(&self, rules: RuleSet, command: &Scan) -> Result<PageOutcome> {
        self.engine.page_at(self.as_of, rules, command).await
    }

    pub async fn batch_get(&self, command: &BatchGet) -> Result<BatchGetOutcome> {
        self.engine.batch_get_at(self.as_of, command).await
    }
}
