//! A run over time as columns: results of its I/Os, and gauges of drive, tiers and host, by interval.
//!
//! I/Os are counted after the ramp, gauges from the beginning of the run. Not included: single members.

use lab::{Measured, Outcome, ThreadOutcome};
use statistics::series::{merged, moments};
use study::review::results::rounded;

/// A column: its name with its unit, and a value for each interval; `None` where nothing completed.
pub(crate) type TimeColumn = (String, Vec<Option<f64>>);

/// Reads or writes of a thread.
type DirectionSelector = fn(&ThreadOutcome) -> &Measured;

/// Returns the columns of a run; the first is the time of each interval's end in seconds. Empty for a run without
/// series.
pub(crate) fn columns(outcome: &Outcome) -> Vec<TimeColumn> {
    let every = outcome.over_time.every;
    let whole = outcome.over_time.gauges.first();
    let Some(count) = whole.map(|(_, values)| values.len()) else {
        return Vec::new();
    };
    let end = outcome.end.ns() as f64 * 1e-9;
    let ends = (1..=count).map(|index| Some(rounded((every.seconds() * index as f64).min(end))));
    let mut all = vec![("seconds".to_owned(), ends.collect())];
    let ways: [(&str, DirectionSelector); 2] = [("read", |it| &it.read), ("write", |it| &it.write)];
    for (way, of) in ways {
        let threads = outcome.threads.iter().map(of);
        let mut sums = merged(threads.map(|it| &it.series[..]));
        sums.resize(count, lab::Interval::default());
        let moments = moments(&sums, every);
        let mut add =
            |what: &str, value: &dyn Fn(&statistics::series::SeriesInterval) -> Option<f64>| {
                let values = moments.iter().map(|it| value(it).map(rounded));
                all.push((format!("{way}_{what}"), values.collect()));
            };
        add("iops", &|it| Some(it.iops));
        add("mb_s", &|it| Some(it.bytes_per_second / 1e6));
        add("mean_us", &|it| Some(it.mean_ns? / 1e3));
        add("max_us", &|it| Some(it.longest?.us()));
    }
    for (gauge, values) in &outcome.over_time.gauges {
        let values = values.iter().map(|value| Some(rounded(*value)));
        all.push((gauge.name().to_owned(), values.collect()));
    }
    all
}
