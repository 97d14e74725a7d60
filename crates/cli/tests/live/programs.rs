//! Crash tests of programs in guests by one command. The programs write files on ext4 or XFS with the host's tools.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use assert_cmd::cargo::cargo_bin;
use crash::log::{Submission, Writer};
use crash::{EventKind, Head};
use tempfile::TempDir;

use crate::rig::{guest_file, has};

/// The program: each order is a new file, whose name is acknowledged. The first argument is the command that makes the
/// file durable.
const ORDERS: &str = r#"for n in 1 2 3 4 5; do
  echo $n > "$DRIVELAB_TRIES"
  echo "contents of $n" > "$DRIVELAB_DIR/order-$n"
  eval "$1"
  echo $n > "$DRIVELAB_ACKS"
done"#;

/// Each acknowledged order must be there, and complete.
const CHECK: &str = r#"while read n; do
  [ "$(cat "$DRIVELAB_DIR/order-$n")" = "contents of $n" ] || { echo "lost $n"; exit 10; }
done < "$DRIVELAB_ACKS""#;

/// Makes a file and its name durable.
const SYNC: &str = r#"sync "$DRIVELAB_DIR/order-$n" "$DRIVELAB_DIR""#;

/// Runs a command without capabilities and without the possibility to gain any.
pub(crate) const UNPRIVILEGED: &str = r#"all=
[ $(id -u) != 0 ] || all="--inh-caps=-all --bounding-set=-all"
exec setpriv --no-new-privs $all "$@""#;

/// A folder in which drivelab runs and has its temporary files.
pub(crate) struct Place(TempDir);

impl Place {
    /// Returns a place with the programs, if this machine can run guests.
    pub(crate) fn new() -> Option<Place> {
        guest_file("linux")?;
        has(&["mkfs.ext4", "mkfs.xfs", "losetup", "setpriv"]).then_some(())?;
        let place = Place(TempDir::new().expect("a folder"));
        fs::create_dir(place.0.path().join("tmp")).expect("a folder");
        for (name, text) in [("orders.sh", ORDERS), ("check.sh", CHECK)] {
            fs::write(place.0.path().join(name), text).expect("written");
        }
        Some(place)
    }

    /// Returns the folder.
    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Runs a crash test without any privilege; returns its exit code and its output.
    pub(crate) fn run(&self, args: &[&str]) -> (i32, String) {
        let mut command = Command::new("sh");
        command
            .args(["-c", UNPRIVILEGED, "sh"])
            .arg(cargo_bin!("drivelab"))
            .args(["crashtest", "--budget", "10min"])
            .args(args)
            .current_dir(self.0.path())
            .env("TMPDIR", self.0.path().join("tmp"));
        let Output {
            status,
            stdout,
            stderr,
        } = command.output().expect("drivelab starts");
        let said = [stdout, stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        (status.code().expect("an exit code"), said)
    }

    /// Runs the program with this command for durability.
    fn orders(&self, args: &[&str], sync: &str) -> (i32, String) {
        let check = ["--check", "sh check.sh", "--limit", "60s"];
        let program = ["--", "sh", "orders.sh", sync];
        self.run(&[args, &check, &program].concat())
    }
}

#[test]
fn a_program_that_synchronizes_its_files_holds_on_both_file_systems() {
    let Some(place) = Place::new() else { return };
    for fs in ["ext4", "xfs"] {
        let (code, said) = place.orders(&["950pro-256", "--fs", fs, "--images", "60"], SYNC);
        assert_eq!(code, 0, "{fs}: {said}");
        assert!(said.contains("held       no image of "), "{said}");
        assert!(said.contains("5 acknowledgements"), "{said}");
    }
    assert_eq!(
        fs::read_dir(place.0.path().join("tmp"))
            .expect("a folder")
            .count(),
        0
    );
}

#[test]
fn a_file_that_was_not_synchronized_is_lost_on_every_drive_and_again_by_the_printed_command() {
    let Some(place) = Place::new() else { return };
    let args = ["950pro-256", "--keep-log", "run.dlog", "--images", "60"];
    let (code, said) = place.orders(&args, "true");
    assert_eq!(code, 3, "{said}");
    assert!(said.contains("FAILED     lost "), "{said}");
    assert!(said.contains("needs      nothing"), "{said}");
    assert!(said.contains("power cut  after `ack "), "{said}");
    // The next writes are to files, or name them in the journal.
    assert!(said.contains("not sent   "), "{said}");
    assert!(said.contains("/order-"), "{said}");
    // The recording says how the guest had mounted the drive.
    let again = said.split("--image ").nth(1).expect("a command");
    let (image, _) = again.split_once(' ').expect("more arguments");
    let from = [
        "--from",
        "run.dlog",
        "--image",
        image,
        "--check",
        "sh check.sh",
    ];
    let (code, said) = place.run(&from);
    assert_eq!(code, 3, "{said}");
    assert!(said.contains("FAILED     lost "), "{said}");
}

/// Judges an image for each line of the input.
const RESIDENT: &str = r#"tab=$(printf '\t')
while IFS=$tab read -r folder acks tries name; do
  lost=
  while read n; do
    [ "$(cat "$folder/order-$n")" = "contents of $n" ] || lost=$n
  done < "$acks"
  if [ "$lost" ]; then echo "lost $lost"; else echo ok; fi
done"#;

#[test]
fn a_resident_checker_judges_all_images_of_a_guest() {
    let Some(place) = Place::new() else { return };
    let check = ["950pro-256", "--check-server", RESIDENT, "--images", "60"];
    for (sync, code) in [(SYNC, 0), ("true", 3)] {
        let program = ["--limit", "60s", "--", "sh", "orders.sh", sync];
        let (found, said) = place.run(&[&check[..], &program].concat());
        assert_eq!(found, code, "{sync}: {said}");
        assert_eq!(said.contains("FAILED     lost "), code == 3, "{said}");
    }
    // The image cannot be unmounted.
    let keeps = "while read -r folder rest; do exec 3< $folder/.; echo ok; done";
    let program = ["--limit", "60s", "--", "sh", "orders.sh", SYNC];
    let args = ["950pro-256", "--images", "3", "--check-server", keeps];
    let (found, said) = place.run(&[&args[..], &program].concat());
    assert_eq!(found, 2, "{said}");
    assert!(said.contains("keeps files of an image open"), "{said}");
}

#[test]
fn without_barriers_only_a_volatile_cache_loses_what_was_synchronized() {
    let Some(place) = Place::new() else { return };
    let mount = ["--mount", "nobarrier", "--images", "400"];
    let (code, said) = place.orders(&[&["950pro-256"], &mount[..]].concat(), SYNC);
    assert_eq!(code, 3, "{said}");
    assert!(said.contains("needs      volatile cache"), "{said}");
    let (code, said) = place.orders(&[&["pm9a3-960"], &mount[..]].concat(), SYNC);
    assert_eq!(code, 0, "{said}");
}

#[test]
fn what_fails_in_a_guest_says_so() {
    let Some(place) = Place::new() else { return };
    let check = ["950pro-256", "--check", "true"];
    let program = |line| ["--", "sh", "-c", line];
    for (args, line, code, part) in [
        (&[][..], "echo wrong >&2; exit 3", 1, "exit code 3"),
        (&[], "exec /no/such/program", 1, "exit code 127"),
        (&["--before", "echo early; exit 4"], "true", 1, "early"),
        (&["--mount", "no-such-option"], "true", 1, "no-such-option"),
        (&["--user", "no-such-user"], "true", 1, "no-such-user"),
        // The caller's files can be read, and not written.
        (
            &[],
            "cat orders.sh > /dev/null && echo x > orders.sh",
            1,
            "Read-only",
        ),
    ] {
        let (found, said) = place.run(&[&check[..], args, &program(line)].concat());
        assert_eq!(found, code, "{args:?} {line}: {said}");
        assert!(said.contains(part), "{args:?} {line}: {said}");
    }
    // Without a guest, the same exit code and words.
    fs::write(place.path().join("text"), "not a program").expect("written");
    for (name, part) in [
        ("/no/such/program", "No such file"),
        ("./text", "Permission denied"),
    ] {
        for fs in ["ext4", "none"] {
            let (code, said) = place.run(&[&check[..], &["--fs", fs, "--", name]].concat());
            assert_eq!(code, 2, "{name} {fs}: {said}");
            let line = format!("error: {name}: cannot be started: {part}");
            assert!(said.contains(&line), "{name} {fs}: {said}");
        }
    }
    // Outside of the current folder, /tmp is empty in the guest.
    let elsewhere = tempfile::tempdir().expect("a folder");
    if elsewhere.path().starts_with("/tmp") {
        let name = elsewhere.path().join("there");
        std::fs::copy("/bin/true", &name).expect("a copy");
        let name = name.to_str().expect("a path");
        let (code, said) = place.run(&[&check[..], &["--", name]].concat());
        assert_eq!(code, 2, "{said}");
        assert!(said.contains("though this machine has the file"), "{said}");
        assert!(said.contains("/tmp, /run, /var/tmp"), "{said}");
    }
    let pool = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../pools/optane-mirror.toml");
    let pool = pool.to_str().expect("a path");
    let (code, said) = place.run(&[&[pool, "--check", "true"][..], &program("true")].concat());
    assert_eq!(code, 2, "{said}");
    assert!(
        said.contains("a pool, whose file system cannot be recorded"),
        "{said}"
    );
    assert!(said.contains("--fs none"), "{said}");
    let hangs = [
        "950pro-256",
        "--limit",
        "1s",
        "--check",
        "[ ! -s $DRIVELAB_ACKS ] || sleep 60",
    ];
    let line = r#"echo x > $DRIVELAB_DIR/f; sync; echo 1 > $DRIVELAB_ACKS"#;
    let (code, said) = place.run(&[&hangs[..], &program(line)].concat());
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("did not end within 1 s"), "{said}");
}

/// Writes block N of a file without a cache of the kernel, and acknowledges it without a flush.
const DIRECT: &str = r#"for n in 1 2 3; do
  printf '%04096d' $n |
    dd of="$DRIVELAB_DIR/data" bs=4096 seek=$n oflag=direct iflag=fullblock conv=notrunc
  echo $n > "$DRIVELAB_ACKS"
done"#;

/// Each acknowledged block must have its number.
const DIRECT_CHECK: &str = r#"while read n; do
  [ "$(dd if="$DRIVELAB_DIR/data" bs=4096 skip=$n count=1)" = "$(printf '%04096d' $n)" ] ||
    { echo "lost $n"; exit 10; }
done < "$DRIVELAB_ACKS""#;

#[test]
fn a_failure_names_the_file_and_the_offset_that_were_lost() {
    let Some(place) = Place::new() else { return };
    for (name, text) in [("direct.sh", DIRECT), ("direct-check.sh", DIRECT_CHECK)] {
        fs::write(place.0.path().join(name), text).expect("written");
    }
    let before = r#"dd if=/dev/zero of="$DRIVELAB_DIR/data" bs=4096 count=8; sync"#;
    for fs in ["ext4", "xfs"] {
        let (log, junit) = (format!("{fs}.dlog"), format!("{fs}.xml"));
        let record = [
            "950pro-256",
            "--fs",
            fs,
            "--before",
            before,
            "--keep-log",
            &log,
        ];
        let check = [
            "--check",
            "sh direct-check.sh",
            "--limit",
            "60s",
            "--images",
            "60",
        ];
        let results = ["--junit", &junit, "--", "sh", "direct.sh"];
        let (code, said) = place.run(&[&record[..], &check, &results].concat());
        assert_eq!(code, 3, "{fs}: {said}");
        for part in [
            "FAILED     lost ",
            "lost       /data at ",
            "(4096 B): sent ",
            "needs      volatile cache",
        ] {
            assert!(said.contains(part), "{fs}: {part}: {said}");
        }
        let junit = fs::read_to_string(place.0.path().join(junit)).expect("a file");
        assert!(junit.contains("lost       /data at "), "{fs}: {junit}");
        let from = [&["--from", &*log, "--json"], &check[..]].concat();
        let (code, said) = place.run(&from);
        assert_eq!(code, 3, "{fs}: {said}");
        let (json, _) = said.rsplit_once("\nverdict").expect("a verdict");
        let json: serde_json::Value = serde_json::from_str(json).expect("JSON");
        let failure = &json["failures"][0];
        let number: u64 = { failure["line"].as_str().expect("a line") }
            .trim_start_matches("lost ")
            .parse()
            .expect("a number");
        let place = &failure["lost"][0]["places"][0];
        assert_eq!(place["owner"], "file", "{fs}: {failure:#}");
        assert_eq!(place["path"], "/data", "{fs}: {failure:#}");
        assert_eq!(place["offset"], number * 4096, "{fs}: {failure:#}");
    }
}

/// A log on an ext4: a block of the block bitmap is overwritten, and later restored.
fn with_errors(place: &Place) {
    let image = place.0.path().join("image");
    let made = Command::new("mkfs.ext4")
        .args(["-q", "-F", "-b", "4096"])
        .arg(&image)
        .arg("8M")
        .output();
    assert!(made.expect("mkfs.ext4 starts").status.success());
    let bytes = fs::read(&image).expect("an image");
    let mut log = Writer::new(&Head {
        drive: "950pro-256".into(),
        bytes: bytes.len() as u64,
        block: 512,
        part: 4096,
        volatile: true,
    });
    for (number, page) in (0..).zip(bytes.chunks(4096)) {
        if page.iter().any(|it| *it != 0) {
            log.base(4096 * number, page);
        }
    }
    // The first descriptor of a group begins with the block of its bitmap.
    let bitmap = u32::from_le_bytes(bytes[4096..4100].try_into().expect("four"));
    let bitmap = 4096 * u64::from(bitmap);
    let right = &bytes[bitmap as usize..][..4096];
    for data in [&[0; 4096][..], right] {
        for kind in [EventKind::Write, EventKind::Flush] {
            let submission = Submission {
                kind,
                fua: false,
                offset: bitmap,
                bytes: 4096,
            };
            let number = log.submit(submission, &mut |into| {
                into.copy_from_slice(data);
                true
            });
            log.complete(number.expect("data"), true);
        }
    }
    fs::write(place.0.path().join("run.dlog"), log.bytes).expect("written");
}

#[test]
fn errors_of_the_file_system_that_the_checker_does_not_see_are_found_by_fsck() {
    let Some(place) = Place::new() else { return };
    with_errors(&place);
    let from = ["--from", "run.dlog", "--fs", "ext4"];
    let (code, said) = place.run(&[&from[..], &["--check", "true"]].concat());
    assert_eq!(code, 0, "{said}");
    let fsck = ["--fsck", "--junit", "crash.xml"];
    let (code, said) = place.run(&[&from[..], &fsck].concat());
    assert_eq!(code, 3, "{said}");
    assert!(said.contains("FAILED     fsck: "), "{said}");
    let again = said
        .lines()
        .find(|it| it.contains("again "))
        .expect("a command");
    assert!(again.ends_with(" --fsck"), "{again}");
    let junit = fs::read_to_string(place.0.path().join("crash.xml")).expect("a file");
    assert!(junit.contains("<failure type=\"fsck\""), "{junit}");
    let (code, said) = place.run(&["--from", "run.dlog", "--fs", "none", "--fsck"]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("add --fs ext4"), "{said}");
}
