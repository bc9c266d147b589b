//! What most requests have in common: which target they are about.

use crate::constraints::Violations;
use crate::error::Result;
use crate::json::Members;
use crate::messages;
use crate::resource::{SERVICE_NAMESPACE, TargetName};

/// The model's service namespaces.
const SERVICE_NAMESPACES: [&str; 15] = [
    "ecs",
    "elasticmapreduce",
    "ec2",
    "appstream",
    "dynamodb",
    "rds",
    "sagemaker",
    "custom-resource",
    "comprehend",
    "lambda",
    "cassandra",
    "kafka",
    "elasticache",
    "neptune",
    "workspaces",
];

/// The model's scalable dimensions.
const DIMENSIONS: [&str; 24] = [
    "ecs:service:DesiredCount",
    "ec2:spot-fleet-request:TargetCapacity",
    "elasticmapreduce:instancegroup:InstanceCount",
    "appstream:fleet:DesiredCapacity",
    "dynamodb:table:ReadCapacityUnits",
    "dynamodb:table:WriteCapacityUnits",
    "dynamodb:index:ReadCapacityUnits",
    "dynamodb:index:WriteCapacityUnits",
    "rds:cluster:ReadReplicaCount",
    "sagemaker:variant:DesiredInstanceCount",
    "custom-resource:ResourceType:Property",
    "comprehend:document-classifier-endpoint:DesiredInferenceUnits",
    "comprehend:entity-recognizer-endpoint:DesiredInferenceUnits",
    "lambda:function:ProvisionedConcurrency",
    "cassandra:table:ReadCapacityUnits",
    "cassandra:table:WriteCapacityUnits",
    "kafka:broker-storage:VolumeSize",
    "elasticache:cache-cluster:Nodes",
    "elasticache:replication-group:NodeGroups",
    "elasticache:replication-group:Replicas",
    "neptune:cluster:ReadReplicaCount",
    "sagemaker:variant:DesiredProvisionedConcurrency",
    "sagemaker:inference-component:DesiredCopyCount",
    "workspaces:workspacespool:DesiredUserSessions",
];

/// The service namespace, which every request about targets has. Other services are refused only
/// after the constraints.
pub(super) struct Service<'a>(&'a str);

impl<'a> Service<'a> {
    pub(super) fn read(members: Members<'a>, violations: &mut Violations) -> Result<Service<'a>> {
        let given = members.text("ServiceNamespace")?;
        let namespace = violations.required(given, "serviceNamespace");
        if given.is_some() {
            violations.one_of(namespace, "serviceNamespace", &SERVICE_NAMESPACES);
        }
        Ok(Service(namespace))
    }

    pub(super) fn check(&self) -> Result<()> {
        match self.0 {
            SERVICE_NAMESPACE => Ok(()),
            other => Err(messages::other_namespace(other)),
        }
    }
}

/// The three members that identify a target.
pub(super) struct Identity<'a> {
    service: Service<'a>,
    resource_id: &'a str,
    dimension: &'a str,
}

impl<'a> Identity<'a> {
    pub(super) fn read(members: Members<'a>, violations: &mut Violations) -> Result<Identity<'a>> {
        let service = Service::read(members, violations)?;
        let given = members.text("ResourceId")?;
        let resource_id = violations.required(given, "resourceId");
        if given.is_some() {
            violations.identifier(resource_id, "resourceId");
        }
        let given = members.text("ScalableDimension")?;
        let dimension = violations.required(given, "scalableDimension");
        check_dimension(given, violations);
        Ok(Identity { service, resource_id, dimension })
    }

    /// The target, once the constraints are known to hold.
    pub(super) fn name(&self) -> Result<TargetName> {
        self.service.check()?;
        let name = TargetName::parse(self.resource_id, self.dimension);
        name.ok_or_else(messages::unsupported_resource)
    }
}

pub(super) fn check_dimension(given: Option<&str>, violations: &mut Violations) {
    if let Some(dimension) = given {
        violations.one_of(dimension, "scalableDimension", &DIMENSIONS);
    }
}
