//! `cargo xtask interop`: prepares libnbd's own interoperability checks, from Debian's source of the installed libnbd,
//! in `target/interop/`. The tests compile and run them; see `crates/cli/tests/live/interop.rs`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::guest::{create, files, is_made, made, remove, write};
use crate::shell::{is_there, output, program, run, target};
use crate::tools;

/// The archive's keys, at Debian's paths.
const KEYS: [&str; 2] = [
    "/usr/share/keyrings/debian-archive-keyring.gpg",
    "/usr/share/keyrings/debian-archive-keyring.pgp",
];

/// Downloads and unpacks the source if it is missing or does not match the installed library.
///
/// # Errors
/// The step that failed.
pub(crate) fn prepare() -> Result<(), String> {
    if !is_there("apt-get") || !is_there("dpkg-query") {
        return Err(String::from(
            "libnbd's checks come from Debian's source, and this is not Debian",
        ));
    }
    let folder = target().join("interop");
    let version = output(program("dpkg-query").args(["-W", "-f", "${Version}", "libnbd-dev"]))?;
    let unpacked = folder.join("libnbd");
    if is_made(&unpacked.join("interop/interop.c"), &version) {
        return Ok(());
    }
    remove(&folder)?;
    let downloads = folder.join("download");
    download(&downloads, &format!("libnbd={version}"))?;
    let source = files(&downloads)?
        .into_iter()
        .find(|path| path.to_string_lossy().contains(".orig.tar."))
        .filter(|path| !path.to_string_lossy().ends_with(".asc"))
        .ok_or("the source package has no archive")?;
    create(&unpacked)?;
    run(program("tar")
        .arg("-xf")
        .arg(source)
        .args(["--strip-components=1", "-C"])
        .arg(&unpacked))?;
    remove(&downloads)?;
    made(&unpacked.join("interop/interop.c"), &version)
}

/// Downloads a source package with separate package lists, so that the machine's lists are not changed.
fn download(folder: &Path, package: &str) -> Result<(), String> {
    let lists = folder.join("lists");
    create(&lists.join("partial"))?;
    let archives = output(program("apt-get").args([
        "indextargets",
        "Created-By: Packages",
        "Origin: Debian",
        "--format",
        "$(REPO_URI) $(RELEASE) $(COMPONENT)",
    ]))?;
    let keys = KEYS.iter().find(|path| Path::new(path).is_file());
    let keys = keys.map_or(String::new(), |path| format!("[signed-by={path}] "));
    let sources: String = archives
        .lines()
        .map(|archive| format!("deb-src {keys}{archive}\n"))
        .collect();
    let list = folder.join("sources.list");
    write(&list, sources)?;
    let apt = || {
        let mut apt = program("apt-get");
        for (option, value) in [
            ("Dir::Etc::SourceList", list.clone()),
            ("Dir::Etc::SourceParts", PathBuf::from("-")),
            ("Dir::State::Lists", lists.clone()),
            // Separate files, so that root is not required.
            ("Dir::Cache", folder.join("cache")),
        ] {
            apt.arg("-o").arg(format!("{option}={}", value.display()));
        }
        apt
    };
    create(&folder.join("cache/archives/partial"))?;
    run(apt().args(["update", "--quiet"]))?;
    run(apt()
        .args(["source", "--download-only", "--quiet", package])
        .current_dir(folder))?;
    fs::remove_dir_all(&lists).map_err(|error| format!("{}: {error}", lists.display()))
}

/// `cargo xtask interop`.
pub(crate) fn command() -> Result<(), String> {
    tools::install(std::iter::empty())?;
    prepare()?;
    println!("{}", target().join("interop/libnbd").display());
    Ok(())
}
