//! Texts about exports.

use zenobe_engine::error::ExportSpanError;

use super::backup::seconds;
use super::{INVALID, SUBSCRIBER, texts};
use crate::error::ApiError;

texts! {
    Validation, INVALID => {
        table_arn_invalid() "tableArn is not a valid ARN";
    }
    Validation, "" => {
        invalid_export_arn() "Invalid Export ARN";
    }
    Validation, "Invalid Request: " => {
        index_arn() "Table ARN is invalid.";
        specification_expected()
            "Incremental Export Specification expected when export type is set as Incremental Export";
        type_expected() "Export Type expected to be Incremental Export when incremental export \
            specification is provided";
        specification_of_full_export() "When Export Type is Full Export , Incremental Export \
            Specification should not be provided";
        from_time_required() "ExportFromTime must be provided in IncrementalExportSpecification";
        kms_key_unexpected() "KMS Key Id is not supported for this encryption type";
        empty_filter() "Invalid FilterSpecification: The specification can not be empty";
    }
    InvalidExportTime, "" => {
        export_time() "Export Time is invalid";
        export_time_too_recent()
            "Point in Time Recovery is not available for specified export time";
        from_before_creation(from: &str) "Incremental export period from time cannot be less than \
            the table creation time : {from}";
        to_in_future(to: &str) "Incremental export period to time cannot be greater than the \
            current time : {to}";
        period_too_short() "Difference between export period from time and export period to time \
            is less than 15 minutes";
        /// In the words of the one above: AWS's are not recorded.
        period_too_long() "Difference between export period from time and export period to time \
            is greater than 24 hours";
    }
    LimitExceeded, SUBSCRIBER => {
        /// Our own: AWS's is not recorded.
        too_many_exports() "Only 300 exports can be done simultaneously";
    }
    ExportConflict, "Export conflict: " => {
        export_conflict() "Duplicate request detected with conflicting parameters";
    }
    ExportNotFound, "Export not found: " => {
        export_not_found(arn: &str) "Export not found: {arn}";
        export_of_another_region() "Invalid export arn";
    }
}

pub(super) fn export_error(error: &ExportSpanError) -> ApiError {
    match error {
        ExportSpanError::Time => export_time(),
        ExportSpanError::TooRecent => export_time_too_recent(),
        ExportSpanError::BeforeCreation { from_ms } => from_before_creation(&seconds(*from_ms)),
        ExportSpanError::EndsInFuture { to_ms } => to_in_future(&seconds(*to_ms)),
        ExportSpanError::TooShort => period_too_short(),
        ExportSpanError::TooLong => period_too_long(),
        ExportSpanError::TooMany => too_many_exports(),
    }
}
