//! Sockets: they are bound before anything is opened, created or measured, so that a wrong address changes nothing and
//! is reported at once. Listening begins later.

use std::fs;
use std::io::{self, ErrorKind};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use listenfd::ListenFd;
use live::protocol::Address;
use live::{EventLoop, Front};
use rustix::fs::Mode;
use rustix::process::umask;
use text::problem::{Problem, Problems};

use super::address::shown;
use super::asked::ServeRequest;
use crate::failure::Failure;
use crate::failure::on_command_line;

/// A socket bound to its address. Clients that connect wait until the server listens.
pub(super) struct Bound {
    option: &'static str,
    /// Address with its port, even if the kernel chose it.
    pub(super) address: Address,
    socket: OwnedFd,
    file: Option<SocketFile>,
}

/// Binds the sockets of each front end, in their order.
pub(super) fn bind_all(asked: &ServeRequest) -> Result<Vec<Vec<Bound>>, Problems> {
    let mut problems = Problems::default();
    let mut all = Vec::new();
    for front in &asked.fronts {
        let mut bound = Vec::new();
        for address in &front.addresses {
            match bind(front.protocol.option, address) {
                Ok(socket) => bound.push(socket),
                Err(error) => {
                    let option = format!("--{}", front.protocol.option);
                    problems.0.push(problem(&option, address, &error));
                }
            }
        }
        all.push(bound);
    }
    problems.or(all)
}

impl Bound {
    /// Serves connections to the socket by this front end; its file is added to `files`, which keeps it.
    pub(super) fn listen(
        self,
        server: &mut EventLoop,
        front: Box<dyn Front>,
        files: &mut Vec<SocketFile>,
    ) -> Result<(), Failure> {
        files.extend(self.file);
        let at = format!("--{} {}", self.option, shown(&self.address));
        server
            .listen(self.socket, front)
            .map_err(|error| Failure::failed(at, error))
    }
}

/// A socket's file, removed when the server ends.
pub(super) struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // It may have been removed already.
        let _ = fs::remove_file(&self.0);
    }
}

fn bind(option: &'static str, address: &Address) -> io::Result<Bound> {
    let bound = |address, socket, file| Bound {
        option,
        address,
        socket,
        file,
    };
    Ok(match address {
        Address::Tcp(wanted) => {
            let socket = TcpListener::bind(wanted)?;
            let address = Address::Tcp(socket.local_addr()?);
            bound(address, socket.into(), None)
        }
        Address::Unix(path) => {
            let socket = bind_unix(path)?;
            bound(
                address.clone(),
                socket.into(),
                Some(SocketFile(path.clone())),
            )
        }
        Address::Passed(number) => bound(address.clone(), passed(*number)?.into(), None),
    })
}

/// Binds a socket at a path, for the owner only; a socket without a listener is replaced.
fn bind_unix(path: &Path) -> io::Result<UnixListener> {
    if is_socket(path) && UnixStream::connect(path).is_err() {
        fs::remove_file(path)?;
    }
    // Other users can never connect: the kernel creates the file with this mask.
    let before = umask(Mode::from_raw_mode(0o177));
    let bound = UnixListener::bind(path);
    umask(before);
    bound
}

fn is_socket(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|it| it.file_type().is_socket())
}

/// Returns the socket with this number among those that were passed on.
fn passed(number: usize) -> io::Result<UnixListener> {
    let missing = "no Unix socket was passed on (LISTEN_PID, LISTEN_FDS)";
    ListenFd::from_env()
        .take_unix_listener(number)?
        .ok_or_else(|| io::Error::other(missing))
}

/// Returns why there is no socket at this address, and what would be right.
fn problem(option: &str, address: &Address, error: &io::Error) -> Problem {
    let (what, help) = match (address, error.kind()) {
        (Address::Tcp(_), ErrorKind::AddrInUse) => (
            "something listens there already",
            "end that process (`ss -ltnp` shows it), or give another port",
        ),
        (Address::Tcp(_), ErrorKind::AddrNotAvailable) => (
            "this machine has no such address",
            "127.0.0.1 is the machine itself; `ip address` lists its others",
        ),
        (Address::Tcp(_), ErrorKind::PermissionDenied) => (
            "not allowed",
            "ports below 1024 require root: give a port of at least 1024",
        ),
        (Address::Unix(path), ErrorKind::AddrInUse) if is_socket(path) => (
            "something listens there already",
            "end that process (`ss -lxp` shows it), or give another path",
        ),
        (Address::Unix(_), ErrorKind::AddrInUse) => (
            "the path exists and is not a socket",
            "give a path that does not exist",
        ),
        (Address::Unix(_), ErrorKind::NotFound) => (
            "there is no such folder",
            "create the folder, or give another path",
        ),
        (Address::Unix(_), ErrorKind::PermissionDenied) => (
            "not allowed",
            "give a path in a folder that you may write to",
        ),
        (Address::Unix(_), ErrorKind::InvalidInput) => (
            "the path is too long for a socket",
            "at most 107 bytes: give one from the folder you are in, such as unix:drive.sock",
        ),
        (Address::Passed(_), _) => (
            "no Unix socket was passed on (LISTEN_PID, LISTEN_FDS)",
            "`systemd` is for programs that start this one, such as nbdcopy; give an address",
        ),
        _ => {
            let what = format!("{option} {}: {error}", shown(address));
            return on_command_line(what, "give another address");
        }
    };
    on_command_line(format!("{option} {}: {what}", shown(address)), help)
}
