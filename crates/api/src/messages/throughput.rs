//! Requests that met a limit of throughput.
//!
//! The texts are recorded on AWS, except that of an on-demand maximum, which is documented.

use zenobe_engine::throughput::cause::{ThrottleCause, Throttled};

use super::texts;
use crate::error::{ApiError, Exception, ThrottlingEntry};

pub(crate) fn throttled(throttled: &Throttled) -> ApiError {
    let has = |cause| throttled.reasons.iter().any(|reason| reason.cause == cause);
    // A table's own limit is named before those of its indexes.
    let is_index = throttled.reasons.iter().all(|reason| reason.resource.index.is_some());
    let error = if has(ThrottleCause::AccountLimit) {
        account_limit()
    } else if has(ThrottleCause::MaxOnDemand) {
        on_demand_maximum()
    } else {
        match (throttled.on_demand, is_index) {
            (false, false) => provisioned_table(),
            (false, true) => provisioned_index(),
            (true, false) => on_demand_table(),
            (true, true) => on_demand_index(),
        }
    };
    let entries = throttled
        .reasons
        .iter()
        .map(|reason| ThrottlingEntry { reason: reason.name(), resource: reason.resource.arn() });
    error.with_throttling_reasons(entries.collect())
}

/// The code of a transaction's action or of a batch's statement that met a limit.
pub(crate) fn code(exception: Exception) -> &'static str {
    match exception {
        Exception::ProvisionedThroughputExceeded => "ProvisionedThroughputExceeded",
        Exception::RequestLimitExceeded => "RequestLimitExceeded",
        _ => "ThrottlingError",
    }
}

pub(crate) fn max_request_units(write: bool) -> &'static str {
    if write { "MaxWriteRequestUnits" } else { "MaxReadRequestUnits" }
}

pub(crate) fn units_per_second(write: bool) -> &'static str {
    if write { "WriteUnitsPerSecond" } else { "ReadUnitsPerSecond" }
}

pub(crate) fn capacity_units(write: bool) -> &'static str {
    if write { "WriteCapacityUnits" } else { "ReadCapacityUnits" }
}

/// How texts about warm throughput name the table or an index.
pub(crate) fn warm_place(index: Option<&str>) -> String {
    index.map_or("for table".to_owned(), |index| format!("for index {index}"))
}

texts! {
    ProvisionedThroughputExceeded, "The level of configured provisioned throughput for " => {
        provisioned_table() "the table was exceeded. Consider increasing your provisioning level \
            with the UpdateTable API.";
        provisioned_index() "one or more global secondary indexes of the table was exceeded. \
            Consider increasing your provisioning level for the under-provisioned global \
            secondary indexes with the UpdateTable API";
    }
    OnDemandThroughputExceeded, "Throughput exceeds the " => {
        on_demand_table() "current capacity of your table or index. DynamoDB is automatically \
            scaling your table or index so please try again shortly. If exceptions persist, check \
            if you have a hot key: \
            https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html";
        on_demand_index() "current capacity for one or more global secondary indexes. DynamoDB is \
            automatically scaling your index so please try again shortly.";
        on_demand_maximum() "maximum OnDemandThroughput configured on table or index";
    }
    RequestLimitExceeded, "Throughput exceeds the " => {
        account_limit() "current throughput limit for your account. To request a limit increase, \
            contact AWS Support at https://aws.amazon.com/support.";
    }
    Throttling, "" => {
        rate_exceeded() "Rate exceeded";
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use zenobe_engine::command::TableName;
    use zenobe_engine::schema::{IndexId, KeySchema, Namespace, TableId};
    use zenobe_engine::throughput::cause::{Access, Resource, ThrottleReason};

    use super::*;

    fn reason(access: Access, cause: ThrottleCause, index: Option<&str>) -> ThrottleReason {
        let namespace = Arc::new(Namespace { account: "1".into(), region: "r".into() });
        let table = TableName { namespace, name: "t".into() };
        let index = index.map(|name| (name.to_owned(), IndexId(1)));
        let keys = KeySchema { partition: Vec::new(), sort: Vec::new() };
        ThrottleReason {
            resource: Arc::new(Resource { table, table_id: TableId(1), index, keys }),
            access,
            cause,
        }
    }

    #[track_caller]
    fn check(on_demand: bool, reasons: Vec<ThrottleReason>, expected: &str) {
        let response = throttled(&Throttled { reasons, on_demand }).into_response();
        assert_eq!(response.status, 400);
        assert_eq!(std::str::from_utf8(&response.body).unwrap(), expected);
    }

    #[test]
    fn every_limit_has_its_exception_and_its_reason() {
        use Access::{Read, Write};
        use ThrottleCause::{AccountLimit, KeyRange, MaxOnDemand, Provisioned};
        check(
            false,
            vec![reason(Write, Provisioned, None), reason(Write, KeyRange, None)],
            concat!(
                r#"{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException","#,
                r#""message":"The level of configured provisioned throughput for the table was exceeded. "#,
                r#"Consider increasing your provisioning level with the UpdateTable API.","#,
                r#""ThrottlingReasons":[{"reason":"TableWriteProvisionedThroughputExceeded","#,
                r#""resource":"arn:aws:dynamodb:r:1:table/t"},"#,
                r#"{"reason":"TableWriteKeyRangeThroughputExceeded","resource":"arn:aws:dynamodb:r:1:table/t"}]}"#,
            ),
        );
        check(
            false,
            vec![reason(Write, Provisioned, Some("i"))],
            concat!(
                r#"{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException","#,
                r#""message":"The level of configured provisioned throughput for one or more global "#,
                r#"secondary indexes of the table was exceeded. Consider increasing your provisioning "#,
                r#"level for the under-provisioned global secondary indexes with the UpdateTable API","#,
                r#""ThrottlingReasons":[{"reason":"IndexWriteProvisionedThroughputExceeded","#,
                r#""resource":"arn:aws:dynamodb:r:1:table/t/index/i"}]}"#,
            ),
        );
        check(
            true,
            vec![reason(Read, KeyRange, None)],
            concat!(
                r#"{"__type":"com.amazonaws.dynamodb.v20120810#ThrottlingException","#,
                r#""message":"Throughput exceeds the current capacity of your table or index. DynamoDB is "#,
                r#"automatically scaling your table or index so please try again shortly. If exceptions "#,
                r#"persist, check if you have a hot key: https://docs.aws.amazon.com/amazondynamodb/latest/"#,
                r#"developerguide/bp-partition-key-design.html","#,
                r#""throttlingReasons":[{"reason":"TableReadKeyRangeThroughputExceeded","#,
                r#""resource":"arn:aws:dynamodb:r:1:table/t"}]}"#,
            ),
        );
        check(
            true,
            vec![reason(Read, KeyRange, Some("i"))],
            concat!(
                r#"{"__type":"com.amazonaws.dynamodb.v20120810#ThrottlingException","#,
                r#""message":"Throughput exceeds the current capacity for one or more global secondary "#,
                r#"indexes. DynamoDB is automatically scaling your index so please try again shortly.","#,
                r#""throttlingReasons":[{"reason":"IndexReadKeyRangeThroughputExceeded","#,
                r#""resource":"arn:aws:dynamodb:r:1:table/t/index/i"}]}"#,
            ),
        );
        check(
            true,
            vec![reason(Read, MaxOnDemand, None)],
            concat!(
                r#"{"__type":"com.amazonaws.dynamodb.v20120810#ThrottlingException","#,
                r#""message":"Throughput exceeds the maximum OnDemandThroughput configured on table or index","#,
                r#""throttlingReasons":[{"reason":"TableReadMaxOnDemandThroughputExceeded","#,
                r#""resource":"arn:aws:dynamodb:r:1:table/t"}]}"#,
            ),
        );
        check(
            true,
            vec![reason(Write, AccountLimit, None)],
            concat!(
                r#"{"__type":"com.amazonaws.dynamodb.v20120810#RequestLimitExceeded","#,
                r#""message":"Throughput exceeds the current throughput limit for your account. To request "#,
                r#"a limit increase, contact AWS Support at https://aws.amazon.com/support.","#,
                r#""ThrottlingReasons":[{"reason":"TableWriteAccountLimitExceeded","#,
                r#""resource":"arn:aws:dynamodb:r:1:table/t"}]}"#,
            ),
        );
    }
}
