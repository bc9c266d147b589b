//! Texts of the table operations.

use super::{INVALID, SUBSCRIBER, texts};

texts! {
    Validation, INVALID => {
        throughput_on_demand() "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified \
            when BillingMode is PAY_PER_REQUEST";
        throughput_required() "ReadCapacityUnits and WriteCapacityUnits must both be specified \
            when BillingMode is PROVISIONED";

        keys_not_defined(keys: &str, definitions: &str) "Some index key attributes are not defined \
            in AttributeDefinitions. Keys: [{keys}], AttributeDefinitions: [{definitions}]";
        definitions_not_matching() "Number of attributes in KeySchema does not exactly match \
            number of attributes defined in AttributeDefinitions";
        definitions_not_used(definitions: &str, keys: &str) "Some AttributeDefinitions are not \
            used. AttributeDefinitions: [{definitions}], keys used: [{keys}]";

        local_indexes_empty() "List of LocalSecondaryIndexes is empty";
        local_index_on_hash_table() "Table KeySchema does not have a range key, which is required \
            when specifying a LocalSecondaryIndex";
        index_without_range_key(index: &str)
            "Index KeySchema does not have a range key for index: {index}";
        index_hash_key_differs(index: &str, index_key: &str, table_key: &str) "Index KeySchema \
            does not have the same leading hash key as table KeySchema for index: {index}. index \
            hash key: {index_key}, table hash key: {table_key}";
        duplicate_index_name(index: &str) "Duplicate index name: {index}";
        too_many_local_indexes() "Number of LocalSecondaryIndexes exceeds per-table limit of 5";

        global_indexes_empty() "List of GlobalSecondaryIndexes is empty";
        too_many_global_indexes()
            "GlobalSecondaryIndex count exceeds the per-table limit of 20";
        index_throughput_on_demand(index: &str) "ProvisionedThroughput should not be specified \
            for index: {index} when BillingMode is PAY_PER_REQUEST";
        index_throughput_required(index: &str)
            "ProvisionedThroughput is not specified for index: {index}";

        projection_type_missing() "Unknown ProjectionType: null";
        projection_attributes_unexpected(projection_type: &str)
            "ProjectionType is {projection_type}, but NonKeyAttributes is specified";
        projection_attributes_missing()
            "ProjectionType is INCLUDE, but NonKeyAttributes is not specified";
        projection_attribute_duplicate(attribute: &str)
            "Duplicate element in NonKeyAttributes: {attribute}";
        too_many_projected_attributes()
            "NonKeyAttributes count exceeds the per-table limit of 100";

        too_many_keys(key_type: &str) "The KeySchema exceeds the maximum allowed number of \
            {key_type} key attributes";
        hash_after_range() "All HASH key attributes must precede RANGE key attributes in the KeySchema";

        created_stream_without_view_type()
            "Table is being created with a stream enabled, UpdateViewType is required";
        created_without_stream_but_view_type()
            "Table is being created with a stream disabled, UpdateViewType should not be specified";

        on_demand_maximum_provisioned(member: &str, place: &str) "{member} for \
            OnDemandThroughput{place} cannot be specified when table BillingMode is PROVISIONED.";
        on_demand_maximum_range(member: &str, place: &str) "Requested {member} for \
            OnDemandThroughput {place} is outside of valid range";
        warm_below_on_demand(member: &str, place: &str) "Requested {member} for WarmThroughput \
            {place} is lower than initial throughput for OnDemand. See: \
            https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/on-demand-capacity-mode.html#on-demand-capacity-mode-initial";
        warm_below_provisioned(member: &str, place: &str, units: &str) "Requested {member} for \
            WarmThroughput {place} is lower than {units} of ProvisionedThroughput";

        sse_aes256() "SSEType AES256 is not supported";
        sse_type_while_disabled() "SSEType can not be specified if Enabled is false";
        sse_key_while_disabled() "KMSMasterKeyId can not be specified if Enabled is false";
        sse_type_required() "SSEType KMS is required if KMSMasterKeyId is specified";

        vector_indexes_provisioned() "Vector indexes are only supported for PAY_PER_REQUEST tables";
    }
    Validation, "" => {
        capacity_out_of_bounds(units: i64, member: &str)
            "Given value {units} for {member} is out of bounds";
        duplicate_definition(attribute: &str) "Attribute Name is duplicated: {attribute}";
        key_without_definition()
            "Invalid KeySchema: Some index key attribute have no definition";
        same_hash_and_range_key() "Both the Hash Key and the Range Key element in the KeySchema \
            have the same name";
        repeated_key_attribute()
            "The KeySchema contains multiple key attributes with the same name";
        first_key_not_hash()
            "Invalid KeySchema: The first KeySchemaElement is not a HASH key type";
        second_key_not_range()
            "Invalid KeySchema: The second KeySchemaElement is not a RANGE key type";
        table_class() "Invalid table-class parameter provided. Please try again with a valid \
            table-class value: [STANDARD, STANDARD_INFREQUENT_ACCESS].";
        deletion_protected() "Resource cannot be deleted as it is currently protected against \
            deletion. Disable deletion protection first.";
    }

    // UpdateTable.
    Validation, "" => {
        nothing_to_update(members: &str) "At least one of {members} is required";
        throughput_unchanged(target: &str, read: u64, write: u64) "The provisioned throughput for \
            the {target} will not change. The requested value equals the current value. Current \
            ReadCapacityUnits provisioned for the {target}: {read}. Requested ReadCapacityUnits: \
            {read}. Current WriteCapacityUnits provisioned for the {target}: {write}. Requested \
            WriteCapacityUnits: {write}. Refer to the Amazon DynamoDB Developer Guide for current \
            limits and how to request higher limits.";
        stream_already_enabled(table: &str)
            "Table already has an enabled stream: TableName: {table}";
        no_stream_to_disable(table: &str) "Table has no stream to disable: TableName: {table}";
        index_exists() "Attempting to create an index which already exists";
        not_a_global_index(verb: &str, index: &str)
            "Cannot {verb} an index that is not a GlobalSecondaryIndex: {index}";
        index_update_blocked() "This operation cannot be performed with given input values. \
            Please contact DynamoDB service team for more info: Action Blocked: IndexUpdate";
        no_replica_actions()
            "There are no actions specified in the Replica Update Action of the request.";
    }
    Validation, INVALID => {
        must_be_only_operation(change: &str)
            "{change} must be the only operation in the request";
        on_demand_maximum_combined() "OnDemandThroughput can only be combined with BillingMode in \
            an UpdateTable request";
        stream_while_throughput()
            "You cannot modify stream status while updating table IOPS";
        index_while_throughput()
            "You cannot create or delete index while updating table IOPS";
        index_while_stream()
            "You cannot create or delete index while changing stream status";
        index_while_warm() "Create global secondary index cannot be specified when updating \
            WarmThroughput";
        index_updates_empty() "List of GlobalSecondaryIndexUpdates is empty";
        index_update_without_action() "One of GlobalSecondaryIndexUpdate.Update, \
            GlobalSecondaryIndexUpdate.Create, GlobalSecondaryIndexUpdate.Delete must not be null";
        index_update_with_several_actions() "Only one global secondary index action is allowed \
            per GlobalSecondaryIndexUpdate object";
        index_updated_twice(index: &str) "Only one global secondary index update per index is \
            allowed simultaneously. Index: {index}";
        index_warm_empty(index: &str) "WarmThroughput must have at least one of \
            ReadUnitsPerSecond or WriteUnitsPerSecond specified for index: {index}";
        updated_index_throughput_on_demand(index: &str) "Neither ReadCapacityUnits nor \
            WriteCapacityUnits can be specified for index: {index} when BillingMode is \
            PAY_PER_REQUEST";
        index_update_on_demand(index: &str) "The only Updates for index: {index} when \
            TableThroughputMode is PAY_PER_REQUEST can be to OnDemandThroughput, WarmThroughput";
        update_throughput_required()
            "ProvisionedThroughput must be specified when BillingMode is PROVISIONED";
        update_index_throughput_required(index: &str)
            "ProvisionedThroughput must be specified for index: {index}";
        created_index_throughput_required(index: &str) "Both ReadCapacityUnits and \
            WriteCapacityUnits must be specified for index: {index}";
        update_on_demand_maximum_provisioned(member: &str) "{member} for OnDemandThroughput \
            cannot be specified when the table BillingMode is PROVISIONED";
        update_index_on_demand_maximum_provisioned(member: &str, index: &str) "{member} for \
            OnDemandThroughput for index: {index} cannot be specified when the table BillingMode \
            is PROVISIONED";
        warm_decrease(member: &str, place: &str) "Requested {member} for WarmThroughput {place} \
            is lower than current WarmThroughput, decreasing WarmThroughput is not supported";
        enabled_stream_without_view_type()
            "If stream is being enabled then UpdateViewType is required";
        disabled_stream_with_view_type()
            "If stream is being disabled, then UpdateViewType must not be specified";
        encrypted_by_default() "Table is already encrypted by default";
        encrypted_with_key() "Table is already encrypted with given KMSMasterKeyId. Use \
            KMSMasterKeyId parameter if you want to change Master Key";
        attributes_redefined(existing: &str, new: &str) "Attributes cannot be redefined. Please \
            check that your attribute has the same type as previously defined. Existing schema: \
            {existing} New schema: {new}";
        definitions_missing(index: &str)
            "AttributeDefinitions is not specified for index: {index}";
    }

    ResourceNotFound, "Requested resource not found" => {
        /// The item operations' text for a missing table.
        requested_resource_not_found() "";
        table_not_found(table: &str) ": Table: {table} not found";
        index_not_found(index: &str, table: &str) ": Index {index} for table {table}";
    }
    ResourceInUse, "" => {
        table_exists(table: &str) "Table already exists: {table}";
        table_being_used(table: &str) "Table is being used: {table}";
    }
    ResourceInUse, "Attempt to change a resource which is still in use: " => {
        table_being_created(table: &str) "Table is being created: {table}";
        table_being_updated(table: &str) "Table: {table} is in the process of being updated.";
        table_being_deleted(table: &str) "Table is being deleted: {table}";
        indexes_in_flux()
            "Cannot delete table while indexes are being created, updated, or deleted.";
        throughput_while_index(participle: &str, table: &str, indexes: &str) "Can't change table IOPS \
            when an index is being {participle}. Table: {table} Indexes: [{indexes}]";
        stream_while_index(participle: &str)
            "Can't change stream status when an index is being {participle}";
        on_demand_maximum_while_index(noun: &str, indexes: &str) "OnDemandThroughput cannot be \
            updated while index {noun} is in progress for indexes: [{indexes}]";
        index_being_deleted(table: &str, index: &str)
            "Index is being deleted. Table: {table} Index: {index}";
    }
    LimitExceeded, "" => {
        table_capacity(member: &str, requested: u64, maximum: u64, region: &str) "The requested \
            {member}, {requested}, is above the per table maximum for the account in {region}. \
            Per table maximum: {maximum}. Refer to the Amazon DynamoDB Developer Guide for current \
            limits and how to request higher limits.";
        account_capacity(
            member: &str, current: u64, maximum: u64, requested: u64, region: &str
        ) "This request would have caused the {member} limit to be exceeded for the account in \
            {region}. Current {member} reserved by the account: {current}. Limit: {maximum}. \
            Requested: {requested}. Refer to the Amazon DynamoDB Developer Guide for current limits \
            and how to request higher limits.";
    }
    LimitExceeded, SUBSCRIBER => {
        too_many_tables() "Number of tables exceeds the limit of the account";
        on_demand_maximum_limit(member: &str, place: &str, account: &str, region: &str)
            "Requested {member} for OnDemandThroughput for {place} exceeds {account} of the \
            account in region {region}";
        too_many_class_changes() "Updates to TableClass are limited to 2 times in 30 day(s).";
        one_index_at_a_time()
            "Only 1 online index can be created or deleted simultaneously per table";
        too_many_global_indexes_after_update()
            "Number of global secondary indexes exceeds per-table limit of 20";
        too_many_decreases(decreases: u32, last: &str, next: &str) "Provisioned throughput \
            decreases are limited within a given UTC day. After the first 4 decreases, each \
            subsequent decrease in the same UTC day can be performed at most once every 3600 \
            seconds. Number of decreases today: {decreases}. Last decrease at {last}. Next \
            decrease can be made at {next}";
    }

    // Time to live.
    Validation, "" => {
        time_to_live_already_enabled() "TimeToLive is already enabled";
        time_to_live_other_attribute(current: &str) "TimeToLive is active on a different \
            AttributeName: current AttributeName is {current}";
        time_to_live_already_disabled() "TimeToLive is already disabled";
        time_to_live_changed_too_often()
            "Time to live has been modified multiple times within a fixed interval";
    }
}
