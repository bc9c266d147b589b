//! Texts about how requests name tables, and other things that many operations share.

use super::{INVALID, NEWER_PREFIX, texts};

texts! {
    Validation, "" => {
        table_name_required()
            "The parameter 'TableName' is required but was not present in the request";
        global_table_name_length()
            "TableName must be at least 3 characters long and at most 255 characters long";
    }
    // These texts contain the envelope's words in both wordings.
    Validation, NEWER_PREFIX => {
        /// The newer front end's only text for an empty TableName or RequestItems.
        empty_member(member: &str) "Value at '{member}' failed to satisfy constraint: Member must \
            have length greater than or equal to 1";
        /// The newer front end's text for bad ReturnValues of an UpdateItem, in its own spelling.
        update_return_values() "Failed to satisfy constraint: Member must satisfy enum value set: \
            [ALL_OLD, UPDATED_OLD, ALL_NEW, UPDATE_NEW, NONE]";
        arn_region(arn: &str) "Invalid AWS region in '{arn}'";
        arn_partition(arn: &str) "Invalid AWS partition in '{arn}'";
        arn_resource_type(arn: &str) "Invalid resource type in '{arn}'";
        arn_format(arn: &str) "Valid ARN format is \
            arn:aws:dynamodb:<region>:<account>:table/<name>, but found '{arn}'";
    }
    AccessDenied, "" => {
        other_account() "Access is denied";
    }
    Validation, INVALID => {
        legacy_global_tables()
            "DynamoDB global tables version 2017.11.29 is not supported. We recommend using \
            DynamoDB global tables version 2019.11.21, instead of version 2017.11.29 (Legacy).";
    }
    GlobalTableNotFound, "" => {
        global_table_not_found(name: &str) "Global table with name: '{name}' does not exist.";
    }
    ResourceNotFound, "" => {
        /// The auto scaling operations' text for a table without replicas.
        no_global_table(name: &str) "Global table with name: '{name}' does not exist.";
    }
    InternalServerError, "" => {
        internal_server_error() "Internal server error";
    }
    ServiceUnavailable, "" => {
        service_unavailable() "The service is currently unavailable or busy.";
    }
    InternalFailure, "" => {
        /// DynamoDB fails with an empty text on some degenerate requests.
        internal_failure() "";
    }
}
