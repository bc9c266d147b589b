//! Reads the rows of targets.

use std::ops::{ControlFlow, Range};

use zenobe_engine::error::Result;
use zenobe_engine::schema::Namespace;
use zenobe_engine::service_rows::RowOwner;

use crate::resource::TargetName;
use crate::target::ScalableTarget;
use crate::{Scaling, keys};

/// How many rows are read at a time.
pub(crate) const ROWS_PER_READ: usize = 100;

impl Scaling {
    /// Visits the targets in a range of keys that a filter includes, in the order of their keys.
    pub(crate) async fn visit_targets(
        &self,
        namespace: &Namespace,
        mut range: Range<Vec<u8>>,
        includes: impl Fn(&TargetName) -> bool + Send,
        mut visit: impl FnMut(Vec<u8>, TargetName, ScalableTarget) -> ControlFlow<()> + Send,
    ) -> Result<()> {
        while range.start < range.end {
            let (owner, range_left) = (RowOwner::Scaling, range.clone());
            let rows =
                self.engine.service_rows(owner, namespace, range_left, ROWS_PER_READ).await?;
            let is_last = rows.len() < ROWS_PER_READ;
            for row in rows {
                range.start = keys::behind(&row.key);
                let name = TargetName::of_key(&row.key)?;
                if !includes(&name) {
                    continue;
                }
                if visit(row.key, name, ScalableTarget::decode(row.fields)?).is_break() {
                    return Ok(());
                }
            }
            if is_last {
                break;
            }
        }
        Ok(())
    }

    pub(crate) async fn all_targets(
        &self,
        namespace: &Namespace,
    ) -> Result<Vec<(TargetName, ScalableTarget)>> {
        let mut targets = Vec::new();
        let collect = |_, name, target| {
            targets.push((name, target));
            ControlFlow::Continue(())
        };
        self.visit_targets(namespace, keys::all_targets(), |_| true, collect).await?;
        Ok(targets)
    }
}
