//! Which means are not known, after all that was run for them.

use super::super::results::{Point, Review};
use text::words::listed;

/// A sentence where the means of some points are not known.
pub(crate) fn unknown_means(review: &Review) -> Vec<String> {
    let mut clauses = Vec::new();
    for (drive, facts) in review.drives.iter().enumerate() {
        let mut places = Vec::new();
        for chapter in &review.chapters {
            let points = &chapter.points;
            let open: Vec<&Point> = points
                .iter()
                .filter(|point| is_open(point, drive))
                .collect();
            if open.is_empty() {
                continue;
            }
            let worst = open
                .iter()
                .filter_map(|point| point.results[drive].as_ref()?.mean_error);
            let worst = worst.reduce(f64::max);
            let worst = worst.map_or(String::new(), |error| {
                format!(" (±{:.0} % at the worst)", error * 100.0)
            });
            places.push(format!(
                "{} of {} points of {}{worst}",
                open.len(),
                points.len(),
                chapter.id
            ));
        }
        if !places.is_empty() {
            clauses.push(format!("{}: {}", facts.label, listed(&places)));
        }
    }
    if clauses.is_empty() {
        return Vec::new();
    }
    vec![format!(
        "Means that are not known to 5 %, after four times the usual I/Os: {}.",
        clauses.join("; ")
    )]
}

fn is_open(point: &Point, drive: usize) -> bool {
    let result = point.results[drive].as_ref();
    result.is_some_and(|result| result.converged == Some(false))
}
