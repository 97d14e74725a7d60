//! Latency at a fixed rate of arrival, as applications feel it: random 4 KiB I/O that arrives as a Poisson process,
//! at rates common to all drives and at shares of each drive's own saturation.
//!
//! Up to 256 I/Os may be in flight; a rate that the drive cannot keep up with is not tried.

use model::media::Precondition;

use super::{Effort, PointSpec};
use crate::review::results::Settings;

const SHARES: [u64; 8] = [10, 25, 50, 70, 80, 90, 95, 98];
const RATES: [u64; 9] = [
    1_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 300_000, 500_000,
];
const RATES_FINE: [u64; 4] = [2_000, 30_000, 150_000, 400_000];
const THREADS: u32 = 4;
const DEPTH: u32 = 64;

/// The most I/Os a second that each drive did without a pace: read, 70 % read, write. `None` where nothing was
/// measured.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Saturation {
    pub(crate) read: Option<f64>,
    pub(crate) mix: Option<f64>,
    pub(crate) write: Option<f64>,
}

/// Points for drives with these saturations.
pub(crate) fn points(effort: Effort, saturations: &[Saturation]) -> Vec<PointSpec> {
    let mut points = Vec::new();
    for (direction, read_percent) in [("read", 100), ("mix", 70), ("write", 0)] {
        let of = |saturation: &Saturation| match direction {
            "read" => saturation.read,
            "mix" => saturation.mix,
            _ => saturation.write,
        };
        let mut rates = RATES.to_vec();
        if effort.fine {
            rates.extend(RATES_FINE);
            rates.sort_unstable();
        }
        for (drive, saturation) in saturations.iter().enumerate() {
            let Some(most) = of(saturation) else { continue };
            for &rate in rates.iter().filter(|&&rate| (rate as f64) < most * 0.98) {
                let name = format!("paced/{direction}/{rate}/drive{drive}");
                points.push(point(name, direction, read_percent, rate, None, drive));
            }
            for share in SHARES {
                let rate = (most * share as f64 / 100.0) as u64;
                let name = format!("paced/{direction}/{share}%/drive{drive}");
                let share = Some(share as f64 / 100.0);
                points.push(point(name, direction, read_percent, rate, share, drive));
            }
        }
    }
    points
}

fn point(
    name: String,
    direction: &'static str,
    read_percent: u32,
    rate: u64,
    share: Option<f64>,
    drive: usize,
) -> PointSpec {
    let mut options = match direction {
        "mix" => vec![
            ("rw", "randrw".into()),
            ("rwmixread", read_percent.to_string()),
        ],
        _ => vec![("rw", format!("rand{direction}"))],
    };
    options.push(("bs", "4k".into()));
    PointSpec {
        name,
        chapter: "paced",
        settings: Settings {
            direction: Some(direction),
            pattern: Some("random"),
            block_bytes: Some(4096),
            threads: Some(THREADS),
            read_percent: (direction == "mix").then_some(read_percent),
            offered_iops: Some(rate),
            share_of_saturation: share,
            ..Settings::default()
        },
        state: Precondition::Steady,
        options,
        threads: vec![(THREADS, DEPTH)],
        rate_iops: Some(rate),
        longest: None,
        only: Some(drive),
    }
}
