//! Endpoints with https.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned, crypto};
use zenobe_load::{LoadError, Target, Workload, run};
use zenobe_testing::{ScriptedReply, start_scripted_server_over};

use crate::support::small_plan;

#[test]
fn an_encrypted_endpoint_is_loaded_if_its_certificate_is_trusted() {
    let configuration = server_configuration();
    let address = start_scripted_server_over(
        |_| ScriptedReply::response(200, &"x".repeat(100_000)),
        move |stream| {
            let connection = ServerConnection::new(configuration.clone()).unwrap();
            StreamOwned::new(connection, stream)
        },
    );
    let target = |host: &str| {
        let endpoint = format!("https://{host}:{}", address.port());
        Target::new(&endpoint, "us-east-1", None).unwrap()
    };
    let mut plan = small_plan("http://127.0.0.1", Workload::YcsbA);
    for host in ["127.0.0.1", "localhost"] {
        plan.target = target(host).with_certificates(file("certificate.pem"));
        let report = run(&plan, &mut |_| ()).unwrap();
        assert_eq!((report.requests, report.error_count()), (300, 0), "{:?}", report.errors);
    }
    plan.target = target("localhost");
    let refused = run(&plan, &mut |_| ()).unwrap_err();
    assert!(refused.to_string().contains("certificate"), "{refused}");
    plan.target = target("localhost").with_certificates(file("absent.pem"));
    let refused = run(&plan, &mut |_| ()).unwrap_err();
    assert!(matches!(refused, LoadError::Security { .. }), "{refused}");
    assert!(refused.to_string().contains("absent.pem"), "{refused}");
}

/// Uses a self-signed certificate for localhost.
fn server_configuration() -> Arc<ServerConfig> {
    let certificate = CertificateDer::from_pem_file(file("certificate.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(file("key.pem")).unwrap();
    let builder = ServerConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    Arc::new(builder.with_single_cert(vec![certificate], key).unwrap())
}

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/tls").join(name)
}
