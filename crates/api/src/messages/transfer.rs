//! Texts about imports, bulk puts and the object stores that they read.

use super::texts;

texts! {
    Validation, "Invalid Request: " => {
        unsupported_options(format: &str)
            "Unsupported InputFormatOptions for the given input format: {format}.";
        next_token(token: &str) "Provided nextToken is invalid: {token}";
    }
    Validation, "" => {
        invalid_import_arn() "Invalid Import ARN";
        invalid_table_arn() "Invalid TableArn: Invalid Table ARN";
        /// Our own: AWS always has S3.
        no_object_store(operation: &str) "{operation} needs an object store; start the server \
            with --s3-endpoint to say which";
    }
    AccessDenied, "" => {
        other_account() "Access is denied";
    }
    ImportNotFound, "" => {
        import_not_found(arn: &str) "Import not found: {arn}";
    }
    ResourceNotFound, "Requested resource not found: " => {
        bulk_not_found(arn: &str) "Bulk operation: {arn} not found";
    }
    ResourceInUse, "Attempt to change a resource which is still in use: " => {
        bulk_table_busy(table: &str) "Table: {table} is being used.";
    }
    IdempotentParameterMismatch, "" => {
        bulk_token_mismatch() "The client token was used with other parameters";
    }
    ImportConflict, "" => {
        import_conflict()
            "Import conflict: Duplicate request detected with conflicting parameters";
    }
}

/// Why an import with bad items has failed.
pub(crate) const ITEMS_FAILED: &str = "Some of the items failed validation checks and were not \
    imported. Please check CloudWatch error logs for more details.";

pub(crate) fn no_item() -> String {
    "The line has no Item".to_owned()
}

/// Our own: AWS's text is not recorded.
pub(crate) fn unknown_member(name: &str) -> String {
    format!(
        "{name} is unknown: besides Item, a line may have ConditionExpression, \
         ExpressionAttributeNames and ExpressionAttributeValues"
    )
}

/// Our own: AWS's text is not recorded.
pub(crate) fn not_a_condition(member: &str) -> String {
    format!("{member} has another type than in PutItem")
}

pub(crate) fn too_many_attributes() -> String {
    "Item size has exceeded the maximum allowed size".to_owned()
}

pub(crate) fn not_json() -> String {
    "The line is not JSON; the rest of the object was not read".to_owned()
}

/// The reason why an object's content can't be read on.
pub(crate) fn unreadable(error: &zenobe_transfer::ContentError) -> String {
    format!("{error}; the rest of the object was not read")
}
