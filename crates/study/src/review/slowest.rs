//! Latency breakdown of the slowest I/Os of a workload.

use model::Part;
use statistics::BAND_EDGES;

use super::results::Measurement;
use text::digits::significant;

/// Maximum number of parts that are named, the largest first.
const NAMED: usize = 2;
const LEAST: f64 = 0.1;

/// The I/Os beyond a percentile.
pub(crate) struct Slowest {
    /// The percentile.
    pub(crate) beyond: f64,
    /// Parts of their mean latency, the largest first, each with its share.
    pub(crate) parts: Vec<(Part, f64)>,
}

impl Slowest {
    /// Returns the highest band, at or above p99, that has at least ten I/Os.
    pub(crate) fn from_measurement(result: &Measurement, direction: &str) -> Option<Slowest> {
        let bands = result.direction(direction)?.bands.as_ref()?;
        let known = bands.iter().zip(BAND_EDGES).rev();
        let (band, beyond) = known
            .take_while(|(_, from)| *from >= 99.0)
            .find_map(|(band, from)| Some((band.as_ref()?, from)))?;
        let parts = Part::ALL.iter().zip(&band.parts_us);
        // A thread's own backlog is before the start of the latency.
        let mut parts: Vec<(Part, f64)> = parts
            .filter(|(part, _)| **part != Part::ThreadBusy)
            .map(|(part, us)| (*part, *us))
            .collect();
        let all: f64 = parts.iter().map(|it| it.1).sum();
        parts.iter_mut().for_each(|it| it.1 /= all.max(1e-12));
        parts.sort_by(|a, b| b.1.total_cmp(&a.1));
        Some(Slowest { beyond, parts })
    }

    /// Returns text such as `congestion 71 %, tier 12 %`.
    pub(crate) fn words(&self) -> String {
        let named = self.parts.iter().take(NAMED);
        let named = named.filter(|(_, share)| *share >= LEAST);
        let words = named
            .map(|(part, share)| format!("{} {} %", part.name(), significant(share * 100.0, 2)));
        words.collect::<Vec<_>>().join(", ")
    }
}
