//! AWS services besides DynamoDB, on the same port: those that DynamoDB's clients call about its
//! tables. A request's head says which service it is for; the HTTP layer checks its signature and
//! hands it over.

mod auto_scaling;
mod cloudwatch;
mod insights;
mod policy_alarms;

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use hyper::StatusCode;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::http::request;
use zenobe_engine::schema::Namespace;

use crate::http::response::HttpAnswer;

pub use auto_scaling::AutoScaling;
pub use cloudwatch::{CloudWatchService, render_metrics};
pub use insights::HotKeyReports;
pub use policy_alarms::ScalingAlarms;
pub use zenobe_monitoring::cloudwatch::wire::Protocol;

pub struct ServiceRequest {
    pub protocol: Protocol,
    /// Whatever the client named; empty if it named nothing.
    pub operation: String,
    pub namespace: Arc<Namespace>,
    pub body: Bytes,
    pub request_id: String,
}

#[derive(Debug)]
pub struct ServiceResponse {
    pub status: u16,
    pub content_type: &'static str,
    pub headers: Vec<(HeaderName, HeaderValue)>,
    pub body: Bytes,
}

impl ServiceResponse {
    pub fn into_answer(self) -> HttpAnswer {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let content_type = Some(HeaderValue::from_static(self.content_type));
        let mut answer = HttpAnswer { content_type, ..HttpAnswer::new(status, self.body) };
        answer.headers.extend(self.headers);
        answer
    }
}

/// Why a request does not reach its service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceRefusal {
    pub status: u16,
    pub code: &'static str,
    pub message: String,
}

pub trait AwsService: Send + Sync {
    fn answer(&self, request: ServiceRequest) -> BoxFuture<'_, ServiceResponse>;

    /// Renders a refusal as the service renders its own errors.
    fn refuse(&self, protocol: Protocol, refusal: &ServiceRefusal) -> ServiceResponse;
}

/// The services of a database.
#[derive(Default)]
pub struct Services {
    pub cloudwatch: Option<Arc<dyn AwsService>>,
    pub auto_scaling: Option<Arc<dyn AwsService>>,
}

impl Services {
    pub fn find(&self, name: ServiceName) -> Option<Arc<dyn AwsService>> {
        match name {
            ServiceName::CloudWatch => self.cloudwatch.clone(),
            ServiceName::AutoScaling => self.auto_scaling.clone(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServiceName {
    CloudWatch,
    AutoScaling,
}

/// A call of a service, as far as the request's head describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceCall {
    pub name: ServiceName,
    pub protocol: Protocol,
    /// The name of the service in signatures.
    pub signed_for: &'static str,
    /// `None` if only the body names it.
    operation: Option<String>,
}

const CLOUDWATCH_TARGET: &str = "GraniteServiceVersion20100801";
const AUTO_SCALING_TARGET: &str = "AnyScaleFrontendService";
static TARGET: HeaderName = HeaderName::from_static("x-amz-target");

impl ServiceCall {
    /// The call that a request makes, unless it is one of DynamoDB's.
    pub fn of(parts: &request::Parts) -> Option<ServiceCall> {
        if let Some(path) = parts.uri.path().strip_prefix("/service/") {
            let (service, operation) = path.split_once("/operation/")?;
            return (service == CLOUDWATCH_TARGET)
                .then(|| ServiceCall::cloudwatch(Protocol::Cbor, Some(operation)));
        }
        if let Some(target) = parts.headers.get(&TARGET).and_then(|target| target.to_str().ok()) {
            let (service, operation) = target.split_once('.')?;
            return match service {
                CLOUDWATCH_TARGET => Some(ServiceCall::cloudwatch(Protocol::Json, Some(operation))),
                AUTO_SCALING_TARGET => Some(ServiceCall {
                    name: ServiceName::AutoScaling,
                    protocol: Protocol::Json,
                    signed_for: "application-autoscaling",
                    operation: Some(operation.to_owned()),
                }),
                _ => None,
            };
        }
        is_form(&parts.headers).then(|| ServiceCall::cloudwatch(Protocol::Query, None))
    }

    fn cloudwatch(protocol: Protocol, operation: Option<&str>) -> ServiceCall {
        ServiceCall {
            name: ServiceName::CloudWatch,
            protocol,
            signed_for: "monitoring",
            operation: operation.map(str::to_owned),
        }
    }

    /// The operation, if the head names it.
    pub fn operation(&self) -> Option<&str> {
        self.operation.as_deref()
    }

    pub fn with_body(
        self,
        namespace: Arc<Namespace>,
        body: Bytes,
        request_id: String,
    ) -> ServiceRequest {
        let operation = self.operation.unwrap_or_else(|| action(&body).to_owned());
        ServiceRequest { protocol: self.protocol, operation, namespace, body, request_id }
    }
}

fn is_form(headers: &HeaderMap) -> bool {
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    content_type.is_some_and(|value| value.starts_with("application/x-www-form-urlencoded"))
}

/// The operation that a form names. Names of operations need no escapes.
fn action(form: &[u8]) -> &str {
    let fields = form.split(|byte| *byte == b'&');
    let action = fields.filter_map(|field| field.strip_prefix(b"Action=")).next();
    action.and_then(|action| str::from_utf8(action).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(
        path: &str,
        headers: &[(&str, &str)],
    ) -> Option<(ServiceName, Protocol, Option<String>)> {
        let mut request = hyper::Request::post(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        ServiceCall::of(&parts).map(|call| (call.name, call.protocol, call.operation))
    }

    #[test]
    fn heads_name_services_and_operations() {
        use ServiceName::{AutoScaling, CloudWatch};
        let target = "x-amz-target";
        let some = |text: &str| Some(text.to_owned());
        let path = "/service/GraniteServiceVersion20100801/operation/ListMetrics";
        assert_eq!(call(path, &[]), Some((CloudWatch, Protocol::Cbor, some("ListMetrics"))));
        let json = [(target, "GraniteServiceVersion20100801.GetMetricData")];
        assert_eq!(call("/", &json), Some((CloudWatch, Protocol::Json, some("GetMetricData"))));
        let scaling = [(target, "AnyScaleFrontendService.PutScalingPolicy")];
        let expected = (AutoScaling, Protocol::Json, some("PutScalingPolicy"));
        assert_eq!(call("/", &scaling), Some(expected));
        let form = [("content-type", "application/x-www-form-urlencoded; charset=utf-8")];
        assert_eq!(call("/", &form), Some((CloudWatch, Protocol::Query, None)));
        assert_eq!(call("/", &[(target, "DynamoDB_20120810.Nothing")]), None);
        assert_eq!(call("/", &[("content-type", "application/json")]), None);
        assert_eq!(call("/service/Other/operation/X", &[]), None);
        assert_eq!(call("/service/GraniteServiceVersion20100801", &[]), None);
    }

    #[test]
    fn forms_name_their_action() {
        assert_eq!(action(b"Version=2010-08-01&Action=ListMetrics&x=y"), "ListMetrics");
        assert_eq!(action(b"NoAction=1"), "");
        assert_eq!(action(b"Action=\xff"), "");
    }
}
