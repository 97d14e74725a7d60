//! RAID-0: addresses striped over members, as in Linux's md driver or in a drive with two controllers.
//!
//! A command is split at the borders of stripes. Its pieces are sent to their members at once, and it completes with
//! the last of them, whose anatomy it reports. Commands without data transfer (deallocate, write zeroes) become one
//! range on each member, and a flush goes to all members. Not modelled: the cost of striping itself, which belongs to
//! the host path.

mod medium;

use alloc::vec::Vec;

use model::command::{Command, CommandId, Completion, Op, Status};
use model::device::{Capacity, Device, Gauges, Range};
use model::engine::Slab;
use model::time::Time;

use super::striping::Striping;

/// Configuration of a RAID-0.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Raid0Config<C> {
    /// Members; at least one.
    pub members: Vec<C>,
    /// Bytes on one member before the next member follows: a multiple of 512, not zero.
    pub stripe: u32,
}

/// A command whose pieces are outstanding at the members.
#[derive(Clone, Copy, Debug)]
struct Raid0Request {
    id: CommandId,
    left: u32,
    status: Status,
}

/// A RAID-0 of any devices.
#[derive(Clone, Debug)]
pub struct Raid0<D> {
    members: Vec<D>,
    striping: Striping,
    capacity: Capacity,
    requests: Slab<Raid0Request>,
    /// By the id of a piece at its member: its request.
    pieces: Slab<u32>,
    next: Time,
    finished: Vec<Completion>,
}

impl<D: Device> Raid0<D> {
    /// Creates stripes over `members` (at least one), with `stripe` bytes on each (a multiple of 512, not zero).
    pub fn new(members: Vec<D>, stripe: u32) -> Raid0<D> {
        debug_assert!(!members.is_empty() && stripe > 0 && stripe.is_multiple_of(512));
        let capacities: Vec<Capacity> = members.iter().map(Device::capacity).collect();
        let capacity = Capacity {
            bytes: Striping::capacity(capacities.iter().map(|it| it.bytes), u64::from(stripe)),
            block: capacities.iter().map(|it| it.block).max().unwrap_or(512),
        };
        let mut raid = Raid0 {
            striping: Striping {
                count: members.len() as u64,
                chunk: u64::from(stripe),
            },
            members,
            capacity,
            requests: Slab::default(),
            pieces: Slab::default(),
            next: Time::NEVER,
            finished: Vec::new(),
        };
        // A member may have an event before its first command.
        raid.find_next();
        raid
    }

    /// Returns the members, in order.
    pub fn members(&self) -> &[D] {
        &self.members
    }

    fn send(&mut self, now: Time, request: u32, member: usize, mut piece: Command) {
        piece.id = self.pieces.insert(request);
        self.requests[request].left += 1;
        self.members[member].submit(now, piece);
    }

    /// Splits a command with data transfer at the borders of stripes.
    fn send_stripes(&mut self, now: Time, request: u32, command: Command) {
        let end = command.end();
        let mut at = command.offset;
        while at < end {
            let until = self.striping.border(at).min(end);
            let (member, offset) = self.striping.place(at);
            let bytes = (until - at) as u32;
            let piece = Command {
                offset,
                bytes,
                payload: command.payload.skip((at - command.offset) as u32),
                ..command
            };
            self.send(now, request, member, piece);
            at = until;
        }
    }

    /// Sends a range to each member, where it is always contiguous.
    fn send_ranges(&mut self, now: Time, request: u32, command: Command) {
        for member in 0..self.members.len() {
            if let Some(run) = self.striping.run(member, command.offset, command.end()) {
                let piece = Command {
                    offset: run.offset,
                    bytes: run.bytes as u32,
                    ..command
                };
                self.send(now, request, member, piece);
            }
        }
    }

    fn find_next(&mut self) {
        let events = self.members.iter().map(Device::next_event);
        self.next = events.min().unwrap_or(Time::NEVER);
    }

    /// Advances the members that are due at `now`. A single due member continues until it completes a piece, another
    /// member is due, or the horizon is reached. Returns the time of its last event.
    fn advance_members(
        &mut self,
        now: Time,
        horizon: Time,
        finished: &mut Vec<Completion>,
    ) -> Time {
        let (mut due, mut until) = (0, horizon);
        for member in &self.members {
            match member.next_event() {
                next if next == now => due += 1,
                next => until = until.min(next),
            }
        }
        let mut ended = now;
        for member in &mut self.members {
            if member.next_event() != now {
                continue;
            }
            if due > 1 {
                member.advance(now, now, finished);
            } else {
                ended = member.advance(now, until, finished);
                break;
            }
        }
        ended
    }

    fn piece_done(&mut self, completion: &Completion, done: &mut Vec<Completion>) {
        let slot = self.pieces[completion.id];
        self.pieces.release(completion.id);
        let request = &mut self.requests[slot];
        request.left -= 1;
        if request.status == Status::Success {
            request.status = completion.status;
        }
        if request.left == 0 {
            let (id, status) = (request.id, request.status);
            self.requests.release(slot);
            done.push(Completion {
                id,
                status,
                ..*completion
            });
        }
    }
}

impl<D: Device> Device for Raid0<D> {
    fn capacity(&self) -> Capacity {
        self.capacity
    }

    fn submit(&mut self, now: Time, command: Command) {
        let request = self.requests.insert(Raid0Request {
            id: command.id,
            left: 0,
            status: Status::Success,
        });
        if command.op == Op::Flush {
            for member in 0..self.members.len() {
                self.send(now, request, member, command);
            }
        } else if !command.fits(self.capacity.bytes) {
            // The first member rejects the command, which takes time there. The member may extend beyond the end of the
            // RAID-0.
            let piece = Command {
                offset: u64::MAX - 511,
                ..command
            };
            self.send(now, request, 0, piece);
        } else if command.bytes == 0 {
            let (member, offset) = self.striping.place(command.offset);
            // At the end of the RAID-0 there is no next stripe, so this is the end of one member.
            let piece = Command { offset, ..command };
            self.send(now, request, member, piece);
        } else if command.op.transfers() {
            self.send_stripes(now, request, command);
        } else {
            self.send_ranges(now, request, command);
        }
        self.find_next();
    }

    fn next_event(&self) -> Time {
        self.next
    }

    fn advance(&mut self, mut now: Time, horizon: Time, done: &mut Vec<Completion>) -> Time {
        let first = done.len();
        let mut finished = core::mem::take(&mut self.finished);
        loop {
            now = self.advance_members(now, horizon, &mut finished);
            for completion in finished.drain(..) {
                self.piece_done(&completion, done);
            }
            self.find_next();
            if done.len() > first || self.next >= horizon {
                break;
            }
            now = self.next;
        }
        self.finished = finished;
        now
    }

    fn at_risk(&self, ranges: &mut Vec<Range>) {
        let mut of_one = Vec::new();
        for (index, member) in self.members.iter().enumerate() {
            member.at_risk(&mut of_one);
            self.striping.whole(index, &of_one, ranges);
            of_one.clear();
        }
    }

    fn power_cut(&mut self, now: Time, lost: &mut Vec<Range>) -> Time {
        let mut of_one = Vec::new();
        let mut back = now;
        for (index, member) in self.members.iter_mut().enumerate() {
            back = back.max(member.power_cut(now, &mut of_one));
            self.striping.whole(index, &of_one, lost);
            of_one.clear();
        }
        self.requests = Slab::default();
        self.pieces = Slab::default();
        self.find_next();
        back
    }

    fn inspect(&self, now: Time, gauges: &mut dyn Gauges) {
        for member in &self.members {
            member.inspect(now, gauges);
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::boxed::Box;
    use alloc::vec;

    use proptest::prelude::*;

    use model::command::Payload;
    use model::conformance::{self, Mix, Suite, Witness, samples};
    use model::device::Gauge;
    use model::engine::run;
    use model::management::Refusal;
    use model::media::ram::{Ram, RamConfig};
    use model::media::{Medium, MediumDrive, Precondition};
    use model::time::Span;

    use super::*;
    use crate::{Drive, DriveConfig};

    fn ram_config(bytes: u64) -> RamConfig {
        RamConfig {
            bytes,
            per_command: Span::from_us(3),
            picoseconds_per_byte: 100,
            memory_bus: None,
            spread: 0.0,
        }
    }

    fn ram(bytes: u64) -> Ram {
        Ram::new(ram_config(bytes))
    }

    fn drive() -> DriveConfig {
        DriveConfig::XPoint(Box::new(samples::xpoint()))
    }

    fn raid(members: usize, stripe: u32) -> DriveConfig {
        DriveConfig::Raid0(Raid0Config {
            members: vec![drive(); members],
            stripe,
        })
    }

    fn completions(config: &DriveConfig, seed: u64) -> Vec<Completion> {
        served(&mut Drive::new(config, Precondition::Steady, seed), seed)
    }

    /// Returns all completions of a mix of commands.
    fn served(device: &mut Drive, seed: u64) -> Vec<Completion> {
        let mut mix = Mix::new(seed, device.capacity().bytes, Suite::default());
        run(device, &mut mix, Time::ZERO, Time::NEVER);
        mix.log().to_vec()
    }

    /// Returns all gauges: host and medium bytes, energy, wear.
    fn gauges(device: &Drive) -> Vec<(Gauge, f64)> {
        struct All(Vec<(Gauge, f64)>);
        impl Gauges for All {
            fn gauge(&mut self, gauge: Gauge, value: f64) {
                self.0.push((gauge, value));
            }
        }
        let mut all = All(Vec::new());
        device.inspect(Time::from_ns(1 << 40), &mut all);
        all.0
    }

    #[test]
    fn keeps_the_laws_and_calls_its_members_in_turn() {
        conformance::check(|_| {
            let members = vec![
                Witness::new(ram(40 << 20)),
                Witness::new(ram(32 << 20)),
                Witness::new(ram(33 << 20)),
            ];
            Raid0::new(members, 48 << 10)
        });
        conformance::check(|seed| Drive::new(&raid(2, 128 << 10), Precondition::Steady, seed));
    }

    /// The memory of a used raid, or of a single drive, does not show in the next one.
    #[test]
    fn a_reset_raid_equals_a_new_one() {
        let nand = DriveConfig::Nand(Box::new(samples::nand()));
        let raid = DriveConfig::Raid0(Raid0Config {
            members: vec![nand.clone(); 2],
            stripe: 128 << 10,
        });
        // Three times the same, so that its warm-up is computed, computed and saved, and reused.
        let plans = [&raid, &raid, &raid, &nand, &raid];
        let mut used = Drive::new(&nand, Precondition::Fresh, 9);
        for (index, config) in plans.into_iter().enumerate() {
            used = used.reset(config, Precondition::Steady, 3);
            let mut new = Drive::new(config, Precondition::Steady, 3);
            let run = |device: &mut Drive| (served(device, 7), gauges(device));
            assert_eq!(run(&mut used), run(&mut new), "plan {index}");
        }
    }

    #[test]
    fn a_raid_loses_what_its_members_do_where_it_is_in_the_raid() {
        let mut config = samples::nand();
        config.buffer.protected = false;
        let raid = |seed| {
            let member = |number| config.build(Precondition::Fresh, seed + number);
            Raid0::new(vec![member(0), member(100)], 12 << 10)
        };
        let suite = Suite::default();
        let lost = (0..4).map(|seed| suite.power_cuts(seed, raid(seed)).expect("law 9"));
        assert!(lost.sum::<u64>() > 0);
    }

    #[test]
    fn a_raid_passes_settings_to_its_members() {
        let mut set = raid(2, 128 << 10);
        let mut member = drive();
        assert_eq!(set.format_duration(), member.format_duration());
        assert_eq!(set.idle_watts(), 2.0 * member.idle_watts());
        for config in [&mut set, &mut member] {
            config.set_power_limit(6.0).expect("it has a governor");
            config.set_percentage_used(50.0).expect("it wears");
        }
        let (limit, used) = (set.power_limit_watts(), set.percentage_used());
        assert_eq!((limit, used), (Some(6.0), 50.0));
        let of_set = DriveConfig::Raid0(Raid0Config {
            members: vec![member; 2],
            stripe: 128 << 10,
        });
        assert_eq!(completions(&set, 1), completions(&of_set, 1));
        assert_ne!(completions(&set, 1), completions(&raid(2, 128 << 10), 1));
    }

    #[test]
    fn what_a_member_does_not_have_is_refused() {
        let ram = DriveConfig::Ram(ram_config(1 << 30));
        let mut config = DriveConfig::Raid0(Raid0Config {
            members: vec![drive(), ram],
            stripe: 128 << 10,
        });
        let refused = |result| matches!(result, Err(Refusal::Unsupported(_)));
        assert!(refused(config.set_power_limit(9.0)));
        assert!(refused(config.set_percentage_used(9.0)));
        assert!(refused(config.set_uptime(Span::ZERO)));
        let mut drive = Drive::new(&config, Precondition::Steady, 1);
        assert!(refused(drive.set_power_limit(9.0)));
    }

    #[test]
    fn a_raid_of_raids_keeps_the_laws() {
        conformance::check(|_| {
            let inner = |stripe| {
                Raid0::new(
                    vec![Witness::new(ram(16 << 20)), Witness::new(ram(16 << 20))],
                    stripe,
                )
            };
            Raid0::new(vec![inner(16 << 10), inner(8 << 10)], 64 << 10)
        });
    }

    /// A stripe as large as the member: no command is split, so all completions and anatomies must be equal.
    #[test]
    fn one_member_alone_is_what_it_would_be_without_a_raid() {
        let bytes = drive().capacity_bytes();
        for seed in 0..4 {
            assert_eq!(
                completions(&raid(1, bytes as u32), seed),
                completions(&drive(), seed)
            );
        }
    }

    #[test]
    fn one_member_under_a_small_stripe_keeps_its_capacity_and_status() {
        let (plain, striped) = (completions(&drive(), 3), completions(&raid(1, 4096), 3));
        assert_eq!(plain.len(), striped.len());
        let refused = |log: &[Completion]| {
            let refusals = log.iter().filter(|it| it.status == Status::LbaOutOfRange);
            refusals.count()
        };
        assert!(refused(&plain) > 0);
        assert_eq!(refused(&plain), refused(&striped));
    }

    /// Members without cost cause no cost, however a command is split.
    #[test]
    fn members_without_cost_cost_nothing() {
        let free = || {
            Ram::new(RamConfig {
                bytes: 8 << 20,
                per_command: Span::ZERO,
                picoseconds_per_byte: 0,
                memory_bus: None,
                spread: 0.0,
            })
        };
        let mut device = Raid0::new(vec![free(), free(), free()], 4096);
        let mut mix = Mix::new(9, device.capacity().bytes, Suite::default());
        run(&mut device, &mut mix, Time::ZERO, Time::NEVER);
        assert_eq!(mix.log().len(), Suite::default().commands as usize);
        for completion in mix.log() {
            assert_eq!(completion.anatomy.total(), Span::ZERO);
        }
    }

    /// As the members do individually: one command is one call, regardless of the events inside.
    #[test]
    fn a_command_that_is_alone_takes_one_call() {
        let mut device = Drive::new(&raid(2, 128 << 10), Precondition::Steady, 5);
        // Over both members and four stripes, so that work on one must not end the call.
        device.submit(Time::ZERO, Command::new(0, Op::Read, 64 << 10, 384 << 10));
        let mut done = Vec::new();
        let first = device.next_event();
        let ended = device.advance(first, Time::NEVER, &mut done);
        assert_eq!(done.len(), 1);
        assert_eq!((done[0].at, device.next_event() > ended), (ended, true));
        assert!(ended > first);
    }

    /// Records commands and never completes them.
    #[derive(Default)]
    struct Notebook(Vec<Command>);

    impl Device for Notebook {
        fn capacity(&self) -> Capacity {
            Capacity {
                bytes: 1 << 20,
                block: 512,
            }
        }
        fn submit(&mut self, _now: Time, command: Command) {
            self.0.push(command);
        }
        fn next_event(&self) -> Time {
            Time::NEVER
        }
        fn advance(&mut self, now: Time, _horizon: Time, _done: &mut Vec<Completion>) -> Time {
            now
        }
        fn power_cut(&mut self, now: Time, _lost: &mut Vec<Range>) -> Time {
            now
        }
        fn inspect(&self, _now: Time, _gauges: &mut dyn Gauges) {}
    }

    /// Location of a write's data: each piece has its own part of the buffer.
    #[test]
    fn pieces_have_their_part_of_the_payload() {
        let mut device = Raid0::new(vec![Notebook::default(), Notebook::default()], 4096);
        let payload = Payload { buffer: 7, at: 100 };
        let command = Command {
            payload,
            ..Command::write(3, 2048, 10240)
        };
        device.submit(Time::ZERO, command);
        let parts = |member: usize| -> Vec<(u64, u32, u32)> {
            let pieces = device.members()[member].0.iter();
            assert!(pieces.clone().all(|it| it.payload.buffer == 7));
            pieces
                .map(|it| (it.offset, it.bytes, it.payload.at))
                .collect()
        };
        assert_eq!(parts(0), [(2048, 2048, 100), (4096, 4096, 100 + 6144)]);
        assert_eq!(parts(1), [(0, 4096, 100 + 2048)]);
    }

    proptest! {
        /// Every sector of a command is in exactly one piece, at the location given by manual striping, and the pieces
        /// contain nothing else.
        #[test]
        fn pieces_cover_a_command_exactly(
            members in 1usize..5,
            stripe_sectors in 1u64..40,
            first in 0u64..1500,
            sectors in 1u64..400,
            transfers: bool,
        ) {
            let stripe = stripe_sectors * 512;
            let notebooks = (0..members).map(|_| Notebook::default()).collect();
            let mut device = Raid0::new(notebooks, stripe as u32);
            let op = if transfers { Op::Write } else { Op::Deallocate };
            let command = Command::new(0, op, first * 512, (sectors * 512) as u32);
            prop_assume!(command.fits(device.capacity().bytes));
            device.submit(Time::ZERO, command);
            let mut expected: Vec<(usize, u64)> = (first..first + sectors)
                .map(|sector| {
                    let chunk = sector / stripe_sectors;
                    let row = chunk / members as u64;
                    let member = chunk % members as u64;
                    (member as usize, row * stripe_sectors + sector % stripe_sectors)
                })
                .collect();
            let mut got = Vec::new();
            for (index, member) in device.members().iter().enumerate() {
                for piece in &member.0 {
                    let start = piece.offset / 512;
                    got.extend((start..start + u64::from(piece.bytes) / 512).map(|sector| (index, sector)));
                    if transfers {
                        prop_assert!(piece.offset / stripe == (piece.end() - 1) / stripe, "crosses a stripe");
                    }
                }
                prop_assert!(transfers || member.0.len() <= 1, "a range in several runs");
            }
            expected.sort_unstable();
            got.sort_unstable();
            prop_assert_eq!(got, expected);
        }
    }
}
