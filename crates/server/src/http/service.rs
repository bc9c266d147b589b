//! One request from head to response, in the order of DynamoDB's own front end.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::FutureExt;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use hyper::http::request;
use hyper::{Request, Response, StatusCode};
use tokio::sync::OwnedSemaphorePermit;
use tracing::field::display;
use zenobe_api::{ApiError, Exception, Operation, RequestId, is_valid_json};
use zenobe_auth::{AuthError, DYNAMODB};
use zenobe_engine::request_facts::RequestFacts;
use zenobe_engine::schema::Namespace;

use super::BodyMemory;
use super::allowed_hosts_and_origins::{CrossSitePolicy, CrossSiteRefusal};
use super::body::{BodyError, ReceivedBody};
use super::head::{self, ContentEncoding, ContentType, Route};
use super::overload::{Shed, Shedding};
use super::response::HttpAnswer;
use crate::access::{self, AccessControl};
use crate::admin;
use crate::admin::health::ServerState;
use crate::dispatch::{Circumstances, Dropped, Handler};
use crate::logging::shortened;
use crate::metrics::Metrics;
use crate::observer::{ObservedRequest, RequestHeaders, RequestObserver};
use crate::prometheus::{Exposition, MetricType};
use crate::request_id;
use crate::services::{AwsService, ServiceCall, ServiceRefusal};
use crate::shutdown::Drain;

/// Everything needed to handle a request; shared by all connections.
pub struct Service<H> {
    pub handler: H,
    pub access: AccessControl,
    /// Which host names and web pages the server accepts.
    pub cross_site: CrossSitePolicy,
    /// The response to `GET /`.
    pub root: Root,
    pub metrics: Arc<Metrics>,
    /// Sees every answered request, if there is one.
    pub observer: Option<Arc<dyn RequestObserver>>,
    /// When to refuse requests because there are too many; `None` lets them wait.
    pub shedding: Option<Shedding>,
    pub body_memory: BodyMemory,
    /// How long a client may stall in the middle of a body.
    pub stall_timeout: Duration,
    /// Whether the server is about to stop.
    pub drain: Drain,
}

/// What the root of the server returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Root {
    /// DynamoDB's health check.
    #[default]
    Health,
    /// DynamoDB Local's error. Start-up probes of test tools wait for its status.
    DynamoDbLocal,
}

/// A response, with what the log and the metrics record about it.
struct LoggedAnswer {
    answer: HttpAnswer,
    operation: Option<Operation>,
    error: Option<&'static str>,
    facts: Option<Box<RequestFacts>>,
    /// Whose tables the caller sees, once that is known.
    namespace: Option<Arc<Namespace>>,
}

impl<H: Handler> Service<H> {
    pub fn call(
        &self,
        request: Request<Incoming>,
    ) -> impl Future<Output = Result<Response<Full<Bytes>>, Dropped>> {
        request_id::generate().scope(self.respond(request))
    }

    async fn respond(&self, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Dropped> {
        let (parts, body) = request.into_parts();
        // A panic ends only its own request. What it leaves behind belongs to that request alone or
        // is behind locks that don't poison.
        let answer = AssertUnwindSafe(self.answer(&parts, body)).catch_unwind().await;
        let answer = answer.unwrap_or_else(|_| {
            self.metrics.record_panic();
            let request_id = RequestId::current().map(display);
            tracing::error!(request_id, "a request handler panicked");
            let response = ApiError::internal_server_error().into_response();
            Ok(api_answer(response, ContentType::AmzJson))
        });
        let mut answer = answer?;
        // Closing the connection makes the client connect to another server, if there is one.
        answer.close |= self.drain.is_draining();
        Ok(answer.render(&parts, self.cross_site.granted(&parts), &self.body_memory))
    }

    async fn answer(&self, parts: &request::Parts, body: Incoming) -> Result<HttpAnswer, Dropped> {
        if head::is_too_large(parts) {
            return Ok(HttpAnswer::rejection(StatusCode::BAD_REQUEST));
        }
        let route = Route::of(parts);
        // Probes call a server by whatever address it has.
        if !matches!(route, Route::Health | Route::Probe)
            && let Err(refusal) = self.cross_site.check(parts)
        {
            let close = head::has_body(&parts.headers);
            return Ok(HttpAnswer { close, ..cross_site_answer(route, &refusal) });
        }
        let answer = match route {
            Route::Api | Route::Service => return self.answer_timed(parts, body).await,
            Route::Admin => return Ok(self.answer_admin(parts, body).await),
            Route::Probe => self.answer_probe(parts).await,
            Route::Health if self.root == Root::DynamoDbLocal => HttpAnswer::dynamodb_local_root(),
            // DynamoDB sends the space at the end.
            Route::Health => HttpAnswer::text(format!(
                "healthy: dynamodb.{}.amazonaws.com ",
                self.access.region()
            )),
            Route::Metrics => self.answer_metrics(parts).await,
            Route::Preflight => HttpAnswer::preflight(&parts.headers),
            Route::Unknown => HttpAnswer::unknown_operation(),
        };
        // Nobody reads a body here, so requests after it on the connection can't be reached.
        Ok(HttpAnswer { close: head::has_body(&parts.headers), ..answer })
    }

    async fn answer_metrics(&self, parts: &request::Parts) -> HttpAnswer {
        if let Err(error) = self.access.admit_metrics(parts) {
            return admin::refuse(&error.into());
        }
        let mut out = Exposition::default();
        self.metrics.render(&self.handler.statistics(), &mut out);
        let used = self.body_memory.used_size_bytes();
        out.single("zenobe_body_memory_bytes", MetricType::Gauge, used);
        if let Some(admin) = self.handler.admin() {
            admin.render_metrics(&mut out).await;
        }
        HttpAnswer::text(out.into_text())
    }

    async fn answer_probe(&self, parts: &request::Parts) -> HttpAnswer {
        let Some(admin) = self.handler.admin() else { return HttpAnswer::unknown_operation() };
        let state = ServerState {
            is_recovering: self.handler.statistics().write_failure.is_some(),
            is_draining: self.drain.is_draining(),
        };
        admin.health.answer(&parts.method, parts.uri.path(), state).await
    }

    async fn answer_admin(&self, parts: &request::Parts, body: Incoming) -> HttpAnswer {
        let Some(admin) = self.handler.admin() else { return HttpAnswer::unknown_operation() };
        if let Err(refusal) = self.access.check_admin_head(parts) {
            return HttpAnswer { close: head::has_body(&parts.headers), ..admin::refuse(&refusal) };
        }
        let received = self.body_memory.receive(&parts.headers, body, self.stall_timeout).await;
        let body = match received {
            Ok(body) => body,
            Err(error) => return rejection(error),
        };
        match self.access.admit_admin(parts, &body.bytes) {
            Ok(namespace) => {
                let (path, query) = (parts.uri.path(), parts.uri.query().unwrap_or_default());
                admin.answer(&namespace, &parts.method, path, query, &body.bytes).await
            }
            Err(refusal) => admin::refuse(&refusal),
        }
    }

    async fn answer_timed(
        &self,
        parts: &request::Parts,
        body: Incoming,
    ) -> Result<HttpAnswer, Dropped> {
        if let Some(shedding) = &self.shedding
            && let Err(shed) = shedding.admit()
        {
            // On the heap, so that other requests don't have to make room for it.
            return Ok(Box::pin(self.shed(parts, body, shed)).await);
        }
        let operation = head::operation(&parts.headers);
        if operation.is_none()
            && let Some(call) = ServiceCall::of(parts)
        {
            return Ok(Box::pin(self.answer_service(parts, body, call)).await);
        }
        if let Err(error) = self.access.check_head(parts, DYNAMODB) {
            return Ok(self.refuse(parts, body, access::refusal(&error)).await);
        }
        let received = self.body_memory.receive(&parts.headers, body, self.stall_timeout).await;
        let mut body = match received {
            Ok(body) => body,
            Err(error) => return Ok(rejection(error)),
        };
        // Timing starts once the request has arrived: how fast clients send is not our latency.
        let started = Instant::now();
        let LoggedAnswer { mut answer, operation, error, facts, namespace } =
            self.answer_api(parts, operation, &mut body).await?;
        let elapsed = started.elapsed();
        self.metrics.record(operation, error, elapsed);
        let status = answer.status.as_u16();
        if let (Some(observer), Some(operation), Some(facts)) = (&self.observer, operation, facts) {
            observer.observe(ObservedRequest {
                request_id: answer.request_id(),
                operation,
                namespace: namespace.as_ref(),
                error,
                status,
                elapsed,
                facts: &facts,
                headers: &SentHeaders(&parts.headers),
            });
        }
        let name = operation.map_or("none", |operation| operation.name());
        // Server errors were logged where they happened.
        let request_id = RequestId::current().map(display);
        tracing::debug!(request_id, operation = name, status, error, ?elapsed, "answered");
        Ok(answer)
    }

    /// Refuses a request because there are too many.
    async fn shed(&self, parts: &request::Parts, body: Incoming, shed: Shed) -> HttpAnswer {
        self.metrics.request_shed();
        shed.wait().await;
        let error = ApiError::rate_exceeded();
        let called = ServiceCall::of(parts).and_then(|call| Some((self.service(&call)?, call)));
        let Some((service, call)) = called else { return self.refuse(parts, body, error).await };
        // Clients of other services expect errors in those services' form.
        let is_read = self.body_memory.discard(&parts.headers, body, self.stall_timeout).await;
        let refusal = ServiceRefusal {
            status: 400,
            code: error.exception().name(),
            message: error.message().unwrap_or_default().to_owned(),
        };
        HttpAnswer { close: !is_read, ..service.refuse(call.protocol, &refusal).into_answer() }
    }

    fn service(&self, call: &ServiceCall) -> Option<Arc<dyn AwsService>> {
        self.handler.services()?.find(call.name)
    }

    /// Refuses a request by its head. It gets no memory: its body is read only so that the caller
    /// reads the response.
    async fn refuse(&self, parts: &request::Parts, body: Incoming, error: ApiError) -> HttpAnswer {
        let is_read = self.body_memory.discard(&parts.headers, body, self.stall_timeout).await;
        let LoggedAnswer { answer, operation, error, .. } = refused(parts, error);
        self.metrics.record(operation, error, Duration::ZERO);
        HttpAnswer { close: !is_read, ..answer }
    }

    /// A request to another AWS service, with the time that its body takes to arrive.
    async fn answer_service(
        &self,
        parts: &request::Parts,
        body: Incoming,
        call: ServiceCall,
    ) -> HttpAnswer {
        let service = call.signed_for;
        let operation = call.operation().map(|name| shortened(name).into_owned());
        let started = Instant::now();
        let answer = self.call_service(parts, body, call).await;
        let (status, elapsed) = (answer.status.as_u16(), started.elapsed());
        self.metrics.record_service(service, status, elapsed);
        let request_id = RequestId::current().map(display);
        tracing::debug!(request_id, service, operation, status, ?elapsed, "answered");
        answer
    }

    async fn call_service(
        &self,
        parts: &request::Parts,
        body: Incoming,
        call: ServiceCall,
    ) -> HttpAnswer {
        let close = head::has_body(&parts.headers);
        let Some(service) = self.service(&call) else {
            return HttpAnswer { close, ..HttpAnswer::unknown_operation() };
        };
        let refuse = |error: &AuthError| {
            let code = access::refusal(error).exception().name();
            let refusal = ServiceRefusal { status: 403, code, message: error.to_string() };
            service.refuse(call.protocol, &refusal).into_answer()
        };
        if let Err(error) = self.access.check_head(parts, call.signed_for) {
            return HttpAnswer { close, ..refuse(&error) };
        }
        let received = self.body_memory.receive(&parts.headers, body, self.stall_timeout).await;
        let mut sent = match received {
            Ok(sent) => sent,
            Err(error) => return rejection(error),
        };
        let namespace = match self.access.admit(parts, &sent.bytes, call.signed_for) {
            Ok(namespace) => namespace,
            Err(error) => return refuse(&error),
        };
        let Some(encoding) = ContentEncoding::of(&parts.headers) else {
            return HttpAnswer::rejection(StatusCode::UNSUPPORTED_MEDIA_TYPE);
        };
        let body = match sent.unpacked(encoding).await {
            Ok(body) => body,
            Err(error) => return rejection(error),
        };
        let mut answer = HttpAnswer::new(StatusCode::OK, Bytes::new());
        let request_id = answer.request_id().to_owned();
        let request = call.with_body(namespace, body, request_id);
        let mut answered = service.answer(request).await.into_answer();
        answered.headers.extend(answer.headers);
        answered
    }

    async fn answer_api(
        &self,
        parts: &request::Parts,
        operation: Option<Operation>,
        sent: &mut ReceivedBody<'_>,
    ) -> Result<LoggedAnswer, Dropped> {
        let Some(content_type) = content_type(parts, sent.bytes.is_empty()) else {
            return Ok(LoggedAnswer::unknown_operation());
        };
        let (mut reserved, mut caller) = (None, None);
        let mut response = match self.admit(parts, sent, operation).await {
            Ok(Admitted { operation, namespace, body, reserved: memory }) => {
                reserved = memory;
                let endpoint = match operation {
                    Operation::DescribeEndpoints => head::endpoint(&parts.headers),
                    _ => None,
                };
                let as_of = head::as_of(&parts.headers);
                let circumstances = Circumstances { endpoint, as_of };
                let namespace = caller.insert(namespace);
                self.handler.handle(operation, namespace, circumstances, body).await?
            }
            Err(Refusal::Error(error)) => error.into_response(),
            Err(Refusal::Rejection(error)) => {
                let answer = rejection(error);
                return Ok(LoggedAnswer::new(answer, operation, None));
            }
        };
        let (error, facts) = (response.error, response.facts.take());
        let answer = HttpAnswer { reserved, ..api_answer(response, content_type) };
        Ok(LoggedAnswer { answer, operation, error, facts, namespace: caller })
    }

    /// The checks between the head and the operation. DynamoDB first checks that the body is JSON.
    /// The operation parses the body of a request that passes the other checks anyway, so only
    /// rejected requests are parsed here.
    ///
    /// Where signatures are verified they come before everything that takes work: they cover the
    /// bytes as sent.
    async fn admit(
        &self,
        parts: &request::Parts,
        sent: &mut ReceivedBody<'_>,
        operation: Option<Operation>,
    ) -> Result<Admitted, Refusal> {
        let admit = || self.access.admit(parts, &sent.bytes, DYNAMODB);
        let verified = self.access.verifies().then(admit);
        let verified =
            verified.transpose().map_err(|error| Refusal::Error(access::refusal(&error)))?;
        let encoding = ContentEncoding::of(&parts.headers)
            .ok_or_else(|| Refusal::Error(ApiError::internal_server_error()))?;
        let body = sent.unpacked(encoding).await.map_err(|error| match error {
            BodyError::Corrupt => Refusal::Error(ApiError::internal_server_error()),
            other => Refusal::Rejection(other),
        })?;
        let refuse = |error: ApiError| match body.is_empty() || is_valid_json(&body) {
            true => Refusal::Error(error),
            false => Refusal::Error(ApiError::serialization(None)),
        };
        let operation = operation.ok_or_else(|| refuse(ApiError::unknown_operation()))?;
        let namespace = match verified {
            Some(namespace) => namespace,
            None => self
                .access
                .admit(parts, &sent.bytes, DYNAMODB)
                .map_err(|error| refuse(access::refusal(&error)))?,
        };
        if body.is_empty() {
            return Err(Refusal::Error(ApiError::serialization(None)));
        }
        // A request that holds memory must not wait for others that do the same.
        let reserved = match sent.holds_memory() {
            true => None,
            false => self
                .body_memory
                .reserve_response(operation, self.stall_timeout)
                .await
                .map_err(Refusal::Rejection)?,
        };
        Ok(Admitted { operation, namespace, body, reserved })
    }
}

/// The content type of the response; `None` if the request has an unknown one. Without a body it
/// does not matter.
fn content_type(parts: &request::Parts, is_body_empty: bool) -> Option<ContentType> {
    let given = ContentType::of(&parts.headers);
    given.or_else(|| is_body_empty.then_some(ContentType::Json))
}

/// The response to a request whose head alone rules it out.
fn refused(parts: &request::Parts, error: ApiError) -> LoggedAnswer {
    let Some(content_type) = content_type(parts, !head::has_body(&parts.headers)) else {
        return LoggedAnswer::unknown_operation();
    };
    let response = error.into_response();
    let (operation, error) = (head::operation(&parts.headers), response.error);
    LoggedAnswer::new(api_answer(response, content_type), operation, error)
}

impl LoggedAnswer {
    fn unknown_operation() -> LoggedAnswer {
        let error = Some(Exception::UnknownOperation.name());
        LoggedAnswer::new(HttpAnswer::unknown_operation(), None, error)
    }

    /// The answer to a request that did not reach the database.
    fn new(
        answer: HttpAnswer,
        operation: Option<Operation>,
        error: Option<&'static str>,
    ) -> LoggedAnswer {
        LoggedAnswer { answer, operation, error, facts: None, namespace: None }
    }
}

struct Admitted {
    operation: Operation,
    namespace: Arc<Namespace>,
    body: Bytes,
    /// The memory for the response.
    reserved: Option<OwnedSemaphorePermit>,
}

enum Refusal {
    Error(ApiError),
    Rejection(BodyError),
}

fn api_answer(response: zenobe_api::Response, content_type: ContentType) -> HttpAnswer {
    let status = StatusCode::from_u16(response.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let content_type = Some(content_type.header_value());
    let mut answer = HttpAnswer { content_type, ..HttpAnswer::new(status, response.body) };
    if status == StatusCode::SERVICE_UNAVAILABLE {
        answer.headers.insert(RETRY_AFTER, RETRY_AFTER_SECONDS);
    }
    // A plan names tables and indexes. Existing ones have plain ASCII names; others have no plan to
    // show.
    if let Some(plan) = response.plan.and_then(|plan| HeaderValue::try_from(plan).ok()) {
        answer.headers.insert(PLAN, plan);
    }
    answer
}

/// The request has waited for the store already. By the next try the store may have another primary.
const RETRY_AFTER_SECONDS: HeaderValue = HeaderValue::from_static("1");

/// How a PartiQL statement was executed, for people.
const PLAN: HeaderName = HeaderName::from_static("x-zenobe-plan");

/// A request's headers, as observers ask for them.
#[derive(Debug)]
struct SentHeaders<'a>(&'a HeaderMap);

impl RequestHeaders for SentHeaders<'_> {
    fn get(&self, name: &str) -> Option<&[u8]> {
        self.0.get(name).map(HeaderValue::as_bytes)
    }
}

/// Callers of the API get errors in the API's format.
fn cross_site_answer(route: Route, refusal: &CrossSiteRefusal) -> HttpAnswer {
    match route {
        Route::Api => {
            let error = ApiError::new(Exception::AccessDenied, refusal.to_string());
            let answer = api_answer(error.into_response(), ContentType::AmzJson);
            HttpAnswer { status: StatusCode::FORBIDDEN, ..answer }
        }
        _ => admin::refuse(&refusal.clone().into()),
    }
}

fn rejection(error: BodyError) -> HttpAnswer {
    HttpAnswer::rejection(match error {
        BodyError::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        BodyError::Stalled => StatusCode::REQUEST_TIMEOUT,
        BodyError::NoMemory => StatusCode::SERVICE_UNAVAILABLE,
        BodyError::Broken | BodyError::Corrupt => StatusCode::BAD_REQUEST,
    })
}
