//! Texts about transactions that need no table.

use super::texts;

texts! {
    Validation, "" => {
        not_one_action() "TransactItems can only contain one of Check, Put, Update or Delete";
        payload_too_large() "Transaction payload size cannot exceed 4 MB";
    }
}
