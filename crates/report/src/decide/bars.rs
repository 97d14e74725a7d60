//! Bars of several parts, one under the other, as SVG: there without scripts, on paper and in both themes.

use maud::{Markup, html};
use text::digits::{count, microseconds};

const WIDTH: f64 = 1040.0;
const LEFT: f64 = 330.0;
/// Room for figures on the right.
const RIGHT: f64 = 110.0;
const ROW: f64 = 30.0;
const THICK: f64 = 18.0;
const BOTTOM: f64 = 26.0;
/// Colours of the style sheet.
const COLOURS: usize = 6;
/// Characters of a name that fit on the left; the rest is in its title.
const FIT: usize = 52;

/// A bar: its name, and its parts from left to right.
pub(super) struct Bar {
    pub(super) name: String,
    pub(super) parts: Vec<(String, f64)>,
}

/// Bars of one unit.
pub(super) struct Bars {
    pub(super) label: String,
    /// `IOPS` or `µs`.
    pub(super) unit: &'static str,
    pub(super) rows: Vec<Bar>,
    /// A line across all, with its words.
    pub(super) limit: Option<(f64, String)>,
}

impl Bar {
    fn sum(&self) -> f64 {
        self.parts.iter().map(|part| part.1).sum()
    }
}

fn px(value: f64) -> String {
    format!("{value:.1}")
}

impl Bars {
    fn words(&self, value: f64) -> String {
        match self.unit {
            "µs" => microseconds(value),
            unit => format!("{} {unit}", count(value)),
        }
    }

    /// Pixels of a value.
    fn length(&self, value: f64) -> f64 {
        let limit = self.limit.as_ref().map_or(0.0, |limit| limit.0);
        let most = self.rows.iter().map(Bar::sum).fold(limit, f64::max);
        value / most.max(1e-9) * (WIDTH - LEFT - RIGHT)
    }

    /// Names of all parts, in the order in which they first stand; a part has one colour in all bars.
    fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for (name, _) in self.rows.iter().flat_map(|row| &row.parts) {
            if !names.contains(&&**name) {
                names.push(name);
            }
        }
        names
    }

    /// As SVG.
    pub(super) fn svg(&self) -> Markup {
        let height = ROW * self.rows.len() as f64 + BOTTOM;
        html! {
            svg class="chart" viewBox=(format!("0 0 {WIDTH} {height}")) role="img" aria-label=(self.label) {
                @for (index, row) in self.rows.iter().enumerate() { (self.row(row, ROW * index as f64 + 6.0)) }
                @if let Some((bound, words)) = &self.limit {
                    @let x = LEFT + self.length(*bound);
                    line class="limit" x1=(px(x)) x2=(px(x)) y1="0" y2=(px(height - BOTTOM + 4.0)) {}
                    text class="soft" x=(px(x)) y=(px(height - 8.0)) text-anchor="end" { (words) ": " (self.words(*bound)) }
                }
            }
        }
    }

    fn row(&self, row: &Bar, top: f64) -> Markup {
        let names = self.names();
        let middle = px(top + THICK - 5.0);
        let name: String = match row.name.chars().count() > FIT {
            true => row.name.chars().take(FIT - 1).chain(['…']).collect(),
            false => row.name.clone(),
        };
        let mut x = LEFT;
        html! {
            text x=(px(LEFT - 8.0)) y=(middle) text-anchor="end" { (name) title { (row.name) } }
            @for (part, value) in &row.parts {
                @let colour = names.iter().position(|one| one == part).unwrap_or(0) % COLOURS;
                @let from = x;
                @let length = self.length(*value);
                ({ x += length; "" })
                g class=(format!("line-{colour}")) {
                    rect class="bar" x=(px(from)) y=(px(top)) width=(px(length)) height=(px(THICK)) {
                        title { (part) ": " (self.words(*value)) }
                    }
                }
                @if row.parts.len() > 1 && length > 7.0 * part.chars().count() as f64 {
                    text x=(px(from + 4.0)) y=(middle) style="fill:var(--paper,#fff)" { (part) }
                }
            }
            text class="soft" x=(px(x + 6.0)) y=(middle) { (self.words(row.sum())) }
        }
    }
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
        assert!(bars.length(120.0) <= WIDTH - LEFT - RIGHT + 1e-9);
        assert_eq!(bars.names(), ["link", "medium"]);
        let svg = bars.svg().into_string();
        assert!(svg.contains("&lt;of&gt;") && !svg.contains("<of>"));
        assert_eq!(svg.matches("line-1").count(), 2);
    }
}
