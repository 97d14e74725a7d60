//! First lines of the deciding subcommands: short, and about the same drive whatever the seed.

use std::collections::BTreeSet;

use crate::rig::{drivelab, drivelab_in, text};

/// Maximum characters of a first line.
const LENGTH: usize = 160;

/// A pool whose expression is longer than a first line may be.
const POOL: &str = "intent-log(main=concat(raidz(3*exos-x18-16tb; parity=1), raidz(3*exos-x18-16tb; parity=1)), log=mirror(2*p4801x-100))";

/// Returns the lines before the first table.
fn answers(args: &[&str]) -> Vec<String> {
    let output = drivelab(args);
    assert_ne!(output.status.code(), Some(2), "{}", text(&output.stderr));
    let lines = text(&output.stdout).lines();
    lines
        .take_while(|line| !line.is_empty())
        .map(String::from)
        .collect()
}

/// Returns the first line.
fn first_line(args: &[&str]) -> String {
    let lines = answers(args);
    let first = lines.first().expect("an answer").clone();
    assert!(first.chars().count() <= LENGTH, "{args:?}: {first}");
    first
}

fn words(command: &str) -> Vec<&str> {
    command.split(' ').collect()
}

#[test]
fn first_lines_are_short() {
    let many = "p4800x-375 950pro-256 d7-p5600-1600 p4610-1600 sas-ssd-800 wd6001fzwx 9100max-2400 p3700-1600";
    let quick = "--seeds 1 --runtime 2ms";
    for command in [
        format!("life {many}"),
        format!("life {many} --load oltp {quick}"),
        format!("life {many} --writes 3GB/s --seeds 1"),
        format!("choose {many} --load oltp {quick}"),
        format!("choose {many} --load oltp {quick} --by years"),
        format!("choose {many} --load oltp {quick} --slo p99<1us,read.p99.9<2us,iops>10"),
        format!("choose {many} --load web {quick} --rate 500 --slo read.p99<100ms"),
        format!("choose {many} --load oltp {quick} --like p4800x-375"),
        format!("check etcd {many} --seeds 1"),
        String::from("check kafka p4800x-375 950pro-256 --seeds 1"),
        String::from(
            "max p4800x-375 p4610-1600 --slo p99<1ms,read.p99<900us,iops>10M --seeds 1 --ios 5000",
        ),
        String::from(
            "max p4800x-375 --rw randwrite --slo p99<1us,write.p99<1us --seeds 1 --ios 5000",
        ),
        String::from(
            "size slog p4801x-100 --main 950pro-256 --load wal --seeds 1 --slo p99<1us --inbound 10GbE --runtime 1s",
        ),
    ] {
        let lines = answers(&words(&command));
        let drives = match command.starts_with("life") {
            true => 8,
            false => 1,
        };
        for line in &lines[..drives] {
            assert!(line.chars().count() <= LENGTH, "{command}: {line}");
        }
    }
    for rest in [
        "--load oltp --seeds 1 --runtime 2ms",
        "--load wal --seeds 1 --runtime 2ms",
    ] {
        first_line(&[&["life", POOL], &words(rest)[..]].concat());
        first_line(&[&["choose", POOL, "950pro-256"], &words(rest)[..]].concat());
    }
}

#[test]
fn the_first_line_on_a_run_names_what_bound_it() {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let run = "run p4800x-375 --power-limit 12W --name=a-run-with-quite-a-long-name-of-its-own --rw=randwrite --bs=4k \
               --ioengine=libaio --direct=1 --iodepth=64 --time_based --runtime=50ms --output-format=json --output=r.json";
    let output = drivelab_in(folder.path(), &run.split_whitespace().collect::<Vec<_>>());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let file = folder.path().join("r.json").display().to_string();
    for drive in [None, Some("p4800x-375")] {
        let args: Vec<&str> = ["explain", &file]
            .into_iter()
            .chain(drive)
            .chain(["--seeds", "1"])
            .collect();
        let first = first_line(&args);
        assert!(first.contains(": bound by "), "{first}");
        assert_eq!(
            first.contains("; the model agrees"),
            drive.is_some(),
            "{first}"
        );
    }
}

/// Returns the drives that a first line names, of these.
fn named<'a>(line: &str, drives: &[&'a str]) -> BTreeSet<&'a str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let words: BTreeSet<&str> = line.split(|c| !is_part(c)).collect();
    drives
        .iter()
        .copied()
        .filter(|drive| words.contains(drive))
        .collect()
}

/// With other seeds the line names the same drive, or the same drives that the runs do not distinguish.
#[test]
fn a_choice_does_not_depend_on_the_seed() {
    let drives = ["p4800x-375", "p3700-1600", "950pro-256", "d7-p5600-1600"];
    for load in ["oltp", "web", "wal", "vector-search"] {
        let of_seed = |seed: &str| {
            let rest = ["--load", load, "--runtime", "50ms", "--seed", seed];
            let line = first_line(&[&["choose"], &drives[..], &rest].concat());
            (named(&line, &drives), line)
        };
        let (first, line) = of_seed("1");
        assert!(!first.is_empty(), "{load}: {line}");
        for seed in ["11", "21", "31"] {
            let (others, other) = of_seed(seed);
            assert_eq!(first, others, "{load}:\n{line}\n{other}");
        }
    }
}

/// Questions that have no good answer: one drive alone, hard disks, volumes without a rating, worn drives, drives too
/// small for the load, limits that nothing meets. Each has a short first line and narrow tables, or is refused.
#[test]
fn hostile_questions_have_short_answers() {
    let drives = [
        "wd6001fzwx",
        "wd6001fzwx exos-x18-16tb",
        "optane-memory-16",
        "gp3 io2",
        "sas-ssd-800 980pro-1000",
        "mirror(2*p4801x-100) p4801x-100",
    ];
    let rest = [
        "choose --load oltp",
        "choose --load oltp --by years",
        "choose --load oltp --rate 300 --by watt",
        "choose --load kvcache --rate 900k",
        "choose --load wal --slo p99<1us,years>5,iops>10M",
        "choose --load oltp --age 6y",
        "choose --load oltp --percentage-used 120 --by years",
        "life --load oltp --percentage-used 120",
        "life --load oltp --rate 900k",
        "life --load web",
    ];
    let mut refused = 0;
    for drives in drives {
        for rest in rest {
            let command = rest.replacen(' ', &format!(" {drives} "), 1);
            let command = format!("{command} --seeds 1 --runtime 2ms");
            let output = drivelab(&words(&command));
            if output.status.code() == Some(2) {
                let said = text(&output.stderr);
                assert!(
                    said.starts_with("error: ") || said.contains("\nerror: "),
                    "{command}: {said}"
                );
                refused += 1;
                continue;
            }
            let said = text(&output.stdout);
            let first = said.lines().next().expect("an answer");
            assert!(first.chars().count() <= LENGTH, "{command}: {first}");
            assert!(!said.contains(" 0 s"), "{command}: {said}");
            assert!(!said.contains("of the 1 that"), "{command}: {said}");
            for line in said.lines().filter(|line| line.starts_with(' ')) {
                assert!(line.chars().count() <= 80, "{command}: {line}");
            }
        }
    }
    // Hard disks and volumes have no rating, so an age or a wear is refused.
    assert!((1..40).contains(&refused), "{refused}");
}

/// The page of `check` asks a question, and calls a limit by its side: etcd's is an upper one, vSAN's rating a lower
/// one.
#[test]
fn the_page_of_a_check_names_the_side_of_its_limits() {
    let folder = tempfile::tempdir().expect("a folder");
    let page = |software: &str| {
        let path = folder.path().join(format!("{software}.html"));
        let file = path.to_str().expect("a name");
        let drive = ["check", software, "p4800x-375", "--seeds", "1", "-o", file];
        let output = drivelab(&drive);
        std::fs::read_to_string(&path).unwrap_or_else(|_| panic!("{}", text(&output.stderr)))
    };
    let etcd = page("etcd");
    assert!(etcd.contains("<h1>Which drives meet the minimum of etcd</h1>"));
    assert!(
        etcd.contains("published maximum: 10 ms") && !etcd.contains("published minimum: 10 ms")
    );
    assert!(
        etcd.contains("IOPS of each drive"),
        "a heading with the field's word"
    );
    assert!(page("vsan").contains("published minimum: 7300 TB"));
}
