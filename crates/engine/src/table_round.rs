//! One round of background work over the tables. If one table fails, the others still proceed.

use crate::catalog::Table;
use crate::error::{Error, Result};
use crate::schema::IndexDefinition;

pub(crate) struct TableRound {
    /// The log's message about a table whose work failed.
    failure: &'static str,
    /// The first failure, if there was one: the round reports it at its end.
    outcome: Result<()>,
}

impl TableRound {
    pub(crate) fn new(failure: &'static str) -> TableRound {
        TableRound { failure, outcome: Ok(()) }
    }

    /// Takes the result of the work on a table. If the work failed, logs it and returns the default,
    /// so that the round goes on. Only a lost lease ends the round, as an error: another node does the
    /// work. If the table was deleted meanwhile, there is nothing left to do.
    pub(crate) fn take<T: Default>(&mut self, table: &Table, done: Result<T>) -> Result<T> {
        self.take_part(table, None, done)
    }

    /// Like [`TableRound::take`], for the work on one of the table's indexes.
    pub(crate) fn take_index<T: Default>(
        &mut self,
        table: &Table,
        index: &IndexDefinition,
        done: Result<T>,
    ) -> Result<T> {
        self.take_part(table, Some(index), done)
    }

    fn take_part<T: Default>(
        &mut self,
        table: &Table,
        index: Option<&IndexDefinition>,
        done: Result<T>,
    ) -> Result<T> {
        let error = match done {
            Ok(done) => return Ok(done),
            Err(Error::TableNotFound { .. }) => return Ok(T::default()),
            Err(error @ Error::LeaseLost { .. }) => return Err(error),
            Err(error) => error,
        };
        let (table, index) = (&table.definition().name, index.map(|index| &index.name));
        tracing::error!(table, index, %error, "{}", self.failure);
        if self.outcome.is_ok() {
            self.outcome = Err(error);
        }
        Ok(T::default())
    }

    /// The outcome of the round.
    pub(crate) fn finish(self) -> Result<()> {
        self.outcome
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use zenobe_store::memory::MemoryStore;

    use super::*;
    use crate::catalog::tests::create_table;
    use crate::command::TableName;
    use crate::schema::Namespace;
    use crate::{Engine, EngineOptions};

    #[tokio::test]
    async fn only_a_lost_lease_ends_the_round() {
        let store = Arc::new(MemoryStore::new());
        let engine = Engine::open(store, EngineOptions::default()).await.unwrap();
        let namespace = Arc::new(Namespace { account: "1".into(), region: "r".into() });
        let name = TableName { namespace, name: "t".into() };
        engine.create_table(create_table(&name)).await.unwrap();
        let table = engine.table(&name).await.unwrap();

        let mut round = TableRound::new("it failed");
        assert_eq!(round.take(&table, Ok(7)).unwrap(), 7);
        let gone = Error::TableNotFound { name: "t".into() };
        assert_eq!(round.take::<u64>(&table, Err(gone)).unwrap(), 0);
        for detail in ["first", "second"] {
            let error = Error::Corrupt { detail: detail.into() };
            assert_eq!(round.take::<u64>(&table, Err(error)).unwrap(), 0);
        }
        let lost = Error::LeaseLost { work: "w".into() };
        let lost = round.take::<u64>(&table, Err(lost));
        assert!(matches!(lost, Err(Error::LeaseLost { .. })), "{lost:?}");
        let outcome = round.finish();
        assert!(matches!(&outcome, Err(Error::Corrupt { detail }) if detail == "first"));
    }
}
