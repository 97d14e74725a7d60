//! Bar charts with several parts, as SVG: they work without scripts, on paper and in both themes. On a narrow screen,
//! the name of a bar is above it.

use maud::{Markup, html};
use text::digits::{count, microseconds};

use super::screen::{LETTER, LINE, Screen, lines, px, width_of};
use super::with_unit;

/// Space for figures on the right.
const RIGHT: f64 = 92.0;
/// Space for names on the left of a wide screen.
const NAMES: f64 = 330.0;
const THICK: f64 = 18.0;
/// Number of colours in the style sheet; further parts repeat them in a weaker tone.
const COLOURS: usize = 6;

/// A bar: its name, and its parts from left to right.
pub(super) struct Bar {
    pub(super) name: String,
    pub(super) parts: Vec<(String, f64)>,
}

/// Bars of one unit.
pub(super) struct Bars {
    pub(super) label: String,
    /// Unit, as in the readings of limits.
    pub(super) unit: &'static str,
    pub(super) rows: Vec<Bar>,
    /// A line across all bars, with its label.
    pub(super) limit: Option<(f64, String)>,
}

impl Bar {
    fn sum(&self) -> f64 {
        self.parts.iter().map(|part| part.1).sum()
    }
}

/// A bar with its position on a screen.
struct PlacedBar<'a> {
    bar: &'a Bar,
    /// Lines of its name, each with its vertical position.
    name: Vec<(f64, String)>,
    /// Vertical position of the bar, from the top.
    top: f64,
}

impl Bars {
    fn words(&self, value: f64) -> String {
        match self.unit {
            "µs" => microseconds(value),
            "IOPS" => format!("{} IOPS", count(value)),
            unit => with_unit(value, unit),
        }
    }

    /// Returns the horizontal start of bars, from the left.
    fn left(screen: Screen) -> f64 {
        match screen {
            Screen::Broad => NAMES,
            Screen::Slim => 0.0,
        }
    }

    /// Returns the length of a value in pixels.
    fn length(&self, value: f64, screen: Screen) -> f64 {
        let limit = self.limit.as_ref().map_or(0.0, |limit| limit.0);
        let most = self.rows.iter().map(Bar::sum).fold(limit, f64::max);
        value / most.max(1e-9) * (screen.width() - Bars::left(screen) - RIGHT)
    }

    /// Returns the names of all parts, in the order of their first occurrence; a part has one colour in all bars.
    fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for (name, _) in self.rows.iter().flat_map(|row| &row.parts) {
            if !names.contains(&&**name) {
                names.push(name);
            }
        }
        names
    }

    /// Returns the bars with their positions, and the end of the last one.
    fn placed(&self, screen: Screen) -> (Vec<PlacedBar<'_>>, f64) {
        let room = match screen {
            Screen::Broad => NAMES - 10.0,
            Screen::Slim => screen.width(),
        };
        let mut y = 0.0;
        let mut all = Vec::new();
        for bar in &self.rows {
            let words = lines(&bar.name, (room / LETTER) as usize);
            let high = LINE * words.len() as f64;
            // Next to the bar, centred; or above it.
            let (first, top, end) = match screen {
                Screen::Broad => {
                    let high = high.max(THICK);
                    (
                        y + 6.0 + (high - LINE * words.len() as f64) / 2.0,
                        y + 6.0 + (high - THICK) / 2.0,
                        y + high + 12.0,
                    )
                }
                Screen::Slim => (y + 4.0, y + 6.0 + high, y + 6.0 + high + THICK + 6.0),
            };
            let name = words.into_iter().enumerate();
            let name = name.map(|(line, word)| (first + LINE * (line as f64 + 0.75), word));
            all.push(PlacedBar {
                bar,
                name: name.collect(),
                top,
            });
            y = end;
        }
        (all, y)
    }

    /// Returns the SVG for each screen, with a legend if there are several colours.
    pub(super) fn svg(&self) -> Markup {
        let names = self.names();
        html! {
            @for screen in Screen::BOTH { (self.drawn(screen)) }
            @if names.len() > 1 {
                ul class="parts" {
                    @for (index, name) in names.iter().enumerate() {
                        li { span class=(format!("piece {}", coloured(index))) {} (name) }
                    }
                }
            }
        }
    }

    fn drawn(&self, screen: Screen) -> Markup {
        let (rows, bottom) = self.placed(screen);
        let limit = self.limit.as_ref().map(|(bound, words)| {
            let x = Bars::left(screen) + self.length(*bound, screen);
            let words = format!("{words}: {}", self.words(*bound));
            let letters = (screen.width().min(x + RIGHT) / LETTER) as usize;
            (x, lines(&words, letters.max(20)))
        });
        let under = limit.as_ref().map_or(0, |(_, words)| words.len());
        let height = bottom + LINE * under as f64 + 8.0;
        html! {
            svg class=(screen.class()) viewBox=(format!("0 0 {} {height}", screen.width())) role="img" aria-label=(self.label) {
                @for row in &rows { (self.row(row, screen)) }
                @if let Some((x, words)) = &limit {
                    @for (from, to) in self.limit_lines(&rows, bottom, screen) {
                        line class="limit" x1=(px(*x)) x2=(px(*x)) y1=(px(from)) y2=(px(to)) {}
                    }
                    @for (line, words) in words.iter().enumerate() {
                        text class="soft" x=(px(x + RIGHT.min(screen.width() - x))) y=(px(bottom + LINE * (line as f64 + 1.0))) text-anchor="end" { (words) }
                    }
                }
                @for row in &rows { (self.value(row, screen)) }
            }
        }
    }

    /// Returns beginnings and ends of the line of the limit. On a narrow screen, names are above the bars, and the
    /// line is interrupted there.
    fn limit_lines(&self, rows: &[PlacedBar<'_>], bottom: f64, screen: Screen) -> Vec<(f64, f64)> {
        match screen {
            Screen::Broad => vec![(0.0, bottom + 2.0)],
            Screen::Slim => {
                let beside = |row: &PlacedBar<'_>| (row.top - 2.0, row.top + THICK + 2.0);
                rows.iter().map(beside).collect()
            }
        }
    }

    /// Returns the value of a bar, to the right of it.
    fn value(&self, row: &PlacedBar<'_>, screen: Screen) -> Markup {
        let x = Bars::left(screen) + self.length(row.bar.sum(), screen);
        html! {
            text class="soft value" x=(px(x + 6.0)) y=(px(row.top + THICK - 5.0)) { (self.words(row.bar.sum())) }
        }
    }

    fn row(&self, row: &PlacedBar<'_>, screen: Screen) -> Markup {
        let names = self.names();
        let middle = px(row.top + THICK - 5.0);
        let (name_x, anchor) = match screen {
            Screen::Broad => (NAMES - 8.0, "end"),
            Screen::Slim => (0.0, "start"),
        };
        let mut x = Bars::left(screen);
        html! {
            @for (y, words) in &row.name {
                text class="of" x=(px(name_x)) y=(px(*y)) text-anchor=(anchor) { (words) }
            }
            @for (part, value) in &row.bar.parts {
                @let colour = coloured(names.iter().position(|one| one == part).unwrap_or(0));
                @let from = x;
                @let length = self.length(*value, screen);
                ({ x += length; "" })
                g class=(colour) {
                    rect class="bar" x=(px(from)) y=(px(row.top)) width=(px(length)) height=(px(THICK)) {
                        title { (row.bar.name) "\n" (part) ": " (self.words(*value)) }
                    }
                }
                @if row.bar.parts.len() > 1 && length > width_of(part) + 8.0 {
                    text class="on" x=(px(from + 4.0)) y=(middle) { (part) }
                }
            }
        }
    }
}

/// Returns the class of a part's colour.
fn coloured(index: usize) -> String {
    let weaker = if index >= COLOURS { " weaker" } else { "" };
    format!("line-{}{weaker}", index % COLOURS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_bar_is_longer_than_its_room_and_a_part_has_one_colour() {
        let bars = Bars {
            label: String::new(),
            unit: "µs",
            rows: [3.0, 40.0]
                .map(|us| Bar {
                    name: "a name <of> many words ".repeat(5),
                    parts: vec![
                        (String::from("link"), us),
                        (String::from("medium"), 2.0 * us),
                    ],
                })
                .into(),
            limit: Some((60.0, String::from("rated"))),
        };
        for screen in Screen::BOTH {
            let room = screen.width() - Bars::left(screen) - RIGHT;
            assert!(bars.length(120.0, screen) <= room + 1e-9);
            let (rows, bottom) = bars.placed(screen);
            let ends = rows.windows(2).map(|pair| (&pair[0], &pair[1]));
            for (one, next) in ends {
                let last = one.name.last().expect("a line").0;
                assert!(last.max(one.top + THICK) < next.name[0].0, "{screen:?}");
            }
            assert!(rows.iter().all(|row| row.top + THICK < bottom));
            // On a narrow screen, no line of the limit crosses a name.
            let names = || rows.iter().flat_map(|row| &row.name);
            let crossed = |(from, to): &(f64, f64)| {
                names().any(|(y, _)| screen == Screen::Slim && *from < *y && *y - LETTER < *to)
            };
            let limits = bars.limit_lines(&rows, bottom, screen);
            assert!(
                !limits.is_empty() && !limits.iter().any(crossed),
                "{limits:?}"
            );
        }
        assert_eq!(bars.names(), ["link", "medium"]);
        let svg = bars.svg().into_string();
        assert!(svg.contains("&lt;of&gt;") && !svg.contains("<of>"));
        // Two bars on two screens, and the legend.
        assert_eq!(svg.matches("line-1").count(), 5);
    }
}
