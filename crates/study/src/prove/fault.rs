//! Faults besides the power cut, and whether the pool's durability guarantee covers them.

use model::Stream;
use model::data::{DriveFault, LastingErrors};
use tier::{DriveConfig, Kind, PoolConfig, Target, openings};

/// Bytes at the end of a slice with labels: those of openings, and two of a tier.
const LABELS: u64 = openings::LEAST + (8 << 10);

/// A fault of a member before a step of the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct InjectedFault {
    pub(super) before: u8,
    pub(super) member: u16,
    pub(super) trouble: DriveFault,
}

impl InjectedFault {
    fn new(before: u8, member: u16, trouble: DriveFault) -> InjectedFault {
        InjectedFault {
            before,
            member,
            trouble,
        }
    }
}

/// Epochs before the tested one, and the state of members between them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Lives {
    /// The pool is new.
    One,
    /// The pool has run before.
    Two,
    /// The pool has run before, and after the second epoch this member has its state from between the two.
    OldCopy(u16),
    /// The first member is missing in the second epoch, and the other one afterwards.
    Alternate(u16, u16),
    /// A second epoch without the first of these members, and another one from the same start without the other. Then
    /// the first member of the latter and the others of the former are combined.
    Split(u16, u16),
}

impl Lives {
    /// Returns the value as bytes.
    pub(super) fn number(self) -> [u8; 3] {
        match self {
            Lives::One => [0, 0, 0],
            Lives::Two => [1, 0, 0],
            Lives::OldCopy(member) => [2, member as u8, 0],
            Lives::Alternate(one, two) => [3, one as u8, two as u8],
            Lives::Split(one, two) => [4, one as u8, two as u8],
        }
    }

    /// Returns the value from bytes that [`Lives::number`] has made.
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

    /// Returns the named members.
    pub(super) fn members(self) -> Vec<u16> {
        match self {
            Lives::One | Lives::Two => Vec::new(),
            Lives::OldCopy(one) => vec![one],
            Lives::Alternate(one, two) | Lives::Split(one, two) => vec![one, two],
        }
    }
}

/// A kind of fault that is tried: a row of the table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Fault {
    /// Only the power cut.
    PowerCut,
    /// Power fails again during the recovery.
    SecondCut,
    /// The pool has run before: data that an earlier power cut left is still on its members.
    SecondLife,
    /// An old copy of this member is restored after a second epoch.
    OldCopy(u16),
    /// The first member is missing in a second epoch, the other one after that.
    Alternate(u16, u16),
    /// The pool continued without the first member, and a copy of it without the other; then both are combined.
    Split(u16, u16),
    /// The first member fails and returns, and the other one fails later.
    ReturnsThenDies(u16, u16),
    /// The first member cannot read some blocks, and the other one fails and returns.
    UnreadableAndReturns(u16, u16),
    /// The first member cannot read its labels, and the other one fails and returns.
    LabelsAndReturns(u16, u16),
    /// The first member fails, and the other one fails a write later.
    DiesAndFailsWrite(u16, u16),
    /// The given members fail one after another, and are missing after the power cut.
    Die(Vec<u16>),
    /// This member fails, and returns after the power cut or before.
    Returns(u16),
    /// This member fails one write.
    FailsWrite(u16),
    /// This member cannot read some blocks, before the cut and after.
    Unreadable(u16),
    /// This member cannot read the labels at the end of its slices.
    UnreadableLabels(u16),
    /// The store of this member gives an error for each access, until the power cut or also after it.
    Fails(u16),
    /// The store of this member gives an error for each read, before the cut and after.
    NeverReads(u16),
    /// This member acknowledges flushes without executing them.
    Lies(u16),
    /// This member acknowledges a write without executing it.
    LosesWrite(u16),
    /// This member writes to a wrong address.
    Misdirects(u16),
    /// A bit of this member flips.
    Rots(u16),
}

/// Returns the labels of a member as unreadable ranges: those of the pool and of a tier at the end of each slice.
fn labels_of(config: &PoolConfig<DriveConfig>, member: u16) -> Vec<DriveFault> {
    let targets = config.tiers.iter().flat_map(|it| &it.children);
    let labels = targets.filter_map(|target| match *target {
        Target::Slice {
            member: of,
            base,
            bytes,
        } if of == member => Some(DriveFault::Unreadable {
            at: base + bytes - LABELS,
            bytes: LABELS,
        }),
        _ => None,
    });
    labels.collect()
}

/// Returns the offset and bytes of the first part of a member that the pool uses.
fn slice_of(config: &PoolConfig<DriveConfig>, member: u16) -> Option<(u64, u64)> {
    let targets = config.tiers.iter().flat_map(|it| &it.children);
    targets.into_iter().find_map(|target| match *target {
        Target::Slice {
            member: of,
            base,
            bytes,
        } if of == member => Some((base, bytes)),
        _ => None,
    })
}

/// Returns the ranges of a member that cannot be read: both ends of a small pool's addresses, or a range anywhere in the
/// member's part of the pool. The beginning is more likely: rings, logs and roots are there.
fn unreadable_ranges(
    config: &PoolConfig<DriveConfig>,
    member: u16,
    seed: u64,
    stream: &mut Stream,
) -> Vec<(u64, u64)> {
    let bytes = config.bytes().min(1 << 20);
    let (base, used) = slice_of(config, member).unwrap_or((0, bytes));
    let within = (used.min(1 << 20) >> stream.uniform_below(4)).max(65536);
    let any = base + stream.uniform_below(within.min(used) / 4096) * 4096;
    match seed % 2 {
        0 => vec![(0, 16384), ((bytes - 16384) / 4096 * 4096, 16384)],
        _ => vec![(any, 65536.min(base + used - any))],
    }
}

/// Expected result of a fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultCoverage {
    /// The durability guarantee holds: no data may be lost.
    Yes,
    /// The durability guarantee states that data is lost: some loss must be found.
    LostByPromise,
    /// Data is lost, and the pool must report it: it does not open, or reads fail.
    MustBeTold,
    /// The durability guarantee does not cover it: drives that silently ignore, lose, misplace or change data.
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
    /// Returns all faults that are tried on a pool.
    pub(super) fn all_for_pool(config: &PoolConfig<DriveConfig>) -> Vec<Fault> {
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
            Fault::UnreadableLabels,
            Fault::Lies,
            Fault::LosesWrite,
            Fault::Misdirects,
            Fault::Rots,
        ];
        for kind in kinds {
            faults.extend(members.clone().map(kind));
        }
        faults.extend(members.clone().map(Fault::OldCopy));
        let failing = members.clone();
        let loss = config.promise().loss;
        // An array that lacks a member continues while there is power, and refuses to open if a cut has left its
        // parity in doubt.
        let ram = !has_array(config);
        let spare = |member: u16| !loss.happens(&|it| it == member, ram);
        let spare: Vec<u16> = members.filter(|&it| spare(it)).collect();
        for &one in &spare {
            for &two in spare.iter().filter(|&&it| it != one) {
                faults.push(Fault::Alternate(one, two));
                faults.push(Fault::ReturnsThenDies(one, two));
                faults.push(Fault::DiesAndFailsWrite(one, two));
                faults.push(Fault::UnreadableAndReturns(one, two));
                faults.push(Fault::LabelsAndReturns(one, two));
                if one < two {
                    faults.push(Fault::Split(one, two));
                }
            }
        }
        faults.extend(failing.clone().map(Fault::Fails));
        faults.extend(failing.map(Fault::NeverReads));
        faults
    }

    /// Returns the fault as text.
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
                format!("{} and {} diverge", name(one), name(two))
            }
            Fault::ReturnsThenDies(one, two) => {
                format!("{} is away for a time, then {} dies", name(one), name(two))
            }
            Fault::DiesAndFailsWrite(one, two) => {
                format!("{} dies, {} fails a write", name(one), name(two))
            }
            Fault::UnreadableAndReturns(one, two) => format!(
                "{} cannot read some, {} is away for a time",
                name(one),
                name(two)
            ),
            Fault::LabelsAndReturns(one, two) => format!(
                "{} cannot read its labels, {} is away for a time",
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
            Fault::UnreadableLabels(member) => format!("{} cannot read its labels", name(member)),
            Fault::Fails(member) => format!("{} fails all commands", name(member)),
            Fault::NeverReads(member) => format!("{} fails all reads", name(member)),
            Fault::Lies(member) => format!("{} lies about flushes", name(member)),
            Fault::LosesWrite(member) => format!("{} loses a write", name(member)),
            Fault::Misdirects(member) => format!("{} misplaces a write", name(member)),
            Fault::Rots(member) => format!("{} flips a bit", name(member)),
        }
    }

    /// Returns what the durability guarantee states on the fault.
    pub(super) fn covered(&self, config: &PoolConfig<DriveConfig>) -> FaultCoverage {
        let loss = config.promise().loss;
        let members: &[u16] = match self {
            Fault::PowerCut | Fault::SecondCut | Fault::SecondLife => &[],
            Fault::Die(members) => members,
            Fault::OldCopy(member) => {
                return match loss.happens(&|it| it == *member, true) {
                    false => FaultCoverage::Yes,
                    true => FaultCoverage::MustBeTold,
                };
            }
            Fault::Split(..) => return FaultCoverage::MustBeTold,
            // Data written while the first was missing may only be on the other one, which is now missing. The server's
            // note of the members in sync shows that.
            Fault::Alternate(..) | Fault::ReturnsThenDies(..) | Fault::LabelsAndReturns(..) => {
                return FaultCoverage::MustBeTold;
            }
            // Some blocks may then be on no member.
            Fault::UnreadableAndReturns(..) => return FaultCoverage::MustBeTold,
            Fault::DiesAndFailsWrite(one, two) => {
                return match loss.happens(&|it| it == *one || it == *two, true) {
                    false => FaultCoverage::Yes,
                    true => FaultCoverage::MustBeTold,
                };
            }
            Fault::Fails(member) | Fault::NeverReads(member)
                if loss.happens(&|it| it == *member, true) =>
            {
                return FaultCoverage::MustBeTold;
            }
            Fault::Unreadable(member) if loss.happens(&|it| it == *member, true) => {
                return FaultCoverage::MustBeTold;
            }
            Fault::UnreadableLabels(member) if loss.happens(&|it| it == *member, true) => {
                return FaultCoverage::MustBeTold;
            }
            Fault::UnreadableLabels(_) => return FaultCoverage::Yes,
            Fault::Returns(member)
            | Fault::FailsWrite(member)
            | Fault::Fails(member)
            | Fault::NeverReads(member)
            | Fault::Unreadable(member) => core::slice::from_ref(member),
            Fault::Lies(_) | Fault::LosesWrite(_) | Fault::Misdirects(_) | Fault::Rots(_) => {
                return FaultCoverage::NotPromised;
            }
        };
        let happens = |ram| loss.happens(&|member| members.contains(&member), ram);
        match happens(true) {
            false => FaultCoverage::Yes,
            // An incomplete array is refused if a crash has left its parity in doubt.
            true if has_array(config) && !has_log(config) && !happens(false) => {
                FaultCoverage::MustBeTold
            }
            // Whether the data of a failed drive is requested again depends on the client.
            true if matches!(
                self,
                Fault::Die(_) | Fault::PowerCut | Fault::SecondCut | Fault::SecondLife
            ) =>
            {
                FaultCoverage::LostByPromise
            }
            true => FaultCoverage::NotPromised,
        }
    }

    /// Returns the times and members of the faults in a program of this number of steps.
    pub(super) fn blows(
        &self,
        seed: u64,
        steps: usize,
        config: &PoolConfig<DriveConfig>,
    ) -> Vec<InjectedFault> {
        let mut stream = Stream::new(seed, "fault");
        let mut before = || stream.uniform_below(steps as u64 + 1) as u8;
        let blow = InjectedFault::new;
        match self {
            Fault::PowerCut
            | Fault::SecondCut
            | Fault::SecondLife
            | Fault::OldCopy(_)
            | Fault::Alternate(..)
            | Fault::Split(..) => Vec::new(),
            Fault::ReturnsThenDies(..)
            | Fault::DiesAndFailsWrite(..)
            | Fault::UnreadableAndReturns(..)
            | Fault::LabelsAndReturns(..) => {
                let mut at = [before(), before(), before()];
                at.sort_unstable();
                self.blows_of_two(at, seed, config)
            }
            Fault::Die(members) => {
                let die = |&member: &u16| blow(before(), member, DriveFault::Dies);
                members.iter().map(die).collect()
            }
            Fault::Returns(member) => {
                let (one, two) = (before(), before());
                let mut blows = vec![blow(one.min(two), *member, DriveFault::Dies)];
                // In half of the programs it is missing until after the power cut.
                if seed % 2 == 0 {
                    blows.push(blow(one.max(two), *member, DriveFault::Returns));
                }
                blows
            }
            Fault::FailsWrite(member) => vec![blow(before(), *member, DriveFault::FailsWrite)],
            Fault::Unreadable(member) => {
                let before = before();
                let ranges = unreadable_ranges(config, *member, seed, &mut stream);
                let trouble = |(at, bytes)| DriveFault::Unreadable { at, bytes };
                let blows = ranges
                    .into_iter()
                    .map(|it| blow(before, *member, trouble(it)));
                blows.collect()
            }
            Fault::UnreadableLabels(member) => {
                let before = before();
                let labels = labels_of(config, *member).into_iter();
                labels.map(|it| blow(before, *member, it)).collect()
            }
            Fault::Fails(member) => {
                let errors = match seed % 2 {
                    0 => LastingErrors::All,
                    _ => LastingErrors::AllUntilPowerCut,
                };
                vec![blow(before(), *member, DriveFault::Fails(errors))]
            }
            Fault::NeverReads(member) => {
                let trouble = DriveFault::Fails(LastingErrors::Reads);
                vec![blow(before(), *member, trouble)]
            }
            Fault::Lies(member) => vec![blow(0, *member, DriveFault::Lies)],
            Fault::LosesWrite(member) => vec![blow(before(), *member, DriveFault::LosesWrite)],
            Fault::Misdirects(member) => {
                let before = before();
                let by = 4096 * (1 + stream.uniform_below(16));
                vec![blow(before, *member, DriveFault::Misdirects { by })]
            }
            Fault::Rots(member) => {
                let before = before();
                let at = stream.uniform_below(32768);
                vec![blow(before, *member, DriveFault::Rots { at })]
            }
        }
    }

    /// Returns the faults of two members at three moments in order.
    fn blows_of_two(
        &self,
        at: [u8; 3],
        seed: u64,
        config: &PoolConfig<DriveConfig>,
    ) -> Vec<InjectedFault> {
        let blow = InjectedFault::new;
        let away = |member| {
            [
                blow(at[1], member, DriveFault::Dies),
                blow(at[2], member, DriveFault::Returns),
            ]
        };
        match *self {
            Fault::ReturnsThenDies(one, two) => vec![
                blow(at[0], one, DriveFault::Dies),
                blow(at[1], one, DriveFault::Returns),
                blow(at[2], two, DriveFault::Dies),
            ],
            Fault::DiesAndFailsWrite(one, two) => vec![
                blow(at[0], one, DriveFault::Dies),
                blow(at[1], two, DriveFault::FailsWrite),
            ],
            Fault::UnreadableAndReturns(one, two) => {
                let unreadable = DriveFault::Unreadable {
                    at: 0,
                    bytes: 16384,
                };
                let first = blow(at[0], one, unreadable);
                [first].into_iter().chain(away(two)).collect()
            }
            Fault::LabelsAndReturns(one, two) => {
                // In half of the programs before the other one is missing, otherwise after it has returned.
                let before = if seed % 2 == 0 { at[0] } else { at[2] };
                let labels = labels_of(config, one).into_iter();
                let labels = labels.map(|it| blow(before, one, it));
                labels.chain(away(two)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns the members that are missing after the power cut.
    pub(super) fn absent(&self) -> Vec<u16> {
        match self {
            Fault::Die(members) => members.clone(),
            Fault::ReturnsThenDies(_, member) | Fault::DiesAndFailsWrite(member, _) => {
                vec![*member]
            }
            _ => Vec::new(),
        }
    }

    /// Returns the epochs before the tested one.
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
