//! Handles requests, once the HTTP layer knows the caller and the operation.

use std::sync::Arc;

use bytes::Bytes;
use zenobe_api::{Api, GatheredFacts, Operation, Response};
use zenobe_engine::schema::Namespace;
use zenobe_store::{Statistics, Store};

use crate::admin::Admin;
use crate::services::Services;

/// What a request's head says to its operation.
#[derive(Debug, Clone, Default)]
pub struct Circumstances {
    /// The address by which the caller reached the server, if the operation needs it.
    pub endpoint: Option<String>,
    /// The time to read the tables as of.
    pub as_of: Option<String>,
}

/// The request gets no answer: its connection is closed, as if the network had failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a fault rule dropped the connection")]
pub struct Dropped;

/// The seam between HTTP and the database. Tests use their own handlers.
pub trait Handler: Send + Sync + 'static {
    fn handle(
        &self,
        operation: Operation,
        namespace: &Arc<Namespace>,
        circumstances: Circumstances,
        body: Bytes,
    ) -> impl Future<Output = Result<Response, Dropped>> + Send;

    /// The store's numbers, for the metrics.
    fn statistics(&self) -> Statistics;

    /// Requests of operators besides the API. Tests of HTTP alone have none.
    fn admin(&self) -> Option<Arc<Admin>> {
        None
    }

    /// AWS services besides DynamoDB. Tests of HTTP alone have none.
    fn services(&self) -> Option<Arc<Services>> {
        None
    }
}

/// The database's API, and its store for the statistics.
#[derive(Clone)]
pub struct ApiHandler {
    pub api: Arc<Api>,
    pub store: Arc<dyn Store>,
    pub admin: Option<Arc<Admin>>,
    pub services: Arc<Services>,
}

impl ApiHandler {
    /// Gathers the facts of requests that somebody observes.
    pub fn new(
        api: &Arc<Api>,
        store: &Arc<dyn Store>,
        admin: Option<Arc<Admin>>,
        services: Services,
        facts: GatheredFacts,
    ) -> ApiHandler {
        let (api, services) = (Arc::new(api.gathering(facts)), Arc::new(services));
        ApiHandler { api, store: Arc::clone(store), admin, services }
    }
}

impl Handler for ApiHandler {
    async fn handle(
        &self,
        operation: Operation,
        namespace: &Arc<Namespace>,
        circumstances: Circumstances,
        body: Bytes,
    ) -> Result<Response, Dropped> {
        let Circumstances { endpoint, as_of } = circumstances;
        Ok(match (endpoint, as_of) {
            (None, None) => self.api.handle(operation, namespace, &body).await,
            (_, Some(as_of)) => match self.api.as_of(operation, &as_of) {
                Ok(api) => api.handle(operation, namespace, &body).await,
                Err(refusal) => refusal,
            },
            (Some(endpoint), None) => {
                self.api.at(endpoint).handle(operation, namespace, &body).await
            }
        })
    }

    fn statistics(&self) -> Statistics {
        self.store.statistics()
    }

    fn admin(&self) -> Option<Arc<Admin>> {
        self.admin.clone()
    }

    fn services(&self) -> Option<Arc<Services>> {
        Some(self.services.clone())
    }
}
