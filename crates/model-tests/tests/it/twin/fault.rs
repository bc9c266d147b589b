//! Faults in a form that can be compared.

use zenobe_engine::error::{
    CancellationReason, Error, IndexKeyError, KeyError, PageError, TimeToLiveError,
    UpdateTableError,
};
use zenobe_expression::UpdateError;
use zenobe_value::{Attributes, EncodedItem};

#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    TableNotFound,
    IndexNotFound,
    Key(KeyError),
    IndexKey {
        index: String,
        attribute: String,
        error: IndexKeyError,
    },
    UpdateOfKey {
        attribute: String,
    },
    PathBelowKey {
        index: bool,
    },
    ConditionFailed(Option<Attributes>),
    ItemTooLarge,
    UpdateTooLarge,
    NestedTooDeeply,
    Update(UpdateError),
    CollectionTooLarge,
    Page(PageError),
    DuplicateKeys,
    DuplicateTransactionItems,
    Cancelled(Vec<Option<Fault>>),
    TokenMismatch,
    UpdateTable(UpdateTableError),
    TableExists,
    IndexesInFlux,
    TimeToLive(TimeToLiveError),
    /// No model ever expects this.
    Unexpected(String),
}

impl Fault {
    pub fn of(error: Error) -> Fault {
        match error {
            Error::TableNotFound { .. } => Fault::TableNotFound,
            Error::IndexNotFound { .. } => Fault::IndexNotFound,
            Error::Key(error) => Fault::Key(error),
            Error::IndexKey { index, attribute, error } => {
                Fault::IndexKey { index, attribute, error }
            }
            Error::UpdateOfKey { attribute } => Fault::UpdateOfKey { attribute },
            Error::PathBelowKey { index, .. } => Fault::PathBelowKey { index },
            Error::ConditionFailed { item } => Fault::ConditionFailed(decoded(item)),
            Error::ItemTooLarge => Fault::ItemTooLarge,
            Error::UpdateTooLarge => Fault::UpdateTooLarge,
            Error::NestedTooDeeply => Fault::NestedTooDeeply,
            Error::Update(error) => Fault::Update(error),
            Error::CollectionTooLarge => Fault::CollectionTooLarge,
            Error::Page(error) => Fault::Page(error),
            Error::DuplicateKeys => Fault::DuplicateKeys,
            Error::DuplicateTransactionItems => Fault::DuplicateTransactionItems,
            Error::TransactionCancelled(reasons) => {
                Fault::Cancelled(reasons.into_iter().map(reason).collect())
            }
            Error::IdempotentParameterMismatch => Fault::TokenMismatch,
            Error::UpdateTable(error) => Fault::UpdateTable(error),
            Error::TableExists { .. } => Fault::TableExists,
            Error::IndexesInFlux => Fault::IndexesInFlux,
            Error::TimeToLive(error) => Fault::TimeToLive(error),
            other => Fault::Unexpected(format!("{other:?}")),
        }
    }
}

fn reason(reason: CancellationReason) -> Option<Fault> {
    match reason {
        CancellationReason::None => None,
        CancellationReason::ConditionFailed { item } => Some(Fault::ConditionFailed(decoded(item))),
        CancellationReason::Invalid(error) => Some(Fault::of(*error)),
        CancellationReason::CollectionTooLarge => Some(Fault::CollectionTooLarge),
        CancellationReason::Conflict => Some(Fault::Unexpected("a conflict".to_owned())),
        CancellationReason::Throttled(_) => Some(Fault::Unexpected("throttled".to_owned())),
    }
}

fn decoded(item: Option<EncodedItem>) -> Option<Attributes> {
    item.map(|item| item.as_item().decode())
}

/// The model's prediction for a request that fails.
#[derive(Debug, Clone, PartialEq)]
pub enum Refusal {
    /// One of these; the specification does not say which.
    AnyOf(Vec<Fault>),
    /// A cancelled transaction, with the possible faults of each action; none for an action that
    /// did not cause it.
    Cancelled(Vec<Vec<Fault>>),
}

impl Refusal {
    pub fn allows(&self, actual: &Fault) -> bool {
        match (self, actual) {
            (Refusal::AnyOf(faults), actual) => faults.contains(actual),
            (Refusal::Cancelled(expected), Fault::Cancelled(actual)) => {
                expected.len() == actual.len()
                    && expected.iter().zip(actual).all(|(expected, actual)| match actual {
                        None => expected.is_empty(),
                        Some(actual) => expected.contains(actual),
                    })
            }
            (Refusal::Cancelled(_), _) => false,
        }
    }
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Refusal {
        Refusal::AnyOf(vec![fault])
    }
}

impl From<KeyError> for Refusal {
    fn from(error: KeyError) -> Refusal {
        Fault::Key(error).into()
    }
}

impl From<PageError> for Refusal {
    fn from(error: PageError) -> Refusal {
        Fault::Page(error).into()
    }
}
