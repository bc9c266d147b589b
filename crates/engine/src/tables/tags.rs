//! Tags of tables.

use std::collections::BTreeMap;

use crate::Engine;
use crate::catalog::edit::Edit;
use crate::command::TableName;
use crate::error::{Error, Result};
use crate::schema::{Namespace, TableDefinition, table_arn};

impl Engine {
    /// Adds tags and replaces those with the same key, atomically.
    pub async fn tag_resource(
        &self,
        name: &TableName,
        tags: BTreeMap<String, String>,
    ) -> Result<()> {
        self.check_mode_tag(&tags)?;
        let tags_max = self.limits.tags_max;
        self.change_tags(name, |definition| {
            definition.tags.extend(tags.clone());
            if definition.tags.len() > tags_max {
                return Err(Error::TooManyTags);
            }
            Ok(())
        })
        .await
    }

    /// Removes tags; missing keys are ignored.
    pub async fn untag_resource(&self, name: &TableName, keys: &[String]) -> Result<()> {
        self.change_tags(name, |definition| {
            definition.tags.retain(|key, _| !keys.contains(key));
            Ok(())
        })
        .await
    }

    pub async fn list_tags(&self, name: &TableName) -> Result<BTreeMap<String, String>> {
        let table = self.current_table(name).await;
        let table = table.map_err(|error| resource_error(name, error))?;
        Ok(table.definition().tags.clone())
    }

    async fn change_tags(
        &self,
        name: &TableName,
        mut edit: impl FnMut(&mut TableDefinition) -> Result<()> + Send,
    ) -> Result<()> {
        let decide = |before: &TableDefinition| {
            let mut definition = before.clone();
            edit(&mut definition)?;
            Ok(Edit::new(definition))
        };
        let changed = self.catalog.change(&*self.store, name, decide).await;
        changed.map(drop).map_err(|error| resource_error(name, error))
    }
}

/// Requests name a tagged table by ARN, and so does the error for a missing one.
fn resource_error(name: &TableName, error: Error) -> Error {
    match error {
        Error::TableNotFound { .. } | Error::TableFilling { .. } => {
            let namespace: &Namespace = &name.namespace;
            Error::ResourceNotFound { arn: table_arn(namespace, &name.name) }
        }
        other => other,
    }
}
