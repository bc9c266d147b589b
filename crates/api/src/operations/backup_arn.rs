//! The ARNs of backups: `arn:aws:dynamodb:<region>:<account>:table/<table>/backup/<id>`.

use std::sync::Arc;

use zenobe_engine::command::TableName;
use zenobe_engine::schema::Namespace;

use crate::Context;
use crate::constraints::Violations;
use crate::error::ApiError;
use crate::messages::backup as messages;

/// The regions of AWS's public partition. An ARN may name one of them, or the caller's own, whatever it is called.
const REGIONS: [&str; 34] = [
    "af-south-1",
    "ap-east-1",
    "ap-east-2",
    "ap-northeast-1",
    "ap-northeast-2",
    "ap-northeast-3",
    "ap-south-1",
    "ap-south-2",
    "ap-southeast-1",
    "ap-southeast-2",
    "ap-southeast-3",
    "ap-southeast-4",
    "ap-southeast-5",
    "ap-southeast-6",
    "ap-southeast-7",
    "ca-central-1",
    "ca-west-1",
    "eu-central-1",
    "eu-central-2",
    "eu-north-1",
    "eu-south-1",
    "eu-south-2",
    "eu-west-1",
    "eu-west-2",
    "eu-west-3",
    "il-central-1",
    "me-central-1",
    "me-south-1",
    "mx-central-1",
    "sa-east-1",
    "us-east-1",
    "us-east-2",
    "us-west-1",
    "us-west-2",
];

pub(crate) fn constrain_backup_arn(arn: Option<String>, violations: &mut Violations) -> String {
    let given = arn.is_some();
    let arn = violations.required(arn, "backupArn");
    if given {
        constrain_length(&arn, "backupArn", violations);
    }
    arn
}

pub(crate) fn constrain_length(arn: &str, path: &str, violations: &mut Violations) {
    violations.length(arn, path, 37, 1024);
}

/// The caller's account in the region that an ARN names, if there is such a region.
pub(crate) fn namespace_in(context: &Context<'_>, region: &str) -> Option<Arc<Namespace>> {
    if region == context.namespace.region {
        return Some(Arc::clone(context.namespace));
    }
    let account = context.namespace.account.clone();
    let namespace = Namespace { account, region: region.to_owned() };
    REGIONS.contains(&region).then(|| Arc::new(namespace))
}

/// The parts of a backup's ARN. The backup need not exist.
pub(crate) struct BackupArn {
    /// The table, in the region that the ARN names.
    pub(crate) table: TableName,
    pub(crate) id: String,
}

impl BackupArn {
    pub(crate) fn parse(context: &Context<'_>, arn: &str) -> Result<BackupArn, ApiError> {
        let parts: Vec<&str> = arn.splitn(6, ':').collect();
        let ["arn", partition, service, region, account, resource] = parts[..] else {
            return Err(messages::invalid_backup_arn());
        };
        let resource: Vec<&str> = resource.split('/').collect();
        let ["table", table, "backup", id] = resource[..] else {
            return Err(messages::invalid_backup_arn());
        };
        let namespace = namespace_in(context, region);
        let Some(namespace) = namespace.filter(|_| (partition, service) == ("aws", "dynamodb"))
        else {
            return Err(messages::backup_arn_not_valid());
        };
        if account != context.namespace.account {
            return Err(messages::access_denied());
        }
        let table = TableName { namespace, name: table.to_owned() };
        Ok(BackupArn { table, id: id.to_owned() })
    }

    /// The same backup in the caller's region. DescribeBackup and DeleteBackup ignore which region is named.
    pub(crate) fn here(self, context: &Context<'_>) -> BackupArn {
        let table = TableName { namespace: Arc::clone(context.namespace), ..self.table };
        BackupArn { table, id: self.id }
    }
}
