//! What Query and Scan have in common: how a page gets past caches, replicas and definitions that
//! have changed meanwhile.

use crate::Engine;
use crate::cache::CachedRequest;
use crate::catalog::Table;
use crate::command::{PageOutcome, PageRequest, RuleSet, TableName};
use crate::error::{Error, Result};
use crate::history::AsOf;

use super::page::{Origin, Read};

/// A Query or a Scan.
pub(super) trait PageCommand: Sync {
    fn table(&self) -> &TableName;
    fn index(&self) -> Option<&str>;
    fn page(&self) -> &PageRequest;
    fn cached(&self, rules: RuleSet) -> CachedRequest<'_>;

    /// Reads the page with this definition of the table.
    fn read(
        &self,
        origin: Origin<'_>,
        table: &Table,
        as_of: Option<AsOf>,
        rules: RuleSet,
    ) -> impl Future<Output = Result<Read>> + Send;
}

impl Engine {
    pub(super) async fn page_at(
        &self,
        as_of: Option<AsOf>,
        rules: RuleSet,
        command: &impl PageCommand,
    ) -> Result<PageOutcome> {
        match &self.query_cache {
            Some(cache) if as_of.is_none() && !command.page().consistent => {
                let request = command.cached(rules);
                let read = self.stored_page(None, rules, command);
                Box::pin(self.page_through(cache, request, read)).await
            }
            _ => self.stored_page(as_of, rules, command).await,
        }
    }

    async fn stored_page(
        &self,
        as_of: Option<AsOf>,
        rules: RuleSet,
        command: &impl PageCommand,
    ) -> Result<PageOutcome> {
        let mut table = self.table(command.table()).await?;
        let is_exact = command.page().consistent || as_of.is_some();
        if let Some(replica) = self.replica(table.name(), command.index(), is_exact) {
            let origin = Origin { engine: self, replica: Some(&*replica) };
            match command.read(origin, &table, None, rules).await {
                Ok(Read { outcome, is_current: true, .. }) => return Ok(outcome),
                Err(error @ Error::Throttled(_)) => return Err(error),
                _ => {}
            }
        }
        let origin = Origin { engine: self, replica: None };
        loop {
            let read = command.read(origin, &table, as_of, rules).await;
            if let Some(outcome) = self.accept_read(read, &mut table).await? {
                return Ok(outcome);
            }
        }
    }
}
