//! Results of the sensitivity analysis for an assumed figure, as a value and as text; `sensitivity` computes them.

use serde::Serialize;

/// An assumed figure that changes a headline.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SensitiveFigure {
    /// Dotted key of the figure.
    pub figure: String,
    /// The assumed value.
    pub value: String,
    /// Name of the headline.
    pub headline: &'static str,
    /// Value of the headline with the assumed figure, in microseconds, IOPS or MB/s according to its name.
    pub was: f64,
    /// Change of the headline, as a share, with the figure divided and multiplied by 1.5; null if the changed figure
    /// gives no valid drive.
    pub change: [Option<f64>; 2],
    /// Labels of the reviewed drives whose order relative to this drive would change.
    pub passes: Vec<String>,
}

impl SensitiveFigure {
    /// Returns the larger of the changes.
    pub fn largest(&self) -> f64 {
        let all = self.change.iter().flatten();
        all.fold(0.0, |most, change| f64::max(most, change.abs()))
    }
}

/// Maximum number of figures that a sentence names.
const NAMED: usize = 3;

/// Returns a sentence on the strongest figures: `Of 54 assumed figures of the A ...`.
pub(super) fn words(label: &str, assumed: usize, moved: &[SensitiveFigure]) -> String {
    let mut named: Vec<&SensitiveFigure> = Vec::new();
    for one in moved {
        if named.iter().all(|other| other.figure != one.figure) {
            named.push(one);
        }
    }
    let percent = |change: Option<f64>| {
        change.map_or("no drive".to_owned(), |change| {
            format!("{:+.0} %", change * 100.0)
        })
    };
    let one = |moved: &&SensitiveFigure| {
        let [less, more] = moved.change.map(percent);
        let passes = match moved.passes.is_empty() {
            true => String::new(),
            false => format!(", past {}", moved.passes.join(" and ")),
        };
        format!(
            "{} = {} ({}: {less} and {more}{passes})",
            moved.figure, moved.value, moved.headline
        )
    };
    let strongest: Vec<String> = named.iter().take(NAMED).map(one).collect();
    let figures = named.len();
    match figures {
        0 => format!(
            "{label}: none of {assumed} assumed figures changes a headline by 10 % when it is decreased by a third or increased by half."
        ),
        _ => format!(
            "{label}: {figures} of {assumed} assumed figures change a headline by 10 % or more when decreased by a third or increased by half; the strongest: {}.",
            strongest.join("; ")
        ),
    }
}
