//! A chart of lines or points with limits, as SVG: it works without scripts, on paper and in both themes. Names are on
//! the right; on a narrow screen, below. If there are more lines than colours, lines are numbered from the top; a
//! number without space next to its point is omitted there.

use super::odds::years;
use super::screen::{LINE, Screen, px, short, width_of};
use super::with_unit;
use maud::{Markup, html};
use text::digits::bytes_decimal;

const TOP: f64 = 20.0;
const BOTTOM: f64 = 50.0;
/// Space for names on the right of a wide screen.
const NAMES: f64 = 190.0;
/// Number of colours in the style sheet.
pub(super) const COLOURS: usize = 6;

/// Unit of bytes.
pub(super) const BYTES: &str = "B";
/// Unit of years between two events.
pub(super) const INTERVAL: &str = "years between";
/// Maximum number of lines whose figures the spoken text contains.
const SPOKEN: usize = 8;

/// An axis: its name, the unit of its values, its ends, and whether it is logarithmic.
pub(super) struct PlotAxis {
    pub(super) name: String,
    pub(super) unit: &'static str,
    pub(super) ends: [f64; 2],
    pub(super) by_ratio: bool,
}

impl PlotAxis {
    /// Returns an axis around these values, with a margin; a linear axis begins at zero.
    pub(super) fn from_values(
        name: &str,
        unit: &'static str,
        values: impl Iterator<Item = f64>,
        by_ratio: bool,
    ) -> PlotAxis {
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
        PlotAxis {
            name: name.to_owned(),
            unit,
            ends,
            by_ratio,
        }
    }

    /// Returns a value with its unit.
    fn text(&self, value: f64) -> String {
        match self.unit {
            BYTES => bytes_decimal(value),
            INTERVAL => years(1.0 / value),
            unit => with_unit(value, unit),
        }
    }

    /// Returns the position of a value as a share of the axis length.
    fn share(&self, value: f64) -> f64 {
        let [low, high] = self.ends;
        let share = match self.by_ratio {
            true => libm::log(value.max(low) / low) / libm::log(high / low),
            false => (value - low) / (high - low),
        };
        share.clamp(0.0, 1.0)
    }

    /// Returns round values on the axis.
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
            // Between two such values, an axis would have none.
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
pub(super) struct PlotLine {
    pub(super) name: String,
    pub(super) points: Vec<(f64, f64)>,
    /// Difference from the other lines, for the tip; the points of such a line are hollow.
    pub(super) remark: Option<&'static str>,
}

/// A chart.
pub(super) struct Plot {
    pub(super) label: String,
    pub(super) x: PlotAxis,
    pub(super) y: PlotAxis,
    pub(super) lines: Vec<PlotLine>,
    /// Limits of `y`, each with its label.
    pub(super) limits: Vec<(f64, String)>,
    /// Lower limits of `x`, each with its text.
    pub(super) floors: Vec<(f64, String)>,
    /// Names of full and of hollow points, if there are both.
    pub(super) legend: Option<[String; 2]>,
}

/// A chart on a screen: positions of the axes and the names, in pixels.
struct PlotLayout<'a> {
    plot: &'a Plot,
    screen: Screen,
    left: f64,
    right: f64,
    bottom: f64,
    height: f64,
    /// Position of each line from the top, by its end.
    order: Vec<usize>,
}

/// Obstacles for further numbers, as x, y and width of each, and the ends of the space for numbers.
struct LabelObstacles {
    all: Vec<(f64, f64, f64)>,
    across: [f64; 2],
    down: [f64; 2],
}

impl LabelObstacles {
    /// Returns a free position near a point for a text, if there is one.
    fn near(&mut self, (x, y): (f64, f64), width: f64) -> Option<(f64, f64)> {
        const HIGH: f64 = 12.0;
        let free = |at: &(f64, f64)| {
            let apart = |one: &(f64, f64, f64)| {
                at.0 + width < one.0 || one.0 + one.2 < at.0 || (at.1 - one.1).abs() > HIGH
            };
            self.across[0] <= at.0
                && at.0 + width <= self.across[1]
                && self.down[0] + HIGH <= at.1
                && at.1 <= self.down[1]
                && self.all.iter().all(apart)
        };
        // At a greater distance it would seem to belong to another point.
        let rings = [6.0, 12.0].into_iter();
        let around = |by: f64| {
            [
                (x + by, y + 4.0),
                (x - by - width, y + 4.0),
                (x - width / 2.0, y - by),
                (x - width / 2.0, y + by + 9.0),
                (x + by, y - by),
                (x + by, y + by + 9.0),
                (x - by - width, y - by),
                (x - by - width, y + by + 9.0),
            ]
        };
        let place = rings.flat_map(around).find(free)?;
        self.all.push((place.0, place.1, width));
        Some(place)
    }
}

impl Plot {
    /// Returns the SVG for each screen, with a legend if there are hollow points.
    pub(super) fn svg(&self) -> Markup {
        let spoken = self.spoken();
        html! {
            @for screen in Screen::BOTH { (PlotLayout::for_screen(self, screen).svg(&spoken)) }
            @if let Some(names) = &self.legend {
                ul class="parts" {
                    @for (name, class) in names.iter().zip(["", "hollow"]) {
                        li {
                            svg class="point" width="12" height="12" aria-hidden="true" { circle class=(class) cx="6" cy="6" r="4" {} }
                            (name)
                        }
                    }
                }
            }
        }
    }

    /// Returns the text that a screen reader speaks instead of the chart.
    fn spoken(&self) -> String {
        let mut parts = vec![self.label.clone()];
        let limits = self.limits.iter().chain(&self.floors);
        let limits: Vec<&str> = limits
            .map(|(_, text)| &**text)
            .filter(|text| !text.is_empty())
            .collect();
        if !limits.is_empty() {
            parts.push(format!("Limits: {}", limits.join("; ")));
        }
        match self.lines.len() {
            0..=SPOKEN => parts.extend(self.lines.iter().filter_map(|line| self.spoken_line(line))),
            many => parts.push(format!("{many} drives; the table below has their figures")),
        }
        format!("{}.", parts.join(". "))
    }

    fn spoken_line(&self, line: &PlotLine) -> Option<String> {
        let at = |(x, y): &(f64, f64)| format!("{} at {}", self.y.text(*y), self.x.text(*x));
        let (first, last) = (line.points.first()?, line.points.last()?);
        Some(match line.points.len() {
            1 => format!("{}: {}", line.name, at(first)),
            count => format!(
                "{}: {count} points, from {} to {}",
                line.name,
                at(first),
                at(last)
            ),
        })
    }

    /// Checks whether there are too few colours to distinguish lines.
    fn is_numbered(&self) -> bool {
        self.lines.len() > COLOURS
    }
}

impl PlotLayout<'_> {
    fn for_screen(plot: &Plot, screen: Screen) -> PlotLayout<'_> {
        let widest = plot
            .y
            .ticks()
            .into_iter()
            .map(|tick| width_of(&plot.y.text(tick)));
        let widest = widest.fold(0.0, f64::max);
        let count = plot.lines.len() as f64;
        let (left, right, bottom) = match screen {
            Screen::Broad => (
                f64::max(90.0, 26.0 + widest),
                screen.width() - NAMES,
                f64::max(440.0 - BOTTOM, TOP + LINE * count),
            ),
            Screen::Slim => (26.0 + widest, screen.width() - 14.0, 300.0),
        };
        let mut drawn = PlotLayout {
            plot,
            screen,
            left,
            right,
            bottom,
            height: bottom + BOTTOM,
            order: Vec::new(),
        };
        let last = |line: &PlotLine| line.points.last().map_or(bottom, |point| drawn.y(point.1));
        let mut order: Vec<usize> = (0..plot.lines.len()).collect();
        order.sort_by(|a, b| last(&plot.lines[*a]).total_cmp(&last(&plot.lines[*b])));
        drawn.order = order;
        if screen == Screen::Slim {
            drawn.height += LINE * (count / drawn.columns() as f64).ceil() + 4.0;
        }
        drawn
    }

    /// Returns the number of columns of names on a narrow screen.
    fn columns(&self) -> usize {
        const MANY: usize = 12;
        let longest = self.plot.lines.iter().map(|line| width_of(&line.name));
        let fits = longest.fold(0.0, f64::max) < self.screen.width() / 2.0 - 40.0;
        if fits || self.plot.lines.len() > MANY {
            2
        } else {
            1
        }
    }

    fn x(&self, value: f64) -> f64 {
        self.left + self.plot.x.share(value) * (self.right - self.left)
    }

    fn y(&self, value: f64) -> f64 {
        self.bottom - self.plot.y.share(value) * (self.bottom - TOP)
    }

    /// Returns the positions of the names of the lines: next to their last points, without overlap and above the axis;
    /// on a narrow screen in columns below the axis. By line: x, y, and the number of letters that fit.
    fn names(&self) -> Vec<(f64, f64, usize)> {
        let mut places = vec![(0.0, 0.0, 0); self.order.len()];
        if self.screen == Screen::Slim {
            let columns = self.columns();
            let room = self.screen.width() / columns as f64;
            let rows = self.order.len().div_ceil(columns).max(1);
            for (place, index) in self.order.iter().enumerate() {
                let x = room * (place / rows) as f64 + 12.0;
                let y = self.bottom + BOTTOM + LINE * (place % rows) as f64 + 8.0;
                places[*index] = (x, y, (room / width_of("m")) as usize - 5);
            }
            return places;
        }
        let fit = (NAMES / width_of("m")) as usize - 4;
        let mut free = TOP;
        for index in &self.order {
            let last = self.plot.lines[*index].points.last();
            let own = last.map_or(self.bottom, |point| self.y(point.1));
            places[*index] = (self.right + 8.0, own.max(free), fit);
            free = places[*index].1 + LINE;
        }
        // From the last one upwards: names below the axis are moved up again.
        let mut most = self.bottom;
        for index in self.order.iter().rev() {
            places[*index].1 = places[*index].1.min(most);
            most = places[*index].1 - LINE;
        }
        places
    }

    /// Returns values of the lower axis whose texts do not touch, each with its position.
    fn ticks(&self) -> Vec<(f64, f64)> {
        const APART: f64 = 6.0;
        let mut free = f64::NEG_INFINITY;
        let mut all = Vec::new();
        for tick in self.plot.x.ticks() {
            let (x, half) = (self.x(tick), width_of(&self.plot.x.text(tick)) / 2.0);
            if x - half >= free && x + half <= self.screen.width() {
                free = x + half + APART;
                all.push((tick, x));
            }
        }
        all
    }

    fn svg(&self, spoken: &str) -> Markup {
        let (left, right, bottom) = (self.left, self.right, self.bottom);
        let (x, y) = (&self.plot.x, &self.plot.y);
        let mut taken = LabelObstacles {
            all: Vec::new(),
            across: [left, right],
            down: [TOP, bottom],
        };
        // Numbers must not cover any point.
        let points = self.plot.lines.iter().flat_map(|line| &line.points);
        taken
            .all
            .extend(points.map(|point| (self.x(point.0) - 3.0, self.y(point.1) + 4.0, 6.0)));
        let limits = self.plot.limits.iter();
        taken.all.extend(
            limits.map(|(bound, words)| (left + 6.0, self.y(*bound) - 5.0, width_of(words))),
        );
        let floors = self.plot.floors.iter();
        let floors: Vec<(f64, &String)> =
            floors.map(|(bound, text)| (self.x(*bound), text)).collect();
        taken.all.extend(
            floors
                .iter()
                .map(|(x, text)| (self.text_start(*x, text), bottom - 6.0, width_of(text))),
        );
        html! {
            svg class=(self.screen.class()) viewBox=(format!("0 0 {} {}", self.screen.width(), self.height)) role="img" aria-label=(spoken) {
                @for tick in y.ticks() {
                    line class="grid" x1=(px(left)) x2=(px(right)) y1=(px(self.y(tick))) y2=(px(self.y(tick))) {}
                    text class="soft" x=(px(left - 6.0)) y=(px(self.y(tick) + 4.0)) text-anchor="end" { (y.text(tick)) }
                }
                @for (tick, at) in self.ticks() {
                    line class="grid" y1=(px(TOP)) y2=(px(bottom)) x1=(px(at)) x2=(px(at)) {}
                    text class="soft" x=(px(at)) y=(px(bottom + 16.0)) text-anchor="middle" { (x.text(tick)) }
                }
                text x=(px((left + right) / 2.0)) y=(px(bottom + 38.0)) text-anchor="middle" { (x.name) }
                text transform=(format!("translate(12 {:.1}) rotate(-90)", (TOP + bottom) / 2.0)) text-anchor="middle" { (y.name) }
                @for (bound, words) in &self.plot.limits {
                    line class="limit" x1=(px(left)) x2=(px(right)) y1=(px(self.y(*bound))) y2=(px(self.y(*bound))) {}
                    text class="soft" x=(px(left + 6.0)) y=(px(self.y(*bound) - 5.0)) { (words) }
                }
                @for (x, text) in &floors {
                    line class="limit" x1=(px(*x)) x2=(px(*x)) y1=(px(TOP)) y2=(px(bottom)) {}
                    text class="soft" x=(px(self.text_start(*x, text))) y=(px(bottom - 6.0)) { (text) }
                }
                @for (index, name) in self.names().into_iter().enumerate() { (self.line(index, name, &mut taken)) }
            }
        }
    }

    /// Returns where a text at this x begins: to the right of it where there is room, else to the left.
    fn text_start(&self, x: f64, text: &str) -> f64 {
        const APART: f64 = 5.0;
        match x + APART + width_of(text) <= self.right {
            true => x + APART,
            false => x - APART - width_of(text),
        }
    }

    fn line(
        &self,
        index: usize,
        (x, y, fit): (f64, f64, usize),
        taken: &mut LabelObstacles,
    ) -> Markup {
        let line = &self.plot.lines[index];
        let at = |(x, y): &(f64, f64)| format!("{:.1} {:.1}", self.x(*x), self.y(*y));
        let path: Vec<String> = line.points.iter().map(at).collect();
        let number = self
            .order
            .iter()
            .position(|one| *one == index)
            .map_or(0, |place| place + 1);
        let last = line.points.last().filter(|_| self.plot.is_numbered());
        let marked = last
            .and_then(|(x, y)| taken.near((self.x(*x), self.y(*y)), width_of(&number.to_string())));
        let name = match self.plot.is_numbered() {
            true => short(&format!("{number} {}", line.name), fit),
            false => short(&line.name, fit),
        };
        let (mark, radius) = match line.remark {
            Some(_) => ("hollow", "4"),
            None => ("full", "3"),
        };
        html! {
            g class=(format!("line-{}", index % COLOURS)) {
                @if path.len() > 1 { path class="line" d=(format!("M{}", path.join(" L"))) {} }
                @for (x, y) in &line.points {
                    circle class=(mark) cx=(px(self.x(*x))) cy=(px(self.y(*y))) r=(radius) {
                        title {
                            (line.name) "\n" (self.plot.x.name) ": " (self.plot.x.text(*x)) "\n" (self.plot.y.name) ": " (self.plot.y.text(*y))
                            @if let Some(remark) = line.remark { "\n" (remark) }
                        }
                    }
                }
                @if let Some((x, y)) = marked { text class="number" x=(px(x)) y=(px(y)) { (number) } }
                @if self.screen == Screen::Slim || line.remark.is_some() {
                    circle class={ "named " (mark) } cx=(px(x - 7.0)) cy=(px(y)) r="4" {}
                }
                text class="name" x=(px(x)) y=(px(y + 4.0)) { (name) title { (line.name) } }
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
            let axis = PlotAxis::from_values("x", "", values.into_iter(), by_ratio);
            let ticks = axis.ticks();
            assert!((2..=14).contains(&ticks.len()), "{values:?}: {ticks:?}");
            for tick in ticks {
                assert!((0.0..=1.0).contains(&axis.share(tick)), "{tick}");
            }
        }
    }

    fn with_lines(count: usize, name: &str) -> Plot {
        let line = |index: usize| PlotLine {
            name: format!("{name}-{index}"),
            points: vec![(1.0, 5.0 + 0.01 * (index % 3) as f64)],
            remark: None,
        };
        Plot {
            label: String::new(),
            x: PlotAxis::from_values("x", "", [1.0].into_iter(), false),
            y: PlotAxis::from_values("y", "us", [5.0, 5.1].into_iter(), false),
            lines: (0..count).map(line).collect(),
            limits: Vec::new(),
            floors: vec![(1.0, String::from("iops > 50k"))],
            legend: None,
        }
    }

    #[test]
    fn names_never_stand_over_each_other_nor_outside() {
        for (count, name) in [(1, "a"), (3, "a"), (60, "a"), (60, "mirror(2*p4801x-100)")] {
            let plot = with_lines(count, name);
            for screen in Screen::BOTH {
                let drawn = PlotLayout::for_screen(&plot, screen);
                let mut places = drawn.names();
                places.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
                for pair in places.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
                    assert!(pair[1].1 - pair[0].1 >= LINE - 1e-9, "{pair:?}");
                }
                for (x, y, fit) in places {
                    assert!((0.0..=drawn.height).contains(&y), "{count} {screen:?}: {y}");
                    let end = x + width_of("m") * fit as f64;
                    assert!(fit > 10 && end <= screen.width(), "{screen:?}: {end}");
                }
            }
        }
    }

    #[test]
    fn lines_beyond_the_colours_have_numbers_where_there_is_room() {
        let drawn = |count, apart: f64| {
            let mut plot = with_lines(count, "a");
            for (index, line) in plot.lines.iter_mut().enumerate() {
                line.points[0] = (1.0 + index as f64, 5.0 + apart * index as f64);
            }
            plot.x = PlotAxis::from_values("x", "", (0..count).map(|x| 1.0 + x as f64), false);
            plot.y =
                PlotAxis::from_values("y", "", (0..count).map(|y| 5.0 + apart * y as f64), false);
            plot.svg().into_string()
        };
        let numbers = |svg: String| svg.matches("class=\"number\"").count();
        assert_eq!(numbers(drawn(6, 1.0)), 0);
        assert!(drawn(20, 1.0).contains(">20 a-"));
        assert_eq!(numbers(drawn(20, 1.0)), 2 * 20);
        // All at one place: about eight fit around it.
        let crowded = numbers(with_lines(60, "a").svg().into_string());
        assert!((2 * 4..2 * 30).contains(&crowded), "{crowded}");
    }

    #[test]
    fn ticks_tips_and_spoken_text_have_units() {
        let mut plot = with_lines(2, "a");
        plot.lines[1].remark = Some("short run");
        plot.legend = Some(["full run", "short run"].map(String::from));
        let svg = plot.svg().into_string();
        assert!(svg.contains(">2 µs</text>"), "{svg}");
        assert!(svg.contains("<title>a-0\nx: 1\ny: 5 µs</title>"), "{svg}");
        assert!(svg.contains("<title>a-1\nx: 1\ny: 5.01 µs\nshort run</title>"));
        // A hollow point and the mark of its name, on both screens, and the legend.
        assert_eq!(svg.matches("hollow").count(), 2 * 2 + 1);
        assert_eq!(
            plot.spoken(),
            ". Limits: iops > 50k. a-0: 5 µs at 1. a-1: 5.01 µs at 1."
        );
        let many = with_lines(SPOKEN + 1, "a").spoken();
        assert!(
            many.ends_with("9 drives; the table below has their figures."),
            "{many}"
        );
    }
}
