//! `drivelab max`, `life` and `choose` as a user runs them: repeatable answers, exit codes, and refusals.

use serde_json::Value;

use crate::rig::{drivelab, drivelab_in, text};

pub(crate) fn json(args: &[&str]) -> (Option<i32>, Value) {
    let output = drivelab(&[args, &["--json"]].concat());
    let json = serde_json::from_slice(&output.stdout);
    let json = json.unwrap_or_else(|_| panic!("{}", text(&output.stderr)));
    (output.status.code(), json)
}

/// Options for a short run of `max`.
const SHORT: [&str; 4] = ["--ios", "8000", "--seeds", "2"];

#[test]
fn the_job_of_an_answer_gives_the_answer_again() {
    let args = [
        "max",
        "p4800x-375",
        "--slo",
        "p99=50us",
        "--rw=randrw",
        "--rwmixread=70",
    ];
    let (code, found) = json(&[&args[..], &SHORT].concat());
    assert_eq!(code, Some(0));
    let answer = &found["answers"][0];
    for kind in ["open", "closed"] {
        let at = &answer[kind]["at"];
        let folder = tempfile::TempDir::new().expect("a temporary folder");
        let job = at["measurement"]["job"].as_str().expect("a job");
        std::fs::write(folder.path().join("answer.fio"), job).expect("a folder of our own");
        let again = drivelab_in(
            folder.path(),
            &[
                "run",
                "answer.fio",
                "p4800x-375",
                "--seed",
                "1",
                "--output-format=json",
            ],
        );
        let again: Value = serde_json::from_slice(&again.stdout).expect("JSON");
        let jobs = again["jobs"].as_array().expect("jobs");
        let sum: f64 = jobs
            .iter()
            .flat_map(|job| [&job["read"]["iops"], &job["write"]["iops"]])
            .filter_map(Value::as_f64)
            .sum();
        // The answer uses two seeds, including this one.
        let said = at["iops"].as_f64().expect("a number");
        assert!((sum / said - 1.0).abs() < 0.03, "{kind}: {sum} {said}");
        let beyond = &answer[kind]["beyond"]["readings"][0];
        assert_eq!(beyond["met"], false, "{kind}");
        assert_eq!(at["readings"][0]["met"], true, "{kind}");
    }
}

/// Threads start one after the other: in a short run that is a share of its time, and is no lag behind arrivals.
#[test]
fn a_short_run_keeps_up_with_what_a_longer_one_keeps_up_with() {
    let open_iops = |ios: &str| {
        let line = format!("max p4801x-100 --slo p99=100us --seeds 2 --ios {ios}");
        let (code, found) = json(&line.split(' ').collect::<Vec<_>>());
        assert_eq!(code, Some(0));
        let at = &found["answers"][0]["open"]["at"];
        let iops = at["iops"].as_f64().expect("a number");
        let offered = at["height"]["arrivals"].as_f64().expect("a rate");
        let share = iops / offered;
        assert!((0.95..1.05).contains(&share), "{share} of arrivals, {ios}");
        iops
    };
    let (short, long) = (open_iops("3000"), open_iops("20000"));
    assert!((0.7..1.3).contains(&(short / long)), "{short}, {long}");
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let args = [
        "max",
        "950pro-256",
        "--slo",
        "p99<2ms",
        "--rw=randwrite",
        "--json",
    ];
    let run = || drivelab(&[&args[..], &SHORT].concat()).stdout;
    assert_eq!(run(), run());
}

#[test]
fn a_limit_that_no_load_meets_exits_with_3_and_the_answer_stands_first() {
    let args = ["max", "p4800x-375", "--slo", "p99=1us"];
    let output = drivelab(&[&args[..], &SHORT].concat());
    assert_eq!(output.status.code(), Some(3));
    let first = text(&output.stdout).lines().next().expect("a line");
    assert!(
        first.starts_with("p4800x-375: no load that was tried stays within p99 < 1 us"),
        "{first}"
    );
    assert_eq!(
        text(&output.stderr),
        "verdict: p4800x-375: no load within all limits\n"
    );
    // The latency limit is met, the rate is not reached.
    let args = ["max", "p4800x-375", "--slo", "p99=1ms,iops>9M"];
    let output = drivelab(&[&args[..], &SHORT].concat());
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stdout).contains("misses iops > 9M"));
}

#[test]
fn everything_wrong_with_a_question_is_told_at_once() {
    let args = [
        "max",
        "p4800x-376",
        "--slo",
        "p99>1ms,iops",
        "--rw=randreed",
        "--host",
        "xeon-2018",
    ];
    let output = drivelab(&args);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    for wrong in [
        "p4800x-376",
        "p99 is bounded from above",
        "`iops` bounds nothing",
        "randreed",
        "xeon-2018",
    ] {
        assert!(said.contains(wrong), "{wrong}: {said}");
    }
    let few = drivelab(&["max", "p4800x-375", "--slo", "p99.99<1ms", "--ios", "1000"]);
    assert_eq!(few.status.code(), Some(2));
    assert!(
        text(&few.stderr).contains("at least 200000"),
        "{}",
        text(&few.stderr)
    );
}

#[test]
fn a_pool_wears_by_member_and_a_mirror_writes_twice() {
    let (code, found) = json(&["life", "mirror(2*p4801x-100)", "--writes", "40MB/s"]);
    assert_eq!(code, Some(0));
    let parts = found["answers"][0]["parts"].as_array().expect("members");
    assert_eq!(parts.len(), 2);
    for part in parts {
        let rate = part["written"]["mb_s"][0].as_f64().expect("a rate");
        assert!((rate / 40.0 - 1.0).abs() < 0.02, "{rate}");
        // 10.9 PB at 40 MB/s.
        let years = part["written"]["years_to_rating"].as_f64().expect("rated");
        assert!((years / 8.64 - 1.0).abs() < 0.03, "{years}");
    }
}

#[test]
fn a_drive_that_does_not_last_exits_with_3() {
    let output = drivelab(&["life", "950pro-256", "--writes", "20MB/s", "--seeds", "1"]);
    assert_eq!(output.status.code(), Some(3));
    let first = text(&output.stdout).lines().next().expect("a line");
    // 200 TB at 20 MB/s.
    assert!(
        first.contains("does not last 5 years") && first.contains("116 days"),
        "{first}"
    );
    let output = drivelab(&[
        "life",
        "ram-disk",
        "--load",
        "wal",
        "--seeds",
        "1",
        "--runtime",
        "10ms",
    ]);
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).contains("this catalogue has no rating of it"));
}

#[test]
fn a_published_table_comes_out_as_printed_and_as_it_should_be() {
    let output = drivelab(&["life", "--table", "s3"]);
    assert_eq!(output.status.code(), Some(0));
    insta::assert_snapshot!(text(&output.stdout));
}

#[test]
fn a_load_by_name_is_a_job_that_a_user_can_read_and_run() {
    let output = drivelab(&["life", "--print-load", "oltp"]);
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    std::fs::write(folder.path().join("mine.fio"), &output.stdout).expect("a folder of our own");
    let run = drivelab_in(
        folder.path(),
        &["run", "mine.fio", "p4800x-375", "--parse-only"],
    );
    assert_eq!((run.status.code(), text(&run.stderr)), (Some(0), ""));
}

#[test]
fn the_one_to_take_is_within_the_limits_and_costs_least() {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let prices =
        "[drives]\np4800x-375 = \"900 USD\"\np4801x-100 = \"400 USD\"\n950pro-256 = \"1 USD\"\n";
    std::fs::write(folder.path().join("prices.toml"), prices).expect("a folder of our own");
    let args = [
        "choose",
        "p4800x-375",
        "p4801x-100",
        "950pro-256",
        "900p-280",
        "--load",
        "web",
        "--slo",
        "p99<1ms",
        "--usd",
        "prices.toml",
        "--runtime",
        "50ms",
        "--seeds",
        "2",
        "--csv",
        "all.csv",
        "--json",
    ];
    let output = drivelab_in(folder.path(), &args);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let best = found["answers"]["best"].as_array().expect("measures");
    let by = |measure: &str| best.iter().find(|best| best["by"] == measure);
    // The cheapest one misses the limit, and the 900p has no price. One of two P4801X wears out.
    assert_eq!(by("usd").expect("prices")["drive"], "p4801x-100");
    let of = |drive: &str| {
        let all = found["answers"]["candidates"]
            .as_array()
            .expect("candidates");
        all.iter()
            .find(|one| one["drive"] == drive)
            .expect("it ran")
            .clone()
    };
    assert_eq!(of("950pro-256")["meets"], false);
    assert_eq!(of("900p-280")["usd"], Value::Null);
    let csv = std::fs::read_to_string(folder.path().join("all.csv")).expect("it was written");
    assert_eq!(csv.lines().count(), 5, "{csv}");
}

#[test]
fn prices_of_the_sources_are_an_example_that_is_read() {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let printed = drivelab(&["choose", "--print-prices"]);
    let prices = format!("place = \"2 USD/month\"\n{}", text(&printed.stdout));
    std::fs::write(folder.path().join("prices.toml"), prices).expect("a folder of our own");
    let args = [
        "choose",
        "p4800x-375",
        "p4801x-100",
        "--load",
        "web",
        "--usd",
        "prices.toml",
        "--runtime",
        "20ms",
        "--seeds",
        "1",
        "--json",
    ];
    let output = drivelab_in(folder.path(), &args);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    for one in found["answers"]["candidates"]
        .as_array()
        .expect("candidates")
    {
        let usd = |key: &str| one[key].as_f64().expect("a cost");
        // Five years of a place, in addition to the drives.
        let drives = usd("usd") * usd("drives_bought");
        assert_eq!(usd("usd_in_all") - drives, 120.0, "{one}");
    }
}

#[test]
fn choosing_refuses_what_cannot_be_answered() {
    let short = ["--runtime", "10ms", "--seeds", "1"];
    let code = |args: &[&str]| {
        let output = drivelab(&[&["choose"], args, &short].concat());
        (output.status.code(), text(&output.stderr).to_owned())
    };
    let (exit, said) = code(&["950pro-256", "--load", "web", "--slo", "p99<1us"]);
    assert_eq!(
        (exit, &*said),
        (Some(3), "verdict: no drive is within all limits\n")
    );
    let (exit, said) = code(&["p4800x-376", "--by", "usd", "--slo", "p99"]);
    assert_eq!(exit, Some(2));
    for wrong in [
        "p4800x-376",
        "there are no prices",
        "`p99` bounds nothing",
        "there is no load",
    ] {
        assert!(said.contains(wrong), "{wrong}: {said}");
    }
    let (exit, said) = code(&["slog", "p4801x-100", "--load", "wal"]);
    assert_eq!(exit, Some(2));
    assert!(said.contains("--main is missing"), "{said}");
}

#[test]
fn of_all_drives_those_that_do_not_take_what_is_set_are_listed_with_why() {
    let wear = ["--all", "--age", "3y", "--load", "wal", "--runtime", "2ms"];
    let asked = [&["choose"], &wear[..], &["--seeds", "1"]].concat();
    let output = drivelab(&asked);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    assert!(said.contains("sas-ssd-800 did not run: no endurance is published"));
    assert!(said.contains("gp3 did not run: this drive's medium does not wear"));
    assert!(!said.contains("ram-disk"), "{said}");
    assert!(said.contains("at the start, seed 1;"), "{said}");
    let table = said.split("\n\n").nth(1).expect("a table");
    let ran = table.lines().count() - 1;
    assert!(
        said.contains(&format!("best of the {ran} that ran")),
        "{said}"
    );
    // A drive that is named explicitly must support the load; otherwise that is an error.
    let output = drivelab(&[&asked[..], &["gp3"]].concat());
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("gp3: this drive's medium does not wear"));
}

#[test]
fn what_comes_nearest_to_a_drive_stands_first() {
    let (code, found) = json(&[
        "choose",
        "950pro-256",
        "p4801x-375",
        "--like",
        "p4800x-375",
        "--load",
        "web",
        "--runtime",
        "50ms",
    ]);
    assert_eq!(code, Some(0));
    let others = found["like"]["others"].as_array().expect("others");
    assert_eq!(others.len(), 2);
    assert_eq!(others[0]["drive"], "p4801x-375");
    assert_eq!(found["like"]["at_half_of_its_maximum"], true);
    assert!(
        others[1]["lost"]
            .as_array()
            .is_some_and(|lost| lost.len() >= 3)
    );
}

#[test]
fn a_log_for_a_pool_of_disks_makes_sync_writes_faster() {
    let (code, found) = json(&[
        "choose",
        "slog",
        "none",
        "p4801x-100",
        "--main",
        "mirror(2*exos-x18-16tb)",
        "--load",
        "wal",
        "--runtime",
        "2s",
        "--seeds",
        "1",
    ]);
    assert_eq!(code, Some(0));
    let all = found["answers"]["candidates"]
        .as_array()
        .expect("candidates");
    let iops =
        |name: &str| all.iter().find(|one| one["drive"] == name).expect("it ran")["iops"].as_f64();
    let (with, without) = (
        iops("p4801x-100").expect("a rate"),
        iops("none").expect("a rate"),
    );
    assert!(with > 20.0 * without, "{with} {without}");
}

#[test]
fn an_unknown_verb_is_bad_usage_and_leads_to_one_that_is_known() {
    let output = drivelab(&["endurance", "p4800x-375"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("did you mean `drivelab life`"));
    let output = drivelab(&["how", "large", "a", "slog", "do", "I", "need?"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("did you mean `drivelab size`"));
}

#[test]
fn no_part_of_a_pool_is_busier_than_all_the_time() {
    for drive in ["mirror(2*p4801x-100)", "p3608-1600"] {
        let (_, found) = json(&[
            "max",
            drive,
            "--slo",
            "p99<500us",
            "--rw=randread",
            "--ios",
            "4000",
            "--seeds",
            "1",
        ]);
        let beyond = &found["answers"][0]["closed"]["beyond"]["measurement"];
        for part in ["controller_busy", "link_busy", "medium_busy"] {
            let busy = beyond[part].as_f64().expect("a share");
            assert!((0.0..1.01).contains(&busy), "{drive} {part}: {busy}");
        }
    }
}

#[test]
fn a_published_minimum_is_passed_or_the_exit_code_is_3() {
    let (code, found) = json(&["check", "etcd", "p4800x-375", "--seeds", "2"]);
    assert_eq!(
        (code, &found["answers"][0]["passes"]),
        (Some(0), &Value::Bool(true))
    );
    let sync = &found["answers"][0]["minimum"][0]["reading"]["value"];
    assert!(
        sync.as_f64().is_some_and(|us| us > 20.0 && us < 10_000.0),
        "{sync}"
    );
    let output = drivelab(&["check", "vsan", "p4800x-375", "950pro-256", "--seeds", "1"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stderr).starts_with("verdict: 950pro-256: "));
    let (code, found) = json(&["check", "postgres", "950pro-256", "--seeds", "1"]);
    assert_eq!(
        (code, &found["answers"][0]["passes"]),
        (Some(0), &Value::Null)
    );
    let output = drivelab(&["check", "etcd", "p4800x-376", "--host", "linox"]);
    assert_eq!(output.status.code(), Some(2));
    for wrong in ["p4800x-376", "linox"] {
        assert!(
            text(&output.stderr).contains(wrong),
            "{}",
            text(&output.stderr)
        );
    }
}

/// Several drives run in parallel; each has the figures that it has alone.
#[test]
fn a_drive_is_judged_as_if_it_were_alone() {
    let drives = ["950pro-256", "p4800x-375", "optane-memory-16"];
    let candidates = |drives: &[&str]| {
        let load = ["--load", "web", "--runtime", "5ms", "--seeds", "2"];
        let (code, found) = json(&[&["choose"], drives, &load[..]].concat());
        assert_eq!(code, Some(0));
        found["answers"]["candidates"]
            .as_array()
            .expect("a list")
            .clone()
    };
    let together = candidates(&drives);
    for drive in drives {
        let alone = candidates(&[drive]);
        let mut all = together.iter();
        assert_eq!(
            all.find(|one| one["drive"] == drive),
            alone.first(),
            "{drive}"
        );
    }
}

#[test]
fn life_says_that_a_write_buffer_was_not_full() {
    let pool = "write-back-cache(cache=mirror(2*p4801x-100), capacity=3*950pro-256; like=vsan)";
    let load = ["--writes", "40MB/s", "--seeds", "1"];
    let (_, found) = json(&[&["life", pool, "950pro-256"], &load[..]].concat());
    let answers = found["answers"].as_array().expect("a list");
    let seconds = answers[0]["buffer_full_seconds"].as_f64().expect("a time");
    // The capacity of a P4801X 100 GB, at that rate.
    assert!(
        (100e9 / 40e6 * 0.9..100e9 / 40e6 * 1.05).contains(&seconds),
        "{seconds}"
    );
    assert!(answers[1]["buffer_full_seconds"].is_null());
    // Each backing drive, rated for 200 TB, then receives a third of the writes; the cache is rated for 10.9 PB.
    let part = |at: usize| &answers[0]["parts"][at];
    assert!(part(0)["destaged"].is_null() && answers[1]["parts"][0]["destaged"].is_null());
    let behind = &part(2)["destaged"];
    let rate = behind["mb_s"].as_f64().expect("a rate");
    assert!((rate / (40.0 / 3.0) - 1.0).abs() < 0.03, "{rate}");
    let years = behind["years_to_rating"].as_f64().expect("rated");
    assert!(
        (years * rate * 365.0 * 0.0864 / 200.0 - 1.0).abs() < 1e-3,
        "{years}"
    );
    let said = drivelab(&[&["life", pool], &load[..]].concat());
    assert_eq!(said.status.code(), Some(3));
    let said = text(&said.stdout);
    assert!(said.contains("(member 950pro-256.0)."), "{said}");
    assert!(
        said.contains("go to each drive behind, 174 days until the rated bytes of 950pro-256."),
        "{said}"
    );
}

#[test]
fn a_write_buffer_that_a_run_does_not_fill_is_told_and_none_is_what_is_behind() {
    let asked = [
        "choose",
        "vsan-cache",
        "none",
        "p5800x-400",
        "--capacity",
        "3*d7-p5510-3840",
        "--profile",
        "4k0r",
        "--seeds",
        "1",
        "--runtime",
    ];
    let (code, found) = json(&[&asked[..], &["5ms"]].concat());
    assert_eq!(code, Some(0));
    let all = found["answers"]["candidates"].as_array().expect("a list");
    let of = |name: &str| all.iter().find(|one| one["drive"] == name).expect("it ran");
    assert!(of("none")["buffer_full_seconds"].is_null());
    let buffered = of("p5800x-400");
    let seconds = buffered["buffer_full_seconds"].as_f64().expect("a time");
    let mb_s = buffered["measurement"]["write"]["mb_s"]
        .as_f64()
        .expect("a rate");
    assert!(
        (seconds * mb_s / 400e3 - 1.0).abs() < 0.02,
        "{seconds} {mb_s}"
    );
    let sentence = found["sentences"][0].as_str().unwrap_or_default();
    let said = drivelab(&[&asked[..], &["5ms"]].concat());
    let said = text(&said.stdout);
    assert!(
        said.contains("while write buffers have space"),
        "{said} {sentence}"
    );
}

#[test]
fn a_load_with_a_name_runs_longer_than_its_file_says_if_asked() {
    let written = |runtime: &str| {
        let asked = ["choose", "wd-red-3tb", "--profile", "4k0r", "--seeds", "1"];
        let (_, found) = json(&[&asked[..], &["--runtime", runtime]].concat());
        let write = &found["answers"]["candidates"][0]["measurement"]["write"];
        let ios = write["ios"].as_f64();
        ios.unwrap_or_else(|| panic!("{write}"))
    };
    // The file says 2 s; a run with few I/Os takes 20.
    assert!(written("200s") > 3.0 * written("2s"));
}

#[test]
fn what_is_behind_is_asked_for_by_the_option_of_the_place() {
    let said = |args: &[&str]| {
        let output = drivelab(&[&["choose"], args, &["--load", "web"]].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        text(&output.stderr).to_owned()
    };
    let main = said(&["cache", "p5800x-400", "--main", "exos-x18-16tb"]);
    assert!(main.contains("does not apply to vsan-cache"), "{main}");
    assert!(main.contains("--capacity '3*d7-p5510-3840'"), "{main}");
    let none = said(&["p5800x-400", "--capacity", "exos-x18-16tb"]);
    assert!(
        none.contains("applies to drives for a part of a pool"),
        "{none}"
    );
}

#[test]
fn a_drive_without_a_rating_that_is_slower_than_the_load_says_so() {
    let asked = [
        "life",
        "exos-x18-16tb",
        "--writes",
        "20MB/s",
        "--runtime",
        "50ms",
        "--seeds",
        "1",
    ];
    let said = drivelab(&asked);
    let said = text(&said.stdout).to_owned();
    let first = said.lines().next().expect("an answer");
    assert!(
        first.contains("It sustains only") && first.contains("of the 20 MB/s"),
        "{first}"
    );
}
