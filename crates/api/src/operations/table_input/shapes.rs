//! Shapes of the API model that describe tables.

use crate::json::JsonReader;
use crate::json::decode::{Decode, JsonError, JsonPosition, shape};

shape! {
    struct AttributeDefinition {
        "AttributeName" => attribute_name: String,
        "AttributeType" => attribute_type: String,
    }

    struct KeySchemaElement {
        "AttributeName" => attribute_name: String,
        "KeyType" => key_type: String,
    }

    struct Projection {
        "ProjectionType" => projection_type: String,
        "NonKeyAttributes" => non_key_attributes: Vec<String>,
    }

    struct ProvisionedThroughput {
        "ReadCapacityUnits" => read_capacity_units: i64,
        "WriteCapacityUnits" => write_capacity_units: i64,
    }

    struct OnDemandThroughput {
        "MaxReadRequestUnits" => max_read_request_units: i64,
        "MaxWriteRequestUnits" => max_write_request_units: i64,
    }

    struct WarmThroughput {
        "ReadUnitsPerSecond" => read_units_per_second: i64,
        "WriteUnitsPerSecond" => write_units_per_second: i64,
    }

    struct StreamSpecification {
        "StreamEnabled" => stream_enabled: bool,
        "StreamViewType" => stream_view_type: String,
    }

    struct SSESpecification {
        "Enabled" => enabled: bool,
        "SSEType" => sse_type: String,
        "KMSMasterKeyId" => kms_master_key_id: String,
    }

    struct Tag {
        "Key" => key: String,
        "Value" => value: String,
    }

    struct LocalSecondaryIndex {
        "IndexName" => index_name: String,
        "KeySchema" => key_schema: Vec<KeySchemaElement>,
        "Projection" => projection: Projection,
    }

    struct GlobalSecondaryIndex {
        "IndexName" => index_name: String,
        "KeySchema" => key_schema: Vec<KeySchemaElement>,
        "Projection" => projection: Projection,
        "ProvisionedThroughput" => provisioned_throughput: ProvisionedThroughput,
        "OnDemandThroughput" => on_demand_throughput: OnDemandThroughput,
        "WarmThroughput" => warm_throughput: WarmThroughput,
    }

    struct CreateGlobalSecondaryIndexAction {
        "IndexName" => index_name: String,
        "KeySchema" => key_schema: Vec<KeySchemaElement>,
        "Projection" => projection: Projection,
        "ProvisionedThroughput" => provisioned_throughput: ProvisionedThroughput,
        "OnDemandThroughput" => on_demand_throughput: OnDemandThroughput,
        "WarmThroughput" => warm_throughput: WarmThroughput,
    }

    struct UpdateGlobalSecondaryIndexAction {
        "IndexName" => index_name: String,
        "ProvisionedThroughput" => provisioned_throughput: ProvisionedThroughput,
        "OnDemandThroughput" => on_demand_throughput: OnDemandThroughput,
        "WarmThroughput" => warm_throughput: WarmThroughput,
    }

    struct DeleteGlobalSecondaryIndexAction {
        "IndexName" => index_name: String,
    }

    struct GlobalSecondaryIndexUpdate {
        "Update" => update: UpdateGlobalSecondaryIndexAction,
        "Create" => create: CreateGlobalSecondaryIndexAction,
        "Delete" => delete: DeleteGlobalSecondaryIndexAction,
    }
}

impl From<CreateGlobalSecondaryIndexAction> for GlobalSecondaryIndex {
    fn from(action: CreateGlobalSecondaryIndexAction) -> GlobalSecondaryIndex {
        GlobalSecondaryIndex {
            index_name: action.index_name,
            key_schema: action.key_schema,
            projection: action.projection,
            provisioned_throughput: action.provisioned_throughput,
            on_demand_throughput: action.on_demand_throughput,
            warm_throughput: action.warm_throughput,
        }
    }
}

/// A member whose presence matters, but not its content.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PresentMember;

impl Decode for PresentMember {
    fn collection_type() -> String {
        String::new()
    }

    fn decode(reader: &mut JsonReader<'_>, _: JsonPosition) -> Result<Self, JsonError> {
        reader.skip()?;
        Ok(PresentMember)
    }
}
