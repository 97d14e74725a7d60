//! NBD over TLS: a connection that wraps an [`NbdConnection`] and encrypts its bytes.
//!
//! The client begins without encryption, requests TLS (`NBD_OPT_STARTTLS`) and negotiates again inside TLS. Before
//! TLS, nothing is revealed to the client, and everything it negotiated is discarded. rustls provides TLS 1.2 and 1.3
//! and has no access to the socket. Certificates are in a folder under the names that nbdkit, qemu and libnbd use. Not
//! supported: pre-shared keys (PSK), certificates chosen by server name, revocation. Source: the NBD project's
//! `doc/proto.md`, "TLS"; the file names are those of nbdkit-tls(1).

use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection};
use text::problem::Problems;

use super::NbdConnection;
use crate::outbox::Outbox;
use crate::port::{ConnectionEnd, Notice, Port};
use crate::served::Reply;
use crate::stream::Connection;

/// Bytes that are encrypted at once.
const PIECE: usize = 64 << 10;

/// The server's certificate, and whether clients need one.
#[derive(Clone, Debug)]
pub struct Credentials(Arc<ServerConfig>);

impl Credentials {
    /// Reads `server-cert.pem` and `server-key.pem` in a folder. With `verify_peer`, clients need a certificate signed
    /// by those in `ca-cert.pem`.
    ///
    /// # Errors
    /// The problems of each file.
    pub fn read(folder: &Path, verify_peer: bool) -> Result<Credentials, Problems> {
        let mut problems = Problems::default();
        let mut file = |name: &str, what: Result<Vec<CertificateDer<'static>>, String>| match what {
            Ok(found) => found,
            Err(error) => {
                let path = folder.join(name).display().to_string();
                problems.0.extend(Problems::whole(path, error).0);
                Vec::new()
            }
        };
        let chain = file("server-cert.pem", certificates(folder, "server-cert.pem"));
        let key = PrivateKeyDer::from_pem_file(folder.join("server-key.pem"));
        let key = key.map_err(|error| file("server-key.pem", Err(format!("no key: {error}"))));
        let authorities = if verify_peer {
            Some(file("ca-cert.pem", certificates(folder, "ca-cert.pem")))
        } else {
            None
        };
        problems.or(())?;
        let whole =
            |what: String| Problems::whole(folder.display().to_string(), format!("TLS: {what}"));
        // A key that cannot be read is among the problems.
        let key = key.map_err(|_| whole(String::from("no key")))?;
        let configured = configuration(chain, key, authorities);
        configured
            .map(|it| Credentials(Arc::new(it)))
            .map_err(whole)
    }
}

/// Reads the certificates of a file; at least one is required.
fn certificates(folder: &Path, name: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let found: Result<Vec<_>, _> =
        CertificateDer::pem_file_iter(folder.join(name)).and_then(Iterator::collect);
    match found {
        Ok(found) if found.is_empty() => Err(String::from("there is no certificate in it")),
        Ok(found) => Ok(found),
        Err(error) => Err(format!("no certificate: {error}")),
    }
}

fn configuration(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    authorities: Option<Vec<CertificateDer<'static>>>,
) -> Result<ServerConfig, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let builder = match authorities {
        None => builder.with_no_client_auth(),
        Some(authorities) => {
            let mut roots = RootCertStore::empty();
            for authority in authorities {
                roots
                    .add(authority)
                    .map_err(|error| format!("ca-cert.pem: {error}"))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                .build()
                .map_err(|error| format!("ca-cert.pem: {error}"))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    builder
        .with_single_cert(chain, key)
        .map_err(|error| format!("server-cert.pem and server-key.pem: {error}"))
}

/// A connection of a client that must use TLS.
#[derive(Debug)]
pub struct TlsConnection {
    inner: NbdConnection,
    credentials: Credentials,
    /// The TLS session, after the client has begun.
    session: Option<Box<ServerConnection>>,
    /// Output of the inner connection that is not encrypted yet.
    clear: Outbox,
    /// Decrypted input that the inner connection has not taken yet.
    left: Vec<u8>,
}

impl TlsConnection {
    /// Returns a connection with these exports, one for each drive in order.
    pub fn new(names: Vec<String>, credentials: &Credentials) -> TlsConnection {
        TlsConnection {
            inner: NbdConnection::awaiting_tls(names),
            credentials: credentials.clone(),
            session: None,
            clear: Outbox::default(),
            left: Vec::new(),
        }
    }

    fn begin(&mut self) -> Result<(), ConnectionEnd> {
        let config = Arc::clone(&self.credentials.0);
        let mut session = ServerConnection::new(config)
            .map_err(|error| ConnectionEnd::Failed(error.to_string()))?;
        // The connection passes pieces of bytes to the session and takes the result at once, so no limit is needed.
        session.set_buffer_limit(None);
        self.session = Some(Box::new(session));
        Ok(())
    }

    /// Processes records until they end, or there is no space for their requests.
    fn records(&mut self, bytes: &[u8], port: &mut Port<'_>) -> Result<usize, ConnectionEnd> {
        let mut rest = bytes;
        loop {
            self.hand_over(port)?;
            let Some(session) = &mut self.session else {
                return Ok(0);
            };
            if rest.is_empty() || port.refused() || !port.room() {
                return Ok(bytes.len() - rest.len());
            }
            let broke =
                |error: &dyn std::fmt::Display| ConnectionEnd::broke(format!("TLS: {error}"));
            if session.read_tls(&mut rest).map_err(|error| broke(&error))? == 0 {
                return Err(ConnectionEnd::broke("TLS: an incomplete record"));
            }
            let state = session
                .process_new_packets()
                .map_err(|error| broke(&error))?;
            let kept = self.left.len();
            self.left.resize(kept + state.plaintext_bytes_to_read(), 0);
            session
                .reader()
                .read_exact(&mut self.left[kept..])
                .map_err(|error| broke(&error))?;
            if state.peer_has_closed() {
                self.hand_over(port)?;
                return Err(ConnectionEnd::Left);
            }
        }
    }

    /// Passes decrypted bytes to the inner connection.
    fn hand_over(&mut self, port: &mut Port<'_>) -> Result<(), ConnectionEnd> {
        if !self.left.is_empty() {
            let used = self.inner.input(&self.left, &mut self.clear, port)?;
            self.left.drain(..used);
        }
        Ok(())
    }

    /// Sends TLS's closing message if `result` ends the connection.
    fn closing<T>(
        &mut self,
        result: Result<T, ConnectionEnd>,
        out: &mut Outbox,
    ) -> Result<T, ConnectionEnd> {
        if result.is_err()
            && let Some(session) = &mut self.session
        {
            encrypt(session, &mut self.clear, out);
            session.send_close_notify();
        }
        self.sending(out);
        result
    }

    /// Returns the inner connection and its output buffer.
    fn mouth<'a>(&'a mut self, out: &'a mut Outbox) -> (&'a mut NbdConnection, &'a mut Outbox) {
        match self.session {
            None => (&mut self.inner, out),
            Some(_) => (&mut self.inner, &mut self.clear),
        }
    }
}

/// Moves plain output to `out`, encrypted, together with TLS's own messages.
fn encrypt(session: &mut ServerConnection, clear: &mut Outbox, out: &mut Outbox) {
    loop {
        let piece = clear.unsent();
        let piece = &piece[..piece.len().min(PIECE)];
        // Neither can fail: there is no limit, and memory accepts everything.
        let taken = session.writer().write(piece).unwrap_or(0);
        while session.wants_write() && session.write_tls(&mut OutboxWriter(out)).is_ok() {}
        clear.sent(taken);
        if taken == 0 || clear.is_empty() {
            return;
        }
    }
}

/// Writes to an outbox.
struct OutboxWriter<'a>(&'a mut Outbox);

impl Write for OutboxWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.push(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Connection for TlsConnection {
    fn open(&mut self, out: &mut Outbox, port: &mut Port<'_>) -> Result<(), ConnectionEnd> {
        self.inner.open(out, port)
    }

    fn input(
        &mut self,
        bytes: &[u8],
        out: &mut Outbox,
        port: &mut Port<'_>,
    ) -> Result<usize, ConnectionEnd> {
        let mut used = 0;
        if self.session.is_none() {
            used = self.inner.input(bytes, out, port)?;
            if !self.inner.begins_tls {
                return Ok(used);
            }
            self.begin()?;
        }
        let taken = self.records(&bytes[used..], port);
        self.closing(taken, out).map(|taken| used + taken)
    }

    fn sending(&mut self, out: &mut Outbox) {
        if let Some(session) = &mut self.session {
            encrypt(session, &mut self.clear, out);
        }
    }

    fn reply(
        &mut self,
        reply: &Reply,
        out: &mut Outbox,
        port: &mut Port<'_>,
    ) -> Result<(), ConnectionEnd> {
        let (inner, mouth) = self.mouth(out);
        match inner.reply(reply, mouth, port) {
            // Encrypted together with the others, when all are sent.
            Ok(()) => Ok(()),
            end => self.closing(end, out),
        }
    }

    fn resume(&mut self, out: &mut Outbox, port: &mut Port<'_>) -> Result<(), ConnectionEnd> {
        let end = self.hand_over(port).and_then(|()| {
            let (inner, mouth) = self.mouth(out);
            inner.resume(mouth, port)
        });
        self.closing(end, out)
    }

    fn notice(
        &mut self,
        drive: usize,
        notice: Notice,
        out: &mut Outbox,
        port: &mut Port<'_>,
    ) -> Result<(), ConnectionEnd> {
        let (inner, mouth) = self.mouth(out);
        inner.notice(drive, notice, mouth, port)
    }

    fn tick(&mut self, out: &mut Outbox, port: &mut Port<'_>) -> Result<(), ConnectionEnd> {
        let (inner, mouth) = self.mouth(out);
        inner.tick(mouth, port)
    }
}
