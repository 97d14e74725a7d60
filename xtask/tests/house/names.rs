//! Names of types and functions: a type is named after a thing, and a name means one thing in a crate and at most two in
//! the program; a function is named after its action or its result. Not checked: tests, fields, variants, and whether a
//! name is a good one.

use std::collections::BTreeMap;
use std::path::Path;

use super::{all_rust_files, code};

/// Particles, pronouns, participles and metaphors that are not the name of a type.
const NOT_THINGS: &[&str] = &[
    "About", "After", "Again", "All", "Any", "Around", "Asked", "Away", "Before", "Behind",
    "Below", "Between", "Beyond", "Blow", "Both", "Built", "By", "Chosen", "Done", "Down",
    "Either", "Every", "Few", "For", "Found", "From", "Given", "Gone", "Had", "Has", "Heard",
    "Held", "Here", "How", "In", "Inside", "Into", "It", "Its", "Just", "Kept", "Known", "Later",
    "Left", "Less", "Like", "Made", "Many", "More", "Most", "Much", "Near", "No", "None", "Not",
    "Nothing", "Now", "Of", "Off", "On", "Once", "Only", "Other", "Our", "Ours", "Out", "Over",
    "Own", "Past", "Pour", "Said", "Same", "Seen", "Sent", "Shown", "So", "Some", "Such", "Taken",
    "Than", "That", "Their", "Them", "Then", "There", "They", "Thing", "This", "Through", "To",
    "Together", "Told", "Under", "Until", "Up", "Upon", "Us", "We", "What", "When", "Where",
    "Which", "Who", "Whole", "Whom", "Whose", "Why", "With", "Within", "Without", "Wrong", "You",
    "Your", "Yours",
];

/// Words that end like a participle and are the name of a thing.
const THINGS: &[&str] = &[
    "Embed", "Feed", "Measured", "Need", "Seed", "Shared", "Speed", "Unified",
];

/// Words that say neither what a function does nor what it returns.
const NOT_ACTIONS: &[&str] = &[
    "about",
    "above",
    "after",
    "again",
    "among",
    "around",
    "asked",
    "at",
    "behind",
    "below",
    "beside",
    "between",
    "beyond",
    "by",
    "for",
    "give_back",
    "go_on",
    "known",
    "like",
    "of",
    "of_all",
    "of_each",
    "on",
    "ours",
    "said",
    "says",
    "tell",
    "tells",
    "than",
    "that",
    "them",
    "then",
    "they",
    "this",
    "to",
    "told",
    "under",
    "what",
    "where",
    "which",
    "who",
    "whom",
    "whose",
    "why",
    "with",
    "within",
    "wrong",
    "yours",
];

/// Files with code for tests only, besides folders `tests` and `benches`: rigs, planted bugs, a brute-force search.
const FOR_TESTS: &[&str] = &["law.rs", "planted.rs", "rack.rs", "rig.rs", "tests.rs"];

/// Names that each module may define: arguments of a subcommand, and the conventions of the library.
const REPEATED: &[&str] = &["Args", "Error", "Result"];

/// Types that keep their name for a reason.
const KEPT: &[(&str, &str)] = &[
    ("crates/lab/src/machine.rs", "Written"), // serde names it in an attribute
];

/// Returns the line, kind and name of each type and function that a text defines, except associated types.
fn definitions(text: &str) -> Vec<(usize, &str, &str)> {
    let mut found = Vec::new();
    let mut is_conditional = false;
    for (number, line) in code(text) {
        let begins = line.trim_start();
        if begins.starts_with("#[") {
            is_conditional |= begins.starts_with("#[cfg(");
            continue;
        }
        let mut words = begins
            .split(|c: char| !c.is_alphanumeric() && c != '_')
            .filter(|word| !word.is_empty())
            .skip_while(|word| {
                [
                    "pub", "crate", "super", "self", "in", "const", "async", "unsafe", "extern",
                    "C",
                ]
                .contains(word)
            });
        let (kind, name) = (
            words.next().unwrap_or_default(),
            words.next().unwrap_or_default(),
        );
        let is_associated =
            kind == "type" && begins.len() < line.len() && !begins.starts_with("pub");
        let is_type = ["struct", "enum", "trait", "union", "type"].contains(&kind);
        if is_type && !is_associated && !is_conditional {
            found.push((number, "type", name));
        } else if kind == "fn" {
            found.push((number, "fn", name));
        }
        is_conditional = false;
    }
    found
}

/// Returns what is wrong with the names of one file.
fn wrong_names(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (number, kind, name) in definitions(text) {
        let is_one_word = name.chars().filter(char::is_ascii_uppercase).count() == 1;
        let is_participle = is_one_word && name.ends_with("ed") && !THINGS.contains(&name);
        if kind == "type" && (NOT_THINGS.contains(&name) || is_participle) {
            found.push(format!("{number}: a type is a thing, and `{name}` is none"));
        }
        if kind == "fn" && NOT_ACTIONS.contains(&name) {
            found.push(format!(
                "{number}: `{name}` says neither what is done nor what is returned"
            ));
        }
    }
    found
}

/// Maximum number of types of one name in the program.
const MOST_IN_PROGRAM: usize = 2;

/// Returns the names of more than `most` types, with the places that define them.
fn defined_more_than<'a>(
    most: usize,
    files: impl Iterator<Item = (&'a Path, &'a str)>,
) -> Vec<String> {
    let mut places: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (path, text) in files {
        let types = definitions(text).into_iter().filter(|it| it.1 == "type");
        for (number, _, name) in types.filter(|it| !REPEATED.contains(&it.2)) {
            places
                .entry(name)
                .or_default()
                .push(format!("{}:{number}", path.display()));
        }
    }
    let several = places.into_iter().filter(|it| it.1.len() > most);
    several
        .map(|(name, places)| format!("`{name}`: {}", places.join(", ")))
        .collect()
}

fn is_test(path: &Path) -> bool {
    let is_folder = |name: &str| ["tests", "benches", "examples", "fuzz"].contains(&name);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.iter().any(|part| is_folder(&part.to_string_lossy())) || FOR_TESTS.contains(&&*name)
}

#[test]
fn types_are_things_and_functions_are_actions_or_results() {
    let bad = [
        "pub struct Of",
        ";\nenum Stated",
        " {}\nimpl A {\n    type Of",
        " = u8;\n    fn with",
        "() {}\n}\n",
    ]
    .concat();
    assert_eq!(wrong_names(&bad).len(), 3, "{:?}", wrong_names(&bad));
    let sources = all_rust_files()
        .into_iter()
        .filter(|(path, _)| !is_test(path));
    let found = sources.flat_map(|(path, text)| {
        let kept = |what: &String| {
            let is_kept = |it: &&(&str, &str)| {
                path == Path::new(it.0) && what.contains(&format!("`{}`", it.1))
            };
            KEPT.iter().any(|it| is_kept(&it))
        };
        let wrong = wrong_names(&text).into_iter().filter(|what| !kept(what));
        wrong
            .map(|what| format!("{}:{what}", path.display()))
            .collect::<Vec<_>>()
    });
    let found: Vec<String> = found.collect();
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

#[test]
fn a_type_name_means_one_thing_in_a_crate() {
    let (one, other) = (
        ["struct Ro", "w;"].concat(),
        ["pub enum Ro", "w {}\n"].concat(),
    );
    let pair = [(Path::new("a.rs"), &*one), (Path::new("b.rs"), &*other)];
    assert_eq!(
        defined_more_than(1, pair.into_iter()),
        ["`Row`: a.rs:1, b.rs:1"]
    );
    assert!(defined_more_than(2, pair.into_iter()).is_empty());
    let files = all_rust_files();
    let krate = |path: &Path| path.iter().take(2).collect::<std::path::PathBuf>();
    let mut crates: Vec<_> = files.iter().map(|(path, _)| krate(path)).collect();
    crates.dedup();
    let found = crates.iter().flat_map(|this| {
        let own = files
            .iter()
            .filter(|(path, _)| krate(path) == *this && !is_test(path));
        defined_more_than(1, own.map(|(path, text)| (path.as_path(), text.as_str())))
    });
    let found: Vec<String> = found.collect();
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

#[test]
fn a_type_name_means_at_most_two_things_in_the_program() {
    let files = all_rust_files();
    let own = files.iter().filter(|(path, _)| !is_test(path));
    let found = defined_more_than(
        MOST_IN_PROGRAM,
        own.map(|(path, text)| (path.as_path(), text.as_str())),
    );
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}
