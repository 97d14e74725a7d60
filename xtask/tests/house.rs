//! House rules that no lint checks, applied to all of the project's own Rust files. Each rule is also tested with a
//! text that violates it, so that no rule can become ineffective.

#[path = "house/circles.rs"]
mod circles;
#[path = "house/container.rs"]
mod container;
#[path = "house/names.rs"]
mod names;

use std::fs;
use std::path::{Path, PathBuf};

/// Maximum number of lines of a file.
const LONGEST: usize = 600;

/// Functions whose last bit differs between machines; `libm` has portable versions. (The model cannot call them: it is
/// `no_std`.)
const NOT_PORTABLE: &[&str] = &[
    ".ln()",
    ".ln_1p()",
    ".log2()",
    ".log10()",
    ".log(",
    ".exp()",
    ".exp2()",
    ".exp_m1()",
    ".powf(",
    ".powi(",
    ".sin()",
    ".cos()",
    ".tan()",
    ".cbrt()",
    ".hypot(",
];

/// Words without meaning in the name of a type.
const EMPTY_NAMES: &[&str] = &["Manager", "Handler", "Util", "Utils", "Helper", "Info"];

/// Names that the standard library uses: its prelude's, and those that every reader knows. Redefining one confuses
/// readers. (A type alias `Result` is the library's own convention.)
const TAKEN_NAMES: &[&str] = &[
    "Arc",
    "AsMut",
    "AsRef",
    "BTreeMap",
    "BTreeSet",
    "Box",
    "Clone",
    "Copy",
    "Cow",
    "Debug",
    "Default",
    "DoubleEndedIterator",
    "Drop",
    "Duration",
    "Eq",
    "ExactSizeIterator",
    "Extend",
    "File",
    "Fn",
    "FnMut",
    "FnOnce",
    "From",
    "FromIterator",
    "Future",
    "HashMap",
    "HashSet",
    "Instant",
    "Into",
    "IntoFuture",
    "IntoIterator",
    "Iterator",
    "Mutex",
    "Option",
    "Ord",
    "Ordering",
    "PartialEq",
    "PartialOrd",
    "Path",
    "PathBuf",
    "Rc",
    "RefCell",
    "Result",
    "Send",
    "Sized",
    "String",
    "Sync",
    "ToOwned",
    "ToString",
    "TryFrom",
    "TryInto",
    "Unpin",
    "Vec",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask is a folder of the project")
}

fn rust_files(folder: &Path) -> Vec<(PathBuf, String)> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut files = Vec::new();
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            if !path.ends_with("target") && !path.ends_with("node_modules") {
                files.extend(rust_files(&path));
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).expect("sources are UTF-8");
            let path = path.strip_prefix(root()).unwrap_or(&path).to_owned();
            files.push((path, text));
        }
    }
    files
}

fn all_rust_files() -> Vec<(PathBuf, String)> {
    let files: Vec<_> = ["crates", "xtask", "fuzz"]
        .into_iter()
        .flat_map(|folder| rust_files(&root().join(folder)))
        .collect();
    assert!(files.len() > 20, "only {} files found", files.len());
    files
}

/// Returns the lines of code with their numbers: without comments, and without the unit tests at the end of the file.
/// A declaration of tests in a separate file (`mod tests;`) does not end the code.
fn code(text: &str) -> Vec<(usize, &str)> {
    let mut code = Vec::new();
    let mut for_tests = false;
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split("//").next().unwrap_or_default();
        let begins = line.trim_start();
        if begins.starts_with("#[cfg(test)]") {
            for_tests = true;
            continue;
        }
        // Other attributes may be in between.
        if for_tests && !begins.is_empty() && !begins.starts_with("#[") {
            let mut words = begins
                .split_whitespace()
                .skip_while(|it| it.starts_with("pub"));
            let module = words.next() == Some("mod");
            if module && begins.contains('{') {
                break;
            }
            for_tests = false;
            // A declaration, or an import, for tests only.
            if begins.ends_with(';') {
                continue;
            }
        }
        code.push((number, line));
    }
    code
}

fn lines_with(text: &str, forbidden: &[&str]) -> Vec<String> {
    code(text)
        .into_iter()
        .flat_map(|(number, line)| {
            forbidden
                .iter()
                .filter(move |word| line.contains(**word))
                .map(move |word| format!("{number}: {word}"))
        })
        .collect()
}

/// Returns the names of types that a line of code defines or aliases, each after its kind.
fn types(text: &str) -> Vec<(usize, &str, &str)> {
    let mut found = Vec::new();
    for (number, line) in code(text) {
        let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
        while let Some(word) = words.next() {
            if matches!(word, "struct" | "enum" | "trait" | "type" | "union") {
                found.push((number, word, words.next().unwrap_or_default()));
            }
        }
    }
    found
}

fn empty_names(text: &str) -> Vec<String> {
    let empty = |name: &str| EMPTY_NAMES.iter().any(|empty| name.ends_with(empty));
    let found = types(text).into_iter().filter(|it| empty(it.2));
    found
        .map(|(number, _, name)| format!("{number}: {name}"))
        .collect()
}

fn taken_names(text: &str) -> Vec<String> {
    let taken =
        |what: &str, name: &str| TAKEN_NAMES.contains(&name) && (what, name) != ("type", "Result");
    let found = types(text).into_iter().filter(|it| taken(it.1, it.2));
    found
        .map(|(number, _, name)| format!("{number}: {name} is the standard library's"))
        .collect()
}

/// Fails with one line for each file and finding.
fn expect_none(found: impl IntoIterator<Item = (PathBuf, Vec<String>)>) {
    let lines: Vec<String> = found
        .into_iter()
        .flat_map(|(path, found)| {
            found
                .into_iter()
                .map(move |what| format!("{}:{what}", path.display()))
        })
        .collect();
    assert!(lines.is_empty(), "\n{}", lines.join("\n"));
}

#[test]
fn files_are_short() {
    expect_none(all_rust_files().into_iter().map(|(path, text)| {
        let lines = text.lines().count();
        let long = (lines > LONGEST).then(|| format!("{lines} lines, more than {LONGEST}"));
        (path, long.into_iter().collect())
    }));
}

#[test]
fn files_open_with_what_they_are() {
    let opens = |text: &str| text.starts_with("//!") || text.starts_with("#!");
    assert!(!opens("use std::fmt;\n//! late"));
    expect_none(all_rust_files().into_iter().map(|(path, text)| {
        let silent = (!opens(&text)).then(|| String::from("1: does not open with `//!`"));
        (path, silent.into_iter().collect())
    }));
}

#[test]
fn what_decides_a_simulated_result_is_portable() {
    assert_eq!(
        lines_with("let t = x.ln() + 1.0; // x.exp()", NOT_PORTABLE),
        ["1: .ln()"]
    );
    let folders = ["crates/workload/src", "crates/lab/src"];
    expect_none(
        folders
            .into_iter()
            .flat_map(|folder| rust_files(&root().join(folder)))
            .map(|(path, text)| {
                let found = lines_with(&text, NOT_PORTABLE);
                (path, found)
            }),
    );
}

#[test]
fn the_model_depends_on_arithmetic_only() {
    let used = dependencies_of("model");
    let allowed = [
        "crc",
        "crc32c",
        "libm",
        "rand_core",
        "rand_xoshiro",
        "serde",
        "strength_reduce",
    ];
    assert_eq!(used, allowed);
    assert_eq!(dependencies_of("tier"), ["libm", "model", "serde"]);
    // Simulated parts do not need `serde`, which is for users who write configurations. CRCs are for data on media,
    // which simulations do not have; the faster CRC needs the standard library, which a model must not use.
    let manifest = fs::read_to_string(root().join("crates/model/Cargo.toml")).expect("a model");
    for optional in ["crc32c", "serde"] {
        let line = format!("{optional} = {{ workspace = true, optional = true }}");
        assert!(manifest.contains(&line), "{optional} is not optional");
    }
}

/// The crates; each may use those before it. Cargo prevents cycles; this order is our own rule.
const CRATES: [&str; 14] = [
    "version",
    "model",
    "crash",
    "text",
    "statistics",
    "tier",
    "catalogue",
    "crashtest",
    "workload",
    "lab",
    "page-engine",
    "study",
    "report",
    "live",
];

/// Libraries that only the command line may use.
const OF_THE_COMMAND_LINE: [&str; 2] = ["clap", "indicatif"];

/// Returns the libraries that a manifest names for the crate itself, without those for its tests.
fn dependencies(manifest: &str) -> Vec<&str> {
    manifest
        .lines()
        .skip_while(|line| *line != "[dependencies]")
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.split(['.', ' ', '=']).next())
        .filter(|name| !name.is_empty())
        .collect()
}

fn dependencies_of(krate: &str) -> Vec<String> {
    let path = root().join("crates").join(krate).join("Cargo.toml");
    let manifest = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{krate}: {error}"));
    dependencies(&manifest)
        .into_iter()
        .map(String::from)
        .collect()
}

/// Returns the libraries of a crate that it must not use: later crates of [`CRATES`], and the command line's.
fn against_the_stream<'a>(krate: &str, used: &'a [String]) -> Vec<&'a str> {
    let own = CRATES.iter().position(|name| *name == krate);
    let later = &CRATES[own.expect("it is in the list")..];
    used.iter()
        .map(String::as_str)
        .filter(|name| later.contains(name) || OF_THE_COMMAND_LINE.contains(name))
        .collect()
}

#[test]
fn imports_run_one_way() {
    let bad = ["model", "lab", "clap"].map(String::from);
    assert_eq!(against_the_stream("workload", &bad), ["lab", "clap"]);
    for krate in CRATES {
        let used = dependencies_of(krate);
        assert_eq!(against_the_stream(krate, &used), [""; 0], "{krate}");
    }
    // The parts of a drive and its load do not depend on each other.
    assert!(
        !dependencies_of("workload")
            .iter()
            .any(|name| name == "catalogue")
    );
}

#[test]
fn names_hide_none_of_the_standard_library() {
    let bad = [
        "struct ",
        "Into<'a>(&'a u8);\npub(crate) enum ",
        "From {\ntype Result<T> = u8;\nstruct Filed;\ntype ",
        "Path = u8;",
    ]
    .concat();
    let found =
        ["1: Into", "2: From", "5: Path"].map(|it| format!("{it} is the standard library's"));
    assert_eq!(taken_names(&bad), found);
    expect_none(
        all_rust_files()
            .into_iter()
            .map(|(path, text)| (path, taken_names(&text))),
    );
}

#[test]
fn names_say_something() {
    let bad = ["pub struct Queue", "Manager;"].concat();
    assert_eq!(empty_names(&bad), ["1: QueueManager"]);
    expect_none(
        all_rust_files()
            .into_iter()
            .map(|(path, text)| (path, empty_names(&text))),
    );
}
