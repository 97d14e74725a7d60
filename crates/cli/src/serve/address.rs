//! Addresses: read, listened at, shown.

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use listenfd::ListenFd;
use live::{EventLoop, Front};
use study::problem::Problems;

use super::asked::on_command_line;
use crate::failure::Failure;

/// An address as it was given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Address {
    Tcp(SocketAddr),
    Unix(PathBuf),
    /// A Unix socket that listens already and was passed on by systemd's protocol: the first, the second, ...
    Passed(usize),
}

pub(super) fn addresses(
    option: &str,
    texts: &[String],
    remote: bool,
    problems: &mut Problems,
) -> Vec<Address> {
    let mut addresses = Vec::new();
    for text in texts {
        if let Some(path) = text.strip_prefix("unix:") {
            addresses.push(Address::Unix(path.into()));
            continue;
        }
        if option == "--nbd" && text == "systemd" {
            let before = addresses
                .iter()
                .filter(|it| matches!(it, Address::Passed(_)));
            addresses.push(Address::Passed(before.count()));
            continue;
        }
        match text.parse::<SocketAddr>() {
            Ok(address) if !address.ip().is_loopback() && !remote => {
                problems.0.push(on_command_line(
                    format!("{option} {text}: other machines could reach it"),
                    "there is no authentication: if the network is trusted, add --allow-remote",
                ));
            }
            Ok(address) => addresses.push(Address::Tcp(address)),
            Err(_) => problems.0.push(on_command_line(
                format!("{option} {text}: not an address"),
                "such as 127.0.0.1:10809, [::1]:10809 or unix:drive.sock",
            )),
        }
    }
    addresses
}

pub(super) fn shown(address: &Address) -> String {
    match address {
        Address::Tcp(address) => address.to_string(),
        Address::Unix(path) => format!("unix:{}", path.display()),
        Address::Passed(_) => String::from("systemd"),
    }
}

/// The socket of this number among those that were passed on.
fn passed(number: usize) -> io::Result<UnixListener> {
    let missing = "no Unix socket was passed on (LISTEN_PID, LISTEN_FDS)";
    ListenFd::from_env()
        .take_unix_listener(number)?
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, missing))
}

/// Serves connections to this address by this front end.
pub(super) fn listen(
    server: &mut EventLoop,
    option: &str,
    address: &Address,
    front: Box<dyn Front>,
    sockets: &mut Vec<Socket>,
) -> Result<(), Failure> {
    let listening = match address {
        Address::Tcp(address) => {
            TcpListener::bind(address).and_then(|socket| server.listen(socket, front))
        }
        Address::Unix(path) => {
            let bound = listen_unix(path);
            // Only what was bound here is removed at the end.
            if bound.is_ok() {
                sockets.push(Socket(path.clone()));
            }
            bound.and_then(|socket| server.listen(socket, front))
        }
        Address::Passed(number) => passed(*number).and_then(|socket| server.listen(socket, front)),
    };
    listening.map_err(|error| Failure::failed(format!("{option} {}", shown(address)), error))
}

/// A socket's file, removed when the server ends.
pub(super) struct Socket(PathBuf);

impl Drop for Socket {
    fn drop(&mut self) {
        // It may have been removed by somebody else.
        let _ = fs::remove_file(&self.0);
    }
}

/// Listens at a path; a socket that nobody listens at any more is replaced.
pub(super) fn listen_unix(path: &Path) -> io::Result<UnixListener> {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|it| it.file_type().is_socket());
    if is_socket && UnixStream::connect(path).is_err() {
        fs::remove_file(path)?;
    }
    UnixListener::bind(path)
}
