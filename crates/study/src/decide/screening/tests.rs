//! Tests of contenders, by short runs and after full runs.

use super::super::choose::tests::of;
use super::super::tally::Reading;
use super::*;

/// A short run of one second with these IOPS, in thousands.
fn ran(drive: &str, iops: f64, latency_us: f64, years: f64) -> Candidate {
    let mut one = of(drive, true, iops * 1e3, latency_us, None);
    one.screened = true;
    one.meets = None;
    one.mean_us = Some(latency_us);
    one.measurement.seconds = 1.0;
    one.years = Some(years);
    one
}

fn in_full(mut one: Candidate, meets: bool) -> Candidate {
    one.screened = false;
    one.meets = Some(meets);
    one
}

fn with_room(mut one: Candidate, room: f64) -> Candidate {
    one.meets = one.meets.map(|_| room >= 0.0);
    one.room = Some(room);
    one.readings = vec![Reading {
        limit: "p99 < 1 ms".into(),
        unit: "us",
        value: Some(1.0),
        interval: None,
        met: Some(room >= 0.0),
        room: Some(room),
        is_latency: true,
        is_exact: false,
        slowest: None,
        too_few: None,
    }];
    one
}

#[test]
fn a_contender_is_near_the_best_by_some_criterion() {
    let all = [
        ran("most", 100.0, 50.0, 1.0),
        ran("near", 80.0, 500.0, 1.0),
        ran("quick", 10.0, 20.0, 1.0),
        ran("lasting", 10.0, 500.0, 9.0),
        ran("neither", 70.0, 500.0, 6.0),
    ];
    assert_eq!(contenders(&all, None), [true, true, true, true, false]);
}

/// A fast drive that clearly misses a limit does not keep slower ones from running in full.
#[test]
fn a_clear_miss_is_no_contender_and_sets_no_bound() {
    let all = [
        with_room(ran("fast", 1000.0, 5.0, 90.0), -0.9),
        with_room(ran("slightly over", 95.0, 50.0, 1.0), -0.1),
        with_room(ran("within", 100.0, 50.0, 1.0), 0.2),
    ];
    assert_eq!(contenders(&all, None), [false, true, true]);
}

/// At a given rate, equal IOPS make no contender.
#[test]
fn iops_are_no_criterion_at_a_given_rate() {
    let mut all = [
        ran("quick", 100.0, 10.0, 9.0),
        ran("slow and short-lived", 100.0, 900.0, 1.0),
    ];
    assert_eq!(contenders(&all, None), [true, true]);
    for one in &mut all {
        one.completes = Some(1.0);
    }
    assert_eq!(contenders(&all, Some(100e3)), [true, false]);
}

#[test]
fn if_all_miss_clearly_the_closest_run() {
    let rooms: Vec<f64> = (0..12).map(|at| -1.0 - f64::from(at)).collect();
    let all: Vec<Candidate> = rooms
        .iter()
        .map(|room| with_room(ran("x", 10.0, 10.0, 1.0), *room))
        .collect();
    let found = contenders(&all, None);
    assert!(found[..CLOSEST].iter().all(|it| *it), "{found:?}");
    assert!(!found[CLOSEST..].iter().any(|it| *it), "{found:?}");
}

/// Ten arrivals vary by chance: completing seven of them is no miss. Of 10,000, 70 % is one.
#[test]
fn few_arrivals_show_no_clear_miss() {
    let of = |offered: f64| {
        let mut one = with_room(ran("x", offered * 0.7e-3, 10.0, 1.0), -0.6);
        one.completes = Some(0.7);
        misses(&one, Some(offered))
    };
    assert!(!of(10.0) && !of(999.0));
    assert!(of(10_000.0));
    let mut lags = ran("x", 1.5, 10.0, 1.0);
    lags.completes = Some(0.75);
    assert!(!misses(&lags, Some(2_000.0)));
    lags.completes = Some(0.7);
    assert!(misses(&lags, Some(2_000.0)));
    // With few I/Os, the figures vary as well: 10 of 16 is within the margin, 10,000 of 16,000 is not.
    let rates = |thousands: f64| {
        let all = [
            ran("more", 1.6 * thousands, 10.0, 9.0),
            ran("fewer", thousands, 900.0, 1.0),
        ];
        contenders(&all, None)[1]
    };
    assert!(rates(0.01) && !rates(10.0));
}

/// A drive that slightly misses its limit in the full run does not exclude slower ones: B runs after A has missed.
#[test]
fn a_drive_that_misses_in_full_sets_no_bound() {
    let a = || with_room(ran("a", 1000.0, 600.0, 1.0), -0.4);
    let b = || with_room(ran("b", 500.0, 600.0, 0.5), 0.1);
    let c = || with_room(ran("c", 100.0, 100.0, 1.0), 0.5);
    let d = || with_room(ran("d", 300.0, 600.0, 0.1), 0.1);
    let a_full = || in_full(a(), false);
    let c_full = || in_full(c(), true);
    let first = [a(), b(), c(), d()];
    assert_eq!(contenders(&first, None), [true, false, true, false]);
    let second = [a_full(), b(), c_full(), d()];
    assert_eq!(contenders(&second, None), [false, true, false, false]);
    let last = [a_full(), in_full(b(), true), c_full(), d()];
    assert_eq!(contenders(&last, None), [false; 4]);
    let missed_again = [a_full(), in_full(b(), false), c_full(), d()];
    assert_eq!(contenders(&missed_again, None), [false, false, false, true]);
}

/// Without limits: a drive whose rate falls in its full run does not exclude others.
#[test]
fn a_rate_that_falls_in_full_sets_a_lower_bound() {
    let slow = ran("slow", 500.0, 600.0, 0.1);
    let fell = in_full(ran("fell", 100.0, 10.0, 9.0), true);
    assert_eq!(contenders(&[fell, slow], None), [false, true]);
}

/// If no full run meets the limits, all drives run in full whose short run misses none clearly.
#[test]
fn all_that_may_meet_run_before_none_does() {
    let mut all = vec![in_full(with_room(ran("a", 900.0, 10.0, 9.0), -0.1), false)];
    let rates = [400.0, 200.0, 90.0, 40.0];
    let rest = rates.map(|rate| with_room(ran("b", rate, 9e5 / rate, rate * 1e-3), -0.4));
    all.extend(rest);
    all.push(with_room(ran("clear", 100.0, 10.0, 1.0), -0.6));
    for _ in 0..rates.len() {
        for (at, runs) in contenders(&all, None).into_iter().enumerate() {
            if runs {
                all[at] = in_full(all[at].clone(), false);
            }
        }
    }
    let screened: Vec<&str> = all
        .iter()
        .filter(|one| one.screened)
        .map(|one| &*one.drive)
        .collect();
    assert_eq!(screened, ["clear"]);
}

/// A drive with a higher mean latency and a low or unknown p99 can have the lowest p99.
#[test]
fn p99_makes_a_contender_besides_the_mean() {
    let with = |p99_us, mean_us| Candidate {
        p99_us,
        ..ran("x", 10.0, mean_us, 1.0)
    };
    let best = || ran("best", 100.0, 20.0, 9.0);
    let of = |one: Candidate| {
        let quick = Candidate {
            p99_us: Some(200.0),
            ..best()
        };
        contenders(&[quick, one], None)[1]
    };
    assert!(of(with(Some(350.0), 90.0)));
    assert!(!of(with(Some(900.0), 90.0)));
    assert!(of(with(None, 190.0)));
    assert!(!of(with(None, 300.0)));
}

#[test]
fn a_run_without_figures_excludes_nothing() {
    let best = ran("best", 100.0, 20.0, 9.0);
    let empty = Candidate {
        mean_us: None,
        p99_us: None,
        ..ran("empty", 0.0, 0.0, 0.0)
    };
    assert_eq!(contenders(&[best, empty], None), [true, true]);
}

/// The drive that is replaced and those that lack least run in full; then each whose deficit is near that of the best.
#[test]
fn replacements_that_lack_least_run_in_full() {
    let mut all = vec![ran("gone", 100.0, 100.0, 5.0)];
    for at in 0..12 {
        let name = format!("drive {at}");
        all.push(ran(&name, 100.0, 110.0 + 10.0 * f64::from(at), 5.0));
    }
    let shorts = all.clone();
    let first = replacements(&all, &shorts, "gone", None);
    assert!(first[..=CLOSEST].iter().all(|runs| *runs), "{first:?}");
    assert!(!first[CLOSEST + 1..].iter().any(|runs| *runs), "{first:?}");
    // In full, all are slower than in their short runs.
    all[0] = in_full(all[0].clone(), true);
    for one in &mut all[1..=CLOSEST] {
        *one = in_full(ran(&one.drive, 100.0, 205.0, 5.0), true);
    }
    let second = replacements(&all, &shorts, "gone", None);
    let runs: Vec<usize> = (0..all.len()).filter(|&at| second[at]).collect();
    assert_eq!(runs, [9, 10, 11, 12]);
    for one in &mut all[9..] {
        *one = in_full(one.clone(), true);
    }
    assert_eq!(replacements(&all, &shorts, "gone", None), [false; 13]);
}

/// A p99 that is 1.3 times too high in the short run does not exclude the nearest replacement.
#[test]
fn a_replacement_that_is_near_the_best_in_its_short_run_runs_in_full() {
    let latencies = [[100.0; 9].as_slice(), &[130.0, 400.0]].concat();
    let shorts: Vec<Candidate> = latencies
        .iter()
        .enumerate()
        .map(|(at, latency)| ran(&format!("drive {at}"), 100.0, *latency, 5.0))
        .collect();
    let mut all = shorts.clone();
    for one in &mut all[..9] {
        *one = in_full(one.clone(), true);
    }
    let runs = replacements(&all, &shorts, "drive 0", None);
    assert_eq!(runs[9..], [true, false]);
    // Full runs in which the drive that is replaced is twice as slow do not make the others look better.
    all[0].p99_us = Some(200.0);
    let runs = replacements(&all, &shorts, "drive 0", None);
    assert_eq!(runs[9..], [true, false]);
}

/// A capacity is known without a run: a drive that is slightly too small cannot meet the limit.
#[test]
fn a_missed_capacity_is_clear() {
    let mut small = with_room(ran("small", 0.01, 5.0, 90.0), -0.1);
    assert!(!misses(&small, Some(10.0)));
    small.readings[0].is_exact = true;
    assert!(misses(&small, Some(10.0)));
    let all = [small, with_room(ran("large", 0.005, 50.0, 1.0), 0.2)];
    assert_eq!(contenders(&all, Some(10.0)), [false, true]);
}
