//! Tests of ends, failures, ratings and remarks of real drives.

use super::*;
use crate::smart::CounterValue;

fn health(written: f64, used: f64, hours: f64) -> Health {
    let figure = |value| {
        Some(CounterValue {
            value,
            rule: String::new(),
        })
    };
    Health {
        model: Some(String::from("A MODEL 1TB")),
        written: figure(written),
        used_percent: figure(used),
        power_on_hours: Some(hours),
        ..Health::default()
    }
}

fn answer(drives: Vec<Health>, tbw: Option<f64>) -> FleetAnswer {
    let ratings: Vec<UserRating> = tbw
        .map(|bytes| UserRating { model: None, bytes })
        .into_iter()
        .collect();
    let dump = Dump {
        drives,
        left_out: Vec::new(),
    };
    fleet(vec![dump], Problems::default(), &ratings, &[]).expect("drives")
}

/// 100 of 600 TB in one year: 5 years remain. 20 % in one year: 4 years, 79/21 to 81/19.
#[test]
fn ends_are_those_of_the_mean_rate() {
    let answer = answer(vec![health(100e12, 20.0, 8760.0)], Some(600e12));
    let one = &answer.drives[0];
    assert_eq!(one.to_rating.expect("rated").years, Some(5.0));
    let used = one.to_used.expect("used");
    assert_eq!(used.years, Some(4.0));
    assert_eq!(
        (used.least, used.most),
        (rounded(79.0 / 21.0), Some(rounded(81.0 / 19.0)))
    );
    assert_eq!(
        one.end().expect("an end").0,
        LimitingCounter::PercentageUsed
    );
    assert_eq!(one.written_gb_a_day, Some(rounded(100e3 / 365.0)));
    assert_eq!(answer.shorter_than(4.5).len(), 1);
    assert!(answer.shorter_than(3.9).is_empty());
}

/// A drive that reports a failure has ended before drives that are past their rating.
#[test]
fn drives_that_report_a_failure_have_ended() {
    let read_only = Health {
        critical_warning: Some(0b1000),
        ..health(100e12, 20.0, 8760.0)
    };
    let spare = Health {
        spare_percent: Some(3.0),
        spare_threshold_percent: Some(10.0),
        ..health(1e12, 1.0, 8760.0)
    };
    let assessment = Health {
        assessment_failed: true,
        ..health(2e12, 1.0, 8760.0)
    };
    let drives = vec![health(700e12, 100.0, 8760.0), read_only, spare, assessment];
    let answer = answer(drives, Some(600e12));
    let ends: Vec<Option<LimitingCounter>> = answer.drives.iter().map(|one| one.ends_by).collect();
    let expected = [
        LimitingCounter::Failed,
        LimitingCounter::Failed,
        LimitingCounter::Failed,
        LimitingCounter::Rating,
    ];
    assert_eq!(ends, expected.map(Some));
    let words = |index: usize| answer.drives[index].failed.as_deref().unwrap_or_default();
    assert!(words(0).starts_with("is read-only"), "{}", words(0));
    assert!(
        answer
            .drives
            .iter()
            .all(|one| one.ends_in_years == Some(0.0))
    );
    assert_eq!(answer.shorter_than(0.1).len(), 4);
    // Hot or worn out is not failed.
    let hot = |bits: u8, used: f64| Health {
        critical_warning: Some(bits),
        assessment_failed: true,
        ..health(1e12, used, 8760.0)
    };
    assert_eq!(hot(0b10, 20.0).failure(), None);
    assert_eq!(hot(0b100, 104.0).failure(), None);
    assert!(hot(0b100, 20.0).failure().is_some());
}

#[test]
fn files_that_cannot_be_read_do_not_hide_the_others() {
    let unread = Problems(vec![Problem {
        place: Place::Line(7),
        ..on_smart(String::from("incomplete"), "copy it whole")
    }]);
    let dump = Dump {
        drives: vec![health(1e12, 5.0, 10.0)],
        left_out: Vec::new(),
    };
    let own = [UserRating {
        model: Some(String::from("870")),
        bytes: 1e14,
    }];
    let answer = fleet(vec![dump], unread.clone(), &own, &[]).expect("a drive");
    assert_eq!(answer.drives.len(), 1);
    assert_eq!(answer.unreadable[0].place, "command line:7");
    assert_eq!(answer.unreadable[0].reason, "incomplete");
    let none = fleet(Vec::new(), unread.clone(), &[], &[]).expect_err("no drive");
    assert_eq!(none, unread);
}

#[test]
fn a_percentage_of_0_or_1_is_a_lower_bound_only() {
    for (used, least) in [(0.0, 99.0), (1.0, 49.0)] {
        let answer = answer(vec![health(1e12, used, 8760.0)], None);
        let one = &answer.drives[0];
        let to_used = one.to_used.expect("a bound");
        assert_eq!(
            (to_used.years, to_used.least, to_used.most),
            (None, least, None)
        );
        assert!(one.end().is_none());
    }
}

#[test]
fn drives_past_an_end_are_first_and_the_most_worn_before_others() {
    let drives = vec![
        health(1e12, 50.0, 8760.0),
        health(700e12, 40.0, 8760.0),
        health(10e12, 255.0, 8760.0),
        health(0.0, 0.0, 10.0),
    ];
    let answer = answer(drives, Some(600e12));
    let order: Vec<Option<f64>> = answer.drives.iter().map(|it| it.ends_in_years).collect();
    assert_eq!(order, [Some(0.0), Some(0.0), Some(1.0), None]);
    assert_eq!(
        answer.drives[0].ends_by,
        Some(LimitingCounter::PercentageUsed)
    );
    assert_eq!(answer.drives[1].ends_by, Some(LimitingCounter::Rating));
    assert!(answer.drives[3].to_rating.is_none(), "nothing is written");
}

#[test]
fn impossible_rates_and_counters_that_disagree_are_remarked() {
    // 2^48 units of 512,000 bytes in an hour.
    let wrapped = answer(vec![health(1.4e19, 3.0, 1.0)], Some(600e18));
    let one = &wrapped.drives[0];
    assert!(one.to_rating.is_none() && one.written_gb_a_day.is_none());
    assert!(
        one.health.remarks[0].contains("impossible"),
        "{:?}",
        one.health.remarks
    );
    // 0.6 of 600 TB, but half of the cycles are used up.
    let small = answer(vec![health(0.6e12, 50.0, 8760.0)], Some(600e12));
    assert!(small.drives[0].health.remarks[0].contains("wrapped"));
    let usual = answer(vec![health(300e12, 60.0, 8760.0)], Some(600e12));
    assert!(usual.drives[0].health.remarks.is_empty());
    let idle = answer(vec![health(5e12, 0.0, 0.0)], Some(600e12));
    assert!(idle.drives[0].health.remarks[0].contains("power-on hours are 0"));
    assert!(idle.drives[0].end().is_none());
}

#[test]
fn ratings_are_the_users_then_the_catalogues() {
    let catalogue = catalogue::drives().expect("the built-in catalogue");
    let of = |model: &str, bytes: Option<f64>, ratings: &[UserRating]| {
        let health = Health {
            model: Some(model.to_owned()),
            capacity_bytes: bytes,
            ..Health::default()
        };
        rating(&health, ratings, &catalogue)
    };
    let found = of("INTEL SSDPED1K375GA", Some(375.08e9), &[]).expect("a rating");
    assert_eq!((&*found.of, &*found.kind), ("p4800x-375", "spec"));
    assert!(found.how.contains("(same model number)"), "{}", found.how);
    let found = of("SSDPED1K375GA", None, &[]).expect("a rating");
    assert!(
        found.how.contains("without the maker's name"),
        "{}",
        found.how
    );
    let found = of("Samsung SSD 980 PRO with Heatsink 1TB", None, &[]).expect("a rating");
    assert_eq!((&*found.of, found.tb), ("980pro-1000", 600.0));
    assert!(found.how.contains("(same name)"), "{}", found.how);
    // A different capacity is a different model.
    assert!(of("Samsung SSD 980 PRO 2TB", Some(2e12), &[]).is_err());
    assert!(of("Samsung SSD 980 PRO 1TB", Some(2e12), &[]).is_err());
    assert!(of("Samsung SSD 870 EVO 1TB", None, &[]).is_err());
    let user = |model: Option<&str>, bytes| UserRating {
        model: model.map(str::to_owned),
        bytes,
    };
    let given = [user(None, 1e14), user(Some("980 pro"), 7e14)];
    let found = of("Samsung SSD 980 PRO 1TB", None, &given).expect("given");
    assert_eq!((found.tb, &*found.of), (700.0, "--tbw"));
    let found = of("another", None, &given).expect("given");
    assert_eq!(found.tb, 100.0);
}

#[test]
fn ratings_for_no_drive_and_files_without_drives_are_refused() {
    let ratings = [UserRating {
        model: Some(String::from("870")),
        bytes: 1e14,
    }];
    let dump = Dump {
        drives: vec![health(1e12, 5.0, 10.0)],
        left_out: Vec::new(),
    };
    let problems =
        fleet(vec![dump], Problems::default(), &ratings, &[]).expect_err("no such drive");
    assert!(problems.to_string().contains("--tbw 870"), "{problems}");
    let disks = Dump {
        drives: Vec::new(),
        left_out: vec![String::from("ST4000: a hard disk")],
    };
    let problems = fleet(vec![disks], Problems::default(), &[], &[]).expect_err("no SSD");
    assert!(problems.to_string().contains("a hard disk"), "{problems}");
}
