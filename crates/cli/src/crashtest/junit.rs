//! The report of a crash test as JUnit XML: a suite for the drive, and a case for each rule.
//!
//! A second failure of a rule is another case, `check (2)`: many readers show only one failure of a case. The text of a
//! failure ends with the command that repeats it.

use std::fmt::Write as _;

use crash::search::Class;

use super::refused::judged_nothing;
use super::shown::{FailureFacts, SearchOutcome};

/// Rules, and the classes of failures that violate them.
const RULES: [(&str, &[Class]); 4] = [
    ("opens", &[Class::Unopenable]),
    ("fsck", &[Class::Fsck]),
    ("acknowledged", &[Class::Lost]),
    (
        "check",
        &[Class::Corrupt, Class::Rule, Class::Crashed, Class::Hangs],
    ),
];

/// Case of second cuts, whatever their class.
const SECOND: &str = "second cut";

/// Returns the XML.
pub(super) fn xml(outcome: &SearchOutcome<'_>) -> String {
    let counts = outcome.report.counts;
    let name = escaped(&format!("drivelab crashtest {}", outcome.source.drive));
    let failure_facts: Vec<FailureFacts<'_>> = outcome.all_failures().collect();
    let rules = RULES.iter().flat_map(|(rule, classes)| {
        let violates =
            |it: &&FailureFacts<'_>| !it.is_second && classes.contains(&it.failure.class);
        cases(outcome, rule, failure_facts.iter().filter(violates))
    });
    let second = cases(
        outcome,
        SECOND,
        failure_facts.iter().filter(|it| it.is_second),
    );
    let cases: Vec<JunitCase> = rules.chain(second).collect();
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

/// Returns the cases of a rule: one for each failure, or one that passes.
fn cases<'a>(
    outcome: &SearchOutcome<'_>,
    rule: &str,
    failures: impl Iterator<Item = &'a FailureFacts<'a>>,
) -> Vec<JunitCase> {
    let cases = (1..).zip(failures).map(|(number, it)| JunitCase {
        name: match number {
            1 => rule.to_owned(),
            number => format!("{rule} ({number})"),
        },
        failure: Some([
            it.failure.class.word().to_owned(),
            it.title.clone(),
            text(it),
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
    let mut text = format!("{}\n", it.title);
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
