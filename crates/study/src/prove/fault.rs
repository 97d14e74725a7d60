//! What goes wrong besides the power, and whether the pool's promise covers it.

use model::Stream;
use model::data::Trouble;
use model::media::DriveConfig;
use model::tier::{Kind, PoolConfig, Target, TierConfig};

/// Something that befalls a member before a step of the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Blow {
    pub(super) before: u8,
    pub(super) member: u16,
    pub(super) trouble: Trouble,
}

/// Whether there is a life before the one that is tried, and what happens to members between.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Lives {
    /// The pool is new.
    One,
    /// The pool has lived before.
    Two,
    /// It has, and after the second life this member is as it was between the two.
    OldCopy(u16),
    /// The first of these is away in the second life, and the other afterwards.
    Alternate(u16, u16),
    /// A second life without the first of these, and another from the same start without the other; then the first of the
    /// one and the others of the other are put together.
    Split(u16, u16),
}

impl Lives {
    /// As bytes.
    pub(super) fn number(self) -> [u8; 3] {
        match self {
            Lives::One => [0, 0, 0],
            Lives::Two => [1, 0, 0],
            Lives::OldCopy(member) => [2, member as u8, 0],
            Lives::Alternate(one, two) => [3, one as u8, two as u8],
            Lives::Split(one, two) => [4, one as u8, two as u8],
        }
    }

    /// From bytes that [`Lives::number`] has made.
    pub(super) fn from_number(number: [u8; 3]) -> Option<Lives> {
        let [kind, one, two] = number;
        let (one, two) = (one.into(), two.into());
        Some(match kind {
            0 => Lives::One,
            1 => Lives::Two,
            2 => Lives::OldCopy(one),
            3 => Lives::Alternate(one, two),
            4 => Lives::Split(one, two),
            _ => return None,
        })
    }

    /// Members that are named.
    pub(super) fn members(self) -> Vec<u16> {
        match self {
            Lives::One | Lives::Two => Vec::new(),
            Lives::OldCopy(one) => vec![one],
            Lives::Alternate(one, two) | Lives::Split(one, two) => vec![one, two],
        }
    }
}

/// A kind of fault that is tried, a row of the table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Fault {
    /// Nothing but the power.
    PowerCut,
    /// The power goes again during the recovery.
    SecondCut,
    /// The pool has lived before: what an earlier power cut left stays on its members.
    SecondLife,
    /// An old copy of one is put back after a second life.
    OldCopy(u16),
    /// The first is away in a second life, the other after that.
    Alternate(u16, u16),
    /// The pool went on without the first, and a copy of it without the other; then both are put together.
    Split(u16, u16),
    /// One dies and returns, and the other dies later.
    ReturnsThenDies(u16, u16),
    /// One cannot read a few blocks, and the other dies and returns.
    UnreadableAndReturns(u16, u16),
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
    /// Data are lost, and the pool must say so: it does not open, or reads fail.
    MustBeTold,
    /// The promise says nothing of it: drives that lie, lose, misplace or change data and do not tell.
    NotPromised,
}

pub(super) fn has_array(config: &PoolConfig<DriveConfig>) -> bool {
    let is_array = |kind: &Kind| matches!(kind, Kind::Raid5(_) | Kind::Raid6(_));
    config.tiers.iter().any(|it| is_array(&it.kind))
}

fn has_log(config: &PoolConfig<DriveConfig>) -> bool {
    let mut tiers = config.tiers.iter();
    tiers.any(|it| matches!(it.kind, Kind::IntentLog(_)))
}

impl Fault {
    /// All that is tried on a pool.
    pub(super) fn of(config: &PoolConfig<DriveConfig>) -> Vec<Fault> {
        let members = 0..config.members.len() as u16;
        let mut faults = vec![Fault::PowerCut, Fault::SecondCut, Fault::SecondLife];
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
        faults.extend(members.clone().map(Fault::OldCopy));
        let loss = config.promise().loss;
        // An array without one goes on as long as the power does, and refuses what a cut has left in doubt.
        let ram = !has_array(config);
        let spare = |member: u16| !loss.happens(&|it| it == member, ram);
        let spare: Vec<u16> = members.filter(|&it| spare(it)).collect();
        for &one in &spare {
            for &two in spare.iter().filter(|&&it| it != one) {
                faults.push(Fault::Alternate(one, two));
                faults.push(Fault::ReturnsThenDies(one, two));
                faults.push(Fault::UnreadableAndReturns(one, two));
                if one < two {
                    faults.push(Fault::Split(one, two));
                }
            }
        }
        faults
    }

    /// In words.
    pub(super) fn words(&self, names: &[String]) -> String {
        let name = |member: &u16| names[usize::from(*member)].clone();
        match self {
            Fault::PowerCut => "power cut".into(),
            Fault::SecondCut => "power cut, and again in recovery".into(),
            Fault::SecondLife => "power cut in a second life".into(),
            Fault::OldCopy(member) => format!("an old copy of {} returns", name(member)),
            Fault::Alternate(one, two) => {
                format!("{} misses a life, {} the next", name(one), name(two))
            }
            Fault::Split(one, two) => {
                format!("{} and {} live without each other", name(one), name(two))
            }
            Fault::ReturnsThenDies(one, two) => {
                format!("{} is away for a time, then {} dies", name(one), name(two))
            }
            Fault::UnreadableAndReturns(one, two) => format!(
                "{} cannot read some, {} is away for a time",
                name(one),
                name(two)
            ),
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
            Fault::PowerCut | Fault::SecondCut | Fault::SecondLife => &[],
            Fault::Die(members) => members,
            Fault::OldCopy(member) => {
                return match loss.happens(&|it| it == *member, true) {
                    false => Covered::Yes,
                    true => Covered::MustBeTold,
                };
            }
            Fault::Split(..) => return Covered::MustBeTold,
            // Both have failed. What was written while the first was away is on the other alone, and where that is gone
            // nothing on the members says so.
            Fault::Alternate(..) | Fault::ReturnsThenDies(..) if has_array(config) => {
                // Of an array too few are left then, or enough.
                return Covered::MustBeTold;
            }
            Fault::Alternate(..) | Fault::ReturnsThenDies(..) => return Covered::NotPromised,
            // Blocks may be on no member then. An intent log passes over a root or a log block that cannot be read as if none
            // had been written there, so it cannot tell.
            // A cache without a superblock that can be read is gone, and that was the one that had everything: this is
            // the case above.
            Fault::UnreadableAndReturns(one, _) => {
                let is_one =
                    |it: &Target| matches!(it, Target::Slice { member, .. } if member == one);
                let silent = |it: &TierConfig| match it.kind {
                    Kind::IntentLog(_) => true,
                    Kind::WriteBack(_) => it.children.first().is_some_and(is_one),
                    _ => false,
                };
                return match config.tiers.iter().any(silent) {
                    true => Covered::NotPromised,
                    false => Covered::MustBeTold,
                };
            }
            Fault::Returns(member) | Fault::FailsWrite(member) | Fault::Unreadable(member) => {
                core::slice::from_ref(member)
            }
            Fault::Lies(_) | Fault::LosesWrite(_) | Fault::Misdirects(_) | Fault::Rots(_) => {
                return Covered::NotPromised;
            }
        };
        let happens = |ram| loss.happens(&|member| members.contains(&member), ram);
        match happens(true) {
            false => Covered::Yes,
            // An array that is not whole is refused if a crash has left its parity in doubt.
            true if has_array(config) && !has_log(config) && !happens(false) => Covered::MustBeTold,
            // Whether the data that a dead drive had are asked for again is its client's affair.
            true if matches!(
                self,
                Fault::Die(_) | Fault::PowerCut | Fault::SecondCut | Fault::SecondLife
            ) =>
            {
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
            Fault::PowerCut
            | Fault::SecondCut
            | Fault::SecondLife
            | Fault::OldCopy(_)
            | Fault::Alternate(..)
            | Fault::Split(..) => Vec::new(),
            Fault::ReturnsThenDies(one, two) => {
                let mut at = [before(), before(), before()];
                at.sort_unstable();
                vec![
                    blow(at[0], *one, Trouble::Dies),
                    blow(at[1], *one, Trouble::Returns),
                    blow(at[2], *two, Trouble::Dies),
                ]
            }
            Fault::UnreadableAndReturns(one, two) => {
                let mut at = [before(), before(), before()];
                at.sort_unstable();
                let unreadable = Trouble::Unreadable {
                    at: 0,
                    bytes: 16384,
                };
                vec![
                    blow(at[0], *one, unreadable),
                    blow(at[1], *two, Trouble::Dies),
                    blow(at[2], *two, Trouble::Returns),
                ]
            }
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
            Fault::ReturnsThenDies(_, two) => vec![*two],
            _ => Vec::new(),
        }
    }

    /// Lives before the one that is tried.
    pub(super) fn lives(&self) -> Lives {
        match *self {
            Fault::SecondLife => Lives::Two,
            Fault::OldCopy(member) => Lives::OldCopy(member),
            Fault::Alternate(one, two) => Lives::Alternate(one, two),
            Fault::Split(one, two) => Lives::Split(one, two),
            _ => Lives::One,
        }
    }
}
