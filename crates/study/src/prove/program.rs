//! Programs: a client's commands on the tested pool, a short list made from a seed, which can be written as
//! hexadecimal digits and read again.
//!
//! There are few addresses, so that commands overlap. Programs contain parts of blocks; ranges across the borders of
//! blocks, chunks and mirror members; force unit access, flushes, trims; bursts and pauses, one of them long enough
//! for a mirror to come to rest.

use model::Stream;

/// Action of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum StepAction {
    Write,
    /// A write that completes when it is durable.
    WriteThrough,
    Trim,
    Zero,
    Flush,
    Read,
    /// Waits until all outstanding commands complete.
    Drain,
    /// Waits, and additionally lets this number of seconds pass.
    Rest,
}

const ALL: [StepAction; 8] = [
    StepAction::Write,
    StepAction::WriteThrough,
    StepAction::Trim,
    StepAction::Zero,
    StepAction::Flush,
    StepAction::Read,
    StepAction::Drain,
    StepAction::Rest,
];

/// A step of a program. Sectors have 512 B.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Step {
    pub(super) what: StepAction,
    /// First sector.
    pub(super) at: u32,
    pub(super) sectors: u16,
}

/// A list of steps.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Program {
    /// Maximum number of outstanding commands.
    pub(super) depth: u8,
    pub(super) steps: Vec<Step>,
}

/// Sectors of the largest command.
const LARGEST: u64 = 40;

impl Program {
    /// Returns the program with this number for a pool of this size. Every fourth has several threads.
    pub(super) fn new(seed: u64, bytes: u64) -> Program {
        if seed % 4 == 3 {
            return Program::threads(seed, bytes);
        }
        let mut stream = Stream::new(seed, "program");
        let sectors = bytes / 512;
        // A few neighbourhoods: one at each end, the others anywhere.
        let places: Vec<u64> = (0..3 + stream.uniform_below(3))
            .map(|index| match index {
                0 => 0,
                1 => sectors - LARGEST * 2,
                _ => stream.uniform_below(sectors - LARGEST * 2) / 8 * 8,
            })
            .collect();
        let length = 8 + stream.uniform_below(33);
        let depth = [1, 2, 4, 8, 16][stream.uniform_below(5) as usize];
        let mut steps = Vec::new();
        for _ in 0..length {
            let what = match stream.uniform_below(40) {
                0..=17 => StepAction::Write,
                18..=20 => StepAction::WriteThrough,
                21..=22 => StepAction::Trim,
                23 => StepAction::Zero,
                24..=29 => StepAction::Flush,
                30..=34 => StepAction::Read,
                35..=37 => StepAction::Drain,
                _ => StepAction::Rest,
            };
            let place = places[stream.uniform_below(places.len() as u64) as usize];
            let count = match stream.uniform_below(6) {
                0 => 1 + stream.uniform_below(7),
                1 => 8 * (1 + stream.uniform_below(LARGEST / 8)),
                2 => 1 + stream.uniform_below(LARGEST),
                _ => 8,
            };
            let within = match count % 8 {
                0 => 8 * stream.uniform_below(4),
                _ => stream.uniform_below(24),
            };
            steps.push(Step {
                what,
                at: (place + within) as u32,
                sectors: count as u16,
            });
        }
        Program { depth, steps }
    }

    /// Returns a program of two to six threads. Each writes and syncs its own range, like a database on a file
    /// system: sequential logs that end with FUA or a flush, and random pages. No thread waits for flushes of others.
    fn threads(seed: u64, bytes: u64) -> Program {
        let mut stream = Stream::new(seed, "threads");
        let sectors = bytes / 512;
        let count = 2 + stream.uniform_below(5);
        let room = sectors - LARGEST * 2;
        // The first is in the middle, at the border of a concatenation of two.
        let mut logs: Vec<(u64, u64)> = (0..count)
            .map(|thread| match thread {
                0 => (sectors / 2 - 2 * LARGEST / 8 * 8, 0),
                _ => (stream.uniform_below(room) / 8 * 8, 0),
            })
            .collect();
        let length = 24 + stream.uniform_below(37);
        let mut steps = Vec::new();
        while (steps.len() as u64) < length {
            let thread = stream.uniform_below(count);
            let (base, next) = &mut logs[thread as usize];
            let pages = 1 + stream.uniform_below(4);
            let what = match (thread % 2, stream.uniform_below(20)) {
                (0, 0..=8) | (1, 0..=3) => StepAction::WriteThrough,
                (_, 0..=11) => StepAction::Write,
                (_, 12..=16) => StepAction::Flush,
                (_, 17) => StepAction::Trim,
                (_, 18) => StepAction::Read,
                _ => StepAction::Drain,
            };
            let at = match thread % 2 {
                // A log that wraps around.
                0 => *base + *next % (LARGEST + 40),
                // Pages at a few addresses, often repeated.
                _ => *base + 8 * stream.uniform_below(LARGEST / 8),
            };
            if matches!(what, StepAction::Write | StepAction::WriteThrough) {
                *next += 8 * pages;
            }
            steps.push(Step {
                what,
                at: at.min(sectors - 8 * pages) as u32,
                sectors: (8 * pages) as u16,
            });
        }
        let depth = [4, 8, 16, 24][stream.uniform_below(4) as usize];
        Program { depth, steps }
    }

    /// Appends the program as bytes.
    pub(super) fn encode(&self, into: &mut Vec<u8>) {
        into.extend([self.depth, self.steps.len() as u8]);
        for step in &self.steps {
            into.push(step.what as u8);
            into.extend(step.at.to_le_bytes());
            into.extend(step.sectors.to_le_bytes());
        }
    }

    /// Parses a program from bytes that [`Program::encode`] made, and consumes them.
    pub(super) fn decode(from: &mut impl Iterator<Item = u8>) -> Option<Program> {
        let (depth, count) = (from.next()?, from.next()?);
        let mut steps = Vec::new();
        for _ in 0..count {
            let what = *ALL.get(usize::from(from.next()?))?;
            let mut byte = || from.next();
            let at = u32::from_le_bytes([byte()?, byte()?, byte()?, byte()?]);
            let sectors = u16::from_le_bytes([byte()?, byte()?]);
            steps.push(Step { what, at, sectors });
        }
        Some(Program { depth, steps })
    }

    /// Returns the program as text, one step per line.
    pub(super) fn words(&self) -> Vec<String> {
        let words = |(index, step): (usize, &Step)| {
            let range = format!("{} sectors at {}", step.sectors, step.at);
            let what = match step.what {
                StepAction::Write => format!("write {range}"),
                StepAction::WriteThrough => format!("write through {range}"),
                StepAction::Trim => format!("trim {range}"),
                StepAction::Zero => format!("write zeroes over {range}"),
                StepAction::Read => format!("read {range}"),
                StepAction::Flush => "flush".into(),
                StepAction::Drain => "wait for all".into(),
                StepAction::Rest => "wait for all, and 6 s".into(),
            };
            format!("{:>3}  {what}", index + 1)
        };
        self.steps.iter().enumerate().map(words).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_read_as_it_was_written() {
        for seed in 0..50 {
            let program = Program::new(seed, 1 << 20);
            let end = |step: &Step| u64::from(step.at) + u64::from(step.sectors);
            assert!(program.steps.iter().all(|step| end(step) <= 2048));
            let mut bytes = Vec::new();
            program.encode(&mut bytes);
            let mut bytes = bytes.into_iter();
            assert_eq!(Program::decode(&mut bytes), Some(program));
            assert_eq!(bytes.next(), None);
        }
    }
}
