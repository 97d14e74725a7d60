//! A C program, compiled by `cc` with the header and linked with the library: planted bugs are found, and again by their
//! names; the correct program holds.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The compiled program in its own folder.
struct Program(tempfile::TempDir);

/// Returns the newest static library that cargo has built next to this test.
fn library() -> PathBuf {
    let test = std::env::current_exe().expect("a path");
    let folder = test.parent().expect("a folder");
    let found = std::fs::read_dir(folder).expect("a folder").flatten();
    let libraries = found.filter(|it| {
        let name = it.file_name();
        let name = name.to_string_lossy();
        name.starts_with("libdrivelab_crash") && name.ends_with(".a")
    });
    let newest = libraries.max_by_key(|it| it.metadata().and_then(|it| it.modified()).ok());
    newest.expect("a static library").path()
}

impl Program {
    /// Compiles the program; `None` if this machine has no C compiler.
    fn compile() -> Option<Program> {
        let program = Program(tempfile::tempdir().expect("a folder"));
        let package = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut cc = Command::new("cc");
        cc.args(["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror"])
            .arg("-I")
            .arg(package.join("include"))
            .arg(package.join("tests/store.c"))
            .arg(library())
            .args(["-lpthread", "-ldl", "-lm", "-o"])
            .arg(program.path());
        let Ok(output) = cc.output() else {
            eprintln!("SKIPPED: there is no `cc`");
            return None;
        };
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        Some(program)
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("store")
    }

    /// Runs the program; returns its exit code and its output.
    fn run(&self, args: &[&str], crash: Option<&str>) -> (i32, String) {
        let mut command = Command::new(self.path());
        command.args(args).env_remove("DRIVELAB_CRASH");
        if let Some(crash) = crash {
            command.env("DRIVELAB_CRASH", crash);
        }
        let output = command.output().expect("it starts");
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        (output.status.code().expect("an exit code"), said)
    }
}

#[test]
fn planted_bugs_of_a_c_program_are_found_and_the_correct_one_holds() {
    let Some(program) = Program::compile() else {
        return;
    };
    for drive in ["950pro-256", "pm9a3-960", "worst-ssd"] {
        let (code, said) = program.run(&[drive, "careful"], None);
        assert_eq!(code, 0, "{said}");
        assert!(said.contains("held       no image of "), "{said}");
    }
    let (code, said) = program.run(&["950pro-256", "careless"], None);
    assert_eq!(code, 3, "{said}");
    for part in [
        "FAILED     lost ",
        "needs      volatile cache",
        "950pro-256",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!said.contains("cargo"), "{said}");
    let named = said.split("DRIVELAB_CRASH=").nth(1).expect("a name");
    let named = named.split_whitespace().next().expect("a name");
    let (code, again) = program.run(&["950pro-256", "careless"], Some(named));
    assert_eq!(code, 3, "{again}");
    assert!(
        again.contains("fails: lost ") && again.contains("\n1 images"),
        "{again}"
    );
    let (code, said) = program.run(&["pm9a3-960", "careless"], None);
    assert_eq!(code, 0, "{said}");
    let (code, said) = program.run(&["pm9a3-960", "torn"], None);
    assert_eq!(code, 3, "{said}");
    assert!(said.contains("needs      torn, in flight"), "{said}");
}

#[test]
fn errors_are_texts_and_the_recording_is_a_log() {
    let Some(program) = Program::compile() else {
        return;
    };
    let (code, said) = program.run(&["950por-256"], None);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("950pro-256"), "{said}");
    let log = program.0.path().join("run.dlog");
    let args = ["950pro-256", "careful", log.to_str().expect("UTF-8")];
    let (code, said) = program.run(&args, None);
    assert_eq!(code, 0, "{said}");
    let log = crash::Log::read(std::fs::read(&log).expect("a log")).expect("a log");
    assert_eq!((log.acks.len(), log.tries.len()), (12, 12));
    let (code, said) = program.run(&["950pro-256"], Some("999"));
    assert_eq!(code, 3, "{said}");
    assert!(said.contains("there is no moment 999"), "{said}");
}

/// Every function of the header exists in the library, and every function of the library is in the header.
#[test]
fn the_header_has_the_functions_of_the_library() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let names = |file: &str, before: &str| {
        let text = std::fs::read_to_string(package.join(file)).expect("a file");
        let found = text
            .lines()
            .filter(|it| it.contains(before))
            .flat_map(|line| {
                let rest = line.split(before).nth(1)?;
                let name = rest.split('(').next()?;
                Some(format!("drivelab_crash_{name}"))
            });
        let mut names: Vec<String> = found.collect();
        names.sort();
        names.dedup();
        names
    };
    let header = std::fs::read_to_string(package.join("include/drivelab_crash.h")).expect("a file");
    let library = names("src/lib.rs", "extern \"C\" fn drivelab_crash_");
    assert_eq!(library.len(), 21);
    for name in &library {
        assert!(header.contains(&format!("{name}(")), "{name}");
    }
    let declared = header
        .lines()
        .filter(|line| line.ends_with(");") && line.contains("drivelab_crash_"));
    let declared = declared.filter(|line| !line.starts_with(" *") && !line.starts_with("/*"));
    assert_eq!(declared.count(), library.len());
}
