//! `drivelab choose` as a buyer uses it: cost with replacements, drives at one rate, logs at one rate, and no log at
//! all.

use serde_json::Value;

use crate::decide::json;
use crate::rig::{drivelab, drivelab_in, text};

/// Returns the first line of an answer.
fn first_line(args: &[&str]) -> String {
    let output = drivelab(args);
    assert_ne!(output.status.code(), Some(2), "{}", text(&output.stderr));
    let first = text(&output.stdout).lines().next().unwrap_or_default();
    assert!(first.chars().count() <= 160, "{first}");
    first.to_owned()
}

#[test]
fn a_cheap_drive_that_wears_out_is_bought_again() {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let prices = "[drives]\n980pro-1000 = \"90 USD\"\np4800x-375 = \"900 USD\"\n";
    std::fs::write(folder.path().join("prices.toml"), prices).expect("a folder of our own");
    let asked = |rate: &str| {
        let drives = ["choose", "980pro-1000", "p4800x-375", "--load", "oltp"];
        let rest = [
            "--usd",
            "prices.toml",
            "--rate",
            rate,
            "--seeds",
            "1",
            "--json",
        ];
        let output = drivelab_in(folder.path(), &[&drives[..], &rest].concat());
        let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let all = found["answers"]["candidates"].as_array().expect("a list");
        let of = |name: &str| all.iter().find(|one| one["drive"] == name).expect("it ran");
        let figure = |name: &str, key: &str| of(name)[key].as_f64().expect("a figure");
        for (name, price) in [("980pro-1000", 90.0), ("p4800x-375", 900.0)] {
            let bought = (5.0 / figure(name, "years")).ceil();
            assert_eq!(figure(name, "drives_bought"), bought, "{name} at {rate}");
            assert_eq!(
                figure(name, "usd_in_all"),
                bought * price,
                "{name} at {rate}"
            );
        }
        figure("980pro-1000", "drives_bought")
    };
    assert!(asked("20k") > 10.0);
    // At a rate that both endure, the cheap one is bought once.
    assert_eq!(asked("1k"), 1.0);
    let asked = "choose 980pro-1000 p4800x-375 --load oltp --usd prices.toml --rate 1k --seeds 1";
    let output = drivelab_in(folder.path(), &asked.split(' ').collect::<Vec<_>>());
    let first = text(&output.stdout).lines().next().expect("an answer");
    assert!(
        first.starts_with("Take 980pro-1000 by cost: 90 USD"),
        "{first}"
    );
    assert!(first.ends_with(" It lasts the 5 years."), "{first}");
}

#[test]
fn a_first_line_says_that_what_it_names_wears_out() {
    let load = [
        "choose",
        "p4800x-375",
        "--load",
        "oltp",
        "--seeds",
        "1",
        "--runtime",
        "50ms",
    ];
    let by = |by: &str| first_line(&[&load[..], &["--by", by]].concat());
    let iops = by("iops");
    assert!(iops.contains("It wears out after 3"), "{iops}");
    let years = by("years");
    assert!(
        years.starts_with("None lasts 5 years at this load. Longest: p4800x-375"),
        "{years}"
    );
    let slow = first_line(&[&load[..], &["--rate", "5k"]].concat());
    assert!(!slow.contains("wears out"), "{slow}");
}

#[test]
fn at_a_rate_all_drives_are_asked_for_the_same() {
    let asked = |rest: &[&str]| {
        let drives = [
            "choose",
            "p4800x-375",
            "950pro-256",
            "--load",
            "oltp",
            "--seeds",
            "1",
        ];
        json(&[&drives[..], rest].concat())
    };
    let of = |found: &Value, name: &str, key: &str| {
        let all = found["answers"]["candidates"]
            .as_array()
            .expect("a list")
            .clone();
        let one = all
            .into_iter()
            .find(|one| one["drive"] == name)
            .expect("it ran");
        one[key].clone()
    };
    let (code, found) = asked(&["--rate", "5k"]);
    assert_eq!(code, Some(0));
    for drive in ["p4800x-375", "950pro-256"] {
        let iops = of(&found, drive, "iops").as_f64().expect("a rate");
        assert!((iops / 5_000.0 - 1.0).abs() < 0.05, "{drive}: {iops}");
        assert_eq!(of(&found, drive, "meets"), true, "{drive}");
    }
    // A limit on the rate is used as the rate; a drive that is too slow for it misses the limit.
    let (code, found) = asked(&["--slo", "iops>100k"]);
    assert_eq!(code, Some(0));
    assert_eq!(of(&found, "p4800x-375", "meets"), true);
    assert_eq!(of(&found, "950pro-256", "meets"), false);
    let iops = of(&found, "p4800x-375", "iops").as_f64().expect("a rate");
    assert!((iops / 100_000.0 - 1.0).abs() < 0.03, "{iops}");
    let (_, found) = asked(&["--slo", "iops>5k", "--rate", "max"]);
    let most = of(&found, "p4800x-375", "iops").as_f64().expect("a rate");
    assert!(most > 200_000.0, "{most}");
}

/// 200 users of 64 I/Os every 30 s are 427 IOPS, of which half read 7.5 MiB: 1.68 GB/s.
#[test]
fn users_of_a_named_load_arrive_in_an_open_loop() {
    let (code, found) = json(&[
        "choose",
        "p5800x-800",
        "950pro-256",
        "--load",
        "kvcache",
        "--users",
        "200",
        "--seeds",
        "1",
        "--runtime",
        "1s",
    ]);
    assert_eq!(code, Some(0));
    let offered = found["asked"]["load"]["offered_iops"]
        .as_f64()
        .expect("a rate");
    assert!((offered / 426.7 - 1.0).abs() < 0.03, "{offered}");
    let all = found["answers"]["candidates"].as_array().expect("a list");
    let of = |name: &str| {
        let mut all = all.iter();
        all.find(|one| one["drive"] == name).expect("it ran")
    };
    // 2.1 GB/s in all: the one drive keeps up, the other cannot write 0.45 GB/s.
    let completes = |name: &str| of(name)["completes"].as_f64().expect("a share");
    assert!(completes("p5800x-800") > 0.9, "{}", of("p5800x-800"));
    assert!(completes("950pro-256") < 0.9, "{}", of("950pro-256"));
}

#[test]
fn users_are_of_a_load_that_says_what_one_asks_for() {
    for (options, said) in [
        (
            &["--load", "oltp", "--users", "5"][..],
            "kvcache, vector-search",
        ),
        (&["--load", "kvcache", "--users", "0"], "1..=10000000"),
        (
            &["--load", "kvcache", "--users", "5", "--rate", "5k"],
            "--rate",
        ),
        (&["--job", "mine.fio", "--users", "5"], "--load"),
    ] {
        let output = drivelab(&[&["choose", "p4800x-375"], options].concat());
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{options:?}: {error}");
        assert!(error.contains(said), "{options:?}: {error}");
    }
}

#[test]
fn a_rate_is_not_that_of_a_trace_and_has_a_unit() {
    for (rate, wrong) in [("fast", "such as 50k"), ("0", "such as 50k")] {
        let output = drivelab(&["choose", "p4800x-375", "--load", "web", "--rate", rate]);
        assert_eq!(output.status.code(), Some(2));
        assert!(
            text(&output.stderr).contains(wrong),
            "{}",
            text(&output.stderr)
        );
    }
    let output = drivelab(&["choose", "p4800x-375", "--trace", "t.csv", "--rate", "5k"]);
    assert_eq!(output.status.code(), Some(2));
    let output = drivelab(&["choose", "p4800x-375", "--load", "web", "--overwrite"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr).contains("choose slog DRIVE"),
        "{}",
        text(&output.stderr)
    );
}

/// Logs that throttle waiting clients are compared at one rate, by latency; with new files, the main pool is not read.
#[test]
fn the_log_with_the_least_latency_is_taken_whatever_the_seed() {
    let main = "raidz(6*exos-x18-16tb; parity=2)";
    for seed in ["1", "11"] {
        let asked = [
            "choose",
            "slog",
            "none",
            "p1600x-58",
            "p4801x-100",
            "980pro-1000",
        ];
        let load = [
            "--main", main, "--load", "nfs-sync", "--seeds", "2", "--seed", seed,
        ];
        let all = [&asked[..], &load].concat();
        let first = first_line(&all);
        assert!(
            first.starts_with("Take p4801x-100 (no longer made, 2022) by p99"),
            "{first}"
        );
        assert!(first.contains("half "), "{first}");
        let (_, found) = json(&all);
        let candidates = found["answers"]["candidates"].as_array().expect("a list");
        let of = |name: &str| {
            candidates
                .iter()
                .find(|one| one["drive"] == name)
                .expect("it ran")
        };
        // All have the same rate except the one that cannot reach it.
        let rate = of("p4801x-100")["iops"].as_f64().expect("a rate");
        let slow = of("980pro-1000")["iops"].as_f64().expect("a rate");
        assert!((slow / rate - 1.0).abs() < 0.03, "{rate} {slow}");
        assert_eq!(of("none")["meets"], false);
        assert_eq!(of("980pro-1000")["binds"], "log_latency");
        assert_eq!(of("none")["binds"], "main_busy");
    }
}

#[test]
fn files_that_are_overwritten_are_read_from_main() {
    let main = ["--main", "raidz(6*exos-x18-16tb; parity=2)", "--overwrite"];
    let asked = [
        "choose",
        "slog",
        "p4801x-100",
        "--load",
        "nfs-sync",
        "--seeds",
        "1",
    ];
    let (_, found) = json(&[&asked[..], &main].concat());
    assert_eq!(found["answers"]["candidates"][0]["binds"], "main_reads");
}

#[test]
fn a_load_without_synchronous_writes_needs_no_log() {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let job =
        "[a]\nioengine=libaio\ndirect=1\nrw=write\nbs=128k\niodepth=4\nruntime=1s\ntime_based=1\n";
    std::fs::write(folder.path().join("async.fio"), job).expect("a folder of our own");
    let asked = [
        "choose",
        "slog",
        "none",
        "p4801x-100",
        "--main",
        "mirror(2*exos-x18-16tb)",
    ];
    let load = ["--job", "async.fio", "--seeds", "1", "--runtime", "1s"];
    let output = drivelab_in(folder.path(), &[&asked[..], &load].concat());
    let said = text(&output.stdout);
    assert!(
        said.starts_with("You need no log for async.fio: a log stores only synchronous writes, and this load has none."),
        "{said}"
    );
    let said = first_line(
        &[
            &asked[..],
            &["--load", "wal", "--seeds", "1", "--runtime", "1s"],
        ]
        .concat(),
    );
    assert!(said.starts_with("Take p4801x-100"), "{said}");
}

/// All published prices are a price list that is read, with the cost of a year; bad lines are refused with their
/// numbers.
#[test]
fn a_price_list_is_read_and_its_bad_lines_are_refused() {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let printed = drivelab(&["choose", "--print-prices=csv"]);
    let printed = format!("{}power,0.30\nplace,2\n", text(&printed.stdout));
    assert!(
        printed.contains("optane-memory-32,80,2.50,2017"),
        "{printed}"
    );
    assert!(
        printed.contains("\n# p1600x-118,229,1.94,2024"),
        "{printed}"
    );
    let asked = |list: &str| {
        std::fs::write(folder.path().join("list.CSV"), list).expect("a folder of our own");
        let drives = ["choose", "p4801x-100", "950pro-256", "--load", "web"];
        let rest = [
            "--usd",
            "list.CSV",
            "--runtime",
            "20ms",
            "--seeds",
            "1",
            "--years",
            "4",
            "--json",
        ];
        drivelab_in(folder.path(), &[&drives[..], &rest].concat())
    };
    let output = asked(&printed);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    for one in found["answers"]["candidates"].as_array().expect("a list") {
        let figure = |key: &str| one[key].as_f64().expect("a figure");
        let power = figure("watts") * 1e-3 * 24.0 * 365.0 * 4.0 * 0.30;
        let all = figure("usd") * figure("drives_bought") + power + 2.0 * 48.0;
        assert!((figure("usd_in_all") / all - 1.0).abs() < 1e-3, "{one}");
        assert!(
            (figure("usd_per_year") * 4.0 / all - 1.0).abs() < 1e-3,
            "{one}"
        );
    }
    let output = asked("drive,usd\np4801x-100,109\np4801x-101,5\n950pro-256,cheap\n");
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    for part in [
        "list.CSV:3",
        "did you mean `p4801x-100`?",
        "list.CSV:4",
        "`cheap`",
        "such as 1520",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

/// A drive past its rated endurance has no time left: the answer says so, and does not call that "0 s".
#[test]
fn a_drive_past_its_rating_is_worn_out_already() {
    for by in ["iops", "years"] {
        let old =
            "choose p4800x-375 980pro-1000 --load oltp --age 6y --seeds 1 --runtime 20ms --by";
        let args: Vec<&str> = old.split(' ').chain([by]).collect();
        let output = drivelab(&args);
        let said = text(&output.stdout);
        let first = said.lines().next().expect("a line");
        assert!(first.contains("already"), "{first}");
        assert!(!said.contains("0 s"), "{said}");
    }
}

/// Jobs that end before memory is full are counted from the start.
#[test]
fn asynchronous_writes_that_fit_in_memory_have_a_rate() {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let job =
        "[async]\nioengine=libaio\ndirect=1\nrw=write\nbs=128k\niodepth=8\nnumjobs=4\nsize=1g\n";
    std::fs::write(folder.path().join("async.fio"), job).expect("a folder of our own");
    let pool = "intent-log(main=mirror(2*exos-x18-16tb); filled=false)";
    let asked = [
        "choose",
        pool,
        "--job",
        "async.fio",
        "--seeds",
        "1",
        "--json",
    ];
    let output = drivelab_in(folder.path(), &asked);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    for one in found["answers"]["candidates"].as_array().expect("a list") {
        assert!(one["iops"].as_f64().expect("a rate") > 100.0, "{one}");
    }
}

/// The drives that run in full after a short run are those of the answer; the others are marked, and recommended by
/// no criterion.
#[test]
fn many_drives_are_screened_and_the_best_is_that_of_full_runs() {
    let of = |names: &[&str]| {
        let rest = [
            "--load",
            "web",
            "--seeds",
            "2",
            "--runtime",
            "150ms",
            "--state",
            "fresh",
            "--json",
        ];
        let output = drivelab(&[&["choose"], names, &rest].concat());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        (found, text(&output.stderr).to_owned())
    };
    let (found, said) = of(&["--all"]);
    assert!(said.contains("first answer by IOPS: "), "{said}");
    let all = found["answers"]["candidates"].as_array().expect("a list");
    let is_short = |one: &&Value| one["screened"] == true;
    // Whether these meet limits is not known.
    assert!(
        all.iter()
            .all(|one| one["meets"].is_null() == is_short(&one))
    );
    let full: Vec<&Value> = all.iter().filter(|one| !is_short(one)).collect();
    assert!(
        all.iter().filter(is_short).count() > full.len(),
        "{}",
        full.len()
    );
    let names: Vec<&str> = full
        .iter()
        .filter_map(|one| one["drive"].as_str())
        .collect();
    let best = |found: &Value, at: usize| found["answers"]["best"][at].clone();
    let (again, _) = of(&names);
    for at in 0..found["answers"]["best"].as_array().expect("a list").len() {
        assert_eq!(best(&found, at), best(&again, at));
    }
}

/// A price list without a price of a drive is an error, not an answer without costs.
#[test]
fn a_price_list_without_a_price_is_refused() {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    for (name, text_of) in [
        ("a.csv", "drive,usd\n"),
        ("b.csv", "drive,usd\npower,0.30\n"),
        ("c.toml", ""),
        ("d.toml", "power = \"0.30 USD/kWh\"\n[drives]\n"),
    ] {
        std::fs::write(folder.path().join(name), text_of).expect("a folder of our own");
        let args = ["choose", "p4800x-375", "--load", "oltp", "--usd", name];
        let output = drivelab_in(folder.path(), &args);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{name}: {said}");
        assert!(
            said.contains("there is no price of a drive"),
            "{name}: {said}"
        );
        assert!(said.contains(name) && said.contains("p4800x-375"), "{said}");
    }
}

/// Contradictory options are the user's, not a failure of drives: nothing runs.
#[test]
fn a_limit_above_the_rate_is_refused_with_both_options() {
    let asked = |options: &[&str]| {
        let output = drivelab(&[&["choose", "p4800x-375"], options].concat());
        let said = text(&output.stderr).to_owned();
        assert_eq!(output.status.code(), Some(2), "{options:?}: {said}");
        assert!(output.stdout.is_empty(), "{options:?}");
        said
    };
    let oltp = |rest: &[&str]| asked(&[&["--load", "oltp"], rest].concat());
    let said = oltp(&["--slo", "p99<1ms,iops>50k", "--rate", "20k"]);
    assert!(
        said.contains("iops > 50k contradicts --rate: at most 20 k IOPS arrive"),
        "{said}"
    );
    let said = oltp(&["--slo", "bw>10GB/s", "--rate", "20GB/day"]);
    assert!(said.contains("contradicts --rate"), "{said}");
    let said = asked(&["--load", "kvcache", "--users", "2", "--slo", "iops>5k"]);
    assert!(said.contains("contradicts --users"), "{said}");
    let said = asked(&["--profile", "4k70r", "--users", "200"]);
    assert!(
        said.contains("give the total rate: --rate 6000 if each of 200 users"),
        "{said}"
    );
}

/// A rate per day is that of `life --writes`, and a capacity is a limit.
#[test]
fn a_rate_may_be_a_day_and_a_drive_may_have_to_be_large() {
    let rest =
        "choose p4800x-375 p4510-1000 --profile 4k0r --slo capacity>900GB --seeds 1 --json --rate";
    let of = |rate: &str| {
        let words: Vec<&str> = rest.split(' ').chain([rate]).collect();
        let output = drivelab(&words);
        let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        found
    };
    let found = of("34.56GB/day");
    assert_eq!(found["answers"]["best"][0]["drive"], "p4510-1000");
    assert_eq!(found["answers"], of("400kB/s")["answers"]);
    let small = &found["answers"]["candidates"][1];
    assert_eq!(
        (&small["drive"], &small["meets"]),
        (&"p4800x-375".into(), &false.into())
    );
    assert_eq!(small["readings"][0]["value"], 375.0);
    // Blocks of 4 KiB leave 1536 bytes of 375 GB.
    for (bound, meets) in [("375GB", true), ("375.001GB", false)] {
        let slo = format!("capacity>{bound}");
        let words = ["choose", "p4800x-375", "--profile", "4k0r", "--seeds", "1"];
        let output =
            drivelab(&[&words[..], &["--json", "--rate", "400kB/s", "--slo", &slo]].concat());
        let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let only = &found["answers"]["candidates"][0];
        assert_eq!(only["meets"], meets, "{bound}: {only}");
    }
}

/// Drives that a criterion cannot tell apart are ordered by their life, and the line states the load that wears them.
#[test]
fn of_tied_drives_the_longest_lived_comes_first() {
    let tied = "choose p4801x-375 p4800x-375 --load oltp --seeds 1 --runtime 50ms";
    let first = first_line(&tied.split(' ').collect::<Vec<_>>());
    assert!(first.contains("2 drives tie by IOPS"), "{first}");
    assert!(first.contains(" at their maximum of "), "{first}");
    assert!(first.contains("None lasts 5 years"), "{first}");
    assert!(first.contains("None is still made"), "{first}");
    let json = [&tied.split(' ').collect::<Vec<_>>()[..], &["--json"]].concat();
    let output = drivelab(&json);
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let all = found["answers"]["candidates"].as_array().expect("a list");
    let years = |one: &&Value| one["ends_after_years"].as_f64().expect("a rating");
    let longest = all.iter().max_by(|a, b| years(a).total_cmp(&years(b)));
    let name = longest.and_then(|one| one["drive"].as_str()).expect("one");
    assert!(first.contains(&format!(": {name} (")), "{first}");
    let alone = first_line(
        &"choose p4800x-375 --load oltp --seeds 1 --runtime 50ms --by p99"
            .split(' ')
            .collect::<Vec<_>>(),
    );
    assert!(alone.contains(" at its own maximum, "), "{alone}");
}

/// A model without pauses of garbage collection gives an upper bound.
#[test]
fn a_highest_load_without_known_pauses_is_an_upper_bound() {
    let of = |drive: &str| {
        let asked = "--slo p99<1ms --rw randwrite --seeds 1 --ios 5000";
        first_line(
            &["max", drive]
                .into_iter()
                .chain(asked.split(' '))
                .collect::<Vec<_>>(),
        )
    };
    let line = of("990pro-2000");
    assert!(line.contains(": at most "), "{line}");
    assert!(!of("p4800x-375").contains("at most"));
}
