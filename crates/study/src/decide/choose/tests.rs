//! Tests of the recommended candidate, the criteria and ties.

use super::*;

pub(in crate::decide) fn of(
    drive: &str,
    meets: bool,
    iops: f64,
    p99_us: f64,
    usd: Option<f64>,
) -> Candidate {
    Candidate {
        drive: drive.into(),
        model: "unvalidated",
        model_text: String::new(),
        meets: Some(meets),
        no_longer_made: None,
        screened: false,
        readings: Vec::new(),
        room: None,
        iops,
        iops_by_seed: [iops, iops],
        p99_us: Some(p99_us),
        p99_us_by_seed: None,
        p99_us_of_log: None,
        mean_us: None,
        watts: None,
        iops_per_watt: None,
        years: None,
        ends_after_years: None,
        ends_first: None,
        drives_bought: 1,
        usd,
        usd_in_all: usd,
        usd_per_year: usd.map(|usd| usd / 5.0),
        drives_bought_by_cycles: None,
        usd_in_all_by_cycles: None,
        buffer_full_seconds: None,
        has_files_to_read: false,
        starts_cold: false,
        stays_in_memory: None,
        slc_cache: None,
        promise: None,
        slot: None,
        power_loss_protection: None,
        parts: Vec::new(),
        completes: None,
        keeps_up: None,
        own_maximum: None,
        binds: None,
        measurement: Measurement::default(),
    }
}

#[test]
fn the_best_is_among_those_that_meet_and_are_known() {
    let all = vec![
        of("fast", true, 900.0, 50.0, None),
        of("cheap", true, 500.0, 90.0, Some(100.0)),
        of("dear", true, 600.0, 40.0, Some(300.0)),
        of("misses", false, 9_000.0, 10.0, Some(1.0)),
    ];
    let answer = answer(all, Vec::new(), Measure::Usd);
    let best = |by| answer.best_by(by).map(|best| best.drive.as_str());
    assert_eq!(best(Measure::Usd), Some("cheap"));
    assert_eq!(best(Measure::Iops), Some("fast"));
    assert_eq!(best(Measure::P99), Some("dear"));
    assert_eq!((best(Measure::Watt), best(Measure::Years)), (None, None));
    let order: Vec<&str> = answer.candidates.iter().map(|one| &*one.drive).collect();
    assert_eq!(order, ["cheap", "dear", "fast", "misses"]);
}

/// Reads of disks are slow with any log; what the log serves decides.
#[test]
fn a_log_is_judged_by_what_it_serves() {
    let one = |drive: &str, log_us: f64| Candidate {
        p99_us_of_log: Some((log_us, None)),
        ..of(drive, true, 200.0, 574_000.0, None)
    };
    let all = vec![one("none", 213_000.0), one("log", 110.0)];
    let found = answer(all.clone(), Vec::new(), Measure::P99);
    assert_eq!(found.best_by(Measure::P99).map(|it| it.ties.len()), Some(1));
    let judged = all.into_iter().map(Candidate::judged_as_log).collect();
    let found = answer(judged, Vec::new(), Measure::P99);
    let best = found.best_by(Measure::P99).expect("p99 is known");
    assert_eq!((&*best.drive, best.ties.len()), ("log", 0));
}

#[test]
fn a_limit_is_to_hold_with_every_seed() {
    let reading = |value: f64, met| Reading {
        limit: "iops > 100".into(),
        unit: "IOPS",
        value: Some(value),
        interval: None,
        met,
        room: Some(value / 100.0 - 1.0),
        is_latency: false,
        is_exact: false,
        slowest: None,
        too_few: None,
    };
    let told = |together: Reading, seeds: &[Reading]| {
        let found = of_all_seeds(together, seeds.iter().cloned());
        (found.value, found.met)
    };
    let within = |value| reading(value, Some(true));
    let outside = |value| reading(value, Some(false));
    let seeds = [within(140.0), outside(98.0), outside(90.0), within(120.0)];
    assert_eq!(told(within(112.0), &seeds), (Some(90.0), Some(false)));
    assert_eq!(told(within(130.0), &seeds[..1]), (Some(130.0), Some(true)));
    assert_eq!(
        told(within(130.0), &[reading(0.0, None)]),
        (Some(130.0), Some(true))
    );
    assert_eq!(told(outside(99.0), &seeds), (Some(99.0), Some(false)));
}

#[test]
fn what_seeds_do_not_tell_apart_is_named_together() {
    let seeds = |drive, iops, ends| Candidate {
        iops_by_seed: ends,
        ..of(drive, true, iops, 50.0, None)
    };
    let all = vec![
        seeds("first", 100.0, [80.0, 120.0]),
        seeds("overlaps", 75.0, [70.0, 81.0]),
        seeds("apart", 60.0, [59.0, 61.0]),
        seeds("close", 96.0, [96.0, 96.0]),
        Candidate {
            meets: Some(false),
            ..seeds("misses", 99.0, [90.0, 110.0])
        },
    ];
    let answer = answer(all, Vec::new(), Measure::Iops);
    let best = answer.best_by(Measure::Iops).expect("some ran");
    let ties: Vec<&str> = best.ties.iter().map(|tie| &*tie.drive).collect();
    assert_eq!((&*best.drive, ties), ("first", vec!["close", "overlaps"]));
}

#[test]
fn of_many_that_are_alike_one_is_named() {
    let all: Vec<Candidate> = (0..12)
        .map(|index| {
            of(
                &format!("d{index}"),
                true,
                100.0,
                50.0 + 20.0 * f64::from(index),
                None,
            )
        })
        .collect();
    let named = |count: usize| {
        let answer = answer(all[..count].to_vec(), Vec::new(), Measure::Iops);
        answer.named().count()
    };
    assert_eq!((named(3), named(12)), (3, 1));
}
