//! A connection without socket, clock or event loop: for tests, fuzzing and benchmarks of protocols.
//!
//! Commands complete at once, in the order in which the model completes them. An endpoint that is not a byte stream
//! has its descriptors, but no event loop either.

use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

use rustix::event::{Timespec, epoll};

use crate::clock::Clock;
use crate::lateness::Lateness;
use crate::limits::ConnectionLimits;
use crate::outbox::Outbox;
use crate::port::{ConnectionEnd, Endpoint, Load, LoopRequest, Port, Ready};
use crate::served::{Reply, ServedDevice};
use crate::stream::Connection;

/// A connection and its drives.
pub struct Offline<C> {
    /// The drives of the connection.
    pub drives: Vec<ServedDevice>,
    /// The connection under test.
    pub connection: C,
    out: Outbox,
    left: Vec<u8>,
    clock: Clock,
    limits: ConnectionLimits,
    lateness: Lateness,
    epoll: OwnedFd,
    load: Load,
    bells: Vec<LoopRequest>,
    scratch: Vec<u8>,
}

impl<C: Connection> Offline<C> {
    /// Opens the connection; [`Offline::send`] returns its greeting first.
    ///
    /// # Errors
    /// An error of the connection, or no descriptors are left.
    pub fn new(
        drives: Vec<ServedDevice>,
        connection: C,
        limits: ConnectionLimits,
    ) -> Result<Offline<C>, ConnectionEnd> {
        let mut offline = Offline::bare(drives, connection, limits)?;
        offline.with_port(|connection, out, port| connection.open(out, port))?;
        Ok(offline)
    }

    /// Passes bytes to the connection, completes all its commands, and returns its output.
    ///
    /// # Errors
    /// The end of the connection; its previous output is lost.
    pub fn send(&mut self, bytes: &[u8]) -> Result<Vec<u8>, ConnectionEnd> {
        self.left.extend_from_slice(bytes);
        loop {
            let input = std::mem::take(&mut self.left);
            let used =
                self.with_port(|connection, out, port| connection.input(&input, out, port))?;
            self.left.extend_from_slice(&input[used..]);
            if !self.replies(|offline, reply| {
                offline.with_port(|connection, out, port| connection.reply(reply, out, port))
            })? {
                break;
            }
        }
        for bell in std::mem::take(&mut self.bells) {
            match bell {
                LoopRequest::Fault(..) | LoopRequest::Later(..) => {}
                LoopRequest::Ring(_) => {
                    self.with_port(|connection, out, port| connection.rung(out, port))?
                }
                LoopRequest::Notice(drive, notice) => self.with_port(|connection, out, port| {
                    connection.notice(drive, notice, out, port)
                })?,
            }
        }
        self.connection.sending(&mut self.out);
        let said = self.out.unsent().to_vec();
        self.out.sent(said.len());
        Ok(said)
    }
}

impl Offline<Box<dyn Endpoint>> {
    /// Returns an opened endpoint that is not a byte stream.
    ///
    /// # Errors
    /// An error of the endpoint, or no descriptors are left.
    pub fn of_endpoint(
        drives: Vec<ServedDevice>,
        endpoint: Box<dyn Endpoint>,
        limits: ConnectionLimits,
    ) -> Result<Offline<Box<dyn Endpoint>>, ConnectionEnd> {
        let mut offline = Offline::bare(drives, endpoint, limits)?;
        offline.with_port(|endpoint, _, port| endpoint.open(port))?;
        Ok(offline)
    }

    /// Runs a turn of the event loop: takes ready input, and completes all commands.
    ///
    /// # Errors
    /// The end of the endpoint.
    pub fn turn(&mut self) -> Result<(), ConnectionEnd> {
        let mut events = [const { MaybeUninit::<epoll::Event>::uninit() }; 16];
        let (events, _) = epoll::wait(&self.epoll, &mut events, Some(&Timespec::default()))?;
        let keys: Vec<u32> = events.iter().map(|event| event.data.u64() as u32).collect();
        for key in keys {
            let ready = Ready {
                key,
                readable: true,
                writable: false,
                hangup: false,
            };
            self.with_port(|endpoint, _, port| endpoint.ready(ready, port))?;
        }
        self.with_port(|endpoint, _, port| endpoint.poll(port))?;
        loop {
            if !self.replies(|offline, reply| {
                offline.with_port(|endpoint, _, port| endpoint.reply(reply, port))
            })? {
                return Ok(());
            }
            self.with_port(|endpoint, _, port| endpoint.flush(port))?;
        }
    }
}

impl<C> Offline<C> {
    /// Returns the state before any input.
    fn bare(
        drives: Vec<ServedDevice>,
        connection: C,
        limits: ConnectionLimits,
    ) -> Result<Offline<C>, ConnectionEnd> {
        Ok(Offline {
            drives,
            connection,
            out: Outbox::default(),
            left: Vec::new(),
            clock: Clock::new(0.0),
            limits,
            lateness: Lateness::default(),
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            load: Load::default(),
            bells: Vec::new(),
            scratch: Vec::new(),
        })
    }

    /// Completes all commands and passes their replies on. Returns whether there were any.
    fn replies(
        &mut self,
        mut reply_to: impl FnMut(&mut Offline<C>, &Reply) -> Result<(), ConnectionEnd>,
    ) -> Result<bool, ConnectionEnd> {
        let mut replies = Vec::new();
        let mut any = false;
        for index in 0..self.drives.len() {
            self.drives[index].complete_all(&mut replies);
            any |= !replies.is_empty();
            for mut reply in replies.drain(..) {
                self.load.commands -= 1;
                self.load.bytes -= u64::from(reply.bytes);
                self.drives[index].hand_over(&mut reply);
                let done = reply_to(self, &reply);
                self.drives[index].take_back(&reply);
                done?;
            }
        }
        Ok(any)
    }

    /// Makes the model's time advance with wall-clock time from now, multiplied by `speed`; commands still complete at
    /// once.
    pub fn at_speed(&mut self, speed: f64) {
        self.clock = Clock::new(speed);
    }

    /// Calls the connection with a port.
    ///
    /// # Errors
    /// The error of the call.
    pub fn with_port<T>(
        &mut self,
        what: impl FnOnce(&mut C, &mut Outbox, &mut Port<'_>) -> Result<T, ConnectionEnd>,
    ) -> Result<T, ConnectionEnd> {
        let mut port = Port {
            drives: &mut self.drives,
            lateness: &self.lateness,
            clock: &self.clock,
            limits: &self.limits,
            epoll: &self.epoll,
            wall: self.clock.wall(),
            me: 0,
            load: &mut self.load,
            others: 0,
            bells: &mut self.bells,
            scratch: &mut self.scratch,
        };
        what(&mut self.connection, &mut self.out, &mut port)
    }
}
