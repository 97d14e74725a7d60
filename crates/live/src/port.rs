//! Interface between front ends and the rest of the server.
//!
//! A [`Front`] makes an [`Endpoint`] of each incoming connection. The event loop calls the endpoint on events and
//! passes it a [`Port`], through which the endpoint submits commands, watches file descriptors and wakes other
//! endpoints. An error ends that endpoint with a logged reason, never the server. An endpoint that ends while commands
//! are in flight is not called for them any more.

use std::os::fd::{AsFd, OwnedFd};

use model::Time;
use rustix::event::epoll;

use crate::clock::{Clock, Wall};
use workload::faults::{Fault, Target, Timing};

use crate::lateness::Lateness;
use crate::limits::ConnectionLimits;
use crate::served::{IoRequest, Reply, ServedDevice};

/// A connected, non-blocking socket.
pub type Socket = OwnedFd;

/// Reason for the end of a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ConnectionEnd {
    /// The client disconnected, or announced it.
    Left,
    /// The client violated the protocol: logged.
    Broke(String),
    /// An error here or in transit: logged.
    Failed(String),
}

impl ConnectionEnd {
    /// Returns the ending for this protocol violation.
    pub fn broke(how: impl Into<String>) -> ConnectionEnd {
        ConnectionEnd::Broke(how.into())
    }
}

impl From<rustix::io::Errno> for ConnectionEnd {
    fn from(error: rustix::io::Errno) -> ConnectionEnd {
        use rustix::io::Errno;
        match error {
            Errno::CONNRESET | Errno::PIPE => ConnectionEnd::Left,
            _ => ConnectionEnd::Failed(error.to_string()),
        }
    }
}

/// Events of a file descriptor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ready {
    /// The key given to [`Port::watch`]; the socket of a [`crate::Stream`] has key 0.
    pub key: u32,
    /// Whether bytes, or the end of the input, can be read.
    pub readable: bool,
    /// Whether there is space to write.
    pub writable: bool,
    /// Whether the other side has closed both directions.
    pub hangup: bool,
}

/// Events of a file descriptor that an endpoint wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interest {
    /// Whether the caller waits until the socket is readable.
    pub read: bool,
    /// Whether the caller waits until the socket is writable.
    pub write: bool,
}

impl Interest {
    /// Only readability.
    pub const READ: Interest = Interest {
        read: true,
        write: false,
    };
}

/// An event of a drive, for all endpoints that are connected to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Notice {
    /// SMART's critical warning bits, temperature or spare have changed.
    Health,
    /// The namespace's format, size or identify data have changed.
    Namespace,
    /// The drive has lost power and restarted: commands in flight and the volatile cache were lost.
    PowerCut,
}

/// A connection, as the event loop sees it.
///
/// A byte-stream protocol implements [`crate::Connection`] instead, inside a [`crate::Stream`].
pub trait Endpoint {
    /// Called once, to watch file descriptors.
    ///
    /// # Errors
    /// The reason why the connection cannot be served.
    fn open(&mut self, port: &mut Port<'_>) -> Result<(), ConnectionEnd>;

    /// Called when a watched descriptor is ready (level-triggered; it may turn out not to be).
    ///
    /// # Errors
    /// The end of this connection.
    fn ready(&mut self, ready: Ready, port: &mut Port<'_>) -> Result<(), ConnectionEnd>;

    /// Called when one of its commands has completed. Data is transferred now: [`ServedDevice::read`], [`ServedDevice::write`].
    ///
    /// # Errors
    /// The end of this connection.
    fn reply(&mut self, reply: &Reply, port: &mut Port<'_>) -> Result<(), ConnectionEnd>;

    /// Called after all ready input and completions have been passed on: sends the collected output.
    ///
    /// # Errors
    /// The end of this connection.
    fn flush(&mut self, port: &mut Port<'_>) -> Result<(), ConnectionEnd>;

    /// Called while the loop spins: checks for work that no descriptor announces (rings in shared memory). Returns
    /// whether there was any.
    ///
    /// # Errors
    /// The end of this connection.
    fn poll(&mut self, _port: &mut Port<'_>) -> Result<bool, ConnectionEnd> {
        Ok(false)
    }

    /// Checks whether it is a client of drives, which the fault `drop` disconnects; monitoring and control connections
    /// are not.
    fn is_client(&self) -> bool {
        true
    }

    /// Checks whether [`Endpoint::poll`] and [`Endpoint::park`] do anything.
    fn polls(&self) -> bool {
        false
    }

    /// Called before the loop sleeps: asks the client to announce new work. Returns whether some has arrived in the
    /// meantime.
    ///
    /// # Errors
    /// The end of this connection.
    fn park(&mut self, _port: &mut Port<'_>) -> Result<bool, ConnectionEnd> {
        Ok(false)
    }

    /// Called about every 100 ms while anything is connected: keep-alive and similar checks.
    ///
    /// # Errors
    /// The end of this connection.
    fn tick(&mut self, _port: &mut Port<'_>) -> Result<(), ConnectionEnd> {
        Ok(())
    }

    /// Called after an event of the drive with this index.
    ///
    /// # Errors
    /// The end of this connection.
    fn notice(
        &mut self,
        _drive: usize,
        _notice: Notice,
        _port: &mut Port<'_>,
    ) -> Result<(), ConnectionEnd> {
        Ok(())
    }

    /// Called after another endpoint called [`Port::ring`].
    ///
    /// # Errors
    /// The end of this connection.
    fn rung(&mut self, _port: &mut Port<'_>) -> Result<(), ConnectionEnd> {
        Ok(())
    }
}

/// Makes endpoints of connections. State that the connections of one front end share (a subsystem's controllers) is in
/// an `Rc<RefCell<_>>`: all run in one thread.
pub trait Front {
    /// Returns the name for messages: `NBD`, `NVMe/TCP`.
    fn name(&self) -> &'static str;

    /// Called for a new connection from `peer`.
    ///
    /// # Errors
    /// The reason why it is rejected.
    fn accept(&mut self, socket: Socket, peer: &str) -> Result<Box<dyn Endpoint>, String>;
}

/// Maximum payload of a small command in bytes.
const SMALL: u64 = 128 << 10;

/// Load of an endpoint.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Load {
    pub(crate) commands: u32,
    pub(crate) bytes: u64,
    pub(crate) buffered: u64,
    /// Memory of unsent replies.
    pub(crate) unsent: u64,
    /// Received bytes of requests that have not been taken.
    pub(crate) untaken: u64,
    /// Bytes received and sent so far.
    pub(crate) moved: u64,
    /// Whether the last request for space was rejected.
    pub(crate) refused: bool,
    /// Whether space was refused because of other endpoints since the last check.
    pub(crate) starved: bool,
}

impl Load {
    /// Returns the bytes of memory that are attributed to it.
    #[inline]
    pub(crate) fn held(&self) -> u64 {
        self.bytes + self.buffered + self.unsent + self.untaken
    }

    /// Returns the part of this memory that is held until the client reads, or sends the rest.
    pub(crate) fn waits_for_client(&self) -> u64 {
        self.buffered + self.unsent
    }

    /// Records that the buffers are gone, and returns how much was in them.
    pub(crate) fn give_up(&mut self) -> u64 {
        let buffers = self.held() - self.bytes;
        (self.buffered, self.unsent, self.untaken) = (0, 0, 0);
        buffers
    }
}

/// Requests of endpoints to the event loop, executed after the endpoint has returned.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum LoopRequest {
    Ring(u32),
    Notice(usize, Notice),
    Fault(Target, Fault),
    Later(Wall, Target, Fault),
}

/// An endpoint's access to the drives and the event loop.
pub struct Port<'a> {
    pub(crate) drives: &'a mut [ServedDevice],
    pub(crate) lateness: &'a Lateness,
    pub(crate) clock: &'a Clock,
    pub(crate) limits: &'a ConnectionLimits,
    pub(crate) epoll: &'a OwnedFd,
    pub(crate) wall: Wall,
    pub(crate) me: u32,
    pub(crate) load: &'a mut Load,
    /// Bytes in flight over all other endpoints.
    pub(crate) others: u64,
    pub(crate) bells: &'a mut Vec<LoopRequest>,
    pub(crate) scratch: &'a mut Vec<u8>,
}

impl Port<'_> {
    /// Returns this endpoint's number, for [`Port::ring`]. It may be reused after the endpoint has ended.
    pub fn me(&self) -> u32 {
        self.me
    }

    /// Returns the number of served drives.
    pub fn drives(&self) -> usize {
        self.drives.len()
    }

    /// Returns the drive with this index, from 0 to [`Port::drives`].
    #[inline]
    pub fn drive(&mut self, index: usize) -> &mut ServedDevice {
        &mut self.drives[index]
    }

    /// Returns the wall-clock time at which the current event was detected.
    pub fn wall(&self) -> Wall {
        self.wall
    }

    /// Returns the clock of the server: speed, and conversion of wall-clock to virtual time.
    pub fn clock(&self) -> &Clock {
        self.clock
    }

    /// Checks whether another small command may be taken now: see [`Port::room_for`].
    #[inline]
    pub fn room(&mut self) -> bool {
        self.room_for(0)
    }

    /// Checks whether another command with this payload may be taken now. Call it before taking a request from the
    /// input. If it returns false, leave the request there: it is offered again when there is space, and at intervals.
    /// A small command of an endpoint with nothing in flight is always accepted, unless very many endpoints have such
    /// commands.
    #[inline]
    pub fn room_for(&mut self, bytes: u64) -> bool {
        let (load, limits) = (&mut *self.load, self.limits);
        let all = load.held() + self.others;
        let idle = load.commands == 0 && load.waits_for_client() == 0;
        let of_its_own = idle || (load.commands < limits.commands && load.held() < limits.bytes);
        let of_all = all + bytes <= limits.total_bytes
            || (idle && self.others == 0)
            || (idle && bytes <= SMALL && all < limits.total_bytes + limits.reserve_bytes);
        load.starved |= of_its_own && !of_all;
        load.refused = !(of_its_own && of_all);
        !load.refused
    }

    /// Checks whether the last request for space was rejected.
    pub(crate) fn refused(&self) -> bool {
        self.load.refused
    }

    /// Counts payload bytes that are being received for a command not yet submitted; call it with the negative number
    /// when the command is submitted or dropped. The bytes count for [`Port::room`].
    pub fn receiving(&mut self, bytes: i64) {
        self.load.buffered = self.load.buffered.saturating_add_signed(bytes);
    }

    /// Submits a command to the drive with this index. Its reply is passed to this endpoint, never before this call
    /// returns. A command that is out of range or that the drive rejects gets a reply with that outcome.
    #[inline]
    pub fn submit(&mut self, drive: usize, request: IoRequest) {
        self.submit_with(drive, request, &mut |_| true);
    }

    /// Submits a command, with a callback for the data of a write that is needed now ([`ServedDevice::submit_with`]).
    #[inline]
    pub fn submit_with(
        &mut self,
        drive: usize,
        request: IoRequest,
        fill: &mut dyn FnMut(&mut [u8]) -> bool,
    ) {
        self.load.commands += 1;
        self.load.bytes += u64::from(request.bytes);
        let token = u64::from(self.me) << 32 | u64::from(request.tag);
        let drive = &mut self.drives[drive];
        let now = if self.clock.free() {
            drive.now()
        } else {
            self.clock.arrival(self.wall)
        };
        drive.submit_with(now, token, &request, fill);
    }

    /// Returns the lateness of replies, for display.
    pub fn lateness(&self) -> &Lateness {
        self.lateness
    }

    /// Returns the time of this drive's model.
    pub fn model_time(&self, drive: usize) -> Time {
        if self.clock.free() {
            self.drives[drive].now()
        } else {
            self.clock.arrival(self.wall).max(self.drives[drive].now())
        }
    }

    /// Calls [`Endpoint::rung`] of that endpoint, if it exists, after this endpoint has returned.
    pub fn ring(&mut self, endpoint: u32) {
        self.bells.push(LoopRequest::Ring(endpoint));
    }

    /// Notifies all endpoints, including this one, after it has returned.
    pub fn notify(&mut self, drive: usize, notice: Notice) {
        self.bells.push(LoopRequest::Notice(drive, notice));
    }

    /// Injects a fault; faults that end connections happen after this endpoint has returned. All endpoints are
    /// notified.
    ///
    /// # Errors
    /// The reason why the drive or member cannot have the fault.
    pub fn fault(&mut self, target: Target, fault: Fault) -> Result<(), String> {
        let drive = target.drive;
        let now = self.model_time(drive);
        match (target.member, fault) {
            (None, Fault::Drop | Fault::PowerCut) => {
                self.bells.push(LoopRequest::Fault(target, fault));
                return Ok(());
            }
            (None, fault) => self.drives[drive].suffer(now, &fault)?,
            (Some(member), fault) => self.drives[drive].member_suffers(now, member, &fault)?,
        }
        self.notify(drive, Notice::Health);
        Ok(())
    }

    /// Injects a fault as [`Port::fault`] does, at this time or count, which begins now.
    ///
    /// # Errors
    /// As [`Port::fault`].
    pub fn fault_when(&mut self, when: Timing, target: Target, fault: Fault) -> Result<(), String> {
        let drive = &mut self.drives[target.drive];
        match when {
            Timing::AtOnce => self.fault(target, fault),
            Timing::Count(trigger) => drive.arm(target.member, trigger, fault),
            Timing::At(span) => {
                match target.member {
                    None => drive.could_suffer(&fault)?,
                    Some(member) => drive.member_could_suffer(member, &fault)?,
                }
                let at = self.wall.plus(span);
                self.bells.push(LoopRequest::Later(at, target, fault));
                Ok(())
            }
        }
    }

    /// Begins to watch a descriptor; [`Ready::key`] will be `key`. The endpoint must stop watching ([`Port::unwatch`]
    /// or closing the descriptor).
    ///
    /// # Errors
    /// Errors of `epoll_ctl`.
    pub fn watch(&self, fd: impl AsFd, key: u32, interest: Interest) -> Result<(), ConnectionEnd> {
        let data = epoll::EventData::new_u64(u64::from(self.me) << 32 | u64::from(key));
        Ok(epoll::add(self.epoll, fd, data, flags(interest))?)
    }

    /// Changes the watched events.
    ///
    /// # Errors
    /// Errors of `epoll_ctl`.
    pub fn rewatch(
        &self,
        fd: impl AsFd,
        key: u32,
        interest: Interest,
    ) -> Result<(), ConnectionEnd> {
        let data = epoll::EventData::new_u64(u64::from(self.me) << 32 | u64::from(key));
        Ok(epoll::modify(self.epoll, fd, data, flags(interest))?)
    }

    /// Stops watching a descriptor.
    ///
    /// # Errors
    /// Errors of `epoll_ctl`.
    pub fn unwatch(&self, fd: impl AsFd) -> Result<(), ConnectionEnd> {
        Ok(epoll::delete(self.epoll, fd)?)
    }
}

fn flags(interest: Interest) -> epoll::EventFlags {
    let mut flags = epoll::EventFlags::empty();
    if interest.read {
        flags |= epoll::EventFlags::IN;
    }
    if interest.write {
        flags |= epoll::EventFlags::OUT;
    }
    flags
}
