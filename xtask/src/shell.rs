//! Running other programs from the root of the project.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

/// Returns the root of the project.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask is a folder of the project")
        .to_owned()
}

/// Returns the folder of build products and downloads.
pub(crate) fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => root().join(folder),
        None => root().join("target"),
    }
}

/// Returns a program that runs in the root of the project.
pub(crate) fn program(name: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(name);
    command.current_dir(root());
    command
}

/// Whether cargo keeps no incremental data.
static ONCE: AtomicBool = AtomicBool::new(false);

/// Whether builds contain the engine of pages that simulate.
static PAGE_ENGINE: AtomicBool = AtomicBool::new(false);

/// Disables incremental data if there is none yet. Incremental data only accelerates the compilation of a changed crate.
/// It uses more space than the build products, and a machine that runs all tests from scratch may have little. If there
/// is incremental data, a build without it would compile every crate of the workspace a second time.
pub(crate) fn compile_once() {
    if !target().join("debug/incremental").is_dir() {
        ONCE.store(true, Ordering::Relaxed);
    }
}

/// Includes the engine of pages that simulate in all further builds of [`cargo()`].
pub(crate) fn include_page_engine() {
    PAGE_ENGINE.store(true, Ordering::Relaxed);
}

/// Returns the cargo that runs this task, with these words as arguments.
pub(crate) fn cargo(words: &str) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = program(cargo);
    command.args(words.split_whitespace());
    if ONCE.load(Ordering::Relaxed) && std::env::var_os("CARGO_INCREMENTAL").is_none() {
        command.env("CARGO_INCREMENTAL", "0");
    }
    if PAGE_ENGINE.load(Ordering::Relaxed) {
        command.env("DRIVELAB_PAGE_ENGINE", "1");
    }
    command
}

/// Runs the command with its output shown; the error states the command and how it ended.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let shown = shown(command);
    println!("$ {shown}");
    passed(&shown, command.status())
}

/// Checks that it was started and succeeded; the error states the command and how it ended.
fn passed(shown: &str, ended: std::io::Result<ExitStatus>) -> Result<(), String> {
    match ended {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{shown}` ended with {status}")),
        Err(error) => Err(format!("`{shown}` could not be started: {error}")),
    }
}

/// Runs as [`run`] does, with all its output in one piece after it has ended, because other commands run at the same
/// time.
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

/// Runs the command and returns its standard output.
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

/// Checks whether there is a program with this name.
pub(crate) fn is_there(name: &str) -> bool {
    find(name).is_some()
}

/// Returns the path of a program on the path, or in Debian's folders for root's programs.
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
