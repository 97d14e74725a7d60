//! Tests of `choose --like`, and of the rates that the program selects.

use crate::rig::{drivelab, text};

/// Returns the first line of an answer.
fn first_line(args: &[&str]) -> String {
    let output = drivelab(args);
    let said = text(&output.stdout);
    said.lines().next().unwrap_or_default().to_owned()
}

/// A replacement runs at a rate that the old drive handles, the line says what it lacks, and nothing advises to take the
/// drive that is replaced.
#[test]
fn a_replacement_is_judged_at_half_of_the_old_drive() {
    let rest = "--like p4800x-375 --load oltp --seeds 1 --runtime 50ms";
    let of = |drives: &str| {
        let command = format!("choose {drives} {rest}");
        let output = drivelab(&command.split(' ').collect::<Vec<_>>());
        (text(&output.stdout).to_owned(), output.status.code())
    };
    let (said, code) = of("d7-p5810-800 fl6-1600");
    let first = said.lines().next().expect("an answer");
    assert!(first.chars().count() <= 160, "{first}");
    assert!(first.starts_with("To replace p4800x-375 at "), "{first}");
    assert!(first.contains(" IOPS, half of its maximum: "), "{first}");
    assert!(
        first.contains("p99 ") && first.contains(" times"),
        "{first}"
    );
    assert!(
        !said.contains("Take ") && !said.contains("lack as little"),
        "{said}"
    );
    assert_eq!(code, Some(0));
    // A disk completes a thousandth of that rate.
    let (said, code) = of("wd6001fzwx");
    assert!(
        said.starts_with("No drive that ran replaces p4800x-375 at "),
        "{said}"
    );
    assert_eq!(code, Some(3));
}

/// A limit on reads raises the rate that the program selects: nothing contradicts an option that nobody gave.
#[test]
fn a_limit_of_reads_sets_the_rate_that_it_needs() {
    let of = |rest: &str| {
        let command = format!("choose d7-p5810-800 {rest} --load oltp --seeds 1 --runtime 50ms");
        let output = drivelab(&command.split(' ').collect::<Vec<_>>());
        let said = text(&output.stdout).to_owned();
        assert_ne!(output.status.code(), Some(2), "{}", text(&output.stderr));
        said
    };
    let said = of("--like p4800x-375 --slo read.iops>150k");
    let first = said.lines().next().expect("an answer");
    assert!(first.contains(" replace"), "{first}");
    assert!(
        first.contains("at 22") && !first.contains("half"),
        "{first}"
    );
    of("--slo iops>50k,read.iops>40k");
}

/// Jobs with a rate do not run at the drive's maximum.
#[test]
fn a_rate_of_the_jobs_is_not_a_maximum() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("a.fio");
    let of = |also: &str, options: &[&str]| {
        let job = format!("[a]\nrw=randread\nbs=4k\nruntime=1\ntime_based\n{also}\n");
        std::fs::write(&file, job).expect("a job file");
        let file = file.display().to_string();
        let asked = [
            &["choose", "p4801x-375", "--seeds", "1", "--job", &file],
            options,
        ]
        .concat();
        first_line(&asked)
    };
    for pace in ["rate_iops=1000", "rate=4m", "thinktime=1000"] {
        let line = of(pace, &[]);
        assert!(line.contains(" at the rate of the jobs"), "{pace}: {line}");
        let line = of(pace, &["--like", "p4800x-375"]);
        assert!(
            line.contains(" at the rate of the jobs: "),
            "{pace}: {line}"
        );
    }
    assert!(of("", &[]).contains(" at its own maximum"));
    let some = of("[b]\nrw=randread\nbs=4k\nrate_iops=10\nruntime=1", &[]);
    assert!(
        !some.contains("maximum") && !some.contains("rate of"),
        "{some}"
    );
}
