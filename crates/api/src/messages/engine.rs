//! The engine's errors in DynamoDB's words.

use zenobe_engine::error::{
    BlockedChange, CancellationReason, Error, LimitError, TimeToLiveError, UpdateTableError,
};
use zenobe_engine::failed_requests;
use zenobe_engine::schema::{KeyAttribute, KeySchema};
use zenobe_engine::throughput::{MODE_TAG, ModeTagError};
use zenobe_expression::UpdateError;

use super::date::long_date;
use super::throughput::{capacity_units, max_request_units, units_per_second, warm_place};
use super::{
    INVALID, backup, batch, export, insights, item, key_value, page, request, stream, table, tag,
    texts, throughput, transaction, value,
};
use crate::error::{ApiError, CancellationEntry};

/// The subject of the failed request; some texts name it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Subject<'a> {
    Items,
    Table { name: &'a str, region: &'a str },
    Resource { arn: &'a str },
}

pub(crate) fn engine_error(error: Error, subject: Subject<'_>) -> ApiError {
    match error {
        Error::TableNotFound { name } => match subject {
            Subject::Items => table::requested_resource_not_found(),
            Subject::Table { .. } => table::table_not_found(&name),
            Subject::Resource { arn } => tag::resource_not_found(arn),
        },
        Error::ResourceNotFound { arn } => tag::resource_not_found(&arn),
        Error::TableExists { name } => table::table_exists(&name),
        Error::TableFilling { name } => table::table_being_created(&name),
        Error::IndexNotFound { index } => index_not_found(&index),
        Error::UpdateTable(error) => update_table_error(error, subject),
        Error::DeletionProtected => table::deletion_protected(),
        Error::IndexesInFlux => table::indexes_in_flux(),
        Error::TimeToLive(error) => time_to_live_error(&error),
        Error::Insights(error) => insights::insights_error(&error),
        Error::TooManyTags => tag::too_many(),
        Error::Limit(error) => limit_error(&error, subject),
        Error::ModeTag(error) => mode_tag_error(&error),

        Error::Key(error) => key_value::key_error(&error),
        Error::IndexKey { index, attribute, error } => {
            key_value::index_key_error(&index, &attribute, &error)
        }
        Error::UpdateOfKey { attribute } => update_of_key(&attribute),
        Error::PathBelowKey { attribute, index: false } => path_below_key("Key", &attribute),
        Error::PathBelowKey { attribute, index: true } => path_below_key("IndexKey", &attribute),
        Error::ConditionFailed { .. } => item::condition_failed(None),
        Error::ItemTooLarge => item::item_too_large(),
        Error::UpdateTooLarge => item::update_too_large(),
        Error::NestedTooDeeply => nested_too_deeply(value::NESTED_TOO_DEEPLY),
        Error::Update(error) => update_error(&error),
        Error::CollectionTooLarge => item::collection_too_large(),
        Error::History(error) => backup::history_error(&error, subject),
        Error::Restore(error) => backup::restore_error(&error),
        Error::Backup(error) => backup::backup_fault(&error, None),
        Error::Export(error) => export::export_error(&error),
        Error::Page(error) => page::page_error(error),
        Error::Stream(error) => stream::stream_error(error, "", ""),

        Error::DuplicateKeys => batch::duplicate_keys(),
        Error::DuplicateTransactionItems => duplicate_transaction_items(),
        Error::TransactionTooLarge => transaction::payload_too_large(),
        Error::TransactionCancelled(reasons) => transaction_cancelled(reasons, |_| false),
        Error::IdempotentParameterMismatch => idempotent_parameter_mismatch(),
        Error::TransactionInProgress => transaction_in_progress(),

        Error::Throttled(throttled) => throughput::throttled(&throttled),
        Error::Conflict => match subject {
            Subject::Items => transaction_ongoing(),
            Subject::Table { .. } | Subject::Resource { .. } => internal_error(&error),
        },
        Error::Unavailable { .. } => {
            failed_requests::log(&error);
            request::service_unavailable()
        }
        Error::Store(_)
        | Error::Corrupt { .. }
        | Error::LeaseLost { .. }
        | Error::TableChanged { .. } => internal_error(&error),
    }
}

/// A cancelled transaction. `shows_item` returns, for an action's position, whether the action
/// asked for the item of a failed condition.
pub(crate) fn transaction_cancelled(
    reasons: Vec<CancellationReason>,
    shows_item: impl Fn(usize) -> bool,
) -> ApiError {
    let entries: Vec<CancellationEntry> = reasons
        .into_iter()
        .enumerate()
        .map(|(position, reason)| cancellation_entry(reason, shows_item(position)))
        .collect();
    cancelled_by(entries)
}

/// A transaction cancelled for these reasons.
pub(crate) fn cancelled_by(entries: Vec<CancellationEntry>) -> ApiError {
    let codes: Vec<&str> = entries.iter().map(|entry| entry.code).collect();
    cancelled(&codes.join(", ")).with_cancellation_reasons(entries)
}

/// A failure that only concerns the operator: its cause goes to the log, unless it is there
/// already.
fn internal_error(error: &Error) -> ApiError {
    failed_requests::log(error);
    request::internal_server_error()
}

texts! {
    Validation, "" => {
        index_not_found(index: &str) "The table does not have the specified index: {index}";
        path_below_key(what: &str, attribute: &str) "Key attributes must be scalars; list random \
            access '[]' and map lookup '.' are not allowed: {what}: {attribute}";
        nested_too_deeply(text: &str) "{text}";
        duplicate_transaction_items()
            "Transaction request cannot include multiple operations on one item";
        missing_attribute() "The provided expression refers to an attribute that does not exist \
            in the item";
        operand_type() "An operand in the update expression has an incorrect data type";
        invalid_path() "The document path provided in the update expression is invalid for update";
        number_range(text: &str) "{text}";
        update_type_mismatch() "Type mismatch for attribute to update";
    }
    Validation, INVALID => {
        update_of_key(attribute: &str)
            "Cannot update attribute {attribute}. This attribute is part of the key";
    }
    TransactionCanceled, "" => {
        cancelled(codes: &str) "Transaction cancelled, please refer cancellation reasons for \
            specific reasons [{codes}]";
    }
    IdempotentParameterMismatch, "" => {
        idempotent_parameter_mismatch() "The request uses the same client token as a previous, \
            but non-identical request. Do not reuse a client token with different requests, \
            unless the requests are identical";
    }
    TransactionConflict, "" => {
        /// Every attempt conflicted with another write of the same items. Nothing was written.
        transaction_ongoing() "Transaction is ongoing for the item";
    }
    TransactionInProgress, "" => {
        transaction_in_progress()
            "The transaction with the given request token is already in progress.";
    }
}

fn update_table_error(error: UpdateTableError, subject: Subject<'_>) -> ApiError {
    let table = match subject {
        Subject::Table { name, .. } => name,
        _ => "",
    };
    match error {
        UpdateTableError::ThroughputRequired => table::update_throughput_required(),
        UpdateTableError::IndexThroughputRequired { index } => {
            table::update_index_throughput_required(&index)
        }
        UpdateTableError::ThroughputOnDemand => table::throughput_on_demand(),
        UpdateTableError::IndexThroughputOnDemand { index } => {
            table::index_update_on_demand(&index)
        }
        UpdateTableError::ThroughputUnchanged { index, read, write } => {
            let target = index.map_or("table".to_owned(), |index| format!("index {index}"));
            table::throughput_unchanged(&target, read, write)
        }
        UpdateTableError::TooManyDecreases { decreases_today, last_decrease_ms, next_ms } => {
            let last = long_date(last_decrease_ms);
            table::too_many_decreases(decreases_today, &last, &long_date(next_ms))
        }
        UpdateTableError::OnDemandMaximumOnProvisioned { write } => {
            table::update_on_demand_maximum_provisioned(max_request_units(write))
        }
        UpdateTableError::IndexOnDemandMaximumOnProvisioned { index, write } => {
            let member = max_request_units(write);
            table::update_index_on_demand_maximum_provisioned(member, &index)
        }
        UpdateTableError::IndexesBusy { change, indexes, deleting } => {
            indexes_busy(change, table, &indexes.join(", "), deleting)
        }
        UpdateTableError::WarmThroughputDecrease { write, index } => {
            table::warm_decrease(units_per_second(write), &warm_place(index.as_deref()))
        }
        UpdateTableError::StreamAlreadyEnabled => table::stream_already_enabled(table),
        UpdateTableError::NoStreamToDisable => table::no_stream_to_disable(table),
        UpdateTableError::AlreadyEncryptedByDefault => table::encrypted_by_default(),
        UpdateTableError::AlreadyEncryptedWithKey => table::encrypted_with_key(),
        UpdateTableError::AttributesRedefined { existing, new } => {
            table::attributes_redefined(&printed_schema(&existing), &printed_schema(&new))
        }
        UpdateTableError::IndexExists { .. } => table::index_exists(),
        UpdateTableError::IndexMissing { index } => table::index_not_found(&index, table),
        UpdateTableError::LocalIndex { index, deleting } => {
            table::not_a_global_index(if deleting { "delete" } else { "update" }, &index)
        }
        UpdateTableError::DefinitionsMissing { index } => table::definitions_missing(&index),
        UpdateTableError::KeysNotDefined { keys, definitions } => {
            table::keys_not_defined(&keys.join(", "), &definitions.join(", "))
        }
        UpdateTableError::TooManyGlobalIndexes => table::too_many_global_indexes_after_update(),
        UpdateTableError::IndexWorkInProgress => table::one_index_at_a_time(),
        UpdateTableError::IndexBeingDeleted { index } => table::index_being_deleted(table, &index),
    }
}

/// A key schema as DynamoDB prints it.
fn printed_schema(keys: &KeySchema) -> String {
    let element = |key: &KeyAttribute, key_type: &str| {
        let scalar_type = key.scalar_type.attribute_type();
        format!("SchemaElement: key{{{}:{scalar_type}:{key_type}}}", key.name)
    };
    let partition = keys.partition.iter().map(|key| element(key, "HASH"));
    let elements: Vec<String> =
        partition.chain(keys.sort.iter().map(|key| element(key, "RANGE"))).collect();
    format!("Schema:[{}]", elements.join(", "))
}

fn indexes_busy(change: BlockedChange, table: &str, indexes: &str, deleting: bool) -> ApiError {
    let (participle, noun) =
        if deleting { ("deleted", "deletion") } else { ("created", "creation") };
    match change {
        BlockedChange::Throughput => table::throughput_while_index(participle, table, indexes),
        BlockedChange::Stream => table::stream_while_index(participle),
        BlockedChange::OnDemandMaximum => table::on_demand_maximum_while_index(noun, indexes),
    }
}

fn time_to_live_error(error: &TimeToLiveError) -> ApiError {
    match error {
        TimeToLiveError::AlreadyEnabled => table::time_to_live_already_enabled(),
        TimeToLiveError::OtherAttribute { current } => table::time_to_live_other_attribute(current),
        TimeToLiveError::AlreadyDisabled => table::time_to_live_already_disabled(),
        TimeToLiveError::ChangedTooOften => table::time_to_live_changed_too_often(),
    }
}

fn limit_error(error: &LimitError, subject: Subject<'_>) -> ApiError {
    let region = match subject {
        Subject::Table { region, .. } => region,
        _ => "",
    };
    match error {
        LimitError::Tables => table::too_many_tables(),
        LimitError::TableCapacity { write, requested, maximum } => {
            table::table_capacity(capacity_units(*write), *requested, *maximum, region)
        }
        LimitError::AccountCapacity { write, current, maximum, requested } => {
            let member = capacity_units(*write);
            table::account_capacity(member, *current, *maximum, *requested, region)
        }
        LimitError::OnDemandMaximum { write, index } => {
            let place = index.as_ref().map_or("table".to_owned(), |index| format!("index {index}"));
            let account = format!("TableMax{}", capacity_units(*write));
            table::on_demand_maximum_limit(max_request_units(*write), &place, &account, region)
        }
        LimitError::TableClassChanges => table::too_many_class_changes(),
    }
}

fn mode_tag_error(error: &ModeTagError) -> ApiError {
    match error {
        ModeTagError::Unknown { value } => tag::unknown_mode(MODE_TAG, value),
        ModeTagError::TooLax { mode, min } => tag::mode_too_lax(MODE_TAG, mode.name(), min.name()),
    }
}

fn update_error(error: &UpdateError) -> ApiError {
    match error {
        UpdateError::MissingAttribute => missing_attribute(),
        UpdateError::OperandType => operand_type(),
        UpdateError::InvalidPath => invalid_path(),
        UpdateError::NumberOverflow => number_range(value::NUMBER_OVERFLOW),
        UpdateError::NumberUnderflow => number_range(value::NUMBER_UNDERFLOW),
        UpdateError::TypeMismatch => update_type_mismatch(),
        UpdateError::TooLarge => item::update_too_large(),
    }
}

pub(crate) fn cancellation_entry(
    reason: CancellationReason,
    shows_item: bool,
) -> CancellationEntry {
    let with_message = |code, error: ApiError, item| CancellationEntry {
        item,
        ..CancellationEntry::new(code, &error)
    };
    match reason {
        CancellationReason::None => CancellationEntry::none(),
        CancellationReason::ConditionFailed { item } => {
            let item = item.filter(|_| shows_item);
            with_message("ConditionalCheckFailed", item::conditional_request_failed(), item)
        }
        CancellationReason::Invalid(error) => {
            with_message("ValidationError", engine_error(*error, Subject::Items), None)
        }
        CancellationReason::Conflict => {
            with_message("TransactionConflict", transaction_ongoing(), None)
        }
        CancellationReason::Throttled(throttled) => {
            let error = throughput::throttled(&throttled);
            with_message(throughput::code(error.exception()), error, None)
        }
        CancellationReason::CollectionTooLarge => {
            with_message("ItemCollectionSizeLimitExceeded", item::collection_too_large(), None)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use zenobe_store::Error as StoreError;

    use zenobe_engine::request_id::{REQUEST_ID_LENGTH, RequestId};

    use super::*;

    /// Clients retry after each of these. A write that may have happened gets a plain server error.
    #[test]
    fn a_store_that_is_far_away_fails_in_words_that_clients_understand() {
        let table = Subject::Table { name: "t", region: "r" };
        let detail = || "x".to_owned();
        let check = |error: StoreError, subject, expected: crate::Exception, status| {
            let answer = engine_error(Error::from(error), subject);
            assert_eq!((answer.exception(), expected.status()), (expected, status));
        };
        use crate::Exception::{InternalServerError, ServiceUnavailable, TransactionConflict};
        check(StoreError::Conflict, Subject::Items, TransactionConflict, 400);
        check(StoreError::Conflict, table, InternalServerError, 500);
        let unavailable = StoreError::Unavailable { detail: detail() };
        check(unavailable.clone(), Subject::Items, ServiceUnavailable, 503);
        check(unavailable, table, ServiceUnavailable, 503);
        check(StoreError::Uncertain { detail: detail() }, Subject::Items, InternalServerError, 500);
        let entry = cancellation_entry(CancellationReason::Conflict, true);
        assert_eq!(entry.code, "TransactionConflict");
    }

    /// The request id in a client's answer leads to the cause.
    #[tokio::test]
    async fn the_cause_of_a_server_error_is_logged_with_the_id_of_its_request() {
        #[derive(Clone, Default)]
        struct Lines(Arc<Mutex<Vec<u8>>>);
        impl io::Write for Lines {
            fn write(&mut self, line: &[u8]) -> io::Result<usize> {
                self.0.lock().unwrap().write(line)
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let lines = Lines::default();
        let writer = lines.clone();
        let subscriber = tracing_subscriber::fmt().with_writer(move || writer.clone()).finish();
        let guard = tracing::subscriber::set_default(subscriber);
        let id = RequestId::new([b'A'; REQUEST_ID_LENGTH]).unwrap();
        let fail = async || {
            tokio::task::yield_now().await;
            engine_error(Error::Corrupt { detail: "torn row".to_owned() }, Subject::Items)
        };
        id.scope(fail()).await;
        fail().await;
        drop(guard);
        let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        let [first, second] = text.lines().collect::<Vec<_>>()[..] else { panic!("{text}") };
        assert!(first.contains("torn row") && first.contains(id.as_str()), "{first}");
        assert!(second.contains("torn row") && !second.contains("request_id"), "{second}");
    }

    #[test]
    fn store_failures_are_server_errors() {
        let error = engine_error(Error::Corrupt { detail: "x".to_owned() }, Subject::Items);
        assert_eq!(error.exception(), crate::Exception::InternalServerError);
        assert_eq!(error.message(), Some("Internal server error"));
    }
}
