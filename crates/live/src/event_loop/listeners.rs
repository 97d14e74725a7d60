//! Listening sockets, and the front end of each.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::{SocketFlags, acceptfrom_with, sockopt};

use crate::port::{Endpoint, Front, Socket};

struct Listener {
    socket: OwnedFd,
    front: Box<dyn Front>,
}

/// An incoming connection.
pub(super) struct AcceptedConnection {
    socket: Socket,
    peer: String,
    /// Front end and address, for messages.
    pub(super) name: String,
}

/// All listening sockets.
#[derive(Default)]
pub(super) struct Listeners(Vec<Listener>);

impl Listeners {
    /// Adds a listening socket. `tag` is the high half of epoll's data, the low half is the number of the listener.
    pub(super) fn add(
        &mut self,
        epoll: impl AsFd,
        tag: u32,
        socket: OwnedFd,
        front: Box<dyn Front>,
    ) -> io::Result<()> {
        rustix::io::ioctl_fionbio(&socket, true)?;
        let data = epoll::EventData::new_u64(u64::from(tag) << 32 | self.0.len() as u64);
        epoll::add(epoll, &socket, data, epoll::EventFlags::IN)?;
        self.0.push(Listener { socket, front });
        Ok(())
    }

    /// Accepts a connection at the socket with this number.
    ///
    /// # Errors
    /// A line for the log. The socket stays ready, so the caller must not retry without a pause.
    pub(super) fn accept(&mut self, index: usize) -> Result<Option<AcceptedConnection>, String> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let listener = &self.0[index];
        let kind = listener.front.name();
        let (socket, peer) = match acceptfrom_with(&listener.socket, flags) {
            Ok(accepted) => accepted,
            Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => return Ok(None),
            Err(error) => return Err(format!("{kind}: accept: {error}")),
        };
        let peer = match peer.map(std::net::SocketAddr::try_from) {
            Some(Ok(address)) => {
                // Replies are collected here; waiting for more data in the kernel would only delay them.
                let _ = sockopt::set_tcp_nodelay(&socket, true);
                address.to_string()
            }
            _ => String::from("unix socket"),
        };
        let name = format!("{kind} {peer}");
        Ok(Some(AcceptedConnection { socket, peer, name }))
    }

    /// Returns an endpoint for a connection at the socket with this number.
    ///
    /// # Errors
    /// The reason why the front end rejects it.
    pub(super) fn admit(
        &mut self,
        index: usize,
        newcomer: AcceptedConnection,
    ) -> Result<Box<dyn Endpoint>, String> {
        self.0[index].front.accept(newcomer.socket, &newcomer.peer)
    }

    /// Stops listening.
    pub(super) fn close(&mut self, epoll: impl AsFd) -> io::Result<()> {
        for listener in self.0.drain(..) {
            epoll::delete(&epoll, &listener.socket)?;
        }
        Ok(())
    }
}
