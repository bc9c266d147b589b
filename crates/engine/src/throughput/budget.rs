//! The budget of an account: what its tables may consume together, whatever each of them may. There is
//! none unless the operator gives one.
//!
//! A request takes from its account when it is admitted, as from its table. Entries in global indexes
//! are charged to the account afterwards: their write has been admitted.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::bucket::{Bucket, RefillRate};
use super::cause::Access;
use crate::options::Limits;

/// An account saves at most one second's worth of its budget.
const BURST_S: u64 = 1;

/// What one account may still consume, in all its regions. Reads or writes without a limit have no
/// bucket.
#[derive(Debug)]
pub(crate) struct Budget([Option<Bucket>; 2]);

impl Budget {
    pub fn take(&self, access: Access, halves: u64, now_ns: u64) -> bool {
        self.bucket(access).is_none_or(|bucket| bucket.take(now_ns, halves))
    }

    pub fn charge(&self, access: Access, halves: u64, now_ns: u64) {
        if let Some(bucket) = self.bucket(access) {
            bucket.charge(now_ns, halves);
        }
    }

    pub fn refund(&self, access: Access, halves: u64) {
        if let Some(bucket) = self.bucket(access) {
            bucket.refund(halves);
        }
    }

    fn bucket(&self, access: Access) -> Option<&Bucket> {
        self.0[access as usize].as_ref()
    }
}

/// The budgets of all accounts.
#[derive(Debug)]
pub(super) struct Budgets {
    rates: [Option<RefillRate>; 2],
    /// By account. They outlive the tables of their account until they are full again, so that new tables do not clear
    /// debts.
    accounts: Mutex<HashMap<String, Arc<Budget>>>,
}

impl Budgets {
    pub fn new(limits: &Limits) -> Budgets {
        let rate = |units: Option<u64>| {
            units.map(|units| RefillRate { units_per_second: units, burst_s: BURST_S })
        };
        let units = [limits.account_read_units_per_second, limits.account_write_units_per_second];
        Budgets { rates: units.map(rate), accounts: Mutex::default() }
    }

    /// The budget of an account, if accounts have one.
    pub fn of(&self, account: &str, nodes: u64, since_ns: u64) -> Option<Arc<Budget>> {
        if self.rates == [None, None] {
            return None;
        }
        let mut accounts = self.accounts.lock();
        if let Some(budget) = accounts.get(account) {
            return Some(Arc::clone(budget));
        }
        let bucket = |rate: Option<RefillRate>| rate.map(|rate| Bucket::new(since_ns, rate, nodes));
        let budget = Arc::new(Budget(self.rates.map(bucket)));
        accounts.insert(account.to_owned(), Arc::clone(&budget));
        Some(budget)
    }

    /// Each of several nodes has an equal share of every budget.
    pub fn set_nodes(&self, nodes: u64) {
        for budget in self.accounts.lock().values() {
            for (bucket, rate) in budget.0.iter().zip(self.rates) {
                if let (Some(bucket), Some(rate)) = (bucket, rate) {
                    bucket.set_rate(rate, nodes);
                }
            }
        }
    }

    /// Forgets the budgets that no table uses and that are full: a new one would be no different.
    pub fn forget_unused(&self, now_ns: u64) {
        self.accounts.lock().retain(|_, budget| {
            let is_full = budget.0.iter().flatten().all(|bucket| bucket.is_full(now_ns));
            // Only `of` shares them, under the same lock.
            Arc::strong_count(budget) > 1 || !is_full
        });
    }

    pub fn set_clock_back(&self, by_ns: u64) {
        for budget in self.accounts.lock().values() {
            budget.0.iter().flatten().for_each(|bucket| bucket.set_back(by_ns));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::bucket::SECOND_NS;
    use super::*;

    /// Accounts that come and go must not use ever more memory, nor clear their debts by going.
    #[test]
    fn a_budget_is_forgotten_once_it_is_unused_and_full() {
        let limits = Limits { account_write_units_per_second: Some(10), ..Limits::default() };
        let budgets = Budgets::new(&limits);
        let count = || budgets.accounts.lock().len();
        let start_ns = 1_000 * SECOND_NS;
        let of = |account: &str| budgets.of(account, 1, start_ns).expect("accounts have budgets");
        let used = of("used");
        // Ten units are there, and eleven are owed.
        of("in debt").charge(Access::Write, 42, start_ns);
        drop(of("idle"));
        budgets.forget_unused(start_ns);
        assert_eq!(count(), 2, "the idle one is gone");
        budgets.forget_unused(start_ns + 2 * SECOND_NS);
        assert_eq!(count(), 2, "it still has to save a second's worth");
        budgets.forget_unused(start_ns + 3 * SECOND_NS);
        assert_eq!(count(), 1);
        drop(used);
        budgets.forget_unused(start_ns + 3 * SECOND_NS);
        assert_eq!(count(), 0);
    }
}
