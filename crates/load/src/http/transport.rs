//! A plain or an encrypted byte stream.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto};

pub enum Transport {
    Plain(TcpStream),
    Secure(Box<TlsStream<TcpStream>>),
}

/// The TLS configuration, shared by all streams of a run.
#[derive(Clone)]
pub struct Security {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl Security {
    /// Trusts Mozilla's roots, and the certificates of the PEM file if there is one.
    pub fn new(host: &str, certificates: Option<&Path>) -> io::Result<Security> {
        let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        if let Some(file) = certificates {
            let named = |error| io::Error::other(format!("{}: {error}", file.display()));
            for certificate in CertificateDer::pem_file_iter(file).map_err(named)? {
                roots.add(certificate.map_err(named)?).map_err(io::Error::other)?;
            }
        }
        let provider = Arc::new(crypto::ring::default_provider());
        let configuration = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        Ok(Security { connector: TlsConnector::from(Arc::new(configuration)), name })
    }
}

impl Transport {
    pub async fn open(address: SocketAddr, security: Option<&Security>) -> io::Result<Transport> {
        let plain = TcpStream::connect(address).await?;
        plain.set_nodelay(true)?;
        let Some(Security { connector, name }) = security else {
            return Ok(Transport::Plain(plain));
        };
        let secure = connector.connect(name.clone(), plain).await?;
        Ok(Transport::Secure(Box::new(secure)))
    }

    #[inline]
    pub async fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Transport::Plain(stream) => stream.write_all(bytes).await,
            Transport::Secure(stream) => {
                stream.write_all(bytes).await?;
                stream.flush().await
            }
        }
    }

    /// Appends what has arrived. 0 means that the peer has closed.
    #[inline]
    pub async fn read(&mut self, input: &mut Vec<u8>) -> io::Result<usize> {
        match self {
            Transport::Plain(stream) => stream.read_buf(input).await,
            Transport::Secure(stream) => stream.read_buf(input).await,
        }
    }
}
