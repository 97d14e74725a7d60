//! The report of a crash test as JUnit XML: a suite for the drive, and a case for each rule.
//!
//! A second violation of the same name is another case, `check (2)`: many readers show only one failure of a case. The
//! text of a failure has all causes of the violation, each with the command that repeats it. Failures that did not repeat
//! fail the case `repeatable`.

use std::fmt::Write as _;

use crash::search::grouped;

use super::outcome::{FailureFacts, RULES, SECOND, SearchOutcome};
use super::refused::judged_nothing;

/// Case of failures that did not repeat.
const REPEATABLE: &str = "repeatable";

/// Returns the XML.
pub(super) fn xml(outcome: &SearchOutcome<'_>) -> String {
    let counts = outcome.report.counts;
    let name = escaped(&format!("drivelab crashtest {}", outcome.source.drive));
    let failures = outcome.all_failures();
    let rules = RULES.iter().map(|it| it.0).chain([SECOND]);
    let mut cases: Vec<JunitCase> = rules
        .flat_map(|rule| cases(outcome, rule, &failures))
        .collect();
    cases.push(repeatable(outcome));
    let failed = cases.iter().filter(|it| it.failure.is_some()).count();
    let skipped = cases.iter().filter(|it| it.skipped.is_some()).count();
    let totals = format!(
        "tests=\"{}\" failures=\"{failed}\" errors=\"0\" skipped=\"{skipped}\" time=\"{:.3}\"",
        cases.len(),
        outcome.seconds
    );
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    // Writing to a string does not fail.
    let _ = writeln!(
        xml,
        "<testsuites {totals}>\n  <testsuite name=\"{name}\" {totals}>"
    );
    let properties = [
        ("drive", outcome.source.drive.clone()),
        ("recorded_on", outcome.source.log.head.drive.clone()),
        ("moments", counts.moments.to_string()),
        ("exhausted", counts.exhausted.to_string()),
        ("tried", counts.tried.to_string()),
        ("checked", counts.checked.to_string()),
        ("flaky", counts.flaky.to_string()),
        ("stopped", outcome.report.stopped.to_string()),
    ];
    xml.push_str("    <properties>\n");
    for (name, value) in properties {
        let value = escaped(&value);
        let _ = writeln!(xml, "      <property name=\"{name}\" value=\"{value}\"/>");
    }
    xml.push_str("    </properties>\n");
    for case in cases {
        case.write(&name, &mut xml);
    }
    xml.push_str("  </testsuite>\n</testsuites>\n");
    xml
}

/// A case of the suite.
struct JunitCase {
    name: String,
    /// Class, message and text.
    failure: Option<[String; 3]>,
    /// Reason why the rule was not tested.
    skipped: Option<&'static str>,
}

impl JunitCase {
    fn write(&self, suite: &str, xml: &mut String) {
        let (name, suite) = (escaped(&self.name), suite.replace(' ', "."));
        let _ = write!(xml, "    <testcase classname=\"{suite}\" name=\"{name}\"");
        let _ = match (&self.failure, self.skipped) {
            (Some([class, message, text]), _) => writeln!(
                xml,
                ">\n      <failure type=\"{class}\" message=\"{}\">{}</failure>\n    </testcase>",
                escaped(message),
                escaped(text)
            ),
            (None, Some(why)) => writeln!(
                xml,
                ">\n      <skipped message=\"{}\"/>\n    </testcase>",
                escaped(why)
            ),
            (None, None) => writeln!(xml, "/>"),
        };
    }
}

/// Returns the cases of a rule: one for each violation, with all its causes, or one that passes.
fn cases(outcome: &SearchOutcome<'_>, rule: &str, all: &[FailureFacts<'_>]) -> Vec<JunitCase> {
    let numbered = format!("{rule} (");
    let own = |it: &&FailureFacts<'_>| it.rule == rule || it.rule.starts_with(&numbered);
    let violations = grouped(all.iter().filter(own), |it| it.rule.clone());
    let cases = violations.iter().map(|causes| JunitCase {
        name: causes[0].rule.clone(),
        failure: Some([
            causes[0].failure.class.word().to_owned(),
            causes[0].title.clone(),
            causes
                .iter()
                .map(|it| text(it))
                .collect::<Vec<_>>()
                .join("\n\n"),
        ]),
        skipped: None,
    });
    let cases: Vec<JunitCase> = cases.collect();
    if !cases.is_empty() {
        return cases;
    }
    if judged_nothing(outcome.report.counts) && rule == "check" {
        return vec![unjudged(rule)];
    }
    let skipped = match rule {
        _ if judged_nothing(outcome.report.counts) => Some("not tested: no image was judged"),
        "acknowledged" if outcome.source.log.acks.is_empty() => {
            Some("the program has acknowledged nothing")
        }
        "fsck" if !outcome.command.fsck => Some("not tested: add --fsck"),
        SECOND if outcome.second.is_none() => Some("not tested: add --second-cuts N"),
        SECOND
            if outcome
                .second
                .is_some_and(|cuts| cuts.recoveries.is_empty()) =>
        {
            Some("not tested: no image passed whose recovery could be recorded")
        }
        _ => None,
    };
    vec![JunitCase {
        name: rule.to_owned(),
        failure: None,
        skipped,
    }]
}

/// Returns the case of failures that did not repeat: the checker is not deterministic, so nothing is shown.
fn repeatable(outcome: &SearchOutcome<'_>) -> JunitCase {
    let failure = (outcome.flaky() > 0).then(|| {
        let second = outcome.second.into_iter();
        let recoveries = second.clone().flat_map(|it| &it.recoveries);
        let names = outcome.report.flaky.iter();
        let names = names.chain(second.flat_map(|it| &it.flaky));
        let names = names.chain(recoveries.flat_map(|it| &it.report.flaky));
        let names: Vec<&str> = names.map(String::as_str).collect();
        let message = crashtest::report::verdict(0, outcome.flaky());
        let text = format!(
            "{message}: {}\nthe checker must give the same result for the same image, within --limit",
            names.join(", ")
        );
        [String::from("flaky"), message, text]
    });
    JunitCase {
        name: REPEATABLE.to_owned(),
        failure,
        skipped: None,
    }
}

/// Returns the case of a checker that has judged no image: a failure, so that no reader counts the run as passed.
fn unjudged(rule: &str) -> JunitCase {
    let message = "the checker has judged no image: all are `not judged` (exit code 77)";
    JunitCase {
        name: rule.to_owned(),
        failure: Some(["unjudged", message, message].map(String::from)),
        skipped: None,
    }
}

fn text(it: &FailureFacts<'_>) -> String {
    let also = if it.rank > 0 { "also: " } else { "" };
    let mut text = format!("{also}{}\n", it.title);
    for (heading, fact) in &it.facts {
        let _ = writeln!(text, "{heading:<10} {fact}");
    }
    let _ = write!(text, "again      {}", it.again);
    text
}

/// Returns text for XML 1.0, which has no control characters.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' | '\t' => escaped.push(letter),
            '\u{0}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            _ => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_output_of_a_checker_is_valid_xml() {
        assert_eq!(
            escaped("a<b>&\"c\"\u{1b}[0m"),
            "a&lt;b&gt;&amp;&quot;c&quot;\u{fffd}[0m"
        );
    }
}
