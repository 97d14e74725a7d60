//! `[[ratings.qos]]`: quality of service of a maker's sheet, the latency that a percentile of random 4 KiB I/Os does not
//! exceed at a queue depth. A bound sets no figure. `drivelab reproduce --against-sheet` compares the model with it.
//!
//! A bound may come from another document than the other figures of the file. It then names that document
//! (`sheet = "..."`), and its figures need no kind and no source. Not included: bounds on mixes and on other block sizes.

use model::Span;

use super::section::Section;

/// A latency that a maker's sheet guarantees for a percentile of random 4 KiB I/Os.
#[derive(Clone, PartialEq, Debug)]
pub struct QosBound {
    /// Whether the bound is on writes; otherwise on reads.
    pub writes: bool,
    /// Outstanding I/Os.
    pub depth: u32,
    /// Percentile, 50 to 99.99999.
    pub percentile: f64,
    /// The latency that the percentile does not exceed.
    pub bound: Span,
}

impl QosBound {
    /// Returns text such as `reads at QD16, p99.999`.
    pub fn words(&self) -> String {
        let direction = if self.writes { "writes" } else { "reads" };
        format!("{direction} at QD{}, p{}", self.depth, self.percentile)
    }

    /// Checks whether both bounds are on the same I/Os.
    fn is_like(&self, other: &QosBound) -> bool {
        (self.writes, self.depth) == (other.writes, other.depth)
            && self.percentile == other.percentile
    }
}

/// Reads the bounds of a `[ratings]` section.
pub(super) fn read(ratings: &mut Section<'_>) -> Vec<QosBound> {
    let mut bounds: Vec<QosBound> = Vec::new();
    for mut section in ratings.tables("qos") {
        let found = section.problems();
        section.maybe("sheet", Section::name);
        let bound = QosBound {
            writes: section.choice("direction", &[("read", false), ("write", true)]),
            depth: section.count("depth", 1..=4096u32),
            percentile: section.number("percentile", 50.0..=99.999_99),
            bound: section.span("bound", Span::from_us(1)..=Span::from_ms(10_000)),
        };
        if section.problems() > found {
            continue;
        }
        if bounds.iter().any(|known| known.is_like(&bound)) {
            let what = format!("`ratings.qos` has two bounds on {}", bound.words());
            section.problem("percentile", what, "remove one, or change its percentile");
        }
        bounds.push(bound);
    }
    bounds
}
