//! Filters and pages of the operations that describe.

use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::input::{Service, check_dimension};
use crate::constraints::Violations;
use crate::error::Result;
use crate::json::Members;
use crate::resource::TargetName;
use crate::{keys, messages};

/// Which targets, policies, actions or activities to describe. Without resource ids, describes those of all resources.
#[derive(Debug, Default)]
pub(super) struct Filter {
    pub resource_ids: Vec<String>,
    pub dimension: Option<String>,
}

impl Filter {
    pub(super) fn includes(&self, name: &TargetName) -> bool {
        let is_resource =
            self.resource_ids.is_empty() || self.resource_ids.contains(&name.resource_id());
        is_resource && self.dimension.as_deref().is_none_or(|wanted| wanted == name.dimension())
    }

    /// The keys of the targets that may pass.
    pub(super) fn targets(&self) -> Range<Vec<u8>> {
        match &self.resource_ids[..] {
            [resource_id] => keys::targets_of(resource_id),
            _ => keys::all_targets(),
        }
    }
}

/// A page to return: how many entries, and after which key.
#[derive(Debug)]
pub(super) struct Page {
    pub size: usize,
    /// Right after the last key that was returned.
    pub from: Option<Vec<u8>>,
}

/// The parameters that all Describe operations share.
pub(super) struct Selection {
    pub filter: Filter,
    pub page: Page,
    /// Empty for all names.
    pub names: Vec<String>,
}

impl Selection {
    /// `names` and `resources` are the members with names and with resource ids, where there are
    /// lists of them.
    pub(super) fn read(
        members: Members<'_>,
        names: Option<&str>,
        resources: Option<&str>,
        size_max: i32,
    ) -> Result<Selection> {
        let mut violations = Violations::default();
        let service = Service::read(members, &mut violations)?;
        let mut list = |member: Option<&str>| -> Result<Vec<String>> {
            let Some(member) = member else { return Ok(Vec::new()) };
            let texts = members.texts(member)?.unwrap_or_default();
            violations.identifiers(&texts, &lower_camel(member));
            Ok(texts.into_iter().map(str::to_owned).collect())
        };
        let (names, mut resource_ids) = (list(names)?, list(resources)?);
        if resources.is_none()
            && let Some(resource_id) = members.text("ResourceId")?
        {
            violations.identifier(resource_id, "resourceId");
            resource_ids.push(resource_id.to_owned());
        }
        let dimension = members.text("ScalableDimension")?;
        check_dimension(dimension, &mut violations);
        violations.finish()?;
        service.check()?;
        if dimension.is_some() && resource_ids.is_empty() {
            return Err(messages::dimension_without_resource());
        }
        let dimension = dimension.map(str::to_owned);
        let page = Page::read(members, size_max)?;
        Ok(Selection { filter: Filter { resource_ids, dimension }, page, names })
    }

    pub(super) fn includes_name(&self, name: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|wanted| wanted == name)
    }
}

impl Page {
    fn read(members: Members<'_>, size_max: i32) -> Result<Page> {
        let size = members.integer("MaxResults")?.unwrap_or(size_max);
        if !(1..=size_max).contains(&size) {
            return Err(messages::max_results(size_max));
        }
        let from = members.text("NextToken")?.map(|token| {
            let from = URL_SAFE_NO_PAD.decode(token).ok();
            from.filter(|from| !from.is_empty()).ok_or_else(messages::invalid_next_token)
        });
        Ok(Page { size: size as usize, from: from.transpose()? })
    }
}

/// `found` has the entries with their keys, and one more than the page holds if there are more.
pub(super) fn render(member: &str, mut found: Vec<(Vec<u8>, Value)>, page: &Page) -> Value {
    let has_more = found.len() > page.size;
    found.truncate(page.size);
    let next = found.last().filter(|_| has_more).map(|(key, _)| keys::behind(key));
    let entries: Vec<Value> = found.into_iter().map(|(_, entry)| entry).collect();
    let mut answer = json!({member: entries});
    if let Some(next) = next {
        answer["NextToken"] = URL_SAFE_NO_PAD.encode(next).into();
    }
    answer
}

fn lower_camel(member: &str) -> String {
    let (first, rest) = member.split_at(1);
    first.to_ascii_lowercase() + rest
}
