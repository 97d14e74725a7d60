//! A byte stream as an endpoint: sockets, buffers and flow control here, the protocol in a [`Connection`].
//!
//! Input is read into one buffer that all connections share; what a connection leaves (half a header, or requests for
//! which there is no room) is kept until more comes or replies have gone. While a client does not take its replies,
//! nothing more is read from it: it holds up only itself.

use rustix::io::Errno;
use rustix::net::{SendFlags, send};

use crate::outbox::Outbox;
use crate::port::{Ending, Endpoint, Interest, Notice, Port, Ready, Socket};
use crate::served::Reply;

/// Bytes read at a time.
const READ: usize = 256 << 10;

/// Unsent bytes from which on nothing more is read.
const FULL: usize = 4 << 20;

/// Memory that is kept for what a connection leaves: half a head is seldom more.
const KEEP: usize = 4096;

/// A protocol over a byte stream, without the socket: a state machine that can be tested and fuzzed by itself.
pub trait Connection {
    /// The client has connected: the place for a greeting.
    ///
    /// # Errors
    /// The end of this connection.
    fn open(&mut self, _out: &mut Outbox, _port: &mut Port<'_>) -> Result<(), Ending> {
        Ok(())
    }

    /// Bytes that came in, with those left over from before; returns how many of them were used. The rest is offered
    /// again with more. Payload should be taken as it comes; only the beginning of a message may be left, at most
    /// some kilobytes, and requests for which there is no [`Port::room`].
    ///
    /// # Errors
    /// The end of this connection; what is in `out` is still sent as far as the socket takes it.
    fn input(
        &mut self,
        bytes: &[u8],
        out: &mut Outbox,
        port: &mut Port<'_>,
    ) -> Result<usize, Ending>;

    /// What is in `out` is about to be sent: the place to add what has been gathered elsewhere.
    #[inline]
    fn sending(&mut self, _out: &mut Outbox) {}

    /// See [`Endpoint::is_client`].
    fn is_client(&self) -> bool {
        true
    }

    /// A command of this connection has completed. Data moves now: [`crate::Served::read`] into `out.grow(..)`,
    /// [`crate::Served::write`] from what was received.
    ///
    /// # Errors
    /// The end of this connection.
    fn reply(&mut self, reply: &Reply, out: &mut Outbox, port: &mut Port<'_>)
    -> Result<(), Ending>;

    /// There is room, perhaps again, for requests that were taken but not submitted.
    ///
    /// # Errors
    /// The end of this connection.
    fn resume(&mut self, _out: &mut Outbox, _port: &mut Port<'_>) -> Result<(), Ending> {
        Ok(())
    }

    /// See [`Endpoint::tick`].
    ///
    /// # Errors
    /// The end of this connection.
    fn tick(&mut self, _out: &mut Outbox, _port: &mut Port<'_>) -> Result<(), Ending> {
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
    ) -> Result<(), Ending> {
        Ok(())
    }

    /// See [`Endpoint::rung`].
    ///
    /// # Errors
    /// The end of this connection.
    fn rung(&mut self, _out: &mut Outbox, _port: &mut Port<'_>) -> Result<(), Ending> {
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
    /// The connection has left requests for want of room.
    stalled: bool,
    watched: Interest,
}

impl<C: Connection> Stream<C> {
    /// A connection over this socket, which must not block.
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

    fn receive(&mut self, port: &mut Port<'_>) -> Result<(), Ending> {
        let mut bytes = std::mem::take(port.scratch);
        let kept = self.left.len();
        if bytes.len() < kept + READ {
            bytes.resize(kept + READ, 0);
        }
        bytes[..kept].copy_from_slice(&self.left);
        let end = match rustix::io::read(&self.socket, &mut bytes[kept..kept + READ]) {
            Ok(0) => Err(Ending::Left),
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

    /// Gives bytes to the connection and keeps what it leaves.
    fn offer(&mut self, bytes: &[u8], port: &mut Port<'_>) -> Result<(), Ending> {
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

    fn resume(&mut self, port: &mut Port<'_>) -> Result<(), Ending> {
        if self.stalled && port.room() && self.out.len() < FULL {
            let bytes = std::mem::take(&mut self.left);
            self.offer(&bytes, port)?;
        }
        if port.room() {
            self.connection.resume(&mut self.out, port)?;
        }
        Ok(())
    }

    fn send(&mut self, port: &mut Port<'_>) -> Result<(), Ending> {
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

    fn open(&mut self, port: &mut Port<'_>) -> Result<(), Ending> {
        port.watch(&self.socket, 0, self.watched)?;
        self.connection.open(&mut self.out, port)
    }

    fn ready(&mut self, ready: Ready, port: &mut Port<'_>) -> Result<(), Ending> {
        if ready.hangup && !self.watched.read {
            return Err(Ending::Left);
        }
        if ready.readable && self.watched.read {
            let end = self.receive(port);
            if end.is_err() {
                // A last word to the client, if it still listens.
                let _ = self.send(port);
                return end;
            }
        }
        Ok(())
    }

    fn reply(&mut self, reply: &Reply, port: &mut Port<'_>) -> Result<(), Ending> {
        let end = self.connection.reply(reply, &mut self.out, port);
        if end.is_err() {
            let _ = self.send(port);
        }
        end
    }

    fn flush(&mut self, port: &mut Port<'_>) -> Result<(), Ending> {
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

    fn tick(&mut self, port: &mut Port<'_>) -> Result<(), Ending> {
        self.connection.tick(&mut self.out, port)
    }

    fn notice(&mut self, drive: usize, notice: Notice, port: &mut Port<'_>) -> Result<(), Ending> {
        self.connection.notice(drive, notice, &mut self.out, port)
    }

    fn rung(&mut self, port: &mut Port<'_>) -> Result<(), Ending> {
        self.connection.rung(&mut self.out, port)
    }
}
