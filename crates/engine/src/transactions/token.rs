//! Idempotency tokens: the store itself remembers a transaction that was committed with a token for
//! ten minutes, so the promise survives restarts and holds across nodes.
//!
//! A row holds the digest of the parameters, its expiry, and what a replay is charged. A second
//! row, ordered by expiry, lets old tokens be found and deleted a few at a time.

use std::ops::ControlFlow;
use std::sync::Arc;

use zenobe_store::{Batch, Direction, Key, Value, WriteSet, write_with};

use crate::Engine;
use crate::capacity_units::transactional_read_halves;
use crate::catalog::Table;
use crate::command::{Consumed, TableName, TransactionToken, TransactionalUnits};
use crate::error::{Error, Result};
use crate::keyspace;
use crate::lease::Lease;
use crate::row::{Fields, corrupt};
use crate::schema::Namespace;
use crate::write::commit::WrittenItem;

const LIFETIME_MS: u64 = 10 * 60 * 1000;

/// How many expired tokens to delete at once, and in one of how many transactions. This deletes
/// more tokens than are added, so a backlog shrinks, while most transactions don't have to
/// look.
const FORGOTTEN_AT_ONCE_MAX: usize = 64;
const FORGETTING_ONE_IN: u8 = 16;

pub(crate) struct IdempotencyToken {
    namespace: Arc<Namespace>,
    row_key: Key,
    parameters_digest: [u8; 16],
    now_ms: u64,
    /// How far the clock of the node that stored the token may have differed.
    clock_skew_ms: u64,
}

pub(crate) enum TokenState {
    /// Never seen, or expired.
    Unused,
    Done(RepeatedTransaction),
}

/// What repeating a transaction costs: reads of the items it touched.
#[derive(Debug)]
pub(crate) struct RepeatedTransaction {
    pub consumed: Vec<Consumed>,
}

impl IdempotencyToken {
    pub fn new(token: &TransactionToken, now_ms: u64, clock_skew_ms: u64) -> IdempotencyToken {
        IdempotencyToken {
            namespace: Arc::clone(&token.namespace),
            row_key: keyspace::token_row(&token.namespace, &token.token),
            parameters_digest: token.parameters_digest,
            now_ms,
            clock_skew_ms,
        }
    }

    /// Whether this token's transaction should delete some old tokens. Digests are as good as
    /// random.
    pub fn is_cleaner(&self) -> bool {
        self.parameters_digest[0].is_multiple_of(FORGETTING_ONE_IN)
    }

    pub fn row_key(&self) -> &Key {
        &self.row_key
    }

    pub fn state(&self, row: Option<&Value>) -> Result<TokenState> {
        let Some(row) = row else {
            return Ok(TokenState::Unused);
        };
        let row = TokenRow::decode(row)?;
        if row.expires_at_ms.saturating_add(self.clock_skew_ms) <= self.now_ms {
            return Ok(TokenState::Unused);
        }
        if row.parameters_digest != self.parameters_digest {
            return Err(Error::IdempotentParameterMismatch);
        }
        let consumed = row.read_halves.into_iter().map(|(name, halves)| Consumed {
            table_halves: halves,
            ..Consumed::none(
                &TableName { namespace: Arc::clone(&self.namespace), name },
                Some(TransactionalUnits::Read),
            )
        });
        Ok(TokenState::Done(RepeatedTransaction { consumed: consumed.collect() }))
    }

    /// Adds the token's rows to the batch of its transaction.
    pub fn remember<'w>(
        &self,
        writes: impl Iterator<Item = (&'w Table, &'w WrittenItem)>,
        batch: &mut Batch,
    ) {
        let mut read_halves: Vec<(String, u64)> = Vec::new();
        for (table, written) in writes {
            let name = &table.definition().name;
            let halves = transactional_read_halves(written.charged_size_bytes());
            match read_halves.iter_mut().find(|(other, _)| other == name) {
                Some((_, sum)) => *sum += halves,
                None => read_halves.push((name.clone(), halves)),
            }
        }
        let row = TokenRow {
            parameters_digest: self.parameters_digest,
            expires_at_ms: self.now_ms + LIFETIME_MS,
            read_halves,
        };
        batch.put(keyspace::token_expiry(row.expires_at_ms, &self.row_key), Value::new());
        batch.put(self.row_key.clone(), row.encode());
    }
}

impl Engine {
    /// Deletes some expired tokens, oldest first. Returns whether there may be more.
    pub(crate) async fn forget_expired_tokens(&self, lease: &Lease) -> Result<bool> {
        let moment = self.trusted_clock.read();
        if moment.is_paused {
            return Ok(false);
        }
        // Forgetting a token early would let a retry run twice.
        let now_ms = moment.now_ms.saturating_sub(self.clock_skew_ms());
        let expiries = self.expired_tokens(now_ms).await?;
        if expiries.is_empty() {
            return Ok(false);
        }
        let keys = token_rows(&expiries);
        let set = WriteSet { guards: lease.guards(), keys: &keys };
        let decision = write_with(&*self.store, set, |reads| {
            let (guards, rows) = reads.split_at(lease.guards().len());
            lease.check(guards)?;
            let mut batch = Batch::new();
            // Deleted one by one: a range would include an expiry that was added since, and its
            // token would stay.
            expiries.iter().for_each(|expiry| batch.delete(expiry.clone()));
            for (key, row) in keys.iter().zip(rows) {
                match row.as_ref().map(TokenRow::decode) {
                    // A token that was used again after its expiry has a new row and a new expiry.
                    Some(Ok(row)) if row.expires_at_ms < now_ms => batch.delete(key.clone()),
                    Some(Ok(_)) | None => {}
                    // The row stays for inspection, but does not block the others.
                    Some(Err(error)) => {
                        tracing::error!(?key, %error, "an expired token's row is damaged; keeping it");
                    }
                }
            }
            Ok::<_, Error>((batch, ()))
        });
        decision.await??;
        Ok(expiries.len() == FORGOTTEN_AT_ONCE_MAX)
    }

    async fn expired_tokens(&self, now_ms: u64) -> Result<Vec<Key>> {
        let mut expiries = Vec::new();
        let mut visit = |key: &[u8], _: &[u8]| {
            expiries.push(Key::copy_from_slice(key));
            if expiries.len() < FORGOTTEN_AT_ONCE_MAX {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        };
        let range = keyspace::token_expiries_before(now_ms);
        self.store.scan(range, Direction::Forward, &mut visit).await?;
        Ok(expiries)
    }
}

/// The token rows of some expiries, each once. An expiry that is too short to name a token has
/// none.
fn token_rows(expiries: &[Key]) -> Vec<Key> {
    let row = |expiry: &Key| keyspace::token_row_of_expiry(expiry).map(Key::copy_from_slice);
    let mut rows: Vec<Key> = expiries.iter().filter_map(row).collect();
    rows.sort_unstable();
    rows.dedup();
    rows
}

/// A token in its stored form.
#[derive(Debug, PartialEq, Eq)]
struct TokenRow {
    parameters_digest: [u8; 16],
    expires_at_ms: u64,
    /// What a replay is charged on each table, in the order of first mention.
    read_halves: Vec<(String, u64)>,
}

impl TokenRow {
    fn encode(&self) -> Value {
        let read = |(name, halves): &(String, u64)| {
            let mut read = Fields::default();
            read.text("table", name);
            read.number("halves", *halves);
            read.0
        };
        let mut fields = Fields::default();
        fields.bytes("digest", &self.parameters_digest);
        fields.number("expires_at_ms", self.expires_at_ms);
        fields.list("reads", self.read_halves.iter().map(read));
        fields.encode()
    }

    fn decode(row: &Value) -> Result<TokenRow> {
        let mut fields = Fields::decode(row, "a token's row")?;
        let digest = fields.take_bytes("digest")?;
        let read = |read| {
            let mut read = Fields(read);
            Ok((read.take_text("table")?, read.take_number("halves")?))
        };
        Ok(TokenRow {
            parameters_digest: digest
                .try_into()
                .map_err(|_| corrupt("a digest of another length in a token's row".to_owned()))?,
            expires_at_ms: fields.take_number("expires_at_ms")?,
            read_halves: fields.take_list("reads", read)?,
        })
    }
}
