//! The id of a request, under which a client's error is found in the logs and recordings of a server.

use std::fmt;

/// As long as AWS's.
pub const REQUEST_ID_LENGTH: usize = 52;

tokio::task_local! {
    static CURRENT: RequestId;
}

/// Plain ASCII.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RequestId([u8; REQUEST_ID_LENGTH]);

impl RequestId {
    /// `None` unless all are visible ASCII characters.
    pub fn new(characters: [u8; REQUEST_ID_LENGTH]) -> Option<RequestId> {
        characters.iter().all(u8::is_ascii_graphic).then_some(RequestId(characters))
    }

    /// Runs a request under this id: whatever it logs has it.
    pub fn scope<F: Future>(self, request: F) -> impl Future<Output = F::Output> {
        CURRENT.scope(self, request)
    }

    /// The id of the request that runs now; `None` outside of requests.
    pub fn current() -> Option<RequestId> {
        CURRENT.try_with(|id| *id).ok()
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub fn as_str(&self) -> &str {
        str::from_utf8(&self.0).expect("an id is plain ASCII")
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_request_has_its_own_id() {
        let [one, other] = [b'1', b'2'].map(|digit| RequestId::new([digit; 52]).unwrap());
        let seen = async || {
            tokio::task::yield_now().await;
            RequestId::current()
        };
        assert_eq!(seen().await, None);
        let both = futures_util::future::join(one.scope(seen()), other.scope(seen())).await;
        assert_eq!(both, (Some(one), Some(other)));
        assert_eq!(one.to_string(), "1".repeat(52));
        assert_eq!(RequestId::new([b' '; 52]), None);
    }
}
