//! Encoding of a case as hexadecimal digits, and decoding.

use model::data::{DriveFault, LastingErrors};
use model::{Span, Time};

use super::choice::CrashOutcome;
use super::fail::Fail;
use super::fault::{InjectedFault, Lives};
use super::program::Program;
use super::search::{CrashCase, CrashSearch};
use super::world::TestPool;

/// Returns the number of a fault, with the two parameters that some of them have.
fn number(trouble: DriveFault) -> (u8, u64, u64) {
    match trouble {
        DriveFault::Dies => (0, 0, 0),
        DriveFault::Returns => (1, 0, 0),
        DriveFault::Lies => (2, 0, 0),
        DriveFault::FailsWrite => (3, 0, 0),
        DriveFault::LosesWrite => (4, 0, 0),
        DriveFault::Misdirects { by } => (5, by, 0),
        DriveFault::Rots { at } => (6, at, 0),
        DriveFault::Unreadable { at, bytes } => (7, at, bytes),
        DriveFault::LosesPower => (8, 0, 0),
        // In whole microseconds.
        DriveFault::Slows { by, until } => (9, by.ns() / 1000, until.ns() / 1000),
        DriveFault::Fails(LastingErrors::Reads) => (10, 0, 0),
        DriveFault::Fails(LastingErrors::All) => (11, 0, 0),
        DriveFault::Fails(LastingErrors::AllUntilPowerCut) => (12, 0, 0),
    }
}

fn trouble(number: (u8, u64, u64)) -> Option<DriveFault> {
    Some(match number {
        (0, ..) => DriveFault::Dies,
        (1, ..) => DriveFault::Returns,
        (2, ..) => DriveFault::Lies,
        (3, ..) => DriveFault::FailsWrite,
        (4, ..) => DriveFault::LosesWrite,
        (5, by, _) => DriveFault::Misdirects { by },
        (6, at, _) => DriveFault::Rots { at },
        (7, at, bytes) => DriveFault::Unreadable { at, bytes },
        (8, ..) => DriveFault::LosesPower,
        (9, by, until) => DriveFault::Slows {
            by: Span::from_us(by),
            until: Time::from_ns(until * 1000),
        },
        (10, ..) => DriveFault::Fails(LastingErrors::Reads),
        (11, ..) => DriveFault::Fails(LastingErrors::All),
        (12, ..) => DriveFault::Fails(LastingErrors::AllUntilPowerCut),
        _ => return None,
    })
}

/// Returns a case as digits.
pub(super) fn encode(case: &CrashCase) -> String {
    let mut bytes = Vec::new();
    bytes.extend(case.seed.to_le_bytes());
    case.program.encode(&mut bytes);
    bytes.push(case.blows.len() as u8);
    for blow in &case.blows {
        let (kind, one, two) = number(blow.trouble);
        bytes.extend([blow.before, blow.member as u8, kind]);
        bytes.extend((one as u32).to_le_bytes());
        bytes.extend((two as u32).to_le_bytes());
    }
    bytes.push(case.absent.len() as u8);
    bytes.extend(case.absent.iter().map(|&it| it as u8));
    bytes.push(u8::from(case.cut.is_some()));
    if let Some((cut, choice)) = &case.cut {
        bytes.extend(cut.to_le_bytes());
        bytes.extend((choice.done.len() as u16).to_le_bytes());
        bytes.extend(choice.done.iter().map(|&it| u8::from(it)));
        let (write, sectors) = choice.torn.unwrap_or((u16::MAX, 0));
        bytes.extend(write.to_le_bytes());
        bytes.extend(sectors.to_le_bytes());
    }
    bytes.extend(case.again.unwrap_or(u16::MAX).to_le_bytes());
    if case.lives != Lives::One {
        bytes.extend(case.lives.number());
    }
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Parses a case from digits.
pub(super) fn decode(digits: &str) -> Option<CrashCase> {
    let digits = digits.trim();
    if !digits.is_ascii() || digits.len() % 2 != 0 {
        return None;
    }
    let bytes = (0..digits.len()).step_by(2);
    let bytes: Result<Vec<u8>, _> = bytes
        .map(|at| u8::from_str_radix(&digits[at..at + 2], 16))
        .collect();
    let mut bytes = bytes.ok()?.into_iter();
    fn number<const N: usize>(from: &mut impl Iterator<Item = u8>) -> Option<u64> {
        (0..N).try_fold(0, |number, index| {
            Some(number | u64::from(from.next()?) << (8 * index))
        })
    }
    let from = &mut bytes;
    let seed = number::<8>(from)?;
    let program = Program::decode(from)?;
    let mut blows = Vec::new();
    for _ in 0..from.next()? {
        let (before, member, kind) = (from.next()?, from.next()?, from.next()?);
        let trouble = trouble((kind, number::<4>(from)?, number::<4>(from)?))?;
        blows.push(InjectedFault {
            before,
            member: member.into(),
            trouble,
        });
    }
    let mut absent = Vec::new();
    for _ in 0..from.next()? {
        absent.push(from.next()?.into());
    }
    let mut cut = None;
    if from.next()? == 1 {
        let at = number::<4>(from)? as u32;
        let mut done = Vec::new();
        for _ in 0..number::<2>(from)? {
            done.push(from.next()? == 1);
        }
        let torn = (number::<2>(from)? as u16, number::<2>(from)? as u16);
        let torn = (torn.0 != u16::MAX).then_some(torn);
        cut = Some((at, CrashOutcome { done, torn }));
    }
    let again = number::<2>(from)? as u16;
    let lives = match from.next() {
        None => Lives::One,
        Some(kind) => Lives::from_number([kind, from.next()?, from.next()?])?,
    };
    from.next().is_none().then_some(CrashCase {
        lives,
        seed,
        program,
        blows,
        absent,
        cut,
        again: (again != u16::MAX).then_some(again),
    })
}

/// Repeats a case and returns its failure.
pub(super) fn repeat_case(world: &TestPool, case: &CrashCase) -> Option<(CrashCase, Fail)> {
    let mut search = CrashSearch::new(world, case.clone(), case.again.is_some());
    search.only = case.cut.clone();
    search.to_the_first = true;
    search.run().first
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_read_as_it_was_written() {
        let blow = |before, trouble| InjectedFault {
            before,
            member: 1,
            trouble,
        };
        let case = CrashCase {
            seed: 12345,
            program: Program::new(7, 1 << 20),
            blows: vec![
                blow(3, DriveFault::Dies),
                blow(4, DriveFault::Fails(LastingErrors::All)),
                blow(5, DriveFault::Fails(LastingErrors::AllUntilPowerCut)),
                blow(6, DriveFault::Fails(LastingErrors::Reads)),
                blow(
                    9,
                    DriveFault::Unreadable {
                        at: 8192,
                        bytes: 4096,
                    },
                ),
            ],
            absent: vec![1],
            lives: Lives::OldCopy(1),
            cut: Some((
                17,
                CrashOutcome {
                    done: vec![true, false, true],
                    torn: Some((2, 5)),
                },
            )),
            again: Some(3),
        };
        let digits = encode(&case);
        assert_eq!(decode(&digits), Some(case));
        assert_eq!(decode(&digits[2..]), None);
        assert_eq!(decode("zz"), None);
    }
}
