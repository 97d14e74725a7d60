//! What stands between front ends and the rest of the server.
//!
//! A [`Front`] makes an [`Endpoint`] of each connection that comes in. The event loop tells an endpoint what has
//! happened and hands it a [`Port`], through which it submits commands, watches file descriptors and rings other
//! endpoints. An error ends that endpoint with a logged reason, never the server. An endpoint that is gone while
//! commands are in flight hears nothing more of them.

use std::os::fd::{AsFd, OwnedFd};

use model::Time;
use rustix::event::epoll;

use crate::clock::{Clock, Wall};
use workload::faults::{Fault, Target, Timing};

use crate::lateness::Lateness;
use crate::limits::Limits;
use crate::served::{Reply, Request, Served};

/// A connected socket, not blocking.
pub type Socket = OwnedFd;

/// Why a connection ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ending {
    /// The client went, or said that it would.
    Left,
    /// The client broke the rules: logged.
    Broke(String),
    /// Something failed here or on the way: logged.
    Failed(String),
}

impl Ending {
    /// The client broke the rules in this way.
    pub fn broke(how: impl Into<String>) -> Ending {
        Ending::Broke(how.into())
    }
}

impl From<rustix::io::Errno> for Ending {
    fn from(error: rustix::io::Errno) -> Ending {
        use rustix::io::Errno;
        match error {
            Errno::CONNRESET | Errno::PIPE => Ending::Left,
            _ => Ending::Failed(error.to_string()),
        }
    }
}

/// What happened to a file descriptor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ready {
    /// Which: the key given to [`Port::watch`]; the socket of a [`crate::Stream`] is 0.
    pub key: u32,
    /// Bytes, or the end of them, can be read.
    pub readable: bool,
    /// There is room to write.
    pub writable: bool,
    /// The other side has gone, both ways.
    pub hangup: bool,
}

/// What an endpoint wants to hear of a file descriptor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interest {
    /// That it can be read.
    pub read: bool,
    /// That it can be written.
    pub write: bool,
}

impl Interest {
    /// Reading only.
    pub const READ: Interest = Interest {
        read: true,
        write: false,
    };
}

/// Something that happened to a drive, for all who are connected to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Notice {
    /// SMART's critical warning bits, temperature or spare have changed.
    Health,
    /// The namespace's format, size or identify data have changed.
    Namespace,
    /// The drive has lost its power and come back: commands in flight were lost, and the volatile cache.
    PowerCut,
}

/// One connection, as the event loop sees it.
///
/// A byte-stream protocol does not implement this but [`crate::Connection`], inside a [`crate::Stream`].
pub trait Endpoint {
    /// Called once: the place to watch file descriptors.
    ///
    /// # Errors
    /// Why the connection cannot be served.
    fn open(&mut self, port: &mut Port<'_>) -> Result<(), Ending>;

    /// A watched descriptor is ready (level-triggered; it may not be after all).
    ///
    /// # Errors
    /// The end of this connection.
    fn ready(&mut self, ready: Ready, port: &mut Port<'_>) -> Result<(), Ending>;

    /// One of its commands has completed. Data moves now: [`Served::read`], [`Served::write`].
    ///
    /// # Errors
    /// The end of this connection.
    fn reply(&mut self, reply: &Reply, port: &mut Port<'_>) -> Result<(), Ending>;

    /// All that was ready, or had completed, has been handed over: send what was gathered.
    ///
    /// # Errors
    /// The end of this connection.
    fn flush(&mut self, port: &mut Port<'_>) -> Result<(), Ending>;

    /// While the loop spins: looks for work that no descriptor announces (rings in shared memory). Whether there was.
    ///
    /// # Errors
    /// The end of this connection.
    fn poll(&mut self, _port: &mut Port<'_>) -> Result<bool, Ending> {
        Ok(false)
    }

    /// Whether it is a user of drives, which the fault `drop` cuts off; not so those that watch or control.
    fn is_client(&self) -> bool {
        true
    }

    /// Whether [`Endpoint::poll`] and [`Endpoint::park`] do anything.
    fn polls(&self) -> bool {
        false
    }

    /// The loop is about to sleep: ask the client to announce new work. Whether some has come in the meantime.
    ///
    /// # Errors
    /// The end of this connection.
    fn park(&mut self, _port: &mut Port<'_>) -> Result<bool, Ending> {
        Ok(false)
    }

    /// About every 100 ms while anything is connected: keep-alive and the like.
    ///
    /// # Errors
    /// The end of this connection.
    fn tick(&mut self, _port: &mut Port<'_>) -> Result<(), Ending> {
        Ok(())
    }

    /// Something happened to the drive of this index.
    ///
    /// # Errors
    /// The end of this connection.
    fn notice(
        &mut self,
        _drive: usize,
        _notice: Notice,
        _port: &mut Port<'_>,
    ) -> Result<(), Ending> {
        Ok(())
    }

    /// Another endpoint called [`Port::ring`].
    ///
    /// # Errors
    /// The end of this connection.
    fn rung(&mut self, _port: &mut Port<'_>) -> Result<(), Ending> {
        Ok(())
    }
}

/// Makes endpoints of connections. What the connections of one front share (a subsystem's controllers) it gives them
/// in an `Rc<RefCell<_>>`: all run in one thread.
pub trait Front {
    /// What it is, for messages: `NBD`, `NVMe/TCP`.
    fn name(&self) -> &'static str;

    /// A connection has come in from `peer`.
    ///
    /// # Errors
    /// Why it is refused.
    fn accept(&mut self, socket: Socket, peer: &str) -> Result<Box<dyn Endpoint>, String>;
}

/// Payload of a command that needs little memory.
const SMALL: u64 = 128 << 10;

/// What an endpoint has under way.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Load {
    pub(crate) commands: u32,
    pub(crate) bytes: u64,
    pub(crate) buffered: u64,
    /// Memory of replies that have not been sent.
    pub(crate) unsent: u64,
    /// Requests that came in and have not been taken.
    pub(crate) untaken: u64,
    /// Bytes that have come in and gone out so far.
    pub(crate) moved: u64,
    /// The last that asked for room was refused it.
    pub(crate) refused: bool,
    /// It was refused room because of what others have, since that was looked at.
    pub(crate) starved: bool,
}

impl Load {
    /// Bytes of memory it may stand for.
    #[inline]
    pub(crate) fn held(&self) -> u64 {
        self.bytes + self.buffered + self.unsent + self.untaken
    }

    /// Of it what stays until the client reads, or sends the rest.
    pub(crate) fn waits_for_client(&self) -> u64 {
        self.buffered + self.unsent
    }

    /// The buffers are gone; how much was in them.
    pub(crate) fn give_up(&mut self) -> u64 {
        let buffers = self.held() - self.bytes;
        (self.buffered, self.unsent, self.untaken) = (0, 0, 0);
        buffers
    }
}

/// What endpoints ask of the event loop, done when they have returned.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Bell {
    Ring(u32),
    Notice(usize, Notice),
    Fault(Target, Fault),
    Later(Wall, Target, Fault),
}

/// An endpoint's way to the drives and the event loop.
pub struct Port<'a> {
    pub(crate) drives: &'a mut [Served],
    pub(crate) lateness: &'a Lateness,
    pub(crate) clock: &'a Clock,
    pub(crate) limits: &'a Limits,
    pub(crate) epoll: &'a OwnedFd,
    pub(crate) wall: Wall,
    pub(crate) me: u32,
    pub(crate) load: &'a mut Load,
    /// Bytes that all others have in flight.
    pub(crate) others: u64,
    pub(crate) bells: &'a mut Vec<Bell>,
    pub(crate) scratch: &'a mut Vec<u8>,
}

impl Port<'_> {
    /// This endpoint's number, for [`Port::ring`]. It may be used again after the endpoint has ended.
    pub fn me(&self) -> u32 {
        self.me
    }

    /// How many drives are served.
    pub fn drives(&self) -> usize {
        self.drives.len()
    }

    /// The drive of this index, from 0 to [`Port::drives`].
    #[inline]
    pub fn drive(&mut self, index: usize) -> &mut Served {
        &mut self.drives[index]
    }

    /// Wall time at which what is being handled was learnt.
    pub fn wall(&self) -> Wall {
        self.wall
    }

    /// Clock of the server: speed, and model time from wall time.
    pub fn clock(&self) -> &Clock {
        self.clock
    }

    /// Whether another command may be taken now, one that needs little memory: see [`Port::room_for`].
    #[inline]
    pub fn room(&mut self) -> bool {
        self.room_for(0)
    }

    /// Whether another command with so many bytes of payload may be taken now. Ask before taking a request from the
    /// input; if not, leave it there: it is offered again when there is room, and now and then. A small one is always
    /// taken from who has nothing under way, unless very many have done so.
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

    /// Whether the last that asked for room was refused it.
    pub(crate) fn refused(&self) -> bool {
        self.load.refused
    }

    /// Counts bytes of payload that are being received for a command not yet submitted; give the negative back when
    /// it is submitted or given up. Counted against [`Port::room`].
    pub fn receiving(&mut self, bytes: i64) {
        self.load.buffered = self.load.buffered.saturating_add_signed(bytes);
    }

    /// Hands a command to the drive of this index. Its reply comes to this endpoint, never before this call returns.
    /// A command that is out of range or that the drive cannot take gets a reply that says so.
    #[inline]
    pub fn submit(&mut self, drive: usize, request: Request) {
        self.submit_with(drive, request, &mut |_| true);
    }

    /// The same, with the data of a write for whoever has to have them now ([`Served::submit_with`]).
    #[inline]
    pub fn submit_with(
        &mut self,
        drive: usize,
        request: Request,
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

    /// How late replies have been, for those who show it.
    pub fn lateness(&self) -> &Lateness {
        self.lateness
    }

    /// The time of the model of this drive.
    pub fn model_time(&self, drive: usize) -> Time {
        if self.clock.free() {
            self.drives[drive].now()
        } else {
            self.clock.arrival(self.wall).max(self.drives[drive].now())
        }
    }

    /// Calls [`Endpoint::rung`] of that endpoint, if it exists, after this endpoint has returned.
    pub fn ring(&mut self, endpoint: u32) {
        self.bells.push(Bell::Ring(endpoint));
    }

    /// Tells all endpoints, this one too, after it has returned.
    pub fn notify(&mut self, drive: usize, notice: Notice) {
        self.bells.push(Bell::Notice(drive, notice));
    }

    /// Lets a fault happen, those that end connections after this endpoint has returned; all endpoints are told.
    ///
    /// # Errors
    /// Why the drive or member cannot have it.
    pub fn fault(&mut self, target: Target, fault: Fault) -> Result<(), String> {
        let drive = target.drive;
        let now = self.model_time(drive);
        match (target.member, fault) {
            (None, Fault::Drop | Fault::PowerCut) => {
                self.bells.push(Bell::Fault(target, fault));
                return Ok(());
            }
            (None, fault) => self.drives[drive].suffer(now, &fault)?,
            (Some(member), fault) => self.drives[drive].member_suffers(now, member, &fault)?,
        }
        self.notify(drive, Notice::Health);
        Ok(())
    }

    /// As [`Port::fault`], at this time or count, which begins now.
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
                self.bells.push(Bell::Later(at, target, fault));
                Ok(())
            }
        }
    }

    /// Begins to watch a descriptor; [`Ready::key`] will be `key`. It must be given up ([`Port::unwatch`] or closing
    /// it) by the endpoint.
    ///
    /// # Errors
    /// Those of `epoll_ctl`.
    pub fn watch(&self, fd: impl AsFd, key: u32, interest: Interest) -> Result<(), Ending> {
        let data = epoll::EventData::new_u64(u64::from(self.me) << 32 | u64::from(key));
        Ok(epoll::add(self.epoll, fd, data, flags(interest))?)
    }

    /// Changes what is watched for.
    ///
    /// # Errors
    /// Those of `epoll_ctl`.
    pub fn rewatch(&self, fd: impl AsFd, key: u32, interest: Interest) -> Result<(), Ending> {
        let data = epoll::EventData::new_u64(u64::from(self.me) << 32 | u64::from(key));
        Ok(epoll::modify(self.epoll, fd, data, flags(interest))?)
    }

    /// Stops watching a descriptor.
    ///
    /// # Errors
    /// Those of `epoll_ctl`.
    pub fn unwatch(&self, fd: impl AsFd) -> Result<(), Ending> {
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
