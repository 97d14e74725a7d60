//! `cargo xtask guest`: a Linux guest that needs no KVM, as a client of live drives in the tests.
//!
//! There are two kernels: user-mode Linux, built from Debian's source with the small configuration in `xtask/guest/`,
//! and Debian's cloud kernel for QEMU's software emulation, which has several processors. Both run the same initramfs,
//! made of Debian's programs. Everything is stored in `target/guest/` and rebuilt only when its sources have changed.

mod initramfs;
mod qemu_kernel;
mod user_mode;

use std::fs;
use std::path::{Path, PathBuf};

use crate::shell::{is_there, run, target};
use crate::tools;

/// Returns the folder of the guest.
pub(crate) fn folder() -> PathBuf {
    target().join("guest")
}

/// Builds missing or outdated parts.
///
/// # Errors
/// The part that could not be built, and why.
pub(crate) fn prepare() -> Result<(), String> {
    if !is_there("apt-get") || !is_there("dpkg-deb") {
        return Err(String::from(
            "the guest is made of Debian's packages, and this is not Debian",
        ));
    }
    let folder = folder();
    create(&folder)?;
    initramfs::make(&folder).map_err(|error| format!("the guest's initramfs: {error}"))?;
    qemu_kernel::make(&folder).map_err(|error| format!("the guest's kernel for QEMU: {error}"))?;
    user_mode::make(&folder).map_err(|error| format!("user-mode Linux: {error}"))
}

/// `cargo xtask guest`.
pub(crate) fn command() -> Result<(), String> {
    tools::install(std::iter::empty())?;
    prepare()?;
    println!("{}", folder().display());
    Ok(())
}

/// Checks whether `product` was made from this text; see [`made`].
pub(crate) fn is_made(product: &Path, from: &str) -> bool {
    product.is_file() && fs::read_to_string(stamp(product)).is_ok_and(|text| text == from)
}

/// Records what `product` was made from.
pub(crate) fn made(product: &Path, from: &str) -> Result<(), String> {
    write(&stamp(product), from)
}

fn stamp(product: &Path) -> PathBuf {
    let mut name = product.as_os_str().to_owned();
    name.push(".made-from");
    PathBuf::from(name)
}

/// Downloads Debian's package into an empty folder, unpacks it there and returns the folder.
fn unpack(package: &str, folder: &Path) -> Result<(), String> {
    remove(folder)?;
    create(folder)?;
    run(crate::shell::program("apt-get")
        .args(["download", "--quiet", package])
        .current_dir(folder))?;
    for file in files(folder)? {
        if file.extension().is_some_and(|extension| extension == "deb") {
            run(crate::shell::program("dpkg-deb")
                .arg("-x")
                .arg(&file)
                .arg(folder))?;
            fs::remove_file(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        }
    }
    Ok(())
}

/// Returns the files in a folder, sorted.
pub(crate) fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let failed = |error| format!("{}: {error}", folder.display());
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        paths.push(entry.map_err(failed)?.path());
    }
    paths.sort();
    Ok(paths)
}

pub(crate) fn create(folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))
}

pub(crate) fn remove(folder: &Path) -> Result<(), String> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("{}: {error}", folder.display()))
        }
        _ => Ok(()),
    }
}

pub(crate) fn write(path: &Path, text: impl AsRef<[u8]>) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    if let Some(folder) = to.parent() {
        create(folder)?;
    }
    match fs::copy(from, to) {
        Ok(_) => Ok(()),
        Err(error) => Err(format!("{} to {}: {error}", from.display(), to.display())),
    }
}

/// Writes the whole of `folder` as one archive that a kernel unpacks.
fn archive(folder: &Path, to: &Path) -> Result<(), String> {
    let output = fs::File::create(to).map_err(|error| format!("{}: {error}", to.display()))?;
    run(crate::shell::program("sh")
        .args(["-c", "find . | LC_ALL=C sort | cpio --quiet -o -H newc"])
        .current_dir(folder)
        .stdout(output))
}
