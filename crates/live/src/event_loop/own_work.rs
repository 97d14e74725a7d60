//! Work that pools do without a client's command, such as a resync: it runs in slices, so that the loop returns to its
//! sockets.
//!
//! The model may do in 100 ms what takes this host seconds, because the members' data is really copied. A loop that
//! catches up before it accepts connections then falls further behind with each turn, and clients wait until the work is
//! complete. Each turn therefore spends at most [`SLICE`] on it. At full speed, the rest waits for the next tick. With a
//! clock, the virtual time is set back to that of the drive: commands in flight then complete later by as much.
//!
//! Not limited: the work during a command at full speed, which is part of the command.

use model::Span;

use super::{EventLoop, TICK};
use crate::clock::{Clock, Wall};
use crate::served::{Reply, ServedDevice};

/// Maximum wall-clock time of a turn for own work, without that of the last few events.
const SLICE: Span = Span::from_ms(50);

/// Interval that a message covers, and the delay within it that is reported.
const INTERVAL: Span = Span::from_ms(10_000);
const REPORTED: Span = Span::from_ms(1_000);

/// Time by which the virtual time was set back since the first delay that no message covers.
#[derive(Debug, Default)]
pub(super) struct VirtualDelay {
    sum: Span,
    since: Option<Wall>,
}

impl VirtualDelay {
    /// Adds a delay.
    fn add(&mut self, now: Wall, delay: Span) {
        self.since.get_or_insert(now);
        self.sum += delay;
    }

    /// Returns the sum of the delays of an interval that has ended, if it must be reported.
    fn due(&mut self, now: Wall) -> Option<Span> {
        self.since.take_if(|since| now >= since.plus(INTERVAL))?;
        let sum = std::mem::take(&mut self.sum);
        (sum >= REPORTED).then_some(sum)
    }
}

/// Runs a drive with commands in flight up to `now`, and appends the replies. A pool may get less far.
pub(super) fn advance(
    drive: &mut ServedDevice,
    clock: &Clock,
    now: Wall,
    replies: &mut Vec<Reply>,
) {
    let mut until = clock.horizon(now);
    if drive.works_alone() {
        let end = now.plus(SLICE);
        if !drive.advance_while(until, &mut || clock.wall() < end) {
            until = drive.now();
        }
    }
    drive.advance(until, replies);
}

impl EventLoop {
    /// With a clock: runs pools up to now, or sets the virtual time back if that takes too long.
    pub(super) fn catch_up(&mut self) {
        if self.clock.free() {
            return;
        }
        for drive in &mut self.drives {
            let until = self.clock.arrival(self.now);
            let clock = &self.clock;
            let end = clock.wall().plus(SLICE);
            if !drive.works_alone() || drive.advance_while(until, &mut || clock.wall() < end) {
                continue;
            }
            let delay = clock.on_the_wall(until.since(drive.now()));
            self.clock.set_back(delay);
            self.delays.add(self.now, delay);
        }
    }

    /// Reports the delays of the last seconds.
    pub(super) fn report_delays(&mut self, now: Wall) {
        if let Some(sum) = self.delays.due(now) {
            let ms = sum.ns() / 1_000_000;
            self.log.say(&format!(
                "this host is too slow for the internal work of a pool, such as a resync: the virtual time was set back by {ms} ms within 10 s, and commands were late by as much"
            ));
        }
    }

    /// Lets the drives do their periodic work. At full speed, a pool's own work takes as long as in wall-clock time, or
    /// longer if the host is slower.
    pub(super) fn settle_all(&mut self, now: Wall) {
        let reached = self.clock.arrival(now);
        let clock = &self.clock;
        for drive in &mut self.drives {
            if clock.free() && drive.works_alone() {
                let end = clock.wall().plus(SLICE);
                drive.settle_while(drive.now() + TICK, &mut || clock.wall() < end);
            } else if drive.works_alone() {
                // It has caught up in this turn, or could not.
                drive.settle(drive.now());
            } else {
                drive.settle(reached);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use model::media::Precondition;
    use model::{Op, Time};
    use workload::faults::Fault;

    use super::*;
    use crate::limits::ConnectionLimits;
    use crate::served::IoRequest;
    use crate::setup::Setup;

    const REGION: u64 = 1 << 20;
    const REGIONS: u64 = 4096;

    /// Returns a mirror that resyncs 4 GiB.
    fn resyncing_mirror() -> ServedDevice {
        let pool = "mirror(2*p4801x-100; region=1MiB)";
        let setup = Setup {
            size: Some(REGIONS * REGION),
            precondition: Some(Precondition::Fresh),
            ..Setup::new(catalogue::drive(pool).expect("a pool"))
        };
        let mut drive = setup.open().expect("a pool in memory");
        let suffer = |drive: &mut ServedDevice, fault| {
            let now = drive.now();
            drive.member_suffers(now, 1, &fault).expect("a fault");
        };
        suffer(&mut drive, Fault::Dies);
        for region in 0..REGIONS {
            let request = IoRequest {
                tag: 0,
                op: Op::Write,
                fua: false,
                queue: 0,
                offset: region * REGION,
                bytes: 4096,
            };
            drive.submit_with(drive.now(), 0, &request, &mut |data| {
                data.fill(7);
                true
            });
            let mut replies = Vec::new();
            drive.complete_all(&mut replies);
            drive.take_back(&replies[0]);
        }
        suffer(&mut drive, Fault::Returns);
        assert_eq!(drive.out_of_sync(), 1);
        drive
    }

    #[test]
    fn own_work_is_interrupted_and_continued() {
        let mut drive = resyncing_mirror();
        let (start, whole) = (drive.now(), Span::from_ms(60_000));
        let mut asked = 0;
        drive.settle_while(start + whole, &mut || {
            asked += 1;
            asked < 10
        });
        assert_eq!(asked, 10);
        assert!(start < drive.now() && drive.now() < start + whole);
        assert_eq!(drive.out_of_sync(), 1);
        drive.settle_while(start + whole, &mut || true);
        assert_eq!(drive.now(), start + whole);
        assert_eq!(drive.out_of_sync(), 0);
    }

    /// A virtual second takes a microsecond, which no host can keep up with.
    #[test]
    fn a_turn_ends_although_the_host_is_too_slow_for_a_resync() {
        let drive = resyncing_mirror();
        let (clock, limits) = (Clock::new(1e6), ConnectionLimits::default());
        let quiet = Box::new(|_: &str| {});
        let mut served = EventLoop::new(vec![drive], clock, limits, quiet).expect("a loop");
        let mut events = Vec::with_capacity(1);
        let mut turns = 0;
        while served.drives[0].out_of_sync() > 0 {
            served
                .turn(&mut events, Some(Span::ZERO))
                .expect("descriptors");
            turns += 1;
            assert!(turns < 100_000, "it does not continue");
        }
        assert!(turns > 1, "the first turn copied 4 GiB");
        assert!(served.clock.arrival(served.clock.wall()) > Time::ZERO);
    }

    #[test]
    fn delays_of_an_interval_are_reported_as_one() {
        let mut delays = VirtualDelay::default();
        let at = |ms| Wall::default().plus(Span::from_ms(ms));
        delays.add(at(5), Span::from_ms(600));
        delays.add(at(9_000), Span::from_ms(600));
        assert_eq!(delays.due(at(10_004)), None);
        // No other delay follows.
        assert_eq!(delays.due(at(10_005)), Some(Span::from_ms(1_200)));
        delays.add(at(60_000), Span::from_ms(600));
        assert_eq!(delays.due(at(69_999)), None);
        assert_eq!(delays.due(at(70_000)), None);
        assert_eq!(delays.due(at(90_000)), None);
    }
}
