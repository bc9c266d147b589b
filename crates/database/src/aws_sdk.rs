//! An HTTP client for the AWS SDK for Rust that calls the database in-process: the SDK serialises
//! and signs a request as usual, but the request comes here instead of going to the network.

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient,
    SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_runtime_api::http::StatusCode;
use aws_smithy_types::body::SdkBody;
use zenobe_api::{ApiError, Operation, Response};

use crate::Database;

impl Database {
    /// The HTTP client for an SDK client:
    /// `aws_sdk_dynamodb::Config::builder().http_client(database.http_client())`. Clients of
    /// DynamoDB Streams take it as well. It ignores signatures: code that holds the `Database` may
    /// use it.
    pub fn http_client(&self) -> SharedHttpClient {
        SharedHttpClient::new(InProcess { database: self.clone() })
    }
}

#[derive(Debug, Clone)]
struct InProcess {
    database: Database,
}

impl HttpClient for InProcess {
    /// Timeouts have no meaning without a network.
    fn http_connector(
        &self,
        _: &HttpConnectorSettings,
        _: &RuntimeComponents,
    ) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

impl HttpConnector for InProcess {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let database = self.database.clone();
        HttpConnectorFuture::new(async move {
            let response = answer(&database, &request).await?;
            let status = StatusCode::try_from(response.status)
                .map_err(|error| ConnectorError::other(error.into(), None))?;
            let mut answer = HttpResponse::new(status, SdkBody::from(response.body));
            answer.headers_mut().insert("content-type", "application/x-amz-json-1.0");
            Ok(answer)
        })
    }
}

async fn answer(database: &Database, request: &HttpRequest) -> Result<Response, ConnectorError> {
    let target = request.headers().get("x-amz-target").unwrap_or_default();
    let Some(operation) = Operation::from_target(target) else {
        return Ok(ApiError::unknown_operation().into_response());
    };
    // The SDK builds all requests of these services in memory.
    let body = request.body().bytes().ok_or_else(|| {
        ConnectorError::user("a request's body is a stream, which no operation takes".into())
    })?;
    Ok(database.handle(operation, database.namespace(), body).await)
}
