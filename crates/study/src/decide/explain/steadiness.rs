//! Steady state of a measured run: from fio's log of rates over time, or from the samples that fio summarises in its
//! JSON.
//!
//! A log is divided into ten rounds, and the last five are judged by SNIA's rule (`statistics::steady`). Without a log
//! there are only the least, the greatest and the deviation of half-second samples: they can show that nothing
//! drifted, or that much did; in between, no verdict is possible. A log also shows where a rate changed from one level
//! to another ([`LevelShift`]), and whether it alternated between two ([`Swings`]). Not covered: what would have followed
//! the end of the run; more than two levels.

use serde::Serialize;
use serde_json::Value;
use statistics::{ROUNDS, SteadyWindow};
use text::problem::{Place, Problem, Problems};

use crate::review::results::rounded;

/// Whether a run was in steady state, with the reason.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Steadiness {
    /// The verdict; null if it cannot be decided.
    pub steady: Option<bool>,
    /// Reason for the verdict.
    pub text: String,
    /// Mean of the last half divided by the mean of the whole run, from a log.
    pub end_over_mean: Option<f64>,
    /// Change of the rate from one level to another, from a log; null if there was none.
    pub step: Option<LevelShift>,
    /// Alternation of the rate between two levels, from a log; null if there was none.
    pub swings: Option<Swings>,
}

/// A rate that dropped from one level to another more than once.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Swings {
    /// Seconds from the beginning of the log until the first drop.
    pub at_seconds: f64,
    /// Number of drops.
    pub falls: usize,
    /// Mean seconds from one drop to the next.
    pub every_seconds: f64,
    /// Mean of the upper level divided by the mean of the whole run.
    pub high_over_mean: f64,
    /// Mean of the lower level divided by the mean of the whole run.
    pub low_over_mean: f64,
    /// Mean seconds at the upper level, between two drops.
    pub high_seconds: f64,
    /// Mean after the first drop divided by the mean of the whole run.
    pub after_over_mean: f64,
}

/// A single change of the rate from one level to another.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct LevelShift {
    /// Seconds from the beginning of the log.
    pub at_seconds: f64,
    /// Mean before the change divided by the mean of the whole run.
    pub before_over_mean: f64,
    /// Mean after the change divided by the mean of the whole run.
    pub after_over_mean: f64,
}

impl LevelShift {
    /// Checks whether the rate dropped.
    pub fn falls(&self) -> bool {
        self.after_over_mean < self.before_over_mean
    }
}

/// Minimum number of samples for a verdict.
const SAMPLES: f64 = 5.0;
/// If all samples are within this share of their mean, no drift can be larger.
const STILL: f64 = 0.10;
/// Standard deviation, as a share of the mean, at and above which the run was not steady.
const UNEVEN: f64 = 0.15;
/// Rounds that a log is divided into; the last five are judged.
const CUTS: usize = 2 * ROUNDS;
/// Finer pieces of a log, in which a change is searched for, if each has lines.
const FINE: usize = 10 * CUTS;
/// Minimum difference of the levels before and after a change, as a share of the greater.
const APART: f64 = 0.2;
/// Minimum share of the variance about one level that two levels must remove.
const TAKEN: f64 = 0.6;
/// Minimum share for an alternating rate, whose levels are chosen by height: for uniform noise, two such levels remove
/// three quarters.
const TAKEN_BY_HEIGHT: f64 = 0.8;
/// Minimum mean number of pieces that an alternating rate stays at a level.
const STAYS: usize = 3;

/// Judges by the samples in fio's JSON, of the jobs (or copies) of a group.
pub(crate) fn of_samples(members: &[Value]) -> Steadiness {
    // Weighted by the I/O of each job and direction.
    let (mut weights, mut range, mut deviation) = (0.0, 0.0, 0.0);
    let mut fewest = f64::INFINITY;
    for side in members.iter().flat_map(|it| [&it["read"], &it["write"]]) {
        let figure = |key: &str| side[key].as_f64().unwrap_or_default();
        let (weight, mean) = (figure("total_ios"), figure("iops_mean"));
        if weight == 0.0 {
            continue;
        }
        fewest = fewest.min(figure("iops_samples"));
        if mean > 0.0 {
            weights += weight;
            range += weight * (figure("iops_max") - figure("iops_min")) / mean;
            deviation += weight * figure("iops_stddev") / mean;
        }
    }
    if weights == 0.0 || fewest < SAMPLES {
        return unknown("the file has too few samples over time");
    }
    let (range, deviation) = (range / weights, deviation / weights);
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    if range <= STILL {
        let text = format!("{fewest} samples of the rate lie within {}", percent(range));
        return verdict(true, text);
    }
    if deviation >= UNEVEN {
        let text = format!(
            "samples of the rate differ by {} (standard deviation)",
            percent(deviation)
        );
        return verdict(false, text);
    }
    unknown(&format!(
        "samples of the rate lie within {}, which may be noise or a drift",
        percent(range)
    ))
}

fn verdict(steady: bool, text: String) -> Steadiness {
    Steadiness {
        steady: Some(steady),
        text,
        end_over_mean: None,
        step: None,
        swings: None,
    }
}

fn unknown(why: &str) -> Steadiness {
    Steadiness {
        steady: None,
        text: format!(
            "{why}; a log of the rate over time shows it (fio's write_iops_log and log_avg_msec=500, then --log)"
        ),
        end_over_mean: None,
        step: None,
        swings: None,
    }
}

/// A line of a log: milliseconds, value, direction.
type Sample = (f64, f64, u64);

/// Judges by fio's logs of rates (iops or bw), one file for each thread of one run; `logs` are their names and texts.
///
/// # Errors
/// Every line that does not belong to a log, and logs that are too short.
pub fn of_logs(logs: &[(String, String)]) -> Result<Steadiness, Problems> {
    let mut problems = Problems::default();
    let read = logs.iter().map(|(origin, text)| samples(origin, text));
    let mut flows: Vec<Vec<Sample>> = Vec::new();
    for one in read {
        match one {
            Ok(samples) => flows.extend(by_direction(samples)),
            Err(more) => problems.0.extend(more.0),
        }
    }
    problems.or(())?;
    let end = flows.iter().flatten().map(|it| it.0).fold(0.0, f64::max);
    let rounds = sums(&flows, end, CUTS).ok_or_else(|| too_short(&logs[0].0))?;
    let fine = sums(&flows, end, FINE);
    let fine = fine.as_ref().unwrap_or(&rounds);
    Ok(Steadiness {
        step: step(fine, end / 1e3),
        swings: swings(fine, end / 1e3),
        ..judge(&rounds)
    })
}

/// Returns the rates of all flows together in `pieces` equal pieces of time; `None` if a flow has no line in a piece.
fn sums(flows: &[Vec<Sample>], end: f64, pieces: usize) -> Option<Vec<f64>> {
    let mut sums = vec![0.0; pieces];
    for flow in flows {
        for (sum, mean) in sums.iter_mut().zip(means(flow, end, pieces)) {
            *sum += mean?;
        }
    }
    Some(sums)
}

fn mean(rates: &[f64]) -> f64 {
    rates.iter().sum::<f64>() / rates.len() as f64
}

/// Returns the sum of the squares about the mean.
fn sum_of_squares(rates: &[f64]) -> f64 {
    let mean = mean(rates);
    let off = rates.iter().map(|rate| (rate - mean) * (rate - mean));
    off.sum::<f64>()
}

/// Returns two levels between which a run of `seconds` seconds alternates.
fn swings(rates: &[f64], seconds: f64) -> Option<Swings> {
    let mut sorted = rates.to_vec();
    sorted.sort_by(f64::total_cmp);
    let left = |at: &usize| sum_of_squares(&sorted[..*at]) + sum_of_squares(&sorted[*at..]);
    let at = (1..sorted.len()).min_by(|a, b| left(a).total_cmp(&left(b)))?;
    let (low, high) = (mean(&sorted[..at]), mean(&sorted[at..]));
    let apart = high - low >= APART * high;
    if !apart || left(&at) > (1.0 - TAKEN_BY_HEIGHT) * sum_of_squares(rates) {
        return None;
    }
    let is_high: Vec<bool> = rates.iter().map(|rate| *rate >= sorted[at]).collect();
    let changes = is_high.windows(2).filter(|pair| pair[0] != pair[1]).count();
    let falls = is_high.windows(2).enumerate();
    let falls: Vec<usize> = falls
        .filter(|(_, pair)| pair[0] && !pair[1])
        .map(|(at, _)| at + 1)
        .collect();
    let (first, last) = (*falls.first()?, *falls.last()?);
    if falls.len() < 2 || rates.len() < STAYS * (changes + 1) {
        return None;
    }
    let piece = seconds / rates.len() as f64;
    let between = (falls.len() - 1) as f64;
    let high_between = is_high[first..last].iter().filter(|is| **is).count();
    let whole = mean(rates);
    Some(Swings {
        at_seconds: rounded(piece * first as f64),
        falls: falls.len(),
        every_seconds: rounded(piece * (last - first) as f64 / between),
        high_over_mean: rounded(high / whole),
        low_over_mean: rounded(low / whole),
        high_seconds: rounded(piece * high_between as f64 / between),
        after_over_mean: rounded(mean(&rates[first..]) / whole),
    })
}

/// Returns the time that best divides a run of `seconds` seconds into two levels.
fn step(rates: &[f64], seconds: f64) -> Option<LevelShift> {
    let whole = mean(rates);
    let splits = 1..rates.len();
    let left = |at: &usize| sum_of_squares(&rates[..*at]) + sum_of_squares(&rates[*at..]);
    let at = splits.min_by(|a, b| left(a).total_cmp(&left(b)))?;
    let (before, after) = (mean(&rates[..at]), mean(&rates[at..]));
    let apart = (before - after).abs() >= APART * before.max(after);
    let parts = left(&at) <= (1.0 - TAKEN) * sum_of_squares(rates);
    (whole > 0.0 && apart && parts).then(|| LevelShift {
        at_seconds: rounded(seconds * at as f64 / rates.len() as f64),
        before_over_mean: rounded(before / whole),
        after_over_mean: rounded(after / whole),
    })
}

fn too_short(origin: &str) -> Problems {
    let what = format!("too few lines for {CUTS} rounds");
    let mut problems = Problems::whole(origin, what);
    problems.0[0].help = Some(String::from(
        "a smaller log_avg_msec, or a longer run: several lines in each tenth of it",
    ));
    problems
}

fn samples(origin: &str, text: &str) -> Result<Vec<Sample>, Problems> {
    let mut problems = Problems::default();
    let mut samples = Vec::new();
    for (number, line) in text
        .lines()
        .enumerate()
        .filter(|(_, it)| !it.trim().is_empty())
    {
        let mut words = line.split(',').map(|word| word.trim().parse::<u64>());
        match (words.next(), words.next(), words.next()) {
            (Some(Ok(ms)), Some(Ok(value)), Some(Ok(way))) => {
                samples.push((ms as f64, value as f64, way));
            }
            _ => problems.0.push(Problem {
                origin: origin.to_owned(),
                place: Place::Whole,
                what: format!("line {}: not a line of fio's logs: `{line}`", number + 1),
                help: Some(String::from(
                    "as write_iops_log makes them: milliseconds, value, direction, block size",
                )),
            }),
        }
        if problems.0.len() >= 3 {
            break;
        }
    }
    problems.or(())?;
    match samples.is_empty() {
        true => Err(too_short(origin)),
        false => Ok(samples),
    }
}

fn by_direction(samples: Vec<Sample>) -> Vec<Vec<Sample>> {
    let mut flows: Vec<Vec<Sample>> = vec![Vec::new(); 3];
    for sample in samples {
        if let Some(flow) = flows.get_mut(sample.2 as usize) {
            flow.push(sample);
        }
    }
    flows.retain(|flow| !flow.is_empty());
    flows
}

/// Returns the mean rate in each piece; `None` where a piece has no line.
fn means(flow: &[Sample], end: f64, pieces: usize) -> Vec<Option<f64>> {
    // A log without averaging has a line of value 1 for each I/O.
    let each_io = flow.iter().all(|sample| sample.1 <= 1.0);
    let mut sums = vec![(0.0, 0.0); pieces];
    for (ms, value, _) in flow {
        // A line is at the end of its averaging interval. A rounding error is subtracted, which would put a line at an
        // end into the next piece.
        let piece = libm::ceil(ms / end.max(1.0) * pieces as f64 - 1e-6) as usize;
        let (sum, count) = &mut sums[piece.clamp(1, pieces) - 1];
        *sum += value;
        *count += 1.0;
    }
    let mean = |(sum, count): (f64, f64)| match each_io {
        true => sum,
        false => sum / count,
    };
    let some = sums.into_iter().map(|it| (it.1 > 0.0).then(|| mean(it)));
    some.collect()
}

fn judge(rounds: &[f64]) -> Steadiness {
    let whole = rounds.iter().sum::<f64>() / CUTS as f64;
    let Some(window) = SteadyWindow::from_rounds(rounds, CUTS - ROUNDS) else {
        return unknown("the log has no rates");
    };
    let share = window.mean / whole;
    let text = format!(
        "over the last half of the log the rate stays within {:.0} % and its line moves by {:+.0} % (SNIA: 20 % and 10 %)",
        window.excursion * 100.0,
        window.slope * 100.0,
    );
    let before = match (share - 1.0).abs() > 0.1 {
        true => format!(
            "; it began otherwise: the last half has {:.0} % of the mean of the run",
            share * 100.0
        ),
        false => String::new(),
    };
    Steadiness {
        steady: Some(window.is_steady()),
        text: text + &before,
        end_over_mean: Some(rounded(share)),
        step: None,
        swings: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(rate: impl Fn(u32) -> u32) -> Vec<(String, String)> {
        let lines = (1..=60).map(|i| format!("{}, {}, 0, 4096\n", i * 500, rate(i)));
        vec![(String::from("a_iops.1.log"), lines.collect())]
    }

    #[test]
    fn a_log_tells_a_cliff_from_a_flat_rate() {
        let flat = of_logs(&log(|i| 1000 + i % 3)).expect("a log");
        assert_eq!(flat.steady, Some(true));
        let late = of_logs(&log(|i| if i < 45 { 9000 } else { 1000 })).expect("a log");
        assert_eq!(late.steady, Some(false));
        let early = of_logs(&log(|i| if i < 15 { 9000 } else { 1000 })).expect("a log");
        assert_eq!(early.steady, Some(true));
        assert!(early.text.contains("it began otherwise"), "{}", early.text);
    }

    #[test]
    fn a_step_is_found_where_it_is_and_noise_and_a_slope_have_none() {
        let step = |rate: &dyn Fn(u32) -> u32| of_logs(&log(rate)).expect("a log").step;
        let fell = step(&|i| if i <= 15 { 9000 } else { 1000 + i % 3 }).expect("it falls");
        assert!((fell.at_seconds - 7.5).abs() < 3.1, "{fell:?}");
        assert!(fell.falls() && fell.before_over_mean > 2.5, "{fell:?}");
        assert_eq!(step(&|i| 1000 + 100 * (i * 7 % 11)), None);
        assert_eq!(step(&|i| 1000 + i), None);
    }

    #[test]
    fn swings_are_told_from_a_step_a_slope_and_noise() {
        let long = |rate: &dyn Fn(u32) -> u32| {
            let lines = (1..=200).map(|i| format!("{}, {}, 0, 4096\n", i * 500, rate(i)));
            let log = [(String::from("a"), lines.collect())];
            of_logs(&log).expect("a log").swings
        };
        // A minute at 9000, then 10 s at 4000 and 5 s at 9000, repeatedly.
        let hot = |i: u32| {
            if i <= 120 || (i - 120) % 30 > 20 {
                9000 + i % 7
            } else {
                4000
            }
        };
        let found = long(&hot).expect("it swings");
        assert_eq!(found.falls, 3);
        assert!((found.at_seconds - 60.0).abs() < 1.5, "{found:?}");
        assert!((found.every_seconds - 15.0).abs() < 1.5, "{found:?}");
        assert!((found.high_seconds - 4.5).abs() < 1.5, "{found:?}");
        assert!(found.high_over_mean > 2.0 * found.low_over_mean);
        for other in [
            &(|i: u32| if i <= 60 { 9000u32 } else { 4000 }) as &dyn Fn(u32) -> u32,
            &|i| 4000 + 20 * i,
            &|i| 1000 + 100 * (i * 7 % 11),
            &|i| if i % 2 == 0 { 9000 } else { 4000 },
        ] {
            assert_eq!(long(other), None);
        }
    }

    #[test]
    fn lines_of_every_io_are_counted() {
        let lines = |ms: std::ops::Range<u32>| ms.map(|ms| format!("{ms}, 1, 0, 4096\n"));
        let text: String = lines(0..1000).collect();
        let even = of_logs(&[(String::from("x"), text)]).expect("a log");
        assert_eq!(even.steady, Some(true));
        let text: String = lines(0..700)
            .chain(
                (700..1000)
                    .step_by(9)
                    .map(|ms| format!("{ms}, 1, 0, 4096\n")),
            )
            .collect();
        let falls = of_logs(&[(String::from("x"), text)]).expect("a log");
        assert_eq!(falls.steady, Some(false));
    }

    #[test]
    fn what_is_no_log_is_refused_with_its_line() {
        let text = String::from("500, 10, 0, 4096\nhello\n");
        let said = of_logs(&[(String::from("x.log"), text)]).expect_err("no log");
        assert!(said.to_string().contains("line 2"), "{said}");
        of_logs(&[(String::from("x.log"), String::from("5, 10, 0, 4096\n"))]).expect_err("short");
    }

    #[test]
    fn samples_show_stillness_or_much_change_and_nothing_between() {
        let entry = |min: f64, max: f64, deviation: f64, samples: u32| {
            serde_json::json!({"read": {"total_ios": 900, "iops_mean": 100.0, "iops_min": min, "iops_max": max,
                "iops_stddev": deviation, "iops_samples": samples}, "write": {"total_ios": 0}})
        };
        let steady = |entry: Value| of_samples(&[entry]).steady;
        assert_eq!(steady(entry(97.0, 103.0, 2.0, 20)), Some(true));
        assert_eq!(steady(entry(20.0, 300.0, 60.0, 20)), Some(false));
        assert_eq!(steady(entry(90.0, 110.0, 5.0, 20)), None);
        assert_eq!(steady(entry(97.0, 103.0, 2.0, 3)), None);
    }
}
