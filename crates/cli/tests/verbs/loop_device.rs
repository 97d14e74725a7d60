//! `drivelab measure` on a block device of this machine's kernel, if it permits creating a loop device.

use std::fs;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use assert_cmd::cargo::cargo_bin;
use tempfile::TempDir;

use crate::measure::{expect, json};
use crate::rig::{drivelab_in, installed, text};

/// A loop device, which is released at the end.
struct Loop(String);

impl Loop {
    /// Returns a loop device for this file; `None` if the machine does not permit it.
    fn of(file: &Path) -> Option<Loop> {
        let made = Command::new("losetup")
            .args(["--find", "--show"])
            .arg(file)
            .output();
        let made = made.ok().filter(|made| made.status.success());
        if made.is_none() {
            crate::rig::skipped("no loop device can be made");
        }
        Some(Loop(text(&made?.stdout).trim().to_owned()))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &self.0]).status();
    }
}

/// Starts the program on a terminal, whose text is written to the file `told`.
fn on_a_terminal(folder: &Path, args: &[&str]) -> Child {
    let words: Vec<String> = args.iter().map(|it| format!("'{it}'")).collect();
    let line = format!(
        "exec '{}' {}",
        cargo_bin!("drivelab").display(),
        words.join(" ")
    );
    Command::new("script")
        .args(["--quiet", "--return", "--command", &line, "told"])
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .expect("a program")
}

/// On a block device of this machine's kernel: named by its file, protected against other uses while it is written,
/// and resumed after Ctrl-C; the remaining time is shown on a terminal.
#[test]
fn a_loop_device_is_measured_stopped_and_gone_on_with() {
    if !installed("fio") || !installed("script") || !installed("mkfs.ext4") {
        return;
    }
    let folder = TempDir::new().expect("a temporary folder");
    let image = folder.path().join("image");
    fs::write(&image, vec![0; 64 << 20]).expect("room");
    let Some(device) = Loop::of(&image) else {
        return;
    };
    let name = fs::canonicalize(&image)
        .expect("it is there")
        .display()
        .to_string();
    let plan = [
        &device.0,
        "--plan",
        "fit",
        "--size",
        "16M",
        "--runtime",
        "100ms",
    ];
    let refused = [&["measure"], &plan[..], &["--output", "m.json"]].concat();
    let named = [&refused[..], &["--destroy-data", &name]].concat();
    let made = Command::new("mkfs.ext4")
        .args(["-q", "-F", &device.0])
        .output()
        .expect("a program");
    assert!(made.status.success(), "{}", text(&made.stderr));
    let said = expect(&drivelab_in(folder.path(), &refused), 2);
    assert!(
        said.contains("signatures: ext4") && said.contains(&format!("--destroy-data '{name}'")),
        "{said}"
    );
    // On a terminal, so that it shows the remaining time; stopped after it has steps.
    let mut child = on_a_terminal(folder.path(), &named);
    let steps = || {
        let text = fs::read_to_string(folder.path().join("m.json")).unwrap_or_default();
        text.matches("\"phase\": ").count()
    };
    let begun = Instant::now();
    while steps() < 3 && begun.elapsed() < Duration::from_secs(120) {
        sleep(Duration::from_millis(10));
    }
    let mine = format!("/proc/{0}/task/{0}/children", child.id());
    let program = fs::read_to_string(mine).expect("it runs");
    let held = fs::OpenOptions::new()
        .read(true)
        .custom_flags(0o200)
        .open(&device.0);
    assert!(
        held.is_err_and(|error| error.kind() == std::io::ErrorKind::ResourceBusy),
        "it is not held"
    );
    let kill = Command::new("kill").args(["-INT", program.trim()]).status();
    assert!(kill.is_ok_and(|status| status.success()));
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    let told = fs::read_to_string(folder.path().join("told")).expect("a terminal's text");
    assert!(told.contains(" left"), "{told}");
    let before = steps();
    let ended = drivelab_in(folder.path(), &named);
    let said = expect(&ended, if ended.status.code() == Some(3) { 3 } else { 0 });
    assert!(
        said.contains(&format!("continues after {before} steps")),
        "{said}"
    );
    let document = json(&folder, "m.json");
    assert_eq!(document["device"]["kind"], "block");
    assert_eq!(document["device"]["name"], name);
    assert_eq!(document["verdict"]["is_complete"], true);
}
