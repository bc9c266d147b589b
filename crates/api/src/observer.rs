//! Who watches requests: per-table metrics, a log of slow requests, sketches of hot keys, traces.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use zenobe_engine::request_facts::RequestFacts;
use zenobe_engine::schema::Namespace;

use crate::Operation;

/// A request that has been answered.
#[derive(Debug, Clone, Copy)]
pub struct ObservedRequest<'a> {
    /// As in `x-amzn-RequestId`.
    pub request_id: &'a str,
    pub operation: Operation,
    /// Whose tables the caller sees; `None` if the request was refused before that was known.
    pub namespace: Option<&'a Arc<Namespace>>,
    /// The exception's name, if it failed.
    pub error: Option<&'static str>,
    /// The status of the response.
    pub status: u16,
    /// From the whole request's arrival to the answer.
    pub elapsed: Duration,
    pub facts: &'a RequestFacts,
    pub headers: &'a dyn RequestHeaders,
}

/// The headers of a request. Few observers look at them, so they are found only when asked for.
pub trait RequestHeaders: fmt::Debug {
    /// The first header of this name, which is in lower case.
    fn get(&self, name: &str) -> Option<&[u8]>;
}

/// No headers.
impl RequestHeaders for () {
    fn get(&self, _: &str) -> Option<&[u8]> {
        None
    }
}

impl<'a> ObservedRequest<'a> {
    /// The id of the access key that the request names. Whether the caller has the key is not said:
    /// servers that verify signatures have done so before.
    pub fn access_key(&self) -> Option<&'a str> {
        let header = self.header("authorization")?;
        let (_, credential) = header.split_once("Credential=")?;
        credential.split(['/', ',', ' ']).next().filter(|key| !key.is_empty())
    }

    /// The header of this name, if it is text.
    pub fn header(&self, name: &str) -> Option<&'a str> {
        str::from_utf8(self.headers.get(name)?).ok()
    }
}

/// Sees every request of the API that reached the database. Called on the thread that serves the
/// request, so it must be quick and must not block; what it keeps must be bounded.
pub trait RequestObserver: Send + Sync {
    fn observe(&self, request: ObservedRequest<'_>);
}

/// Several observers, one after the other.
#[derive(Clone, Default)]
pub struct Observers(pub Vec<Arc<dyn RequestObserver>>);

impl RequestObserver for Observers {
    fn observe(&self, request: ObservedRequest<'_>) {
        self.0.iter().for_each(|observer| observer.observe(request));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[derive(Default)]
    struct Seen(Mutex<Vec<Option<String>>>);

    impl RequestObserver for Seen {
        fn observe(&self, request: ObservedRequest<'_>) {
            self.0.lock().unwrap().push(request.access_key().map(str::to_owned));
        }
    }

    #[derive(Debug)]
    struct Authorization(Option<&'static str>);

    impl RequestHeaders for Authorization {
        fn get(&self, name: &str) -> Option<&[u8]> {
            self.0.filter(|_| name == "authorization").map(str::as_bytes)
        }
    }

    #[test]
    fn every_observer_is_told() {
        let seen = [Arc::new(Seen::default()), Arc::new(Seen::default())];
        let observers = seen.iter().map(|seen| seen.clone() as Arc<dyn RequestObserver>);
        let observers = Observers(observers.collect());
        let signed = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20260101/eu-west-1/dynamodb/x, a=b";
        for header in [Some(signed), Some("Basic x"), Some("Credential=/x"), None] {
            observers.observe(ObservedRequest {
                request_id: "1",
                operation: Operation::GetItem,
                namespace: None,
                error: None,
                status: 200,
                elapsed: Duration::ZERO,
                facts: &RequestFacts::default(),
                headers: &Authorization(header),
            });
        }
        for seen in seen {
            let expected = [Some("AKIDEXAMPLE".to_owned()), None, None, None];
            assert_eq!(*seen.0.lock().unwrap(), expected);
        }
    }
}
