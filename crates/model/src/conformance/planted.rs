//! One planted bug per law: the suite must find it, and report the correct law.

use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::{Law, Suite, Witness};
use crate::anatomy::Part;
use crate::command::{Command, Completion, Status};
use crate::device::{Capacity, Device, Gauge, Gauges, Range};
use crate::media::ram::{Ram, RamConfig};
use crate::time::{Span, Time};

fn ram() -> Ram {
    Ram::new(RamConfig {
        bytes: 64 << 20,
        per_command: Span::from_us(3),
        picoseconds_per_byte: 100,
        memory_bus: None,
        spread: 0.0,
    })
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Bug {
    None,
    EventInThePast,
    EventStays,
    CompletesTwice,
    LosesOne,
    CompletesLater,
    SharesStateWithClones,
    DependsOnEarlierRuns,
    DependsOnTheHorizon,
    AnatomyShort,
    AcceptsBeyondTheEnd,
    RefusesTheLastBlock,
    FailsAWrite,
    GoesAway,
    NeverIdle,
    GaugeShrinks,
    BytesUncounted,
    TooBusy,
    DepthWrong,
    LosesWhatWasFlushed,
    LosesMoreThanItSays,
    CompletesAfterPowerCut,
}

/// A RAM disk with one bug.
#[derive(Clone)]
struct Faulty {
    inner: Ram,
    bug: Bug,
    now: Time,
    count: u64,
    shared: Rc<Cell<u64>>,
}

impl Faulty {
    fn new(bug: Bug, runs: &Rc<Cell<u64>>) -> Faulty {
        Faulty {
            inner: ram(),
            bug,
            now: Time::ZERO,
            count: 0,
            shared: if bug == Bug::DependsOnEarlierRuns {
                runs.clone()
            } else {
                Rc::default()
            },
        }
    }

    fn spoil(&mut self, now: Time, completion: &mut Completion) {
        match self.bug {
            Bug::CompletesLater => completion.at = now + Span::from_ns(1),
            Bug::SharesStateWithClones | Bug::DependsOnEarlierRuns => {
                // Moves a nanosecond between parts, so that only a comparison of runs detects it.
                self.shared.set(self.shared.get() + 1);
                if self.shared.get() % 4099 == 1000 {
                    let mut anatomy = crate::Anatomy::ZERO;
                    anatomy.add(Part::Link, completion.anatomy.total());
                    completion.anatomy = anatomy;
                }
            }
            Bug::AnatomyShort if self.count % 100 == 99 => {
                completion.anatomy.add(Part::Link, Span::from_ns(1));
            }
            Bug::AcceptsBeyondTheEnd => completion.status = Status::Success,
            Bug::FailsAWrite if self.count == 700 => completion.status = Status::WriteFault,
            Bug::GoesAway if self.count > 700 => completion.status = Status::Gone,
            _ => {}
        }
    }
}

impl Device for Faulty {
    fn capacity(&self) -> Capacity {
        self.inner.capacity()
    }

    fn submit(&mut self, now: Time, mut command: Command) {
        self.now = now;
        if self.bug == Bug::RefusesTheLastBlock && command.end() == self.capacity().bytes {
            command.offset += 512;
        }
        self.inner.submit(now, command);
    }

    fn next_event(&self) -> Time {
        let event = self.inner.next_event();
        match self.bug {
            Bug::EventInThePast if event != Time::NEVER => {
                Time::from_ns(event.ns().saturating_sub(5_000))
            }
            Bug::EventStays if self.count > 0 && self.count.is_multiple_of(50) => self.now,
            Bug::NeverIdle if event == Time::NEVER => self.now + Span::from_us(1),
            _ => event,
        }
    }

    fn advance(&mut self, now: Time, horizon: Time, done: &mut Vec<Completion>) -> Time {
        self.now = now;
        let event = self.inner.next_event();
        if event != now && self.bug != Bug::EventInThePast {
            return now;
        }
        let mut out = Vec::new();
        if event == now || self.bug == Bug::EventInThePast {
            self.inner.advance(event, event, &mut out);
        }
        for mut completion in out {
            if self.bug == Bug::EventInThePast {
                completion.at = now;
            }
            self.count += 1;
            self.spoil(now, &mut completion);
            if !(self.bug == Bug::LosesOne && self.count == 700) {
                done.push(completion);
            }
            if self.bug == Bug::CompletesTwice && self.count.is_multiple_of(64) {
                done.push(completion);
            }
        }
        if self.bug == Bug::DependsOnTheHorizon && horizon > now {
            for completion in done {
                let total = completion.anatomy.total();
                completion.anatomy = crate::Anatomy::ZERO;
                completion.anatomy.add(Part::Link, total);
            }
        }
        now
    }

    fn at_risk(&self, ranges: &mut Vec<Range>) {
        if self.bug == Bug::LosesWhatWasFlushed {
            ranges.push(Range {
                offset: 0,
                bytes: 1 << 20,
            });
        }
    }

    fn power_cut(&mut self, now: Time, lost: &mut Vec<Range>) -> Time {
        self.at_risk(lost);
        if self.bug == Bug::LosesMoreThanItSays {
            lost.push(Range {
                offset: 0,
                bytes: 4096,
            });
        }
        if self.bug != Bug::CompletesAfterPowerCut {
            self.inner.power_cut(now, &mut Vec::new());
        }
        now
    }

    fn inspect(&self, now: Time, gauges: &mut dyn Gauges) {
        if self.bug == Bug::LosesWhatWasFlushed {
            gauges.gauge(Gauge::BufferedBytes, f64::from(1 << 20));
        }
        let mut bent = Bent {
            bug: self.bug,
            now,
            gauges,
        };
        self.inner.inspect(now, &mut bent);
    }
}

struct Bent<'a> {
    bug: Bug,
    now: Time,
    gauges: &'a mut dyn Gauges,
}

impl Gauges for Bent<'_> {
    fn gauge(&mut self, gauge: Gauge, value: f64) {
        let value = match (self.bug, gauge) {
            (Bug::GaugeShrinks, Gauge::HostBytesWritten) => 1e12 - value,
            (Bug::BytesUncounted, Gauge::HostBytesRead) => (value - 4096.0).max(0.0),
            (Bug::TooBusy, Gauge::ControllerBusySeconds) => self.now.seconds() * 1.01,
            (Bug::DepthWrong, Gauge::QueueDepth) => (value - 1.0).max(0.0),
            _ => value,
        };
        self.gauges.gauge(gauge, value);
    }
}

fn examine(bug: Bug) -> Option<Law> {
    let suite = Suite {
        exact_depth: bug == Bug::DepthWrong,
        ..Suite::default()
    };
    let runs = Rc::new(Cell::new(0));
    (0..suite.seeds)
        .find_map(|seed| suite.examine(seed, |_| Faulty::new(bug, &runs)).err())
        .map(|violation| violation.law)
}

#[test]
fn each_planted_bug_is_found_under_its_name() {
    let expected = [
        (Bug::None, None),
        (Bug::EventInThePast, Some(Law::TimeForward)),
        (Bug::EventStays, Some(Law::Progress)),
        (Bug::CompletesTwice, Some(Law::OneCompletion)),
        (Bug::LosesOne, Some(Law::OneCompletion)),
        (Bug::CompletesLater, Some(Law::OneCompletion)),
        (Bug::SharesStateWithClones, Some(Law::Resumable)),
        (Bug::DependsOnEarlierRuns, Some(Law::Resumable)),
        (Bug::DependsOnTheHorizon, Some(Law::Resumable)),
        (Bug::AnatomyShort, Some(Law::Anatomy)),
        (Bug::AcceptsBeyondTheEnd, Some(Law::Refusal)),
        (Bug::RefusesTheLastBlock, Some(Law::Refusal)),
        (Bug::FailsAWrite, Some(Law::Refusal)),
        (Bug::GoesAway, Some(Law::Refusal)),
        (Bug::NeverIdle, Some(Law::Idle)),
        (Bug::GaugeShrinks, Some(Law::Gauges)),
        (Bug::BytesUncounted, Some(Law::Gauges)),
        (Bug::TooBusy, Some(Law::Utilisation)),
        (Bug::DepthWrong, Some(Law::Little)),
        (Bug::LosesWhatWasFlushed, Some(Law::PowerCut)),
        (Bug::LosesMoreThanItSays, Some(Law::PowerCut)),
        (Bug::CompletesAfterPowerCut, Some(Law::PowerCut)),
    ];
    for (bug, law) in expected {
        assert_eq!(examine(bug), law, "{bug:?}");
    }
}

/// How a composition may call its member incorrectly.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Slip {
    None,
    AdvancesLate,
    SubmitsFirst,
    ReusesIds,
}

/// A composition of one member that calls it wrongly.
#[derive(Clone)]
struct Careless<D> {
    member: D,
    slip: Slip,
    waiting: Vec<Command>,
}

impl<D: Device> Device for Careless<D> {
    fn capacity(&self) -> Capacity {
        self.member.capacity()
    }

    fn submit(&mut self, now: Time, mut command: Command) {
        if self.slip == Slip::ReusesIds {
            command.id %= 2;
        }
        // Waits for the next event, if there is one, and submits before the completions due at that time.
        let event = self.member.next_event();
        if self.slip == Slip::SubmitsFirst && event > now && event != Time::NEVER {
            self.waiting.push(command);
        } else {
            self.member.submit(now, command);
        }
    }

    fn next_event(&self) -> Time {
        let event = self.member.next_event();
        match self.slip {
            Slip::AdvancesLate if event != Time::NEVER => event + Span::from_ns(1),
            _ => event,
        }
    }

    fn advance(&mut self, now: Time, horizon: Time, done: &mut Vec<Completion>) -> Time {
        for command in self.waiting.drain(..) {
            self.member.submit(now, command);
        }
        self.member.advance(now, horizon, done)
    }

    fn power_cut(&mut self, now: Time, lost: &mut Vec<Range>) -> Time {
        self.waiting.clear();
        self.member.power_cut(now, lost)
    }

    fn inspect(&self, now: Time, gauges: &mut dyn Gauges) {
        self.member.inspect(now, gauges);
    }
}

#[test]
fn a_witness_catches_callers_that_break_the_contract() {
    let complaint = |slip| {
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            super::check(|_| Careless {
                member: Witness::new(ram()),
                slip,
                waiting: Vec::new(),
            });
        }));
        outcome.err().map(|panic| {
            panic
                .downcast_ref::<String>()
                .map_or(String::new(), |text| text.chars().take(5).collect())
        })
    };
    assert_eq!(complaint(Slip::None), None);
    assert_eq!(complaint(Slip::AdvancesLate).as_deref(), Some("law 2"));
    assert_eq!(complaint(Slip::SubmitsFirst).as_deref(), Some("law 5"));
    assert_eq!(complaint(Slip::ReusesIds).as_deref(), Some("law 3"));
}

#[test]
fn the_ram_disk_keeps_the_laws() {
    super::check_drive(|_| ram());
}
