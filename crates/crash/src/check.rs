//! Judgement of images: what a check gets, what it answers, and how the answers are counted.

use std::ops::ControlFlow;

use crate::image::Fork;
use crate::lost::Lost;
use crate::moments::Walk;
use crate::name::name;

/// Kind of failure.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Class {
    /// An acknowledged operation is lost.
    Lost,
    /// Wrong or mixed data.
    Corrupt,
    /// The program does not start.
    Unopenable,
    /// Another rule is violated.
    Rule,
    /// The check itself crashed.
    Crashed,
    /// The check does not end.
    Hangs,
    /// The file system has errors after a mount.
    Fsck,
    /// The image passes, but not after a second power cut during the recovery of the check.
    SecondCut,
}

impl Class {
    /// Returns the word for reports.
    pub fn word(self) -> &'static str {
        match self {
            Class::Lost => "lost",
            Class::Corrupt => "corrupt",
            Class::Unopenable => "unopenable",
            Class::Rule => "rule",
            Class::Crashed => "crashed",
            Class::Hangs => "hangs",
            Class::Fsck => "fsck",
            Class::SecondCut => "second cut",
        }
    }
}

/// Result of checking an image.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Judgement {
    /// The image is consistent.
    Sound,
    /// The check does not apply to this image.
    Skipped,
    /// The image is inconsistent, with one line on the reason.
    Failed(Class, String),
}

/// An image that must be checked.
#[derive(Debug)]
pub struct Case<'a> {
    /// Name of the image.
    pub name: String,
    /// Contents of the image.
    pub image: Fork,
    /// Tokens that were acknowledged before the cut.
    pub acks: &'a [String],
    /// Tokens that were begun before the cut.
    pub tries: &'a [String],
}

/// Judges images.
pub trait Check {
    /// Judges these images, in order. If the search must stop, the list of judgements is shorter.
    ///
    /// # Errors
    /// The reason why they cannot be judged.
    fn check(&mut self, cases: &[Case<'_>]) -> Result<Vec<Judgement>, String>;

    /// Returns how many images are judged in one call, of one moment or of several. It must not depend on the number of
    /// threads: the order of the search does not, either. The default judges the images of one moment.
    fn batch(&self) -> Option<usize> {
        None
    }

    /// Called between checks: returns whether to continue. `share` of the planned work is done.
    fn goes_on(&mut self, _counts: &Counts, _share: f64) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// Called before each check of a reduction: returns whether a failure may be reduced further.
    fn reduces(&mut self) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Checks one image at a time.
impl<F: FnMut(&Case<'_>) -> Judgement> Check for F {
    fn check(&mut self, cases: &[Case<'_>]) -> Result<Vec<Judgement>, String> {
        Ok(cases.iter().map(self).collect())
    }
}

/// Counts of a search.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Number of moments.
    pub moments: u32,
    /// Number of moments at which all images were tried.
    pub exhausted: u32,
    /// Number of images that were made.
    pub tried: u64,
    /// Number of images equal to another with the same acknowledgements.
    pub equal: u64,
    /// Number of images that were checked.
    pub checked: u64,
    /// Number of images that the check did not judge.
    pub skipped: u64,
    /// Number of images that failed.
    pub failed: u64,
    /// Number of failures that did not repeat.
    pub flaky: u64,
}

/// Judges one image.
///
/// # Errors
/// The reason why it cannot be judged.
pub fn judge(walk: &Walk<'_>, lost: &Lost, check: &mut dyn Check) -> Result<Judgement, String> {
    judge_case(&case(walk, lost), check)
}

/// Judges one image with the acknowledgements of its case.
pub(crate) fn judge_case(case: &Case<'_>, check: &mut dyn Check) -> Result<Judgement, String> {
    let judged = check.check(std::slice::from_ref(case))?;
    let one = judged.into_iter().next();
    one.ok_or_else(|| String::from("the check judged nothing"))
}

/// Returns the image of a loss, to be checked.
pub fn case<'a>(walk: &Walk<'a>, lost: &Lost) -> Case<'a> {
    let (log, moment) = (walk.log(), walk.moment());
    Case {
        name: name(walk, lost),
        image: walk.image(lost),
        acks: &log.acks[..moment.acks],
        tries: &log.tries[..moment.tries],
    }
}
