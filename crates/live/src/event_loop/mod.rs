//! The event loop: one thread that serves sockets, drives and deadlines.
//!
//! A turn of the loop has these steps. It waits until a descriptor is ready or a deadline is near. Endpoints take
//! their input. The drives run up to the present time, each event at its own time, so that lateness does not add up.
//! Replies are passed to the endpoints. Each endpoint with output sends it with one system call.
//!
//! The kernel wakes a sleeping thread some 30 to 100 us late. So the loop sleeps until shortly before a deadline and
//! spins for the rest. It also spins for a while after the last command, because the next one is often near. If the
//! server is idle, the loop sleeps.

mod faults;
mod listeners;
mod log;
mod log_limit;
mod own_work;
mod pace;
mod places;
mod schedule;
mod shortage;
mod switches;
mod wait;

use std::io;
use std::os::fd::OwnedFd;

use model::{Span, Time};
use rustix::event::epoll;

use listeners::Listeners;
use log::Log;
use own_work::VirtualDelay;
use pace::ClientPace;
use places::EndpointTable;
use schedule::Schedule;
pub use switches::{StopSwitch, Switches};

use crate::clock::{Clock, Wall};
use crate::lateness::Lateness;
use crate::limits::ConnectionLimits;
use crate::port::{ConnectionEnd, Endpoint, Front, LoopRequest, Notice, Port, Ready};
use crate::served::{Reply, ServedDevice};

/// Interval of ticks to endpoints.
const TICK: Span = Span::from_ms(100);

/// Interval at which the state of the drives is saved.
const SAVE: Span = Span::from_ms(10_000);

/// Numbers in epoll's data that are not endpoints.
const LISTENERS: u32 = u32::MAX;
const STOP: u32 = u32::MAX - 1;
const POWER: u32 = u32::MAX - 2;

/// Called at intervals with the state of the loop.
type Observer = Box<dyn FnMut(Wall, &[ServedDevice], &Lateness)>;

/// Serves drives to endpoints.
pub struct EventLoop {
    clock: Clock,
    limits: ConnectionLimits,
    epoll: OwnedFd,
    drives: Vec<ServedDevice>,
    listeners: Listeners,
    places: EndpointTable,
    bells: Vec<LoopRequest>,
    replies: Vec<Reply>,
    /// Deadline and latency of the replies that are being sent.
    leaving: Vec<(Wall, Span)>,
    lateness: Lateness,
    scratch: Vec<u8>,
    /// The clock's last value: read once for all input of one check, and once for all replies of one time.
    now: Wall,
    active: Wall,
    pace: ClientPace,
    /// Number of commands completed in the last turn.
    answered: usize,
    next_tick: Wall,
    next_save: Wall,
    schedule: Schedule,
    switches: Switches,
    log: Log,
    delays: VirtualDelay,
    observer: Option<(Span, Wall, Observer)>,
}

impl EventLoop {
    /// Returns a loop that serves `drives` by `clock`. `log` is called with a line for connections that were rejected
    /// or did not end normally; many such lines are summarised.
    ///
    /// # Errors
    /// No descriptors are left.
    pub fn new(
        drives: Vec<ServedDevice>,
        clock: Clock,
        limits: ConnectionLimits,
        log: Box<dyn FnMut(&str)>,
    ) -> io::Result<EventLoop> {
        EventLoop::with_switches(Switches::new()?, drives, clock, limits, log)
    }

    /// Returns a loop with these switches, which may already have been used.
    ///
    /// # Errors
    /// No descriptors are left.
    pub fn with_switches(
        switches: Switches,
        drives: Vec<ServedDevice>,
        clock: Clock,
        limits: ConnectionLimits,
        log: Box<dyn FnMut(&str)>,
    ) -> io::Result<EventLoop> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        for (socket, id) in [(&switches.stopped, STOP), (&switches.cut, POWER)] {
            let data = epoll::EventData::new_u64(u64::from(id) << 32);
            epoll::add(&epoll, socket, data, epoll::EventFlags::IN)?;
        }
        Ok(EventLoop {
            clock,
            limits,
            epoll,
            drives,
            listeners: Listeners::default(),
            places: EndpointTable::default(),
            bells: Vec::new(),
            replies: Vec::with_capacity(1024),
            leaving: Vec::with_capacity(1024),
            lateness: Lateness::default(),
            scratch: Vec::new(),
            now: Wall::default(),
            active: Wall::default(),
            pace: ClientPace::default(),
            answered: 0,
            next_tick: Wall::default(),
            next_save: Wall::default(),
            schedule: Schedule::default(),
            switches,
            log: Log::new(log),
            delays: VirtualDelay::default(),
            observer: None,
        })
    }

    /// Returns a switch that ends the loop.
    pub fn stopper(&self) -> StopSwitch {
        self.switches.stopper()
    }

    /// Returns the lateness of replies.
    pub fn lateness(&self) -> &Lateness {
        &self.lateness
    }

    /// Returns the drives.
    pub fn drives(&self) -> &[ServedDevice] {
        &self.drives
    }

    /// Returns the drives, which may be changed while the loop is not running.
    pub fn drives_mut(&mut self) -> &mut [ServedDevice] {
        &mut self.drives
    }

    /// Sets the transport's floor, which is subtracted from each later deadline.
    pub fn compensate(&mut self, floor: Span) {
        self.clock.compensate(floor);
    }

    /// Calls `observer` about every `every`.
    pub fn observe(&mut self, every: Span, observer: Observer) {
        self.observer = Some((every, Wall::default(), observer));
    }

    /// Adds a listening socket, whose connections become endpoints of this front end.
    ///
    /// # Errors
    /// Errors of `epoll_ctl`.
    pub fn listen(&mut self, socket: impl Into<OwnedFd>, front: Box<dyn Front>) -> io::Result<()> {
        self.listeners
            .add(&self.epoll, LISTENERS, socket.into(), front)
    }

    /// Adds an endpoint that does not belong to a listener.
    pub fn add(&mut self, name: String, endpoint: Box<dyn Endpoint>) {
        let id = self.places.add(name, endpoint);
        self.now = self.clock.wall();
        self.pace.welcome(self.now);
        self.call(id, |endpoint, port| endpoint.open(port));
    }

    /// Accepts a connection at the listener with this number.
    fn accept(&mut self, index: usize) {
        let newcomer = match self.listeners.accept(index) {
            Ok(None) => return,
            Ok(Some(newcomer)) => newcomer,
            Err(line) => {
                // No descriptors are left: the listener stays ready, so a retry must wait.
                self.log.refused(self.now, || line);
                std::thread::sleep(std::time::Duration::from_millis(10));
                return;
            }
        };
        let name = newcomer.name.clone();
        let admitted = if self.places.len() < self.limits.connections {
            self.listeners.admit(index, newcomer)
        } else {
            Err("too many connections".into())
        };
        match admitted {
            Ok(endpoint) => self.add(name, endpoint),
            Err(why) => self
                .log
                .refused(self.now, || format!("{name}: refused: {why}")),
        }
    }

    /// Serves until [`StopSwitch::stop`], then drains: commands in flight complete and their replies are sent.
    ///
    /// # Errors
    /// Errors of `epoll_wait`.
    pub fn run(&mut self) -> io::Result<()> {
        let mut events = Vec::with_capacity(256);
        if self.clock.free() {
            // Naps are short, and by default the kernel adds 50 us to each. The server also works if this setting
            // fails.
            let _ = std::fs::write("/proc/self/timerslack_ns", "1000");
        }
        loop {
            let timeout = if self.nap() {
                Some(Span::ZERO)
            } else {
                self.timeout(self.clock.wall())
            };
            if self.turn(&mut events, timeout)? {
                break;
            }
        }
        self.drain(&mut events)
    }

    /// Waits at most five seconds for commands in flight, without accepting new connections.
    fn drain(&mut self, events: &mut Vec<epoll::Event>) -> io::Result<()> {
        self.listeners.close(&self.epoll)?;
        epoll::delete(&self.epoll, &self.switches.stopped)?;
        let end = self.clock.wall().plus(Span::from_ms(5_000));
        while self.drives.iter().any(|drive| drive.in_flight() > 0) && self.clock.wall() < end {
            self.turn(events, Some(Span::ZERO))?;
        }
        for id in 0..self.places.numbers() {
            self.call(id, |endpoint, port| endpoint.flush(port));
        }
        self.complain(Wall::NEVER);
        self.log.sum_up();
        Ok(())
    }

    /// Returns how long the loop may sleep at `now`; `None` for ever.
    fn timeout(&mut self, now: Wall) -> Option<Span> {
        let deadline = self.deadline();
        let idle = now.since(self.active);
        let waits = if self.clock.free() {
            self.pace.spins(idle)
        } else {
            idle < self.limits.spin_after
        };
        let spins = waits || deadline <= now.plus(self.limits.spin_before);
        if spins || self.park() {
            return Some(Span::ZERO);
        }
        let wake = deadline.minus(self.limits.spin_before);
        let looks = self.places.len() > 0
            || self.log.some_left_out()
            || self.observer.is_some()
            || self.drives.iter().any(ServedDevice::works_alone)
            || self.drives.iter().any(ServedDevice::waits_for_room)
            || !self.schedule.is_empty();
        let wake = if looks {
            wake.min(self.next_tick)
        } else {
            wake
        };
        (wake != Wall::NEVER).then(|| wake.since(now))
    }

    fn deadline(&self) -> Wall {
        let next = self.drives.iter().map(ServedDevice::next_event).min();
        match next {
            None | Some(Time::NEVER) => Wall::NEVER,
            Some(at) => self.clock.deadline(at),
        }
    }

    /// Asks endpoints that poll to announce new work. Returns whether there is work already.
    fn park(&mut self) -> bool {
        let mut found = false;
        let mut index = 0;
        while let Some(id) = self.places.polling(index) {
            self.call(id, |endpoint, port| {
                found |= endpoint.park(port)?;
                Ok(())
            });
            index += 1;
        }
        found
    }

    /// Naps to collect commands if no client waits for the loop, see [`ClientPace`]. Returns whether it did.
    fn nap(&mut self) -> bool {
        let answered = std::mem::take(&mut self.answered);
        if answered == 0 || !self.clock.free() || self.places.any_polling() {
            return false;
        }
        let nap = self.pace.nap(self.active, answered);
        if let Some(nap) = nap {
            std::thread::sleep(nap);
        }
        nap.is_some()
    }

    /// Runs one turn. Returns whether the loop must stop.
    fn turn(&mut self, events: &mut Vec<epoll::Event>, timeout: Option<Span>) -> io::Result<bool> {
        // Without deadlines, a wait only ends at the next periodic check.
        wait::wait(&self.epoll, events, timeout, !self.clock.free())?;
        self.now = self.clock.wall();
        self.places.begin_turn();
        self.catch_up();
        let mut stop = false;
        for event in &*events {
            let (id, key) = ((event.data.u64() >> 32) as u32, event.data.u64() as u32);
            match id {
                STOP => stop = true,
                POWER => self.cut_power(),
                LISTENERS => self.accept(key as usize),
                _ => self.ready(id, key, event.flags),
            }
        }
        self.poll();
        self.serve();
        if self.now >= self.next_tick {
            self.tick(self.now);
        }
        Ok(stop)
    }

    fn ready(&mut self, id: u32, key: u32, flags: epoll::EventFlags) {
        let gone = epoll::EventFlags::HUP | epoll::EventFlags::ERR;
        let ready = Ready {
            key,
            readable: flags.intersects(epoll::EventFlags::IN | gone),
            writable: flags.contains(epoll::EventFlags::OUT),
            hangup: flags.intersects(gone),
        };
        self.alive();
        self.call(id, |endpoint, port| endpoint.ready(ready, port));
    }

    fn poll(&mut self) {
        let mut found = false;
        let mut index = 0;
        while let Some(id) = self.places.polling(index) {
            self.call(id, |endpoint, port| {
                found |= endpoint.poll(port)?;
                Ok(())
            });
            index += 1;
        }
        if found {
            self.alive();
        }
    }

    /// Records activity of a client.
    #[inline]
    fn alive(&mut self) {
        self.pace.came(self.now.since(self.active));
        self.active = self.now;
    }

    /// Runs the drives up to now and passes replies on, until nothing is due.
    fn serve(&mut self) {
        loop {
            let now = self.clock.wall();
            self.now = now;
            let mut replies = std::mem::take(&mut self.replies);
            let mut idle = true;
            for index in 0..self.drives.len() {
                let drive = &mut self.drives[index];
                if self.clock.free() {
                    drive.complete_all(&mut replies);
                } else if self.clock.deadline(drive.next_event()) <= now {
                    own_work::advance(drive, &self.clock, now, &mut replies);
                }
                idle &= replies.is_empty();
                self.answered += replies.len();
                for mut reply in replies.drain(..) {
                    self.drives[index].hand_over(&mut reply);
                    self.hand_over(&reply);
                    self.drives[index].take_back(&reply);
                }
            }
            self.replies = replies;
            self.ring();
            let rests = idle && !self.places.any_dirty();
            if !rests {
                self.flush();
            }
            // Only after the previous replies have been sent.
            if !self.strike_all() && rests {
                return;
            }
        }
    }

    fn hand_over(&mut self, reply: &Reply) {
        if !self.places.answered(reply.endpoint, reply.bytes) {
            return;
        }
        if !self.clock.free() {
            let latency = self.clock.on_the_wall(reply.latency);
            self.leaving.push((self.clock.deadline(reply.at), latency));
        }
        self.call(reply.endpoint, |endpoint, port| endpoint.reply(reply, port));
    }

    /// Sends the output that endpoints have collected, and records its lateness.
    fn flush(&mut self) {
        let dirty = self.places.take_dirty();
        for &id in &dirty {
            self.with_port(id, false, |endpoint, port| endpoint.flush(port));
        }
        self.places.keep(dirty);
        if self.clock.free() {
            self.active = self.clock.wall();
        } else if !self.leaving.is_empty() {
            let now = self.clock.wall();
            self.active = now;
            for (deadline, latency) in self.leaving.drain(..) {
                self.lateness.record(now.since(deadline), latency);
            }
        }
    }

    fn ring(&mut self) {
        while let Some(bell) = self.bells.pop() {
            match bell {
                LoopRequest::Ring(id) => self.call(id, |endpoint, port| endpoint.rung(port)),
                LoopRequest::Notice(drive, notice) => {
                    self.tell_all(drive, notice);
                }
                LoopRequest::Fault(target, fault) => self.fault(target, &fault),
                LoopRequest::Later(at, target, fault) => self.plan_one(at, target, fault),
            }
        }
    }

    fn tell_all(&mut self, drive: usize, notice: Notice) {
        for id in 0..self.places.numbers() {
            self.call(id, |endpoint, port| endpoint.notice(drive, notice, port));
        }
    }

    fn tick(&mut self, now: Wall) {
        self.next_tick = now.plus(TICK);
        while let Some((target, fault)) = self.schedule.due(now) {
            self.fault(target, &fault);
        }
        self.relieve(now);
        self.log.rest(now);
        for id in 0..self.places.numbers() {
            self.call(id, |endpoint, port| endpoint.tick(port));
        }
        // An idle drive's model catches up here, so that a command after a long pause finds little work.
        self.settle_all(now);
        self.serve();
        self.complain(now);
        self.report_delays(now);
        if now >= self.next_save {
            self.next_save = now.plus(SAVE);
            for index in 0..self.drives.len() {
                self.drives[index].save_for_now();
            }
        }
        if let Some((every, next, observer)) = &mut self.observer
            && now >= *next
        {
            *next = now.plus(*every);
            observer(now, &self.drives, &self.lateness);
        }
    }

    /// Calls an endpoint, if it still exists, and then lets it send.
    #[inline]
    fn call(
        &mut self,
        id: u32,
        what: impl FnOnce(&mut dyn Endpoint, &mut Port<'_>) -> Result<(), ConnectionEnd>,
    ) {
        self.with_port(id, true, what);
    }

    #[inline]
    fn with_port(
        &mut self,
        id: u32,
        dirty: bool,
        what: impl FnOnce(&mut dyn Endpoint, &mut Port<'_>) -> Result<(), ConnectionEnd>,
    ) {
        let all = self.places.held;
        let Some(place) = self.places.get_mut(id) else {
            return;
        };
        let Some(endpoint) = &mut place.endpoint else {
            return;
        };
        let before = place.load.held();
        let mut port = Port {
            drives: &mut self.drives,
            others: all.saturating_sub(before),
            lateness: &self.lateness,
            clock: &self.clock,
            limits: &self.limits,
            epoll: &self.epoll,
            wall: self.now,
            me: id,
            load: &mut place.load,
            bells: &mut self.bells,
            scratch: &mut self.scratch,
        };
        let result = what(&mut **endpoint, &mut port);
        let after = place.load.held();
        self.places.held = all.saturating_sub(before) + after;
        if dirty {
            self.places.mark(id);
        }
        if let Err(ending) = result {
            self.end(id, &ending);
        }
    }

    fn end(&mut self, id: u32, ending: &ConnectionEnd) {
        let name = self.places.end(id);
        let how = match ending {
            ConnectionEnd::Left => None,
            ConnectionEnd::Broke(how) => Some(("ended", how)),
            ConnectionEnd::Failed(what) => Some(("failed", what)),
        };
        if let Some((word, how)) = how {
            self.log
                .ended(self.now, || format!("{name}: {word}: {how}"));
        }
    }

    /// Logs problems with the files of stores.
    fn complain(&mut self, now: Wall) {
        for drive in &mut self.drives {
            while let Some(line) = drive.complaint(now) {
                self.log.say(&line);
            }
        }
    }
}
