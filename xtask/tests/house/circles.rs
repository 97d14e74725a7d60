//! No two modules of a crate import each other, so that the layers remain visible in the imports.
//!
//! A module and one inside it are excepted: the parent names its parts, and they use its definitions. The check uses
//! the path as written (`use`, or a path from `crate`, `self` or `super` in the code). Re-exports are not followed,
//! and longer cycles are not searched for.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Path of a module from the root of its crate.
type Module = Vec<String>;

/// Known cycles, as `crate: module, module`. A cycle that has been removed must be removed here.
const KNOWN: &[&str] = &[];

/// Returns the code of a file, as one text.
fn code(text: &str) -> String {
    let lines = super::code(text).into_iter().map(|(_, line)| line);
    lines.collect::<Vec<_>>().join("\n")
}

/// Collects the modules of a crate, each with its code.
fn modules(source: &Path, folder: &Path, found: &mut BTreeMap<Module, String>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            modules(source, &path, found);
        } else if path.extension().is_some_and(|it| it == "rs") {
            let inside = path.strip_prefix(source).expect("below").with_extension("");
            let parts = inside.iter().map(|it| it.to_string_lossy().into_owned());
            let mut module: Module = parts.collect();
            if matches!(
                module.last().map(String::as_str),
                Some("mod" | "lib" | "main")
            ) {
                module.pop();
            }
            let text = fs::read_to_string(&path).expect("sources are UTF-8");
            found.insert(module, code(&text));
        }
    }
}

/// Returns the paths of a use tree.
fn expand(tree: &str, before: &[String], paths: &mut Vec<Module>) {
    let words = |text: &str| -> Module {
        let parts = text.split("::").map(|it| it.split(" as ").next());
        let parts = parts.map(|it| it.unwrap_or_default().trim().to_owned());
        parts.filter(|it| !it.is_empty()).collect()
    };
    let Some((head, rest)) = tree.split_once('{') else {
        let path = [before, &words(tree)].concat();
        return paths.push(path);
    };
    let before = [before, &words(head)].concat();
    let (mut depth, mut start) = (0, 0);
    let body = &rest[..rest.rfind('}').unwrap_or(rest.len())];
    for (at, c) in body.char_indices().chain([(body.len(), ',')]) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                if !body[start..at].trim().is_empty() {
                    expand(&body[start..at], &before, paths);
                }
                start = at + 1;
            }
            _ => {}
        }
    }
}

/// Returns all paths in a file's code.
fn paths(code: &str) -> Vec<Module> {
    let mut paths = Vec::new();
    let mut rest = String::new();
    for statement in code.split_inclusive(';') {
        let at = statement.rfind("use ").filter(|&at| {
            let before = statement[..at].trim_end();
            before.is_empty()
                || before.ends_with([')', ';', '}', ']', '{'])
                || before.ends_with("pub")
        });
        match at {
            Some(at) => {
                expand(statement[at + 4..].trim_end_matches(';'), &[], &mut paths);
                rest.push_str(&statement[..at]);
            }
            None => rest.push_str(statement),
        }
    }
    let path = |c: char| !(c.is_alphanumeric() || c == '_' || c == ':');
    for word in rest.split(path) {
        if ["crate::", "self::", "super::"]
            .iter()
            .any(|it| word.starts_with(it))
        {
            expand(word, &[], &mut paths);
        }
    }
    paths
}

/// Returns the module that a path written in `here` refers to.
fn target(path: &Module, here: &Module, all: &BTreeMap<Module, String>) -> Option<Module> {
    let mut words = path.iter().peekable();
    let mut at = here.clone();
    match words.peek().map(|it| it.as_str()) {
        Some("crate") => {
            at.clear();
            words.next();
        }
        Some("self" | "super") => {
            while let Some(word) = words.next_if(|it| *it == "self" || *it == "super") {
                if word == "super" {
                    at.pop();
                }
            }
        }
        Some(word) => {
            at.push((*word).to_owned());
            if !all.contains_key(&at) {
                return None;
            }
            words.next();
        }
        None => return None,
    }
    for word in words {
        at.push(word.clone());
        if !all.contains_key(&at) {
            at.pop();
            break;
        }
    }
    Some(at)
}

/// Returns pairs of modules that import each other.
fn circles(all: &BTreeMap<Module, String>) -> Vec<(Module, Module)> {
    let imports: BTreeSet<(Module, Module)> = all
        .iter()
        .flat_map(|(here, code)| {
            let targets = paths(code)
                .into_iter()
                .filter_map(|it| target(&it, here, all));
            targets.map(|it| (here.clone(), it)).collect::<Vec<_>>()
        })
        .collect();
    let back = |(a, b): &&(Module, Module)| imports.contains(&(b.clone(), a.clone()));
    let kin = |a: &Module, b: &Module| a.starts_with(b) || b.starts_with(a);
    let found = imports.iter().filter(back);
    found
        .filter(|(a, b)| a < b && !kin(a, b))
        .cloned()
        .collect()
}

#[test]
fn no_two_modules_import_each_other() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
    let mut found = BTreeSet::new();
    let mut read = 0;
    for entry in fs::read_dir(crates).expect("there are crates").flatten() {
        let source = entry.path().join("src");
        let mut all = BTreeMap::new();
        modules(&source, &source, &mut all);
        read += all.len();
        for (a, b) in circles(&all) {
            let name = entry.file_name();
            let (name, a, b) = (name.to_string_lossy(), a.join("::"), b.join("::"));
            found.insert(format!("{name}: {a}, {b}"));
        }
    }
    assert!(read > 100, "only {read} modules found");
    let known: BTreeSet<String> = KNOWN.iter().map(ToString::to_string).collect();
    let fresh: Vec<_> = found.difference(&known).collect();
    assert!(fresh.is_empty(), "these import each other: {fresh:#?}");
    let gone: Vec<_> = known.difference(&found).collect();
    assert!(gone.is_empty(), "gone, take them from the list: {gone:#?}");
}

#[test]
fn a_circle_is_found_however_it_is_written() {
    let module = |path: &str| path.split("::").map(str::to_owned).collect::<Module>();
    let world = |files: &[(&str, &str)]| -> BTreeMap<Module, String> {
        let files = files.iter();
        files
            .map(|(path, text)| (module(path), code(text)))
            .collect()
    };
    let pairs = |files: &[(&str, &str)]| circles(&world(files)).len();
    let back = ("b", "fn f(x: crate::a::A) {}");
    assert_eq!(
        pairs(&[("a", "use std::fmt;\npub(crate) use super::b::B;"), back]),
        1
    );
    assert_eq!(
        pairs(&[
            ("a", "use crate::{\n  c::{C, D},\n  b::{self as d},\n};"),
            back
        ]),
        1
    );
    assert_eq!(pairs(&[("a", "fn g() { super::b::f(); }"), back]), 1);
    assert_eq!(
        pairs(&[("a", "// use crate::b::B;\nuse crate::c::b;"), back]),
        0
    );
    assert_eq!(
        pairs(&[("a", "#[cfg(test)]\nmod tests { use crate::b::B; }"), back]),
        0
    );
    let tests_first = "#[cfg(test)]\nmod tests;\nuse crate::b::B;";
    assert_eq!(pairs(&[("a", tests_first), back]), 1);
    let child = ("a::part", "use super::A;");
    assert_eq!(pairs(&[("a", "mod part;\nuse part::Part;"), child]), 0);
}
