//! CloudWatch, behind HTTP.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use hyper::header::{HeaderName, HeaderValue};
use zenobe_monitoring::cloudwatch::wire::{self, CloudWatchResponse};
use zenobe_monitoring::cloudwatch::{CloudWatch, Request};

use super::{AwsService, Protocol, ServiceRefusal, ServiceRequest, ServiceResponse};
use crate::prometheus::Exposition;
use crate::prometheus::MetricType::Counter;

pub struct CloudWatchService(pub Arc<CloudWatch>);

impl AwsService for CloudWatchService {
    fn answer(&self, request: ServiceRequest) -> BoxFuture<'_, ServiceResponse> {
        async move {
            let ServiceRequest { protocol, operation, namespace, body, request_id } = &request;
            let request = Request { protocol: *protocol, operation, namespace, body, request_id };
            response(self.0.answer(request).await)
        }
        .boxed()
    }

    fn refuse(&self, protocol: Protocol, refusal: &ServiceRefusal) -> ServiceResponse {
        let ServiceRefusal { status, code, message } = refusal;
        response(wire::refuse(protocol, *status, code, message))
    }
}

pub fn render_metrics(cloudwatch: &CloudWatch, out: &mut Exposition) {
    let counts = cloudwatch.counts();
    let mut transitions = out.metric("zenobe_alarm_transitions_total", Counter);
    for (state, count) in counts.alarm_transitions {
        transitions.sample(&[("state", state)], count);
    }
    let skipped = counts.alarm_actions_skipped;
    out.single("zenobe_alarm_actions_skipped_total", Counter, skipped);
    out.single("zenobe_metrics_dropped_points_total", Counter, counts.dropped_points);
}

fn response(answer: CloudWatchResponse) -> ServiceResponse {
    let CloudWatchResponse { status, content_type, headers, body } = answer;
    let header = |(name, value): (&'static str, String)| {
        Some((HeaderName::from_static(name), HeaderValue::from_str(&value).ok()?))
    };
    let headers = headers.into_iter().filter_map(header).collect();
    ServiceResponse { status, content_type, headers, body: body.into() }
}
