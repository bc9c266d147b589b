//! Server-side encryption settings.

use zenobe_engine::command::{EncryptionChange, KmsKey};

use super::shapes::SSESpecification;
use crate::constraints::Violations;
use crate::error::ApiError;
use crate::messages::table;
use crate::operations::enumerations::{SSE_TYPE, SseType};

/// An encryption specification that passed its constraints.
#[derive(Debug, Clone)]
pub(crate) struct EncryptionInput {
    enabled: Option<bool>,
    sse_type: Option<SseType>,
    key: Option<String>,
}

impl EncryptionInput {
    pub(crate) fn constrain(
        specification: SSESpecification,
        violations: &mut Violations,
    ) -> EncryptionInput {
        let given = specification.sse_type.as_deref();
        let sse_type = violations.enumeration(given, "sSESpecification.sSEType", &SSE_TYPE);
        EncryptionInput {
            enabled: specification.enabled,
            sse_type,
            key: specification.kms_master_key_id,
        }
    }

    /// Either a KMS key, or the default encryption.
    pub(crate) fn resolve(self) -> Result<EncryptionChange, ApiError> {
        if self.sse_type == Some(SseType::Aes256) {
            return Err(table::sse_aes256());
        }
        if self.enabled == Some(false) {
            return match (self.sse_type, self.key) {
                (Some(_), _) => Err(table::sse_type_while_disabled()),
                (None, Some(_)) => Err(table::sse_key_while_disabled()),
                (None, None) => Ok(EncryptionChange::Default),
            };
        }
        match (self.sse_type, self.key) {
            (None, Some(_)) => Err(table::sse_type_required()),
            (Some(_), Some(key)) => Ok(EncryptionChange::Kms(KmsKey::Customer(key))),
            (None, None) if self.enabled.is_none() => Ok(EncryptionChange::Default),
            (_, None) => Ok(EncryptionChange::Kms(KmsKey::AwsManaged)),
        }
    }
}
