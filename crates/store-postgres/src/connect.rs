//! Finds the primary among the hosts that a URL names.
//!
//! Each host has its own timeout: one that accepts a connection and then hangs, because it is paused or the network is cut, must
//! not block the way to the new primary.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::time::timeout;
use tokio_postgres::config::Host;
use tokio_postgres::{Client, Config};

use crate::statement_error::StatementError;
use crate::tls::Connector;
use crate::url::ServerUrl;

pub struct Hosts {
    configs: Vec<Config>,
    connector: Connector,
    /// The host that was connected to last: most likely the primary still.
    last: AtomicUsize,
}

impl Hosts {
    pub fn new(target: ServerUrl, connector: Connector) -> Hosts {
        Hosts { configs: target.hosts, connector, last: AtomicUsize::new(0) }
    }

    /// Connects to the first host that is what the URL asks for. Runs on the store's runtime.
    pub async fn connect(&self) -> Result<Client, StatementError> {
        let (count, first) = (self.configs.len(), self.last.load(Ordering::Relaxed));
        let mut problem: Option<StatementError> = None;
        for number in (0..count).map(|step| (first + step) % count) {
            match self.connect_to(&self.configs[number]).await {
                Ok(client) => {
                    self.last.store(number, Ordering::Relaxed);
                    return Ok(client);
                }
                // A host that may yet answer counts for more than one that refuses.
                Err(error) if matches!(problem, Some(StatementError::Lost(_))) => {
                    tracing::debug!(?error, "this host cannot be used either");
                }
                Err(error) => problem = Some(error),
            }
        }
        Err(problem.unwrap_or_else(|| StatementError::Lost("no host is named".to_owned())))
    }

    /// The host that was connected to last, as people write it.
    pub fn last(&self) -> String {
        let config = &self.configs[self.last.load(Ordering::Relaxed)];
        let port = config.get_ports().first().copied().unwrap_or(5432);
        match config.get_hosts().first() {
            Some(Host::Tcp(name)) => format!("{name}:{port}"),
            #[cfg(unix)]
            Some(Host::Unix(path)) => path.display().to_string(),
            None => String::new(),
        }
    }

    async fn connect_to(&self, config: &Config) -> Result<Client, StatementError> {
        let patience = config.get_connect_timeout().copied().unwrap_or(Duration::from_secs(3));
        let connecting = config.connect(self.connector.clone());
        let Ok(connected) = timeout(patience, connecting).await else {
            return Err(StatementError::Lost("a host does not answer".to_owned()));
        };
        let (client, connection) = connected?;
        // Requests that wait for a response learn from the client that the connection has ended.
        tokio::spawn(connection.map(drop));
        Ok(client)
    }
}
