//! DescribeScalingActivities.

use serde_json::Value;
use zenobe_engine::service_rows::RowOwner;

use super::Request;
use super::page::{Selection, render};
use crate::activity::{Activity, Outcome, RETENTION_MS};
use crate::error::Result;
use crate::keys;
use crate::target_rows::ROWS_PER_READ;

impl Request<'_> {
    /// The newest come first. They stay when their target is deregistered, for six weeks.
    pub(super) async fn describe_activities(&self) -> Result<Value> {
        let selection = Selection::read(self.members, None, None, 50)?;
        let with_not_scaled = self.members.flag("IncludeNotScaledActivities")?.unwrap_or(false);
        let (page, mut found) = (&selection.page, Vec::new());
        let mut range = keys::all_activities();
        range.end =
            keys::activities_before(self.scaling.now_ms().saturating_sub(RETENTION_MS)).start;
        if let Some(from) = &page.from {
            range.start = range.start.max(from.clone());
        }
        while found.len() <= page.size && range.start < range.end {
            let (engine, owner) = (&self.scaling.engine, RowOwner::Scaling);
            let read = engine.service_rows(owner, self.namespace, range.clone(), ROWS_PER_READ);
            let rows = read.await?;
            let is_last = rows.len() < ROWS_PER_READ;
            for row in rows {
                range.start = keys::behind(&row.key);
                let activity = Activity::decode(row.fields)?;
                let is_shown =
                    with_not_scaled || !matches!(activity.outcome, Outcome::NotScaled(_));
                if is_shown && selection.filter.includes(&activity.name) {
                    found.push((row.key, activity.describe()));
                }
            }
            if is_last {
                break;
            }
        }
        Ok(render("ScalingActivities", found, page))
    }
}
