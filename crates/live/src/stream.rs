//! A byte stream as an endpoint: sockets, buffers and flow control here, the protocol in a [`Connection`].
//!
//! Input is read into one buffer that all connections share. Bytes that a connection does not take (half a header, or
//! requests without space) are kept until more arrives or replies have been sent. While a client does not take its
//! replies, nothing more is read from it, so it delays only itself.

use rustix::io::Errno;
use rustix::net::{SendFlags, send};

use crate::outbox::Outbox;
use crate::port::{ConnectionEnd, Endpoint, Interest, Notice, Port, Ready, Socket};
use crate::served::Reply;

/// Bytes read at once.
const READ: usize = 256 << 10;

/// Number of unsent bytes at and above which nothing more is read.
const FULL: usize = 4 << 20;

/// Memory that is kept for untaken bytes: more than half a header is rare.
const KEEP: usize = 4096;

/// A protocol over a byte stream, without the socket: a state machine that can be tested and fuzzed alone.
pub trait Connection {
    /// Called when the client has connected, to send a greeting.
    ///
    /// # Errors
    /// The end of this connection.
    fn open(&mut self, _out: &mut Outbox, _port: &mut Port<'_>) -> Result<(), ConnectionEnd> {
        Ok(())
    }

    /// Called with received bytes, including those left over from before; returns the number of bytes used. The rest
    /// is passed again with more. Payload should be taken as it arrives. Only the beginning of a message may be left,
    /// at most some kilobytes, and requests for which there is no [`Port::room`].
    ///
    /// # Errors
    /// The end of this connection; `out` is still sent if the socket accepts it.
    fn input(
        &mut self,
        bytes: &[u8],
        out: &mut Outbox,
        port: &mut Port<'_>,
    ) -> Result<usize, ConnectionEnd>;

    /// Called before `out` is sent, to add output that has been collected elsewhere.
    #[inline]
    fn sending(&mut self, _out: &mut Outbox) {}

    /// See [`Endpoint::is_client`].
    fn is_client(&self) -> bool {
        true
    }

    /// Called when a command of this connection has completed. Data is transferred now: [`crate::ServedDevice::read`] into
    /// `out.grow(..)`, [`crate::ServedDevice::write`] from the received bytes.
    ///
    /// # Errors
    /// The end of this connection.
    fn reply(
        &mut self,
        reply: &Reply,
        out: &mut Outbox,
        port: &mut Port<'_>,
    ) -> Result<(), ConnectionEnd>;

    /// Called when there may be space again for requests that were taken but not submitted.
    ///
    /// # Errors
    /// The end of this connection.
    fn resume(&mut self, _out: &mut Outbox, _port: &mut Port<'_>) -> Result<(), ConnectionEnd> {
        Ok(())
    }

    /// See [`Endpoint::tick`].
    ///
    /// # Errors
    /// The end of this connection.
    fn tick(&mut self, _out: &mut Outbox, _port: &mut Port<'_>) -> Result<(), ConnectionEnd> {
        Ok(())
    }

    /// See [`Endpoint::notice`].
    ///
    /// # Errors
    /// The end of this connection.
    fn notice(
        &mut self,
        _drive: usize,
        _notice: Notice,
        _out: &mut Outbox,
        _port: &mut Port<'_>,
    ) -> Result<(), ConnectionEnd> {
        Ok(())
    }

    /// See [`Endpoint::rung`].
    ///
    /// # Errors
    /// The end of this connection.
    fn rung(&mut self, _out: &mut Outbox, _port: &mut Port<'_>) -> Result<(), ConnectionEnd> {
        Ok(())
    }
}

/// A [`Connection`] and its socket.
#[derive(Debug)]
pub struct Stream<C> {
    socket: Socket,
    connection: C,
    out: Outbox,
    left: Vec<u8>,
    /// Whether the connection has left requests because of missing space.
    stalled: bool,
    watched: Interest,
}

impl<C: Connection> Stream<C> {
    /// Returns a connection over this socket, which must not block.
    pub fn new(socket: Socket, connection: C) -> Stream<C> {
        Stream {
            socket,
            connection,
            out: Outbox::default(),
            left: Vec::new(),
            stalled: false,
            watched: Interest::READ,
        }
    }

    fn receive(&mut self, port: &mut Port<'_>) -> Result<(), ConnectionEnd> {
        let mut bytes = std::mem::take(port.scratch);
        let kept = self.left.len();
        if bytes.len() < kept + READ {
            bytes.resize(kept + READ, 0);
        }
        bytes[..kept].copy_from_slice(&self.left);
        let end = match rustix::io::read(&self.socket, &mut bytes[kept..kept + READ]) {
            Ok(0) => Err(ConnectionEnd::Left),
            Ok(more) => {
                port.load.moved += more as u64;
                self.offer(&bytes[..kept + more], port)
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        };
        *port.scratch = bytes;
        end
    }

    /// Passes bytes to the connection and keeps those that it does not take.
    fn offer(&mut self, bytes: &[u8], port: &mut Port<'_>) -> Result<(), ConnectionEnd> {
        port.load.refused = false;
        let used = self.connection.input(bytes, &mut self.out, port)?;
        debug_assert!(used <= bytes.len());
        self.left.clear();
        self.left.extend_from_slice(&bytes[used..]);
        if self.left.len() < KEEP {
            self.left.shrink_to(KEEP);
        }
        port.load.untaken = self.left.len() as u64;
        self.stalled = !self.left.is_empty() && port.refused();
        Ok(())
    }

    fn resume(&mut self, port: &mut Port<'_>) -> Result<(), ConnectionEnd> {
        if self.stalled && port.room() && self.out.len() < FULL {
            let bytes = std::mem::take(&mut self.left);
            self.offer(&bytes, port)?;
        }
        if port.room() {
            self.connection.resume(&mut self.out, port)?;
        }
        Ok(())
    }

    fn send(&mut self, port: &mut Port<'_>) -> Result<(), ConnectionEnd> {
        self.connection.sending(&mut self.out);
        while !self.out.is_empty() {
            match send(&self.socket, self.out.unsent(), SendFlags::NOSIGNAL) {
                Ok(sent) => {
                    port.load.moved += sent as u64;
                    self.out.sent(sent);
                }
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

impl<C: Connection> Endpoint for Stream<C> {
    fn is_client(&self) -> bool {
        self.connection.is_client()
    }

    fn open(&mut self, port: &mut Port<'_>) -> Result<(), ConnectionEnd> {
        port.watch(&self.socket, 0, self.watched)?;
        self.connection.open(&mut self.out, port)
    }

    fn ready(&mut self, ready: Ready, port: &mut Port<'_>) -> Result<(), ConnectionEnd> {
        if ready.hangup && !self.watched.read {
            return Err(ConnectionEnd::Left);
        }
        if ready.readable && self.watched.read {
            let end = self.receive(port);
            if end.is_err() {
                // A last message to the client, if it still reads.
                let _ = self.send(port);
                return end;
            }
        }
        Ok(())
    }

    fn reply(&mut self, reply: &Reply, port: &mut Port<'_>) -> Result<(), ConnectionEnd> {
        let end = self.connection.reply(reply, &mut self.out, port);
        if end.is_err() {
            let _ = self.send(port);
        }
        end
    }

    fn flush(&mut self, port: &mut Port<'_>) -> Result<(), ConnectionEnd> {
        self.send(port)?;
        port.load.unsent = self.out.memory() as u64;
        self.resume(port)?;
        self.send(port)?;
        let unsent = self.out.len();
        port.load.unsent = self.out.memory() as u64;
        let wanted = Interest {
            read: !self.stalled && unsent < FULL,
            write: unsent > 0,
        };
        if wanted != self.watched {
            self.watched = wanted;
            port.rewatch(&self.socket, 0, wanted)?;
        }
        Ok(())
    }

    fn tick(&mut self, port: &mut Port<'_>) -> Result<(), ConnectionEnd> {
        self.connection.tick(&mut self.out, port)
    }

    fn notice(
        &mut self,
        drive: usize,
        notice: Notice,
        port: &mut Port<'_>,
    ) -> Result<(), ConnectionEnd> {
        self.connection.notice(drive, notice, &mut self.out, port)
    }

    fn rung(&mut self, port: &mut Port<'_>) -> Result<(), ConnectionEnd> {
        self.connection.rung(&mut self.out, port)
    }
}
