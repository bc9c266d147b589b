//! Signed requests to a running server.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use clap::Args;
use futures_util::future::BoxFuture;
use hyper::Method;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use zenobe_api::Operation;
use zenobe_auth::{Credential, Signer, Timestamp};

use super::CommandError;
use crate::admin;
use crate::outbound::{self, Answered, OutboundError, Outgoing, Url};
use crate::triggers::source::{SourceError, StreamsApi};

const TIMEOUT: Duration = Duration::from_secs(30);
const DATE: HeaderName = HeaderName::from_static("x-amz-date");
const TARGET: HeaderName = HeaderName::from_static("x-amz-target");
const TOKEN: HeaderName = HeaderName::from_static("x-amz-security-token");

#[derive(Debug, Clone, Args)]
pub struct ConnectionArguments {
    /// Address of the server
    #[arg(
        long,
        env = "ZENOBE_ENDPOINT",
        default_value = "http://127.0.0.1:8000",
        value_name = "URL"
    )]
    pub(super) endpoint: String,
    /// Region to sign requests for; access keys come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY
    #[arg(long, env = "AWS_REGION", default_value = "us-east-1", value_name = "REGION")]
    pub(super) region: String,
}

pub struct ServerConnection {
    url: Url,
    region: String,
    credential: Credential,
}

impl ServerConnection {
    pub fn new(arguments: &ConnectionArguments) -> Result<ServerConnection, CommandError> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        // A server on loopback accepts any keys, so they need not be real.
        let key = |name: &str| variable(name).unwrap_or_else(|| "zenobe".to_owned());
        Ok(ServerConnection {
            url: arguments.endpoint.parse()?,
            region: arguments.region.clone(),
            credential: Credential {
                access_key: key("AWS_ACCESS_KEY_ID"),
                secret_key: key("AWS_SECRET_ACCESS_KEY"),
                session_token: variable("AWS_SESSION_TOKEN"),
            },
        })
    }

    /// Sends an admin request and returns its JSON response. The path may have a query.
    pub async fn admin(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, CommandError> {
        let body = body.map_or_else(String::new, Value::to_string);
        let path = format!("{}{path}", admin::PATH);
        let answered = self.send(method, path, HeaderMap::new(), body).await?;
        let answer: Value = serde_json::from_slice(&answered.body).unwrap_or(Value::Null);
        match (answered.is_success(), answer["error"].as_str()) {
            (true, _) => Ok(answer),
            (false, Some(message)) => Err(CommandError::Refused(message.to_owned())),
            (false, None) => {
                let (url, status) = (&self.url, answered.status);
                Err(CommandError::Refused(format!("{url} answered {status}; is it Zenobe?")))
            }
        }
    }

    /// Calls an operation with a body of JSON, and returns whatever comes back.
    pub async fn call(
        &self,
        operation: Operation,
        body: String,
    ) -> Result<Answered, OutboundError> {
        let target = HeaderValue::from_static(operation.target());
        let headers = HeaderMap::from_iter([(TARGET, target)]);
        self.send(Method::POST, "/".into(), headers, body).await
    }

    async fn send(
        &self,
        method: Method,
        path: String,
        mut headers: HeaderMap,
        body: String,
    ) -> Result<Answered, OutboundError> {
        let unsendable =
            |_| OutboundError::Unsendable { authority: self.url.authority().to_owned() };
        let date = Timestamp::from_system_time(SystemTime::now()).to_string();
        let host = HeaderValue::from_str(self.url.authority()).map_err(unsendable)?;
        headers.insert(HOST, host);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-amz-json-1.0"));
        headers.insert(DATE, HeaderValue::from_str(&date).map_err(unsendable)?);
        if let Some(token) = &self.credential.session_token {
            headers.insert(TOKEN, HeaderValue::from_str(token).map_err(unsendable)?);
        }
        let signer = Signer {
            credential: &self.credential,
            region: &self.region,
            service: "dynamodb",
            date: &date,
        };
        let (plain, query) = path.split_once('?').unwrap_or((&path, ""));
        let authorization =
            signer.authorization(method.as_str(), plain, query, &headers, body.as_bytes());
        let authorization = HeaderValue::from_str(&authorization).map_err(unsendable)?;
        headers.insert(AUTHORIZATION, authorization);
        let outgoing = Outgoing { method, path, headers, body: Bytes::from(body) };
        outbound::send(&self.url, outgoing, TIMEOUT).await
    }
}

impl StreamsApi for ServerConnection {
    fn call(&self, operation: Operation, body: Value) -> BoxFuture<'_, Result<Value, SourceError>> {
        Box::pin(async move {
            let sent = ServerConnection::call(self, operation, body.to_string()).await;
            let answered = sent.map_err(|error| SourceError::Failed(error.to_string()))?;
            let answer: Value = serde_json::from_slice(&answered.body).unwrap_or(Value::Null);
            if answered.is_success() {
                return Ok(answer);
            }
            let kind = answer["__type"].as_str().unwrap_or("an unknown error");
            let name = kind.rsplit('#').next().unwrap_or(kind);
            Err(SourceError::new(name, answer["message"].as_str().unwrap_or_default()))
        })
    }
}
