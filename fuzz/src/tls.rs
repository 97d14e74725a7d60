//! A client of NBD inside TLS that speaks well, badly, or stops in the middle of a record.
//!
//! The client's side is rustls with keys of its own, so that what is fuzzed lies behind a handshake that succeeds. Keys
//! are random: what is found may need several runs to be found again.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use live::nbd::tls::{Credentials, TlsConnection};
use live::nbd::wire::{self, NbdRequest, command, option};
use live::offline::Offline;
use live::{ConnectionLimits, ConnectionEnd};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, ClientConnection, RootCertStore};

use crate::live::small_drive;

/// Both sides' configuration, made once: with TLS 1.2 and 1.3; without and with certificates of clients.
struct Keys {
    clients: [Arc<ClientConfig>; 2],
    servers: [Credentials; 2],
}

fn keys() -> &'static Keys {
    static KEYS: OnceLock<Keys> = OnceLock::new();
    KEYS.get_or_init(|| {
        let folder = folder();
        let read = |verify| Credentials::read(&folder, verify).expect("certificates");
        let authority = CertificateDer::from_pem_file(folder.join("ca-cert.pem")).expect("there");
        let mut roots = RootCertStore::empty();
        roots.add(authority).expect("an authority");
        let clients = [&TLS12, &TLS13].map(|version| {
            let provider = Arc::new(rustls::crypto::ring::default_provider());
            let builder = ClientConfig::builder_with_provider(provider)
                .with_protocol_versions(&[version])
                .expect("a version");
            Arc::new(
                builder
                    .with_root_certificates(roots.clone())
                    .with_no_client_auth(),
            )
        });
        let keys = Keys {
            clients,
            servers: [read(false), read(true)],
        };
        std::fs::remove_dir_all(&folder).expect("ours");
        keys
    })
}

/// A folder with an authority and a server.
fn folder() -> PathBuf {
    let folder = std::env::temp_dir().join(format!("drivelab-fuzz-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let write = |name: &str, text: String| std::fs::write(folder.join(name), text).expect("room");
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    let authority = CertifiedIssuer::self_signed(authority, key).expect("an authority");
    write("ca-cert.pem", authority.pem());
    let params = CertificateParams::new(vec!["localhost".into()]).expect("a name");
    let key = KeyPair::generate().expect("a key");
    let certificate = params.signed_by(&key, &authority).expect("a certificate");
    write("server-cert.pem", certificate.pem());
    write("server-key.pem", key.serialize_pem());
    folder
}

/// A client, and the server without a socket.
struct Pair {
    server: Offline<TlsConnection>,
    client: ClientConnection,
    begun: bool,
    /// What was said before the end of the handshake was not as it should be: TLS may not come about.
    odd: bool,
    /// The client's records are sent in pieces of this length.
    piece: usize,
    /// What the server has said inside TLS and nobody has looked at.
    heard: Vec<u8>,
}

impl Pair {
    fn new(how: u8) -> Pair {
        let keys = keys();
        let credentials = &keys.servers[usize::from(how >> 1 & 1)];
        let connection = TlsConnection::new(vec![String::from("disk")], credentials);
        let limits = ConnectionLimits {
            commands: 8,
            bytes: 1 << 20,
            ..ConnectionLimits::default()
        };
        let config = Arc::clone(&keys.clients[usize::from(how & 1)]);
        let name = ServerName::try_from("localhost").expect("a name");
        let mut client = ClientConnection::new(config, name).expect("a client");
        client.set_buffer_limit(None);
        Pair {
            server: Offline::new(vec![small_drive()], connection, limits).expect("a greeting"),
            client,
            begun: false,
            odd: false,
            piece: usize::from(how >> 2) * 37 + 1,
            heard: Vec::new(),
        }
    }

    /// Bytes to the server; what it says is TLS that the client understands, once TLS has begun.
    fn send(&mut self, bytes: &[u8]) -> Result<(), ConnectionEnd> {
        for piece in bytes.chunks(self.piece) {
            let said = self.server.send(piece)?;
            let mut rest = &said[..];
            while self.begun && !self.odd && !rest.is_empty() {
                self.client.read_tls(&mut rest).expect("memory");
                let state = self.client.process_new_packets().expect("a good server");
                let before = self.heard.len();
                self.heard
                    .resize(before + state.plaintext_bytes_to_read(), 0);
                let mut reader = self.client.reader();
                reader.read_exact(&mut self.heard[before..]).expect("there");
            }
        }
        Ok(())
    }

    /// The client's records that wait to be sent.
    fn records(&mut self) -> Vec<u8> {
        let mut records = Vec::new();
        while self.client.wants_write() {
            self.client.write_tls(&mut records).expect("memory");
        }
        records
    }

    /// Asks for TLS, as it should be.
    fn begin(&mut self) -> Result<(), ConnectionEnd> {
        let mut hello = 3u32.to_be_bytes().to_vec();
        hello.extend(wire::option(option::STARTTLS, &[]));
        self.send(&hello)?;
        self.begun = true;
        self.settle()
    }

    /// Sends records until there are none.
    fn settle(&mut self) -> Result<(), ConnectionEnd> {
        loop {
            let records = self.records();
            if records.is_empty() {
                return Ok(());
            }
            self.send(&records)?;
        }
    }

    /// Says this inside TLS.
    fn say(&mut self, bytes: &[u8]) -> Result<(), ConnectionEnd> {
        self.client.writer().write_all(bytes).expect("no limit");
        if self.begun { self.settle() } else { Ok(()) }
    }

    /// One thing that a client does, well or not.
    fn step(&mut self, what: u8, script: &mut &[u8]) -> Result<(), ConnectionEnd> {
        let mut take = |most: usize| {
            let (front, rest) = script.split_at(most.min(script.len()));
            *script = rest;
            front
        };
        let what = what % 10;
        self.odd |= matches!(what, 1 | 4 | 5) && self.client.is_handshaking();
        self.odd |= what == 7 && !self.begun;
        match what {
            0 if !self.begun => self.begin(),
            0 => self.say(&wire::option(option::EXPORT_NAME, b"disk")),
            // In the clear, wherever we are.
            1 => self.send(take(24)),
            2 => self.say(take(40)),
            3 => {
                let (write, data) = (take(1).first().is_some_and(|byte| byte & 1 == 1), take(2));
                let request = NbdRequest {
                    flags: 0,
                    command: if write { command::WRITE } else { command::READ },
                    cookie: 7,
                    offset: 512 * u64::from(data.first().copied().unwrap_or(0)),
                    length: 512 * u32::from(data.get(1).map_or(1, |byte| byte % 64)),
                };
                let mut bytes = request.emit().to_vec();
                if write {
                    bytes.resize(bytes.len() + request.length as usize, 0x5a);
                }
                self.say(&bytes)
            }
            // A record with a byte that was changed on the way.
            4 => {
                self.client.writer().write_all(take(8)).expect("no limit");
                let mut records = self.records();
                let (at, to) = (take(1), take(1));
                if let (Some(&at), Some(&to), false) = (at.first(), to.first(), records.is_empty())
                {
                    let at = usize::from(at) * 7 % records.len();
                    records[at] = to;
                }
                self.send(&records)
            }
            // A record that does not end, or is said twice.
            5 => {
                self.client.writer().write_all(take(8)).expect("no limit");
                let records = self.records();
                let end = records.len() - records.len() / 3;
                self.send(&records[..end])?;
                match take(1).first().map(|byte| byte % 3) {
                    Some(0) => self.send(&records[end..]),
                    Some(1) => self.send(&records),
                    _ => Ok(()),
                }
            }
            6 => {
                // Other keys; not before the handshake has ended, and not in TLS 1.2.
                let _ = self.client.refresh_traffic_keys();
                self.say(&[])
            }
            7 => {
                self.client.send_close_notify();
                self.settle()
            }
            8 => self.say(&wire::option(option::STARTTLS, &[])),
            _ => self.say(&wire::option(
                option::GO,
                &[0, 0, 0, 4, b'd', b'i', b's', b'k', 0, 0],
            )),
        }
    }
}

/// Does what the input says; the server goes on in TLS that the client understands, or ends this connection with a
/// reason, and nothing stays in the drive.
pub fn nbd_tls(bytes: &[u8]) {
    let Some((&how, mut script)) = bytes.split_first() else {
        return;
    };
    let mut pair = Pair::new(how);
    while let Some((&what, rest)) = script.split_first() {
        script = rest;
        match pair.step(what, &mut script) {
            Ok(()) => {}
            Err(ConnectionEnd::Left) => break,
            Err(ConnectionEnd::Broke(why) | ConnectionEnd::Failed(why)) => {
                assert!(!why.is_empty());
                break;
            }
        }
    }
    // What was in flight when the connection ended completes, and nobody hears of it.
    let drive = &mut pair.server.drives[0];
    drive.complete_all(&mut Vec::new());
    assert_eq!(drive.in_flight(), 0);
}
