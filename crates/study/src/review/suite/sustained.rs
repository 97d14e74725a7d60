//! 4 KiB random writes from fresh until steady: the write cliff.
//!
//! A large drive takes an hour of virtual time and hundreds of millions of writes to get there, so this chapter runs
//! on a smaller drive ([`model::media::Medium::shrunk`]: same channels, dies, planes and over-provisioning, smaller
//! blocks). Under uniform random writes what happens depends on the share of the drive that has been written, so the
//! time axis is stretched by the same factor; the page says by how much.

use model::media::Precondition;

use super::PointSpec;
use crate::review::results::{Series, Settings, rounded};
use statistics::{ROUNDS, steady_state};
use text::digits::{digits, duration};

const THREADS: u32 = 4;
const DEPTH: u32 = 8;

/// Capacities written until the end: a drive with much spare area needs four to be steady.
pub(crate) const FILLS: f64 = 5.0;

/// Rounds of SNIA's rule in one capacity written.
const ROUNDS_PER_FILL: f64 = 4.0;
/// Capacities written before the rule is asked: a fresh drive is steady too, until its spare area is used up.
const FILLS_BEFORE: f64 = 2.0;

/// When the writes met SNIA's rule: the end of the first steady window of five rounds, each a quarter of the capacity,
/// after two capacities have been written. `None` if they never did.
pub(crate) fn steady_at(series: &Series) -> Option<f64> {
    let count = (FILLS * ROUNDS_PER_FILL) as usize;
    let total: f64 = series.iops.iter().sum();
    let mut rounds = vec![(0.0, 0.0); count];
    let mut ends = vec![0.0; count];
    let mut written = 0.0;
    for (index, iops) in series.iops.iter().enumerate() {
        // The round in which the middle of the interval lies.
        let share = (written + iops / 2.0) / total;
        let round = ((share * count as f64) as usize).min(count - 1);
        rounds[round].0 += iops;
        rounds[round].1 += 1.0;
        ends[round] = (index + 1) as f64 * series.every_seconds;
        written += iops;
    }
    let first = (FILLS_BEFORE * ROUNDS_PER_FILL) as usize;
    let means: Vec<f64> = rounds[first..]
        .iter()
        .map(|(sum, intervals)| sum / intervals)
        .collect();
    let window = steady_state(&means)?;
    Some(rounded(ends[first + window.first + ROUNDS - 1]))
}

/// What a reader should know of such a run, in words. (The page says it once for all drives.)
pub(crate) fn notes(series: &Series) -> Vec<String> {
    let mut notes = vec![match series.steady_at_seconds {
        Some(at) => format!(
            "steady by SNIA's rule after {} of writing (five rounds, each a quarter of the capacity, after two capacities)",
            duration(at)
        ),
        None => format!("not steady by SNIA's rule after {FILLS:.0} capacities written"),
    }];
    let smaller = series.scale > 1.0;
    notes.push(format!(
        "maxima cover {} writes a point{}",
        digits(series.ios_an_interval),
        if smaller {
            "; a full-size drive would see longer ones"
        } else {
            ""
        }
    ));
    if smaller {
        notes.push(format!(
            "scaled model: 1/{:.0} of the capacity; time scaled to match; the steady rate may read up to 10 % high",
            series.scale
        ));
    }
    notes
}

/// The chapter's only point.
pub(crate) fn point() -> PointSpec {
    PointSpec {
        name: "sustained/random-write".into(),
        chapter: "sustained",
        settings: Settings {
            direction: Some("write"),
            pattern: Some("random"),
            block_bytes: Some(4096),
            queue_depth: Some(THREADS * DEPTH),
            threads: Some(THREADS),
            ..Settings::default()
        },
        state: Precondition::Fresh,
        options: vec![("rw", "randwrite".into()), ("bs", "4k".into())],
        threads: vec![(THREADS, DEPTH)],
        rate_iops: None,
        longest: None,
        only: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(iops: Vec<f64>) -> Series {
        Series {
            every_seconds: 2.0,
            iops,
            ..Series::default()
        }
    }

    #[test]
    fn notes_say_what_a_smaller_drive_means() {
        let small = Series {
            scale: 76.4,
            ios_an_interval: 30_214.0,
            steady_at_seconds: Some(11_520.0),
            ..Series::default()
        };
        assert_eq!(
            notes(&small),
            [
                "steady by SNIA's rule after 3 h 12 min of writing (five rounds, each a quarter of the capacity, after two capacities)",
                "maxima cover 30,214 writes a point; a full-size drive would see longer ones",
                "scaled model: 1/76 of the capacity; time scaled to match; the steady rate may read up to 10 % high",
            ]
        );
        let whole = Series {
            scale: 1.0,
            ios_an_interval: 1_234.0,
            ..Series::default()
        };
        assert_eq!(
            notes(&whole),
            [
                "not steady by SNIA's rule after 5 capacities written",
                "maxima cover 1234 writes a point",
            ]
        );
    }

    #[test]
    fn a_fresh_drive_is_not_taken_for_a_steady_one() {
        // 100 intervals of one share each would be flat throughout: steady at the end of the first window after two of
        // five capacities, which is 8 + 5 of 20 rounds, 65 intervals.
        assert_eq!(steady_at(&series(vec![1000.0; 100])), Some(130.0));
    }

    #[test]
    fn a_rate_that_keeps_falling_is_not_steady() {
        let falling = (0..200)
            .map(|index| 1000.0 * f64::powi(0.985, index))
            .collect();
        assert_eq!(steady_at(&series(falling)), None);
    }

    #[test]
    fn a_cliff_is_steady_once_it_has_ended() {
        // Two and a half capacities at full speed, then a fifth of it.
        let mut iops = vec![1000.0; 50];
        iops.extend(vec![200.0; 250]);
        let at = steady_at(&series(iops)).expect("the end is flat");
        assert!((200.0..=400.0).contains(&at), "{at}");
    }
}
