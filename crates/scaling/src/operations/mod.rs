//! The operations: reading and checking requests, changing targets, describing them.

mod activities;
mod input;
mod page;
mod policies;
mod policy_input;
mod scheduled_actions;
mod tags;
mod targets;

use std::ops::ControlFlow;
use std::sync::Arc;

use serde_json::{Value, json};
use zenobe_engine::lease::Lease;
use zenobe_engine::schema::Namespace;
use zenobe_engine::service_rows::{RowChange, RowOwner};
use zenobe_value::Attributes;

use self::page::Filter;
use crate::error::Result;
use crate::json::{Members, parse};
use crate::resource::TargetName;
use crate::target::ScalableTarget;
use crate::{Scaling, keys, messages};

pub(crate) async fn dispatch(
    scaling: &Scaling,
    operation: &str,
    namespace: &Arc<Namespace>,
    body: &[u8],
) -> Result<Value> {
    let body = parse(body)?;
    let request = Request { scaling, namespace, members: Members::of(&body)? };
    match operation {
        "DeleteScalingPolicy" => request.delete_policy().await,
        "DeleteScheduledAction" => request.delete_action().await,
        "DeregisterScalableTarget" => request.deregister().await,
        "DescribeScalableTargets" => request.describe_targets().await,
        "DescribeScalingActivities" => request.describe_activities().await,
        "DescribeScalingPolicies" => request.describe_policies().await,
        "DescribeScheduledActions" => request.describe_actions().await,
        "GetPredictiveScalingForecast" => request.get_forecast(),
        "ListTagsForResource" => request.list_tags().await,
        "PutScalingPolicy" => request.put_policy().await,
        "PutScheduledAction" => request.put_action().await,
        "RegisterScalableTarget" => request.register().await,
        "TagResource" => request.tag().await,
        "UntagResource" => request.untag().await,
        _ => Err(messages::unknown_operation(operation)),
    }
}

/// A request, and what it may see.
struct Request<'a> {
    scaling: &'a Scaling,
    namespace: &'a Arc<Namespace>,
    members: Members<'a>,
}

/// What becomes of a target.
enum Change {
    Put(Box<ScalableTarget>),
    Delete,
}

impl Request<'_> {
    /// Reads, changes and writes one target atomically. `change` may be called more than once.
    async fn change_target<T: Send>(
        &self,
        name: &TargetName,
        change: impl Fn(Option<ScalableTarget>) -> Result<(Change, T)> + Send + Sync,
    ) -> Result<T> {
        let decide = |row: Option<Attributes>| {
            let target = match row.map(ScalableTarget::decode).transpose() {
                Ok(target) => target,
                Err(error) => return (RowChange::Keep, Err(error.into())),
            };
            match change(target) {
                Ok((Change::Put(target), outcome)) => {
                    (RowChange::Put(target.encode()), Ok(outcome))
                }
                Ok((Change::Delete, outcome)) => (RowChange::Delete, Ok(outcome)),
                Err(error) => (RowChange::Keep, Err(error)),
            }
        };
        let (key, lease) = (keys::target(name), Lease::default());
        let (engine, owner) = (&self.scaling.engine, RowOwner::Scaling);
        engine.change_service_row(owner, self.namespace, &key, &lease, decide).await?
    }

    /// Visits the targets that pass a filter, in the order of their keys, from a key on.
    async fn visit_targets(
        &self,
        filter: &Filter,
        from: Option<&[u8]>,
        mut visit: impl FnMut(Vec<u8>, &TargetName, ScalableTarget) -> ControlFlow<()> + Send,
    ) -> Result<()> {
        let mut range = filter.targets();
        if let Some(from) = from {
            range.start = range.start.max(from.to_vec());
        }
        let includes = |name: &TargetName| filter.includes(name);
        let visit = |key, name: TargetName, target| visit(key, &name, target);
        Ok(self.scaling.visit_targets(self.namespace, range, includes, visit).await?)
    }
}

fn nothing() -> Value {
    json!({})
}
