//! AWS services besides DynamoDB while tests control the server: like any request, theirs hold the database that they
//! are answered from.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::TestControl;
use crate::services::{
    AwsService, Protocol, ServiceName, ServiceRefusal, ServiceRequest, ServiceResponse, Services,
};

pub fn controlled(control: &Arc<TestControl>, services: &Services) -> Services {
    let wrap = |name: ServiceName| {
        let known = services.find(name)?;
        let control = Arc::clone(control);
        Some(Arc::new(ControlledService { control, name, known }) as Arc<dyn AwsService>)
    };
    Services {
        cloudwatch: wrap(ServiceName::CloudWatch),
        auto_scaling: wrap(ServiceName::AutoScaling),
    }
}

/// A service of whatever database is in place when a request has arrived.
struct ControlledService {
    control: Arc<TestControl>,
    name: ServiceName,
    /// That of the database that was in place before the request had arrived.
    known: Arc<dyn AwsService>,
}

impl AwsService for ControlledService {
    fn answer(&self, request: ServiceRequest) -> BoxFuture<'_, ServiceResponse> {
        async move {
            let instance = self.control.hold().await;
            // All databases of a server have the same services.
            let service = instance.handler().services.find(self.name);
            service.as_ref().unwrap_or(&self.known).answer(request).await
        }
        .boxed()
    }

    fn refuse(&self, protocol: Protocol, refusal: &ServiceRefusal) -> ServiceResponse {
        self.known.refuse(protocol, refusal)
    }
}
