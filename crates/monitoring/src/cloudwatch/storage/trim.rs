//! Deletes what is older than the retention, in bounded steps under a lease.

use std::sync::Arc;

use zenobe_engine::error::Result;
use zenobe_engine::lease::Lease;
use zenobe_engine::schema::Namespace;
use zenobe_engine::service_rows::RowOwner;

use super::Storage;
use super::catalogue::Series;
use super::keys::{self, DAY_MS, HOUR_MS};

impl Storage {
    /// One step in one namespace. Returns whether more is left.
    pub async fn trim(&self, namespace: &Arc<Namespace>, lease: &Lease) -> Result<bool> {
        let first_day = self.first_ms() / DAY_MS;
        let rows = self.rows(namespace, keys::days_before(first_day)).await?;
        let is_full = rows.len() == Storage::ROWS_AT_ONCE;
        let deleted: Vec<_> = rows.into_iter().map(|row| (row.key, None)).collect();
        if !deleted.is_empty() {
            tracing::debug!(rows = deleted.len(), "trimming metrics");
            self.engine.write_service_rows(RowOwner::Metrics, namespace, lease, deleted).await?;
        }
        match is_full {
            true => Ok(true),
            false => self.trim_catalogue(namespace, lease).await.map(|()| false),
        }
    }

    /// Forgets series without points.
    async fn trim_catalogue(&self, namespace: &Arc<Namespace>, lease: &Lease) -> Result<()> {
        let first_hour = self.first_ms() / HOUR_MS;
        let mut range = keys::catalogue(None, None);
        let mut has_changed = false;
        loop {
            let rows = self.rows(namespace, range.clone()).await?;
            let next = rows.last().filter(|_| rows.len() == Storage::ROWS_AT_ONCE);
            let next = next.map(|row| [&row.key[..], &[0]].concat());
            let mut deleted = Vec::new();
            for row in rows {
                if Series::from_fields(&row.fields)?.last_hour < first_hour {
                    deleted.push((row.key, None));
                }
            }
            if !deleted.is_empty() {
                has_changed = true;
                self.engine
                    .write_service_rows(RowOwner::Metrics, namespace, lease, deleted)
                    .await?;
            }
            match next {
                Some(next) => range.start = next,
                None => break,
            }
        }
        if has_changed {
            self.forget_series(namespace).await;
        }
        Ok(())
    }
}
