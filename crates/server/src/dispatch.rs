//! Handles requests, once the HTTP layer knows the caller and the operation.

use std::sync::Arc;

use bytes::Bytes;
use zenobe_api::{Api, Operation, Response};
use zenobe_engine::schema::Namespace;
use zenobe_store::{Statistics, Store};

/// The seam between HTTP and the database. Tests use their own handlers.
pub trait Handler: Send + Sync + 'static {
    /// `endpoint` is the address by which the caller reached the server, if the operation needs it.
    fn handle(
        &self,
        operation: Operation,
        namespace: &Arc<Namespace>,
        endpoint: Option<String>,
        body: Bytes,
    ) -> impl Future<Output = Response> + Send;

    /// The store's numbers, for the metrics.
    fn statistics(&self) -> Statistics;
}

/// The database's API, and its store for the statistics.
pub struct ApiHandler {
    pub api: Arc<Api>,
    pub store: Arc<dyn Store>,
}

impl Handler for ApiHandler {
    async fn handle(
        &self,
        operation: Operation,
        namespace: &Arc<Namespace>,
        endpoint: Option<String>,
        body: Bytes,
    ) -> Response {
        match endpoint {
            None => self.api.handle(operation, namespace, &body).await,
            Some(endpoint) => self.api.at(endpoint).handle(operation, namespace, &body).await,
        }
    }

    fn statistics(&self) -> Statistics {
        self.store.statistics()
    }
}
