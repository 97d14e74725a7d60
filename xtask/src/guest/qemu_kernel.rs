//! Debian's own kernel for virtual machines, for QEMU without KVM: slow, but with any number of processors.

use std::fs;
use std::path::{Path, PathBuf};

use super::{archive, copy, create, files, is_made, made, remove, unpack, write};
use crate::shell::{find, output, program, run};

/// Depends on the newest kernel.
const META: &str = "linux-image-cloud-amd64";

/// Modules that the guest loads, with their dependencies.
const MODULES: &[&str] = &[
    "virtio_pci",
    "virtio_net",
    "virtio_blk",
    "nvme-tcp",
    "nbd",
    "crc32c_generic",
    "ext4",
    "xfs",
];

/// Creates `folder/vmlinuz` and `folder/modules.cpio`.
pub(super) fn make(folder: &Path) -> Result<(), String> {
    let (kernel, modules) = (folder.join("vmlinuz"), folder.join("modules.cpio"));
    let from = format!("{META}\n{}", MODULES.join(" "));
    if is_made(&kernel, &from) && modules.is_file() {
        return Ok(());
    }
    let depends = output(program("apt-cache").args(["depends", META]))?;
    let package = depends
        .lines()
        .find_map(|line| line.trim().strip_prefix("Depends: linux-image"))
        .ok_or_else(|| format!("`apt-cache depends {META}` names no kernel"))?;
    let unpacked = folder.join("unpacked-kernel");
    unpack(&format!("linux-image{package}"), &unpacked)?;
    let image = files(&unpacked.join("boot"))?
        .into_iter()
        .find(|path| path.to_string_lossy().contains("vmlinuz"))
        .ok_or("the package has no /boot/vmlinuz")?;
    let version = files(&unpacked.join("lib/modules"))?
        .pop()
        .ok_or("the package has no modules")?;
    let depmod = find("depmod").ok_or("depmod is not installed")?;
    run(program(depmod)
        .arg("-b")
        .arg(&unpacked)
        .args(version.file_name()))?;
    let tree = folder.join("tree-modules");
    remove(&tree)?;
    create(&tree.join("modules"))?;
    let mut order = String::new();
    for path in in_order_of_loading(&version)? {
        let name = path.file_name().unwrap_or_default();
        copy(&version.join(&path), &tree.join("modules").join(name))?;
        order += &format!("{}\n", name.to_string_lossy());
    }
    write(&tree.join("modules/order"), order)?;
    archive(&tree, &modules)?;
    copy(&image, &kernel)?;
    made(&kernel, &from)?;
    remove(&tree)?;
    remove(&unpacked)
}

/// Returns the modules and their dependencies, each after those that it needs; paths within `version`.
fn in_order_of_loading(version: &Path) -> Result<Vec<PathBuf>, String> {
    let path = version.join("modules.dep");
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let built_in = fs::read_to_string(version.join("modules.builtin")).unwrap_or_default();
    let is = |path: &str, name: &str| {
        let stem = path.rsplit('/').next().unwrap_or(path);
        stem.split('.').next() == Some(name)
    };
    let mut order: Vec<PathBuf> = Vec::new();
    for name in MODULES {
        let line = text
            .lines()
            .filter_map(|line| line.split_once(':'))
            .find(|(module, _)| is(module, name));
        let Some((module, needs)) = line else {
            if built_in.lines().any(|module| is(module, name)) {
                continue;
            }
            return Err(format!("the kernel has no module {name}"));
        };
        // depmod lists the closest dependency first.
        for path in needs.split_whitespace().rev().chain([module]) {
            let path = PathBuf::from(path);
            if !order.contains(&path) {
                order.push(path);
            }
        }
    }
    Ok(order)
}
