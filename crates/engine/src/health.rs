//! Checks whether the store reads and writes, by doing both as requests do.

use zenobe_store::{Batch, Value, WriteSet, write_with};

use crate::Engine;
use crate::error::{Error, Result};
use crate::keyspace;

impl Engine {
    pub async fn check_reads(&self) -> Result<()> {
        self.store.get(&keyspace::health_row()).await?;
        Ok(())
    }

    /// Writes a dedicated row. Durable when it returns, like any write.
    pub async fn check_writes(&self) -> Result<()> {
        let keys = [keyspace::health_row()];
        let now_ms = self.clock.now_ms();
        let set = WriteSet { guards: &[], keys: &keys };
        let written = write_with(&*self.store, set, |_| {
            let mut batch = Batch::new();
            batch.put(keys[0].clone(), Value::copy_from_slice(&now_ms.to_be_bytes()));
            Ok::<_, Error>((batch, ()))
        });
        written.await??;
        Ok(())
    }
}
