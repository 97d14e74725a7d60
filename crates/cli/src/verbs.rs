//! The subcommands grouped by purpose: the first screen of `--help`, and the message for an unknown subcommand.

use clap::Command;
use text::problem::{Problem, nearest};

use crate::failure::on_command_line;

/// Purposes, with their subcommands.
const GROUPS: [(&str, &[&str]); 5] = [
    (
        "Simulate",
        &["run", "replay", "review", "lab", "sweep", "act", "prove"],
    ),
    (
        "Decide",
        &[
            "choose", "size", "max", "mix", "fill", "life", "odds", "explain", "check",
        ],
    ),
    ("Serve", &["serve", "crashtest", "bench-target"]),
    (
        "Models",
        &["drives", "show", "reproduce", "measure", "fit", "refit"],
    ),
    ("Other", &["completions", "man", "help"]),
];

/// Other words for the purposes of subcommands.
const WORDS: [(&str, &str); 121] = [
    ("simulate", "run"),
    ("fio", "run"),
    ("bench", "run"),
    ("benchmark", "run"),
    ("trace", "replay"),
    ("compare", "review"),
    ("report", "review"),
    ("grid", "sweep"),
    ("batch", "sweep"),
    ("parquet", "sweep"),
    ("doe", "sweep"),
    ("aerospike", "act"),
    ("crash", "crashtest"),
    ("durability", "crashtest"),
    ("fsync", "crashtest"),
    ("torn", "crashtest"),
    ("buy", "choose"),
    ("pick", "choose"),
    ("recommend", "choose"),
    ("which", "choose"),
    ("best", "choose"),
    ("slog", "size"),
    ("capacity", "size"),
    ("slo", "max"),
    ("limit", "max"),
    ("saturate", "max"),
    ("endurance", "life"),
    ("wear", "life"),
    ("tbw", "life"),
    ("dwpd", "life"),
    ("why", "explain"),
    ("slow", "explain"),
    ("diagnose", "explain"),
    ("analyse", "explain"),
    ("analyze", "explain"),
    ("etcd", "check"),
    ("postgres", "check"),
    ("kafka", "check"),
    ("vsan", "check"),
    ("zil", "check"),
    ("minimum", "check"),
    ("nbd", "serve"),
    ("nvme", "serve"),
    ("list", "drives"),
    ("info", "show"),
    ("ledger", "reproduce"),
    ("lifetime", "life"),
    ("lifespan", "life"),
    ("long", "life"),
    ("howlong", "life"),
    ("lasts", "life"),
    ("years", "life"),
    ("waf", "life"),
    ("amplification", "life"),
    ("cheapest", "choose"),
    ("price", "choose"),
    ("cost", "choose"),
    ("replace", "choose"),
    ("alternative", "choose"),
    ("like", "choose"),
    ("should", "choose"),
    ("recommendation", "choose"),
    ("large", "size"),
    ("howlarge", "size"),
    ("big", "size"),
    ("sizing", "size"),
    ("cache", "size"),
    ("buffer", "size"),
    ("log", "size"),
    ("howmuch", "max"),
    ("fast", "max"),
    ("mixed", "mix"),
    ("ratio", "mix"),
    ("rwmix", "mix"),
    ("mtbf", "odds"),
    ("afr", "odds"),
    ("mttdl", "odds"),
    ("reliability", "odds"),
    ("rebuild", "odds"),
    ("resilver", "odds"),
    ("risk", "odds"),
    ("cliff", "fill"),
    ("sustained", "fill"),
    ("pslc", "fill"),
    ("iops", "max"),
    ("heat", "explain"),
    ("throttle", "explain"),
    ("much", "max"),
    ("many", "max"),
    ("highest", "max"),
    ("knee", "max"),
    ("throughput", "max"),
    ("bottleneck", "explain"),
    ("bound", "explain"),
    ("enough", "check"),
    ("suitable", "check"),
    ("requirement", "check"),
    ("fdatasync", "check"),
    ("test", "measure"),
    ("steady", "measure"),
    ("powercut", "prove"),
    ("fault", "prove"),
    ("precondition", "measure"),
    ("snia", "measure"),
    ("latency", "run"),
    ("percentiles", "run"),
    ("power", "run"),
    ("raid", "run"),
    ("tco", "choose"),
    ("budget", "choose"),
    ("watts", "choose"),
    ("energy", "choose"),
    ("performance", "review"),
    ("speed", "max"),
    ("bandwidth", "max"),
    ("p99", "max"),
    ("temperature", "explain"),
    ("smart", "life"),
    ("zfs", "size"),
    ("verify", "reproduce"),
    ("accuracy", "reproduce"),
];

/// Returns the command with its subcommands in groups.
pub(crate) fn grouped(command: Command) -> Command {
    let mut list = String::new();
    for (group, verbs) in GROUPS {
        list.push_str(&format!("{group}:\n"));
        for verb in verbs {
            let about = match command.find_subcommand(verb) {
                Some(found) => found
                    .get_about()
                    .map_or_else(String::new, ToString::to_string),
                // clap's own subcommand.
                None => String::from("Print this message or the help of a subcommand"),
            };
            list.push_str(&format!("  {verb:<13} {about}\n"));
        }
        list.push('\n');
    }
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{list}Options:\n{{options}}{{after-help}}"
    ))
}

/// Returns the problem of a first argument that is not a subcommand, with a suggestion: for a question, by the first
/// of its words that is known; otherwise by similarity.
pub(crate) fn unknown(command: &Command, arguments: &[&str]) -> Option<Problem> {
    let first = *arguments.first()?;
    let is_verb = first == "help" || command.find_subcommand(first).is_some();
    if first.starts_with('-') || is_verb {
        return None;
    }
    let verbs = command.get_subcommands().map(Command::get_name);
    let words = WORDS.iter().map(|(word, _)| *word);
    let lower = first.to_lowercase();
    let near = || nearest(&lower, verbs.chain(words)).map(|near| leads_to(near).unwrap_or(near));
    let verb = matching_subcommand(arguments).or_else(near);
    let help = match verb {
        Some(verb) => {
            let found = command.find_subcommand(verb);
            let about = found.and_then(Command::get_about);
            let about = about.map_or_else(String::new, |about| format!(": {about}"));
            format!("did you mean `drivelab {verb}`{about}?")
        }
        None => String::from("`drivelab --help` lists the subcommands by purpose"),
    };
    Some(on_command_line(
        format!("there is no subcommand `{first}`"),
        help,
    ))
}

/// Returns the subcommand that another word stands for.
fn leads_to(word: &str) -> Option<&'static str> {
    let found = WORDS.iter().find(|(known, _)| *known == word);
    found.map(|(_, verb)| *verb)
}

/// Returns the subcommand that a question asks for, by the first of its words that is known.
fn matching_subcommand(arguments: &[&str]) -> Option<&'static str> {
    let words = arguments
        .iter()
        .flat_map(|it| it.split(|c: char| !c.is_alphanumeric()));
    let lower = words.map(str::to_lowercase);
    let found = lower.map(|word| {
        let verb = GROUPS.iter().flat_map(|(_, verbs)| *verbs);
        let verb = verb.copied().find(|verb| *verb == word);
        verb.or_else(|| leads_to(&word))
    });
    found.into_iter().flatten().next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn each_verb_is_in_one_group_and_each_word_leads_to_a_verb() {
        let command = crate::Cli::command();
        for verb in command.get_subcommands() {
            let groups = GROUPS
                .iter()
                .filter(|(_, verbs)| verbs.contains(&verb.get_name()));
            assert_eq!(groups.count(), 1, "{}", verb.get_name());
        }
        for (word, verb) in WORDS {
            assert!(command.find_subcommand(verb).is_some(), "{word}: {verb}");
            assert!(command.find_subcommand(word).is_none(), "{word}");
        }
    }

    #[test]
    fn an_unknown_verb_leads_to_the_nearest() {
        let command = crate::Cli::command();
        let help = |first: &str| unknown(&command, &[first]).and_then(|problem| problem.help);
        assert!(help("endurance").is_some_and(|help| help.contains("`drivelab life`")));
        assert!(help("reveiw").is_some_and(|help| help.contains("`drivelab review`")));
        assert!(help("xyzzy").is_some_and(|help| help.contains("--help")));
        assert_eq!(help("run"), None);
        assert_eq!(help("--version"), None);
    }

    #[test]
    fn a_question_leads_to_the_verb_that_answers_it() {
        let command = crate::Cli::command();
        for (question, verb) in [
            ("lifetime", "life"),
            ("howlong", "life"),
            ("how long does a 950pro-256 last?", "life"),
            ("how many IOPS within 1 ms", "max"),
            ("How large a slog do I need", "size"),
            ("which drive should I buy", "choose"),
            ("why is it slow", "explain"),
            ("is it good enough for etcd", "check"),
        ] {
            let quoted = unknown(&command, &[question]).and_then(|it| it.help);
            let bare: Vec<&str> = question.split(' ').collect();
            let bare = unknown(&command, &bare).and_then(|it| it.help);
            let wanted = format!("`drivelab {verb}`");
            for help in [quoted, bare] {
                assert!(
                    help.as_ref().is_some_and(|it| it.contains(&wanted)),
                    "{question}: {help:?}"
                );
            }
        }
    }
}
