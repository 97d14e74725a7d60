//! The buffer alone: units are programmed in order, none is lost, and commands that wait for the medium complete when
//! it is reached.

use super::*;
use crate::command::Command;
use crate::ftl::PrecomputedSlot;
use crate::media::nand::tests::{shared, small};
use proptest::prelude::*;

/// A buffer with or without capacitors, the state that it needs, and the slot at which the next page will be
/// programmed.
struct Bench {
    buffer: NandBuffer,
    shared: Shared,
    next_id: CommandId,
}

impl Bench {
    fn new(protected: bool, units: u64) -> Bench {
        let mut config = small();
        config.buffer.protected = protected;
        config.buffer.bytes = units * u64::from(UNIT);
        let shared = shared(&config);
        let mut random = Stream::new(1, "test");
        Bench {
            buffer: NandBuffer::new(&config, shared.ftl.shape(), &mut random),
            shared,
            next_id: 0,
        }
    }

    /// A command arrives at the buffer at time zero; returns its id.
    fn arrive(&mut self, mut command: Command) -> CommandId {
        command.id = self.next_id;
        self.next_id += 1;
        self.shared.front.accept(Time::ZERO, &command, false);
        let dispatched = Time::ZERO + small().controller.link_latency;
        let segment = CommandSegment {
            at: dispatched,
            id: command.id,
            offset: command.offset,
            bytes: command.bytes,
            dispatched,
            looked_up: Span::ZERO,
            foreseen: PrecomputedSlot::NOTHING,
        };
        self.buffer
            .segment_arrives(dispatched, segment, &mut self.shared);
        command.id
    }

    fn write(&mut self, page: u32, units: u32) -> CommandId {
        let unit = u64::from(UNIT);
        self.arrive(Command::write(0, u64::from(page) * unit, units * UNIT))
    }

    /// Programs a page on a die; false if there is none.
    fn program(&mut self, die: Die) -> bool {
        if !self.buffer.page_ready() {
            return false;
        }
        let now = Time::ZERO + Span::from_us(10);
        let slot = self.shared.ftl.take_page(die, Writer::Host);
        let slot = slot.expect("a new drive has room");
        self.buffer.take_page(now, die, &mut self.shared);
        let then = now + Span::from_us(10);
        self.buffer.programmed(then, die, slot, &mut self.shared);
        true
    }

    /// Returns how many commands have been acknowledged, or completed for another reason.
    fn finished(&mut self) -> usize {
        let mut done = Vec::new();
        while self.shared.front.next() != Time::NEVER {
            let next = self.shared.front.next();
            self.shared.front.answer(next, &mut done);
        }
        done.len()
    }

    /// Checks that every slot is free, waits for a die, or is being programmed.
    fn check(&self) {
        let buffer = &self.buffer;
        let taken: usize = buffer.taken.iter().map(|taken| taken.units.len()).sum();
        let all = buffer.free.len() + buffer.pending.len() + taken;
        assert_eq!(all, buffer.slots.len());
    }
}

#[test]
fn units_leave_in_the_order_in_which_they_came() {
    let mut bench = Bench::new(true, 64);
    bench.write(100, 5);
    bench.write(7, 5);
    let first = Slot(0);
    assert!(bench.program(Die(0)));
    let pages = (0..8).map(|further| bench.shared.ftl.valid_page(first.plus(further)));
    let came = [100, 101, 102, 103, 104, 7, 8, 9].map(|page| Some(Page(page)));
    assert_eq!(pages.collect::<Vec<_>>(), came);
    assert!(!bench.program(Die(0)), "two units are no page");
    assert_eq!(bench.finished(), 2);
}

#[test]
fn a_write_waits_for_room_and_the_first_comes_first() {
    let mut bench = Bench::new(true, 16);
    bench.write(0, 12);
    bench.write(100, 12);
    bench.write(200, 1);
    assert_eq!(bench.finished(), 1);
    // Eight slots are free then, and six units wait: the last one is that of the third write.
    assert!(bench.program(Die(0)));
    bench.check();
    assert_eq!(bench.finished(), 1);
    assert!(bench.program(Die(1)));
    assert_eq!(bench.finished(), 1);
}

#[test]
fn a_unit_is_overwritten_where_it_is_until_a_die_takes_it() {
    let mut bench = Bench::new(true, 64);
    bench.write(0, 8);
    bench.write(3, 1);
    assert_eq!(
        (bench.buffer.used(), bench.buffer.counts().taken_in),
        (8, 8)
    );
    bench
        .buffer
        .take_page(Time::from_ns(2000), Die(0), &mut bench.shared);
    bench.write(3, 1);
    assert_eq!(
        (bench.buffer.used(), bench.buffer.counts().taken_in),
        (9, 9)
    );
    bench.check();
}

#[test]
fn a_flush_waits_for_what_came_before_it_and_for_nothing_else() {
    let mut bench = Bench::new(false, 64);
    bench.write(0, 3);
    bench.arrive(Command::flush(0));
    bench.write(50, 3);
    bench.arrive(Command::flush(0));
    bench.write(90, 3);
    assert_eq!(bench.finished(), 3);
    // Six units must be programmed although they are less than a page; units after the last flush complete it.
    assert!(bench.program(Die(0)));
    assert_eq!(bench.finished(), 2);
    assert!(!bench.program(Die(0)));
    bench.arrive(Command::flush(0));
    assert!(bench.program(Die(0)));
    assert_eq!(bench.finished(), 1);
    assert_eq!(bench.buffer.counts().padded, 7);
    // Nothing is left to be flushed, and no tables are saved.
    bench.arrive(Command::flush(0));
    assert_eq!(bench.finished(), 1);
}

#[test]
fn with_capacitors_a_flush_waits_for_nothing() {
    let mut bench = Bench::new(true, 64);
    bench.write(0, 3);
    bench.arrive(Command::flush(0));
    assert_eq!(bench.finished(), 2);
    assert!(!bench.buffer.page_ready());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_slot_and_no_command_is_lost(
        protected: bool,
        actions in prop::collection::vec((0u8..5, 0u32..60, 1u32..12), 1..120),
    ) {
        let mut bench = Bench::new(protected, 24);
        let mut dies = (0..16).cycle().map(Die);
        for (action, page, units) in actions {
            match action {
                0..2 => {
                    bench.write(page, units);
                }
                2 => {
                    bench.arrive(Command::flush(0));
                }
                _ => {
                    bench.program(dies.next().expect("without end"));
                }
            }
            bench.check();
        }
        let mut finished = bench.finished();
        bench.buffer.drain_all();
        while bench.program(dies.next().expect("without end")) {
            bench.buffer.drain_all();
        }
        finished += bench.finished();
        prop_assert_eq!(finished, bench.next_id as usize);
        prop_assert_eq!(bench.buffer.used(), 0);
    }
}
