//! Search: programs, faults, power cuts, the resulting media states, recoveries and judgements, until the required
//! number of points has been tried.

use model::Stream;
use model::data::{DriveFault, LastingErrors};
use tier::offline::{RecoveredTiers, RecoveryFinding};

use super::choice::{self, CrashOutcome};
use super::fail::Fail;
use super::fault::{Fault, FaultCoverage, InjectedFault, Lives};
use super::life::EarlierState;
use super::oracle::{Oracle, SECTOR, WrongContent};
use super::program::Program;
use super::ring;
use super::run::{Cut, ServiceFailure, run};
use super::world::{Disks, RecoveryStep, TestPool};

/// A complete case, which can be repeated.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct CrashCase {
    pub(super) seed: u64,
    pub(super) program: Program,
    pub(super) blows: Vec<InjectedFault>,
    pub(super) absent: Vec<u16>,
    /// Earlier epochs, and the state of members between them.
    pub(super) lives: Lives,
    /// Moment and result of the power cut; `None` if the running pool fails.
    pub(super) cut: Option<(u32, CrashOutcome)>,
    /// Number of steps of the recovery after which power fails again.
    pub(super) again: Option<u16>,
}

/// Counts of tried points, and their results.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SearchTally {
    /// Power cuts, each with one choice of the writes that had reached the media.
    pub points: u64,
    /// Number of programs.
    pub programs: u64,
    /// Points with a reported loss of guaranteed data: the pool did not start, or reads failed.
    pub lost: u64,
    /// Points that returned an older version than guaranteed, without an error.
    pub silent: u64,
    /// Points that returned another sector's data, or garbage.
    pub others: u64,
    /// Points after which reads differ, or a second recovery does.
    pub unstable: u64,
    /// Programs in which a running pool failed, or returned content that is not allowed.
    pub service: u64,
    /// Maximum number of sectors lost at one point, and the number written by then.
    pub worst: (u64, u64),
    /// Number of points with a torn write. The next three fields count points with mirror members that were being
    /// resynced, with members that were made equal, and with a missing member.
    pub torn: u64,
    /// See `torn`.
    pub stale: u64,
    /// See `torn`.
    pub unclean: u64,
    /// See `torn`.
    pub absent: u64,
    /// Number of recoveries that were interrupted by a power cut.
    pub second: u64,
    /// Number of points after which a ring was read that has wrapped at least once. `gaps` counts points with records
    /// after the first gap of a ring, and `told` points at which a ring had lost durable records and reported it.
    pub wrapped: u64,
    /// See `wrapped`.
    pub gaps: u64,
    /// Points after which an intent log repeated writes.
    pub logged: u64,
    /// See `wrapped`.
    pub told: u64,
    /// Points at which a ring had lost durable records, could detect it, and did not report it.
    pub untold: u64,
    /// Maximum number of undecided writes.
    pub undecided: u64,
}

impl SearchTally {
    pub(super) fn add(&mut self, other: &SearchTally) {
        self.points += other.points;
        self.programs += other.programs;
        self.lost += other.lost;
        self.silent += other.silent;
        self.others += other.others;
        self.unstable += other.unstable;
        self.service += other.service;
        self.torn += other.torn;
        self.stale += other.stale;
        self.unclean += other.unclean;
        self.absent += other.absent;
        self.second += other.second;
        self.wrapped += other.wrapped;
        self.gaps += other.gaps;
        self.logged += other.logged;
        self.told += other.told;
        self.untold += other.untold;
        self.undecided = self.undecided.max(other.undecided);
        if other.worst.0 > self.worst.0 {
            self.worst = other.worst;
        }
    }

    /// Returns the number of points and programs with any failure.
    pub fn failures(&self) -> u64 {
        self.lost + self.silent + self.others + self.unstable + self.service + self.untold
    }
}

/// Returns runs of written sectors: the first sector, and the number of sectors.
fn runs(oracle: &Oracle) -> Vec<(u64, u64)> {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for sector in oracle.sectors() {
        match runs.last_mut() {
            Some((first, count)) if *first + *count == sector => *count += 1,
            _ => runs.push((sector, 1)),
        }
    }
    runs
}

/// Search over one program.
pub(super) struct CrashSearch<'a> {
    pub(super) world: &'a TestPool,
    pub(super) case: CrashCase,
    /// Whether power fails in the recovery, too.
    pub(super) again: bool,
    /// Whether rings may have lost durable records, so that they are inspected.
    pub(super) suspicious: bool,
    /// Whether a reported loss is correct behaviour.
    pub(super) told_is_right: bool,
    /// State from the earlier epochs, restored at each point.
    before: EarlierState,
    /// Whether it ends at the first failure.
    pub(super) to_the_first: bool,
    /// Number of points after which it ends.
    pub(super) most: u64,
    /// Number of subsets that are tried at one moment.
    pub(super) share: u64,
    /// Only this moment, with this result.
    pub(super) only: Option<(u32, CrashOutcome)>,
    pub(super) tally: SearchTally,
    pub(super) first: Option<(CrashCase, Fail)>,
    stream: Stream,
    again_stream: Stream,
}

impl<'a> CrashSearch<'a> {
    pub(super) fn new(world: &'a TestPool, case: CrashCase, again: bool) -> CrashSearch<'a> {
        let stream = Stream::new(case.seed, "choices");
        let again_stream = Stream::new(case.seed, "second cuts");
        CrashSearch {
            world,
            case,
            again,
            suspicious: true,
            told_is_right: false,
            before: EarlierState::default(),
            to_the_first: false,
            most: u64::MAX,
            share: choice::MOST,
            only: None,
            tally: SearchTally::default(),
            first: None,
            stream,
            again_stream,
        }
    }

    /// Returns the search over the program of a seed under a fault.
    pub(super) fn for_fault(world: &'a TestPool, fault: &Fault, seed: u64) -> CrashSearch<'a> {
        let program = Program::new(seed, world.bytes());
        let case = CrashCase {
            seed,
            blows: fault.blows(seed, program.steps.len(), &world.config),
            absent: fault.absent(),
            lives: fault.lives(),
            program,
            cut: None,
            again: None,
        };
        let mut search = CrashSearch::new(world, case, *fault == Fault::SecondCut);
        search.suspicious = fault.covered(&world.config) == FaultCoverage::NotPromised;
        search.told_is_right = fault.covered(&world.config) == FaultCoverage::MustBeTold;
        search
    }

    /// Runs the search.
    pub(super) fn run(mut self) -> CrashSearch<'a> {
        self.tally.programs += 1;
        let (world, case) = (self.world, self.case.clone());
        let (disks, tiers, past) = match super::life::begin(world, case.lives, case.seed) {
            Ok((disks, tiers, past, before)) => {
                self.before = before;
                (disks, tiers, past)
            }
            Err(fail) => {
                self.tally.service += 1;
                self.failed(fail, None, None);
                return self;
            }
        };
        let mut look = |cut: &Cut<'_>| self.cut(cut);
        let (as_found, of) = (tiers.clone(), (&disks, tiers));
        let (misdeed, trace) = run(
            world,
            of,
            past,
            case.seed,
            &case.program,
            &case.blows,
            &mut look,
        );
        // Reads of data that is on no member any more fail with an error.
        let told =
            |it: &ServiceFailure| self.told_is_right && matches!(it, ServiceFailure::Status(..));
        if let Some(misdeed) = misdeed.filter(|it| !told(it)) {
            self.tally.service += 1;
            self.failed(Fail::Up(misdeed), None, None);
        } else if case.blows.is_empty() && case.lives == Lives::One && !trace.is_empty() {
            let without = super::trace::without_data(world, as_found, case.seed, &case.program);
            if !super::trace::alike(&trace, &without) {
                self.tally.service += 1;
                self.failed(Fail::Traces, None, None);
            }
        }
        self
    }

    fn failed(&mut self, fail: Fail, cut: Option<(u32, CrashOutcome)>, again: Option<u16>) {
        // Reads of lost data fail also after the recovery.
        let told = matches!(
            fail,
            Fail::Down(_)
                | Fail::Told(_)
                | Fail::Unreadable(_)
                | Fail::Service(ServiceFailure::Status(..))
        );
        if told && self.told_is_right && cut.is_some() {
            return;
        }
        let worse = |first: &(CrashCase, Fail)| {
            matches!(fail, Fail::Untold(_)) && !matches!(first.1, Fail::Untold(_))
        };
        if self.first.as_ref().is_none_or(worse) {
            let case = CrashCase {
                cut,
                again,
                ..self.case.clone()
            };
            self.first = Some((case, fail));
        }
    }

    /// Tries all possible results of a power cut at a moment.
    fn cut(&mut self, cut: &Cut<'_>) -> bool {
        let mut stream = self.stream.clone();
        let runs = runs(cut.oracle);
        self.tally.undecided = self.tally.undecided.max(cut.undecided.len() as u64);
        if let Some((at, choice)) = self.only.clone() {
            if at == cut.index && choice.done.len() == cut.undecided.len() {
                self.point(cut, &runs, &choice);
            }
            return at <= cut.index;
        }
        choice::each(&cut.undecided, self.share, &mut stream, |choice| {
            self.point(cut, &runs, choice);
            self.tally.points >= self.most || (self.to_the_first && self.first.is_some())
        });
        self.stream = stream;
        self.tally.points >= self.most || (self.to_the_first && self.first.is_some())
    }

    /// Tries a power cut with one result.
    fn point(&mut self, cut: &Cut<'_>, runs: &[(u64, u64)], choice: &CrashOutcome) {
        let media = choice::apply(choice, &cut.undecided, &cut.media);
        let noted = cut.in_sync.clone();
        let mut disks = self
            .before
            .put_back(self.case.lives, media, noted, &self.case.absent);
        let (before, noted) = (disks.images.clone(), disks.in_sync.clone());
        self.tally.points += 1;
        self.tally.torn += u64::from(choice.torn.is_some());
        if self.again {
            disks.log = Some(Vec::new());
        }
        let at = Some((cut.index, choice.clone()));
        let fail = self.recover_and_judge(&mut disks, cut.oracle, runs);
        if let Err(fail) = fail {
            self.failed(fail, at, None);
            return;
        }
        let log = disks.log.take().unwrap_or_default();
        for steps in 0..log.len() {
            let only = self
                .case
                .again
                .is_some_and(|again| usize::from(again) != steps);
            if only
                || (log.len() > 4
                    && self.case.again.is_none()
                    && self.again_stream.uniform_below(log.len() as u64) > 3)
            {
                continue;
            }
            self.tally.second += 1;
            self.tally.points += 1;
            let mut disks = Disks::new(cut_log(&before, &log[..steps]), disks.absent.clone());
            disks.in_sync = noted.clone();
            let fail = self.recover_and_judge(&mut disks, cut.oracle, runs);
            if let Err(fail) = fail {
                self.failed(fail, at, Some(steps as u16));
                return;
            }
        }
    }

    /// Checks whether a store cannot read what it has just written. A trial keeps what it writes in memory and cannot
    /// know that, so its result may differ.
    fn never_reads(&self) -> bool {
        let never = |it: &InjectedFault| it.trouble == DriveFault::Fails(LastingErrors::Reads);
        self.case.blows.iter().any(never)
    }

    /// Checks whether a server would refuse the pool because a log is an old copy, or, under faults after which every
    /// loss must be reported, because it is missing.
    fn needs_log(&self, tiers: &RecoveredTiers) -> bool {
        self.world.has_old_log(tiers) || (self.told_is_right && self.world.lacks_log(tiers))
    }

    /// Counts the recoveries that reported each kind of finding.
    fn count_findings(&mut self, tiers: &RecoveredTiers) {
        let found = |what: &dyn Fn(&RecoveryFinding) -> bool| {
            u64::from(tiers.found.iter().any(|found| what(&found.1)))
        };
        self.tally.stale += found(&|it| matches!(it, RecoveryFinding::Stale(..)));
        self.tally.unclean += found(&|it| matches!(it, RecoveryFinding::Unclean(_)));
        self.tally.absent += found(&|it| matches!(it, RecoveryFinding::Absent(_)));
        self.tally.wrapped +=
            found(&|it| matches!(it, RecoveryFinding::Replayed { rounds, .. } if *rounds > 0));
        self.tally.gaps += found(&|it| match it {
            RecoveryFinding::Replayed { dropped, .. } | RecoveryFinding::Logged { dropped, .. } => {
                *dropped > 0
            }
            _ => false,
        });
        self.tally.logged +=
            found(&|it| matches!(it, RecoveryFinding::Logged { writes, .. } if *writes > 0));
    }

    fn recover_and_judge(
        &mut self,
        disks: &mut Disks,
        oracle: &Oracle,
        runs: &[(u64, u64)],
    ) -> Result<(), Fail> {
        let total = runs.iter().map(|run| run.1).sum();
        let says = { self.suspicious }.then(|| ring::ring_statuses(self.world, disks));
        let says = says.unwrap_or_default();
        disks.with_trial =
            !self.never_reads() && (self.only.is_some() || self.tally.points.is_multiple_of(4));
        let recovered = self.world.recover(disks);
        if disks.trial_differs {
            self.tally.unstable += 1;
            return Err(Fail::Trial);
        }
        let tiers = match recovered {
            Ok(_) if matches!(self.case.lives, Lives::Split(..)) => {
                self.tally.silent += 1;
                return Err(Fail::Accepted);
            }
            // A server does not start with an old copy of a log, or without a log, unless the user accepts the loss.
            Ok(tiers) if self.needs_log(&tiers) => {
                self.tally.lost += 1;
                return Err(Fail::Down("a log is missing, or an old copy".into()));
            }
            Ok(tiers) => tiers,
            Err((tier, damage)) => {
                self.tally.lost += 1;
                self.tally.worst = self.tally.worst.max((total, total));
                return Err(Fail::Down(format!("{tier}: {damage}")));
            }
        };
        self.count_findings(&tiers);
        let told = tiers.found.iter().find_map(|(_, found)| match found {
            RecoveryFinding::Lost(records) => Some(*records),
            // How many is not known.
            RecoveryFinding::Unread(_) => Some(0),
            _ => None,
        });
        if let Some(durable) = ring::untold(self.world, &says, &tiers) {
            self.tally.untold += 1;
            return Err(Fail::Untold(durable));
        }
        let judged = self.judge(&tiers, disks, oracle, runs, total, told.is_some());
        if let Some(records) = told {
            self.tally.told += 1;
            // For a single case, everything is checked, so that its replay shows it.
            let again = self.only.is_some() || self.tally.told.is_multiple_of(16);
            if again && !self.is_told_again(disks) {
                self.tally.unstable += 1;
                return Err(Fail::Unstable);
            }
            return match judged {
                // The loss that was reported.
                Ok(()) | Err(Fail::Sector(_, WrongContent::Lost)) => Err(Fail::Told(records)),
                Err(worse) => Err(worse),
            };
        }
        judged?;
        // For a single case, everything is checked.
        let now_and_then = |every| self.only.is_some() || self.tally.points.is_multiple_of(every);
        let (again, serves) = (now_and_then(16), now_and_then(128));
        if again {
            let mut again = disks.clone();
            let second = self.world.recover(&mut again);
            let same = second.is_ok_and(|second| {
                self.judge(&second, &mut again, oracle, runs, total, false)
                    .is_ok()
                    && self.same((&tiers, disks), (&second, &mut again), runs)
            });
            if !same {
                self.tally.unstable += 1;
                return Err(Fail::Unstable);
            }
        }
        if serves && let Some(misdeed) = super::trace::serves(self.world, disks, tiers) {
            self.tally.service += 1;
            return Err(Fail::Service(misdeed));
        }
        Ok(())
    }

    /// Checks whether a second recovery reports a loss again, or refuses to open the pool.
    fn is_told_again(&self, disks: &Disks) -> bool {
        match self.world.recover(&mut disks.clone()) {
            Err(_) => true,
            Ok(second) => second.found.iter().any(|it| it.1.is_loss()),
        }
    }

    /// Checks whether two recoveries give the same content. Each is read with its own tiers, which know the places of
    /// their data.
    fn same(
        &self,
        (first, before): (&RecoveredTiers, &mut Disks),
        (second, after): (&RecoveredTiers, &mut Disks),
        runs: &[(u64, u64)],
    ) -> bool {
        runs.iter().all(|&(from, count)| {
            let bytes = count as usize * SECTOR;
            let (mut left, mut right) = (vec![0; bytes], vec![0; bytes]);
            let at = from * SECTOR as u64;
            let world = self.world;
            world.read(first, before, at, &mut left) == world.read(second, after, at, &mut right)
                && left == right
        })
    }

    fn judge(
        &mut self,
        tiers: &RecoveredTiers,
        disks: &mut Disks,
        oracle: &Oracle,
        runs: &[(u64, u64)],
        total: u64,
        told: bool,
    ) -> Result<(), Fail> {
        let (mut lost, mut first) = (0, None);
        let longest = runs.iter().map(|run| run.1).max().unwrap_or_default();
        let mut data = vec![0; longest as usize * SECTOR];
        for &(from, count) in runs {
            let at = from * SECTOR as u64;
            let data = &mut data[..count as usize * SECTOR];
            let whole = self.world.read(tiers, disks, at, data).is_ok();
            for (sector, data) in (from..).zip(data.chunks_exact_mut(SECTOR)) {
                let fail = if !whole
                    && self
                        .world
                        .read(tiers, disks, sector * SECTOR as u64, data)
                        .is_err()
                {
                    Some(Fail::Unreadable(sector))
                } else {
                    let wrong = oracle.judge(sector, data).err();
                    wrong.map(|wrong| Fail::Sector(sector, wrong))
                };
                lost += u64::from(fail.is_some());
                // Content that was never there is worse than old content.
                let worse = matches!(
                    fail,
                    Some(Fail::Sector(
                        _,
                        WrongContent::Others | WrongContent::Garbage
                    ))
                ) && matches!(first, Some(Fail::Sector(_, WrongContent::Lost)));
                first = if worse { fail } else { first.or(fail) };
            }
            let bytes = (count as usize * SECTOR) as u32;
            if first.is_none() && self.world.is_ambiguous(tiers, disks, at, bytes) {
                first = Some(Fail::Ambiguous(from));
            }
        }
        self.tally.worst = self.tally.worst.max((lost, total));
        match &first {
            None => return Ok(()),
            Some(Fail::Unreadable(_)) => self.tally.lost += 1,
            Some(Fail::Ambiguous(_)) => self.tally.unstable += 1,
            Some(Fail::Sector(_, WrongContent::Lost)) if told => self.tally.lost += 1,
            Some(Fail::Sector(_, WrongContent::Lost)) => self.tally.silent += 1,
            Some(_) => self.tally.others += 1,
        }
        Err(first.unwrap_or(Fail::Unstable))
    }
}

/// Returns the media after these steps of a recovery. Writes that were not made durable are lost, except for the last
/// one and every other one before it.
fn cut_log(before: &[model::data::Image], steps: &[RecoveryStep]) -> Vec<model::data::Image> {
    use model::data::Contents;
    let mut media = before.to_vec();
    for (index, step) in steps.iter().enumerate() {
        let RecoveryStep::Write(member, at, data) = step else {
            continue;
        };
        let later = &steps[index + 1..];
        let synced = later
            .iter()
            .any(|it| matches!(it, RecoveryStep::Sync(of) if of == member));
        // Every other write is lost, so that the order of writes means nothing unless it was requested.
        if synced || index + 1 == steps.len() || (steps.len() + index) % 2 == 0 {
            let _ = media[usize::from(*member)].write(*at, data);
        }
    }
    media
}
