//! `cargo xtask test`: everything that CI runs, step by step, with the time each took and a list of what failed.

use std::process::ExitCode;
use std::time::Instant;

use crate::fuzz;
use crate::guest;
use crate::interop;
use crate::portable;
use crate::python;
use crate::shell::{cargo, compile_once, include_page_engine, run as execute};
use crate::tools::{self, Tool};
use crate::wasm;
use crate::{soak, stores};

/// A step of the tests.
struct TestStep {
    name: &'static str,
    what: &'static str,
    needs: &'static [&'static Tool],
    run: fn(install: bool) -> Result<(), String>,
}

/// The steps in order: those that fail fast come first.
const STEPS: &[TestStep] = &[
    TestStep {
        name: "fmt",
        what: "the code is formatted",
        needs: &[],
        run: |_| execute(&mut cargo("fmt --all --check")),
    },
    TestStep {
        name: "clippy",
        what: "no lint fires, in tests and benchmarks too",
        needs: &[&tools::CC],
        run: |_| {
            execute(&mut cargo(
                "clippy --workspace --all-targets --locked -- -D warnings",
            ))
        },
    },
    TestStep {
        name: "doc",
        what: "the documentation builds and its links lead somewhere",
        needs: &[&tools::CC],
        run: |_| {
            execute(
                cargo("doc --workspace --no-deps --document-private-items --locked")
                    .env("RUSTDOCFLAGS", "-D warnings"),
            )
        },
    },
    TestStep {
        name: "test",
        what: "the tests of the whole workspace",
        needs: &[&tools::CC],
        run: test_workspace,
    },
    TestStep {
        name: "fuzz",
        what: "a short run of every fuzz target finds nothing",
        needs: &[&tools::CXX],
        // With a fixed seed. A random finding belongs to a separate fuzzing run, not to the change that is tested.
        run: |_| fuzz::fuzz(&[], 5, Some(1)),
    },
    TestStep {
        name: "python",
        what: "the wheel, its tests and its notebooks",
        needs: &[&tools::CC, &tools::PYTHON],
        run: python::test,
    },
    TestStep {
        name: "wasm",
        what: "what a page simulates with compiles for wasm32-unknown-unknown",
        needs: &[],
        run: wasm::check,
    },
];

/// The steps of `quick`, to run between two edits. No tool is installed for them.
const QUICK: &[&str] = &["fmt", "clippy", "unit"];

/// The steps of `nightly`: what takes long and seldom finds anything, once a day or before a release.
const NIGHTLY: &[&str] = &[
    "prove",
    "tiers",
    "soak",
    "stores",
    "answers",
    "long-fuzz",
    "portable",
];

/// Steps that build `drivelab` with the engine of pages, so that they share what they build.
const USES_PAGE_ENGINE: &[&str] = &["test", "soak", "stores"];

/// Names for several steps.
const GROUPS: [(&str, &[&str]); 2] = [("quick", QUICK), ("nightly", NIGHTLY)];

/// Steps that are not part of a whole run: `unit`, which `test` includes, and those of [`NIGHTLY`].
const BY_NAME: &[TestStep] = &[
    TestStep {
        name: "unit",
        what: "the tests inside the crates, without programs, clients and whole ledgers",
        needs: &[&tools::CC],
        run: |_| execute(cargo("test --workspace --locked --lib --bins").env("INSTA_UPDATE", "no")),
    },
    TestStep {
        name: "prove",
        what: "power cuts and faults of pools with many faults, at three times as many points; all planted bugs are searched",
        needs: &[&tools::CC],
        run: |_| {
            let mut prove = cargo("test --workspace --locked --test prove --test planted");
            execute(prove.env("DRIVELAB_NIGHTLY", "1"))
        },
    },
    TestStep {
        name: "tiers",
        what: "tiers of the kernel and of drivelab on served drives, with more power cuts",
        needs: &[&tools::CC],
        run: |install| {
            let mut live = cargo("test --workspace --locked --test live tiers");
            live.env("DRIVELAB_NIGHTLY", "1");
            if install {
                guest::prepare()?;
                live.env("DRIVELAB_REQUIRE_TOOLS", "1");
            }
            execute(&mut live)
        },
    },
    TestStep {
        name: "soak",
        what: "a pool, another each day, keeps what it acknowledged to databases and fio when its server is killed",
        needs: soak::NEEDS,
        run: soak::step,
    },
    TestStep {
        name: "stores",
        what: "known stores lose what their settings let them lose in crash tests, and hold otherwise",
        needs: stores::NEEDS,
        run: stores::step,
    },
    TestStep {
        name: "answers",
        what: "docs/answers.md prints what its commands print, the slow ones too",
        needs: &[&tools::CC],
        run: |_| {
            let mut verbs = cargo("test --workspace --locked --test verbs answers");
            execute(verbs.env("DRIVELAB_ANSWERS", "all"))
        },
    },
    TestStep {
        name: "long-fuzz",
        what: "a minute of every fuzz target with a new seed",
        needs: &[&tools::CXX],
        run: |_| fuzz::fuzz(&[], 60, None),
    },
    TestStep {
        name: "portable",
        what: "a static binary prints what others print; the Python package compiles for ARM",
        needs: portable::NEEDS,
        run: portable::test,
    },
];

/// Runs the tests. Where tools may be installed, a test that compares with a tool fails if the tool is missing,
/// instead of being skipped.
fn test_workspace(install: bool) -> Result<(), String> {
    // Pages that simulate are tested if the engine can be built.
    if wasm::is_there_or_comes(install)? {
        include_page_engine();
    }
    let mut tests = cargo("test --workspace --locked --no-fail-fast");
    tests.env("INSTA_UPDATE", "no");
    // Property tests too have a fixed seed here, for the reason given at `fuzz`. The step `unit` draws a new one.
    tests.env("PROPTEST_RNG_SEED", "1");
    if install {
        tools::browser_tests()?;
        guest::prepare()?;
        interop::prepare()?;
        tests
            .env("DRIVELAB_REQUIRE_TOOLS", "1")
            .env("DRIVELAB_FIO_PLOT", tools::fio_plot()?);
    }
    execute(&mut tests)
}

pub(crate) fn list() -> ExitCode {
    for step in STEPS {
        println!("{:<10} {}", step.name, step.what);
    }
    for step in BY_NAME {
        println!("{:<10} {} (only by its name)", step.name, step.what);
    }
    for (name, steps) in GROUPS {
        println!("{name:<10} {}", steps.join(", "));
    }
    ExitCode::SUCCESS
}

/// Result of a step.
enum StepEnd {
    Passed,
    Skipped(String),
    Failed(String),
}

/// Runs the chosen steps in sequence.
fn run_steps(chosen: &[&TestStep], install: bool) -> Vec<(&'static str, f64, StepEnd)> {
    let mut ends = Vec::new();
    for step in chosen {
        println!("\n== {}: {}", step.name, step.what);
        let start = Instant::now();
        let missing: Vec<&str> = step
            .needs
            .iter()
            .filter(|tool| !tool.is_there())
            .map(|tool| tool.name())
            .collect();
        let end = if missing.is_empty() {
            match (step.run)(install) {
                Ok(()) => StepEnd::Passed,
                Err(error) => StepEnd::Failed(error),
            }
        } else if install {
            StepEnd::Failed(format!("missing: {}", missing.join(", ")))
        } else {
            StepEnd::Skipped(format!("missing: {}", missing.join(", ")))
        };
        let seconds = start.elapsed().as_secs_f64();
        match &end {
            StepEnd::Passed => println!("== {} passed in {seconds:.1} s", step.name),
            StepEnd::Skipped(why) => println!("== {} SKIPPED: {why}", step.name),
            StepEnd::Failed(why) => println!("== {} FAILED after {seconds:.1} s: {why}", step.name),
        }
        ends.push((step.name, seconds, end));
    }
    ends
}

/// Returns the steps with these names in their order, those of a whole run if none is named, or the first unknown
/// name.
fn chosen<'a>(names: &[&'a str]) -> Result<Vec<&'static TestStep>, &'a str> {
    let steps = || STEPS.iter().chain(BY_NAME);
    let group = |name: &str| GROUPS.iter().find(|group| group.0 == name);
    let unknown = |name: &&str| group(name).is_none() && steps().all(|step| step.name != *name);
    if let Some(unknown) = names.iter().copied().find(unknown) {
        return Err(unknown);
    }
    let in_groups: Vec<&str> = names
        .iter()
        .filter_map(|name| group(name))
        .flat_map(|group| group.1.iter().copied())
        .collect();
    let wanted = |step: &&'static TestStep| {
        names.is_empty() && BY_NAME.iter().all(|one| one.name != step.name)
            || names.contains(&step.name)
            || in_groups.contains(&step.name)
    };
    Ok(steps().filter(wanted).collect())
}

/// Installs missing tools and runs the chosen steps; the exit code states whether all passed.
pub(crate) fn run(args: &[&str]) -> ExitCode {
    let names: Vec<&str> = args
        .iter()
        .copied()
        .filter(|&arg| arg != "--no-install")
        .collect();
    let chosen = match chosen(&names) {
        Ok(chosen) => chosen,
        Err(unknown) => {
            eprintln!("error: there is no step `{unknown}`; `cargo xtask steps` lists them");
            return ExitCode::from(2);
        }
    };
    if names.is_empty() {
        compile_once();
    }
    let wants_tools = chosen.iter().any(|step| !QUICK.contains(&step.name));
    let install = wants_tools && !args.contains(&"--no-install");
    let start = Instant::now();
    let mut installed = Ok(());
    if install {
        println!("== install: what the steps need");
        installed = tools::install(chosen.iter().flat_map(|step| step.needs.iter().copied()));
        if let Err(error) = &installed {
            println!("== install FAILED: {error}");
        }
    }
    // Before the first step that builds: if the steps differed in this, each would build the crates above `report` again.
    if chosen
        .iter()
        .any(|step| USES_PAGE_ENGINE.contains(&step.name))
        && matches!(wasm::is_there_or_comes(install), Ok(true))
    {
        include_page_engine();
    }
    let ends = run_steps(&chosen, install);
    println!("\n== summary");
    for (name, seconds, end) in &ends {
        match end {
            StepEnd::Passed => println!("{name:<10} {seconds:>7.1} s  passed"),
            StepEnd::Skipped(why) => println!("{name:<10} {seconds:>7.1} s  SKIPPED: {why}"),
            StepEnd::Failed(why) => println!("{name:<10} {seconds:>7.1} s  FAILED: {why}"),
        }
    }
    println!("{:<10} {:>7.1} s", "all", start.elapsed().as_secs_f64());
    let failed = ends
        .iter()
        .any(|(_, _, end)| matches!(end, StepEnd::Failed(_)));
    if failed || installed.is_err() {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(asked: &[&str]) -> Vec<&'static str> {
        let steps = chosen(asked).unwrap_or_else(|name| panic!("{name} is a step"));
        steps.iter().map(|step| step.name).collect()
    }

    #[test]
    fn quick_and_nightly_are_steps_and_the_whole_run_has_the_unit_tests_once() {
        assert_eq!(names(&["quick"]), ["fmt", "clippy", "unit"]);
        assert_eq!(names(&["wasm", "quick"]), ["fmt", "clippy", "wasm", "unit"]);
        assert_eq!(names(&["nightly"]), NIGHTLY);
        let all = names(&[]);
        assert!(all.contains(&"test") && !all.contains(&"unit"), "{all:?}");
        assert_eq!(all.last(), Some(&"wasm"), "{all:?}");
        assert_eq!(chosen(&["quick", "quack"]).err(), Some("quack"));
    }
}
