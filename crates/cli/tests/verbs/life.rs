//! `drivelab life` at rates above a drive's maximum.

use serde_json::Value;

use crate::rig::{drivelab, text};

fn json(args: &[&str]) -> Value {
    let output = drivelab(&[args, &["--json"]].concat());
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output.stderr)))
}

/// Rates that need more than a hundred threads are written by a hundred, each in its own range: a drive below the
/// requested rate runs at its maximum.
#[test]
fn life_at_more_than_a_drive_writes_is_that_at_all_it_writes() {
    let written = |rate: &str| {
        let found = json(&[
            "life",
            "p5800x-800",
            "--writes",
            rate,
            "--rw",
            "write",
            "--bs",
            "1m",
            "--seeds",
            "1",
        ]);
        let answers = found["answers"].as_array().expect("answers");
        answers[0]["parts"][0]["written"]["mb_s"][0]
            .as_f64()
            .expect("a rate")
    };
    let (much, more) = (written("30GB/s"), written("60GB/s"));
    assert!(
        much > 4000.0 && more > 0.85 * much,
        "{much} and {more} MB/s"
    );
}

/// A log on a drive without power-loss protection: each sync programs a page that is mostly empty, so the cycles end long
/// before the rated bytes. A verdict by the rating alone would be wrong.
#[test]
fn a_verdict_by_rated_bytes_names_cycles_that_end_much_earlier() {
    let first = |drive: &str, rest: &[&str]| {
        let output = drivelab(&[&["life", drive, "--load", "wal", "--seeds", "1"], rest].concat());
        text(&output.stdout)
            .lines()
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    for drive in ["990pro-2000", "980pro-1000"] {
        let line = first(drive, &["--rate", "200"]);
        assert!(line.contains(": its assumed cycles last"), "{line}");
        assert!(
            line.contains("days") && line.contains("the assumed rating"),
            "{line}"
        );
        assert!(!line.contains("lasts the 5 years"), "{line}");
    }
    // A protected drive merges its writes.
    let line = first("p4800x-375", &["--rate", "200"]);
    assert!(line.contains("lasts the 5 years"), "{line}");
}

/// The pattern of the writes is part of what a drive does not sustain.
#[test]
fn a_drive_that_does_not_sustain_the_writes_is_told_with_their_pattern() {
    let output = drivelab(&[
        "life",
        "exos-x18-16tb",
        "--writes",
        "2TB/day",
        "--seeds",
        "1",
    ]);
    let said = text(&output.stdout);
    let first = said.lines().next().unwrap_or_default();
    assert!(first.ends_with("of the 23.1 MB/s (random 4k)."), "{first}");
}

/// A day's bytes and drive writes per day are rates of bytes as well, the latter another one on each drive.
#[test]
fn writes_are_given_by_the_second_by_the_day_or_in_drive_writes() {
    let life = |drives: &[&str], writes: &str| {
        let args = ["--writes", writes, "--seeds", "1", "--runtime", "50ms"];
        let found = json(&[&["life"], drives, &args[..]].concat());
        let answers = found["answers"].as_array().expect("answers").clone();
        let asked = |answer: &Value| answer["load"]["asked_mb_s"].as_f64().expect("a rate");
        answers.iter().map(asked).collect::<Vec<f64>>()
    };
    let a_day = life(&["950pro-256"], "8.64TB/day")[0];
    assert!((a_day - 100.0).abs() < 1e-9, "{a_day}");
    let rates = life(&["950pro-256", "p4800x-375"], "2DWPD");
    let of = |gb: f64| 2.0 * gb * 1e3 / 86_400.0;
    assert!((rates[0] / of(256.06) - 1.0).abs() < 0.001, "{rates:?}");
    assert!((rates[1] / of(375.08) - 1.0).abs() < 0.001, "{rates:?}");
    for wrong in ["2TB", "1TB/week", "0DWPD", "9TB/s"] {
        let output = drivelab(&["life", "950pro-256", "--writes", wrong]);
        assert_eq!(output.status.code(), Some(2), "{wrong}");
        assert!(text(&output.stderr).contains("--writes"), "{wrong}");
    }
}

/// Makers rate data-centre drives by JESD219's enterprise workload: by its own counter, a drive under that load ends
/// when its rated bytes are written.
#[test]
fn a_data_centre_drive_under_the_load_of_its_rating_ends_at_its_rating() {
    let rated = ["p4610-1600", "d7-p5600-1600", "p3700-1600", "9100max-2400"];
    let load = ["--load", "jesd219", "--seeds", "1", "--runtime", "100ms"];
    let found = json(&[&["life"], &rated[..], &load].concat());
    let answers = found["answers"].as_array().expect("answers");
    assert_eq!(answers.len(), rated.len());
    for answer in answers {
        let part = &answer["parts"][0];
        let rating = part["written"]["years_to_rating"].as_f64().expect("rated");
        let counter = part["passes"][0]["day"].as_f64().expect("it wears") / 365.0;
        let ratio = counter / rating;
        assert!((ratio - 1.0).abs() < 0.05, "{}: {ratio}", answer["drive"]);
    }
}

/// A write amplification below 1 is impossible, so no rating may presuppose one.
#[test]
fn no_rating_presupposes_less_than_one_byte_of_nand_for_a_byte() {
    let drives = drivelab(&["drives", "--json"]);
    let drives: Value = serde_json::from_slice(&drives.stdout).expect("JSON");
    let drives = drives["drives"].as_array().expect("a list").iter();
    let names: Vec<&str> = drives.filter_map(|drive| drive["id"].as_str()).collect();
    assert!(names.len() > 40, "{names:?}");
    let found = json(&[&["life"], &names[..]].concat());
    let answers = found["answers"].as_array().expect("answers");
    let parts = answers
        .iter()
        .flat_map(|answer| answer["parts"].as_array().expect("parts"));
    let cycles = parts
        .filter_map(|part| Some((part, part["cycles"]["rated_write_amplification"].as_f64()?)));
    let cycles: Vec<(&Value, f64)> = cycles.collect();
    assert!(cycles.len() > 20);
    for (part, amplification) in cycles {
        assert!(amplification > 1.5, "{}: {amplification}", part["drive"]);
    }
}

fn seed(name: &str) -> String {
    format!(
        "{}/../../fuzz/seeds/smart/{name}",
        env!("CARGO_MANIFEST_DIR")
    )
}

/// Data that could not be read matters more than wear.
#[test]
fn media_errors_of_a_real_drive_come_first() {
    let healthy = std::fs::read_to_string(seed("smartctl-nvme.json")).expect("a seed");
    let found = healthy.replace("\"media_errors\": 0", "\"media_errors\": 431");
    assert_ne!(healthy, found);
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let path = folder.path().join("s.json");
    std::fs::write(&path, found).expect("a folder of our own");
    let output = drivelab(&["life", "--smart", path.to_str().expect("UTF-8")]);
    let first = text(&output.stdout).lines().next().unwrap_or_default();
    assert!(
        first.contains(" has reported 431 media errors. "),
        "{first}"
    );
    assert!(first.contains("4 years"), "{first}");
}

/// Heat and few spare blocks are in the first line as well; a healthy drive has none of these words.
#[test]
fn heat_and_few_spare_blocks_of_a_real_drive_come_first() {
    let healthy = std::fs::read_to_string(seed("smartctl-nvme.json")).expect("a seed");
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let path = folder.path().join("s.json");
    let first_line = |changes: &[(&str, &str)]| {
        let mut found = healthy.clone();
        for (from, to) in changes {
            assert!(found.contains(from), "{from}");
            found = found.replace(from, to);
        }
        std::fs::write(&path, found).expect("a folder of our own");
        let output = drivelab(&["life", "--smart", path.to_str().expect("UTF-8")]);
        let lines = text(&output.stdout).lines().next().unwrap_or_default();
        assert!(lines.chars().count() <= 160, "{lines}");
        lines.to_owned()
    };
    let name = "Samsung SSD 980 PRO 1TB …001A";
    let plain = first_line(&[]);
    assert!(plain.starts_with(&format!("{name} ends in ")), "{plain}");
    let hot = ("\"temperature\": 41", "\"temperature\": 83");
    let current = ("\"current\": 41", "\"current\": 83");
    let warned = ("\"critical_warning\": 0", "\"critical_warning\": 2");
    let spare = ("\"available_spare\": 100", "\"available_spare\": 14");
    let critical = ("\"critical_comp_time\": 0", "\"critical_comp_time\": 95");
    let warm = ("\"warning_temp_time\": 0", "\"warning_temp_time\": 20000");
    let brief = ("\"warning_temp_time\": 0", "\"warning_temp_time\": 20");
    let errors = ("\"media_errors\": 0", "\"media_errors\": 431");
    for (changes, expected) in [
        (vec![hot, current], "is at 83 °C."),
        (
            vec![hot, current, warned],
            "is at 83 °C, outside its thresholds.",
        ),
        (
            vec![spare],
            "has 14 % of its spare blocks left (threshold 10 %).",
        ),
        (
            vec![critical],
            "was above its critical temperature for 95 min",
        ),
        (
            vec![warm],
            "was above its warning temperature for 13 d 21 h.",
        ),
        (
            vec![errors, hot, current],
            "has reported 431 media errors; is at 83 °C.",
        ),
    ] {
        let line = first_line(&changes);
        assert!(line.starts_with(&format!("{name} {expected}")), "{line}");
        assert!(line.contains("4 years"), "{line}");
    }
    // 20 of 1,051,200 minutes.
    assert_eq!(first_line(&[brief]), plain);
}

/// Nobody writes checkpoints without pause, so the years are at a rate that no drive sees; a mean rate has no such words.
#[test]
fn years_at_a_load_of_bursts_are_without_pause() {
    let line = |more: &[&str]| {
        let asked = [
            "life",
            "d7-p5600-1600",
            "--seeds",
            "1",
            "--runtime",
            "100ms",
        ];
        let output = drivelab(&[&asked, more].concat());
        let line = text(&output.stdout).lines().next().unwrap_or_default();
        line.to_owned()
    };
    let burst = line(&["--load", "checkpoint-save"]);
    assert!(burst.contains(" at this load without pause: "), "{burst}");
    let mean = line(&["--writes", "20MB/s", "--rw", "write", "--bs", "1m"]);
    assert!(mean.contains(" at this load: "), "{mean}");
}

/// The real drive that ends first is first in the sentence, the table, JSON and CSV. 200 of 600 TB in 2 years leave 4
/// years; Percentage Used 50 in a year leaves one year.
#[test]
fn life_of_real_drives_names_the_one_that_ends_first() {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let csv = folder.path().join("fleet.csv");
    let names = [
        "smartctl-nvme.json",
        "smartctl-sata.json",
        "smartctl-sas.json",
        "nvme-cli.txt",
        "fleet-array.json",
    ];
    let files = names.map(seed);
    let files = files.each_ref().map(String::as_str);
    let args = [
        &[
            "life",
            "--csv",
            csv.to_str().expect("UTF-8"),
            "--tbw",
            "870=300TB",
            "--smart",
        ],
        &files[..],
    ]
    .concat();
    let output = drivelab(&args);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    let first = said.lines().next().expect("a line");
    assert_eq!(
        first,
        "TESTMAKER B …0002 ends first of 7, in 1 year (0.961 to 1.04) powered on at its mean rate: Percentage Used is 50 % after 8760 hours. 1 other drive has warnings."
    );
    assert!(first.chars().count() <= 160);
    for table in said.split("\n\n").skip(1).take(2) {
        let fits = |line: &str| line.chars().count() <= 80;
        assert!(table.lines().all(fits), "{table}");
    }
    assert!(
        said.contains("rated 600 TB by 980pro-1000 of this catalogue (same model number)"),
        "{said}"
    );
    assert!(said.contains("Left out: TESTDISK 4TB"), "{said}");
    let rows = std::fs::read_to_string(&csv).expect("a CSV file");
    assert_eq!(rows.lines().count(), 8, "{rows}");

    let found = json(&args);
    let drives = found["answers"].as_array().expect("answers");
    let one = |model: &str| {
        let named = |drive: &&Value| drive["model"] == model;
        drives.iter().find(named).expect("a drive")
    };
    let samsung = one("Samsung SSD 980 PRO 1TB");
    assert_eq!(samsung["to_rating"]["years"], 4.0);
    assert_eq!(samsung["ends_by"], "rating");
    assert_eq!(samsung["rating"]["of"], "980pro-1000");
    // 60 of 300 TB in 1.5 years leave 6 years.
    assert_eq!(one("Samsung SSD 870 EVO 1TB")["to_rating"]["years"], 6.0);
    assert!(one("TESTVEND SAS SSD 1600")["rating"].is_null());
    assert!(
        found.to_string().find("S0TEST0N").is_none(),
        "a whole serial number"
    );
}

#[test]
fn life_of_real_drives_has_a_verdict_only_if_years_are_given() {
    let file = seed("smartctl-nvme.json");
    let drives = |more: &[&str]| drivelab(&[&["life", "--smart", &file], more].concat());
    assert_eq!(drives(&[]).status.code(), Some(0));
    assert_eq!(drives(&["--years", "3.9"]).status.code(), Some(0));
    let short = drives(&["--years", "5"]);
    assert_eq!(short.status.code(), Some(3));
    assert!(text(&short.stderr).contains("…001A: not 5 years"));
    let own = drives(&["--tbw", "150TB"]);
    let first = text(&own.stdout).lines().next().unwrap_or_default();
    assert_eq!(
        first,
        "Samsung SSD 980 PRO 1TB …001A is past its rating: 200 TB of 150 TB (--tbw) written."
    );
}

/// Unreadable files are listed with their reasons in every form; the others are answered, and the exit code is 2.
#[test]
fn unreadable_files_do_not_hide_the_other_drives() {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let csv = folder.path().join("fleet.csv");
    let csv = csv.to_str().expect("UTF-8");
    let (good, bad) = (seed("smartctl-nvme.json"), seed("no-permission.json"));
    let args = ["life", "--csv", csv, "--smart", &bad, "missing.json", &good];
    let output = drivelab(&args);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stdout);
    let first = said.lines().next().unwrap_or_default();
    assert!(first.contains("001A ends in 4 years"), "{first}");
    assert!(first.ends_with("2 could not be read."), "{first}");
    for all in [said, text(&output.stderr)] {
        assert!(
            all.contains("missing.json") && all.contains("no-permission.json"),
            "{all}"
        );
    }
    let rows = std::fs::read_to_string(csv).expect("a CSV file");
    assert_eq!(rows.matches("could not be read").count(), 2, "{rows}");
    let found = json(&args);
    assert_eq!(found["answers"].as_array().map(Vec::len), Some(1));
    let unreadable = found["asked"]["unreadable"].as_array().expect("a list");
    assert_eq!(unreadable.len(), 2, "{unreadable:?}");
}

#[test]
fn life_of_real_drives_says_all_that_is_wrong_with_the_files() {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let whole = std::fs::read_to_string(seed("smartctl-nvme.json")).expect("a seed");
    let cut = folder.path().join("cut.json");
    std::fs::write(&cut, &whole[..900]).expect("a folder of our own");
    let cut = cut.to_str().expect("UTF-8");
    let output = drivelab(&[
        "life",
        "--smart",
        cut,
        "missing.json",
        &seed("no-permission.json"),
    ]);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    for part in [
        "cut.json",
        "incomplete",
        "missing.json",
        "Permission denied",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    for wrong in [
        &["life", "--tbw", "600TB", "p4800x-375"][..],
        &["life", "p4800x-375", "--smart", cut],
        &[
            "life",
            "--smart",
            &seed("nvme-cli-1.json"),
            "--tbw",
            "870=600TB",
        ],
        &["life", "--smart", &seed("nvme-cli-1.json"), "--tbw", "600"],
        &[
            "life",
            "--smart",
            &seed("nvme-cli-1.json"),
            "--set",
            "endurance=1TB",
        ],
    ] {
        assert_eq!(drivelab(wrong).status.code(), Some(2), "{wrong:?}");
    }
}

/// At a rate, all drives are asked for the same, so their writes are equal: by hand, 30 % of 8 k IOPS of 8 KiB and the
/// log.
#[test]
fn life_at_a_rate_asks_all_drives_for_the_same() {
    let drives = ["p4800x-375", "950pro-256"];
    let short = ["--load", "oltp", "--seeds", "1", "--runtime", "200ms"];
    let rates = |rest: &[&str]| {
        let found = json(&[&["life"], &drives[..], &short, rest].concat());
        let answers = found["answers"].as_array().expect("answers").clone();
        let of = |answer: &Value| answer["parts"][0]["written"]["mb_s"][0].as_f64();
        answers
            .iter()
            .map(|it| of(it).expect("a rate"))
            .collect::<Vec<f64>>()
    };
    let own = rates(&[]);
    assert!(own[0] > 2.0 * own[1], "{own:?}");
    let paced = rates(&["--rate", "2k"]);
    assert!((paced[0] / paced[1] - 1.0).abs() < 0.1, "{paced:?}");
    // Of 33 I/Os in flight, 9.6 are writes of pages and 1 is of the log.
    let by_hand = 2000.0 * 10.6 / 33.0 * 8192.0 * 1e-6;
    assert!(
        (paced[0] / by_hand - 1.0).abs() < 0.1,
        "{paced:?} {by_hand}"
    );

    let args = [&["life", "950pro-256"], &short[..], &["--rate", "900k"]].concat();
    let slow = drivelab(&args);
    let first = text(&slow.stdout).lines().next().expect("a line");
    assert!(first.contains("It completes only "), "{first}");
    assert!(first.chars().count() <= 160, "{first}");
    for wrong in [
        &["life", "950pro-256", "--rate", "2k"][..],
        &["life", "950pro-256", "--rate", "2k", "--writes", "1MB/s"],
        &["life", "950pro-256", "--load", "oltp", "--rate", "fast"],
    ] {
        let output = drivelab(wrong);
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
        assert!(text(&output.stderr).contains("--rate"), "{wrong:?}");
    }
}
