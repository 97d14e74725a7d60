//! What goes wrong besides the power, and whether the pool's promise covers it.

use model::Stream;
use model::data::Trouble;
use model::media::DriveConfig;
use model::tier::PoolConfig;

/// Something that befalls a member before a step of the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Blow {
    pub(super) before: u8,
    pub(super) member: u16,
    pub(super) trouble: Trouble,
}

/// A kind of fault that is tried, a row of the table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Fault {
    /// Nothing but the power.
    PowerCut,
    /// The power goes again during the recovery.
    SecondCut,
    /// These members die one after the other, and are not there after the power cut.
    Die(Vec<u16>),
    /// One dies, and is there again after the power cut, or before.
    Returns(u16),
    /// One cannot write once.
    FailsWrite(u16),
    /// One cannot read a few blocks, before the cut and after.
    Unreadable(u16),
    /// One acknowledges flushes and does nothing.
    Lies(u16),
    /// One acknowledges a write and does nothing.
    LosesWrite(u16),
    /// One writes to another place.
    Misdirects(u16),
    /// A bit of one flips.
    Rots(u16),
}

/// What is expected where a fault is tried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Covered {
    /// The promise holds: nothing may be lost.
    Yes,
    /// The promise says that data are lost: some loss must be found.
    LostByPromise,
    /// The promise says nothing of it: drives that lie, lose, misplace or change data and do not tell.
    NotPromised,
}

impl Fault {
    /// All that is tried on a pool.
    pub(super) fn of(config: &PoolConfig<DriveConfig>) -> Vec<Fault> {
        let members = 0..config.members.len() as u16;
        let mut faults = vec![Fault::PowerCut, Fault::SecondCut];
        faults.extend(members.clone().map(|it| Fault::Die(vec![it])));
        let pairs = members
            .clone()
            .flat_map(|one| (0..one).map(move |two| vec![two, one]));
        faults.extend(pairs.map(Fault::Die));
        let kinds = [
            Fault::Returns,
            Fault::FailsWrite,
            Fault::Unreadable,
            Fault::Lies,
            Fault::LosesWrite,
            Fault::Misdirects,
            Fault::Rots,
        ];
        for kind in kinds {
            faults.extend(members.clone().map(kind));
        }
        faults
    }

    /// In words.
    pub(super) fn words(&self, names: &[String]) -> String {
        let name = |member: &u16| names[usize::from(*member)].clone();
        match self {
            Fault::PowerCut => "power cut".into(),
            Fault::SecondCut => "power cut, and again in recovery".into(),
            Fault::Die(members) => {
                let names: Vec<String> = members.iter().map(name).collect();
                let verb = if names.len() == 1 { "dies" } else { "die" };
                format!("{} {verb}", names.join(" and "))
            }
            Fault::Returns(member) => format!("{} dies and returns", name(member)),
            Fault::FailsWrite(member) => format!("{} fails a write", name(member)),
            Fault::Unreadable(member) => format!("{} cannot read some blocks", name(member)),
            Fault::Lies(member) => format!("{} lies about flushes", name(member)),
            Fault::LosesWrite(member) => format!("{} loses a write", name(member)),
            Fault::Misdirects(member) => format!("{} misplaces a write", name(member)),
            Fault::Rots(member) => format!("{} flips a bit", name(member)),
        }
    }

    /// What the promise says of it.
    pub(super) fn covered(&self, config: &PoolConfig<DriveConfig>) -> Covered {
        let loss = config.promise().loss;
        let members: &[u16] = match self {
            Fault::PowerCut | Fault::SecondCut => &[],
            Fault::Die(members) => members,
            Fault::Returns(member) | Fault::FailsWrite(member) | Fault::Unreadable(member) => {
                core::slice::from_ref(member)
            }
            Fault::Lies(_) | Fault::LosesWrite(_) | Fault::Misdirects(_) | Fault::Rots(_) => {
                return Covered::NotPromised;
            }
        };
        match loss.happens(&|member| members.contains(&member), true) {
            false => Covered::Yes,
            // Whether the data that a dead drive had are asked for again is its client's affair.
            true if matches!(self, Fault::Die(_) | Fault::PowerCut | Fault::SecondCut) => {
                Covered::LostByPromise
            }
            true => Covered::NotPromised,
        }
    }

    /// When what befalls whom in a program of so many steps.
    pub(super) fn blows(&self, seed: u64, steps: usize, bytes: u64) -> Vec<Blow> {
        let mut stream = Stream::new(seed, "fault");
        let mut before = || stream.below(steps as u64 + 1) as u8;
        let blow = |before, member, trouble| Blow {
            before,
            member,
            trouble,
        };
        match self {
            Fault::PowerCut | Fault::SecondCut => Vec::new(),
            Fault::Die(members) => {
                let die = |&member: &u16| blow(before(), member, Trouble::Dies);
                members.iter().map(die).collect()
            }
            Fault::Returns(member) => {
                let (one, two) = (before(), before());
                let mut blows = vec![blow(one.min(two), *member, Trouble::Dies)];
                // In one of two programs it stays away until after the power cut.
                if seed % 2 == 0 {
                    blows.push(blow(one.max(two), *member, Trouble::Returns));
                }
                blows
            }
            Fault::FailsWrite(member) => vec![blow(before(), *member, Trouble::FailsWrite)],
            Fault::Unreadable(member) => {
                let before = before();
                let trouble = |at| Trouble::Unreadable { at, bytes: 16384 };
                let ends = [0, (bytes - 16384) / 4096 * 4096];
                ends.map(|at| blow(before, *member, trouble(at))).into()
            }
            Fault::Lies(member) => vec![blow(0, *member, Trouble::Lies)],
            Fault::LosesWrite(member) => vec![blow(before(), *member, Trouble::LosesWrite)],
            Fault::Misdirects(member) => {
                let before = before();
                let by = 4096 * (1 + stream.below(16));
                vec![blow(before, *member, Trouble::Misdirects { by })]
            }
            Fault::Rots(member) => {
                let before = before();
                let at = stream.below(32768);
                vec![blow(before, *member, Trouble::Rots { at })]
            }
        }
    }

    /// Members that are not there after the power cut.
    pub(super) fn absent(&self) -> Vec<u16> {
        match self {
            Fault::Die(members) => members.clone(),
            _ => Vec::new(),
        }
    }
}
