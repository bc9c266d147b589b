//! Encrypted connections to the store, through a server that ends TLS as PostgreSQL does.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use zenobe_store::conformance::block_on;
use zenobe_store_postgres::{Options, PostgresStore};
use zenobe_testing::Postgres;

use crate::support::{Database, get, increment, number};

/// What a client sends first to ask for TLS: the length, and a number that is no protocol version.
const TLS_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/tls").join(name)
}

/// Ends TLS in front of the shared PostgreSQL, with a certificate for `localhost` by the authority in `authority.pem`.
struct TlsServer {
    port: u16,
    _runtime: Runtime,
}

impl TlsServer {
    fn start() -> TlsServer {
        let certificates = CertificateDer::pem_file_iter(file("server.pem")).unwrap();
        let certificates = certificates.collect::<Result<_, _>>().unwrap();
        let key = PrivateKeyDer::from_pem_file(file("server.key")).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(certificates, key)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let runtime = Runtime::new().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let port = listener.local_addr().unwrap().port();
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(pass_on(acceptor.clone(), stream));
            }
        });
        TlsServer { port, _runtime: runtime }
    }

    /// The URL of a database through this server, by a host name and with these settings.
    fn url(&self, database: &Database, host: &str, settings: &str) -> String {
        let direct = format!("127.0.0.1:{}", Postgres::shared().port);
        let url = database.url.replace(&direct, &format!("{host}:{}", self.port));
        assert_ne!(url, database.url);
        url.replace("sslmode=disable", settings)
    }
}

/// Refuses whoever does not ask for TLS by closing the connection.
async fn pass_on(acceptor: TlsAcceptor, mut stream: TcpStream) {
    let mut request = [0; TLS_REQUEST.len()];
    if stream.read_exact(&mut request).await.is_err() || request != TLS_REQUEST {
        return;
    }
    stream.write_all(b"S").await.unwrap();
    let Ok(mut client) = acceptor.accept(stream).await else { return };
    let mut server = TcpStream::connect(("127.0.0.1", Postgres::shared().port)).await.unwrap();
    let _ended = copy_bidirectional(&mut client, &mut server).await;
}

fn verified_by(authority: &str) -> String {
    let path = file(authority).display().to_string().replace('/', "%2F");
    format!("sslmode=verify-full&sslrootcert={path}")
}

#[test]
fn writes_and_reads_are_encrypted() {
    let (database, server) = (Database::new(Options::default()), TlsServer::start());
    for settings in ["sslmode=require".to_owned(), verified_by("authority.pem")] {
        let url = server.url(&database, "localhost", &settings);
        let store = block_on(PostgresStore::open(&url, Options::default())).expect("it opens");
        increment(&store, "k").expect("the write commits");
    }
    assert_eq!(number(get(&database.store(), b"k").as_ref()), 2);
}

#[test]
fn certificates_of_others_are_refused() {
    let (database, server) = (Database::new(Options::default()), TlsServer::start());
    let refusal = |host: &str, settings: &str| {
        let options = Options { patience: Duration::from_secs(2), ..Options::default() };
        let url = server.url(&database, host, settings);
        block_on(PostgresStore::open(&url, options)).err().expect("it is refused").to_string()
    };
    // The certificate is for another name.
    let message = refusal("127.0.0.1", &verified_by("authority.pem"));
    assert!(message.contains("certificate"), "{message}");
    // No public authority has signed it.
    let message = refusal("localhost", "sslmode=verify-full");
    assert!(message.contains("certificate"), "{message}");
    // A file without certificates would leave nobody to trust.
    let message = refusal("localhost", &verified_by("server.key"));
    assert!(message.contains("server.key") && message.contains("there are none"), "{message}");
}
