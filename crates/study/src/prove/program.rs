//! What a client does to the pool that is tried: a short list of commands, made from a seed, which can be written down in
//! hexadecimal digits and read again.
//!
//! Few places, so that commands overlap; parts of blocks, ranges over the borders of blocks, chunks and legs; force unit
//! access, flushes, trims; bursts and pauses, one of them long enough for a mirror to rest.

use model::Stream;

/// What a step does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Do {
    Write,
    /// A write that completes when it is durable.
    WriteThrough,
    Trim,
    Zero,
    Flush,
    Read,
    /// All that is outstanding completes.
    Drain,
    /// So many seconds pass besides.
    Rest,
}

const ALL: [Do; 8] = [
    Do::Write,
    Do::WriteThrough,
    Do::Trim,
    Do::Zero,
    Do::Flush,
    Do::Read,
    Do::Drain,
    Do::Rest,
];

/// A step of a program. Sectors are of 512 B.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Step {
    pub(super) what: Do,
    /// First sector.
    pub(super) at: u32,
    pub(super) sectors: u16,
}

/// A program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Program {
    /// Most commands outstanding.
    pub(super) depth: u8,
    pub(super) steps: Vec<Step>,
}

/// Sectors of the largest command.
const LARGEST: u64 = 40;

impl Program {
    /// The program of this number for a pool of so many bytes.
    pub(super) fn new(seed: u64, bytes: u64) -> Program {
        let mut stream = Stream::new(seed, "program");
        let sectors = bytes / 512;
        // A few neighbourhoods: one at each end, the others anywhere.
        let places: Vec<u64> = (0..3 + stream.below(3))
            .map(|index| match index {
                0 => 0,
                1 => sectors - LARGEST * 2,
                _ => stream.below(sectors - LARGEST * 2) / 8 * 8,
            })
            .collect();
        let length = 8 + stream.below(33);
        let depth = [1, 2, 4, 8, 16][stream.below(5) as usize];
        let mut steps = Vec::new();
        for _ in 0..length {
            let what = match stream.below(40) {
                0..=17 => Do::Write,
                18..=20 => Do::WriteThrough,
                21..=22 => Do::Trim,
                23 => Do::Zero,
                24..=29 => Do::Flush,
                30..=34 => Do::Read,
                35..=37 => Do::Drain,
                _ => Do::Rest,
            };
            let place = places[stream.below(places.len() as u64) as usize];
            let count = match stream.below(6) {
                0 => 1 + stream.below(7),
                1 => 8 * (1 + stream.below(LARGEST / 8)),
                2 => 1 + stream.below(LARGEST),
                _ => 8,
            };
            let within = match count % 8 {
                0 => 8 * stream.below(4),
                _ => stream.below(24),
            };
            steps.push(Step {
                what,
                at: (place + within) as u32,
                sectors: count as u16,
            });
        }
        Program { depth, steps }
    }

    /// As bytes.
    pub(super) fn encode(&self, into: &mut Vec<u8>) {
        into.extend([self.depth, self.steps.len() as u8]);
        for step in &self.steps {
            into.push(step.what as u8);
            into.extend(step.at.to_le_bytes());
            into.extend(step.sectors.to_le_bytes());
        }
    }

    /// From bytes that [`Program::encode`] made, which it takes away.
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

    /// In words, a step a line.
    pub(super) fn words(&self) -> Vec<String> {
        let words = |(index, step): (usize, &Step)| {
            let range = format!("{} sectors at {}", step.sectors, step.at);
            let what = match step.what {
                Do::Write => format!("write {range}"),
                Do::WriteThrough => format!("write through {range}"),
                Do::Trim => format!("trim {range}"),
                Do::Zero => format!("write zeroes over {range}"),
                Do::Read => format!("read {range}"),
                Do::Flush => "flush".into(),
                Do::Drain => "wait for all".into(),
                Do::Rest => "wait for all, and 6 s".into(),
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
