//! Pools as a user names them: used as drives in every subcommand, shown with their durability guarantee, refused
//! where unsupported.

use serde_json::Value;

use crate::rig::{drivelab, text};

fn json(args: &[&str]) -> Value {
    let output = drivelab(args);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

const RUN: [&str; 7] = [
    "--name=a",
    "--ioengine=libaio",
    "--direct=1",
    "--iodepth=32",
    "--rw=randread",
    "--number_ios=20000",
    "--output-format=json",
];

/// A stripe of the P3608's two controllers equals the RAID-0 in the catalogue: the same output, to the byte.
#[test]
fn a_stripe_does_what_a_raid_0_of_the_same_drives_does() {
    let run = |drive: &str| {
        let output = drivelab(&[&["run", drive, "--bs=64k", "--size=64g"], &RUN[..]].concat());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        text(&output.stdout).replace(drive, "DRIVE")
    };
    assert_eq!(run("p3608-1600"), run("stripe(2*p3608-800; chunk=512k)"));
}

#[test]
fn a_pool_tells_its_tree_and_what_it_promises() {
    let shown = drivelab(&["show", "s2-slog"]);
    let shown = text(&shown.stdout);
    let optavar = "optavar: 74.0 GiB, acknowledged is durable, lost if nda.0 and nda.1";
    assert!(shown.lines().any(|line| line == optavar), "{shown}");
    let pool = &json(&["show", "s2-slog", "--json"])["drives"][0];
    let volumes = pool["pool"]["volumes"].as_array().expect("volumes");
    assert_eq!(volumes.len(), 2);
    assert_eq!(volumes[1]["lost_if"][0][1], "nda.1");
    let shares = pool["pool"]["capacity"].as_array().expect("where it goes");
    let told: u64 = shares.iter().filter_map(|it| it["bytes"].as_u64()).sum();
    assert_eq!(told, 2 * 99_999_997_952 + 10 * 800_000_000_000);
}

/// Returns the output of `run` for random I/O on a mirror, with the number of lines of the table over time without its
/// header.
fn mirrored(way: &str) -> (Value, usize) {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let table = folder.path().join("over-time.csv");
    let table = table.to_str().expect("UTF-8");
    let rw = format!("--rw=rand{way}");
    let args = ["run", "mirror(2*p4801x-100)", "--bs=4k", "--name=a"];
    let more = [
        "--direct=1",
        &rw,
        "--number_ios=4096",
        "--output-format=json+",
        "--over-time",
        table,
        "--every=10ms",
    ];
    let told = json(&[&args[..], &more[..]].concat());
    let written = std::fs::read_to_string(table).expect("a table");
    let mut lines = written.lines();
    let head = lines.next().expect("a head");
    assert!(head.starts_with("drive,seconds,read_iops,"), "{head}");
    (told, lines.count())
}

/// Returns the sum of a column over time.
fn sum_over_time(told: &Value, column: &str) -> f64 {
    let values = told["over_time"][column].as_array().expect(column);
    values.iter().filter_map(Value::as_f64).sum()
}

/// Each member of a mirror receives all writes, and reads are distributed.
#[test]
fn a_run_tells_what_each_member_did() {
    let moved = |way: &str, key: &str| -> [u64; 2] {
        let (told, lines) = mirrored(way);
        let steps = told["over_time"]["seconds"].as_array().expect("times");
        assert_eq!(lines, steps.len());
        let ios = sum_over_time(&told, &format!("{way}_iops")) * 0.01;
        assert_eq!(ios.round(), 4096.0, "{way}");
        let members = &told["members"];
        assert_eq!(members[1]["name"], "p4801x-100.1");
        assert!(members[0]["watts"].as_f64() > Some(1.0));
        let busy = members[0]["busy"].as_f64().expect("a share");
        assert!((1.0..100.0).contains(&busy), "{busy}");
        [0, 1].map(|index| members[index][key].as_u64().expect("bytes"))
    };
    let written = moved("write", "write_bytes");
    assert!(
        written.iter().all(|bytes| *bytes >= 16 << 20),
        "{written:?}"
    );
    assert_eq!(moved("read", "read_bytes"), [8 << 20; 2]);
}

#[test]
fn what_was_written_to_members_adds_up_over_time() {
    let (told, _) = mirrored("write");
    let members = told["members"].as_array().expect("members");
    let sum: f64 = { members.iter() }
        .filter_map(|member| member["write_bytes"].as_f64())
        .sum();
    // Figures have six digits.
    let over_time = sum_over_time(&told, "back_bytes_written");
    assert!((over_time / sum - 1.0).abs() < 1e-5, "{over_time} {sum}");
    assert!(members[0]["write_amplification"].as_f64() >= Some(1.0));
}

#[test]
fn members_are_told_in_the_normal_output() {
    let told = drivelab(&[
        "run",
        "mirror(2*p4801x-100)",
        "--rw=randread",
        "--direct=1",
        "--number_ios=4096",
        "--name=a",
    ]);
    let told = text(&told.stdout).to_owned();
    assert!(
        told.contains("\n  p4801x-100.1: io=8192KiB/0B, busy="),
        "{told}"
    );
}

#[test]
fn a_volume_is_a_window_of_its_own() {
    let disk = |args: &[&str]| json(&[&["run"], args, &RUN[..]].concat())["disk_util"][0].clone();
    let volume = disk(&["s2-slog", "--volume", "optavar", "--bs=4k"]);
    assert_eq!(volume["name"], "s2-slog/optavar");
    assert_eq!(volume["read_ios"], 20_000);
    let none = drivelab(&[
        "run",
        "s2-slog",
        "--volume",
        "optvar",
        "--rw=read",
        "--name=a",
    ]);
    assert_eq!(none.status.code(), Some(2));
    assert!(text(&none.stderr).contains("did you mean `optavar`?"));
}

#[test]
fn every_verb_that_simulates_takes_a_pool_and_the_others_say_why_not() {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let page = folder.path().join("review.html");
    let page = page.to_str().expect("UTF-8");
    let pool = "mirror(2*ram-disk)";
    let trace = folder.path().join("one.log");
    std::fs::write(
        &trace,
        "fio version 2 iolog\n/dev/x add\n/dev/x open\n/dev/x write 0 4096\n",
    )
    .expect("a folder of our own");
    let trace = trace.to_str().expect("UTF-8");
    let job = folder.path().join("a.fio");
    std::fs::write(&job, "[a]\ndirect=1\nrw=randread\nnumber_ios=1000\n")
        .expect("a folder of our own");
    let job = job.to_str().expect("UTF-8");
    for args in [
        vec!["show", pool],
        vec!["replay", trace, pool],
        vec![
            "review",
            pool,
            "ram-disk",
            "--only-jobs",
            "--job",
            job,
            "--output",
            page,
        ],
    ] {
        let output = drivelab(&args);
        assert_eq!(
            output.status.code(),
            Some(0),
            "{args:?}: {}",
            text(&output.stderr)
        );
    }
    let written = std::fs::read_to_string(page).expect("a page");
    let promise = "acknowledged is durable, lost if ram-disk.0 and ram-disk.1";
    assert!(written.contains(pool) && written.contains(promise));
    let output = drivelab(&["fit", pool, "--measured", job, "--output", page]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("mirror(2*ram-disk): a pool"), "{said}");
}

#[test]
fn intervals_that_no_second_has_a_whole_number_of_are_refused() {
    let args = [
        "run",
        "ram-disk",
        "--rw=read",
        "--name=a",
        "--every",
        "300ms",
    ];
    let refused = drivelab(&args);
    assert_eq!(refused.status.code(), Some(2));
    let said = text(&refused.stderr);
    assert!(said.contains("must divide one second evenly"), "{said}");
}
