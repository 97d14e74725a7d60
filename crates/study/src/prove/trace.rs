//! Occasional checks: the same program without data, and service after a restart.

use model::data::{Buffers, DriveFault};
use model::{Command, Device, Op, Span, Status, Time};
use tier::ChildCommand;
use tier::offline::RecoveredTiers;

use super::program::{Program, Step, StepAction};
use super::run::ServiceFailure;
use super::world::{Disks, TestPool};

/// Returns the commands to the members when the program runs in virtual time.
pub(super) fn without_data(
    world: &TestPool,
    tiers: RecoveredTiers,
    seed: u64,
    program: &Program,
) -> Vec<ChildCommand> {
    let mut pool = world.start_without_data(tiers, seed);
    pool.record();
    let (mut now, mut busy) = (Time::ZERO, vec![false; 256]);
    let mut done = Vec::new();
    let mut until = |pool: &mut tier::Pool<_>, now: &mut Time, busy: &mut Vec<bool>, most| {
        while busy.iter().filter(|it| **it).count() > most {
            let next = pool.next_event();
            if next == Time::NEVER {
                break;
            }
            *now = pool.advance(next, next, &mut done);
            for completion in done.drain(..) {
                busy[completion.id as usize] = false;
            }
        }
    };
    for step in &program.steps {
        let op = match step.what {
            StepAction::Drain => {
                until(&mut pool, &mut now, &mut busy, 0);
                continue;
            }
            StepAction::Rest => {
                until(&mut pool, &mut now, &mut busy, 0);
                let end = now + Span::from_ms(6000);
                while pool.next_event() <= end {
                    let next = pool.next_event();
                    pool.advance(next, next, &mut Vec::new());
                }
                now = now.max(end);
                continue;
            }
            StepAction::Write | StepAction::WriteThrough => Op::Write,
            StepAction::Trim => Op::Deallocate,
            StepAction::Zero => Op::WriteZeroes,
            StepAction::Flush => Op::Flush,
            StepAction::Read => Op::Read,
        };
        let depth = usize::from(program.depth.max(1));
        until(&mut pool, &mut now, &mut busy, depth - 1);
        let id = busy.iter().position(|it| !it).unwrap_or(0);
        busy[id] = true;
        let bytes = u32::from(step.sectors) * 512;
        let command = Command {
            fua: step.what == StepAction::WriteThrough,
            ..Command::new(id as u32, op, u64::from(step.at) * 512, bytes)
        };
        pool.submit(now, command);
    }
    until(&mut pool, &mut now, &mut busy, 0);
    pool.recorded()
}

/// Checks whether both are equal, except for names and places of data.
pub(super) fn alike(one: &[ChildCommand], two: &[ChildCommand]) -> bool {
    let what = |it: &ChildCommand| {
        let command = it.command;
        let asked = (command.op, command.offset, command.bytes, command.fua);
        (it.at, it.member, asked)
    };
    one.len() == two.len() && one.iter().zip(two).all(|(one, two)| what(one) == what(two))
}

/// Starts the pool in its recovered state, writes and reads, and returns a failure, if any.
pub(super) fn serves(
    world: &TestPool,
    disks: &Disks,
    tiers: RecoveredTiers,
) -> Option<ServiceFailure> {
    let (mut pool, mut bytes) = world.start(disks, tiers, 1);
    let mut now = Time::ZERO;
    for &member in &disks.absent {
        pool.befall(now, member, DriveFault::Dies);
    }
    let sectors = 16_u16;
    let last = (world.bytes() / 512 - u64::from(sectors)) as u32;
    for (at, byte) in [(0, 1), (last, 2), (0, 3)] {
        for op in [Op::Write, Op::Flush, Op::Read] {
            let length = u32::from(sectors) * 512;
            let payload = bytes.take(length);
            bytes.put(
                payload,
                &vec![byte * u8::from(op == Op::Write); length as usize],
            );
            let command = Command {
                payload,
                ..Command::new(0, op, u64::from(at) * 512, length)
            };
            pool.submit(now, command);
            let mut done = Vec::new();
            while done.is_empty() {
                let next = pool.next_event();
                if next == Time::NEVER {
                    return Some(ServiceFailure::NeverEnds);
                }
                now = pool.advance(next, next, &mut done);
            }
            let what = if op == Op::Read {
                StepAction::Read
            } else {
                StepAction::Write
            };
            let step = Step { what, at, sectors };
            if done[0].status != Status::Success {
                return Some(ServiceFailure::Status(step, done[0].status));
            }
            let mut data = vec![0; length as usize];
            bytes.get(payload, &mut data);
            if op == Op::Read && data.iter().any(|&it| it != byte) {
                return Some(ServiceFailure::Read(
                    step,
                    super::oracle::WrongContent::Lost,
                ));
            }
            bytes.release(payload);
        }
    }
    None
}
