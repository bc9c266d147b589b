//! Application Auto Scaling: hands requests to [`zenobe_scaling`].

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use serde_json::json;
use zenobe_scaling::Scaling;

use super::{AwsService, Protocol, ServiceRefusal, ServiceRequest, ServiceResponse};

pub struct AutoScaling(pub Arc<Scaling>);

impl AwsService for AutoScaling {
    fn answer(&self, request: ServiceRequest) -> BoxFuture<'_, ServiceResponse> {
        Box::pin(async move {
            let ServiceRequest { operation, namespace, body, .. } = request;
            let answer = self.0.answer(&operation, &namespace, &body).await;
            response(answer.status, answer.body)
        })
    }

    fn refuse(&self, _: Protocol, refusal: &ServiceRefusal) -> ServiceResponse {
        let body = json!({"__type": refusal.code, "message": refusal.message});
        response(refusal.status, body.to_string().into_bytes())
    }
}

fn response(status: u16, body: Vec<u8>) -> ServiceResponse {
    let content_type = "application/x-amz-json-1.1";
    ServiceResponse { status, content_type, headers: Vec::new(), body: Bytes::from(body) }
}
