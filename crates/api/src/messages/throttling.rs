//! Texts about requests that are refused because there are too many.

use super::texts;

texts! {
    ProvisionedThroughputExceeded, "" => {
        table_provisioned() "The level of configured provisioned throughput for the table was \
            exceeded. Consider increasing your provisioning level with the UpdateTable API.";
        index_provisioned() "The level of configured provisioned throughput for one or more global \
            secondary indexes of the table was exceeded. Consider increasing your provisioning level \
            for the under-provisioned global secondary indexes with the UpdateTable API";
    }
    Throttling, "" => {
        table_on_demand() "Throughput exceeds the current capacity of your table or index. DynamoDB \
            is automatically scaling your table or index so please try again shortly. If exceptions \
            persist, check if you have a hot key: \
            https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html";
        index_on_demand() "Throughput exceeds the current capacity for one or more global secondary \
            indexes. DynamoDB is automatically scaling your index so please try again shortly.";
        control_plane() "Rate exceeded";
    }
}
