//! The container file is consistent with the project: compiler, folders, binary, drive. Without access to a registry
//! the file cannot be built, so the existence of the images is not checked.

use std::fs;
use std::path::Path;

/// Returns the errors of the text, one sentence each.
fn wrong(container: &str, root: &Path) -> Vec<String> {
    let read = |path: &str| fs::read_to_string(root.join(path)).unwrap_or_default();
    let mut wrong = Vec::new();
    let mut expect = |holds: bool, what: &str| {
        if !holds {
            wrong.push(what.to_owned());
        }
    };
    let lines = |word: &'static str| {
        container
            .lines()
            .filter_map(move |it| it.strip_prefix(word))
    };
    let version = read("Cargo.toml");
    let version = version
        .lines()
        .find_map(|line| line.strip_prefix("rust-version = "));
    let version = version.unwrap_or("none").trim_matches('"');
    let images: Vec<&str> = lines("FROM ").collect();
    let [builds, runs] = images[..] else {
        return vec![format!("{} images", images.len())];
    };
    let compiler = format!("docker.io/library/rust:{version}-slim-");
    let debian = builds.strip_prefix(&compiler);
    expect(debian.is_some(), "the compiler is not Cargo.toml's");
    let debian = debian.and_then(|it| it.strip_suffix(" AS build"));
    let same = debian.is_some_and(|it| runs == format!("docker.io/library/debian:{it}-slim"));
    expect(
        same,
        "the binary runs on another release than it is linked on",
    );
    let install = "cargo install --path crates/cli --locked --root /installed";
    expect(
        lines("RUN ").any(|it| it == install),
        "it installs no program",
    );
    let binary = "COPY --from=build /installed/bin/drivelab /usr/local/bin/drivelab";
    expect(container.contains(binary), "it copies no program");
    let named = read("crates/cli/Cargo.toml").contains("[[bin]]\nname = \"drivelab\"\n");
    expect(named, "crates/cli makes no drivelab");
    let engine = read("crates/report/build.rs");
    let target = lines("RUN rustup target add ").next().unwrap_or_default();
    expect(
        engine.contains(&format!("TARGET: &str = \"{target}\"")),
        "pages are made with another target",
    );
    let ignored = read(".dockerignore");
    expect(
        ignored.lines().any(|line| line == "target"),
        "what was built goes along",
    );
    let command = lines("CMD ").next().unwrap_or_default();
    let words: Vec<&str> = command.split('"').skip(1).step_by(2).collect();
    let serves = matches!(words[..], ["drivelab", "serve", _, "--nbd", ..]);
    expect(serves, "it serves nothing");
    let drive = words.get(2).copied().unwrap_or_default();
    let media = ["xpoint", "nand", "hdd"];
    let has = |medium: &&str| {
        root.join(format!("catalogue/{medium}/{drive}.toml"))
            .is_file()
    };
    expect(media.iter().any(has), "it serves no drive of the catalogue");
    wrong
}

#[test]
fn the_container_file_names_what_there_is() {
    let root = super::root();
    let container = fs::read_to_string(root.join("Containerfile")).expect("it is there");
    assert_eq!(wrong(&container, root), Vec::<String>::new());
    for (from, to, what) in [
        ("rust:1.", "rust:0.", "the compiler is not Cargo.toml's"),
        ("debian:", "debian:x", "another release"),
        ("crates/cli", "crates/cly", "installs no program"),
        ("bin/drivelab", "bin/drive", "copies no program"),
        ("wasm32-unknown-unknown", "wasm32-wasip1", "another target"),
        ("p4800x-375\", \"--nbd", "p4800x-376\", \"--nbd", "no drive"),
        ("\"serve\"", "\"server\"", "serves nothing"),
    ] {
        let broken = container.replace(from, to);
        assert_ne!(broken, container, "{from}");
        let told = wrong(&broken, root);
        assert!(told.iter().any(|it| it.contains(what)), "{from}: {told:?}");
    }
}
