//! Properties that hold for all samples: merging adds counts, percentiles are within a bucket of the true value,
//! bands add up.

use model::{Anatomy, Part, Span};
use proptest::prelude::*;

use super::{AnatomyBands, Histogram};

/// Latencies over all octaves.
fn latencies() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(
        (0u32..45, 0u64..1 << 20).prop_map(|(shift, low)| (1 << shift) - 1 + low % (1 << shift)),
        1..300,
    )
}

fn histogram_of(all: &[u64]) -> Histogram {
    let mut histogram = Histogram::default();
    for &ns in all {
        histogram.record(Span::from_ns(ns));
    }
    histogram
}

fn anatomy_of(ns: u64) -> Anatomy {
    let mut anatomy = Anatomy::ZERO;
    let medium = ns / 3;
    anatomy.add(Part::Medium, Span::from_ns(medium));
    anatomy.add(Part::Controller, Span::from_ns(ns - medium));
    anatomy
}

proptest! {
    #[test]
    fn merging_is_counting_together(a in latencies(), b in latencies()) {
        let mut merged = histogram_of(&a);
        merged.merge(&histogram_of(&b));
        let together = histogram_of(&[a, b].concat());
        prop_assert_eq!(merged.count(), together.count());
        prop_assert_eq!(merged.min(), together.min());
        prop_assert_eq!(merged.max(), together.max());
        prop_assert_eq!(merged.mean_ns(), together.mean_ns());
        let (one, other) = (merged.deviation_ns(), together.deviation_ns());
        prop_assert!((one - other).abs() <= 1e-9 * one.max(1.0));
        prop_assert!(merged.buckets().eq(together.buckets()));
    }

    #[test]
    fn a_percentile_is_within_a_bucket_of_the_sample(mut all in latencies(), percent in 0.0f64..=100.0) {
        let got = histogram_of(&all).quantile(percent).expect("there are samples").ns();
        all.sort_unstable();
        let rank = (all.len() as f64 * percent / 100.0).ceil().max(1.0) as usize;
        let truth = all[rank.min(all.len()) - 1];
        // Values above 2^40 ns share the last bucket.
        if truth < 1 << 40 {
            let width = (truth / 128).max(1);
            prop_assert!(got.abs_diff(truth) <= width, "{got} for {truth}");
        }
    }

    #[test]
    fn percentiles_rise(all in latencies()) {
        let histogram = histogram_of(&all);
        let values: Vec<Span> = [0.0, 1.0, 25.0, 50.0, 75.0, 99.0, 100.0]
            .iter()
            .filter_map(|&percent| histogram.quantile(percent))
            .collect();
        prop_assert!(values.is_sorted());
        prop_assert!(values.first().copied() >= histogram.min());
        prop_assert_eq!(values.last().copied(), histogram.max());
    }

    #[test]
    fn bands_hold_every_sample_and_all_their_time(all in latencies()) {
        let mut bands = AnatomyBands::default();
        for &ns in &all {
            bands.record(Span::from_ns(ns), &anatomy_of(ns));
        }
        let parts = bands.percentile_bands(&[0.0, 50.0, 90.0, 99.0, 100.0]);
        // Bands share the buckets at their edges, so their counts are rounded, by at most half a sample each.
        let count: u64 = parts.iter().map(|band| band.count).sum();
        prop_assert!(count.abs_diff(all.len() as u64) <= 2, "{count}");
        let time: f64 = parts
            .iter()
            .map(|band| {
                let samples = (band.to - band.from) / 100.0 * all.len() as f64;
                band.mean_ns.iter().sum::<f64>() * samples
            })
            .sum();
        let truth: f64 = all.iter().map(|&ns| ns as f64).sum();
        prop_assert!((time - truth).abs() <= 1e-9 * truth.max(1.0));
    }

    #[test]
    fn bands_merge(a in latencies(), b in latencies()) {
        let record = |all: &[u64]| {
            let mut bands = AnatomyBands::default();
            for &ns in all {
                bands.record(Span::from_ns(ns), &anatomy_of(ns));
            }
            bands
        };
        let mut merged = record(&a);
        merged.merge(&record(&b));
        prop_assert_eq!(merged, record(&[a, b].concat()));
    }
}
