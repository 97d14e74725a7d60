//! The result of a crash test, and its failures by the rule that they violate, for all reports: text, JSON, JUnit XML and page.
//!
//! A rule is violated once, whatever the number of its causes: the first failure of a rule is the one with the fewest
//! conditions, and the others are listed with it. Failures of second cuts violate rules of their own.

use crash::search::{Class, Failure, SearchReport, grouped};
use crashtest::{drives, report};

use super::JudgeCommand;
use super::cause::FailureCause;
use super::second::SecondCuts;
use super::source::Source;

/// Rules, and the classes of failures that violate them.
pub(super) const RULES: [(&str, &[Class]); 4] = [
    ("opens", &[Class::Unopenable]),
    ("fsck", &[Class::Fsck]),
    ("acknowledged", &[Class::Lost]),
    (
        "check",
        &[
            Class::Corrupt,
            Class::Rule,
            Class::Crashed,
            Class::Hangs,
            Class::SecondCut,
        ],
    ),
];

/// Rule of second cuts, whatever the class of their failures.
pub(super) const SECOND: &str = "second cut";

/// Result of a search, with what repeats and explains it.
pub(super) struct SearchOutcome<'a> {
    pub(super) source: &'a Source,
    pub(super) report: &'a SearchReport,
    /// Explanation of each failure.
    pub(super) causes: &'a [Option<FailureCause>],
    /// The check command.
    pub(super) command: JudgeCommand<'a>,
    /// Duration of the search.
    pub(super) seconds: f64,
    /// Second cuts, if they were requested.
    pub(super) second: Option<&'a SecondCuts>,
}

/// Texts of a failure, of the search or of a second cut.
pub(super) struct FailureFacts<'a> {
    pub(super) failure: &'a Failure,
    pub(super) cause: Option<&'a FailureCause>,
    /// Name of the violated rule in reports: `check`; for another rule of the same name `check (2)`.
    pub(super) rule: String,
    /// Number of failures of the same rule before this one.
    pub(super) rank: usize,
    pub(super) title: String,
    /// Heading and text.
    pub(super) facts: Vec<(&'static str, String)>,
    /// Command that repeats it.
    pub(super) again: String,
}

impl<'a> SearchOutcome<'a> {
    /// Returns the failures, and those of second cuts, by the rule that they violate.
    pub(super) fn all_failures(&self) -> Vec<FailureFacts<'a>> {
        let own = self.failure_facts(None);
        let second = self.second.map(|it| outcomes(it, self.command));
        let second = second.into_iter().flatten();
        let second = second.flat_map(|(name, it)| it.failure_facts(Some(name)));
        let rules = grouped(own.into_iter().chain(second), |it| {
            (it.rule.clone(), it.failure.rule())
        });
        let mut names: Vec<String> = Vec::new();
        let mut all = Vec::new();
        for mut rule in rules {
            // Those of several recoveries are in the order of their images.
            rule.sort_by_key(|it| it.failure.needs.loss);
            let base = rule[0].rule.clone();
            let name = match names.iter().filter(|it| **it == base).count() {
                0 => base.clone(),
                before => format!("{base} ({})", before + 1),
            };
            names.push(base);
            for (rank, mut facts) in rule.into_iter().enumerate() {
                (facts.rule, facts.rank) = (name.clone(), rank);
                all.push(facts);
            }
        }
        all
    }

    /// Returns the failures of this log; of a recovery, with the name of its image.
    fn failure_facts(&self, image: Option<&str>) -> Vec<FailureFacts<'a>> {
        let failures = self.report.failures.iter().zip(self.causes);
        let failure_facts = failures.map(|(failure, cause)| {
            let title = report::title(failure);
            let violates = |it: &&(&'static str, &[Class])| it.1.contains(&failure.class);
            let rule = match image {
                Some(_) => SECOND,
                None => RULES.iter().find(violates).map_or("check", |it| it.0),
            };
            FailureFacts {
                failure,
                cause: cause.as_ref(),
                rule: rule.to_owned(),
                rank: 0,
                title: match image {
                    Some(image) => format!("second cut, after image {image}: {title}"),
                    None => title,
                },
                facts: facts(self.source, failure, cause.as_ref()),
                again: self.repeat_command(failure),
            }
        });
        failure_facts.collect()
    }

    /// Returns the command that repeats a failure.
    fn repeat_command(&self, failure: &Failure) -> String {
        format!(
            "drivelab crashtest {} --image {} {}",
            self.source.arguments,
            failure.name,
            self.command.option()
        )
    }

    /// Returns the number of failures that did not repeat, with those of second cuts.
    pub(super) fn flaky(&self) -> u64 {
        let second = |it: &SecondCuts| it.flaky.len() as u64 + it.sum(|it| it.report.counts.flaky);
        self.report.counts.flaky + self.second.map_or(0, second)
    }

    /// Returns the verdict; `None` if all rules hold.
    pub(super) fn verdict(&self) -> Option<String> {
        let failures = self.all_failures();
        let rules = failures.iter().filter(|it| it.rank == 0).count();
        let flaky = self.flaky();
        (rules > 0 || flaky > 0).then(|| report::verdict(rules, flaky))
    }
}

/// Returns the facts on a failure: heading and text.
fn facts(
    source: &Source,
    failure: &Failure,
    cause: Option<&FailureCause>,
) -> Vec<(&'static str, String)> {
    let mut facts = vec![("smallest", report::smallest(&source.log, failure))];
    facts.extend(cause.into_iter().flat_map(|it| it.lines(&source.log)));
    facts.push(("needs", report::needs(failure)));
    let possible = drives::possible_text(failure.needs, " (--json lists all)");
    facts.push(("possible", possible));
    if failure.class == Class::Lost && failure.moment.acks == 0 {
        let note = "nothing had been acknowledged before this power cut: does the checker demand too much?";
        facts.push(("note", note.into()));
    }
    facts
}

/// Returns the name of the image of each recovery, and its outcome.
pub(super) fn outcomes<'a>(
    cuts: &'a SecondCuts,
    command: JudgeCommand<'a>,
) -> impl Iterator<Item = (&'a str, SearchOutcome<'a>)> {
    cuts.recoveries.iter().map(move |it| {
        let outcome = SearchOutcome {
            source: &it.source,
            report: &it.report,
            causes: &it.causes,
            command,
            seconds: 0.0,
            second: None,
        };
        (&*it.name, outcome)
    })
}
