//! Single calls.

use crate::http::{Connection, Connector, Request};
use crate::target::Target;
use crate::workload::{error_message, error_name, is_throttling};
use crate::{LoadError, Result};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn is_success(&self) -> bool {
        self.status == 200
    }

    /// The name of the exception, or the status if the response names none.
    pub fn error_name(&self) -> String {
        error_name(&self.body).map_or_else(|| format!("HTTP {}", self.status), str::to_owned)
    }

    pub fn error_message(&self) -> String {
        error_message(&self.body).unwrap_or_default()
    }

    /// Whether the same request may succeed later: the server is overloaded or has failed.
    pub fn is_transient(&self) -> bool {
        self.status >= 500 || is_throttling(&self.error_name())
    }

    /// The exception with its message, for whoever gives up.
    pub fn refusal(&self) -> String {
        format!("{}: {}", self.error_name(), self.error_message())
    }
}

/// Calls an operation of DynamoDB, such as `CreateTable`, on a new connection. A response that
/// reports an error is still `Ok`.
pub fn exchange(target: &Target, operation: &str, body: &[u8]) -> Result<Answer> {
    runtime()?.block_on(async {
        let mut connection = Connector::new(target)?.open().await?;
        call(&mut connection, target, operation, body).await
    })
}

/// Makes one call after the other on one connection.
pub struct Client {
    target: Target,
    connector: Connector,
    connection: Option<Connection>,
}

impl Client {
    pub fn new(target: Target) -> Result<Client> {
        let connector = Connector::new(&target)?;
        Ok(Client { target, connector, connection: None })
    }

    /// Like [`exchange`]. The future may be dropped halfway: that also drops the connection, so no
    /// later call reads the rest of its response.
    pub async fn call(&mut self, operation: &str, body: &[u8]) -> Result<Answer> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.connector.open().await?,
        };
        let answer = call(&mut connection, &self.target, operation, body).await?;
        self.connection = Some(connection);
        Ok(answer)
    }
}

pub(crate) async fn call(
    connection: &mut Connection,
    target: &Target,
    operation: &str,
    body: &[u8],
) -> Result<Answer> {
    let request = Request::once(target, operation, body);
    let received = connection.exchange(&request).await.map_err(|failure| LoadError::Exchange {
        operation: operation.to_owned(),
        error: failure.into_io(),
    })?;
    Ok(Answer { status: received.status, body: connection.body(&received).to_vec() })
}

pub(crate) fn runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(LoadError::Runtime)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overload_and_failures_are_transient() {
        let answer = |status, name: &str| Answer {
            status,
            body: format!(r##"{{"__type":"com.amazon#{name}","message":"no"}}"##).into_bytes(),
        };
        for name in [
            "ProvisionedThroughputExceededException",
            "RequestLimitExceeded",
            "ThrottlingException",
        ] {
            assert!(answer(400, name).is_transient(), "{name}");
        }
        assert!(answer(500, "InternalServerError").is_transient());
        let refused = answer(400, "ValidationException");
        assert!(!refused.is_transient());
        assert_eq!(refused.refusal(), "ValidationException: no");
    }
}
