//! Common functions of the tests of suites: a review with few I/Os, and its results by the names of points.

use catalogue::DriveSheet;
use lab::Lab;
use study::review::results::{Measurement, Point};
use study::review::{Review, ReviewRequest, Suite, review};

/// Returns a request for a suite on its own host.
pub(crate) fn request(drives: Vec<DriveSheet>, suite: Suite, ios: u64) -> ReviewRequest {
    ReviewRequest {
        drives,
        settings: Default::default(),
        host: catalogue::host(suite.host()).expect("built in"),
        suite,
        effort: suite.effort().with_ios(ios),
        seed: 3,
        yours: Vec::new(),
        only_yours: false,
    }
}

/// Runs the review.
pub(crate) fn run(drives: Vec<DriveSheet>, suite: Suite, ios: u64) -> Review {
    review(&request(drives, suite, ios), &Lab::new(), &|_| {}).expect("it fits")
}

/// Returns the point with this name.
fn point<'a>(review: &'a Review, name: &str) -> &'a Point {
    let points = review.chapters.iter().flat_map(|it| &it.points);
    let found = points.clone().find(|point| point.name == name);
    found.unwrap_or_else(|| {
        let names: Vec<&str> = points.map(|it| &*it.name).collect();
        panic!("no {name} among {names:?}")
    })
}

/// Returns the measurement of a drive at this point.
pub(crate) fn result<'a>(review: &'a Review, name: &str, drive: usize) -> &'a Measurement {
    point(review, name).results[drive].as_ref().expect(name)
}
