//! Decision whether the loop spins for the next command at full speed, naps, or sleeps.
//!
//! A client that polls sends its next command within microseconds. Spinning until then costs less than sleeping and
//! being woken. A client that sleeps takes about as long to send as a wake-up costs in CPU time. Which of the two is
//! cheaper depends on the machine, and spinning saves the client the time of our wake-up. So the CPU time of a command
//! after a sleep is measured, and the loop spins if the commands that were found by spinning arrived sooner than that.
//! At intervals the loop tests whether this has changed.
//!
//! A client with many commands in flight that is slower than this server sends them one by one, and has enough work
//! without our answers. Taking each command alone causes the maximum number of system calls. So the loop naps for a
//! fixed time, which a command does not interrupt, and then takes all commands that have arrived. Trials test at
//! intervals whether clients wait for the loop meanwhile: short windows with and without naps alternate, and naps are
//! kept if as many commands were completed in the same time.
//!
//! This is not used if a drive's latency is imitated: then the loop spins for accuracy.

use std::time::Duration;

use model::Span;
use rustix::time::{ClockId, clock_gettime};

use crate::clock::Wall;

/// While the CPU time of a command after a sleep is unknown, spin if the mean time to the next command is below this.
const SOON: Span = Span::from_us(30);

/// Afterwards, the limit is that CPU time plus a fifth for the time saved by the client, within these bounds.
const SOON_BOUNDS: (Span, Span) = (Span::from_us(12), Span::from_us(40));

/// Maximum time of spinning.
const LIMIT: Span = Span::from_us(50);

/// While the loop sleeps, it spins at intervals for this number of commands: enough to learn how soon a client sends
/// that gets immediate answers. This may be so soon that neither side needs to sleep any more.
const TRY_FOR: u32 = 24;

/// Number of commands after sleeps from one such try to the next: initially, and at most. Each try without a change
/// doubles it. Commands during tries wait for a client that may have to share our core; at the maximum they are too
/// few to affect p99.
const TRIES: (u32, u32) = (1024, 16_384);

/// Maximum time of a try, which is more than a client takes to wake up.
const TRY_LIMIT: Span = Span::from_us(60);

/// Length of a nap. Sleeping and waking up adds some 13 us.
const NAP: Duration = Duration::from_micros(10);

/// Length of a trial's window, much longer than the time between a client's commands, and the total number of windows
/// with and without naps.
const WINDOW: Span = Span::from_ms(1);
const WINDOWS: usize = 6;

/// Time from one trial to the next: initially, and at most. Each trial with the same result as the last doubles it.
const TRIALS: (Span, Span) = (Span::from_ms(50), Span::from_ms(1_600));

/// Number of consecutive naps with fewer than two commands each that triggers a trial.
const POOR: u32 = 8;

/// Work done in windows of one kind.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    commands: u64,
    turns: u64,
    ns: u64,
}

/// A running trial; odd windows have naps.
#[derive(Clone, Copy, Debug, Default)]
struct NapTrial {
    window: usize,
    since: Wall,
    tallies: [Tally; 2],
}

impl NapTrial {
    /// Checks whether naps collect commands, and as many are completed in the same time.
    fn won(&self) -> bool {
        let [without, with] = self.tallies;
        with.commands >= 2 * with.turns.max(8)
            && with.commands * without.ns * 50 >= without.commands * with.ns * 49
    }
}

/// Decides whether to nap.
#[derive(Clone, Debug, Default)]
struct NapPolicy {
    on: bool,
    trial: Option<NapTrial>,
    next_trial: Wall,
    wait: Span,
    poor: u32,
}

impl NapPolicy {
    fn turn(&mut self, now: Wall, commands: usize) -> bool {
        let Some(trial) = &mut self.trial else {
            self.poor = if self.on && commands < 2 {
                self.poor + 1
            } else {
                0
            };
            if now >= self.next_trial || self.poor >= POOR {
                self.poor = 0;
                self.trial = Some(NapTrial {
                    since: now,
                    ..NapTrial::default()
                });
            }
            return self.on;
        };
        let tally = &mut trial.tallies[trial.window % 2];
        tally.commands += commands as u64;
        tally.turns += 1;
        let lasted = now.since(trial.since);
        if lasted >= WINDOW {
            tally.ns += lasted.ns();
            trial.window += 1;
            trial.since = now;
        }
        if lasted >= WINDOW * 8 {
            // Clients have been idle.
            self.end_trial(now, false);
        } else if trial.window == WINDOWS {
            let won = trial.won();
            self.end_trial(now, won);
        }
        self.trial.map_or(self.on, |trial| trial.window % 2 == 1)
    }

    fn end_trial(&mut self, now: Wall, won: bool) {
        let (least, most) = TRIALS;
        self.wait = if won == self.on {
            (self.wait * 2).clamp(least, most)
        } else {
            least
        };
        self.on = won;
        self.trial = None;
        self.next_trial = now.plus(self.wait);
    }
}

/// Returns the CPU time of this thread in nanoseconds.
fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// State of the clients' pace.
#[derive(Clone, Debug)]
pub(super) struct ClientPace {
    /// Mean time until the next command, in nanoseconds.
    gap_ns: u64,
    /// Maximum mean time for spinning, in nanoseconds.
    soon_ns: u64,
    /// Returns CPU time; and its value at the end of the last try.
    cpu_ns: fn() -> u64,
    cpu_before_ns: u64,
    /// Whether a try is running: spinning to learn its effect.
    tries: bool,
    /// Remaining commands of the try.
    try_for: u32,
    /// Sleeps until the next try, and until the one after it.
    sleeps: u32,
    wait: u32,
    /// Decision since the last command.
    decided: Option<bool>,
    naps: NapPolicy,
}

impl Default for ClientPace {
    fn default() -> ClientPace {
        ClientPace::with_cpu_clock(cpu_ns)
    }
}

impl ClientPace {
    /// Returns the initial state; `cpu_ns` returns this thread's CPU time.
    fn with_cpu_clock(cpu_ns: fn() -> u64) -> ClientPace {
        ClientPace {
            gap_ns: 0,
            soon_ns: SOON.ns(),
            cpu_ns,
            cpu_before_ns: cpu_ns(),
            tries: false,
            try_for: 0,
            sleeps: 0,
            wait: 0,
            decided: None,
            naps: NapPolicy::default(),
        }
    }

    /// Decides whether to spin, this long after the last command.
    pub(super) fn spins(&mut self, since: Span) -> bool {
        let spins = match self.decided {
            Some(decided) => decided,
            None => self.decide(),
        };
        let limit = if self.tries { TRY_LIMIT } else { LIMIT };
        if spins && since > limit {
            self.learn(limit * 2);
            self.decided = Some(false);
            return false;
        }
        spins
    }

    fn decide(&mut self) -> bool {
        let quick = self.gap_ns < self.soon_ns;
        self.tries = !quick && self.tries();
        if quick {
            self.hurry();
        }
        let spins = quick || self.tries;
        self.decided = Some(spins);
        spins
    }

    /// Decides whether to try spinning.
    fn tries(&mut self) -> bool {
        if self.try_for > 0 {
            self.try_for -= 1;
            if self.try_for == 0 {
                self.cpu_before_ns = (self.cpu_ns)();
            }
            return true;
        }
        if self.sleeps == 0 {
            self.weigh();
            self.try_for = TRY_FOR;
            self.wait = (self.wait * 2).clamp(TRIES.0, TRIES.1);
            self.sleeps = self.wait;
        }
        self.sleeps -= 1;
        false
    }

    /// Updates the spinning limit from the CPU time of commands after sleeps since the last try.
    fn weigh(&mut self) {
        if self.wait > 0 {
            let used = (self.cpu_ns)() - self.cpu_before_ns;
            let (least, most) = SOON_BOUNDS;
            let each = used / u64::from(self.wait) * 6 / 5;
            self.soon_ns = each.clamp(least.ns(), most.ns());
        }
    }

    /// Schedules the next try soon, because something has changed.
    fn hurry(&mut self) {
        (self.try_for, self.sleeps, self.wait) = (TRY_FOR, TRIES.0, TRIES.0);
    }

    /// Records a command, this long after the previous one.
    #[inline]
    pub(super) fn came(&mut self, since: Span) {
        // After a sleep, this includes the wake-up time.
        if self.decided.take() == Some(true) {
            self.learn(since);
        }
    }

    fn learn(&mut self, gap: Span) {
        self.gap_ns = (self.gap_ns * 7 + gap.ns()) / 8;
    }

    /// Handles a new client: spinning and naps are tried soon.
    pub(super) fn welcome(&mut self, now: Wall) {
        self.hurry();
        let (soon, _) = TRIALS;
        self.naps.wait = Span::ZERO;
        self.naps.next_trial = now.plus(soon);
    }

    /// Records `commands` completions at `now` in one turn. Returns how long to nap before the next turn, if at all.
    #[inline]
    pub(super) fn nap(&mut self, now: Wall, commands: usize) -> Option<Duration> {
        self.naps.turn(now, commands).then_some(NAP)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        /// A clock of CPU time that tests set.
        static CPU_NS: Cell<u64> = const { Cell::new(0) };
    }

    /// A clock of CPU time that does not advance, so that nothing can be learnt from it.
    fn none() -> u64 {
        0
    }

    /// Simulates a client with commands this far apart; returns how many of the last hundred were waited for by
    /// spinning.
    fn spun(pace: &mut ClientPace, gap: Span) -> u32 {
        pace.welcome(Wall::from_ns(0));
        let mut spun = 0;
        for round in 0..1_000 {
            let spins = pace.spins(Span::ZERO);
            if spins && gap > TRY_LIMIT {
                assert!(!pace.spins(gap), "it gives up");
            }
            spun += u32::from(spins && round >= 900);
            pace.came(gap);
        }
        spun
    }

    #[test]
    fn it_spins_for_those_who_are_quick_and_sleeps_for_others() {
        let mut pace = ClientPace::with_cpu_clock(none);
        assert_eq!(spun(&mut pace, Span::from_us(5)), 100);
        assert!(spun(&mut pace, Span::from_us(40)) < 10);
        assert!(spun(&mut pace, Span::from_us(100)) < 10);
        assert_eq!(spun(&mut pace, Span::from_us(20)), 100);
        assert!(spun(&mut pace, Span::from_us(55)) < 10);
        assert_eq!(spun(&mut pace, Span::from_us(3)), 100);
    }

    #[test]
    fn it_spins_as_long_as_a_command_costs_that_is_slept_for() {
        // A client that sends its next command 20 or 35 us after an answer; a command after a sleep costs 8 or 33 us.
        for (each_us, gap_us, spins) in [(8, 20, false), (8, 10, true), (33, 35, true)] {
            CPU_NS.set(0);
            let mut pace = ClientPace::with_cpu_clock(|| CPU_NS.get());
            // The first commands are late, so the loop sleeps for them.
            let mut spun = 0;
            for round in 0..8_000 {
                let decided = pace.spins(Span::ZERO);
                spun += u32::from(decided && round >= 7_000);
                CPU_NS.set(CPU_NS.get() + if decided { 0 } else { each_us * 1_000 });
                pace.came(Span::from_us(if round < 2_000 { 45 } else { gap_us }));
            }
            let share = if spins { 1_000..=1_000 } else { 0..=24 };
            assert!(share.contains(&spun), "{each_us} us, {gap_us} us: {spun}");
        }
    }

    #[test]
    fn it_finds_out_that_a_client_is_quick_once_it_need_not_sleep() {
        let mut pace = ClientPace::default();
        spun(&mut pace, Span::from_us(40));
        // While the loop sleeps, the client sleeps too and wakes up late; after a few immediate answers it does not
        // sleep any more.
        let (mut at_once, mut spun) = (0, 0);
        for round in 0..3_000 {
            let spins = pace.spins(Span::ZERO);
            at_once = if spins { at_once + 1 } else { 0 };
            spun += u32::from(spins && round >= 2_000);
            pace.came(Span::from_us(if at_once > 2 { 6 } else { 40 }));
        }
        assert_eq!(spun, 1_000);
    }

    #[test]
    fn it_tries_to_spin_for_less_than_one_command_in_two_hundred() {
        let mut pace = ClientPace::default();
        pace.welcome(Wall::from_ns(0));
        let mut tries = 0;
        for round in 0..200_000 {
            let spins = pace.spins(Span::ZERO);
            tries += u32::from(spins && round >= 50_000);
            pace.came(Span::from_us(40));
        }
        assert!((24..750).contains(&tries), "{tries} of 150000");
    }

    /// Returns the share of time with naps, for a client that takes `each_us` for a command and has `depth` in flight.
    fn napping(pace: &mut ClientPace, now: &mut u64, each_us: u64, depth: u64) -> f64 {
        pace.welcome(Wall::from_ns(*now));
        let start = *now;
        let mut napped = 0;
        let mut commands = 1;
        while *now < start + 5_000_000_000 {
            let nap = pace.nap(Wall::from_ns(*now), commands).is_some();
            let least = if nap { 25_000 } else { 1_000 };
            commands = (least / 1_000 / each_us).clamp(1, depth) as usize;
            let took = least.max(commands as u64 * each_us * 1_000);
            *now += took;
            napped += if nap { took } else { 0 };
        }
        napped as f64 / (*now - start) as f64
    }

    #[test]
    fn it_naps_while_clients_do_not_wait_for_answers() {
        let mut pace = ClientPace::default();
        let now = &mut 0;
        assert!(napping(&mut pace, now, 5, 32) > 0.95);
        for (each_us, depth) in [(5, 1), (5, 4), (1, 16), (100, 1)] {
            let share = napping(&mut pace, now, each_us, depth);
            assert!(
                share < 0.02,
                "{share} of the time for {each_us} us, {depth}"
            );
        }
        assert!(napping(&mut pace, now, 5, 32) > 0.9);
    }
}
