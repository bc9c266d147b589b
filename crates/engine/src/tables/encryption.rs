//! Encryption settings. Nothing here encrypts with a KMS key; the settings are stored and shown as
//! on DynamoDB.

use xxhash_rust::xxh3::xxh3_128;

use crate::command::{EncryptionChange, KmsKey};
use crate::error::UpdateTableError;
use crate::random::format_uuid;
use crate::schema::{Namespace, TableDefinition};

/// The ARN that represents a key.
pub(super) fn key_arn(namespace: &Namespace, key: &KmsKey) -> String {
    let Namespace { account, region } = namespace;
    let resource = match key {
        KmsKey::Customer(arn) if arn.starts_with("arn:") => return arn.clone(),
        KmsKey::Customer(alias) if alias.starts_with("alias/") => alias.clone(),
        KmsKey::Customer(id) => format!("key/{id}"),
        // Every namespace has one such key, so the namespace determines its id.
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
