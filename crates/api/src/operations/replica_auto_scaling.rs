//! DescribeTableReplicaAutoScaling and UpdateTableReplicaAutoScaling. They apply to tables with
//! replicas in other regions, which this server does not have, so they respond as DynamoDB does for
//! a table in one region.

use crate::constraints::{TableNameRule, Violations, printed_list};
use crate::error::ApiError;
use crate::json::decode::{Decode, request, shape};
use crate::messages::constraint::{Constraint, java_object};
use crate::messages::request::no_global_table;
use crate::{Context, Reply};

pub(crate) async fn describe(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    let input: DescribeTableReplicaAutoScalingInput = request(body)?;
    not_global(context, input.table_name.as_deref()).await
}

pub(crate) async fn update(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    let input: UpdateTableReplicaAutoScalingInput = request(body)?;
    let mut violations = Violations::new();
    input.constrain(&mut violations);
    // A bad name is reported alone, before the other faults.
    context.table_name(input.table_name.as_deref(), TableNameRule::Settings)?;
    violations.finish()?;
    not_global(context, input.table_name.as_deref()).await
}

async fn not_global(context: &Context<'_>, given: Option<&str>) -> Result<Reply, ApiError> {
    let table = context.table_name(given, TableNameRule::Settings)?;
    let found = context.engine.current_table(&table).await;
    found.map_err(|error| context.table(&table.name, error))?;
    Err(no_global_table(&table.name))
}

shape! {
    struct DescribeTableReplicaAutoScalingInput {
        "TableName" => table_name: String,
    }

    struct UpdateTableReplicaAutoScalingInput {
        "GlobalSecondaryIndexUpdates" => global_secondary_index_updates:
            Vec<GlobalSecondaryIndexAutoScalingUpdate>,
        "TableName" => table_name: String,
        "ProvisionedWriteCapacityAutoScalingUpdate" => provisioned_write_capacity_auto_scaling_update:
            AutoScalingSettingsUpdate,
        "ReplicaUpdates" => replica_updates: Vec<ReplicaAutoScalingUpdate>,
    }

    struct GlobalSecondaryIndexAutoScalingUpdate {
        "IndexName" => index_name: String,
        "ProvisionedWriteCapacityAutoScalingUpdate" => provisioned_write_capacity_auto_scaling_update:
            AutoScalingSettingsUpdate,
    }

    struct ReplicaAutoScalingUpdate {
        "RegionName" => region_name: String,
        "ReplicaGlobalSecondaryIndexUpdates" => replica_global_secondary_index_updates:
            Vec<ReplicaGlobalSecondaryIndexAutoScalingUpdate>,
        "ReplicaProvisionedReadCapacityAutoScalingUpdate" =>
            replica_provisioned_read_capacity_auto_scaling_update: AutoScalingSettingsUpdate,
    }

    struct ReplicaGlobalSecondaryIndexAutoScalingUpdate {
        "IndexName" => index_name: String,
        "ProvisionedReadCapacityAutoScalingUpdate" => provisioned_read_capacity_auto_scaling_update:
            AutoScalingSettingsUpdate,
    }

    struct AutoScalingSettingsUpdate {
        "MinimumUnits" => minimum_units: i64,
        "MaximumUnits" => maximum_units: i64,
        "AutoScalingDisabled" => auto_scaling_disabled: bool,
        "AutoScalingRoleArn" => auto_scaling_role_arn: String,
        "ScalingPolicyUpdate" => scaling_policy_update: AutoScalingPolicyUpdate,
    }

    struct AutoScalingPolicyUpdate {
        "PolicyName" => policy_name: String,
        "TargetTrackingScalingPolicyConfiguration" => target_tracking_scaling_policy_configuration:
            AutoScalingTargetTrackingScalingPolicyConfigurationUpdate,
    }

    struct AutoScalingTargetTrackingScalingPolicyConfigurationUpdate {
        "DisableScaleIn" => disable_scale_in: bool,
        "ScaleInCooldown" => scale_in_cooldown: i32,
        "ScaleOutCooldown" => scale_out_cooldown: i32,
        "TargetValue" => target_value: f64,
    }
}

/// Printable characters, by Java's `\p{Print}`.
const POLICY_NAME_PATTERN: &str = r"\p{Print}+";
/// Any text that XML could hold.
const ROLE_PATTERN: &str = r"[\u0020-\uD7FF\uE000-\uFFFD\uD800\uDC00-\uDBFF\uDFFF\r\n\t]*";

impl UpdateTableReplicaAutoScalingInput {
    fn constrain(&self, violations: &mut Violations) {
        let shape = "GlobalSecondaryIndexAutoScalingUpdate";
        let indexes = self.global_secondary_index_updates.as_deref();
        each(
            indexes,
            "globalSecondaryIndexUpdates",
            shape,
            violations,
            |index, path, violations| {
                constrain_index_name(index.index_name.as_deref(), path, violations);
                let settings = &index.provisioned_write_capacity_auto_scaling_update;
                let path = format!("{path}.provisionedWriteCapacityAutoScalingUpdate");
                constrain_settings(settings.as_ref(), &path, violations);
            },
        );
        let settings = self.provisioned_write_capacity_auto_scaling_update.as_ref();
        constrain_settings(settings, "provisionedWriteCapacityAutoScalingUpdate", violations);
        let replicas = self.replica_updates.as_deref();
        let shape = "ReplicaAutoScalingUpdate";
        each(replicas, "replicaUpdates", shape, violations, ReplicaAutoScalingUpdate::constrain);
    }
}

impl ReplicaAutoScalingUpdate {
    fn constrain(&self, path: &str, violations: &mut Violations) {
        if self.region_name.is_none() {
            violations.add(None, &format!("{path}.regionName"), Constraint::NotNull);
        }
        let indexes = self.replica_global_secondary_index_updates.iter().flatten();
        for (index, position) in indexes.zip(1..) {
            let path = format!("{path}.replicaGlobalSecondaryIndexUpdates.{position}.member");
            constrain_index_name(index.index_name.as_deref(), &path, violations);
            let settings = index.provisioned_read_capacity_auto_scaling_update.as_ref();
            let path = format!("{path}.provisionedReadCapacityAutoScalingUpdate");
            constrain_settings(settings, &path, violations);
        }
        let settings = self.replica_provisioned_read_capacity_auto_scaling_update.as_ref();
        let path = format!("{path}.replicaProvisionedReadCapacityAutoScalingUpdate");
        constrain_settings(settings, &path, violations);
    }
}

/// Constrains a list that must not be empty, and each element.
fn each<T: Decode>(
    elements: Option<&[T]>,
    path: &str,
    shape: &str,
    violations: &mut Violations,
    constrain: impl Fn(&T, &str, &mut Violations),
) {
    let Some(elements) = elements else { return };
    let print = || printed_list(elements, |_| java_object(shape));
    violations.count(elements.len(), path, 1, usize::MAX, print);
    for (element, position) in elements.iter().zip(1..) {
        constrain(element, &format!("{path}.{position}.member"), violations);
    }
}

fn constrain_index_name(name: Option<&str>, path: &str, violations: &mut Violations) {
    if let Some(name) = name {
        violations.name(name, &format!("{path}.indexName"));
    }
}

fn constrain_settings(
    settings: Option<&AutoScalingSettingsUpdate>,
    path: &str,
    violations: &mut Violations,
) {
    let Some(settings) = settings else { return };
    for (units, member) in
        [(settings.minimum_units, "minimumUnits"), (settings.maximum_units, "maximumUnits")]
    {
        if let Some(units) = units {
            violations.range(units, &format!("{path}.{member}"), 1, i64::MAX);
        }
    }
    if let Some(role) = &settings.auto_scaling_role_arn {
        let path = format!("{path}.autoScalingRoleArn");
        if !role.chars().all(is_xml_character) {
            violations.add(Some(role), &path, Constraint::Pattern(ROLE_PATTERN));
        }
        violations.length(role, &path, 1, 1_600);
    }
    if let Some(policy) = &settings.scaling_policy_update {
        constrain_policy(policy, &format!("{path}.scalingPolicyUpdate"), violations);
    }
}

fn constrain_policy(policy: &AutoScalingPolicyUpdate, path: &str, violations: &mut Violations) {
    if let Some(name) = &policy.policy_name {
        let path = format!("{path}.policyName");
        if name.is_empty() || !name.chars().all(|character| matches!(character, ' '..='~')) {
            violations.add(Some(name), &path, Constraint::Pattern(POLICY_NAME_PATTERN));
        }
        violations.length(name, &path, 1, 256);
    }
    let path = format!("{path}.targetTrackingScalingPolicyConfiguration");
    match &policy.target_tracking_scaling_policy_configuration {
        None => violations.add(None, &path, Constraint::NotNull),
        Some(configuration) if configuration.target_value.is_none() => {
            violations.add(None, &format!("{path}.targetValue"), Constraint::NotNull);
        }
        Some(_) => {}
    }
}

fn is_xml_character(character: char) -> bool {
    matches!(character, '\r' | '\n' | '\t' | '\u{20}'..='\u{FFFD}' | '\u{10000}'..)
}
