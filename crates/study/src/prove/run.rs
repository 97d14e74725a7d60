//! Runs a program on a pool with data and injects faults into its members. At each moment at which a power cut could
//! leave a new state, a callback is called.

use model::data::{Buffers, DriveFault, Image, UndecidedWrite};
use model::{Command, Device, Op, Payload, Span, Status, Time};
use tier::AnyTier;
use tier::offline::RecoveredTiers;

use super::fault::InjectedFault;
use super::oracle::{Oracle, SECTOR, WrongContent, stamp};
use super::program::{Program, Step, StepAction};
use super::world::{Disks, Live, TestPool};

/// A pause that lets a mirror come to rest.
const REST: Span = Span::from_ms(6000);
/// Number of events without a completion after which a command is considered stuck.
const RESTLESS: u32 = 1_000_000;

/// A moment at which power may fail.
pub(super) struct Cut<'a> {
    /// Number of moments before it.
    pub(super) index: u32,
    pub(super) oracle: &'a Oracle,
    /// Content that is certainly on the media.
    pub(super) media: Vec<Image>,
    /// Writes that may or may not be on the media, by member.
    pub(super) undecided: Vec<(u16, UndecidedWrite)>,
    /// By tier: the children in sync, as a server has noted them.
    pub(super) in_sync: Vec<u32>,
}

/// A failure while the pool was running.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum ServiceFailure {
    /// A command ended with this status.
    Status(Step, Status),
    /// A read returned content that is not allowed.
    Read(Step, WrongContent),
    /// A command never ended.
    NeverEnds,
}

/// Whether the callback needs no further moments.
pub(super) type StopFlag = bool;

struct Outstanding {
    step: Step,
    version: u32,
    submitted: u32,
    payload: Payload,
}

struct ProgramRun<'a> {
    pool: Live,
    bytes: model::data::Bytes,
    now: Time,
    oracle: Oracle,
    outstanding: Vec<Option<Outstanding>>,
    /// Whether acknowledged writes are durable.
    at_once: bool,
    /// A trim may ignore partly covered blocks of this size in bytes.
    trimmed_unit: u64,
    look: &'a mut dyn FnMut(&Cut<'_>) -> StopFlag,
    changes: u64,
    cuts: u32,
    enough: bool,
    misdeed: Option<ServiceFailure>,
}

/// Initial state of a program, besides the media.
#[derive(Clone, Default)]
pub(super) struct InitialState {
    pub(super) oracle: Oracle,
    /// Version of the last step of an earlier program.
    pub(super) versions: u32,
}

/// Runs a program. Returns the first failure while the pool was running, and the commands to the members.
pub(super) fn run(
    world: &TestPool,
    (disks, tiers): (&Disks, RecoveredTiers),
    past: InitialState,
    seed: u64,
    program: &Program,
    blows: &[InjectedFault],
    look: &mut dyn FnMut(&Cut<'_>) -> StopFlag,
) -> (Option<ServiceFailure>, Vec<tier::ChildCommand>) {
    let (mut pool, bytes) = world.start(disks, tiers, seed);
    pool.record();
    let mut run = ProgramRun {
        pool,
        bytes,
        now: Time::ZERO,
        oracle: past.oracle,
        outstanding: Vec::new(),
        at_once: !world.config.needs_flushes(),
        trimmed_unit: world.trimmed_unit(),
        look,
        changes: u64::MAX,
        cuts: 0,
        enough: false,
        misdeed: None,
    };
    for &member in &disks.absent {
        run.pool.befall(run.now, member, DriveFault::Dies);
    }
    for (index, step) in program.steps.iter().enumerate() {
        run.befall(index, blows);
        run.step(
            past.versions + index as u32 + 1,
            *step,
            usize::from(program.depth.max(1)),
        );
        if run.enough {
            return (run.misdeed, Vec::new());
        }
    }
    run.befall(program.steps.len(), blows);
    run.drain();
    // After an early end there is nothing to compare.
    let trace = match run.enough {
        true => Vec::new(),
        false => run.pool.recorded(),
    };
    (run.misdeed, trace)
}

impl ProgramRun<'_> {
    fn befall(&mut self, step: usize, blows: &[InjectedFault]) {
        for blow in blows.iter().filter(|it| usize::from(it.before) == step) {
            self.pool.befall(self.now, blow.member, blow.trouble);
            self.look();
        }
    }

    fn busy(&self) -> usize {
        self.outstanding.iter().flatten().count()
    }

    fn step(&mut self, version: u32, step: Step, depth: usize) {
        match step.what {
            StepAction::Drain => return self.drain(),
            StepAction::Rest => {
                self.drain();
                let until = self.now + REST;
                while self.pool.next_event() <= until && !self.enough {
                    self.advance();
                }
                self.now = self.now.max(until);
                return;
            }
            _ => {}
        }
        while self.busy() >= depth && !self.enough {
            self.event();
        }
        if !self.enough {
            self.submit(version, step);
            self.look();
        }
    }

    fn submit(&mut self, version: u32, step: Step) {
        let op = match step.what {
            StepAction::Write | StepAction::WriteThrough => Op::Write,
            StepAction::Trim => Op::Deallocate,
            StepAction::Zero => Op::WriteZeroes,
            StepAction::Flush => Op::Flush,
            _ => Op::Read,
        };
        let (at, sectors) = (u64::from(step.at), u64::from(step.sectors));
        let bytes = (sectors * SECTOR as u64) as u32;
        let mut payload = Payload::default();
        if op.transfers() {
            payload = self.bytes.take(bytes);
        }
        if op == Op::Write {
            self.bytes.with_mut(payload, bytes, |data| {
                for (sector, data) in (at..).zip(data.chunks_exact_mut(SECTOR)) {
                    stamp(sector, version, data);
                }
            });
        }
        let submitted = match op {
            Op::Read | Op::Flush => self.oracle.tick(),
            _ => {
                self.oracle.submitted(version, op != Op::Write, at, sectors);
                0
            }
        };
        let free = self.outstanding.iter().position(Option::is_none);
        let id = free.unwrap_or_else(|| {
            self.outstanding.push(None);
            self.outstanding.len() - 1
        });
        self.outstanding[id] = Some(Outstanding {
            step,
            version,
            submitted,
            payload,
        });
        let command = Command {
            fua: step.what == StepAction::WriteThrough,
            payload,
            ..Command::new(id as u32, op, at * SECTOR as u64, bytes)
        };
        self.pool.submit(self.now, command);
    }

    fn drain(&mut self) {
        while self.busy() > 0 && !self.enough {
            self.event();
        }
    }

    /// Runs up to the next completion or change.
    fn event(&mut self) {
        for _ in 0..RESTLESS {
            if self.pool.next_event() == Time::NEVER {
                break;
            }
            if self.advance() {
                return;
            }
        }
        self.record_failure(ServiceFailure::NeverEnds);
        self.enough = true;
    }

    /// Runs the next event. Returns whether a command completed or a moment was shown.
    fn advance(&mut self) -> bool {
        let next = self.pool.next_event();
        let mut done = Vec::new();
        self.now = self.pool.advance(next, next, &mut done);
        for completion in &done {
            self.completed(completion.id, completion.status);
        }
        self.look() || !done.is_empty()
    }

    fn record_failure(&mut self, what: ServiceFailure) {
        self.misdeed.get_or_insert(what);
    }

    fn completed(&mut self, id: u32, status: Status) {
        let Some(asked) = self.outstanding[id as usize].take() else {
            return self.record_failure(ServiceFailure::NeverEnds);
        };
        let step = asked.step;
        let (at, sectors) = (u64::from(step.at), u64::from(step.sectors));
        let well = status == Status::Success;
        if !well {
            self.record_failure(ServiceFailure::Status(step, status));
        }
        match step.what {
            StepAction::Read if well => self.judge_read(&asked),
            StepAction::Read => {}
            StepAction::Flush => {
                if well {
                    self.oracle.flushed(asked.submitted);
                }
            }
            _ => {
                let durable = self.at_once || step.what == StepAction::WriteThrough;
                let mut done = at..at + sectors;
                if step.what == StepAction::Trim && self.trimmed_unit > SECTOR as u64 {
                    // Parts of units may keep their content.
                    let unit = self.trimmed_unit / SECTOR as u64;
                    let until = done.end / unit * unit;
                    done = at.next_multiple_of(unit).min(until)..until;
                    self.oracle.ended(asked.version, at, sectors, false, false);
                }
                let sectors = done.end - done.start;
                self.oracle
                    .ended(asked.version, done.start, sectors, well, durable);
            }
        }
        self.bytes.release(asked.payload);
    }

    fn judge_read(&mut self, asked: &Outstanding) {
        let step = asked.step;
        let bytes = u32::from(step.sectors) * SECTOR as u32;
        let oracle = &self.oracle;
        let wrong = self.bytes.with_bytes(asked.payload, bytes, |data| {
            let mut sectors = (u64::from(step.at)..).zip(data.chunks_exact(SECTOR));
            sectors
                .find_map(|(sector, data)| oracle.judge_read(sector, data, asked.submitted).err())
        });
        if let Some(wrong) = wrong {
            self.record_failure(ServiceFailure::Read(step, wrong));
        }
    }

    /// Calls the callback if a power cut now could leave a new state. Returns whether it did.
    fn look(&mut self) -> bool {
        let members = self.pool.members();
        let changes = members.iter().map(|it| it.changes()).sum();
        if changes == self.changes || self.enough {
            return false;
        }
        self.changes = changes;
        let mut undecided = Vec::new();
        for (index, member) in members.iter().enumerate() {
            let mut of_member = Vec::new();
            member.undecided(&mut of_member);
            undecided.extend(of_member.into_iter().map(|it| (index as u16, it)));
        }
        let cut = Cut {
            index: self.cuts,
            oracle: &self.oracle,
            media: members.iter().map(|it| it.contents().clone()).collect(),
            undecided,
            in_sync: self.pool.tiers().iter().map(AnyTier::in_sync).collect(),
        };
        self.cuts += 1;
        self.enough = (self.look)(&cut);
        true
    }
}
