//! The configuration of a policy, as PutScalingPolicy gives it.

use crate::constraints::Violations;
use crate::error::Result;
use crate::json::Members;
use crate::messages;
use crate::policy::PolicySettings;
use crate::resource::TargetName;

const TARGET_TRACKING: &str = "TargetTrackingScaling";
const POLICY_TYPES: [&str; 3] = ["StepScaling", TARGET_TRACKING, "PredictiveScaling"];
const STATISTICS: [&str; 5] = ["Average", "Minimum", "Maximum", "SampleCount", "Sum"];

/// The model's predefined metric types.
const METRIC_TYPES: [&str; 31] = [
    "DynamoDBReadCapacityUtilization",
    "DynamoDBWriteCapacityUtilization",
    "ALBRequestCountPerTarget",
    "RDSReaderAverageCPUUtilization",
    "RDSReaderAverageDatabaseConnections",
    "EC2SpotFleetRequestAverageCPUUtilization",
    "EC2SpotFleetRequestAverageNetworkIn",
    "EC2SpotFleetRequestAverageNetworkOut",
    "SageMakerVariantInvocationsPerInstance",
    "ECSServiceAverageCPUUtilization",
    "ECSServiceAverageMemoryUtilization",
    "AppStreamAverageCapacityUtilization",
    "ComprehendInferenceUtilization",
    "LambdaProvisionedConcurrencyUtilization",
    "CassandraReadCapacityUtilization",
    "CassandraWriteCapacityUtilization",
    "KafkaBrokerStorageUtilization",
    "ElastiCacheEngineCPUUtilization",
    "ElastiCacheDatabaseMemoryUsagePercentage",
    "ElastiCachePrimaryEngineCPUUtilization",
    "ElastiCacheReplicaEngineCPUUtilization",
    "ElastiCacheDatabaseMemoryUsageCountedForEvictPercentage",
    "NeptuneReaderAverageCPUUtilization",
    "SageMakerVariantProvisionedConcurrencyUtilization",
    "ElastiCacheDatabaseCapacityUsageCountedForEvictPercentage",
    "SageMakerInferenceComponentInvocationsPerCopy",
    "WorkSpacesAverageUserSessionsCapacityUtilization",
    "SageMakerInferenceComponentConcurrentRequestsPerCopyHighResolution",
    "SageMakerVariantConcurrentRequestsPerModelHighResolution",
    "ECSServiceAverageCPUUtilizationHighResolution",
    "ECSServiceAverageMemoryUtilizationHighResolution",
];

/// What DynamoDB's console and API allow as a target, in percent.
const TARGET_PERCENT: std::ops::RangeInclusive<f64> = 20.0..=90.0;

pub(super) struct PolicyInput<'a> {
    members: Members<'a>,
    policy_type: Option<&'a str>,
    configuration: Option<Members<'a>>,
    predefined: Option<Predefined<'a>>,
    customized: Option<Members<'a>>,
}

struct Predefined<'a> {
    metric: &'a str,
    label: Option<&'a str>,
}

const CONFIGURATION: &str = "targetTrackingScalingPolicyConfiguration";

impl<'a> PolicyInput<'a> {
    /// Checks the model's constraints.
    pub(super) fn read(members: Members<'a>, violations: &mut Violations) -> Result<Self> {
        let policy_type = members.text("PolicyType")?;
        if let Some(policy_type) = policy_type {
            violations.one_of(policy_type, "policyType", &POLICY_TYPES);
        }
        let configuration = members.members("TargetTrackingScalingPolicyConfiguration")?;
        let (mut predefined, mut customized) = (None, None);
        if let Some(configuration) = configuration {
            let target = configuration.decimal("TargetValue")?;
            violations.required(target, &format!("{CONFIGURATION}.targetValue"));
            if let Some(given) = configuration.members("PredefinedMetricSpecification")? {
                predefined = Some(Predefined::read(given, violations)?);
            }
            customized = configuration.members("CustomizedMetricSpecification")?;
            if let Some(customized) = customized {
                constrain_customized(customized, violations)?;
            }
        }
        Ok(PolicyInput { members, policy_type, configuration, predefined, customized })
    }

    pub(super) fn has_type(&self) -> bool {
        self.policy_type.is_some()
    }

    /// DynamoDB has target tracking only, on AWS too.
    pub(super) fn check_type(&self) -> Result<()> {
        if let Some(other) = self.policy_type.filter(|given| *given != TARGET_TRACKING) {
            return Err(messages::policy_type_unsupported(other));
        }
        for member in ["StepScalingPolicyConfiguration", "PredictiveScalingPolicyConfiguration"] {
            if self.members.is_given(member) {
                return Err(messages::policy_configuration_mismatch(member));
            }
        }
        Ok(())
    }

    /// The settings, if any are given.
    pub(super) fn settings(&self, name: &TargetName) -> Result<Option<PolicySettings>> {
        let Some(configuration) = self.configuration else { return Ok(None) };
        match (&self.predefined, self.customized) {
            (Some(predefined), None) => predefined.check(name)?,
            (None, Some(customized)) => {
                check_customized(customized)?;
                return Err(messages::customized_metric_unsupported(name));
            }
            _ => return Err(messages::one_metric_specification()),
        }
        let target_percent = configuration.decimal("TargetValue")?.unwrap_or_default();
        if !TARGET_PERCENT.contains(&target_percent) {
            return Err(messages::target_value());
        }
        let cooldown = |member: &str| {
            let cooldown = configuration.integer(member)?;
            let seconds =
                |given| u64::try_from(given).map_err(|_| messages::negative_cooldown(member));
            cooldown.map(seconds).transpose()
        };
        Ok(Some(PolicySettings {
            target_percent,
            scale_out_cooldown_s: cooldown("ScaleOutCooldown")?,
            scale_in_cooldown_s: cooldown("ScaleInCooldown")?,
            disable_scale_in: configuration.flag("DisableScaleIn")?,
        }))
    }
}

impl<'a> Predefined<'a> {
    fn read(members: Members<'a>, violations: &mut Violations) -> Result<Predefined<'a>> {
        let path = format!("{CONFIGURATION}.predefinedMetricSpecification");
        let given = members.text("PredefinedMetricType")?;
        let metric = violations.required(given, &format!("{path}.predefinedMetricType"));
        if given.is_some() {
            violations.one_of(metric, &format!("{path}.predefinedMetricType"), &METRIC_TYPES);
        }
        let label = members.text("ResourceLabel")?;
        if let Some(label) = label {
            violations.length(label, &format!("{path}.resourceLabel"), 1, 1_023);
        }
        Ok(Predefined { metric, label })
    }

    fn check(&self, name: &TargetName) -> Result<()> {
        if self.metric != name.metric() {
            return Err(messages::metric_of_other_dimension(self.metric, name));
        }
        match self.label {
            Some(_) => Err(messages::resource_label()),
            None => Ok(()),
        }
    }
}

fn constrain_customized(members: Members<'_>, violations: &mut Violations) -> Result<()> {
    let path = format!("{CONFIGURATION}.customizedMetricSpecification");
    if let Some(statistic) = members.text("Statistic")? {
        violations.one_of(statistic, &format!("{path}.statistic"), &STATISTICS);
    }
    let dimensions = members.structures("Dimensions")?.unwrap_or_default();
    for (dimension, position) in dimensions.into_iter().zip(1..) {
        let path = format!("{path}.dimensions.{position}.member");
        violations.required(dimension.text("Name")?, &format!("{path}.name"));
        violations.required(dimension.text("Value")?, &format!("{path}.value"));
    }
    let queries = members.structures("Metrics")?.unwrap_or_default();
    for (query, position) in queries.into_iter().zip(1..) {
        let path = format!("{path}.metrics.{position}.member");
        let id = query.text("Id")?;
        violations.required(id, &format!("{path}.id"));
        if let Some(id) = id {
            violations.length(id, &format!("{path}.id"), 1, 255);
        }
        if let Some(expression) = query.text("Expression")? {
            violations.length(expression, &format!("{path}.expression"), 1, 2_048);
        }
    }
    Ok(())
}

/// Either queries, or one metric with a statistic.
fn check_customized(members: Members<'_>) -> Result<()> {
    let has_metrics = members.is_given("Metrics");
    for member in ["MetricName", "Namespace", "Statistic"] {
        if members.is_given(member) == has_metrics {
            return Err(messages::customized_metric_member(member));
        }
    }
    for query in members.structures("Metrics")?.unwrap_or_default() {
        if query.is_given("Expression") == query.is_given("MetricStat") {
            return Err(messages::customized_metric_member("Expression or MetricStat, not both"));
        }
    }
    Ok(())
}
