//! A pool: the members, the tiers above them, and the routing between them.
//!
//! Among these, the pool is the only [`Device`]. It owns the members and routes commands: every command that a tier
//! sends has a route, whose number is the command's id below, so that its completion can be routed back. Commands to
//! members are submitted immediately. Messages between tiers wait in a ring until the tier that is being called has
//! returned. Members and timers that are due at one time are processed in the order of members, completions before
//! timers.
//!
//! Not modelled: the cost of routing (it belongs to the host). The pool does not access data: buffers are passed to the
//! tiers (`B`), and in virtual time there are none.

mod gauges;
mod medium;
mod rebuilds;
mod winner;

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use model::anatomy::Anatomy;
use model::command::{Command, CommandId, Completion, Op, Status};
use model::data::{Buffers, Contents, DataBackedDrive, DriveFault};
use model::device::{Capacity, Device, Gauge, Gauges, Range};
use model::engine::Slab;
use model::media::medium::Medium;
use model::time::Time;

use self::gauges::MemberGauges;
use self::winner::TournamentTree;
use super::config::{PoolConfig, Target};
use super::{AnyTier, Child, ConcatConfig, Kind, Tier, TierContext, TierSettings};

/// Receiver of a completion.
#[derive(Clone, Copy, Debug)]
enum Sender {
    /// The submitter of a command to the pool, with its id.
    Client(CommandId),
    /// A tier, with its token.
    Tier(u16, u32),
}

/// A command in flight: its index is the command's id.
#[derive(Clone, Copy, Debug)]
struct Route {
    from: Sender,
    submitted: Time,
}

/// A message between tiers.
#[derive(Clone, Copy, Debug)]
enum Message {
    Submit(u16, Command),
    Completed(u16, u32, Completion),
}

/// Maximum number of messages for one event; if exceeded, tiers send each other messages in a loop.
const RESTLESS: u32 = 1_000_000;

/// A command to a member, as recorded in a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChildCommand {
    /// Time of submission.
    pub at: Time,
    /// Index of the member.
    pub member: u16,
    /// The command; id and payload have no meaning outside of the pool.
    pub command: Command,
}

/// The members, and state shared by the tiers.
#[derive(Clone, Debug)]
struct PoolMembers<L, B> {
    members: Vec<L>,
    buffers: B,
    /// Commands to the members, if recorded.
    trace: Option<Vec<ChildCommand>>,
    /// Children of each tier.
    children: Vec<Vec<Target>>,
    routes: Slab<Route>,
    ring: VecDeque<Message>,
    /// Completions for the client, all at one time.
    finished: Vec<Completion>,
    /// Next events: members first, then tiers.
    next: TournamentTree,
}

/// A pool of members `L`, with data in buffers `B`.
#[derive(Clone, Debug)]
pub struct Pool<L, B = ()> {
    below: PoolMembers<L, B>,
    tiers: Vec<AnyTier>,
    /// The tier that receives clients' commands.
    top: u16,
    capacity: Capacity,
    /// Number of outstanding commands of clients.
    inside: u32,
    /// Bytes of clients' commands.
    read: u64,
    written: u64,
    /// Completions of members that are being processed.
    told: Vec<Completion>,
    /// Time of the completions in `below.finished`.
    finished_at: Time,
}

/// Access of one tier to the pool during a call.
struct PoolTierContext<'a, L, B> {
    below: &'a mut PoolMembers<L, B>,
    tier: u16,
    now: Time,
}

impl<L: Device, B: Buffers> TierContext for PoolTierContext<'_, L, B> {
    type Buffers = B;

    #[inline]
    fn buffers(&mut self) -> &mut B {
        &mut self.below.buffers
    }

    #[inline]
    fn send(&mut self, child: Child, token: u32, mut command: Command) {
        let below = &mut *self.below;
        command.id = below.routes.insert(Route {
            from: Sender::Tier(self.tier, token),
            submitted: self.now,
        });
        match below.children[usize::from(self.tier)][usize::from(child)] {
            Target::Slice { member, base, .. } => {
                command.offset += base;
                if let Some(trace) = &mut below.trace {
                    trace.push(ChildCommand {
                        at: self.now,
                        member,
                        command,
                    });
                }
                below.members[usize::from(member)].submit(self.now, command);
                below.look_at(usize::from(member));
            }
            Target::Tier(tier) => below.ring.push_back(Message::Submit(tier, command)),
        }
    }

    #[inline]
    fn finish(&mut self, id: CommandId, status: Status, anatomy: Anatomy) {
        let completion = Completion {
            id,
            at: self.now,
            status,
            anatomy,
        };
        self.below.complete(completion);
    }
}

impl<L: Device, B> PoolMembers<L, B> {
    /// Updates the next event of a member.
    #[inline]
    fn look_at(&mut self, member: usize) {
        self.next.set(member, self.members[member].next_event());
    }

    /// Ends a route: its number may be reused.
    #[inline]
    fn complete(&mut self, completion: Completion) {
        let route = self.routes[completion.id];
        debug_assert_eq!(
            completion.anatomy.total(),
            completion.at.since(route.submitted),
            "a tier's anatomy does not sum to the latency: {completion:?}"
        );
        self.routes.release(completion.id);
        match route.from {
            Sender::Client(id) => self.finished.push(Completion { id, ..completion }),
            Sender::Tier(tier, token) => {
                let message = Message::Completed(tier, token, completion);
                self.ring.push_back(message);
            }
        }
    }
}

impl<L: Device> Pool<L> {
    /// Creates the pool that `config` describes, valid by [`PoolConfig::problems`], on these members, one for each in
    /// the configuration: in its initial state, and without data.
    pub fn new<M: Medium>(config: &PoolConfig<M>, members: Vec<L>) -> Pool<L> {
        Pool::resume(config, members, config.build_tiers(), ())
    }
}

impl<L: Device, B: Buffers> Pool<L, B> {
    /// Creates the pool that `config` describes, valid by [`PoolConfig::problems`], on these members, one for each in
    /// the configuration, with recovered tiers (or those of [`PoolConfig::build_tiers`], if `None`) and data in these
    /// buffers.
    pub fn resume<M: Medium>(
        config: &PoolConfig<M>,
        members: Vec<L>,
        mut tiers: Vec<AnyTier>,
        buffers: B,
    ) -> Pool<L, B> {
        debug_assert_eq!(config.members.len(), members.len());
        let mut children: Vec<Vec<Target>> =
            config.tiers.iter().map(|it| it.children.clone()).collect();
        let top = match config.volumes[..] {
            [one] => one,
            ref several => {
                let volumes: Vec<Target> = several.iter().map(|&it| Target::Tier(it)).collect();
                let sizes = config.sizes(&volumes, &config.capacities());
                tiers.push(Kind::Concat(ConcatConfig {}).build(&sizes));
                children.push(volumes);
                (tiers.len() - 1) as u16
            }
        };
        let mut next = TournamentTree::new(members.len() + tiers.len());
        let events = members.iter().map(Device::next_event);
        for (source, at) in events.chain(tiers.iter().map(Tier::due)).enumerate() {
            next.set(source, at);
        }
        let block = members.iter().map(|member| member.capacity().block).max();
        Pool {
            capacity: Capacity {
                bytes: config.bytes(),
                block: block.unwrap_or(512),
            },
            below: PoolMembers {
                members,
                buffers,
                trace: None,
                children,
                routes: Slab::default(),
                ring: VecDeque::new(),
                finished: Vec::new(),
                next,
            },
            tiers,
            top,
            inside: 0,
            read: 0,
            written: 0,
            told: Vec::new(),
            finished_at: Time::ZERO,
        }
    }

    /// Returns the members, in order.
    pub fn members(&self) -> &[L] {
        &self.below.members
    }

    /// Returns the bytes of clients' reads and writes so far.
    pub fn client_bytes(&self) -> (u64, u64) {
        (self.read, self.written)
    }

    /// Changes a setting of a member, which may change its next event.
    pub fn with_member<R>(&mut self, member: u16, what: impl FnOnce(&mut L) -> R) -> R {
        let result = what(&mut self.below.members[usize::from(member)]);
        self.below.look_at(usize::from(member));
        result
    }

    /// After [`Device::power_cut`], in a pool with data: replaces the tiers by these, which have been recovered from
    /// the members. They continue at `now`.
    pub fn restart(&mut self, now: Time, tiers: Vec<AnyTier>) {
        let members = self.below.members.len();
        for (index, tier) in tiers.into_iter().enumerate() {
            self.below.next.set(members + index, tier.due().max(now));
            self.tiers[index] = tier;
        }
    }

    /// Returns the tiers, in the order of the configuration; for several volumes there is an additional one above them.
    pub fn tiers(&self) -> &[AnyTier] {
        &self.tiers
    }

    /// Starts recording the commands to members; the record grows without limit.
    pub fn record(&mut self) {
        self.below.trace = Some(Vec::new());
    }

    /// Returns the commands to members since [`Pool::record`], or since the previous call.
    pub fn recorded(&mut self) -> Vec<ChildCommand> {
        let trace = self.below.trace.as_mut();
        trace.map(core::mem::take).unwrap_or_default()
    }

    /// Calls a tier, and updates its next event.
    #[inline]
    fn call(
        &mut self,
        now: Time,
        tier: u16,
        what: impl FnOnce(&mut AnyTier, &mut PoolTierContext<'_, L, B>),
    ) {
        let called = &mut self.tiers[usize::from(tier)];
        let below = &mut self.below;
        what(called, &mut PoolTierContext { below, tier, now });
        let source = self.below.members.len() + usize::from(tier);
        self.below.next.set(source, called.due());
    }

    /// Passes messages between tiers until there are none.
    #[inline]
    fn carry(&mut self, now: Time) {
        let mut carried = 0;
        while let Some(message) = self.below.ring.pop_front() {
            match message {
                Message::Submit(tier, command) => {
                    self.call(now, tier, |tier, way| tier.submit(now, &command, way));
                }
                Message::Completed(tier, token, completion) => {
                    self.call(now, tier, |tier, way| {
                        tier.completed(now, token, &completion, way);
                    });
                }
            }
            carried += 1;
            debug_assert!(carried < RESTLESS, "tiers send each other round in circles");
        }
    }

    /// Processes the first event, at or after `now` and before `horizon`; returns its time. A single member continues
    /// until it completes a command or another event would be due.
    fn step(&mut self, now: Time, horizon: Time) -> Time {
        let mut at = now;
        let mut told = core::mem::take(&mut self.told);
        while self.below.next.first() == now {
            let source = self.below.next.earliest_source();
            let Some(member) = self.below.members.get_mut(source) else {
                break;
            };
            // It may continue alone unless completions of this time must still be processed.
            let until = match told.is_empty() {
                true => horizon.min(self.below.next.first_but(source)),
                false => now,
            };
            at = member.advance(now, until.max(now), &mut told);
            self.below.look_at(source);
        }
        if told.is_empty() && at == now && self.below.next.first() == now {
            let tier = self.below.next.earliest_source() - self.below.members.len();
            self.call(now, tier as u16, |tier, way| tier.tick(now, way));
            self.carry(now);
        }
        for completion in told.drain(..) {
            let route = self.below.routes[completion.id];
            self.below.routes.release(completion.id);
            if let Sender::Tier(tier, token) = route.from {
                self.call(at, tier, |tier, way| {
                    tier.completed(at, token, &completion, way);
                });
            }
            self.carry(at);
        }
        self.told = told;
        at
    }

    /// Combines the ranges of the children of each tier, by their own addresses, to those of the pool.
    fn gathered(&self, of_members: &[Vec<Range>], ranges: &mut Vec<Range>) {
        let mut of_tiers: Vec<Vec<Range>> = Vec::with_capacity(self.tiers.len());
        for (tier, targets) in self.tiers.iter().zip(&self.below.children) {
            let of = |target: &Target| match *target {
                Target::Tier(index) => of_tiers[usize::from(index)].clone(),
                Target::Slice {
                    member,
                    base,
                    bytes,
                } => inside(&of_members[usize::from(member)], base, bytes),
            };
            let children: Vec<Vec<Range>> = targets.iter().map(of).collect();
            let mut of_tier = Vec::new();
            tier.at_risk(&children, &mut of_tier);
            of_tiers.push(of_tier);
        }
        ranges.append(&mut of_tiers[usize::from(self.top)]);
    }
}

/// Returns the parts of ranges that are in a slice, relative to its beginning.
fn inside(ranges: &[Range], base: u64, bytes: u64) -> Vec<Range> {
    let cut = |range: &Range| {
        let first = range.offset.max(base);
        let end = (range.offset + range.bytes).min(base + bytes);
        (first < end).then(|| Range {
            offset: first - base,
            bytes: end - first,
        })
    };
    ranges.iter().filter_map(cut).collect()
}

impl<D: Device, C: Contents, B: Buffers> Pool<DataBackedDrive<D, C>, B> {
    /// Applies a fault of a member (or its end) at `now`, not before the last event and not after the next.
    pub fn befall(&mut self, now: Time, member: u16, trouble: DriveFault) {
        self.below.members[usize::from(member)].befall(now, trouble);
        self.below.look_at(usize::from(member));
        if trouble == DriveFault::Returns {
            self.tell_of_return(now, ReturnedChild::Member(member));
        }
    }

    /// A member was replaced at `now`: it responds, and its tiers bring all data to it.
    pub fn replace(&mut self, now: Time, member: u16) {
        self.below.members[usize::from(member)].befall(now, DriveFault::Returns);
        self.below.look_at(usize::from(member));
        self.tell_of_return(now, ReturnedChild::Replacement(member));
    }
}

/// A returned component: a member, or a tier with a returned member.
#[derive(Clone, Copy)]
enum ReturnedChild {
    Member(u16),
    /// A member that was replaced.
    Replacement(u16),
    Tier(u16),
}

impl<L: Device, B: Buffers> Pool<L, B> {
    /// Informs each tier above it, directly or indirectly, from bottom to top.
    fn tell_of_return(&mut self, now: Time, what: ReturnedChild) {
        for tier in 0..self.tiers.len() as u16 {
            for child in 0..self.below.children[usize::from(tier)].len() {
                let stands_on_it = match (self.below.children[usize::from(tier)][child], what) {
                    (
                        Target::Slice { member, .. },
                        ReturnedChild::Member(index) | ReturnedChild::Replacement(index),
                    ) => member == index,
                    (Target::Tier(below), ReturnedChild::Tier(index)) => below == index,
                    _ => false,
                };
                if stands_on_it {
                    self.call(now, tier, |it, way| match what {
                        ReturnedChild::Replacement(_) => it.replaced(now, child as Child, way),
                        _ => it.returned(now, child as Child, way),
                    });
                    self.carry(now);
                    self.tell_of_return(now, ReturnedChild::Tier(tier));
                }
            }
        }
        self.finished_at = now;
    }
}

impl<L: Device, B: Buffers> Device for Pool<L, B> {
    fn capacity(&self) -> Capacity {
        self.capacity
    }

    fn submit(&mut self, now: Time, mut command: Command) {
        self.inside += 1;
        let id = command.id;
        let refused = !command.fits(self.capacity.bytes);
        // The top tier may extend beyond the end; and an empty range completes immediately.
        if refused || (command.op != Op::Flush && command.bytes == 0) {
            self.finished_at = now;
            self.below.finished.push(Completion {
                id,
                at: now,
                status: match refused {
                    true => Status::LbaOutOfRange,
                    false => Status::Success,
                },
                anatomy: Anatomy::ZERO,
            });
            return;
        }
        if command.op.transfers() {
            match command.op {
                Op::Read => self.read += u64::from(command.bytes),
                _ => self.written += u64::from(command.bytes),
            }
        }
        if command.op == Op::Flush {
            // They have no meaning, and slices add their own values to them.
            (command.offset, command.bytes) = (0, 0);
        }
        command.id = self.below.routes.insert(Route {
            from: Sender::Client(id),
            submitted: now,
        });
        self.call(now, self.top, |tier, way| tier.submit(now, &command, way));
        self.carry(now);
        self.finished_at = now;
    }

    fn next_event(&self) -> Time {
        match self.below.finished.is_empty() {
            true => self.below.next.first(),
            false => self.finished_at,
        }
    }

    fn advance(&mut self, mut now: Time, horizon: Time, done: &mut Vec<Completion>) -> Time {
        let first = done.len();
        loop {
            // Completions within a submission are due at that time, and none of an earlier time is left.
            if self.below.next.first() == now {
                // No member may continue beyond the time of a completion that is in `done` already.
                let is_empty = done.len() == first && self.below.finished.is_empty();
                now = self.step(now, if is_empty { horizon } else { now });
            }
            self.inside -= self.below.finished.len() as u32;
            done.append(&mut self.below.finished);
            let next = self.below.next.first();
            if next > now && (done.len() > first || next >= horizon) {
                return now;
            }
            now = next;
        }
    }

    fn at_risk(&self, ranges: &mut Vec<Range>) {
        let of = |member: &L| {
            let mut ranges = Vec::new();
            member.at_risk(&mut ranges);
            ranges
        };
        let of_members: Vec<Vec<Range>> = self.below.members.iter().map(of).collect();
        self.gathered(&of_members, ranges);
    }

    fn power_cut(&mut self, now: Time, lost: &mut Vec<Range>) -> Time {
        let mut back = now;
        let mut of_members = vec![Vec::new(); self.below.members.len()];
        for (member, lost) in self.below.members.iter_mut().zip(&mut of_members) {
            back = back.max(member.power_cut(now, lost));
        }
        self.gathered(&of_members, lost);
        self.below.routes = Slab::default();
        self.below.ring.clear();
        self.below.finished.clear();
        self.inside = 0;
        let members = self.below.members.len();
        for (index, tier) in self.tiers.iter_mut().enumerate() {
            tier.release_buffers(&mut self.below.buffers);
            tier.power_cut(back);
            self.below.next.set(members + index, tier.due());
        }
        for member in 0..members {
            self.below.look_at(member);
        }
        back
    }

    fn inspect(&self, now: Time, gauges: &mut dyn Gauges) {
        gauges.gauge(Gauge::HostBytesRead, self.read as f64);
        gauges.gauge(Gauge::HostBytesWritten, self.written as f64);
        gauges.gauge(Gauge::QueueDepth, f64::from(self.inside));
        for tier in &self.tiers {
            tier.inspect(now, gauges);
        }
        for (index, member) in self.below.members.iter().enumerate() {
            gauges.enter(index as u16);
            member.inspect(now, &mut MemberGauges(gauges));
            gauges.leave();
        }
    }
}

#[cfg(test)]
mod tests;
