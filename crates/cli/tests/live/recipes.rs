//! The recipes of docs/crashtest/ for CI, pytest and `cargo test`: their commands run here, as they are in the files.
//!
//! Not run: the commands that build drivelab and its guest (the cache of CI has them here), and `apt-get`.

use std::env;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use assert_cmd::cargo::cargo_bin;
use tempfile::TempDir;

use crate::rig::{guest_file, has};

/// A copy of the recipes, with drivelab and its guest where the cache of CI has them.
struct Project(TempDir);

impl Project {
    /// Returns a copy, if this machine can run guests and has these programs.
    fn new(programs: &[&str]) -> Option<Project> {
        let kernel = guest_file("linux")?;
        has(&[&["mkfs.ext4", "losetup", "python3", "bash"], programs].concat()).then_some(())?;
        let project = Project(TempDir::new().expect("a folder"));
        let recipes = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/crashtest");
        copy(&recipes, project.path());
        let cache = project.path().join("drivelab/bin");
        fs::create_dir_all(&cache).expect("a folder");
        symlink(cargo_bin!("drivelab"), cache.join("drivelab")).expect("a link");
        symlink(kernel, cache.join("drivelab-guest-linux")).expect("a link");
        fs::create_dir(project.path().join("tmp")).expect("a folder");
        Some(project)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path().join(name)).expect("a file")
    }

    /// Runs a program; returns its exit code and its output.
    fn run(&self, program: &str, args: &[&str], variables: &[(&str, &str)]) -> (i32, String) {
        let cache = self.path().join("drivelab/bin");
        let path = env::var("PATH").expect("a path");
        let output = Command::new(program)
            .args(args)
            .current_dir(self.path())
            // python3 of the system: that of pyenv is a slow script.
            .env("PATH", format!("{}:/usr/bin:/bin:{path}", cache.display()))
            .env("TMPDIR", self.path().join("tmp"))
            .envs(variables.iter().copied())
            .output()
            .expect("it starts");
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        (output.status.code().expect("an exit code"), said)
    }

    /// Runs lines of a CI job; returns the exit code and the output.
    fn job(&self, lines: &str, variables: &[(&str, &str)]) -> (i32, String) {
        for name in ["crash.dlog", "crash.xml", "crash.html"] {
            let _ = fs::remove_file(self.path().join(name));
        }
        let home = self.path().to_str().expect("UTF-8");
        let variables = [&[("HOME", home)], variables].concat();
        self.run("bash", &["-eo", "pipefail", "-c", lines], &variables)
    }

    /// Checks that a job passes with `synchronous=EXTRA`, and finds the loss with `FULL`.
    fn finds_the_loss(&self, lines: &str) {
        // A number of images instead of a time, so that the result does not depend on the load: all crash points, and
        // some images of each.
        let set = [("DRIVE", "950pro-256"), ("BUDGET", "10min")];
        let lines = &lines.replace("--budget", "--images 150 --budget");
        assert!(lines.contains("--images 150"), "{lines}");
        let (code, said) = self.job(lines, &set);
        assert_eq!(code, 0, "{said}");
        assert!(said.contains("held       no image of "), "{said}");
        assert!(self.read("crash.xml").contains("failures=\"0\""));
        assert!(self.read("crash.html").contains("Passed: no image of"));
        let (code, said) = self.job(
            lines,
            &[&set[..], &[("ORDERS_SYNCHRONOUS", "FULL")]].concat(),
        );
        assert_eq!(code, 3, "{said}");
        let junit = self.read("crash.xml");
        assert!(junit.contains("<failure type=\"lost\""), "{junit}");
        assert!(self.path().join("crash.dlog").is_file());
    }
}

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).expect("the recipes") {
        let path = entry.expect("an entry").path();
        let into = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            fs::create_dir_all(&into).expect("a folder");
            copy(&path, &into);
        } else {
            fs::copy(&path, &into).expect("copied");
        }
    }
}

/// Returns the spaces before a line.
fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Returns the steps of a GitHub workflow that have commands: whether the cache makes the step needless, and the commands.
fn github_steps(workflow: &str) -> Vec<(bool, String)> {
    let (_, steps) = workflow.split_once("    steps:\n").expect("steps");
    let mut found = Vec::new();
    for step in steps.split("      - ").skip(1) {
        let is_cached = step.contains("if: steps.drivelab.outputs.cache-hit != 'true'");
        let mut lines = step.lines().skip_while(|it| it.trim_start() != "run: |");
        let Some(run) = lines.next() else {
            continue;
        };
        let block = lines.take_while(|it| it.is_empty() || indent(it) > indent(run));
        let block: Vec<&str> = block.map(str::trim_start).collect();
        found.push((is_cached, block.join("\n")));
    }
    found
}

/// Returns the commands of a list in a GitLab file.
fn gitlab_list(file: &str, key: &str) -> String {
    let mut lines = file.lines().skip_while(|it| *it != format!("  {key}:"));
    lines.next().expect("the key");
    let items = lines.map_while(|it| it.strip_prefix("    - "));
    items.collect::<Vec<&str>>().join("\n")
}

#[test]
fn the_github_workflow_runs() {
    let Some(project) = Project::new(&[]) else {
        return;
    };
    let steps = github_steps(&project.read("github.yml"));
    let is_cached: Vec<bool> = steps.iter().map(|it| it.0).collect();
    assert_eq!(is_cached, [true, false], "{steps:?}");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    assert!(steps[0].1.contains("--path source/crates/cli\n"));
    assert!(root.join("crates/cli/Cargo.toml").is_file());
    project.finds_the_loss(&steps[1].1);
}

#[test]
fn the_gitlab_pipeline_runs() {
    let Some(project) = Project::new(&[]) else {
        return;
    };
    let file = project.read("gitlab.yml");
    let (before, script) = (
        gitlab_list(&file, "before_script"),
        gitlab_list(&file, "script"),
    );
    assert!(before.contains("apt-get install") && script.contains("crashtest"));
    project.finds_the_loss(&format!("apt-get() {{ :; }}\n{before}\n{script}"));
}

#[test]
fn the_resident_checker_runs() {
    let Some(project) = Project::new(&[]) else {
        return;
    };
    project.finds_the_loss(
        "export PATH=\"$HOME/drivelab/bin:$PATH\"
        drivelab crashtest \"$DRIVE\" --budget \"$BUDGET\" --limit 60s \\
          --keep-log crash.dlog --junit crash.xml --html crash.html \\
          --check-server 'python3 check-server.py' -- python3 orders.py",
    );
}

#[test]
fn the_pytest_example_runs() {
    let Some(project) = Project::new(&["pytest"]) else {
        return;
    };
    let args = ["-x", "-q", "-p", "no:cacheprovider", "test_power_cuts.py"];
    let (code, said) = project.run("pytest", &args, &[]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("2 passed"), "{said}");
    let (code, said) = project.run("pytest", &args, &[("ORDERS_SYNCHRONOUS", "FULL")]);
    assert_eq!(code, 1, "{said}");
    assert!(
        said.contains("needs nothing; again: drivelab crashtest --from"),
        "{said}"
    );
}

#[test]
fn the_cargo_test_example_runs() {
    let Some(project) = Project::new(&["cargo"]) else {
        return;
    };
    // In the folder of the package: the guest sees the current folder, and no other of those for temporary files.
    let target = project.path().join("rust/target");
    let variables = [("CARGO_TARGET_DIR", target.to_str().expect("UTF-8"))];
    let args = ["test", "--offline", "--manifest-path", "rust/Cargo.toml"];
    let (code, said) = project.run("cargo", &args, &variables);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("2 passed"), "{said}");
}
