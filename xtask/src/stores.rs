//! `cargo xtask stores`: crash tests of known stores, with the settings that lose and the controls that must hold.
//!
//! The rows are those of `docs/crashtest/stores/rows.csv`: what each must show was written before it ran. A row whose
//! tool is missing is reported as skipped. Controls are also run with more transactions, and with several seeds, to
//! count how many images of them hold. Not covered: stores that need a program of their own (PostgreSQL, bbolt, etcd,
//! redb); docs/crashtest.md says how these were run.

use std::path::PathBuf;
use std::process::Command;

use crate::shell::{cargo, find, program, root, run, target};
use crate::tools;

/// Text of the options.
pub(crate) const USAGE: &str = "\
Usage: cargo xtask stores [OPTION]... [STORE]...

  --controls           only the rows that must hold, with five times as many transactions
  --budget SECONDS     time of the checks of a row [default: 60]
  --seeds N            run each row with the seeds 1 to N [default: 1]
  --binary FILE        the drivelab to test [default: builds target/debug/drivelab]

STORE is a store of docs/crashtest/stores/rows.csv, such as sqlite [default: all]. DRIVELAB_STORES_PYTHON names a Python
with the packages lmdb, plyvel and bsddb3 [default: /usr/bin/python3].

Exit code 1: a row shows something else than what is expected, or its crash test ends with an error. The other rows run.";

/// Tools of the step of `cargo xtask test nightly`.
pub(crate) const NEEDS: &[&tools::Tool] = &[&tools::CC, &tools::PYTHON];

/// A row of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
struct StoreRow {
    store: String,
    setting: String,
    options: Vec<String>,
    transactions: u32,
    pause: String,
    /// Program, or module after `python:`; empty for none.
    tool: String,
    /// Class of a failure that must be found, or `held`.
    expected: String,
    needs: String,
    /// Class that no failure may have.
    never: String,
}

/// Parsed options.
#[derive(Clone, Debug, PartialEq, Eq)]
struct StoreOptions {
    controls: bool,
    budget: u32,
    seeds: u32,
    binary: Option<PathBuf>,
    stores: Vec<String>,
}

/// Failures and number of images of a crash test.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct StoreResult {
    /// Class and needs of each failure.
    failures: Vec<(String, String)>,
    /// Number of images that the checker judged.
    judged: u64,
    /// Number and images of the failures that did not repeat; empty for none.
    flaky: String,
}

/// Results of all runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct StoreTally {
    /// Reason and report of each run that is not as expected.
    wrong: Vec<String>,
    /// Number of runs of controls that ended.
    controls: u32,
    /// Number of judged images of the controls.
    images: u64,
    /// Number of controls with failures that did not repeat.
    flaky: u32,
}

/// Runs the rows that `args` names.
pub(crate) fn command(args: &[&str]) -> Result<(), String> {
    let options = options(args)?;
    let path = root().join("docs/crashtest/stores/rows.csv");
    let text = std::fs::read_to_string(&path).map_err(|it| format!("{}: {it}", path.display()))?;
    let rows = rows(&text)?;
    let known = |name: &String| rows.iter().any(|row| row.store == *name);
    if let Some(name) = options.stores.iter().find(|it| !known(it)) {
        return Err(format!("there is no store `{name}` in {}", path.display()));
    }
    let binary = match &options.binary {
        Some(binary) => binary.clone(),
        None => {
            run(&mut cargo("build -p drivelab"))?;
            target().join("debug/drivelab")
        }
    };
    let chosen = rows.iter().filter(|row| {
        let is_named = options.stores.is_empty() || options.stores.contains(&row.store);
        is_named && (!options.controls || row.expected == "held")
    });
    let mut tally = StoreTally::default();
    for row in chosen {
        if !has(&row.tool) {
            println!("SKIPPED  {}: {} is not installed", name(row), row.tool);
            continue;
        }
        for seed in 1..=options.seeds {
            let said = crashtest_output(row, &options, &binary, seed);
            println!("{}", tally.add(row, seed, said));
        }
    }
    println!("{}", tally.summary());
    match tally.wrong.is_empty() {
        true => Ok(()),
        false => Err(tally.wrong.join("\n")),
    }
}

/// Returns the name of a row.
fn name(row: &StoreRow) -> String {
    let name = format!("{} {} {}", row.store, row.setting, row.options.join(" "));
    name.trim().to_owned()
}

impl StoreTally {
    /// Adds the report of a row's crash test, or the error with which it ended. Returns a line on it.
    fn add(&mut self, row: &StoreRow, seed: u32, said: Result<String, String>) -> String {
        let name = format!("{}, seed {seed}", name(row));
        let said = match said {
            Ok(said) => said,
            Err(why) => {
                let line = format!("ERROR       {name}: {why}");
                self.wrong.push(format!("{name}: {why}"));
                return line;
            }
        };
        let result = result(&said);
        if row.expected == "held" {
            self.controls += 1;
            self.images += result.judged;
            self.flaky += u32::from(!result.flaky.is_empty());
        }
        let differs = differs(row, &result);
        let verdict = match differs {
            None => "as expected",
            Some(_) => "WRONG",
        };
        if let Some(why) = differs {
            self.wrong.push(format!("{name}: {why}:\n{said}"));
        }
        format!("{verdict:11} {name}: {}", words(&result))
    }

    /// Returns a line on the controls.
    fn summary(&self) -> String {
        let StoreTally {
            controls, images, ..
        } = self;
        let flaky = match self.flaky {
            0 => String::new(),
            flaky => format!("; {flaky} had failures that did not repeat"),
        };
        format!("controls: {controls} runs, {images} images judged{flaky}")
    }
}

/// The step of `cargo xtask test nightly`.
pub(crate) fn step(install: bool) -> Result<(), String> {
    if install {
        crate::guest::prepare()?;
    }
    match target().join("guest/linux").is_file() {
        true => command(&["--budget", "20"]),
        false => {
            println!("SKIPPED: no kernel of the guest (`cargo xtask guest` builds it)");
            Ok(())
        }
    }
}

fn options(args: &[&str]) -> Result<StoreOptions, String> {
    let mut options = StoreOptions {
        controls: false,
        budget: 60,
        seeds: 1,
        binary: None,
        stores: Vec::new(),
    };
    let mut args = args.iter();
    while let Some(&arg) = args.next() {
        let mut number = || {
            let value = args.next().copied().unwrap_or_default();
            let number = value.parse::<u32>().ok().filter(|it| *it > 0);
            number.ok_or_else(|| format!("{arg} `{value}`: must be a whole number above 0"))
        };
        match arg {
            "--controls" => options.controls = true,
            "--budget" => options.budget = number()?,
            "--seeds" => options.seeds = number()?,
            "--binary" => {
                let file = args.next().map(PathBuf::from).filter(|it| it.is_file());
                // The program runs in another folder.
                let file = file.and_then(|it| it.canonicalize().ok());
                options.binary = Some(file.ok_or("--binary: must name a file")?);
            }
            _ if arg.starts_with('-') => {
                return Err(format!("there is no option {arg}\n\n{USAGE}"));
            }
            _ => options.stores.push(arg.to_owned()),
        }
    }
    Ok(options)
}

fn rows(text: &str) -> Result<Vec<StoreRow>, String> {
    let row = |(number, line): (usize, &str)| {
        let fields: Vec<&str> = line.split(',').collect();
        let [
            store,
            setting,
            options,
            transactions,
            pause,
            tool,
            expected,
            needs,
            never,
            _,
        ] = fields[..]
        else {
            return Err(format!("rows.csv:{}: must have 10 fields", number + 1));
        };
        let transactions = transactions.parse();
        Ok(StoreRow {
            store: store.into(),
            setting: setting.into(),
            options: options.split_whitespace().map(str::to_owned).collect(),
            transactions: transactions.map_err(|it| format!("rows.csv:{}: {it}", number + 1))?,
            pause: pause.into(),
            tool: tool.into(),
            expected: expected.into(),
            needs: needs.into(),
            never: never.into(),
        })
    };
    text.lines().enumerate().skip(1).map(row).collect()
}

/// Returns the Python that has the packages of the stores.
fn python() -> String {
    std::env::var("DRIVELAB_STORES_PYTHON").unwrap_or_else(|_| "/usr/bin/python3".into())
}

fn has(tool: &str) -> bool {
    match tool.strip_prefix("python:") {
        None => tool.is_empty() || find(tool).is_some(),
        Some(module) => {
            let mut import = Command::new(python());
            let import = import.args(["-c", &format!("import {module}")]).output();
            import.is_ok_and(|it| it.status.success())
        }
    }
}

/// Returns the output of a row's crash test.
fn crashtest_output(
    row: &StoreRow,
    options: &StoreOptions,
    binary: &PathBuf,
    seed: u32,
) -> Result<String, String> {
    let times = if options.controls { 5 } else { 1 };
    let mut command = program(binary);
    command
        .current_dir(root().join("docs/crashtest/stores"))
        .env("STORES_COUNT", (times * row.transactions).to_string())
        .env("STORES_PAUSE", &row.pause)
        .args(["crashtest", "950pro-256", "--limit", "60s"])
        .args(["--seed", &seed.to_string()])
        .args(["--budget", &format!("{}s", options.budget)])
        .arg("--guest-kernel")
        .arg(target().join("guest/linux"))
        .args(&row.options);
    let words = format!("{} {}", row.store, row.setting);
    command.args(["--check-server", &format!("{} check.py {words}", python())]);
    command.args(["--", &python(), "load.py", &row.store, &row.setting]);
    let output = command.output();
    let output = output.map_err(|it| format!("{}: {it}", binary.display()))?;
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    match output.status.code() {
        Some(0 | 3) => Ok(said),
        _ => Err(format!("{words}: {}: {said}", output.status)),
    }
}

/// Reads the report of a crash test.
fn result(said: &str) -> StoreResult {
    let mut result = StoreResult::default();
    for line in said.lines() {
        // Another cause of the same violation has a heading of its own.
        let also = line.strip_prefix("also       ");
        if let Some(failure) = line.strip_prefix("FAILED     ").or(also) {
            let class = failure.split([' ', ':']).next().unwrap_or_default();
            result.failures.push((class.to_owned(), String::new()));
        }
        if let (Some(needs), Some(last)) = (
            line.strip_prefix("  needs      "),
            result.failures.last_mut(),
        ) {
            last.1 = needs.split(':').next().unwrap_or_default().to_owned();
        }
    }
    let words: Vec<&str> = said.split_whitespace().collect();
    let before = |after: [&str; 2]| {
        let mut found = words.windows(3).filter(|it| {
            let is_last = it[2].trim_end_matches(|it: char| !it.is_alphanumeric()) == after[1];
            it[1] == after[0] && is_last
        });
        found.find_map(|it| it[0].parse::<u64>().ok()).unwrap_or(0)
    };
    result.judged = { before(["checked", "in"]) }.saturating_sub(before(["not", "judged"]));
    if let Some((_, flaky)) = said.split_once("\nflaky      ") {
        // The names of the images can need several lines, which are indented.
        let mut lines = flaky.lines();
        result.flaky = lines.next().unwrap_or_default().to_owned();
        for line in lines.take_while(|it| it.starts_with(' ')) {
            result.flaky = format!("{} {}", result.flaky, line.trim());
        }
    }
    result
}

/// Returns why the result is not the expected one.
fn differs(row: &StoreRow, result: &StoreResult) -> Option<String> {
    let has = |class: &str| result.failures.iter().any(|it| it.0 == class);
    if result.judged == 0 {
        return Some("no image was judged".into());
    }
    if row.expected == "held" {
        return (!result.failures.is_empty()).then(|| "a control fails".into());
    }
    if !row.never.is_empty() && has(&row.never) {
        return Some(format!("an image is {}", row.never));
    }
    let expected = (row.expected.clone(), row.needs.clone());
    match result.failures.contains(&expected) {
        true => None,
        false => Some(format!("no image is {}, needs {}", row.expected, row.needs)),
    }
}

fn words(result: &StoreResult) -> String {
    let failures = result.failures.iter();
    let failures: Vec<String> = failures
        .map(|it| format!("{} needs {}", it.0, it.1))
        .collect();
    let found = match failures.is_empty() {
        true => format!("held, {} images", result.judged),
        false => format!("{}; {} images", failures.join(", "), result.judged),
    };
    match result.flaky.is_empty() {
        true => found,
        false => format!("{found}; {}", result.flaky),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "\
tried      1283 images: all there are at 44 of 58 moments; 40 equal to others,
           1243 checked in 64.5 s; ended by --budget
FAILED     lost 4 (776 images)
  needs      nothing: power can fail before the program has sent the missing
             writes
also       corrupt: half a transaction (1 image)
  needs      nothing: power can fail before the program has sent them
FAILED     rule: transaction 9 is there, and 7 before it is not (215 images)
  needs      in flight: unacknowledged writes are lost
";

    fn row(expected: &str, needs: &str, never: &str) -> StoreRow {
        let text = format!("head\nleveldb,nth,--fs xfs,12,0,,{expected},{needs},{never},test");
        rows(&text).expect("a row").remove(0)
    }

    #[test]
    fn reports_are_compared_with_rows() {
        let result = result(SAID);
        let pair = |class: &str, needs: &str| (class.to_owned(), needs.to_owned());
        let failures = vec![
            pair("lost", "nothing"),
            pair("corrupt", "nothing"),
            pair("rule", "in flight"),
        ];
        assert_eq!((&result.failures, result.judged), (&failures, 1243));
        assert_eq!(differs(&row("lost", "nothing", "fsck"), &result), None);
        assert_eq!(differs(&row("rule", "in flight", ""), &result), None);
        for (expected, needs, never) in [
            ("held", "", ""),
            ("lost", "nothing", "rule"),
            ("lost", "nothing", "corrupt"),
            ("rule", "nothing", ""),
            ("corrupt", "volatile cache", ""),
        ] {
            let row = row(expected, needs, never);
            assert!(differs(&row, &result).is_some(), "{row:?}");
        }
        assert_eq!(
            differs(&row("held", "", ""), &StoreResult::default()).as_deref(),
            Some("no image was judged")
        );
    }

    #[test]
    fn a_run_with_an_error_keeps_the_results_of_the_others() {
        let held = "tried      20 images: all there are at 1 of 2 moments; 2 equal to others, 18\n           \
                    checked in 1.5 s, 3 not\n           judged\n";
        let flaky = "flaky      2 failures did not repeat: 5,\n           9\n\
                     held       no image of 20 fails\n";
        let control = row("held", "", "");
        let mut tally = StoreTally::default();
        let lines = [
            tally.add(&control, 1, Ok(held.into())),
            tally.add(
                &control,
                2,
                Err("exit code 1: the guest did not answer".into()),
            ),
            tally.add(&control, 3, Ok(format!("{held}{flaky}"))),
            tally.add(&control, 4, Ok(SAID.into())),
            tally.add(&row("lost", "nothing", ""), 5, Ok(SAID.into())),
        ];
        let begins = [
            "as expected leveldb nth --fs xfs, seed 1: held, 15 images",
            "ERROR       leveldb nth --fs xfs, seed 2: exit code 1: the guest did not answer",
            "as expected leveldb nth --fs xfs, seed 3: held, 15 images; 2 failures did not repeat: 5, 9",
            "WRONG       leveldb nth --fs xfs, seed 4: lost needs nothing, corrupt needs nothing, rule needs in flight; 1243 images",
            "as expected leveldb nth --fs xfs, seed 5: lost needs nothing, corrupt needs nothing, rule needs in flight; 1243 images",
        ];
        assert_eq!(lines, begins);
        assert_eq!(tally.wrong.len(), 2, "{tally:#?}");
        assert!(tally.wrong[0].contains("the guest did not answer"));
        assert!(tally.wrong[1].contains("a control fails"));
        assert_eq!(
            tally.summary(),
            "controls: 3 runs, 1273 images judged; 1 had failures that did not repeat"
        );
        // A checker that judges nothing shows nothing.
        let nothing = held.replace("3 not", "18 not");
        let line = tally.add(&control, 6, Ok(nothing));
        assert!(line.starts_with("WRONG "), "{line}");
        assert!(tally.wrong[2].contains("no image was judged"));
    }

    #[test]
    fn wrong_options_and_rows_are_errors() {
        for args in [
            &["--budget", "0"][..],
            &["--seeds"],
            &["--wrong"],
            &["--binary", "/no"],
        ] {
            assert!(options(args).is_err(), "{args:?}");
        }
        assert_eq!(options(&["sqlite"]).expect("right").stores, ["sqlite"]);
        assert_eq!(
            rows("head\na,b"),
            Err("rows.csv:2: must have 10 fields".into())
        );
    }

    #[test]
    fn every_row_of_the_table_is_read() {
        let path = root().join("docs/crashtest/stores/rows.csv");
        let rows = rows(&std::fs::read_to_string(path).expect("a table")).expect("rows");
        assert!(rows.iter().any(|it| it.expected == "held"));
        for row in rows {
            let is_held = row.expected == "held";
            assert_eq!(row.needs.is_empty(), is_held, "{row:?}");
        }
    }
}
