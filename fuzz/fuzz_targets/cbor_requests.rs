//! CloudWatch's requests in CBOR: an operation's number, then a body. Bytes that decode survive being
//! encoded again, and every request gets an answer that is CBOR and never an internal error.

#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use tokio::runtime::{Builder, Runtime};
use zenobe_engine::clock::ManualClock;
use zenobe_engine::schema::Namespace;
use zenobe_engine::{Engine, EngineOptions};
use zenobe_monitoring::cloudwatch::wire::{Protocol, cbor};
use zenobe_monitoring::cloudwatch::{CloudWatch, OPERATIONS, Request};
use zenobe_store::memory::MemoryStore;

thread_local! {
    static RUNTIME: Runtime = Builder::new_current_thread().build().expect("a runtime can be built");
}

fuzz_target!(|input: &[u8]| RUNTIME.with(|runtime| runtime.block_on(answer(input))));

async fn answer(input: &[u8]) {
    let Some((number, body)) = input.split_first() else { return };
    if let Ok(value) = cbor::decode(body) {
        let encoded = cbor::encode(&value);
        let again = cbor::decode(&encoded).expect("what was encoded decodes");
        // Bytes, because a NaN is not equal to itself.
        assert_eq!(cbor::encode(&again), encoded);
    }
    let operation = OPERATIONS[usize::from(*number) % OPERATIONS.len()];
    let options = EngineOptions {
        clock: Arc::new(ManualClock::new(1_700_000_000_000)),
        random_seed: Some(1),
        ..EngineOptions::default()
    };
    let engine = Engine::open(Arc::new(MemoryStore::new()), options).await.expect("it opens");
    let namespace = Arc::new(Namespace { account: "1".into(), region: "us-east-1".into() });
    let cloudwatch = CloudWatch::new(engine, 15, None, None);
    let request = Request {
        protocol: Protocol::Cbor,
        operation,
        namespace: &namespace,
        body,
        request_id: "1",
    };
    let answer = cloudwatch.answer(request).await;
    assert!(answer.status < 500, "{operation}: {answer:?}");
    assert!(cbor::decode(&answer.body).is_ok(), "{operation}: {answer:?}");
}
