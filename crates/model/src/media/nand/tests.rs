//! Behaviour of the whole drive, on small ones.

use super::*;
use crate::engine::{Workload, run};

/// A small drive: 16 dies, about 600 MB at 28 % over-provisioning.
fn small() -> NandConfig {
    let mut config = NandConfig {
        geometry: Geometry {
            channels: 4,
            dies_per_channel: 4,
            planes: 2,
            blocks_per_plane: 80,
            pages_per_block: 32,
            page_bytes: 16384,
            reserved: 0.0,
            capacity: 4096,
        },
        block: 512,
        timing: Timing {
            read: Span::from_us(60),
            read_spread: 0.0,
            retry_probability: 0.0,
            program: Span::from_us(1300),
            erase: Span::from_us(4000),
            suspend: None,
            channel_command: Span::from_ns(500),
            channel_ps_per_byte: 3000,
        },
        controller: Controller {
            per_read: Span::from_ns(1500),
            per_write: Span::from_ns(2000),
            per_write_unit: Span::from_ns(300),
            issue_interval: Span::ZERO,
            read_latency: Span::from_us(8),
            write_latency: Span::from_us(6),
            link_latency: Span::from_us(1),
            link_ps_per_byte: 300,
            max_transfer: 131_072,
            merge_before_ack: false,
        },
        buffer: WriteBuffer {
            bytes: 2 << 20,
            protected: true,
        },
        collection: Collection {
            watermark: Watermark { low: 3 },
            background_free: 0,
            idle_after: Span::from_ms(20),
        },
        read_ahead: None,
        slc: None,
        refresh: None,
        housekeeping: None,
        power: Power::default(),
        rated_cycles: 3000,
    };
    set_over_provisioning(&mut config, 0.28);
    config
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
    move |id, _| Command::new(id, op, random.below(pages) * 4096, 4096)
}

fn pages(config: &NandConfig) -> u64 {
    config.geometry.capacity / 4096
}

/// IOPS and write amplification of 4 KiB random writes at depth 64: `warm` commands, then `count` that are measured.
fn write_speed(drive: &mut Nand, warm: u64, count: u64) -> (f64, f64) {
    let pages = drive.config.geometry.capacity / 4096;
    let mut load = Closed::new(64, warm, random_4k(Op::Write, pages, 1));
    let start = run(drive, &mut load, Time::ZERO, Time::NEVER);
    let before = *drive.ftl.traffic();
    let mut load = Closed::new(64, count, random_4k(Op::Write, pages, 2));
    load.now = start;
    let end = run(drive, &mut load, start, Time::NEVER);
    assert_eq!(load.finished, count);
    let amplification = drive.ftl.traffic().write_amplification_since(&before);
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
    assert_eq!(drive.tally.senses, 0);
}

#[test]
fn computed_and_replayed_steady_states_write_alike() {
    for over_provisioning in [0.12, 0.28, 0.5] {
        let mut config = small();
        config.geometry.blocks_per_plane = 160;
        set_over_provisioning(&mut config, over_provisioning);
        let count = pages(&config);
        let mut computed = Nand::new(config.clone(), Precondition::Steady, 3);
        let mut replayed = Nand::replayed(config, 2.0, 4);
        let (iops, amplification) = write_speed(&mut computed, 20_000, count);
        let (real_iops, real_amplification) = write_speed(&mut replayed, 20_000, count);
        println!(
            "{over_provisioning}: {iops:.0} IOPS, {amplification:.4}; replayed {real_iops:.0}, {real_amplification:.4}"
        );
        computed.ftl.check();
        replayed.ftl.check();
        assert!((amplification / real_amplification - 1.0).abs() < 0.02);
        assert!((iops / real_iops - 1.0).abs() < 0.03);
    }
}

/// All features at once, on a drive small enough for the conformance suite to fill.
fn everything(protected: bool) -> NandConfig {
    let mut config = small();
    config.geometry.blocks_per_plane = 16;
    config.geometry.pages_per_block = 8;
    set_over_provisioning(&mut config, 0.6);
    config.timing.read_spread = 0.3;
    config.timing.retry_probability = 0.01;
    config.timing.suspend = Some(Suspend {
        latency: Span::from_us(30),
        resume: Span::from_us(10),
        most: 4,
    });
    config.buffer = WriteBuffer {
        bytes: 256 << 10,
        protected,
    };
    config.controller.merge_before_ack = !protected;
    config.controller.issue_interval = Span::from_us(2);
    config.collection.background_free = 5;
    config.read_ahead = Some(ReadAhead {
        bytes: 131_072,
        after: 2,
    });
    config.refresh = Some(Refresh {
        every: Span::from_ms(20),
        lasts: Span::from_ms(1),
    });
    config.housekeeping = Some(Housekeeping {
        every_units: 500,
        mean: Span::from_ms(1),
    });
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
}
