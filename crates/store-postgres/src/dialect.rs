//! Which database the store runs on, and the settings that it needs.

use std::time::Duration;

use zenobe_store::Error;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    Postgres,
    /// Untested, like YugabyteDB: the tests have no server of either.
    Cockroach,
    Yugabyte,
}

/// The oldest PostgreSQL that the tests run on.
const POSTGRES_MIN: u32 = 15;

impl Dialect {
    /// The dialect of the server whose `version()` this is.
    pub fn of(version: &str) -> Result<Dialect, Error> {
        if version.contains("CockroachDB") {
            return Ok(Dialect::Cockroach);
        }
        if version.contains("-YB-") {
            return Ok(Dialect::Yugabyte);
        }
        let number = version.strip_prefix("PostgreSQL ").unwrap_or_default();
        let digits = number.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(number.len());
        match number[..digits].parse::<u32>() {
            Ok(major) if major >= POSTGRES_MIN => Ok(Dialect::Postgres),
            _ => Err(Error::Open {
                detail: format!(
                    "the store is `{version}`; PostgreSQL {POSTGRES_MIN} or newer is needed"
                ),
            }),
        }
    }

    pub fn is_tested(self) -> bool {
        self == Dialect::Postgres
    }

    /// PostgreSQL holds row locks until the transaction ends, so conflicting writes wait for each other. In the other databases locks
    /// are best effort, and only serializable isolation separates writes.
    pub fn begin_write(self) -> &'static str {
        match self {
            Dialect::Postgres => "BEGIN ISOLATION LEVEL READ COMMITTED",
            Dialect::Cockroach | Dialect::Yugabyte => "BEGIN ISOLATION LEVEL SERIALIZABLE",
        }
    }

    /// The settings of each connection.
    ///
    /// Every statement has an index to use, so its plan must not depend on statistics from when the tables were small. A server that
    /// has lost its node releases the node's locks. Commits are durable even if the server's default says otherwise. No statement times out:
    /// that would also end the wait for a standby, and PostgreSQL would acknowledge a commit that no standby has.
    pub fn settings(self, idle_in_transaction: Duration) -> String {
        let idle_ms = idle_in_transaction.as_millis();
        match self {
            Dialect::Postgres => format!(
                "SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_hashjoin = off;
                 SET enable_mergejoin = off; SET jit = off; SET plan_cache_mode = force_generic_plan;
                 SET statement_timeout = 0; SET lock_timeout = '10s';
                 SET idle_in_transaction_session_timeout = {idle_ms};
                 SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 2;
                 SET tcp_keepalives_count = 3; SET tcp_user_timeout = 10000;
                 SELECT set_config('synchronous_commit', 'on', false)
                 WHERE current_setting('synchronous_commit') = 'off'"
            ),
            Dialect::Cockroach | Dialect::Yugabyte => {
                format!("SET idle_in_transaction_session_timeout = {idle_ms}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_tells_the_dialect() {
        let of = |version| Dialect::of(version).map_err(|error| error.to_string());
        assert_eq!(of("PostgreSQL 18.1 on x86_64"), Ok(Dialect::Postgres));
        assert_eq!(of("PostgreSQL 15.13 (Debian)"), Ok(Dialect::Postgres));
        assert_eq!(of("PostgreSQL 11.2-YB-2.20.1.0-b0 on x86_64"), Ok(Dialect::Yugabyte));
        assert_eq!(of("CockroachDB CCL v24.1.0"), Ok(Dialect::Cockroach));
        for old in ["PostgreSQL 14.9", "MariaDB"] {
            let message = of(old).unwrap_err();
            assert!(message.contains(old) && message.contains("15 or newer"), "{message}");
        }
    }
}
