//! Recipes repeated on a small ledger: a correct value is not searched for, a wrong one is found, and no fit depends
//! on another.

use study::fit::{self, RecipeFilter, Refit};
use study::ledger;

const LEDGER: &str = r#"
[common]
state = "fresh"
host = "xeon-2017"
fio = ["--ioengine=libaio", "--direct=1"]

[measure.reads]
drive = "ram-disk"
fio = ["--rw=randread", "--bs=4k"]

[measure.large]
drive = "ram-disk"
fio = ["--rw=read", "--bs=1m"]

[rows]
table = '''
id     | published | unit | is     | evidence  | metric | what | conditions
S0-001 | 8         | us   |        | predicted | reads.read.mean_us | reads, at a command of 4 us and the rate there is | 4 KiB random
S0-002 | at least  | MB/s | > 1000 | predicted | large.read.mb_s | large reads | 1 MiB
'''
"#;

const RECIPES: &str = r#"
[[fit]]
files = "ram/ram-disk"
figures = "ram.per_command"
from = "100 ns"
to = "20 us"
bounds = "from a lookup to a system call of its own"
rows = "S0-001"

[[fit]]
files = "ram/ram-disk"
figures = "ram.rate"
from = "100 MB/s"
to = "20 GB/s"
take = "smallest"
bounds = "from a slow bus to several channels"
rows = "S0-002"
"#;

fn made(choice: &RecipeFilter) -> Vec<Refit> {
    let file = ledger::file("small.toml", LEDGER);
    let files = [file.unwrap_or_else(|problems| panic!("{}", problems.render(false)))];
    let recipes = fit::read_recipes("small fits", RECIPES).expect("two recipes");
    fit::ledger(&files, &recipes, choice, &|_| {}, &mut |_| {}).expect("they run")
}

fn number(words: &str) -> f64 {
    let number = words.split(' ').next().expect("a number");
    number.parse().expect("a number")
}

#[test]
fn what_is_off_is_found_and_its_interval_told() {
    let refits = made(&RecipeFilter::default());
    let [command, rate] = &refits[..] else {
        panic!("{refits:?}")
    };
    assert!(!command.stands, "{command:?}");
    let mean = command.rows[0].after;
    assert!((mean / 8.0 - 1.0).abs() < 0.005, "{mean}");
    // One tolerance is 5 % of 8 us: 0.4 us in either direction for a part that is not scaled.
    let [low, high] = [0, 1].map(|end: usize| number(&command.interval[end]));
    let fitted = number(&command.figures[0].fitted);
    for (end, wanted) in [(low, fitted - 0.4), (high, fitted + 0.4)] {
        let end = if end > 100.0 { end / 1000.0 } else { end };
        assert!((end / wanted - 1.0).abs() < 0.02, "{command:?}");
    }
    assert!(rate.stands, "{rate:?}");
    assert_eq!(rate.open, (false, true));
    assert!(rate.rows[0].after > 1000.0, "{rate:?}");
}

#[test]
fn a_fit_alone_is_the_fit_among_all() {
    let all = made(&RecipeFilter::default());
    let alone = made(&RecipeFilter {
        free: vec!["ram.rate".into()],
        ..RecipeFilter::default()
    });
    assert_eq!(alone.len(), 1);
    assert_eq!(format!("{:?}", alone[0]), format!("{:?}", all[1]));
}

#[test]
fn a_check_searches_only_for_what_is_off() {
    let refits = made(&RecipeFilter {
        check: true,
        files: vec!["ram/ram-disk".into()],
        ..RecipeFilter::default()
    });
    assert!(!refits[0].stands);
    assert!(refits[0].tried > 9, "{refits:?}");
    assert!(refits[1].stands);
    assert_eq!((refits[1].tried, refits[1].interval.len()), (1, 0));
}

#[test]
fn a_file_without_fits_is_named() {
    let recipes = fit::recipes().expect("built in");
    let choice = RecipeFilter {
        files: vec!["host/xeon-2071".into()],
        ..RecipeFilter::default()
    };
    let refused = fit::ledger(&[], &recipes, &choice, &|_| {}, &mut |_| {});
    let problems = refused.expect_err("there is no such file").to_string();
    assert!(problems.contains("host/xeon-2071"), "{problems}");
}

/// A figure of the drives inside a RAID-0: the row is about the RAID, and the recipe still finds the figure.
#[test]
fn a_recipe_sees_through_a_raid() {
    const LEDGER: &str = r#"
[common]
state = "fresh"
host = "xeon-2017"
fio = ["--ioengine=libaio", "--direct=1"]

[measure.writes]
drive = "p3608-1600"
fio = ["--rw=randwrite", "--bs=4k", "--iodepth=1"]
ios = 300

[rows]
table = '''
id     | published | unit | evidence  | metric | what | conditions
S0-001 | PUBLISHED | us   | predicted | writes.write.mean_us | writes of two controllers, at another delay of the link | 4 KiB random
'''
"#;
    const RECIPES: &str = r#"
[[fit]]
files = "nand/p3608-800"
figures = "nand.link.delay"
from = "100 ns"
to = "50 us"
bounds = "from a wire to a slow switch"
rows = "S0-001"
"#;
    let mean = |set: &[catalogue::Change]| {
        let text = LEDGER.replace("PUBLISHED", "1");
        let mut file = ledger::file("raid.toml", &text).expect("it is right");
        file.measurements[0].set = set.to_vec();
        let all = ledger::Selection::default();
        let run = ledger::reproduce(&[file], &all, &lab::to_the_end).expect("it runs");
        run.results[0].model.as_ref().expect("a mean").value
    };
    let change = |key: &str, value: &str| vec![(key.to_owned(), value.to_owned())];
    let slow = mean(&change("members.p3608-800.nand.link.delay", "9 us"));
    assert!(slow > mean(&[]) + 5.0, "{slow}");
    let text = LEDGER.replace("PUBLISHED", &slow.to_string());
    let files = [ledger::file("raid.toml", &text).expect("it is right")];
    let recipes = fit::read_recipes("raid fits", RECIPES).expect("a recipe");
    let refits = fit::ledger(
        &files,
        &recipes,
        &RecipeFilter::default(),
        &|_| {},
        &mut |_| {},
    );
    let fitted = refits.expect("they run")[0].figures[0].fitted.clone();
    assert!((number(&fitted) / 9.0 - 1.0).abs() < 0.02, "{fitted}");
}

#[test]
fn a_change_of_what_is_no_member_is_refused() {
    for (drive, key) in [
        ("p3608-1600", "members.p3700-1600.nand.link.delay"),
        ("p3608-1600", "members.p3608-800.nand.link.delays"),
        ("p3700-1600", "members.p3608-800.nand.link.delay"),
    ] {
        let refused = catalogue::drive_with(drive, &[(key.to_owned(), "9 us".to_owned())]);
        let problems = refused.expect_err(key).to_string();
        assert!(problems.contains("link.delay"), "{problems}");
    }
}

/// Large reads of a RAM disk depend on its rate, small ones hardly do, independent of the published values.
#[test]
fn how_much_rows_depend_on_a_figure_is_told() {
    let file = ledger::file("small.toml", LEDGER);
    let files = [file.unwrap_or_else(|problems| panic!("{}", problems.render(false)))];
    let recipes = RECIPES.replace(
        "rows = \"S0-002\"",
        "rows = \"S0-002\"\nothers = \"S0-001\"",
    );
    let recipes = fit::read_recipes("one row and another", &recipes).expect("two recipes");
    let choice = RecipeFilter {
        free: vec!["ram.rate".into()],
        ..RecipeFilter::default()
    };
    let rows = fit::sensitivity(&files, &recipes, &choice, &|_| {}, &mut |_| {});
    let rows = rows.expect("they run");
    let [small, large] = &rows[..] else {
        panic!("{rows:?}")
    };
    assert_eq!((&*small.id, small.sets), ("S0-001", false));
    assert_eq!((&*large.id, large.sets), ("S0-002", true));
    assert!(large.slope > 0.9 && large.slope < 1.01, "{large:?}");
    assert!(small.slope > 0.0 && small.slope < 0.3, "{small:?}");
    let [low, high] = [0, 1].map(|end: usize| number(&large.values[end]));
    assert!((high / low - 1.1 / 0.9).abs() < 0.01, "{large:?}");
}
