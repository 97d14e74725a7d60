//! Tests of the answer on drives in use: first lines, widths and damaged files.

use super::*;
use study::decide::fleet::{UserRating, fleet};
use study::smart;
use text::problem::Problems;

/// Returns all samples of the fuzz target, by name.
fn samples() -> Vec<Vec<u8>> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/smart");
    let entries = std::fs::read_dir(folder).expect("seeds");
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let read = paths
        .iter()
        .map(|path| std::fs::read(path).expect("a seed"));
    read.collect()
}

/// Returns everything that is printed for a file; `None` if it is rejected.
fn printed(bytes: &[u8]) -> Option<[String; 3]> {
    let dump = smart::read("a/folder/with/a/long/name/smart.json", bytes).ok()?;
    let rating = UserRating {
        model: None,
        bytes: 6e14,
    };
    let found = fleet(vec![dump], Problems::default(), &[rating], &[]).ok()?;
    assert!(!json(&found, "").to_string().is_empty());
    assert!(!crate::csv::fleet(&found).is_empty());
    let notes = method(&found, "", None);
    Some([
        answer(&found),
        super::super::table::text_of(&tables(&found), None),
        notes,
    ])
}

fn fits(bytes: &[u8]) -> bool {
    let Some([first, table, notes]) = printed(bytes) else {
        return false;
    };
    assert!(first.chars().count() <= LINE, "{first}");
    for line in table.lines() {
        assert!(line.chars().count() <= 80, "{table}");
    }
    let all = [first, table, notes].concat();
    assert!(
        !all.contains(|c: char| c.is_control() && c != '\n'),
        "{all}"
    );
    true
}

/// An end that is reached already stays in the line after media errors, however long the names are.
#[test]
fn an_end_that_is_reached_follows_media_errors() {
    let drive = r#"{"device":{"name":"/dev/nvme0","protocol":"NVMe"},"model_name":"TESTMAKER DATACENTER SERIES 9000 NVME","serial_number":"AAAA0001","smartctl":{"exit_status":0},"nvme_smart_health_information_log":{"percentage_used":5,"data_units_written":1300000000,"power_on_hours":8760,"temperature":30,"available_spare":100,"media_errors":431}}"#;
    let all = format!("[{}]", [drive; 12].join(","));
    let [first, ..] = printed(all.as_bytes()).expect("twelve drives");
    assert!(
        first.contains(" has reported 431 media errors. "),
        "{first}"
    );
    assert!(first.contains("is past its"), "{first}");
    assert!(first.chars().count() <= LINE, "{first}");
}

/// Files that are truncated, or have changed digits, quotes and parts, are rejected or printed within the limits.
#[test]
fn damaged_files_are_refused_or_printed_within_their_bounds() {
    let mut state = 1u64;
    let mut random = move |below: usize| {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 33) as usize % below.max(1)
    };
    let (mut read, mut refused) = (0, 0);
    for sample in samples() {
        for round in 0..400 {
            let mut bytes = sample.clone();
            for _ in 0..=random(6) {
                let at = random(bytes.len());
                match random(5) {
                    0 if round % 2 == 0 => bytes.truncate(at.max(1)),
                    0 | 1 => {
                        let digits = bytes.iter_mut().skip(at).take(24);
                        digits
                            .filter(|it| it.is_ascii_digit())
                            .for_each(|it| *it = b'9');
                    }
                    2 => bytes[at] = [b'"', b'-', b'.', b'{', 0x1b, 0xff, b'e'][random(7)],
                    3 => {
                        let to = (at + random(40)).min(bytes.len());
                        let copy = bytes[at..to].to_vec();
                        let place = random(bytes.len());
                        bytes.splice(place..place, copy);
                    }
                    _ => {
                        let to = (at + random(40)).min(bytes.len());
                        bytes.drain(at..to);
                    }
                }
                if bytes.is_empty() {
                    break;
                }
            }
            match fits(&bytes) {
                true => read += 1,
                false => refused += 1,
            }
        }
    }
    assert!(
        read > 500 && refused > 500,
        "{read} read, {refused} refused"
    );
}

fn first_line(problems: Problems, dumps: &[&str]) -> String {
    let read = |text: &&str| smart::read("smart.json", text.as_bytes()).expect("a drive");
    let dumps = dumps.iter().map(read).collect();
    let rating = UserRating {
        model: None,
        bytes: 6e14,
    };
    answer(&fleet(dumps, problems, &[rating], &[]).expect("drives"))
}

#[test]
fn the_first_line_says_that_a_drive_has_failed() {
    let log = |warning: u8, spare: u8| {
        format!(
            r#"{{"critical_warning":{warning},"percent_used":9,"data_units_written":195312500,
            "power_on_hours":8760,"avail_spare":{spare},"spare_thresh":10}}"#
        )
    };
    for (warning, spare, expected) in [
        (8, 100, "is read-only: it accepts no more writes."),
        (9, 4, "is read-only: it accepts no more writes."),
        (
            0,
            4,
            "has failed by its own report: 4 % of its spare blocks are left",
        ),
        (0, 100, "ends in 5 years powered on"),
    ] {
        let said = first_line(Problems::default(), &[&log(warning, spare)]);
        assert!(said.contains(expected), "{said}");
        assert_eq!(
            said.contains(" ends"),
            warning == 0 && spare == 100,
            "{said}"
        );
    }
    let worn = first_line(
        Problems::default(),
        &[&log(0, 100), &log(8, 100), &log(0, 4)],
    );
    assert!(worn.ends_with("So has 1 more drive."), "{worn}");
    let ata = r#"{"smartctl":{},"model_name":"A","smart_status":{"passed":false},
        "ata_device_statistics":{"pages":[{"table":[{"name":"Percentage Used Endurance Indicator","value":9}]}]}}"#;
    let said = first_line(Problems::default(), &[ata]);
    assert!(said.contains("self-assessment is not passed"), "{said}");
}

#[test]
fn the_first_line_counts_what_could_not_be_read() {
    let log = r#"{"percent_used":9,"critical_warning":0,"power_on_hours":8760}"#;
    let said = first_line(Problems::whole("cut.json", "is incomplete"), &[log]);
    assert!(said.ends_with(" 1 could not be read."), "{said}");
}

#[test]
fn names_of_drives_lose_the_maker_before_the_capacity() {
    assert_eq!(
        short_model("Samsung SSD 980 PRO 1TB", 30),
        "Samsung SSD 980 PRO 1TB"
    );
    assert_eq!(
        short_model("Samsung SSD 980 PRO 1TB", 20),
        "Samsung 980 PRO 1TB"
    );
    assert_eq!(short_model("Samsung SSD 980 PRO 1TB", 17), "980 PRO 1TB");
    assert_eq!(
        short_model("SAMSUNG MZQL2960HCJR-00A07", 12),
        "…0HCJR-00A07"
    );
}
