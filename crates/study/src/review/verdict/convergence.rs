//! Reports means that are not known after all runs.

use super::super::results::{Point, Review, YOURS};
use super::super::seeds::KNOWN;
use text::digits::significant;
use text::words::listed;

/// Returns a sentence if the means of some points are not known, and one on the user's own jobs and traces. (The full
/// suite predicts unknown means; in other suites the points have run to the end.)
pub(crate) fn unknown_means(review: &Review) -> Vec<String> {
    let suite = clauses(review, |chapter| chapter != YOURS);
    let yours = clauses(review, |chapter| chapter == YOURS);
    let suite = (!suite.is_empty()).then(|| {
        format!("Means with an uncertainty above 5 %, which four times the usual I/Os would not reduce to 5 %: {suite}.")
    });
    let yours = (!yours.is_empty()).then(|| {
        format!("Your jobs and traces are too short for their means to be known to 5 %: {yours}.")
    });
    suite.into_iter().chain(yours).collect()
}

/// Returns, for each drive, the number of such points in each of these chapters.
fn clauses(review: &Review, of: impl Fn(&str) -> bool) -> String {
    let mut clauses = Vec::new();
    for (drive, facts) in review.drives.iter().enumerate() {
        let mut places = Vec::new();
        for chapter in review.chapters.iter().filter(|chapter| of(chapter.id)) {
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
            // A small error of a run that is too short to judge is no information.
            let worst = worst.filter(|&error| error > KNOWN);
            let worst = worst.map_or(String::new(), |error| {
                format!(" (±{} % at the worst)", significant(error * 100.0, 2))
            });
            let whose = match chapter.id {
                YOURS => String::new(),
                id => format!(" points of {id}"),
            };
            places.push(format!("{} of {}{whose}{worst}", open.len(), points.len()));
        }
        if !places.is_empty() {
            clauses.push(format!("{}: {}", facts.label, listed(&places)));
        }
    }
    clauses.join("; ")
}

fn is_open(point: &Point, drive: usize) -> bool {
    let result = point.results[drive].as_ref();
    result.is_some_and(|result| result.converged == Some(false))
}
