//! Behaviour of the whole drive, tested on small drives.

mod ahead;
mod firmware;
mod idle;
mod indirection;
mod map;
mod order;
mod power;
mod reset;
mod shrunk;
mod slots;
mod start;
mod suspend;
mod times;
mod under_load;

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use super::*;
use crate::anatomy::{Anatomy, Part};
use crate::command::CommandId;
pub(crate) use crate::conformance::samples::nand as small;
use crate::engine::{Workload, run};
use crate::ftl::Watermark;
use crate::time::Span;

/// Returns the shared state of such a drive, with nothing written.
pub(super) fn shared(config: &NandConfig) -> Shared {
    let drive = Nand::new(config.clone(), Precondition::Fresh, 1);
    drive.shared
}

fn set_over_provisioning(config: &mut NandConfig, share: f64) {
    let raw = config.geometry.raw_bytes() as f64;
    config.geometry.capacity = (raw / (1.0 + share) / 4096.0) as u64 * 4096;
}

/// Keeps `depth` commands in flight until `total` have been issued.
struct Closed<F> {
    make: F,
    depth: u32,
    ready: Vec<CommandId>,
    issued: u64,
    total: u64,
    now: Time,
    latencies: Vec<(CommandId, Span, Anatomy)>,
    submitted: Vec<Time>,
    keep: bool,
    finished: u64,
}

impl<F: FnMut(CommandId, u64) -> Command> Closed<F> {
    fn new(depth: u32, total: u64, make: F) -> Closed<F> {
        Closed {
            make,
            depth,
            ready: (0..depth).rev().collect(),
            issued: 0,
            total,
            now: Time::ZERO,
            latencies: Vec::new(),
            submitted: vec![Time::ZERO; depth as usize],
            keep: true,
            finished: 0,
        }
    }
}

impl<F: FnMut(CommandId, u64) -> Command> Workload for Closed<F> {
    fn next_arrival(&self) -> Time {
        if self.ready.is_empty() || self.issued >= self.total {
            Time::NEVER
        } else {
            self.now
        }
    }
    fn arrive(&mut self, now: Time, submit: &mut impl FnMut(Command)) {
        while self.issued < self.total {
            let Some(id) = self.ready.pop() else { break };
            self.submitted[id as usize] = now;
            submit((self.make)(id, self.issued));
            self.issued += 1;
        }
        let _ = self.depth;
    }
    fn complete(&mut self, now: Time, completion: &Completion) {
        self.now = now;
        self.finished += 1;
        let latency = now.since(self.submitted[completion.id as usize]);
        assert_eq!(completion.anatomy.total(), latency);
        assert_eq!(completion.at, now);
        if self.keep {
            self.latencies
                .push((completion.id, latency, completion.anatomy));
        }
        self.ready.push(completion.id);
    }
}

fn random_4k(op: Op, pages: u64, seed: u64) -> impl FnMut(CommandId, u64) -> Command {
    let mut random = Stream::new(seed, "test workload");
    move |id, _| Command::new(id, op, random.uniform_below(pages) * 4096, 4096)
}

fn pages(config: &NandConfig) -> u64 {
    config.geometry.capacity / 4096
}

/// Returns IOPS and write amplification of 4 KiB random writes at QD64: `warm` commands, then `count` that are
/// measured.
fn write_speed(drive: &mut Nand, warm: u64, count: u64) -> (f64, f64) {
    let pages = u64::from(drive.shape.written);
    let mut load = Closed::new(64, warm, random_4k(Op::Write, pages, 1));
    let start = run(drive, &mut load, Time::ZERO, Time::NEVER);
    let before = *drive.ftl().traffic();
    let mut load = Closed::new(64, count, random_4k(Op::Write, pages, 2));
    load.now = start;
    let end = run(drive, &mut load, start, Time::NEVER);
    assert_eq!(load.finished, count);
    let amplification = drive.ftl().traffic().write_amplification_since(&before);
    (count as f64 / end.since(start).seconds(), amplification)
}

#[test]
fn a_read_takes_the_sum_of_its_stages() {
    let config = small();
    let mut drive = Nand::new(config.clone(), Precondition::Filled, 1);
    let mut load = Closed::new(1, 1, |id, _| Command::read(id, 8192, 4096));
    run(&mut drive, &mut load, Time::ZERO, Time::NEVER);
    let expected = 1_500 + 1_000 + 60_000 + (500 + 12_288) + 1_229 + 8_000;
    assert_eq!(load.latencies[0].1.ns(), expected);
}

#[test]
fn unmapped_reads_do_not_touch_the_medium() {
    let mut drive = Nand::new(small(), Precondition::Fresh, 1);
    let mut load = Closed::new(4, 100, random_4k(Op::Read, 1000, 3));
    run(&mut drive, &mut load, Time::ZERO, Time::NEVER);
    assert!(
        load.latencies
            .iter()
            .all(|(_, latency, _)| *latency < Span::from_us(20))
    );
    assert_eq!(drive.shared.array.counts().senses, 0);
}

/// All features at once, on a drive small enough for the conformance suite to fill.
fn everything(protected: bool) -> NandConfig {
    let mut config = small();
    config.geometry.blocks_per_plane = 16;
    config.geometry.pages_per_block = 8;
    set_over_provisioning(&mut config, 0.6);
    config.timing.read_spread = 0.3;
    config.timing.retry_probability = 0.01;
    config.timing.cache_read = !protected;
    config.timing.program_spread = 0.6;
    config.timing.program_jitter = 0.2;
    config.timing.suspend = Some(Suspend {
        latency: Span::from_us(30),
        resume: Span::from_us(10),
        most: 4,
        ..Suspend::default()
    });
    config.buffer = WriteBuffer {
        bytes: 256 << 10,
        protected,
        save_tables: Span::from_us(if protected { 0 } else { 800 }),
        fua_tables: Span::from_us(if protected { 0 } else { 500 }),
        tables_per_write: 0.3,
    };
    config.collection.per_unit = Span::from_us(3);
    config.controller.merge_before_ack = !protected;
    config.controller.issue_interval = Span::from_us(2);
    config.controller.write_issue_interval = Span::from_us(1);
    config.collection.background_free = 5;
    config.read_ahead = Some(ReadAhead {
        bytes: 131_072,
        after: 2,
    });
    config.refresh = Some(NandRefresh {
        every: Span::from_ms(20),
        lasts: Span::from_ms(1),
    });
    config.housekeeping = Some(Housekeeping {
        every_units: 500,
        mean: Span::from_ms(1),
    });
    config
}

/// [`everything`], and the mechanisms of drives that were measured under write load.
fn paced(protected: bool) -> NandConfig {
    let mut config = everything(protected);
    config.timing.suspend = Some(Suspend {
        latency: Span::from_us(30),
        resume: Span::from_us(10),
        most: 4,
        step: Span::from_us(80),
        blind: Span::from_us(200),
        erase_step: Span::from_us(900),
    });
    config.collection.bursts = Some(Bursts {
        pages: 5,
        host_share: 4,
        yield_at: 64,
        yield_after: Span::from_ms(20),
    });
    config.pace = Some(Pace { depth: 2 });
    config
}

#[test]
fn it_keeps_the_laws() {
    for protected in [false, true] {
        for state in [
            Precondition::Fresh,
            Precondition::Filled,
            Precondition::Steady,
        ] {
            crate::conformance::check_drive(|seed| Nand::new(everything(protected), state, seed));
        }
    }
    crate::conformance::check_drive(|seed| Nand::new(small(), Precondition::Steady, seed));
    for (blocks_per_die, folds) in [(4, false), (1000, true), (2, true)] {
        crate::conformance::check_drive(|seed| {
            let mut config = everything(false);
            config.slc = Some(SlcCache {
                blocks_per_die,
                folds,
                ..slc()
            });
            Nand::new(config, Precondition::Fresh, seed)
        });
    }
    for state in [Precondition::Fresh, Precondition::Steady] {
        crate::conformance::check_drive(|seed| {
            let mut config = everything(false);
            config.map = Some(MapConfig {
                bytes: 3 * 4096,
                read: Span::from_us(30),
            });
            Nand::new(config, state, seed)
        });
    }
    crate::conformance::check_drive(|seed| {
        let mut config = everything(false);
        config.controller.cores = Some(ReadCoreConfig {
            count: 3,
            per_read: Span::from_us(15),
        });
        config.controller.write_spread = Span::from_us(5);
        Nand::new(config, Precondition::Steady, seed)
    });
    for protected in [false, true] {
        for state in [Precondition::Fresh, Precondition::Steady] {
            crate::conformance::check_drive(|seed| Nand::new(paced(protected), state, seed));
        }
    }
    crate::conformance::check_drive(|seed| {
        let mut config = everything(true);
        config.filled = 0.4;
        Nand::new(config, Precondition::Steady, seed)
    });
}

fn slc() -> SlcCache {
    SlcCache {
        blocks_per_die: 4,
        bits: 2,
        read: Span::from_us(25),
        program: Span::from_us(300),
        folds: false,
    }
}

/// Runs these commands, each at its time in microseconds; returns the completions in order of id.
fn at_times(drive: &mut Nand, commands: &[(u64, Command)]) -> Vec<Completion> {
    at_times_until(drive, commands, Time::NEVER)
}

/// Like [`at_times`], but the run ends at `until`, even if the drive still works.
fn at_times_until(drive: &mut Nand, commands: &[(u64, Command)], until: Time) -> Vec<Completion> {
    struct Timed<'a> {
        commands: &'a [(u64, Command)],
        next: usize,
        done: Vec<Completion>,
    }
    impl Workload for Timed<'_> {
        fn next_arrival(&self) -> Time {
            let due = |&(us, _): &(u64, Command)| Time::ZERO + Span::from_us(us);
            self.commands.get(self.next).map_or(Time::NEVER, due)
        }
        fn arrive(&mut self, now: Time, submit: &mut impl FnMut(Command)) {
            while self.next_arrival() == now {
                submit(self.commands[self.next].1);
                self.next += 1;
            }
        }
        fn complete(&mut self, _: Time, completion: &Completion) {
            self.done.push(*completion);
        }
    }
    let mut load = Timed {
        commands,
        next: 0,
        done: Vec::new(),
    };
    run(drive, &mut load, Time::ZERO, until);
    load.done.sort_by_key(|completion| completion.id);
    load.done
}

#[test]
fn retries_lengthen_the_mean_sense_geometrically() {
    let mut config = small();
    config.timing.retry_probability = 0.2;
    let pages = pages(&config);
    let mut drive = Nand::new(config, Precondition::Filled, 1);
    let mut load = Closed::new(1, 20_000, random_4k(Op::Read, pages, 5));
    run(&mut drive, &mut load, Time::ZERO, Time::NEVER);
    let total: u64 = load
        .latencies
        .iter()
        .map(|(_, _, anatomy)| anatomy.get(Part::Medium).ns())
        .sum();
    let mean = total as f64 / 20_000.0;
    assert!((mean / (60_000.0 / 0.8) - 1.0).abs() < 0.02, "{mean}");
}

#[test]
fn the_buffer_answers_reads_and_takes_overwrites_in_place() {
    let mut drive = Nand::new(small(), Precondition::Fresh, 1);
    let mut commands: Vec<_> = (0..7)
        .map(|id| (0, Command::write(id, 40_960, 4096)))
        .collect();
    commands.push((100, Command::read(7, 40_960, 4096)));
    let done = at_times(&mut drive, &commands);
    assert_eq!(done[7].anatomy.get(Part::Medium), Span::ZERO);
    assert_eq!(drive.buffer.used(), 1);
}

#[test]
fn part_of_a_unit_is_merged_before_or_after_the_acknowledgement() {
    for merge_before_ack in [false, true] {
        let mut config = small();
        config.controller.merge_before_ack = merge_before_ack;
        let mut drive = Nand::new(config, Precondition::Filled, 1);
        let done = at_times(&mut drive, &[(0, Command::write(0, 512, 512))]);
        assert_eq!(
            done[0].anatomy.total() > Span::from_us(60),
            merge_before_ack
        );
        assert_eq!(drive.shared.array.counts().senses, 1);
    }
}

#[test]
fn deallocated_pages_read_without_the_medium() {
    let mut drive = Nand::new(small(), Precondition::Filled, 1);
    let done = at_times(
        &mut drive,
        &[
            (0, Command::new(0, Op::Deallocate, 0, 1 << 20)),
            (1000, Command::read(1, 0, 131_072)),
            (2000, Command::read(2, 1 << 20, 4096)),
        ],
    );
    assert_eq!(done[1].anatomy.get(Part::Medium), Span::ZERO);
    assert!(done[2].anatomy.get(Part::Medium) > Span::ZERO);
    drive.ftl().check();
}

#[test]
fn scaling_all_times_scales_all_latencies() {
    let times = |factor: u64| {
        let mut config = small();
        let timing = &mut config.timing;
        for span in [
            &mut timing.read,
            &mut timing.program,
            &mut timing.erase,
            &mut timing.channel_command,
        ] {
            *span = *span * factor;
        }
        timing.channel_ps_per_byte *= factor;
        let controller = &mut config.controller;
        for span in [
            &mut controller.per_read,
            &mut controller.per_write,
            &mut controller.per_write_unit,
            &mut controller.read_latency,
            &mut controller.write_latency,
            &mut controller.link_latency,
        ] {
            *span = *span * factor;
        }
        // A transfer of 4 KiB takes whole nanoseconds, so that rounding does not affect the comparison.
        controller.link_ps_per_byte = 250 * factor;
        let pages = pages(&config);
        let mut drive = Nand::new(config, Precondition::Steady, 1);
        let mut random = Stream::new(3, "mix");
        let mix = move |id, _| {
            let op = if random.chance(0.5) {
                Op::Read
            } else {
                Op::Write
            };
            Command::new(id, op, random.uniform_below(pages) * 4096, 4096)
        };
        let mut load = Closed::new(16, 20_000, mix);
        run(&mut drive, &mut load, Time::ZERO, Time::NEVER);
        load.latencies
            .iter()
            .map(|(_, latency, _)| latency.ns())
            .collect::<Vec<_>>()
    };
    let tripled: Vec<u64> = times(1).iter().map(|ns| ns * 3).collect();
    assert_eq!(tripled, times(3));
}

#[test]
fn a_trace_of_completions_stays_as_it_was() {
    let mut drive = Nand::new(everything(false), Precondition::Steady, 11);
    let pages = pages(&drive.config);
    let mut random = Stream::new(12, "trace");
    let mut commands: Vec<(u64, Command)> = Vec::new();
    for id in 0..24 {
        let op = [Op::Read, Op::Write, Op::Read, Op::Flush][random.uniform_below(4) as usize];
        let bytes = 4096 << random.uniform_below(4);
        let offset = random.uniform_below(pages - 8) * 4096;
        commands.push((u64::from(id) * 40, Command::new(id, op, offset, bytes)));
    }
    let mut lines = String::new();
    for completion in at_times(&mut drive, &commands) {
        let op = commands[completion.id as usize].1.op;
        lines += &format!("{:>2} {op:?} at {:?}:", completion.id, completion.at);
        for part in Part::ALL {
            let span = completion.anatomy.get(part);
            if span > Span::ZERO {
                lines += &format!(" {} {},", part.name(), span.ns());
            }
        }
        lines.push('\n');
    }
    insta::assert_snapshot!(lines);
}
