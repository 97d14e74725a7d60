//! Epochs before the tested one: a program that ends in order or by a power cut, a recovery, and members that are
//! missing or have an older state.

use model::Stream;
use model::data::Image;
use tier::offline::{Opening, RecoveredTiers};

use super::choice::{CrashOutcome, apply};
use super::fail::Fail;
use super::fault::{Lives, has_array};
use super::oracle::{Oracle, SECTOR};
use super::program::{Program, Step, StepAction};
use super::run::{Cut, InitialState, run};
use super::world::{Disks, TestPool};

/// Number of versions that an epoch may use.
const VERSIONS: u32 = 80;

/// State from earlier epochs, which is restored at each point.
#[derive(Clone, Default, Debug)]
pub(super) struct EarlierState {
    images: Vec<Image>,
    /// The children in sync at the end of the epoch, as a server has noted them.
    in_sync: Vec<u32>,
    /// The tested opening.
    opening: Option<Opening>,
}

impl EarlierState {
    /// Returns the media after a power cut, with missing members and restored states, and with what a server has noted:
    /// `in_sync`.
    pub(super) fn put_back(
        &self,
        lives: Lives,
        mut media: Vec<Image>,
        mut in_sync: Vec<u32>,
        absent: &[u16],
    ) -> Disks {
        let mut absent = absent.to_vec();
        let mut remembered = None;
        match lives {
            Lives::One | Lives::Two => {}
            Lives::OldCopy(member) => {
                let member = usize::from(member);
                media[member] = self.images[member].clone();
                // If no other member shows it, the server's own record must.
                remembered = self.opening.filter(|_| media.len() == 1);
            }
            Lives::Alternate(_, two) => {
                absent.push(two);
                remembered = self.opening;
            }
            Lives::Split(one, _) => {
                let of_this = media[usize::from(one)].clone();
                media = self.images.clone();
                media[usize::from(one)] = of_this;
                // Two servers have noted different states.
                in_sync.clear();
            }
        }
        Disks {
            remembered,
            in_sync,
            ..Disks::new(media, absent)
        }
    }
}

/// End of an epoch.
struct End {
    media: Vec<Image>,
    oracle: Oracle,
    in_sync: Vec<u32>,
}

/// Runs a program to its end or to a power cut, chosen by its seed; if it `rests`, always to its end.
fn live(
    world: &TestPool,
    (disks, tiers): (&Disks, RecoveredTiers),
    past: InitialState,
    seed: u64,
    rests: bool,
) -> Result<End, Fail> {
    let mut stream = Stream::new(seed, "the end of a life");
    let mut program = Program::new(seed, world.bytes());
    // Half of the epochs end in order; half of those of an array end at rest.
    let orderly = rests || stream.uniform_below(2) == 0;
    let until = if orderly {
        u64::MAX
    } else {
        stream.uniform_below(100)
    };
    let ends = [
        StepAction::Drain,
        StepAction::Flush,
        StepAction::Drain,
        StepAction::Rest,
    ];
    let rests = rests || (has_array(&world.config) && stream.uniform_below(2) == 0);
    for what in ends.into_iter().take(if rests { 4 } else { 3 }) {
        let (at, sectors) = (0, 8);
        program.steps.push(Step { what, at, sectors });
    }
    let mut end = None;
    let mut look = |cut: &Cut<'_>| {
        let done = cut
            .undecided
            .iter()
            .map(|_| orderly || stream.uniform_below(2) == 0);
        let choice = CrashOutcome {
            done: done.collect(),
            torn: None,
        };
        let over = u64::from(cut.index) >= until;
        // The last one is kept.
        end = Some(End {
            media: apply(&choice, &cut.undecided, &cut.media),
            oracle: cut.oracle.clone(),
            in_sync: cut.in_sync.clone(),
        });
        over
    };
    let (misdeed, _) = run(world, (disks, tiers), past, seed, &program, &[], &mut look);
    match (misdeed, end) {
        (Some(misdeed), _) => Err(Fail::Up(misdeed)),
        (None, Some(end)) => Ok(end),
        (None, None) => Err(Fail::Down("the previous epoch".into())),
    }
}

/// Recovers the pool, and makes its present content the expected one.
fn settle(
    world: &TestPool,
    disks: &mut Disks,
    oracle: &mut Oracle,
) -> Result<RecoveredTiers, Fail> {
    let found = world.recover(disks);
    let found = found.map_err(|(tier, damage)| {
        Fail::Down(format!("after the previous epoch: {tier}: {damage}"))
    })?;
    let mut data = [0; SECTOR];
    for sector in oracle.sectors().collect::<Vec<_>>() {
        let at = sector * SECTOR as u64;
        let read = world.read(&found, disks, at, &mut data);
        read.map_err(|_| Fail::Unreadable(sector))?;
        let judged = oracle.judge(sector, &data);
        judged.map_err(|wrong| Fail::Sector(sector, wrong))?;
        oracle.settle(sector, &data);
    }
    Ok(found)
}

type EpochStart = (Disks, RecoveredTiers, InitialState, EarlierState);

/// Runs everything before the tested epoch, and returns its media, its tiers, and the state that is restored
/// afterwards.
///
/// # Errors
/// The failure before the tested epoch.
pub(super) fn begin(world: &TestPool, lives: Lives, seed: u64) -> Result<EpochStart, Fail> {
    let mut disks = world.new_disks();
    let found = |disks: &mut Disks| {
        let found = world.recover(disks);
        found.map_err(|(tier, damage)| Fail::Down(format!("a new pool: {tier}: {damage}")))
    };
    let tiers = found(&mut disks)?;
    if lives == Lives::One {
        return Ok((
            disks,
            tiers,
            InitialState::default(),
            EarlierState::default(),
        ));
    }
    // A different program from the tested one.
    let first = seed ^ 0x5a5a_0000;
    let absent = match lives {
        Lives::Alternate(one, _) => vec![one],
        Lives::Split(_, two) => vec![two],
        _ => Vec::new(),
    };
    // After a power cut, an array does not open without a member.
    let rests = has_array(&world.config) && !absent.is_empty();
    let end = live(
        world,
        (&disks, tiers),
        InitialState::default(),
        first,
        rests,
    )?;
    let mut before = EarlierState {
        images: end.media,
        in_sync: end.in_sync,
        opening: None,
    };
    if let Lives::Split(one, _) = lives {
        let mut oracle = end.oracle.clone();
        let mut disks = Disks::new(before.images.clone(), vec![one]);
        disks.in_sync = before.in_sync.clone();
        let tiers = settle(world, &mut disks, &mut oracle)?;
        let past = InitialState {
            oracle,
            versions: 2 * VERSIONS,
        };
        let seed = seed ^ 0xa5a5_0000;
        let other = live(world, (&disks, tiers), past, seed, false)?;
        disks = Disks::new(before.images, absent);
        disks.in_sync = before.in_sync;
        before = EarlierState {
            images: other.media,
            in_sync: other.in_sync,
            opening: None,
        };
        return second(world, disks, end.oracle, before);
    }
    let mut disks = Disks::new(before.images.clone(), absent);
    disks.in_sync = before.in_sync.clone();
    second(world, disks, end.oracle, before)
}

fn second(
    world: &TestPool,
    mut disks: Disks,
    mut oracle: Oracle,
    mut before: EarlierState,
) -> Result<EpochStart, Fail> {
    let tiers = settle(world, &mut disks, &mut oracle)?;
    before.opening = tiers.opening;
    let past = InitialState {
        oracle,
        versions: VERSIONS,
    };
    Ok((disks, tiers, past, before))
}
