//! Finds where one curve overtakes another.

/// Minimum difference between two figures, as a share.
pub(crate) const CLEAR: f64 = 0.03;

/// Returns the x at and above which `b` stays above `a`, after being below it. The difference is clear at least once
/// before and once after, and `a` is never clearly above `b` again. `None` if there is no such point.
pub(crate) fn overtakes(a: &[(u64, f64)], b: &[(u64, f64)]) -> Option<u64> {
    let both: Vec<(u64, f64)> = a
        .iter()
        .filter_map(|&(x, low)| {
            let &(_, high) = b.iter().find(|&&(other, _)| other == x)?;
            (low > 0.0).then_some((x, high / low - 1.0))
        })
        .collect();
    let last_below = both.iter().rposition(|&(_, lead)| lead <= 0.0)?;
    let after = &both[last_below + 1..];
    let clearly_below = both[..=last_below].iter().any(|&(_, lead)| lead < -CLEAR);
    let clearly_above = after.iter().any(|&(_, lead)| lead > CLEAR);
    (clearly_below && clearly_above).then(|| after[0].0)
}

/// Returns the x at and above which `curve` stays within `share` of its largest value, and that value; `None` if only
/// its last point reaches it.
pub(crate) fn saturates(curve: &[(u64, f64)], share: f64) -> Option<(u64, f64)> {
    let most = curve.iter().map(|&(_, y)| y).max_by(f64::total_cmp)?;
    let reached = curve.iter().position(|&(_, y)| y >= most * share)?;
    (reached + 1 < curve.len()).then(|| (curve[reached].0, most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crossing_is_clear_on_both_sides() {
        let flat = [(1, 10.0), (2, 10.0), (4, 10.0), (8, 10.0)];
        assert_eq!(
            overtakes(&flat, &[(1, 5.0), (2, 9.0), (4, 11.0), (8, 20.0)]),
            Some(4)
        );
        // Never below; never above; equal at the end; fluctuation around equality.
        assert_eq!(
            overtakes(&flat, &[(1, 11.0), (2, 12.0), (4, 13.0), (8, 14.0)]),
            None
        );
        assert_eq!(
            overtakes(&flat, &[(1, 5.0), (2, 6.0), (4, 7.0), (8, 8.0)]),
            None
        );
        assert_eq!(
            overtakes(&flat, &[(1, 5.0), (2, 6.0), (4, 7.0), (8, 10.1)]),
            None
        );
        assert_eq!(
            overtakes(&flat, &[(1, 9.9), (2, 10.1), (4, 9.9), (8, 10.1)]),
            None
        );
        // A lead that is lost again is not overtaking.
        assert_eq!(
            overtakes(&flat, &[(1, 5.0), (2, 12.0), (4, 12.0), (8, 9.0)]),
            None
        );
    }

    #[test]
    fn saturation_is_where_more_depth_stops_helping() {
        let curve = [(1, 10.0), (2, 20.0), (4, 39.0), (8, 40.0), (16, 40.0)];
        assert_eq!(saturates(&curve, 0.97), Some((4, 40.0)));
        assert_eq!(saturates(&[(1, 10.0), (2, 20.0), (4, 40.0)], 0.97), None);
        assert_eq!(saturates(&[], 0.97), None);
    }
}
