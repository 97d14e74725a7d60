//! The guest's programs: this machine's own, with the libraries they are linked to, in archives that a kernel unpacks.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use super::{archive, copy, create, is_made, made, remove, write};
use crate::shell::{find, output, program, root, run};

/// Archives, with the programs in each. fio needs 80 MB of libraries, which only the tests that call it load; the
/// other programs are also used by few tests.
const ARCHIVES: &[(&str, &[&str])] = &[
    (
        "initramfs.cpio",
        &[
            "busybox",
            "nvme",
            "nbd-client",
            "mkfs.ext4",
            "e2fsck",
            "mkfs.xfs",
            "xfs_repair",
            "sqlite3",
        ],
    ),
    ("tiers.cpio", &["mdadm", "dmsetup", "make-bcache"]),
    ("fio.cpio", &["fio"]),
    // Programs that `drivelab measure` calls besides fio.
    ("measure.cpio", &["wipefs", "setpriv"]),
];

/// Makes the archives.
pub(super) fn make(folder: &Path) -> Result<(), String> {
    for (name, programs) in ARCHIVES {
        let to = folder.join(name);
        let (from, files) = contents(name, programs)?;
        if is_made(&to, &from) {
            continue;
        }
        let tree = folder.join("tree");
        remove(&tree)?;
        for (file, place) in files {
            copy(&file, &tree.join(&place))?;
        }
        if *name == ARCHIVES[0].0 {
            finish(&tree)?;
        }
        // The symbols are not needed in the guest.
        let strip = "find . -type f -exec strip --strip-unneeded {} + 2>/dev/null; true";
        run(program("sh").args(["-c", strip]).current_dir(&tree))?;
        archive(&tree, &to)?;
        made(&to, &from)?;
        remove(&tree)?;
    }
    Ok(())
}

/// The files of an archive with their paths in it, and a text that changes when they change.
type Contents = (String, Vec<(PathBuf, PathBuf)>);

fn contents(archive: &str, programs: &[&str]) -> Result<Contents, String> {
    let mut from = format!("{archive}\n{}", init()?);
    let mut files: Vec<(PathBuf, PathBuf)> = Vec::new();
    for name in programs {
        let path = find(name).ok_or_else(|| format!("{name} is not installed"))?;
        files.push((path.clone(), Path::new("bin").join(name)));
        // ldd fails on a statically linked program.
        let libraries = output(program("ldd").arg(&path)).unwrap_or_default();
        let paths = libraries
            .split_whitespace()
            .filter(|word| word.starts_with('/'));
        for library in paths.map(|word| word.trim_end_matches(':')) {
            let place = Path::new(library.trim_start_matches('/'));
            if files.iter().all(|(_, other)| other != place) {
                files.push((PathBuf::from(library), place.to_owned()));
            }
        }
    }
    for (file, _) in &files {
        let metadata =
            fs::metadata(file).map_err(|error| format!("{}: {error}", file.display()))?;
        from += &format!("{} {}\n", file.display(), metadata.len());
    }
    Ok((from, files))
}

fn init() -> Result<String, String> {
    let path = root().join("xtask/guest/init");
    fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Adds the files that make the programs a root file system.
fn finish(tree: &Path) -> Result<(), String> {
    let init_path = tree.join("init");
    write(&init_path, init()?)?;
    fs::set_permissions(&init_path, fs::Permissions::from_mode(0o755))
        .map_err(|error| format!("{}: {error}", init_path.display()))?;
    for folder in ["dev", "proc", "sys", "etc"] {
        create(&tree.join(folder))?;
    }
    write(&tree.join("etc/passwd"), "root:x:0:0::/tmp:/bin/sh\n")?;
    write(&tree.join("etc/group"), "root:x:0:\n")?;
    let shell = tree.join("bin/sh");
    symlink("busybox", &shell).map_err(|error| format!("{}: {error}", shell.display()))
}
