//! The capacity that all tables of an account are provisioned with, and its limit.
//!
//! Adding it up means reading all definitions of the account, so the sum is cached, and what this engine raises is added to it. The sum
//! can be too large but never too small, so it is recomputed before anything is refused. It can't be too small because it is used only
//! while the stored number of raises is the one it was computed with; it is too large once capacity has been lowered or a table deleted.

use std::ops::ControlFlow;
use std::sync::Arc;

use zenobe_store::{Batch, Direction, KeyRange, Reader, Value};

use super::definition_row;
use super::edit::{Refusal, stored_number};
use crate::command::ProvisionedUnits;
use crate::error::{Error, LimitError, Result};
use crate::keyspace;
use crate::row::encode_number;
use crate::schema::{Namespace, TableDefinition};

/// What the tables of a namespace are provisioned with, as of a number of raises. The stored number
/// shows whether the sum may have grown since.
#[derive(Debug, Clone, Copy)]
pub(super) struct AccountCapacity {
    units: ProvisionedUnits,
    raises: u64,
    /// Whether the definitions have just been added up.
    is_new: bool,
}

/// The account whose capacity was raised last.
#[derive(Default)]
pub(super) struct LastRaised(Option<(Arc<Namespace>, AccountCapacity)>);

impl LastRaised {
    pub(super) fn get(&self, namespace: &Namespace) -> Option<AccountCapacity> {
        let (known, account) = self.0.as_ref()?;
        (**known == *namespace).then_some(*account)
    }

    pub(super) fn set(&mut self, namespace: &Arc<Namespace>, account: AccountCapacity) {
        self.0 = Some((Arc::clone(namespace), account));
    }
}

impl AccountCapacity {
    /// Adds up the stored definitions, also those of tables that jobs are filling.
    pub(super) async fn read(store: &dyn Reader, namespace: &Namespace) -> Result<AccountCapacity> {
        // Read before the definitions: if one is raised in between, the write starts over.
        let raises = store.get(&keyspace::namespace_capacity_raises(namespace)).await?;
        let raises = stored_number(raises.as_ref())?;
        let mut units = ProvisionedUnits { read: 0, write: 0 };
        let mut failure = None;
        let mut visit = |_: &[u8], row: &[u8]| match definition_row::decode_row(row) {
            Ok(definition) => {
                let own = provisioned_units(&definition);
                units.read += own.read;
                units.write += own.write;
                ControlFlow::Continue(())
            }
            Err(error) => {
                failure = Some(error);
                ControlFlow::Break(())
            }
        };
        let range = KeyRange::prefix(keyspace::namespace_tables_prefix(namespace));
        store.scan(range, Direction::Forward, &mut visit).await?;
        failure.map_or(Ok(AccountCapacity { units, raises, is_new: true }), Err)
    }
}

/// Refuses to replace `before` by a definition that takes its account above the limit. Lowering is
/// always allowed, also while the account is above it. `stored_raises` is the value of
/// [`keyspace::namespace_capacity_raises`], if the write declares it. Returns the account as the
/// write leaves it, if that raises capacity.
pub(super) fn check(
    before: Option<&TableDefinition>,
    after: &TableDefinition,
    account: Option<AccountCapacity>,
    stored_raises: Option<&Value>,
    maximum: u64,
    batch: &mut Batch,
) -> Result<Option<AccountCapacity>, Refusal> {
    let old = before.map_or(ProvisionedUnits { read: 0, write: 0 }, provisioned_units);
    let new = provisioned_units(after);
    let requested = [new.read.saturating_sub(old.read), new.write.saturating_sub(old.write)];
    if requested == [0, 0] {
        return Ok(None);
    }
    let raises = stored_number(stored_raises)?;
    let Some(account) = account.filter(|account| account.raises == raises) else {
        return Err(Refusal::AccountUnknown);
    };
    let mut sums = [account.units.read, account.units.write];
    for (write, (sum, requested)) in [false, true].into_iter().zip(sums.iter_mut().zip(requested)) {
        let current = *sum;
        *sum = current.saturating_add(requested);
        if requested > 0 && *sum > maximum {
            if !account.is_new {
                return Err(Refusal::AccountUnknown);
            }
            let limit = LimitError::AccountCapacity { write, current, maximum, requested };
            return Err(Error::Limit(limit).into());
        }
    }
    let raises = raises + 1;
    batch.put(keyspace::namespace_capacity_raises(&after.namespace), encode_number(raises));
    let units = ProvisionedUnits { read: sums[0], write: sums[1] };
    Ok(Some(AccountCapacity { units, raises, is_new: false }))
}

/// The units of a table and its global indexes. On demand there are none.
fn provisioned_units(definition: &TableDefinition) -> ProvisionedUnits {
    let indexes = definition.global_indexes.iter().map(|index| &index.throughput);
    let all = std::iter::once(&definition.throughput).chain(indexes);
    all.fold(ProvisionedUnits { read: 0, write: 0 }, |sum, throughput| ProvisionedUnits {
        read: sum.read + throughput.read_units,
        write: sum.write + throughput.write_units,
    })
}
