//! A chart of lines or points with limits drawn, as SVG: there without scripts, on paper and in both themes.

use maud::{Markup, html};
use text::digits::digits;

const WIDTH: f64 = 1040.0;
const HEIGHT: f64 = 440.0;
const LEFT: f64 = 90.0;
/// Room for names on the right.
const RIGHT: f64 = 190.0;
const TOP: f64 = 20.0;
const BOTTOM: f64 = 50.0;
/// Colours of the style sheet.
const COLOURS: usize = 6;

/// An axis: its name, its ends, and whether equal ratios are equally long.
pub(super) struct Axis {
    pub(super) name: String,
    pub(super) ends: [f64; 2],
    pub(super) by_ratio: bool,
}

impl Axis {
    /// Around these values, with some room; from zero where lengths are equal.
    pub(super) fn around(name: &str, values: impl Iterator<Item = f64>, by_ratio: bool) -> Axis {
        let values: Vec<f64> = values
            .filter(|value| value.is_finite() && *value > 0.0)
            .collect();
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(0.0, f64::max);
        let ends = match (values.is_empty(), by_ratio) {
            (true, _) => [1.0, 10.0],
            (false, true) => [low / 1.3, high * 1.3],
            (false, false) => [0.0, high * 1.08],
        };
        Axis {
            name: name.to_owned(),
            ends,
            by_ratio,
        }
    }

    /// The share of its length at which a value is.
    fn share(&self, value: f64) -> f64 {
        let [low, high] = self.ends;
        let share = match self.by_ratio {
            true => libm::log(value.max(low) / low) / libm::log(high / low),
            false => (value - low) / (high - low),
        };
        share.clamp(0.0, 1.0)
    }

    /// Round values on it.
    fn ticks(&self) -> Vec<f64> {
        let [low, high] = self.ends;
        if self.by_ratio {
            let steps: &[f64] = if high / low > 300.0 {
                &[1.0]
            } else {
                &[1.0, 2.0, 5.0]
            };
            let decades =
                libm::floor(libm::log10(low)) as i32..=libm::ceil(libm::log10(high)) as i32;
            let ticks = decades.flat_map(|decade| {
                steps
                    .iter()
                    .map(move |step| step * libm::exp10(f64::from(decade)))
            });
            let ticks: Vec<f64> = ticks.filter(|tick| (low..=high).contains(tick)).collect();
            // Between two such values an axis would have none.
            if ticks.len() > 1 {
                return ticks;
            }
        }
        let raw = (high - low) / 6.0;
        let decade = libm::exp10(libm::floor(libm::log10(raw)));
        let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|one| one * decade);
        let step = step.into_iter().find(|step| *step >= raw).unwrap_or(raw);
        let first = libm::ceil(low / step) as i64;
        let ticks = (first..).map(|index| index as f64 * step);
        ticks.take_while(|tick| *tick <= high).collect()
    }
}

/// Points of one name.
pub(super) struct Line {
    pub(super) name: String,
    pub(super) points: Vec<(f64, f64)>,
}

/// A chart.
pub(super) struct Plot {
    pub(super) label: String,
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) lines: Vec<Line>,
    /// Bounds of `y`, each with its words.
    pub(super) limits: Vec<(f64, String)>,
}

fn px(value: f64) -> String {
    format!("{value:.1}")
}

impl Plot {
    fn x(&self, value: f64) -> f64 {
        LEFT + self.x.share(value) * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM - self.y.share(value) * (HEIGHT - TOP - BOTTOM)
    }

    /// Where the names of the lines stand: beside their last points, none over another.
    fn names(&self) -> Vec<f64> {
        const APART: f64 = 15.0;
        let last = |line: &Line| line.points.last().map_or(HEIGHT, |point| self.y(point.1));
        let mut order: Vec<usize> = (0..self.lines.len()).collect();
        order.sort_by(|a, b| last(&self.lines[*a]).total_cmp(&last(&self.lines[*b])));
        let mut places = vec![0.0; self.lines.len()];
        let mut free = TOP;
        for index in order {
            places[index] = last(&self.lines[index]).max(free);
            free = places[index] + APART;
        }
        places
    }

    /// As SVG.
    pub(super) fn svg(&self) -> Markup {
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        let names = self.names();
        html! {
            svg class="chart" viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(self.label) {
                @for tick in self.y.ticks() {
                    line class="grid" x1=(px(LEFT)) x2=(px(right)) y1=(px(self.y(tick))) y2=(px(self.y(tick))) {}
                    text class="soft" x=(px(LEFT - 8.0)) y=(px(self.y(tick) + 4.0)) text-anchor="end" { (digits(tick)) }
                }
                @for tick in self.x.ticks() {
                    line class="grid" y1=(px(TOP)) y2=(px(bottom)) x1=(px(self.x(tick))) x2=(px(self.x(tick))) {}
                    text class="soft" x=(px(self.x(tick))) y=(px(bottom + 16.0)) text-anchor="middle" { (digits(tick)) }
                }
                text x=(px((LEFT + right) / 2.0)) y=(px(HEIGHT - 10.0)) text-anchor="middle" { (self.x.name) }
                text transform=(format!("translate(16 {:.1}) rotate(-90)", (TOP + bottom) / 2.0)) text-anchor="middle" { (self.y.name) }
                @for (bound, words) in &self.limits {
                    line class="limit" x1=(px(LEFT)) x2=(px(right)) y1=(px(self.y(*bound))) y2=(px(self.y(*bound))) {}
                    text class="soft" x=(px(LEFT + 6.0)) y=(px(self.y(*bound) - 5.0)) { (words) }
                }
                @for ((index, line), name) in self.lines.iter().enumerate().zip(names) {
                    (self.line(line, index % COLOURS, name))
                }
            }
        }
    }

    fn line(&self, line: &Line, colour: usize, name: f64) -> Markup {
        let at = |(x, y): &(f64, f64)| format!("{:.1} {:.1}", self.x(*x), self.y(*y));
        let path: Vec<String> = line.points.iter().map(at).collect();
        html! {
            g class=(format!("line-{colour}")) {
                @if path.len() > 1 { path class="line" d=(format!("M{}", path.join(" L"))) {} }
                @for (x, y) in &line.points {
                    circle cx=(px(self.x(*x))) cy=(px(self.y(*y))) r="3" {
                        title { (line.name) ": " (digits(*x)) ", " (digits(*y)) }
                    }
                }
                text class="name" x=(px(WIDTH - RIGHT + 8.0)) y=(px(name + 4.0)) { (line.name) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_within_the_ends_and_not_too_many() {
        for (values, by_ratio) in [
            ([3.0, 900.0], true),
            ([0.5, 7e6], true),
            ([13_000.0, 560_000.0], false),
            ([0.01, 32.6], false),
            ([288_000.0, 288_000.0], true),
        ] {
            let axis = Axis::around("x", values.into_iter(), by_ratio);
            let ticks = axis.ticks();
            assert!((2..=14).contains(&ticks.len()), "{values:?}: {ticks:?}");
            for tick in ticks {
                assert!((0.0..=1.0).contains(&axis.share(tick)), "{tick}");
            }
        }
    }

    #[test]
    fn names_never_stand_over_each_other() {
        let line = |y: f64| Line {
            name: "a".into(),
            points: vec![(1.0, y)],
        };
        let plot = Plot {
            label: String::new(),
            x: Axis::around("x", [1.0].into_iter(), false),
            y: Axis::around("y", [5.0, 5.1].into_iter(), false),
            lines: vec![line(5.0), line(5.1), line(5.0)],
            limits: Vec::new(),
        };
        let mut places = plot.names();
        places.sort_by(f64::total_cmp);
        assert!(
            places.windows(2).all(|pair| pair[1] - pair[0] >= 15.0),
            "{places:?}"
        );
    }
}
