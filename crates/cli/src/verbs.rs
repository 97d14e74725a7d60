//! The verbs by what one wants of them: the first screen of `--help`, and what is said of a verb that is unknown.

use clap::Command;
use text::problem::{Problem, nearest};

use crate::failure::on_command_line;

/// What one wants, and the verbs that do it.
const GROUPS: [(&str, &[&str]); 5] = [
    (
        "Simulate",
        &["run", "replay", "review", "lab", "sweep", "act", "prove"],
    ),
    (
        "Decide",
        &["choose", "size", "max", "life", "explain", "check"],
    ),
    ("Serve", &["serve", "bench-target"]),
    (
        "Models",
        &["drives", "show", "reproduce", "measure", "fit", "refit"],
    ),
    ("Other", &["completions", "man", "help"]),
];

/// Other words for what verbs do.
const WORDS: [(&str, &str); 45] = [
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
    ("crash", "prove"),
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
    ("precondition", "measure"),
    ("snia", "measure"),
];

/// The command with its verbs in groups.
pub(crate) fn grouped(command: Command) -> Command {
    let mut list = String::new();
    for (group, verbs) in GROUPS {
        list.push_str(&format!("{group}:\n"));
        for verb in verbs {
            let about = match command.find_subcommand(verb) {
                Some(found) => found
                    .get_about()
                    .map_or_else(String::new, ToString::to_string),
                // clap's own.
                None => String::from("Print this message or the help of a verb"),
            };
            list.push_str(&format!("  {verb:<13} {about}\n"));
        }
        list.push('\n');
    }
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{list}Options:\n{{options}}{{after-help}}"
    ))
}

/// What is wrong with a first argument that is no verb, and which may have been meant.
pub(crate) fn unknown(command: &Command, first: &str) -> Option<Problem> {
    let is_verb = first == "help" || command.find_subcommand(first).is_some();
    if first.starts_with('-') || is_verb {
        return None;
    }
    let verbs = command.get_subcommands().map(Command::get_name);
    let words = WORDS.iter().map(|(word, _)| *word);
    let lower = first.to_lowercase();
    let near = nearest(&lower, verbs.chain(words));
    let verb = near.map(|near| {
        let word = WORDS.iter().find(|(word, _)| *word == near);
        word.map_or(near, |(_, verb)| verb)
    });
    let help = match verb {
        Some(verb) => {
            let found = command.find_subcommand(verb);
            let about = found.and_then(Command::get_about);
            let about = about.map_or_else(String::new, |about| format!(": {about}"));
            format!("did you mean `drivelab {verb}`{about}?")
        }
        None => String::from("`drivelab --help` lists the verbs by what one wants"),
    };
    Some(on_command_line(format!("there is no verb `{first}`"), help))
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
        let help = |first: &str| unknown(&command, first).and_then(|problem| problem.help);
        assert!(help("endurance").is_some_and(|help| help.contains("`drivelab life`")));
        assert!(help("reveiw").is_some_and(|help| help.contains("`drivelab review`")));
        assert!(help("xyzzy").is_some_and(|help| help.contains("--help")));
        assert_eq!(help("run"), None);
        assert_eq!(help("--version"), None);
    }
}
