//! NBD over TLS as a state machine: a client with rustls, bytes split anywhere, and clients without access.

use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;

use live::nbd::tls::{Credentials, TlsConnection};
use live::nbd::wire::{self, NbdRequest, answer, command, option};
use live::offline::Offline;
use live::{ConnectionEnd, ConnectionLimits, Setup};
use model::media::Precondition;
use proptest::prelude::*;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use tempfile::TempDir;

const SIZE: u64 = 8 << 20;

/// A folder with an authority, a server and a client, under the names that NBD's programs use.
fn certificates() -> TempDir {
    let folder = TempDir::new().expect("a folder");
    let write = |name: &str, text: String| {
        std::fs::write(folder.path().join(name), text).expect("room");
    };
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    let authority = CertifiedIssuer::self_signed(authority, key).expect("an authority");
    write("ca-cert.pem", authority.pem());
    for name in ["server", "client"] {
        let params = CertificateParams::new(vec!["localhost".into()]).expect("a name");
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &authority).expect("a certificate");
        write(&format!("{name}-cert.pem"), certificate.pem());
        write(&format!("{name}-key.pem"), key.serialize_pem());
    }
    folder
}

fn server(folder: &Path, verify_peer: bool) -> Offline<TlsConnection> {
    let drive = Setup {
        name: "disk".into(),
        size: Some(SIZE),
        precondition: Some(Precondition::Steady),
        ..Setup::new(catalogue::drive("p4800x-375").expect("a drive of the catalogue"))
    }
    .open()
    .expect("memory");
    let credentials = Credentials::read(folder, verify_peer).expect("certificates");
    let connection = TlsConnection::new(vec!["disk".into()], &credentials);
    Offline::new(vec![drive], connection, ConnectionLimits::default()).expect("a greeting")
}

fn client(folder: &Path, with_certificate: bool) -> ClientConnection {
    let mut roots = RootCertStore::empty();
    let read = |name: &str| CertificateDer::from_pem_file(folder.join(name)).expect("there");
    roots.add(read("ca-cert.pem")).expect("an authority");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots);
    let config = if with_certificate {
        let key = PrivateKeyDer::from_pem_file(folder.join("client-key.pem")).expect("there");
        let chain = vec![read("client-cert.pem")];
        builder.with_client_auth_cert(chain, key).expect("a pair")
    } else {
        builder.with_no_client_auth()
    };
    let name = ServerName::try_from("localhost").expect("a name");
    ClientConnection::new(Arc::new(config), name).expect("a client")
}

/// A client and its server.
struct Pair {
    server: Offline<TlsConnection>,
    client: ClientConnection,
    /// Length of the pieces into which bytes are split.
    piece: usize,
}

impl Pair {
    /// Returns a pair that is past STARTTLS.
    fn new(folder: &Path, verify_peer: bool, with_certificate: bool, piece: usize) -> Pair {
        let mut server = server(folder, verify_peer);
        let mut hello = 3u32.to_be_bytes().to_vec();
        hello.extend(wire::option(option::STARTTLS, &[]));
        let said = server.send(&hello).expect("it is offered");
        assert_eq!(answers(&said[18..]), [(option::STARTTLS, answer::ACK)]);
        let mut client = client(folder, with_certificate);
        client.set_buffer_limit(None);
        Pair {
            server,
            client,
            piece,
        }
    }

    /// Sends bytes, and returns the answer.
    fn say(&mut self, bytes: &[u8]) -> Result<Vec<u8>, ConnectionEnd> {
        self.client.writer().write_all(bytes).expect("no limit");
        let mut heard = Vec::new();
        loop {
            let mut wire = Vec::new();
            while self.client.wants_write() {
                self.client.write_tls(&mut wire).expect("memory");
            }
            if wire.is_empty() {
                return Ok(heard);
            }
            for piece in wire.chunks(self.piece) {
                let said = self.server.send(piece)?;
                let mut rest = &said[..];
                while !rest.is_empty() {
                    self.client.read_tls(&mut rest).expect("memory");
                    let state = self.client.process_new_packets().expect("a good server");
                    let before = heard.len();
                    heard.resize(before + state.plaintext_bytes_to_read(), 0);
                    let mut reader = self.client.reader();
                    reader.read_exact(&mut heard[before..]).expect("there");
                }
            }
        }
    }
}

/// Returns option and answer of each reply in the negotiation.
fn answers(mut said: &[u8]) -> Vec<(u32, u32)> {
    let mut answers = Vec::new();
    while !said.is_empty() {
        answers.push((wire::be32(said, 8), wire::be32(said, 12)));
        said = &said[20 + wire::be32(said, 16) as usize..];
    }
    answers
}

fn go() -> Vec<u8> {
    wire::option(option::GO, &[0, 0, 0, 4, b'd', b'i', b's', b'k', 0, 0])
}

#[test]
fn what_was_written_is_read_however_the_bytes_are_cut() {
    let folder = certificates();
    for piece in [1 << 20, 4096, 777] {
        let mut pair = Pair::new(folder.path(), true, true, piece);
        let said = pair.say(&go()).expect("a negotiation");
        assert_eq!(answers(&said).last(), Some(&(option::GO, answer::ACK)));
        let data: Vec<u8> = (0..1u32 << 20).map(|at| (at ^ at >> 8) as u8).collect();
        let request = |command, cookie| NbdRequest {
            flags: 0,
            command,
            cookie,
            offset: 4096,
            length: data.len() as u32,
        };
        let mut bytes = request(command::WRITE, 1).emit().to_vec();
        bytes.extend(&data);
        assert_eq!(pair.say(&bytes).expect("written").len(), 16);
        let said = pair
            .say(&request(command::READ, 2).emit())
            .expect("written");
        assert!(said[16..] == data, "other data came back");
        let end = pair.say(&request(command::DISC, 3).emit());
        assert_eq!(end, Err(ConnectionEnd::Left));
    }
}

#[test]
fn a_client_without_tls_is_told_nothing() {
    let folder = certificates();
    let mut server = server(folder.path(), false);
    let mut hello = 3u32.to_be_bytes().to_vec();
    for (number, data) in [
        (option::LIST, &[][..]),
        (option::STRUCTURED_REPLY, &[]),
        (option::GO, &[0, 0, 0, 0, 0, 0]),
        (option::STARTTLS, &[1]),
    ] {
        hello.extend(wire::option(number, data));
    }
    let said = server.send(&hello).expect("answers");
    let required = answer::ERR_TLS_REQD;
    let expected = [
        (option::LIST, required),
        (option::STRUCTURED_REPLY, required),
        (option::GO, required),
        (option::STARTTLS, answer::ERR_INVALID),
    ];
    assert_eq!(answers(&said[18..]), expected);
    let old = server.send(&wire::option(option::EXPORT_NAME, b"disk"));
    assert_eq!(old, Err(ConnectionEnd::broke("a client without TLS")));
}

#[test]
fn what_was_said_in_the_clear_is_forgotten() {
    let folder = certificates();
    let mut pair = Pair::new(folder.path(), false, false, 1 << 20);
    // A second request inside TLS is an error.
    let again = pair
        .say(&wire::option(option::STARTTLS, &[]))
        .expect("told");
    assert_eq!(answers(&again), [(option::STARTTLS, answer::ERR_INVALID)]);
    pair.say(&go()).expect("a negotiation");
    // Unencrypted bytes after STARTTLS are parsed as TLS, and are invalid.
    let mut server = server(folder.path(), false);
    let mut hello = 3u32.to_be_bytes().to_vec();
    hello.extend(wire::option(option::STARTTLS, &[]));
    hello.extend(go());
    let ending = server.send(&hello);
    assert!(
        matches!(&ending, Err(ConnectionEnd::Broke(how)) if how.starts_with("TLS: ")),
        "{ending:?}"
    );
}

#[test]
fn a_client_must_show_its_certificate_if_that_is_asked() {
    let folder = certificates();
    let mut pair = Pair::new(folder.path(), true, false, 1 << 20);
    let ending = pair.say(&go());
    assert!(
        matches!(&ending, Err(ConnectionEnd::Broke(how)) if how.contains("no certificates")),
        "{ending:?}"
    );
    // A certificate of another authority.
    let other = certificates();
    for name in ["client-cert.pem", "client-key.pem"] {
        std::fs::copy(other.path().join(name), folder.path().join(name)).expect("copied");
    }
    let mut pair = Pair::new(folder.path(), true, true, 1 << 20);
    let ending = pair.say(&go());
    assert!(
        matches!(&ending, Err(ConnectionEnd::Broke(_))),
        "{ending:?}"
    );
    // It is ignored if the server does not request it.
    let mut pair = Pair::new(folder.path(), false, true, 1 << 20);
    pair.say(&go()).expect("a negotiation");
}

#[test]
fn each_file_that_is_wrong_is_named() {
    let folder = certificates();
    std::fs::remove_file(folder.path().join("server-key.pem")).expect("removed");
    std::fs::write(folder.path().join("ca-cert.pem"), "nothing").expect("written");
    let problems = Credentials::read(folder.path(), true).expect_err("not right");
    let said = problems.to_string();
    for name in ["server-key.pem", "ca-cert.pem"] {
        assert!(said.contains(name), "{said}");
    }
    assert!(!said.contains("server-cert.pem"), "{said}");
    // A key of another certificate.
    let folder = certificates();
    let of = |name: &str| folder.path().join(name);
    std::fs::copy(of("client-key.pem"), of("server-key.pem")).expect("copied");
    let problems = Credentials::read(folder.path(), false).expect_err("no pair");
    assert!(
        problems.to_string().contains("server-key.pem"),
        "{problems}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Random bytes instead of TLS, or a modified first flight.
    #[test]
    fn nonsense_ends_the_connection_or_waits_for_more(
        bytes in prop::collection::vec(any::<u8>(), 0..2000),
        change in any::<prop::sample::Index>(),
        to in any::<u8>(),
        piece in 1usize..700,
    ) {
        let folder = certificates();
        let mut hello = Vec::new();
        client(folder.path(), false).write_tls(&mut hello).expect("memory");
        let at = change.index(hello.len());
        hello[at] = to;
        for bytes in [bytes, hello] {
            let mut server = server(folder.path(), false);
            let mut start = 3u32.to_be_bytes().to_vec();
            start.extend(wire::option(option::STARTTLS, &[]));
            server.send(&start).expect("it is offered");
            for piece in bytes.chunks(piece) {
                match server.send(piece) {
                    Ok(_) => {}
                    Err(ConnectionEnd::Broke(how)) => {
                        prop_assert!(how.starts_with("TLS: "), "{how}");
                        break;
                    }
                    Err(ConnectionEnd::Left) => break,
                    Err(ConnectionEnd::Failed(what)) => prop_assert!(false, "{what}"),
                }
            }
        }
    }
}
