//! A snapshot taken while there is no published state: its first read waits for one, and it stays with that.

use std::sync::{Arc, OnceLock};

use futures_util::future::{BoxFuture, FutureExt};
use zenobe_store::{Direction, Key, KeyRange, Reader, Result, Value, Visitor};

use crate::scan::scan;
use crate::shared::Shared;
use crate::view::View;

pub(crate) struct PendingView {
    shared: Arc<Shared>,
    view: OnceLock<Arc<View>>,
}

impl PendingView {
    pub fn new(shared: Arc<Shared>) -> PendingView {
        PendingView { shared, view: OnceLock::new() }
    }

    async fn view(&self) -> Result<&Arc<View>> {
        if let Some(view) = self.view.get() {
            return Ok(view);
        }
        let view = self.shared.view().await?;
        // Another read may have been first; then its state is this snapshot's.
        Ok(self.view.get_or_init(|| view))
    }
}

impl Reader for PendingView {
    fn get<'a>(&'a self, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Value>>> {
        async move { self.view().await?.read(key) }.boxed()
    }

    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Value>>>> {
        async move { self.view().await?.read_many(keys) }.boxed()
    }

    fn scan<'a>(
        &'a self,
        range: KeyRange,
        direction: Direction,
        visit: &'a mut Visitor<'a>,
    ) -> BoxFuture<'a, Result<()>> {
        async move {
            let view = self.view().await?;
            scan(view, &self.shared.dead_runs, range, direction, visit).await
        }
        .boxed()
    }
}
