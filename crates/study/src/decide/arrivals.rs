//! Whether a drive keeps up with a given rate (open loop): completed I/Os against those that arrived.
//!
//! Arrivals are random, so a short run draws more or fewer of them than its rate says. Completions are compared with the
//! arrivals that the run drew, whether they were issued or still waited for a busy thread at its end. Each thread is
//! counted until its last completion, after the end of the run if the drive is late. A shortfall counts
//! if it exceeds the allowed share by more than chance: the number of I/Os that are in flight at the end is taken for a
//! Poisson number, with three standard deviations. Not covered: traces, and jobs without a rate.

use lab::Outcome;

use super::rate::KEPT_UP;
use crate::review::results::rounded;

/// Completed share of the arrived I/Os, and whether the rest is within random variation.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Completes {
    /// Share of the arrived I/Os that completed, at most 1.
    pub(super) share: f64,
    /// Whether the drive keeps up.
    pub(super) keeps_up: bool,
}

/// Returns the values of the seed that completes least; `None` if a thread has no rate or nothing was run.
pub(super) fn completes(outcomes: &[Outcome]) -> Option<Completes> {
    let all: Option<Vec<Completes>> = outcomes.iter().map(of_seed).collect();
    let all = all?.into_iter();
    all.min_by(|a, b| {
        a.keeps_up
            .cmp(&b.keeps_up)
            .then(a.share.total_cmp(&b.share))
    })
}

fn of_seed(outcome: &Outcome) -> Option<Completes> {
    let arrived: Option<Vec<f64>> = outcome.threads.iter().map(|one| one.arrived).collect();
    let arrived: f64 = arrived?.iter().sum();
    let threads = outcome.threads.iter();
    let ios: u64 = threads.map(|it| it.read.ios + it.write.ios).sum();
    let judged = judged(arrived, ios as f64);
    Some(Completes {
        share: rounded(share_of_rates(outcome).unwrap_or(judged.share)),
        ..judged
    })
}

/// Returns the completed rate as a share of the arriving rate. Threads of a drive that is late end at different times, so
/// counts of I/Os would give those that end late too much weight. `None` if nothing completed.
fn share_of_rates(outcome: &Outcome) -> Option<f64> {
    let rates = outcome.threads.iter().map(|one| {
        let ios = (one.read.ios + one.write.ios) as f64;
        let over = one.read.over.max(one.write.over);
        // A thread that completed nothing has no time of its own.
        let over = if ios > 0.0 { over } else { outcome.counted };
        let seconds = over.seconds().max(1e-9);
        [ios / seconds, one.arrived.unwrap_or(0.0) / seconds]
    });
    share(rates)
}

/// Returns the sum of completed rates as a share of the sum of arriving rates.
fn share(rates: impl Iterator<Item = [f64; 2]>) -> Option<f64> {
    let [completed, arrived] = rates.fold([0.0, 0.0], |sum, it| [sum[0] + it[0], sum[1] + it[1]]);
    (completed > 0.0 && arrived > 0.0).then(|| (completed / arrived).min(1.0))
}

/// Returns the judgement on a number of arrived and of completed I/Os.
fn judged(arrived: f64, completed: f64) -> Completes {
    let allowed = (1.0 - KEPT_UP) * arrived;
    let chance = 3.0 * libm::sqrt(allowed) + 1.0;
    Completes {
        share: rounded((completed / arrived.max(1e-9)).min(1.0)),
        keeps_up: arrived - completed <= allowed + chance,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All reads of 750 per second complete in 10 s, and 140 of 750 writes per second, until 50 s: 59 % of the rate, though
    /// 14,500 of 45,000 I/Os are 32 %.
    #[test]
    fn a_share_is_one_of_rates() {
        let found = share([[750.0, 750.0], [140.0, 750.0]].into_iter()).expect("a share");
        assert!((found - 890.0 / 1500.0).abs() < 1e-9, "{found}");
        assert_eq!(share([[0.0, 5.0]].into_iter()), None);
        assert_eq!(share([[6.0, 5.0]].into_iter()), Some(1.0));
    }

    #[test]
    fn a_shortfall_counts_if_it_exceeds_chance() {
        // 3 % of 100,000 I/Os are 3,000; chance adds 3 x 54.8 + 1.
        assert!(judged(100_000.0, 96_840.0).keeps_up);
        assert!(!judged(100_000.0, 96_830.0).keeps_up);
        // One of four may be in flight, three may not.
        assert!(judged(4.0, 3.0).keeps_up);
        assert!(!judged(4.0, 1.0).keeps_up);
        assert!(judged(0.0, 0.0).keeps_up);
        assert_eq!(judged(200.0, 150.0).share, 0.75);
        assert_eq!(judged(200.0, 201.0).share, 1.0);
    }
}
