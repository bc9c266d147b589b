//! Encryption settings. Nothing is encrypted with a KMS key here; the settings are kept and shown as
//! DynamoDB does.

use xxhash_rust::xxh3::xxh3_128;

use crate::command::{EncryptionChange, KmsKey};
use crate::error::UpdateTableError;
use crate::random::format_uuid;
use crate::schema::{Namespace, TableDefinition};

/// The ARN under which a key is shown.
pub(super) fn key_arn(namespace: &Namespace, key: &KmsKey) -> String {
    let Namespace { account, region } = namespace;
    let resource = match key {
        KmsKey::Customer(arn) if arn.starts_with("arn:") => return arn.clone(),
        KmsKey::Customer(alias) if alias.starts_with("alias/") => alias.clone(),
        KmsKey::Customer(id) => format!("key/{id}"),
        // Every namespace has one such key, so its id follows from the namespace.
        KmsKey::AwsManaged => {
            let id = format_uuid(xxh3_128(format!("aws/dynamodb {account} {region}").as_bytes()));
            format!("key/{id}")
        }
    };
    format!("arn:aws:kms:{region}:{account}:{resource}")
}

pub(super) fn apply(
    definition: &mut TableDefinition,
    change: &EncryptionChange,
) -> Result<(), UpdateTableError> {
    let key_arn = match change {
        EncryptionChange::Kms(key) => Some(key_arn(&definition.namespace, key)),
        EncryptionChange::Default => None,
    };
    if key_arn == definition.kms_key_arn {
        return Err(match key_arn {
            Some(_) => UpdateTableError::AlreadyEncryptedWithKey,
            None => UpdateTableError::AlreadyEncryptedByDefault,
        });
    }
    definition.kms_key_arn = key_arn;
    Ok(())
}
