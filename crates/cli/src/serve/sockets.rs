//! Sockets: bound before anything is opened, made or measured, so that a wrong address changes nothing and is told at
//! once; then listened at.

use std::fs;
use std::io::{self, ErrorKind};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use listenfd::ListenFd;
use live::{EventLoop, Front};
use text::problem::{Problem, Problems};

use super::Args;
use super::address::{Address, shown};
use super::asked::Asked;
use crate::failure::Failure;
use crate::failure::on_command_line;

/// A socket at its address. Who connects waits until it is listened at.
pub(super) struct Bound {
    option: &'static str,
    /// With the port that the kernel chose, if that was left to it.
    pub(super) address: Address,
    socket: OwnedFd,
    file: Option<SocketFile>,
}

/// All sockets of a server, in the order of the options.
pub(super) struct Sockets {
    pub(super) metrics: Vec<Bound>,
    pub(super) control: Vec<Bound>,
    pub(super) nbd: Vec<Bound>,
    pub(super) nvme: Vec<Bound>,
    pub(super) guests: Vec<Bound>,
}

impl Sockets {
    /// Binds wherever that is asked for.
    ///
    /// # Errors
    /// Every address that cannot be had, why, and what would be right.
    pub(super) fn bind(args: &Args, asked: &Asked) -> Result<Sockets, Problems> {
        let mut problems = Problems::default();
        let unix = |path: &PathBuf| Address::Unix(path.clone());
        let control: Vec<Address> = args.control.iter().map(unix).collect();
        let guests: Vec<Address> = args.vhost_user.iter().map(unix).collect();
        let mut all = |option, addresses: &[Address]| {
            let mut bound = Vec::new();
            for address in addresses {
                match bind(option, address) {
                    Ok(socket) => bound.push(socket),
                    Err(error) => problems.0.push(problem(option, address, &error)),
                }
            }
            bound
        };
        let sockets = Sockets {
            metrics: all("--metrics", &asked.metrics),
            control: all("--control", &control),
            nbd: all("--nbd", &asked.nbd),
            nvme: all("--nvme-tcp", &asked.nvme),
            guests: all("--vhost-user", &guests),
        };
        problems.or(sockets)
    }
}

impl Bound {
    /// Serves connections to it by this front end; its file is kept in `files` as long as there shall be one.
    pub(super) fn listen(
        self,
        server: &mut EventLoop,
        front: Box<dyn Front>,
        files: &mut Vec<SocketFile>,
    ) -> Result<(), Failure> {
        files.extend(self.file);
        let at = format!("{} {}", self.option, shown(&self.address));
        server
            .listen(self.socket, front)
            .map_err(|error| Failure::failed(at, error))
    }
}

/// A socket's file, removed when the server ends.
pub(super) struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // It may have been removed by somebody else.
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

/// Listens at a path; a socket that nobody listens at any more is replaced.
fn bind_unix(path: &Path) -> io::Result<UnixListener> {
    if is_socket(path) && UnixStream::connect(path).is_err() {
        fs::remove_file(path)?;
    }
    UnixListener::bind(path)
}

fn is_socket(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|it| it.file_type().is_socket())
}

/// The socket of this number among those that were passed on.
fn passed(number: usize) -> io::Result<UnixListener> {
    let missing = "no Unix socket was passed on (LISTEN_PID, LISTEN_FDS)";
    ListenFd::from_env()
        .take_unix_listener(number)?
        .ok_or_else(|| io::Error::other(missing))
}

/// Why there is no socket at this address, and what would be right.
fn problem(option: &str, address: &Address, error: &io::Error) -> Problem {
    let (what, help) = match (address, error.kind()) {
        (Address::Tcp(_), ErrorKind::AddrInUse) => (
            "something listens there already",
            "end it (`ss -ltnp` tells what it is), or give another port",
        ),
        (Address::Tcp(_), ErrorKind::AddrNotAvailable) => (
            "this machine has no such address",
            "127.0.0.1 is the machine itself; `ip address` lists its others",
        ),
        (Address::Tcp(_), ErrorKind::PermissionDenied) => (
            "not allowed",
            "ports below 1024 are for root: give one from there on",
        ),
        (Address::Unix(path), ErrorKind::AddrInUse) if is_socket(path) => (
            "something listens there already",
            "end it (`ss -lxp` tells what it is), or give another path",
        ),
        (Address::Unix(_), ErrorKind::AddrInUse) => (
            "there is something that is not a socket",
            "give a path where nothing is",
        ),
        (Address::Unix(_), ErrorKind::NotFound) => (
            "there is no such folder",
            "make it first, or give another path",
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
