//! The charts of the reproduction's page, as SVG.

use maud::{Markup, html};

use super::{error, figure};
use study::ledger::{PublishedValue, RowResult, RowVerdict};
use text::digits::grouped;

const WIDTH: f64 = 1040.0;
/// Space for names on the left and errors on the right.
const LEFT: f64 = 400.0;
const RIGHT: f64 = 70.0;
const LINE: f64 = 22.0;
const TOP: f64 = 26.0;
/// Maximum length of a name that fits on the left.
const LONGEST: usize = 50;

/// A logarithmic axis with a margin at both ends.
struct LogAxis {
    low: f64,
    high: f64,
}

impl LogAxis {
    fn over(values: &[f64]) -> LogAxis {
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(0.0, f64::max);
        // Even rows with close values then have two round values next to them.
        let room = libm::fmax(1.3, libm::sqrt(3.0 * low / high));
        LogAxis {
            low: libm::log10(low / room),
            high: libm::log10(high * room),
        }
    }

    fn position(&self, value: f64) -> f64 {
        let share = (libm::log10(value) - self.low) / (self.high - self.low);
        LEFT + share.clamp(0.0, 1.0) * (WIDTH - LEFT - RIGHT)
    }

    /// Returns round values on the axis: one, two and five times a power of ten, fewer for many decades.
    fn ticks(&self) -> Vec<f64> {
        let steps: &[f64] = match self.high - self.low {
            decades if decades > 3.0 => &[1.0],
            decades if decades > 1.2 => &[1.0, 3.0],
            _ => &[1.0, 1.5, 2.0, 3.0, 5.0, 7.0],
        };
        let decades = libm::floor(self.low) as i32..=libm::ceil(self.high) as i32;
        let ticks = decades.flat_map(|decade| {
            steps
                .iter()
                .map(move |step| step * libm::exp10(f64::from(decade)))
        });
        ticks
            .filter(|tick| (self.low..=self.high).contains(&libm::log10(*tick)))
            .collect()
    }
}

/// Returns digits with separated thousands, for an axis.
fn apart(digits: &str) -> String {
    const NARROW_SPACE: char = '\u{202f}';
    match digits.len() < 5 || digits.contains('.') {
        true => digits.to_owned(),
        false => grouped(digits, NARROW_SPACE),
    }
}

fn number(published: &PublishedValue) -> Option<f64> {
    match published {
        PublishedValue::Number(number) if *number > 0.0 => Some(*number),
        _ => None,
    }
}

fn shortened(text: &str) -> String {
    if text.chars().count() <= LONGEST {
        return text.to_owned();
    }
    let kept: String = text.chars().take(LONGEST - 1).collect();
    format!("{}\u{2026}", kept.trim_end())
}

/// Draws the published figure and the model's figure on one logarithmic axis, one row each.
pub(super) fn side_by_side(rows: &[&RowResult]) -> Markup {
    let pairs: Vec<(&RowResult, f64, f64)> = rows
        .iter()
        .filter_map(|result| {
            Some((
                *result,
                number(&result.row.published)?,
                result.model.as_ref().ok()?.value,
            ))
        })
        .filter(|(_, _, model)| *model > 0.0)
        .collect();
    let values: Vec<f64> = pairs
        .iter()
        .flat_map(|&(_, published, model)| [published, model])
        .collect();
    if values.is_empty() {
        return Markup::default();
    }
    let axis = LogAxis::over(&values);
    let bottom = TOP + LINE * pairs.len() as f64;
    let middle = |index: usize| TOP + LINE * (index as f64 + 0.5);
    html! {
        svg class="chart" viewBox=(format!("0 0 {WIDTH} {:.0}", bottom + 10.0)) role="img"
            aria-label="Published and simulated figures" {
            @for tick in axis.ticks() {
                (upright("grid", axis.position(tick), TOP, bottom))
                (label("soft", "middle", axis.position(tick), TOP - 9.0, &apart(&figure(tick))))
            }
            @for (index, (result, published, model)) in pairs.iter().enumerate() {
                (row(&axis, middle(index), result, *published, *model))
            }
        }
    }
}

/// Returns a position in tenths of a pixel.
fn px(value: f64) -> String {
    format!("{value:.1}")
}

fn upright(class: &str, x: f64, top: f64, bottom: f64) -> Markup {
    html! { line class=(class) x1=(px(x)) x2=(px(x)) y1=(px(top)) y2=(px(bottom)) {} }
}

fn level(class: &str, from: f64, to: f64, y: f64) -> Markup {
    html! { line class=(class) x1=(px(from)) x2=(px(to)) y1=(px(y)) y2=(px(y)) {} }
}

fn label(class: &str, anchor: &str, x: f64, y: f64, text: &str) -> Markup {
    html! { text class=(class) x=(px(x)) y=(px(y)) text-anchor=(anchor) { (text) } }
}

fn row(axis: &LogAxis, y: f64, result: &RowResult, published: f64, model: f64) -> Markup {
    let (at, is) = (axis.position(published), axis.position(model));
    let class = result.row.evidence.name();
    let off = match result.verdict {
        RowVerdict::Holds => "soft",
        _ => "off",
    };
    let interval = result.model.as_ref().ok().and_then(|model| model.interval);
    html! {
        g {
            title {
                (result.row.id) ": " (result.row.what) " (" (result.row.conditions) ")\npublished "
                (figure(published)) ", model " (figure(model))
            }
            text x="0" y=(px(y + 4.0)) {
                tspan class="soft" { (result.row.id) } " " (shortened(&result.row.what))
            }
            (level("gap", at, is, y))
            @if let Some((low, high)) = interval {
                (level(class, axis.position(low.max(f64::MIN_POSITIVE)), axis.position(high), y))
            }
            rect class="published" x="-4.5" y="-4.5" width="9" height="9"
                transform=(format!("translate({at:.1} {y:.1}) rotate(45)")) {}
            circle class=(class) cx=(px(is)) cy=(px(y)) r="3.6" {}
            (label(off, "end", WIDTH, y + 4.0, &error(result)))
        }
    }
}

/// Draws the share of figures whose error is at most a given value, as steps; errors are shares of the published
/// figure.
pub(super) fn distribution(errors: &[f64]) -> Markup {
    const HEIGHT: f64 = 280.0;
    const MARGIN: f64 = 46.0;
    let mut sorted: Vec<f64> = errors.iter().map(|error| error.abs()).collect();
    sorted.sort_by(f64::total_cmp);
    let most = sorted.last().copied().unwrap_or_default().clamp(0.2, 1.0);
    let x = |error: f64| MARGIN + error.min(most) / most * (WIDTH - 2.0 * MARGIN);
    let y = |share: f64| HEIGHT - 30.0 - share * (HEIGHT - 66.0);
    let count = sorted.len() as f64;
    let mut path = format!("M{:.1} {:.1}", x(0.0), y(0.0));
    for (index, error) in sorted.iter().enumerate() {
        let share = (index as f64 + 1.0) / count;
        path.push_str(&format!(" H{:.1} V{:.1}", x(*error), y(share)));
    }
    path.push_str(&format!(" H{:.1}", WIDTH - MARGIN));
    // One above the other, because the limits are closer to each other than their names are long.
    let limits = [
        (0.05, 0.0, "median within 5 %"),
        (0.15, 15.0, "90 % of errors within 15 %"),
    ];
    let step = if most > 0.5 { 0.1 } else { 0.05 };
    let ticks = (0..=20).map(|index| f64::from(index) * step);
    let ticks = ticks.take_while(|error| *error <= most + 1e-9);
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    html! {
        svg class="chart" viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label="Distribution of errors" {
            @for share in [0.0, 0.25, 0.5, 0.75, 0.9, 1.0] {
                (level("grid", MARGIN, WIDTH - MARGIN, y(share)))
                (label("soft", "end", MARGIN - 6.0, y(share) + 4.0, &percent(share)))
            }
            @for (limit, top, of) in limits {
                (upright("limit", x(limit), top, y(0.0)))
                (label("soft", "start", x(limit) + 4.0, top + 12.0, of))
            }
            path class="step" d=(path) {}
            @for error in ticks {
                (label("soft", "middle", x(error), HEIGHT - 10.0, &percent(error)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_not_too_many() {
        for (low, high) in [
            (1.0, 1.1),
            (728_025.0, 750_000.0),
            (30.0, 900.0),
            (0.3, 146_000.0),
        ] {
            let ticks = LogAxis::over(&[low, high]).ticks();
            assert!(
                (2..=14).contains(&ticks.len()),
                "{low} to {high}: {ticks:?}"
            );
        }
    }

    #[test]
    fn thousands_stand_apart() {
        assert_eq!(apart("300000"), "300\u{202f}000");
        assert_eq!(apart("1000"), "1000");
        assert_eq!(apart("1.5"), "1.5");
    }

    #[test]
    fn a_distribution_ends_at_all_of_it() {
        let svg = distribution(&[0.01, -0.02, 0.5]).into_string();
        assert!(svg.contains("class=\"step\"") && svg.ends_with("</svg>"));
    }
}
