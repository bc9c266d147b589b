//! What can be scaled: the reads or the writes of a table or a global index.

use std::sync::Arc;

use zenobe_engine::command::TableName;
use zenobe_engine::error::Result;
use zenobe_engine::row::corrupt;
use zenobe_engine::schema::Namespace;
use zenobe_engine::throughput::cause::Access;

pub(crate) const SERVICE_NAMESPACE: &str = "dynamodb";

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct TargetName {
    pub table: String,
    pub index: Option<String>,
    pub access: Access,
}

impl TargetName {
    /// `None` if the resource and the dimension don't fit each other.
    pub(crate) fn parse(resource_id: &str, dimension: &str) -> Option<TargetName> {
        let (resource_type, access) = dimension.strip_prefix("dynamodb:")?.split_once(':')?;
        let access = match access {
            "ReadCapacityUnits" => Access::Read,
            "WriteCapacityUnits" => Access::Write,
            _ => return None,
        };
        let parts: Vec<&str> = resource_id.split('/').collect();
        let (table, index) = match (resource_type, &parts[..]) {
            ("table", ["table", table]) => (*table, None),
            ("index", ["table", table, "index", index]) if !index.is_empty() => {
                (*table, Some((*index).to_owned()))
            }
            _ => return None,
        };
        (!table.is_empty()).then(|| TargetName { table: table.to_owned(), index, access })
    }

    /// The name in the key of a row, after its first byte.
    pub(crate) fn of_key(key: &[u8]) -> Result<TargetName> {
        let text = key.get(1..).and_then(|key| str::from_utf8(key).ok());
        let parts = text.and_then(|text| text.split_once('\0'));
        let name = parts.and_then(|(resource_id, dimension)| Self::parse(resource_id, dimension));
        name.ok_or_else(|| corrupt(format!("{key:?} as the key of a scalable target")))
    }

    pub(crate) fn table_name(&self, namespace: &Arc<Namespace>) -> TableName {
        TableName { namespace: Arc::clone(namespace), name: self.table.clone() }
    }

    pub(crate) fn resource_id(&self) -> String {
        match &self.index {
            None => format!("table/{}", self.table),
            Some(index) => format!("table/{}/index/{index}", self.table),
        }
    }

    pub(crate) fn dimension(&self) -> &'static str {
        match (&self.index, self.access) {
            (None, Access::Read) => "dynamodb:table:ReadCapacityUnits",
            (None, Access::Write) => "dynamodb:table:WriteCapacityUnits",
            (Some(_), Access::Read) => "dynamodb:index:ReadCapacityUnits",
            (Some(_), Access::Write) => "dynamodb:index:WriteCapacityUnits",
        }
    }

    /// The words for the units in descriptions of activities.
    pub(crate) fn units_name(&self) -> &'static str {
        match self.access {
            Access::Read => "read capacity units",
            Access::Write => "write capacity units",
        }
    }

    /// The one predefined metric that a policy of this target can track.
    pub(crate) fn metric(&self) -> &'static str {
        match self.access {
            Access::Read => "DynamoDBReadCapacityUtilization",
            Access::Write => "DynamoDBWriteCapacityUtilization",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed_from_resource_and_dimension() {
        let table = TargetName::parse("table/Orders", "dynamodb:table:ReadCapacityUnits").unwrap();
        assert_eq!(
            (table.table.as_str(), &table.index, table.access),
            ("Orders", &None, Access::Read)
        );
        let id = "table/Orders/index/by-state";
        let index = TargetName::parse(id, "dynamodb:index:WriteCapacityUnits").unwrap();
        assert_eq!((index.index.as_deref(), index.access), (Some("by-state"), Access::Write));
        assert_eq!(index.resource_id(), id);
        for name in [table, index] {
            assert_eq!(TargetName::of_key(&crate::keys::target(&name)).unwrap(), name);
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for (resource_id, dimension) in [
            ("Orders", "dynamodb:table:ReadCapacityUnits"),
            ("table/", "dynamodb:table:ReadCapacityUnits"),
            ("table/Orders", "dynamodb:index:ReadCapacityUnits"),
            ("table/Orders/index/", "dynamodb:index:ReadCapacityUnits"),
            ("table/Orders/index/a/b", "dynamodb:index:ReadCapacityUnits"),
            ("table/Orders/index/a", "dynamodb:table:ReadCapacityUnits"),
            ("table/Orders", "dynamodb:table:Other"),
            ("table/Orders", "ecs:service:DesiredCount"),
        ] {
            assert_eq!(
                TargetName::parse(resource_id, dimension),
                None,
                "{resource_id} {dimension}"
            );
        }
    }
}
