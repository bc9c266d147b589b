//! TagResource, UntagResource, ListTagsForResource.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use serde_json::{Value, json};

use super::page::Filter;
use super::{Change, Request, nothing};
use crate::constraints::Violations;
use crate::error::Result;
use crate::messages;
use crate::resource::TargetName;
use crate::target::{ScalableTarget, arn_start};

const TAGS_MAX: usize = 50;
const ARN_PATTERN: &str =
    r"^arn:.+:application-autoscaling:.+:[0-9]+:scalable-target\/[a-zA-Z0-9-]+$";

impl Request<'_> {
    pub(super) async fn tag(&self) -> Result<Value> {
        let mut violations = Violations::default();
        let arn = self.resource_arn(&mut violations)?;
        let tags = violations.required(self.members.text_map("Tags")?, "tags");
        check_tags(&tags, &mut violations);
        violations.finish()?;
        check_reserved(&tags)?;
        let change = |target: &mut ScalableTarget| {
            target.tags.extend(tags.clone());
            match target.tags.len() <= TAGS_MAX {
                true => Ok(()),
                false => Err(messages::too_many_tags(Some(arn))),
            }
        };
        self.change_tags(arn, change).await
    }

    pub(super) async fn untag(&self) -> Result<Value> {
        let mut violations = Violations::default();
        let arn = self.resource_arn(&mut violations)?;
        let keys = violations.required(self.members.texts("TagKeys")?, "tagKeys");
        if keys.len() > 200 {
            let rule = "Member must have length less than or equal to 200";
            violations.add(Some(&format!("[{}]", keys.join(", "))), "tagKeys", rule);
        }
        for (key, position) in keys.iter().zip(1..) {
            violations.length(key, &format!("tagKeys.{position}.member"), 1, 128);
        }
        violations.finish()?;
        let change = |target: &mut ScalableTarget| {
            keys.iter().for_each(|key| drop(target.tags.remove(*key)));
            Ok(())
        };
        self.change_tags(arn, change).await
    }

    pub(super) async fn list_tags(&self) -> Result<Value> {
        let mut violations = Violations::default();
        let arn = self.resource_arn(&mut violations)?;
        violations.finish()?;
        let (_, target) = self.find(arn).await?;
        Ok(json!({"Tags": target.tags}))
    }

    async fn change_tags(
        &self,
        arn: &str,
        change: impl Fn(&mut ScalableTarget) -> Result<()> + Send + Sync,
    ) -> Result<Value> {
        let (name, found) = self.find(arn).await?;
        let change = |target: Option<ScalableTarget>| {
            // It may have been registered again in the meantime.
            let target = target.filter(|target| target.id == found.id);
            let mut target = target.ok_or_else(|| messages::resource_not_found(arn))?;
            change(&mut target)?;
            Ok((Change::Put(Box::new(target)), nothing()))
        };
        self.change_target(&name, change).await
    }

    async fn find(&self, arn: &str) -> Result<(TargetName, ScalableTarget)> {
        let mut found = None;
        let visit = |_, name: &TargetName, target: ScalableTarget| {
            if target.arn(self.namespace) != arn {
                return ControlFlow::Continue(());
            }
            found = Some((name.clone(), target));
            ControlFlow::Break(())
        };
        self.visit_targets(&Filter::default(), None, visit).await?;
        found.ok_or_else(|| messages::resource_not_found(arn))
    }

    fn resource_arn(&self, violations: &mut Violations) -> Result<&str> {
        let given = self.members.text("ResourceARN")?;
        let arn = violations.required(given, "resourceARN");
        if given.is_some() {
            violations.length(arn, "resourceARN", 1, 1_011);
            // The caller's own account may be an access key.
            let is_own = arn.strip_prefix(&arn_start(self.namespace)).is_some_and(is_id);
            let is_arn = is_own || is_target_arn(arn);
            violations.pattern(arn, "resourceARN", ARN_PATTERN, is_arn);
        }
        Ok(arn)
    }
}

/// The constraints of tags.
pub(super) fn check_tags(tags: &BTreeMap<String, String>, violations: &mut Violations) {
    for (key, value) in tags {
        violations.length(key, "tags.key", 1, 128);
        violations.length(value, "tags.value", 0, 256);
    }
}

/// The service's own rules for new tags, which the model does not have.
pub(super) fn check_reserved(tags: &BTreeMap<String, String>) -> Result<()> {
    if tags.keys().any(|key| key.starts_with("aws:")) {
        return Err(messages::reserved_tag());
    }
    match tags.len() <= TAGS_MAX {
        true => Ok(()),
        false => Err(messages::too_many_tags(None)),
    }
}

fn is_id(id: &str) -> bool {
    !id.is_empty()
        && id.chars().all(|character| character.is_ascii_alphanumeric() || character == '-')
}

fn is_target_arn(arn: &str) -> bool {
    let parts: Vec<&str> = arn.splitn(6, ':').collect();
    let [start, partition, service, region, account, resource] = parts[..] else { return false };
    start == "arn"
        && !partition.is_empty()
        && service == "application-autoscaling"
        && !region.is_empty()
        && !account.is_empty()
        && account.bytes().all(|byte| byte.is_ascii_digit())
        && resource.strip_prefix("scalable-target/").is_some_and(is_id)
}
