//! Checks whether the store reads and writes, by doing both as requests do.

use crate::Engine;
use crate::error::Result;
use crate::{keyspace, row};

impl Engine {
    pub async fn check_reads(&self) -> Result<()> {
        self.store.get(&keyspace::health_row()).await?;
        Ok(())
    }

    /// Writes a dedicated row. Durable when it returns, like any write.
    pub async fn check_writes(&self) -> Result<()> {
        let now = row::encode_number(self.clock.now_ms());
        row::put(&*self.store, keyspace::health_row(), now).await
    }
}
