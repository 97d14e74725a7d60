//! Recordings of served drives, and crash-consistency tests of their content, as a user runs them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crash::{EventKind, Log};
use live::nbd::wire::command;

use crate::rig::{BLOCK, Client, drivelab, end, serve, tell};

/// Block N begins with the byte N for each acknowledged N.
const CHECK: &str = r#"while read n; do
  there=$(od -An -tu1 -j $((n * 4096)) -N 1 "$DRIVELAB_DEVICE" | tr -d ' ')
  test "$there" = "$n" || { echo "lost $n"; exit 10; }
done < "$DRIVELAB_ACKS""#;

/// A recording in its own folder.
struct Recorded {
    folder: tempfile::TempDir,
}

impl Recorded {
    /// Runs a program that acknowledges eight records over NBD, before or after their flush; the server is killed or
    /// shut down.
    fn program(drive: &str, flush_first: bool, killed: bool) -> Recorded {
        let recorded = Recorded {
            folder: tempfile::tempdir().expect("a folder"),
        };
        let (log, control) = (recorded.log(), recorded.path("control"));
        let (log, control_text) = (log.display().to_string(), control.display().to_string());
        let more = ["--record", &log, "--control", &control_text];
        let server = serve(recorded.folder.path(), drive, &more);
        let mut client = Client::connect(&server);
        let mut done = |command, block, data: &[u8]| {
            client.send(command, block, data).expect("sent");
            client.reply().expect("an answer");
        };
        for number in 1..=8_u64 {
            assert_eq!(tell(&control, &format!("try {number}")), "ok\n");
            done(command::WRITE, number, &[number as u8; BLOCK]);
            if flush_first {
                done(command::FLUSH, 0, &[]);
            }
            assert_eq!(tell(&control, &format!("ack {number}")), "ok\n");
            if !flush_first {
                done(command::FLUSH, 0, &[]);
            }
        }
        done(command::TRIM, 20, &[]);
        done(command::WRITE_ZEROES, 21, &[]);
        assert_eq!(tell(&control, "mark all is written"), "ok\n");
        match killed {
            true => drop(server),
            false => end(server),
        }
        recorded
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn log(&self) -> PathBuf {
        self.path("run.dlog")
    }

    /// Runs a crash-consistency test on the log; returns its exit code and its output.
    fn crashtest(&self, args: &[&str]) -> (i32, String) {
        crashtest(&self.log(), args)
    }
}

fn crashtest(log: &Path, args: &[&str]) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_drivelab"));
    command
        .args(["crashtest", "--budget", "10min", "--from"])
        .arg(log);
    let Output {
        status,
        stdout,
        stderr,
    } = command.args(args).output().expect("drivelab starts");
    let said = [stdout, stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    (status.code().expect("an exit code"), said)
}

#[test]
fn an_acknowledgement_before_the_flush_is_found_on_a_volatile_cache_and_again_by_its_name() {
    let recorded = Recorded::program("950pro-256", false, true);
    let (code, said) = recorded.crashtest(&["--check", CHECK]);
    assert_eq!(code, 3, "{said}");
    for part in [
        "did not end in order",
        "FAILED     lost ",
        "needs      volatile cache",
        "possible   on ",
        "verdict: 1 rule does not hold",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    // The line with the command to repeat is not wrapped, and notes name paths.
    let lines = said.lines().filter(|line| !line.starts_with("note"));
    let lines = lines.take_while(|line| !line.contains("again"));
    let short = lines.map(str::len).max();
    assert!(short.is_some_and(|it| it <= 80), "{said}");
    // Again, by its name; and its image.
    let name = said
        .split("--image ")
        .nth(1)
        .and_then(|rest| rest.split(' ').next());
    let name = name.expect("a name");
    let (code, again) = recorded.crashtest(&["--image", name, "--check", CHECK]);
    assert_eq!(code, 3, "{again}");
    assert!(
        again.contains("LOST") && again.contains("FAILED     lost "),
        "{again}"
    );
    let keep = recorded.path("kept.img");
    let keep_text = keep.display().to_string();
    let (code, kept) = recorded.crashtest(&["--image", name, "--keep", &keep_text]);
    assert_eq!(code, 0, "{kept}");
    let image = std::fs::read(&keep).expect("an image");
    let token = said
        .split("lost ")
        .nth(1)
        .and_then(|rest| rest.split_whitespace().next());
    let lost: usize = token.and_then(|it| it.parse().ok()).expect("a token");
    assert_eq!((image.len(), image[lost * BLOCK]), (4 << 20, 0));
    let (code, twice) = recorded.crashtest(&["--image", name, "--keep", &keep_text]);
    assert_eq!(code, 2, "{twice}");
    // A drive with power-loss protection keeps the data.
    let (code, held) = recorded.crashtest(&["--check", CHECK, "--drive", "pm9a3-960"]);
    assert_eq!(code, 0, "{held}");
    assert!(held.contains("held       no image of "), "{held}");
}

#[test]
fn a_flush_before_the_acknowledgement_holds_and_lying_flushes_break_it() {
    let recorded = Recorded::program("950pro-256", true, false);
    let (code, said) = recorded.crashtest(&["--check", CHECK]);
    assert_eq!(code, 0, "{said}");
    let (code, said) = recorded.crashtest(&["--check", CHECK, "--flush", "lies", "--json"]);
    assert_eq!(code, 3, "{said}");
    assert!(said.contains("\"needs\": \"lying flush\""), "{said}");
    let (code, said) = recorded.crashtest(&["--list"]);
    assert_eq!(code, 0, "{said}");
    assert!(
        said.contains("flush completes") && said.contains("end of the log"),
        "{said}"
    );
    let bytes = std::fs::read(recorded.log()).expect("a log");
    let log = Log::read(bytes).expect("a log");
    assert_eq!(
        (log.acks.len(), log.tries.len(), log.marks.len()),
        (8, 8, 1)
    );
    assert_eq!(log.ending.as_deref(), Some("the server ended"));
    let kinds: Vec<EventKind> = log.commands.iter().map(|it| it.kind).collect();
    assert_eq!(kinds[16..], [EventKind::Trim, EventKind::Zeroes]);
    assert_eq!(log.data(&log.commands[2]), [2; BLOCK]);
    assert!(log.commands.iter().all(|it| it.completed.is_some()));
}

#[test]
fn a_store_that_has_data_is_in_the_log() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = serve(folder.path(), "950pro-256", &[]);
    let mut client = Client::connect(&server);
    client.send(command::WRITE, 3, &[7; BLOCK]).expect("sent");
    client.reply().expect("an answer");
    end(server);
    let log = folder.path().join("run.dlog");
    let server = serve(
        folder.path(),
        "950pro-256",
        &["--record", &log.display().to_string()],
    );
    end(server);
    let log = Log::read(std::fs::read(log).expect("a log")).expect("a log");
    let base: Vec<(u64, &[u8])> = log.base().collect();
    assert_eq!(base, [(3 * BLOCK as u64, &[7; BLOCK][..])]);
}

#[test]
fn a_recording_ends_at_its_limit_and_at_a_power_cut() {
    for (more, line, why) in [
        (["--log-limit", "8K"], "mark nothing", "--log-limit"),
        (
            ["--log-limit", "8M"],
            "power-cut",
            "a power cut of the served drive",
        ),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name).display().to_string();
        let (log, control) = (path("run.dlog"), folder.path().join("control"));
        let sockets = [
            "--record",
            &log,
            "--control",
            &control.display().to_string(),
        ];
        let server = serve(folder.path(), "950pro-256", &[&sockets[..], &more].concat());
        let mut client = Client::connect(&server);
        for block in 0..8 {
            client
                .send(command::WRITE, block, &[1; BLOCK])
                .expect("sent");
            client.reply().expect("an answer");
        }
        tell(&control, line);
        // The log has ended; the server continues.
        let over = tell(&control, "mark more");
        end(server);
        let log = Log::read(std::fs::read(log).expect("a log")).expect("a log");
        assert!(over.contains("no recording in progress"), "{over}");
        let ending = log.ending.expect("an end");
        assert!(ending.contains(why), "{ending}");
    }
}

#[test]
fn what_cannot_be_recorded_or_tested_is_bad_input() {
    let recorded = Recorded::program("950pro-256", true, false);
    let log = recorded.log().display().to_string();
    let socket = format!("unix:{}", recorded.path("other.sock").display());
    for (args, said) in [
        (&["950pro-256"][..], "the file exists"),
        (&["950pro-256", "p4800x-375"], "2 drives"),
    ] {
        let mut command = drivelab(args);
        let output = command
            .args(["--size", "4M", "--nbd", &socket, "--record", &log])
            .output();
        let output = output.expect("drivelab starts");
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{words}");
        assert!(words.contains(said), "{words}");
    }
    for (args, part) in [
        (
            &["--check", "exit 11"][..],
            "fails on the image of the orderly end",
        ),
        (&["--check", "./no-such"], "cannot be started: "),
        (&["--check", "/etc/passwd"], "name an executable file"),
        (&["--check", "it's"], "does not understand the command"),
        (&["--check", " "], "--check: the command is empty"),
        (
            &["--check-server", ""],
            "--check-server: the command is empty",
        ),
        (
            &["--check-server", "./no-such"],
            "--check-server ./no-such: the checker cannot be started",
        ),
        // A terminal prints no control characters of a checker.
        (
            &["--check", r"printf '\033\001ab\377'; exit 3"],
            "rule: ??ab?",
        ),
        (&["--image", "999"], "there is no moment 999"),
        (&["--image", "x"], "is not the name of an image"),
        (&["--list", "--drive", "xyzzy"], "xyzzy"),
        (&[], "nothing to do"),
    ] {
        let (code, said) = recorded.crashtest(args);
        assert_eq!(code, 2, "{said}");
        assert!(said.contains(part), "{part}: {said}");
    }
    let short = recorded.path("short.dlog");
    let mut bytes = std::fs::read(recorded.log()).expect("a log");
    std::fs::write(&short, &bytes[..160]).expect("written");
    let (code, said) = crashtest(&short, &["--check", "true"]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("short.dlog: the log has no writes"), "{said}");
    let folder = recorded.folder.path();
    let (code, said) = crashtest(folder, &["--check", "true"]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("directory"), "{said}");
    let broken = recorded.path("broken.dlog");
    bytes[200] ^= 1;
    std::fs::write(&broken, bytes).expect("written");
    let (code, said) = crashtest(&broken, &["--list"]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("byte 1") || said.contains("byte 8"), "{said}");
}

#[test]
fn a_checker_that_hangs_or_crashes_or_does_not_judge_is_told_apart() {
    let recorded = Recorded::program("950pro-256", true, false);
    let sound_at_end = r#"test "$(wc -l < "$DRIVELAB_ACKS")" = 8"#;
    for (otherwise, class) in [
        ("sleep 60", "FAILED     hangs"),
        ("kill -SEGV $$", "FAILED     crashed"),
        ("exit 77", "not judged"),
        (
            "echo unopenable: 12 pages",
            "FAILED     unopenable: 12 pages",
        ),
    ] {
        let check = format!("{sound_at_end} || {otherwise}");
        let args = ["--check", &check, "--limit", "500ms", "--images", "2"];
        let (_, said) = recorded.crashtest(&args);
        assert!(said.contains(class), "{class}: {said}");
    }
}

/// A checker that judges no image says nothing about the program: neither the exit code nor JUnit says `passed`.
#[test]
fn a_checker_that_judges_no_image_is_refused() {
    let recorded = Recorded::program("950pro-256", true, false);
    let junit = recorded.path("junit.xml").display().to_string();
    for check in ["--check", "--check-server"] {
        let command = match check {
            "--check" => "exit 77",
            _ => "while read -r it; do echo skip; done",
        };
        let (code, said) =
            recorded.crashtest(&[check, command, "--images", "9", "--junit", &junit]);
        assert_eq!(code, 2, "{check}: {said}");
        assert!(said.contains("has judged no image"), "{said}");
        assert!(!said.contains("\nheld "), "{said}");
        let xml = std::fs::read_to_string(&junit).expect("a report");
        assert!(xml.contains("failures=\"1\""), "{xml}");
        assert!(xml.contains("name=\"opens\">\n      <skipped"), "{xml}");
    }
}

#[test]
fn dm_log_writes_is_written_and_read() {
    let recorded = Recorded::program("950pro-256", false, false);
    let foreign = recorded.path("run.log").display().to_string();
    let (code, said) = recorded.crashtest(&["--write-log-writes", &foreign]);
    assert_eq!((code, &*said), (0, ""));
    let mut command = Command::new(env!("CARGO_BIN_EXE_drivelab"));
    command.args([
        "crashtest",
        "--from-log-writes",
        &foreign,
        "--check",
        CHECK,
        "--json",
    ]);
    let output = command.output().expect("drivelab starts");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("\"needs\": \"volatile cache\""), "{said}");
}
