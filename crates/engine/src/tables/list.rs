//! ListTables.

use std::ops::ControlFlow;

use zenobe_store::{Direction, Key, KeyRange};

use crate::Engine;
use crate::command::TablePage;
use crate::error::{Error, Result};
use crate::keyspace;
use crate::schema::Namespace;

impl Engine {
    /// Up to `limit` names of a namespace's tables after `start`, in byte order.
    pub async fn list_tables(
        &self,
        namespace: &Namespace,
        start: Option<&str>,
        limit: usize,
    ) -> Result<TablePage> {
        let prefix = keyspace::namespace_tables_prefix(namespace);
        let mut range = KeyRange::prefix(prefix.clone());
        if let Some(start) = start {
            range.start = after(&keyspace::table_row(namespace, start));
        }
        let (mut names, mut more, mut failure) = (Vec::new(), false, None);
        let mut visit = |key: &[u8], _: &[u8]| {
            if names.len() == limit {
                more = true;
                return ControlFlow::Break(());
            }
            match keyspace::table_name_of_row(&prefix, key) {
                Some(name) => names.push(name),
                None => failure = Some(format!("the key of a table row: {key:?}")),
            }
            ControlFlow::Continue(())
        };
        self.store.scan(range, Direction::Forward, &mut visit).await?;
        match failure {
            Some(detail) => Err(Error::Corrupt { detail }),
            None => Ok(TablePage { names, more }),
        }
    }
}

/// The first key after `key`.
fn after(key: &[u8]) -> Key {
    [key, &[0]].concat().into()
}
