//! Running other programs from the root of the project.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

/// The root of the project.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask is a folder of the project")
        .to_owned()
}

/// Where build products and downloads go.
pub(crate) fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => root().join(folder),
        None => root().join("target"),
    }
}

/// A program in the root of the project.
pub(crate) fn program(name: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(name);
    command.current_dir(root());
    command
}

/// Whether each cargo compiles once and for all.
static ONCE: AtomicBool = AtomicBool::new(false);

/// From now on nothing is kept that would make compiling a changed crate faster: it takes more room than what is compiled, and a
/// machine that runs all the tests from nothing may have little.
pub(crate) fn compile_once() {
    ONCE.store(true, Ordering::Relaxed);
}

/// The cargo that runs this task, with these words as arguments.
pub(crate) fn cargo(words: &str) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = program(cargo);
    command.args(words.split_whitespace());
    if ONCE.load(Ordering::Relaxed) && std::env::var_os("CARGO_INCREMENTAL").is_none() {
        command.env("CARGO_INCREMENTAL", "0");
    }
    command
}

/// Runs it with its output shown; the error says what was run and how it ended.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let shown = shown(command);
    println!("$ {shown}");
    passed(&shown, command.status())
}

/// Whether it was started and ended well; the error says what was run and how it ended.
fn passed(shown: &str, ended: std::io::Result<ExitStatus>) -> Result<(), String> {
    match ended {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{shown}` ended with {status}")),
        Err(error) => Err(format!("`{shown}` could not be started: {error}")),
    }
}

/// As [`run`], with all it says in one piece once it has ended: others run beside it.
pub(crate) fn run_apart(command: &mut Command) -> Result<(), String> {
    let shown = shown(command);
    let ended = command.output();
    let said = ended.as_ref().map_or_else(
        |_| String::new(),
        |it| String::from_utf8_lossy(&[&*it.stdout, &*it.stderr].concat()).into_owned(),
    );
    println!("$ {shown}\n{said}");
    passed(&shown, ended.map(|it| it.status))
}

/// Runs it and gives its standard output.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let shown = shown(command);
    match command.stderr(Stdio::inherit()).output() {
        Ok(output) if output.status.success() => {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        }
        Ok(output) => Err(format!("`{shown}` ended with {}", output.status)),
        Err(error) => Err(format!("`{shown}` could not be started: {error}")),
    }
}

/// Whether there is a program of this name.
pub(crate) fn is_there(name: &str) -> bool {
    find(name).is_some()
}

/// A program on the path, or where Debian keeps what it takes for root's.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

fn shown(command: &Command) -> String {
    let mut words = vec![command.get_program().to_string_lossy().into_owned()];
    words.extend(
        command
            .get_args()
            .map(|word| word.to_string_lossy().into_owned()),
    );
    words.join(" ")
}
