//! Drives for a place of a pool: loads that read, loads that use no log, and which member wears out first.

use serde_json::Value;

use crate::rig::{drivelab, drivelab_in, text};

/// Returns what a command prints; words of the command are separated by spaces.
fn said(command: &str) -> String {
    let output = drivelab(&command.split(' ').collect::<Vec<_>>());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let said = text(&output.stdout).to_owned();
    let first = said.lines().next().unwrap_or_default();
    assert!(first.chars().count() <= 160, "{first}");
    said
}

/// By hand: a disk of 7,200 turns a minute does 80 to 250 random reads a second with some of them queued, and two do
/// twice as many. A pool without files would return each read at once.
#[test]
fn a_load_that_reads_runs_on_existing_files() {
    let asked =
        "choose slog none p4801x-100 --main mirror(2*wd140edfz) --load oltp --seeds 1 --runtime 2s";
    let found: Value = serde_json::from_str(&said(&format!("{asked} --json"))).expect("JSON");
    let all = found["answers"]["candidates"].as_array().expect("a list");
    assert_eq!(all.len(), 2);
    for one in all {
        assert_eq!(one["has_files_to_read"], true, "{one}");
        let reads = one["measurement"]["read"]["iops"].as_f64().expect("reads");
        assert!(reads < 600.0, "{} reads {reads} IOPS", one["drive"]);
    }
    // No log changes the reads of the disks; the syncs decide.
    let p99_us = |name: &str| {
        let one = all.iter().find(|one| one["drive"] == name);
        one.and_then(|one| one["p99_us"].as_f64())
            .expect("a known p99")
    };
    assert!(p99_us("none") > 5.0 * p99_us("p4801x-100"), "{found}");
    // A drive keeps up with the rate that the program selects.
    assert!(
        all.iter().any(|one| one["meets"] == true),
        "{}",
        found["answers"]["best"]
    );
    let words = said(asked);
    assert!(words.starts_with("Take p4801x-100"), "{words}");
    assert!(
        words.contains("This load reads, so it ran on a pool with existing files"),
        "{words}"
    );
    // With --overwrite, the pool has its files anyway.
    let words = said(&format!("{asked} --overwrite"));
    assert!(!words.contains("This load reads"), "{words}");
    assert!(words.starts_with("Take p4801x-100"), "{words}");
    assert!(words.contains("p99 is that of syncs"), "{words}");
}

/// Nothing is run, so the answer takes no time.
#[test]
fn a_load_without_synchronous_writes_runs_nothing() {
    for verb in ["choose", "size"] {
        let asked =
            format!("{verb} slog p4801x-100 --main mirror(2*wd140edfz) --load web --seeds 20");
        let words = said(&asked);
        assert!(words.starts_with("You need no log for web: "), "{words}");
        assert!(words.contains("Nothing was run."), "{words}");
        assert!(words.lines().count() <= 3, "{words}");
        let found: Value = serde_json::from_str(&said(&format!("{asked} --json"))).expect("JSON");
        assert_eq!(found["needs_log"], false, "{found}");
        let output = drivelab(
            &format!("{asked} --csv a.csv")
                .split(' ')
                .collect::<Vec<_>>(),
        );
        assert_eq!(output.status.code(), Some(2));
        assert!(
            text(&output.stderr).contains("leave out --csv"),
            "{}",
            text(&output.stderr)
        );
    }
}

/// By hand: 8k60r at 500 k IOPS and more writes 1.6 GB/s and more. Four PM1733 of 7 PB end after 200 days at most, the
/// P5800X of 73 PB lasts more than a year.
#[test]
fn the_member_that_wears_out_first_is_named() {
    let words = said(
        "choose vsan-cache p5800x-400 --capacity 4*pm1733-3840 --profile 8k60r --seeds 1 --runtime 100ms",
    );
    let first = words.lines().next().unwrap_or_default();
    assert!(
        first.contains("Its member pm1733-3840 wears out after "),
        "{first}"
    );
    assert!(
        words.contains("p5800x-400 itself reaches its rated endurance after "),
        "{words}"
    );
    let alone = said("choose 990pro-2000 --profile 8k60r --seeds 1 --runtime 50ms");
    assert!(
        alone.contains(" It uses up its assumed cycles after ")
            && alone.contains(", its rating after "),
        "{alone}"
    );
}

/// If the pool without a drive in that place is as good, none is needed.
#[test]
fn a_tie_with_none_needs_none() {
    let words = said(
        "choose read-cache none 970evoplus-1000 --main raid6(6*wd140edfz) --load web --seeds 1 --runtime 200ms",
    );
    let first = words.lines().next().unwrap_or_default();
    assert!(
        first.starts_with("No cache gains anything in these runs"),
        "{first}"
    );
    assert!(
        words.contains("Read caches are empty at the start"),
        "{words}"
    );
}

/// A rating that lasts 3.24 years and cycles that end after 303 days are two costs.
#[test]
fn a_cost_names_what_assumed_cycles_would_buy() {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let prices = "[drives]\n990pro-2000 = \"120 USD\"\nd7-p5520-1920 = \"329 USD\"\n";
    std::fs::write(folder.path().join("prices.toml"), prices).expect("a folder of our own");
    let job = "[w]\nioengine=libaio\ndirect=1\nrw=randwrite\nbs=16k\niodepth=8\nruntime=5s\ntime_based=1\n";
    std::fs::write(folder.path().join("wr.fio"), job).expect("a folder of our own");
    let asked =
        "choose 990pro-2000 d7-p5520-1920 --job wr.fio --rate 1TB/day --usd prices.toml --seeds 1";
    let run = |more: &str| {
        let asked = format!("{asked}{more}");
        let output = drivelab_in(folder.path(), &asked.split(' ').collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        text(&output.stdout).to_owned()
    };
    let found: Value = serde_json::from_str(&run(" --json")).expect("JSON");
    let all = found["answers"]["candidates"].as_array().expect("a list");
    let one = all
        .iter()
        .find(|one| one["drive"] == "990pro-2000")
        .expect("it ran");
    let (by_rating, by_cycles) = (
        one["drives_bought"].as_u64().expect("a number"),
        one["drives_bought_by_cycles"].as_u64().expect("a number"),
    );
    assert!(by_rating == 2 && by_cycles > 3, "{by_rating} {by_cycles}");
    assert_eq!(
        one["usd_in_all_by_cycles"].as_f64(),
        Some(120.0 * by_cycles as f64)
    );
    let words = run("");
    let first = words.lines().next().unwrap_or_default();
    assert!(
        first.contains("USD, or ") && first.contains(" if assumed cycles decide"),
        "{first}"
    );
    assert!(
        words.contains("If cycles decide, d7-p5520-1920 is the cheapest"),
        "{words}"
    );
}

/// As `life` says of this drive and load: the cycles end long before the rating, which also ends within the term.
#[test]
fn cycles_are_named_if_the_rating_ends_within_the_term_too() {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let job = "[w]\nioengine=libaio\ndirect=1\nrw=randwrite\nbs=16k\niodepth=8\nruntime=5s\ntime_based=1\n";
    std::fs::write(folder.path().join("wr.fio"), job).expect("a folder of our own");
    let asked = "choose 990pro-2000 --job wr.fio --rate 1TB/day --seeds 1";
    let output = drivelab_in(folder.path(), &asked.split(' ').collect::<Vec<_>>());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let words = text(&output.stdout);
    let first = words.lines().next().unwrap_or_default();
    assert!(
        first.contains(" It uses up its assumed cycles after 30")
            && first.contains(", its rating after 3.2"),
        "{first}"
    );
}

/// A SATA drive in a bay is not replaced by a module, whatever its figures.
#[test]
fn a_replacement_fits_the_slot() {
    let words = said(
        "choose 990evo-1000 860evo-1000 --like 850pro-1000 --load web --seeds 1 --runtime 50ms",
    );
    let first = words.lines().next().unwrap_or_default();
    assert!(
        first.contains("half of its maximum: 860evo-1000 ("),
        "{first}"
    );
    assert!(
        words.contains(
            "Last, as they do not fit the slot of 850pro-1000 without an adapter: 990evo-1000."
        ),
        "{words}"
    );
    let words = said("choose 990evo-1000 --like 850pro-1000 --load web --seeds 1 --runtime 50ms");
    assert!(
        words.starts_with("No drive that ran fits the slot of 850pro-1000; nearest"),
        "{words}"
    );
}

/// Between 3 and 5 k IOPS, the log's syncs of 2 s were too few for p99, and no drive was known to meet the limit.
#[test]
fn syncs_of_a_middle_rate_are_enough_for_p99() {
    let found: Value = serde_json::from_str(&said(
        "choose pm9a3-960 xtr-960 --load oltp --rate 5k --slo p99<1ms --seeds 3 --json",
    ))
    .expect("JSON");
    for one in found["answers"]["candidates"].as_array().expect("a list") {
        assert_eq!(one["meets"], true, "{one}");
        assert!(one["p99_us"].is_number(), "{one}");
        // The run is not mostly idle, so wear is known.
        assert!(one["parts"][0]["few_writes"].is_null(), "{one}");
    }
}

/// A long expression of a pool leaves width for the figures, and the first line has the years.
#[test]
fn the_life_of_a_long_pool_is_readable() {
    let pool = "write-back-cache(cache=p5800x-400, capacity=4*pm1733-3840; like=vsan)";
    let rest = [
        "--load",
        "oltp",
        "--rate",
        "50k",
        "--seeds",
        "1",
        "--runtime",
        "50ms",
    ];
    let output = drivelab(&[&["life", pool][..], &rest].concat());
    let words = text(&output.stdout);
    let first = words.lines().next().unwrap_or_default();
    assert!(first.chars().count() <= 160, "{first}");
    assert!(
        first.contains(" years at this load: ") && first.contains(" (member pm1733-3840.0)"),
        "{first}"
    );
    let table = words.lines().skip_while(|line| !line.starts_with(" drive"));
    let table: Vec<&str> = table.take_while(|line| !line.contains("Repeat:")).collect();
    assert!(table.len() < 60, "{words}");
}
