//! Errors that stop a preparation or a run. A failed request does not: the report counts it.

use std::io;

#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("{url:?} is not an endpoint: {fault}")]
    Endpoint { url: String, fault: &'static str },
    #[error(
        "{endpoint} is not on this machine, so requests must be signed: set AWS_ACCESS_KEY_ID and \
         AWS_SECRET_ACCESS_KEY (any values work if the endpoint does not check them)"
    )]
    NoCredentials { endpoint: String },
    #[error("the {what} cannot be sent in a header")]
    Header { what: &'static str },
    #[error("{host} has no address: {error}")]
    Resolve { host: String, error: io::Error },
    #[error("cannot set up TLS for {endpoint}: {error}")]
    Security { endpoint: String, error: io::Error },
    #[error("cannot connect to {endpoint}: {error}; is the server running?")]
    Connect { endpoint: String, error: io::Error },
    #[error("{operation} got no answer: {error}")]
    Exchange { operation: String, error: io::Error },
    #[error("{operation} was refused with {name}: {message}")]
    Refused { operation: String, name: String, message: String },
    #[error("{operation} got an unexpected answer: {answer}")]
    Unexpected { operation: String, answer: String },
    #[error(
        "the table {table} exists and was not created by the load generator, which won't touch it; choose another \
         name with --table"
    )]
    ForeignTable { table: String },
    #[error("the table {table} did not become {wanted} within {seconds} s")]
    TableState { table: String, wanted: &'static str, seconds: u64 },
    #[error("{0}")]
    Plan(String),
    #[error("cannot start a thread or runtime: {0}")]
    Runtime(io::Error),
    #[error("a worker thread failed: {0}")]
    Worker(&'static str),
}
