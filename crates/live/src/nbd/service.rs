//! NBD as a protocol of the server, and how clients reach the served drives.

use std::path::{Path, PathBuf};

use text::problem::Problems;

use super::Nbd;
use super::tls::Credentials;
use crate::port::Front;
use crate::protocol::{
    Address, AddressKind, Clients, FrontEndOptions, Protocol, Service, Setting, on_command_line,
};
use crate::served::ServedDevice;

/// The NBD protocol.
pub const PROTOCOL: Protocol = Protocol {
    option: "nbd",
    value: "ADDR",
    help: "Serve NBD at this address: HOST:PORT, unix:PATH, or systemd (a Unix socket inherited from the parent); \
           may be given several times",
    places: AddressKind::Addresses { passed: true },
    clients: Clients::OverSocket,
    settings: &[
        Setting {
            name: "tls",
            value: Some("FOLDER"),
            values: &[],
            requires: None,
            help: "Serve NBD inside TLS only, with `server-cert.pem` and `server-key.pem` of this folder",
        },
        Setting {
            name: "tls-verify-peer",
            value: None,
            values: &[],
            requires: Some("tls"),
            help: "Accept only clients whose certificate is signed by one in `ca-cert.pem` of the folder given by --tls",
        },
    ],
    read,
};

/// Exports, one for each drive.
struct Exports {
    names: Vec<String>,
    /// Folder of the certificates, and the credentials in it.
    tls: Option<(PathBuf, Credentials)>,
}

fn read(asked: &FrontEndOptions) -> Result<Box<dyn Service>, Problems> {
    let mut problems = Problems::default();
    let tls = asked.value("tls").and_then(|folder| {
        if asked.addresses == 0 {
            problems.0.push(on_command_line(
                "--tls requires an NBD address",
                "add --nbd 127.0.0.1:10809; NVMe/TCP has no TLS here",
            ));
        }
        match Credentials::read(Path::new(folder), asked.has("tls-verify-peer")) {
            Ok(credentials) => Some((PathBuf::from(folder), credentials)),
            Err(all) => {
                problems.0.extend(all.0);
                None
            }
        }
    });
    problems.or(())?;
    Ok(Box::new(Exports {
        names: asked.names.clone(),
        tls,
    }))
}

impl Service for Exports {
    fn front(&self, _: usize) -> Box<dyn Front> {
        let names = self.names.clone();
        Box::new(match &self.tls {
            None => Nbd::new(names),
            Some((_, credentials)) => Nbd::encrypted(names, credentials.clone()),
        })
    }

    fn drive_lines(&self, _: usize, drive: &ServedDevice, at: &[Address]) -> Vec<String> {
        let folder = self.tls.as_ref().map(|(folder, _)| folder.as_path());
        at.iter()
            .flat_map(|address| lines(drive.name(), address, folder))
            .collect()
    }
}

/// Returns a name as part of a URI: the name of a pool is its expression, with blanks, commas and brackets.
fn in_uri(name: &str) -> String {
    let one = |byte: u8| match byte {
        b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'-' | b'.' | b'_' | b'~' | b'/' => {
            char::from(byte).to_string()
        }
        byte => format!("%{byte:02X}"),
    };
    name.bytes().map(one).collect()
}

/// Returns the URI of an export at a Unix socket.
pub fn unix_uri(name: &str, socket: &Path) -> String {
    format!(
        "nbd+unix:///{}?socket={}",
        in_uri(name),
        in_uri(&socket.display().to_string())
    )
}

/// Returns lines on how clients reach an export over NBD.
fn lines(name: &str, address: &Address, tls: Option<&Path>) -> Vec<String> {
    let whole = |path: &Path| {
        path.canonicalize()
            .unwrap_or(path.into())
            .display()
            .to_string()
    };
    let export = in_uri(name);
    let scheme = if tls.is_some() { "nbds" } else { "nbd" };
    let (uri, server) = match address {
        Address::Tcp(it) => (
            format!("{scheme}://{it}/{export}"),
            format!(
                "server.type=inet,server.host={},server.port={}",
                it.ip(),
                it.port()
            ),
        ),
        Address::Unix(socket) => {
            let socket = whole(socket);
            (
                format!("{scheme}+unix:///{export}?socket={socket}"),
                format!("server.type=unix,server.path={socket}"),
            )
        }
        // The program that passed the socket on knows its address.
        Address::Passed(_) => return Vec::new(),
    };
    let Some(folder) = tls else {
        return vec![
            format!("  nbdinfo '{uri}'"),
            format!(
                "  fio --name=job --ioengine=nbd --uri='{uri}' --rw=randread --bs=4k --iodepth=1 --time_based --runtime=10"
            ),
            format!("  qemu-system-x86_64 ... -drive if=virtio,format=raw,file='{uri}'"),
        ];
    };
    // fio has no option for the place of certificates.
    let folder = whole(folder);
    let joint = if uri.contains('?') { '&' } else { '?' };
    vec![
        format!("  nbdinfo '{uri}{joint}tls-certificates={folder}'"),
        format!(
            "  qemu-system-x86_64 ... -object tls-creds-x509,id=tls0,endpoint=client,dir={folder} \
             -drive if=virtio,format=raw,file.driver=nbd,file.{},file.export={},file.tls-creds=tls0",
            server.replace(",", ",file."),
            name.replace(',', ",,")
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_uri_of_an_expression_has_no_blanks_and_is_read_back() {
        let name = "write-back-cache(cache=p4801x-100, capacity=2*950pro-256)";
        let uri = format!("nbd+unix:///{}?socket=/s", in_uri(name));
        assert!(!uri.contains([' ', ',', '(', '*']), "{uri}");
        let read: crate::bench_target::Uri = uri.parse().expect("a URI");
        let crate::bench_target::Uri::NbdUnix { export, .. } = read else {
            panic!("{read:?}");
        };
        assert_eq!(export, name);
        assert_eq!(in_uri("p4800x-375"), "p4800x-375");
    }
}
