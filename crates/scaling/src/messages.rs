//! The texts of exceptions: AWS's, where they are known. The others say what to do.

use crate::error::{Exception, ScalingError};
use crate::resource::{SERVICE_NAMESPACE, TargetName};

fn not_found(message: String) -> ScalingError {
    ScalingError::new(Exception::ObjectNotFound, message)
}

fn place(name: &TargetName) -> String {
    let (resource_id, dimension) = (name.resource_id(), name.dimension());
    format!(
        "service namespace: {SERVICE_NAMESPACE}, resource ID: {resource_id}, scalable dimension: \
         {dimension}"
    )
}

/// For what depends on a target.
pub(crate) fn not_registered(name: &TargetName) -> ScalingError {
    not_found(format!("No scalable target registered for {}", place(name)))
}

pub(crate) fn target_not_found(name: &TargetName) -> ScalingError {
    not_found(format!("No scalable target found for {}", place(name)))
}

pub(crate) fn policy_not_found(name: &TargetName, policy: &str) -> ScalingError {
    not_found(format!("No scaling policy found for {}, policy name: {policy}", place(name)))
}

pub(crate) fn action_not_found(name: &TargetName, action: &str) -> ScalingError {
    let place = place(name);
    not_found(format!("No scheduled action found for {place}, scheduled action name: {action}"))
}

pub(crate) fn other_namespace(given: &str) -> ScalingError {
    ScalingError::validation(format!(
        "The service namespace {given} is not served here; only {SERVICE_NAMESPACE} is"
    ))
}

pub(crate) fn unsupported_resource() -> ScalingError {
    ScalingError::validation("Unsupported service namespace, resource type or scalable dimension")
}

pub(crate) fn dimension_without_resource() -> ScalingError {
    ScalingError::validation("A resource ID must be specified if a scalable dimension is specified")
}

pub(crate) fn table_does_not_exist(name: &TargetName) -> ScalingError {
    let resource_id = name.resource_id();
    ScalingError::validation(match name.index {
        None => format!("DynamoDB table does not exist: {resource_id}"),
        Some(_) => format!("DynamoDB index does not exist: {resource_id}"),
    })
}

pub(crate) fn capacity_required() -> ScalingError {
    ScalingError::validation(
        "MinCapacity and MaxCapacity are required when a scalable target is registered",
    )
}

pub(crate) fn minimum_too_small() -> ScalingError {
    ScalingError::validation("Minimum capacity cannot be less than 1")
}

pub(crate) fn maximum_below_minimum() -> ScalingError {
    ScalingError::validation("Maximum capacity cannot be less than minimum capacity")
}

pub(crate) fn tags_of_registered_target() -> ScalingError {
    ScalingError::validation(
        "Tags can be given only when a scalable target is registered; use TagResource for one \
         that is registered already",
    )
}

pub(crate) fn max_results(maximum: i32) -> ScalingError {
    ScalingError::validation(format!("MaxResults must be between 1 and {maximum}"))
}

pub(crate) fn invalid_next_token() -> ScalingError {
    ScalingError::new(Exception::InvalidNextToken, "The next token supplied was invalid.")
}

pub(crate) fn too_many(what: &str, maximum: usize) -> ScalingError {
    let message = format!("The limit of {maximum} {what} is exceeded");
    ScalingError::new(Exception::LimitExceeded, message)
}

// ---- policies -----------------------------------------------------------------------------------

pub(crate) fn policy_type_required() -> ScalingError {
    ScalingError::validation("PolicyType is required when a scaling policy is created")
}

pub(crate) fn policy_type_unsupported(given: &str) -> ScalingError {
    ScalingError::validation(format!(
        "The policy type {given} is not supported for the service namespace {SERVICE_NAMESPACE}"
    ))
}

pub(crate) fn policy_configuration_required() -> ScalingError {
    ScalingError::validation(
        "TargetTrackingScalingPolicyConfiguration is required for the policy type \
         TargetTrackingScaling",
    )
}

pub(crate) fn policy_configuration_mismatch(member: &str) -> ScalingError {
    ScalingError::validation(format!(
        "{member} can't be specified for the policy type TargetTrackingScaling"
    ))
}

pub(crate) fn one_metric_specification() -> ScalingError {
    ScalingError::validation(
        "Exactly one of PredefinedMetricSpecification and CustomizedMetricSpecification must be \
         specified",
    )
}

pub(crate) fn metric_of_other_dimension(metric: &str, name: &TargetName) -> ScalingError {
    let (dimension, expected) = (name.dimension(), name.metric());
    ScalingError::validation(format!(
        "The predefined metric type {metric} is not supported for the scalable dimension \
         {dimension}; use {expected}"
    ))
}

pub(crate) fn customized_metric_member(member: &str) -> ScalingError {
    ScalingError::validation(format!(
        "CustomizedMetricSpecification needs either Metrics, or MetricName, Namespace and \
         Statistic: {member}"
    ))
}

pub(crate) fn customized_metric_unsupported(name: &TargetName) -> ScalingError {
    let expected = name.metric();
    ScalingError::validation(format!(
        "Customized metrics are not evaluated here; use the predefined metric type {expected}"
    ))
}

pub(crate) fn resource_label() -> ScalingError {
    ScalingError::validation(
        "ResourceLabel can be specified only for the predefined metric type \
         ALBRequestCountPerTarget",
    )
}

pub(crate) fn target_value() -> ScalingError {
    ScalingError::validation(
        "The target value for a capacity utilization must be between 20 and 90 percent",
    )
}

pub(crate) fn negative_cooldown(member: &str) -> ScalingError {
    ScalingError::validation(format!("{member} cannot be less than 0"))
}

pub(crate) fn one_policy_per_metric() -> ScalingError {
    ScalingError::validation(
        "Only one TargetTrackingScaling policy for a given metric specification is allowed.",
    )
}

pub(crate) fn no_forecast() -> ScalingError {
    ScalingError::validation(format!(
        "Predictive scaling is not supported for the service namespace {SERVICE_NAMESPACE}, so \
         there is no forecast"
    ))
}

// ---- scheduled actions --------------------------------------------------------------------------

pub(crate) fn schedule_required() -> ScalingError {
    ScalingError::validation("Schedule is required when a scheduled action is created")
}

pub(crate) fn schedule_invalid(given: &str, why: &str) -> ScalingError {
    ScalingError::validation(format!("The schedule expression {given} is not valid: {why}"))
}

pub(crate) fn time_zone(given: &str) -> ScalingError {
    ScalingError::validation(format!(
        "The time zone {given} is not known here; UTC and Etc/GMT-14 to Etc/GMT+12 are"
    ))
}

pub(crate) fn action_required() -> ScalingError {
    ScalingError::validation(
        "ScalableTargetAction with MinCapacity, MaxCapacity or both is required when a scheduled \
         action is created",
    )
}

pub(crate) fn end_before_start() -> ScalingError {
    ScalingError::validation("The end time must be later than the start time")
}

// ---- tags ---------------------------------------------------------------------------------------

pub(crate) fn resource_not_found(arn: &str) -> ScalingError {
    let message = format!("The specified resource doesn't exist: {arn}");
    let error = ScalingError::new(Exception::ResourceNotFound, message);
    ScalingError { resource: Some(arn.to_owned()), ..error }
}

pub(crate) fn too_many_tags(arn: Option<&str>) -> ScalingError {
    let message = "A scalable target can have no more than 50 tags";
    let error = ScalingError::new(Exception::TooManyTags, message);
    ScalingError { resource: arn.map(str::to_owned), ..error }
}

pub(crate) fn reserved_tag() -> ScalingError {
    ScalingError::validation("Tag keys that begin with aws: are reserved")
}

pub(crate) fn unknown_operation(operation: &str) -> ScalingError {
    let message = format!("Application Auto Scaling has no operation {operation}");
    ScalingError::new(Exception::UnknownOperation, message)
}
