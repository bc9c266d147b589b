//! The operations of DynamoDB's API, known by name whether or not they are supported.

/// Declares the operations of both services.
macro_rules! operations {
    ($($service:literal { $($operation:ident)* })*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Operation {
            $($($operation,)*)*
        }

        impl Operation {
            pub const ALL: &'static [Operation] = &[$($(Operation::$operation,)*)*];

            /// The operation that an `X-Amz-Target` header names.
            pub fn from_target(target: &str) -> Option<Operation> {
                match target {
                    $($(concat!($service, ".", stringify!($operation)) => {
                        Some(Operation::$operation)
                    })*)*
                    _ => None,
                }
            }

            /// The operation with this name, such as `PutItem`. No two operations of the services
            /// share one.
            pub fn from_name(name: &str) -> Option<Operation> {
                match name {
                    $($(stringify!($operation) => Some(Operation::$operation),)*)*
                    _ => None,
                }
            }

            pub fn name(&self) -> &'static str {
                match self {
                    $($(Operation::$operation => stringify!($operation),)*)*
                }
            }
        }
    };
}

operations! {
    "DynamoDB_20120810" {
        BatchExecuteStatement
        BatchGetItem
        BatchWriteItem
        CancelBulkOperation
        CreateBackup
        CreateGlobalTable
        CreateTable
        DeleteBackup
        DeleteItem
        DeleteResourcePolicy
        DeleteTable
        DescribeBackup
        DescribeBulkOperation
        DescribeContinuousBackups
        DescribeContributorInsights
        DescribeEndpoints
        DescribeExport
        DescribeGlobalTable
        DescribeGlobalTableSettings
        DescribeImport
        DescribeKinesisStreamingDestination
        DescribeLimits
        DescribeTable
        DescribeTableReplicaAutoScaling
        DescribeTimeToLive
        DisableKinesisStreamingDestination
        EnableKinesisStreamingDestination
        ExecuteStatement
        ExecuteTransaction
        ExportTableToPointInTime
        GetItem
        GetResourcePolicy
        ImportTable
        ListBackups
        ListBulkOperations
        ListContributorInsights
        ListExports
        ListGlobalTables
        ListImports
        ListTables
        ListTagsOfResource
        PutItem
        PutResourcePolicy
        Query
        RestoreTableFromBackup
        RestoreTableToPointInTime
        Scan
        SearchVectors
        StartBulkPutItems
        TagResource
        TransactGetItems
        TransactWriteItems
        UntagResource
        UpdateContinuousBackups
        UpdateContributorInsights
        UpdateGlobalTable
        UpdateGlobalTableSettings
        UpdateItem
        UpdateKinesisStreamingDestination
        UpdateTable
        UpdateTableReplicaAutoScaling
        UpdateTimeToLive
    }
    "DynamoDBStreams_20120810" {
        DescribeStream
        GetRecords
        GetShardIterator
        ListStreams
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_name_operations_case_sensitively() {
        assert_eq!(Operation::ALL.len(), 66);
        let parse = Operation::from_target;
        assert_eq!(parse("DynamoDB_20120810.PutItem"), Some(Operation::PutItem));
        assert_eq!(parse("DynamoDBStreams_20120810.GetRecords"), Some(Operation::GetRecords));
        for unknown in ["", "PutItem", "DynamoDB_20120810.putItem", "DynamoDB_20111205.PutItem"] {
            assert_eq!(parse(unknown), None, "{unknown}");
        }
        assert_eq!(parse("DynamoDBStreams_20120810.PutItem"), None);
        assert_eq!(Operation::UpdateTimeToLive.name(), "UpdateTimeToLive");
        for operation in Operation::ALL {
            assert_eq!(Operation::from_name(operation.name()), Some(*operation));
        }
        assert_eq!(Operation::from_name("DynamoDB_20120810.PutItem"), None);
    }
}
