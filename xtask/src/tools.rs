//! Tools that the tests need besides cargo, and how to install them on Debian.

use std::fs;
use std::path::PathBuf;

use crate::shell::{is_there, program, root, run, target};

/// A program that a step calls.
pub(crate) struct Tool {
    /// Names under which it may be found; one of them is sufficient.
    programs: &'static [&'static str],
    /// Debian's packages.
    packages: &'static [&'static str],
}

/// fio itself, for comparison.
pub(crate) const FIO: Tool = Tool {
    programs: &["fio"],
    packages: &["fio"],
};
/// A browser without a window, for the tests of the page.
pub(crate) const CHROMIUM: Tool = Tool {
    programs: &["chromium", "chromium-browser", "google-chrome"],
    packages: &["chromium"],
};
/// Controls the browser.
pub(crate) const NODE: Tool = Tool {
    programs: &["node"],
    packages: &["nodejs"],
};
/// Downloads the packages that control the browser.
pub(crate) const NPM: Tool = Tool {
    programs: &["npm"],
    packages: &["npm"],
};
/// Runs fio-plot; Debian has its `venv` and `pip` in separate packages.
pub(crate) const PYTHON: Tool = Tool {
    programs: &["python3"],
    packages: &["python3", "python3-venv", "python3-pip"],
};
/// A C compiler and make: liblzma is built from source.
pub(crate) const CC: Tool = Tool {
    programs: &["cc"],
    packages: &["build-essential"],
};
/// Compiles libFuzzer.
pub(crate) const CXX: Tool = Tool {
    programs: &["c++"],
    packages: &["build-essential"],
};
/// Compiles C for a binary without shared libraries.
pub(crate) const MUSL: Tool = Tool {
    programs: &["musl-gcc"],
    packages: &["musl-tools"],
};
/// Compiles C for 64-bit ARM.
pub(crate) const ARM: Tool = Tool {
    programs: &["aarch64-linux-gnu-gcc"],
    packages: &["gcc-aarch64-linux-gnu"],
};
/// Headers of that compiler's C library.
pub(crate) const ARM_LIBC: Tool = Tool {
    programs: &["/usr/aarch64-linux-gnu/include/stdint.h"],
    packages: &["libc6-dev-arm64-cross"],
};
/// Shows what a binary requires of the system.
pub(crate) const READELF: Tool = Tool {
    programs: &["readelf"],
    packages: &["binutils"],
};
/// Compresses a sample for the trace readers' tests.
pub(crate) const XZ: Tool = Tool {
    programs: &["xz"],
    packages: &["xz-utils"],
};

/// libnbd for Debian's Python.
pub(crate) const LIBNBD_PYTHON: Tool = tool(&["nbdsh"], &["python3-libnbd"]);
/// PostgreSQL's server, which Debian does not put on the path; its packages include pgbench and amcheck.
pub(crate) const POSTGRESQL: Tool = tool(
    &["/usr/share/postgresql-common/pg_wrapper"],
    &["postgresql"],
);

/// Tools to build and run the guest, and the clients of live drives outside it.
const LIVE: &[Tool] = &[
    tool(&["flex"], &["flex"]),
    tool(&["bison"], &["bison"]),
    tool(&["bc"], &["bc"]),
    tool(&["strip"], &["binutils"]),
    tool(&["cpio"], &["cpio"]),
    tool(&["depmod"], &["kmod"]),
    tool(&["busybox"], &["busybox-static"]),
    tool(&["nvme"], &["nvme-cli"]),
    tool(&["nbd-client"], &["nbd-client"]),
    tool(&["mkfs.ext4"], &["e2fsprogs"]),
    tool(&["mkfs.xfs"], &["xfsprogs"]),
    tool(&["sqlite3"], &["sqlite3"]),
    tool(&["mdadm"], &["mdadm"]),
    tool(&["dmsetup"], &["dmsetup"]),
    tool(&["make-bcache"], &["bcache-tools"]),
    tool(&["ip"], &["iproute2"]),
    tool(&["unshare"], &["util-linux"]),
    tool(&["qemu-system-x86_64"], &["qemu-system-x86"]),
    tool(&["qemu-img"], &["qemu-utils"]),
    tool(&["nbdinfo"], &["libnbd-bin"]),
    tool(&["nbdsh"], &["python3-libnbd"]),
    // Not a program: libnbd's checks are compiled with it.
    tool(&["/usr/include/libnbd.h"], &["libnbd-dev"]),
    tool(&["nbdkit"], &["nbdkit"]),
];

/// Returns the tools that a whole run needs; a step that is run by name may need more.
fn all() -> impl Iterator<Item = &'static Tool> {
    let named: [&Tool; 8] = [&CC, &CXX, &FIO, &CHROMIUM, &NODE, &NPM, &PYTHON, &XZ];
    named.into_iter().chain(LIVE)
}

const fn tool(programs: &'static [&'static str], packages: &'static [&'static str]) -> Tool {
    Tool { programs, packages }
}

impl Tool {
    /// Checks whether it can be called.
    pub(crate) fn is_there(&self) -> bool {
        self.programs.iter().any(|name| is_there(name))
    }

    /// Returns the name for messages.
    pub(crate) fn name(&self) -> &'static str {
        self.programs[0]
    }
}

/// Installs missing tools, of those that a whole run needs and of `more`, with apt, as root or with sudo.
pub(crate) fn install(more: impl Iterator<Item = &'static Tool>) -> Result<(), String> {
    let mut packages: Vec<&str> = all()
        .chain(more)
        .filter(|tool| !tool.is_there())
        .flat_map(|tool| tool.packages.iter().copied())
        .collect();
    // Python may be installed without these.
    if is_there("python3") && !python_makes_environments() {
        packages.extend(["python3-venv", "python3-pip"]);
    }
    packages.sort_unstable();
    packages.dedup();
    if packages.is_empty() {
        println!("nothing is missing");
        return Ok(());
    }
    println!("missing: {}", packages.join(" "));
    if !is_there("apt-get") {
        return Err(format!(
            "this is not Debian: install what these packages hold by hand, or run with --no-install: {}",
            packages.join(" ")
        ));
    }
    run(as_root("apt-get").args(["update", "--quiet"]))?;
    run(as_root("apt-get")
        .args(["install", "--yes", "--quiet", "--no-install-recommends"])
        .args(packages))
}

/// Version of the program that draws charts from fio's JSON.
const FIO_PLOT: &str = "fio-plot==1.1.21";

/// Downloads with npm the packages that the tests of the page need, in the versions of their lock file.
pub(crate) fn browser_tests() -> Result<(), String> {
    let folder = root().join("crates/report/tests/browser");
    let written =
        |path: &str| fs::metadata(folder.join(path)).and_then(|metadata| metadata.modified());
    let lock = written("package-lock.json");
    let is_fresh = match (lock, written("node_modules/.package-lock.json")) {
        (Ok(lock), Ok(installed)) => installed >= lock,
        _ => false,
    };
    if is_fresh {
        return Ok(());
    }
    run(program("npm")
        .args(["ci", "--no-audit", "--no-fund", "--silent"])
        .current_dir(folder))
}

/// Returns fio-plot in a separate Python environment, installed with pip if needed.
pub(crate) fn fio_plot() -> Result<PathBuf, String> {
    let folder = target().join("tools").join(FIO_PLOT);
    let fio_plot = folder.join("bin/fio-plot");
    if !fio_plot.is_file() {
        run(program("python3").args(["-m", "venv"]).arg(&folder))?;
        run(program(folder.join("bin/pip")).args(["install", "--quiet", FIO_PLOT]))?;
    }
    Ok(fio_plot)
}

fn python_makes_environments() -> bool {
    program("python3")
        .args(["-c", "import ensurepip, venv"])
        .stderr(std::process::Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Returns the program run as root: directly if this process is root, through sudo otherwise.
fn as_root(name: &str) -> std::process::Command {
    let is_root = crate::shell::output(program("id").arg("-u")).is_ok_and(|id| id.trim() == "0");
    let mut command = if is_root {
        program("env")
    } else {
        let mut sudo = program("sudo");
        sudo.arg("env");
        sudo
    };
    command.args(["DEBIAN_FRONTEND=noninteractive", name]);
    command
}
