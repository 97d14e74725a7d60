//! Tests of data loss against closed forms and the Markov chain.

use super::*;

fn alike(count: usize, failures: f64, repair: f64) -> Vec<MemberRisk> {
    let one = MemberRisk {
        failures: [failures; 3],
        repair,
        unreadable: 0.01,
        exposed: repair,
    };
    vec![one; count]
}

fn any(count: u16, of: u16) -> Loss {
    Loss::out_of(count, (0..of).map(Loss::Member).collect())
}

/// The mean time until more than `bears` of `count` drives are failed, repairs side by side: a birth-death chain.
fn markov(count: usize, bears: usize, failures: f64, repair: f64) -> f64 {
    let up = |failed: usize| (count - failed) as f64 * failures;
    let down = |failed: usize| failed as f64 / repair;
    // Time from `failed` to `failed` + 1 for the first time.
    let mut step = 1.0 / up(0);
    let mut all = step;
    for failed in 1..=bears {
        step = 1.0 / up(failed) + down(failed) / up(failed) * step;
        all += step;
    }
    all
}

#[test]
fn mirrors_and_arrays_are_as_the_markov_chain_has_them() {
    for (count, bears) in [(2, 1), (3, 2), (6, 1), (6, 2), (10, 2), (10, 3)] {
        let (failures, repair) = (0.0157, 2.0 / 365.0);
        let members = alike(count, failures, repair);
        let rule = any(bears as u16 + 1, count as u16);
        let years = 1.0 / losses(&rule.cut_sets(), &members, 1.0, 0);
        let exact = markov(count, bears, failures, repair);
        let off = (years / exact - 1.0).abs();
        assert!(
            off < 2e-3,
            "{count} drives, {bears} may fail: {years} of {exact} years"
        );
    }
}

#[test]
fn times_and_shares_have_units() {
    assert_eq!(hours("24h"), Ok(24.0));
    assert_eq!(hours("90min"), Ok(1.5));
    assert_eq!(hours("3 d"), Ok(72.0));
    for wrong in ["24", "h", "-1h", "9e9d", "nanh", ""] {
        assert!(hours(wrong).is_err(), "{wrong}");
    }
    assert_eq!(share_of_drives("0.5%"), Ok((None, 0.005)));
    assert_eq!(
        share_of_drives("p4801x-100 = 2 %"),
        Ok((Some(String::from("p4801x-100")), 0.02))
    );
    for wrong in ["0.5", "0%", "101%", "=1%", "a=b%"] {
        assert!(share_of_drives(wrong).is_err(), "{wrong}");
    }
}

/// S2-049 and S2-050 say four and eight times.
#[test]
fn a_stripe_of_two_fails_twice_as_often_as_one_drive() {
    let members = alike(2, 0.01, 1.0 / 365.0);
    let one = losses(&Loss::Member(0).cut_sets(), &members, 1.0, 0);
    let stripe = losses(&any(1, 2).cut_sets(), &members, 1.0, 0);
    let mirror = losses(&any(2, 2).cut_sets(), &members, 1.0, 0);
    assert!((stripe / one - 2.0).abs() < 1e-12);
    assert!((stripe / mirror - 365.0 / 0.01).abs() < 1e-6);
}

/// By hand: a pair fails 2 x 0.01 times a year, and one time in a hundred the other cannot be read whole.
#[test]
fn the_last_copy_is_read_by_a_rebuild() {
    let members = alike(6, 0.01, 1.0 / 365.0);
    assert!((unreadable(&any(2, 2).cut_sets(), &members, 0) - 2.0 * 0.01 * 0.01).abs() < 1e-15);
    assert!((unreadable(&any(2, 6).cut_sets(), &members, 0) - 30.0 * 0.01 * 0.01).abs() < 1e-12);
    assert_eq!(unreadable(&any(1, 2).cut_sets(), &members, 0), 0.0);
}

/// By hand: a member is out for a day a hundred times in 10,000 years, and each of these days has 2/365 crashes.
#[test]
fn a_crash_loses_alone_or_while_a_drive_is_out() {
    let members = alike(1, 0.01, 1.0 / 365.0);
    assert_eq!(losses(&Loss::Ram.cut_sets(), &members, 2.0, 0), 2.0);
    let both = Loss::all(vec![Loss::Member(0), Loss::Ram]);
    let rate = losses(&both.cut_sets(), &members, 2.0, 0);
    assert!((rate - 0.01 * 2.0 / 365.0).abs() < 1e-15, "{rate}");
    let cause = cause(&both.cut_sets(), &members, 2.0);
    assert_eq!((cause.drives, cause.crash, cause.share), (1, true, 1.0));
}

/// By hand: 1 - (1 - 0.001)^5 with a rate of -ln(1 - 0.001) a year; tiny rates keep their digits.
#[test]
fn probabilities_over_years_are_those_of_constant_rates() {
    let rate = -libm::log(1.0 - 0.001);
    let over = OddsOver::new(5.0, [rate, 1e-12, 10.0], None);
    let expected = 1.0 - libm::pow(0.999, 5.0);
    assert!((over.losses[0] / expected - 1.0).abs() < 1e-9, "{over:?}");
    assert!((over.losses[1] / 5e-12 - 1.0).abs() < 1e-9, "{over:?}");
    assert_eq!((over.losses[2], over.some_blocks), (1.0, None));
    for wrong in ["0", "-1", "1001", "five", "nan"] {
        assert!(years(wrong).is_err(), "{wrong}");
    }
    assert_eq!(years("2.5"), Ok(2.5));
}
