//! Crash tests of programs by one command, which records and checks. The programs are this test binary, run again.

use std::env;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use live::nbd::wire::command;
use tempfile::TempDir;

use crate::rig::{BLOCK, Client, SIZE};

/// Variable that chooses what [`orders`] does; without it, the test does nothing.
const PLANT: &str = "DRIVELAB_TEST_PLANT";

/// Number of orders.
const ORDERS: u64 = 4;

/// Each counted order must be present, and each acknowledged order must be counted.
const CHECK: &str = r#"byte() { od -An -tu1 -j $(($1 * 4096)) -N 1 "$DRIVELAB_DEVICE" | tr -d ' '; }
count=$(byte 0); n=1
while test $n -le $count; do
  test "$(byte $n)" = $n || { echo "corrupt: order $n of $count is not there"; exit 11; }
  n=$((n + 1))
done
while read n; do
  test $n -le $count || { echo "lost $n"; exit 10; }
done < "$DRIVELAB_ACKS""#;

/// The program under test: writes order N to block N, then the number of orders to block 0, with a flush after each.
/// Plants omit the first flush, or acknowledge before the second.
#[test]
fn orders() {
    let Ok(plant) = env::var(PLANT) else {
        return;
    };
    let variable = |name: &str| env::var(name).expect("drivelab sets it");
    let uri = variable("DRIVELAB_URI");
    let (export, socket) = uri.split_once("?socket=").expect("a Unix socket");
    assert!(export.starts_with("nbd+unix:///"), "{uri}");
    let mut client = Client::over(UnixStream::connect(socket).expect("it listens"));
    let mut done = |command, block, data: &[u8]| {
        client.send(command, block, data).expect("sent");
        client.reply().expect("an answer");
    };
    let report = |name: &str, number: u64| {
        let mut file = File::options().append(true).open(variable(name));
        let file = file.as_mut().expect("a pipe");
        writeln!(file, "{number}").expect("written");
    };
    for number in 1..=ORDERS {
        report("DRIVELAB_TRIES", number);
        done(command::WRITE, number, &[number as u8; BLOCK]);
        if plant != "no-flush-between" {
            done(command::FLUSH, 0, &[]);
        }
        done(command::WRITE, 0, &[number as u8; BLOCK]);
        if plant == "early-ack" {
            report("DRIVELAB_ACKS", number);
        }
        done(command::FLUSH, 0, &[]);
        if plant != "early-ack" {
            report("DRIVELAB_ACKS", number);
        }
    }
}

/// A folder in which drivelab runs and has its temporary files.
struct Place(TempDir);

impl Place {
    fn new() -> Place {
        let place = Place(tempfile::tempdir().expect("a folder"));
        fs::create_dir(place.0.path().join("tmp")).expect("a folder");
        place
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_drivelab"));
        let tmp = self.0.path().join("tmp");
        command.args(["crashtest", "--budget", "10min"]).args(args);
        command.current_dir(self.0.path()).env("TMPDIR", tmp);
        command
    }

    /// Runs a crash test; returns its exit code and its output.
    fn run(&self, command: &mut Command) -> (i32, String) {
        let output = command.output().expect("drivelab starts");
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        (output.status.code().expect("an exit code"), said)
    }

    /// Records and checks a plant.
    fn plant(&self, plant: &str, args: &[&str]) -> (i32, String) {
        let program = env::current_exe().expect("this test");
        let program = program.to_str().expect("UTF-8");
        let program = ["--", program, "--exact", "programs::orders"];
        let sized = ["--fs", "none", "--size", SIZE];
        let mut command = self.command(&[args, &sized, &program].concat());
        self.run(command.env(PLANT, plant))
    }

    /// Records and checks a line of shell.
    fn shell(&self, line: &str, args: &[&str]) -> (i32, String) {
        let program = ["--fs", "none", "--", "sh", "-c", line];
        self.run(&mut self.command(&[args, &program].concat()))
    }

    /// Returns the files that remain in folders for temporary files.
    fn left(&self) -> Vec<String> {
        let folders = fs::read_dir(self.0.path().join("tmp")).expect("a folder");
        let folders = folders.map(|it| it.expect("an entry").path());
        let files = folders.flat_map(|it| fs::read_dir(it).expect("a folder"));
        let names = files.map(|it| it.expect("an entry").file_name());
        names.map(|it| it.to_string_lossy().into_owned()).collect()
    }
}

fn exists(path: &Path) -> bool {
    path.try_exists().expect("a path")
}

#[test]
fn a_missing_flush_is_found_on_a_volatile_cache_and_again_by_the_printed_command() {
    let place = Place::new();
    let check = ["--check", CHECK];
    let (code, said) = place.plant("no-flush-between", &[&["950pro-256"], &check[..]].concat());
    assert_eq!(code, 3, "{said}");
    for part in [
        "FAILED     corrupt: order ",
        "needs      volatile cache",
        "4 acknowledgements",
        "verdict: 1 rule does not hold",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    for part in ["  lost       4096 B at ", "  power cut  "] {
        assert!(said.contains(part), "{part}: {said}");
    }
    // The recording of a failure is kept, and the printed command repeats the failure.
    assert_eq!(place.left(), ["run.dlog"]);
    let mut again = said.split("again      drivelab ").skip(1);
    let again = again.next().expect("a command");
    let (again, _) = again.split_once("\nnote: ").expect("a note");
    let mut shell = Command::new("sh");
    let line = format!("{} {again}", env!("CARGO_BIN_EXE_drivelab"));
    let (code, again) = place.run(shell.args(["-c", &line]));
    assert_eq!(code, 3, "{again}");
    assert!(again.contains("FAILED     corrupt: order "), "{again}");

    // Files for machines, and what was lost in them.
    let results = ["--junit", "crash.xml", "--html", "crash.html", "--json"];
    let args = [&["950pro-256"], &results[..], &check].concat();
    let (code, said) = place.plant("no-flush-between", &args);
    assert_eq!(code, 3, "{said}");
    let (json, _) = said.rsplit_once("\nnote: ").expect("a note");
    let json: serde_json::Value = serde_json::from_str(json).expect("JSON");
    let failure = &json["failures"][0];
    let lost = &failure["lost"][0];
    assert_eq!(lost["completed"], true, "{failure:#}");
    assert_eq!(lost["flush_completed"], false, "{failure:#}");
    assert_eq!(lost["bytes"], BLOCK, "{failure:#}");
    assert_eq!(lost["places"][0]["range"], lost["ranges"][0], "{failure:#}");
    assert_eq!(lost["places"][0]["owner"], "unknown", "{failure:#}");
    let read = |name: &str| fs::read_to_string(place.0.path().join(name)).expect("a file");
    let junit = read("crash.xml");
    for part in [
        r#"<testsuite name="drivelab crashtest 950pro-256" tests="6" failures="1""#,
        r#"name="opens"/>"#,
        r#"<skipped message="not tested: add --fsck"/>"#,
        r#"name="acknowledged"/>"#,
        r#"<failure type="corrupt" message="corrupt: order "#,
    ] {
        assert!(junit.contains(part), "{part}: {junit}");
    }
    let (failure, _) = junit.split_once("</failure>").expect("a failure");
    let last = failure.lines().rfind(|it| it.starts_with("again "));
    let last = last.expect("a command to repeat it");
    assert!(
        last.starts_with("again      drivelab crashtest --from "),
        "{last}"
    );
    let page = read("crash.html");
    for part in [
        "Crash test on 950pro-256",
        "Failed: 1 rule does not hold.",
        "lost 4096 B at ",
    ] {
        assert!(page.contains(part), "{part}");
    }

    let place = Place::new();
    let (code, said) = place.plant("no-flush-between", &[&["pm9a3-960"], &check[..]].concat());
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("held       no image of "), "{said}");
    assert_eq!(place.left(), [""; 0]);
}

#[test]
fn an_acknowledgement_before_the_flush_is_in_the_log_before_the_flush() {
    let place = Place::new();
    let args = ["950pro-256", "--check", CHECK];
    let (code, said) = place.plant("early-ack", &args);
    assert_eq!(code, 3, "{said}");
    assert!(said.contains("FAILED     lost "), "{said}");
    assert!(said.contains("needs      volatile cache"), "{said}");
    let (code, said) = place.plant(
        "early-ack",
        &[&args[..], &["--drive", "pm9a3-960"]].concat(),
    );
    assert_eq!(code, 0, "{said}");
}

/// Judges an image for each line of the input by the command in the variable CHECK.
const RESIDENT: &str = r#"tab=$(printf '\t')
while IFS=$tab read -r DRIVELAB_DEVICE DRIVELAB_ACKS tries name; do
  export DRIVELAB_DEVICE DRIVELAB_ACKS
  if said=$(sh -c "$CHECK"); then echo "ok $name"; else echo "$said"; fi
done"#;

#[test]
fn a_resident_checker_finds_what_a_spawned_one_finds() {
    let place = Place::new();
    let found = |place: &Place, plant: &str, check: [&str; 2]| {
        let program = env::current_exe().expect("this test");
        let program = program.to_str().expect("UTF-8");
        let program = ["--", program, "--exact", "programs::orders"];
        let args = [
            &["950pro-256", "--json", "--fs", "none", "--size", SIZE],
            &check[..],
        ];
        let mut command = place.command(&[&args.concat()[..], &program].concat());
        let (code, said) = place.run(command.env(PLANT, plant).env("CHECK", CHECK));
        let end = said.rfind('}').expect("JSON");
        let json: serde_json::Value = serde_json::from_str(&said[..=end]).expect("JSON");
        let parts = ["tried", "checked", "failed"].map(|it| json[it].clone());
        let failure = &json["failures"][0];
        let named = ["class", "line", "image", "needs"].map(|it| failure[it].clone());
        (code, parts, named)
    };
    for plant in ["none", "no-flush-between"] {
        let spawned = found(&place, plant, ["--check", CHECK]);
        let resident = found(&place, plant, ["--check-server", RESIDENT]);
        assert_eq!(spawned, resident, "{plant}");
        assert_eq!(spawned.0, if plant == "none" { 0 } else { 3 });
    }
    // A resident checker that ends is a failure of each image that it does not judge.
    let ends = r#"tab=$(printf '\t')
while IFS=$tab read -r image acks tries name; do
  case $name in 3*) echo out of memory >&2; exit 3;; esac
  echo ok
done"#;
    let (code, said) = place.plant("none", &["950pro-256", "--check-server", ends]);
    assert_eq!(code, 3, "{said}");
    assert!(
        said.contains("crashed: the resident checker ended: exit code 3"),
        "{said}"
    );
    let hangs = ["950pro-256", "--limit", "1s", "--check-server", "sleep 60"];
    let (code, said) = place.plant("none", &hangs);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("did not end within 1 s"), "{said}");
}

#[test]
fn a_correct_program_holds_and_its_log_can_be_kept() {
    let place = Place::new();
    let args = ["950pro-256", "--keep-log", "run.dlog", "--check", CHECK];
    let (code, said) = place.plant("none", &args);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("held       no image of "), "{said}");
    let (code, said) = place.plant("none", &args);
    assert_eq!(code, 2, "{said}");
    assert!(
        said.contains("--keep-log run.dlog: the file exists"),
        "{said}"
    );
    assert_eq!(place.left(), [""; 0]);
    // The log has what the program wrote and reported, in this order: an acknowledgement follows the flush.
    let bytes = fs::read(place.0.path().join("run.dlog")).expect("a log");
    let log = crash::Log::read(bytes).expect("a log");
    assert_eq!(log.acks, ["1", "2", "3", "4"]);
    assert_eq!(log.tries, log.acks);
    assert_eq!(log.commands.len() as u64, 4 * ORDERS);
    assert_eq!(log.ending.as_deref(), Some("the server ended"));
    // From the log: the same result.
    let from = ["--from", "run.dlog", "--check", CHECK];
    let (code, said) = place.run(&mut place.command(&from));
    assert_eq!(code, 0, "{said}");
}

#[test]
fn a_program_that_fails_is_exit_code_1_with_its_output() {
    let place = Place::new();
    let args = ["950pro-256", "--check", "true", "--keep-log", "run.dlog"];
    let line = r#"stat -c 'mode %a' "$(dirname "$DRIVELAB_ACKS")"; echo wrong >&2; exit 3"#;
    let (code, said) = place.shell(line, &args);
    assert_eq!(code, 1, "{said}");
    for part in ["exit code 3", "mode 700", "wrong"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!exists(&place.0.path().join("run.dlog")), "{said}");
    let (code, said) = place.shell("kill -SEGV $$", &args);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("signal 11"), "{said}");
    assert_eq!(place.left(), [""; 0]);
}

#[test]
fn what_cannot_be_tested_is_bad_input() {
    let place = Place::new();
    let check = ["950pro-256", "--check", "true"];
    // More tokens than a pipe holds do not block a program that sends no commands.
    let (code, said) = place.shell(r#"seq 1 20000 > "$DRIVELAB_ACKS""#, &check);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("wrote nothing to the drive"), "{said}");
    let (code, said) = place.plant("none", &["950pro-256", "--check", "exit 11"]);
    assert_eq!(code, 2, "{said}");
    assert!(
        said.contains("fails on the image of the orderly end"),
        "{said}"
    );
    let missing = ["--fs", "none", "--", "/no/such/program"];
    for (args, part) in [
        (&[&check[..], &missing].concat()[..], "cannot be started"),
        (&["950pro-256", "--", "true"], "nothing to do"),
        (&["950pro-256", "--check", "true"], "PROGRAM"),
        (&["--check", "true", "--", "true"], "DRIVE"),
        (
            &["xyzzy", "--fs", "none", "--check", "true", "--", "true"],
            "xyzzy",
        ),
        (
            &[
                &check[..],
                &["--fs", "none", "--user", "nobody", "--", "true"],
            ]
            .concat()[..],
            "--user: there is no guest with --fs none",
        ),
        (
            &[
                &check[..],
                &["--guest-kernel", "/no/such/kernel", "--", "true"],
            ]
            .concat()[..],
            "no kernel for the guest",
        ),
        (
            &[
                "950pro-256",
                "--check",
                "true",
                "--fs",
                "none",
                "--size",
                "1T",
                "--",
                "true",
            ],
            "950pro-256",
        ),
        (
            &["950pro-256", "--check", "true", "--from", "a", "--", "true"],
            "cannot be used with",
        ),
    ] {
        let (code, said) = place.run(&mut place.command(args));
        assert_eq!(code, 2, "{args:?}: {said}");
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(place.left(), [""; 0]);
}

#[test]
fn options_of_guests_are_refused_where_no_guest_can_have_them() {
    let place = Place::new();
    let check = ["950pro-256", "--check", "true"];
    for (args, part) in [
        (
            &[
                &check[..],
                &["--fs", "none", "--second-cuts", "1", "--", "true"],
            ]
            .concat()[..],
            "--second-cuts: there is no guest with --fs none",
        ),
        (
            &["950pro-256", "--second-cuts", "1", "--", "true"],
            "--second-cuts without a checker",
        ),
        (
            &[&check[..], &["--fs", "xfs", "--size", "64M", "--", "true"]].concat()[..],
            "--size: 64 MiB is too small for xfs",
        ),
    ] {
        let (code, said) = place.run(&mut place.command(args));
        assert_eq!(code, 2, "{args:?}: {said}");
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(place.left(), [""; 0]);
}

#[test]
fn the_number_of_threads_does_not_change_the_results() {
    let place = Place::new();
    let keep = ["950pro-256", "--keep-log", "run.dlog", "--check", CHECK];
    place.plant("no-flush-between", &keep);
    let at = |threads: &str, more: &[&str]| {
        let from = [
            "--from", "run.dlog", "--check", CHECK, "--json", "--torn", "512",
        ];
        let mut command = place.command(&[&from, more].concat());
        let output = command.env("RAYON_NUM_THREADS", threads).output();
        let output = output.expect("drivelab starts");
        assert_eq!(output.status.code(), Some(3), "{threads} threads");
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    for more in [
        &["--images", "300"][..],
        &["--images", "100", "--seed", "7"],
    ] {
        let one = at("1", more);
        let tried = serde_json::from_str::<serde_json::Value>(&one).expect("JSON");
        assert_eq!(tried["tried"].to_string(), more[1], "{one}");
        for threads in ["2", "8"] {
            assert_eq!(at(threads, more), one, "{threads} threads");
        }
    }
}

#[test]
fn result_files_need_a_checker_and_a_place() {
    let place = Place::new();
    let nowhere = ["--check", "true", "--junit", "no/such/folder.xml"];
    for (args, part) in [
        (
            &["--html", "crash.html"][..],
            "--check CMD, --check-server CMD or --fsck",
        ),
        (&nowhere, "--junit no/such/folder.xml"),
    ] {
        let (code, said) = place.run(place.command(&["--from", "a"]).args(args));
        assert_eq!(code, 2, "{args:?}: {said}");
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn a_signal_ends_the_program_too() {
    let place = Place::new();
    let line = r#"echo $$ > pid.new; mv pid.new pid; exec sleep 600"#;
    let check = ["950pro-256", "--fs", "none", "--check", "true"];
    let args = [&check[..], &["--", "sh", "-c", line]].concat();
    let mut child = place.command(&args).spawn().expect("drivelab starts");
    let pid = place.0.path().join("pid");
    let begin = Instant::now();
    while !exists(&pid) {
        assert!(
            begin.elapsed() < Duration::from_secs(60),
            "it does not start"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    let stop = Command::new("kill").arg(child.id().to_string()).status();
    assert!(stop.expect("kill runs").success());
    let status = child.wait().expect("an end");
    assert_eq!(status.code(), Some(143));
    let pid = fs::read_to_string(&pid).expect("a number");
    assert!(!exists(Path::new(&format!("/proc/{}", pid.trim()))));
    assert_eq!(place.left(), [""; 0]);
}

#[test]
fn a_program_that_does_not_end_is_killed_at_its_limit() {
    let place = Place::new();
    let args = ["950pro-256", "--program-limit", "1s", "--check", "true"];
    let begin = Instant::now();
    let (code, said) = place.shell("echo waiting for the server; exec sleep 600", &args);
    assert_eq!(code, 1, "{said}");
    for part in [
        "did not end within 1s (--program-limit) and was killed",
        "waiting for the server",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(begin.elapsed() < Duration::from_secs(30), "{said}");
    assert_eq!(place.left(), [""; 0]);
}

/// Writes without a flush, so that many images differ, and a checker whose result depends on more than the image.
const UNFLUSHED: &str = "no-flush-between";

#[test]
fn a_failure_that_does_not_repeat_is_not_a_pass() {
    let place = Place::new();
    // One image fails, once.
    let check = r#"test "$DRIVELAB_IMAGE" = end || ! mkdir once 2> /dev/null || exit 11"#;
    let results = ["--junit", "crash.xml", "--html", "crash.html"];
    let args = [&["950pro-256", "--check", check], &results[..]].concat();
    let (code, said) = place.plant("none", &args);
    assert_eq!(code, 3, "{said}");
    for part in [
        "flaky      1 failure did not repeat: ",
        "verdict: undecided: 1 failure did not repeat",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!said.contains("held  "), "{said}");
    let read = |name: &str| fs::read_to_string(place.0.path().join(name)).expect("a file");
    let junit = read("crash.xml");
    for part in [
        "failures=\"1\"",
        "name=\"repeatable\">\n      <failure type=\"flaky\"",
    ] {
        assert!(junit.contains(part), "{part}: {junit}");
    }
    assert!(read("crash.html").contains("Not passed: undecided: 1 failure"));
}

#[test]
fn a_checker_that_hangs_ends_soon_after_the_budget() {
    let place = Place::new();
    let check = r#"test "$DRIVELAB_IMAGE" = end || sleep 100"#;
    // All images fail, in batches of 16.
    let begin = Instant::now();
    let program = env::current_exe().expect("this test");
    let mut command = Command::new(env!("CARGO_BIN_EXE_drivelab"));
    command.args(["crashtest", "950pro-256", "--fs", "none", "--size", SIZE]);
    command.args(["--limit", "2s", "--budget", "3s", "--check", check, "--"]);
    command.arg(program).args(["--exact", "programs::orders"]);
    command
        .current_dir(place.0.path())
        .env("TMPDIR", place.0.path().join("tmp"));
    let (code, said) = place.run(command.env(PLANT, UNFLUSHED));
    assert_eq!(code, 3, "{said}");
    assert!(
        said.contains("FAILED     hangs: did not end within 2 s"),
        "{said}"
    );
    assert!(said.contains("; ended by --budget"), "{said}");
    // The reduction has 60 s of its own.
    assert!(begin.elapsed() < Duration::from_secs(100), "{said}");
}

#[test]
fn one_bug_is_one_violated_rule_in_all_reports() {
    let place = Place::new();
    // Acknowledged losses that need different conditions, and a rule of the checker's own.
    let check = r#"byte() { od -An -tu1 -j $(($1 * 4096)) -N 1 "$DRIVELAB_DEVICE" | tr -d ' '; }
test "$DRIVELAB_IMAGE" != end || exit 0
case $(wc -l < "$DRIVELAB_ACKS") in
  0) test $(byte 0) = 0 || test $(byte 1) = 1 || exit 10;;
  1) exit 10;;
  3) echo "sums differ"; exit 13;;
esac"#;
    let results = ["--junit", "crash.xml", "--html", "crash.html"];
    let args = [&["950pro-256", "--check", check], &results[..]].concat();
    let (code, said) = place.plant(UNFLUSHED, &args);
    assert_eq!(code, 3, "{said}");
    let count = |text: &str, part: &str| text.matches(part).count();
    assert_eq!(count(&said, "FAILED     "), 2, "{said}");
    let also = count(&said, "\nalso       ");
    assert!(also >= 1, "{said}");
    assert!(said.contains("verdict: 2 rules do not hold"), "{said}");
    let read = |name: &str| fs::read_to_string(place.0.path().join(name)).expect("a file");
    let junit = read("crash.xml");
    assert!(junit.contains("failures=\"2\""), "{junit}");
    assert_eq!(count(&junit, "<failure "), 2, "{junit}");
    assert_eq!(count(&junit, "\nalso: "), also, "{junit}");
    assert_eq!(count(&junit, "again      drivelab "), 2 + also, "{junit}");
    let page = read("crash.html");
    assert!(page.contains("Failed: 2 rules do not hold."));
    let args = [&["950pro-256", "--json", "--check", check][..]].concat();
    let (code, said) = place.plant(UNFLUSHED, &args);
    assert_eq!(code, 3, "{said}");
    let (json, _) = said.rsplit_once("\nnote: ").expect("a note");
    let json: serde_json::Value = serde_json::from_str(json).expect("JSON");
    let violated = serde_json::json!(["acknowledged", "check"]);
    assert_eq!(json["violated"], violated, "{json:#}");
    let failures = json["failures"].as_array().expect("a list");
    assert_eq!(failures.len(), 2 + also, "{json:#}");
    let named = |it: &serde_json::Value| violated.as_array().expect("two").contains(&it["rule"]);
    assert!(failures.iter().all(named), "{json:#}");
}
