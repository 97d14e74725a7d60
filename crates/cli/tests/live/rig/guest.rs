//! A Linux guest that boots, runs a script and ends. Guests show correctness, never speed.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use assert_cmd::cargo::cargo_bin;
use tempfile::TempDir;

use super::network::{GUEST, Network, SERVER, TAP};
use super::process::{Ended, Running, call, mortal};
use super::{archive, guest_file, has};

/// After `host` with this word the guest is killed: a kernel whose disks vanish may panic and hang, which is not what a
/// power cut is.
const POWER_CUT: &str = "power-cut";

/// The beginning of every script.
///
/// `host WORD` passes the word to the test and waits until the test has done its part (see [`POWER_CUT`]).
/// `file_systems DEVICE` creates ext4 and XFS on it in turn, writes, mounts again, compares and trims.
const ENVIRONMENT: &str = r#"
export PATH=/bin HOME=/tmp
host() { echo "--host: $1--"; read -r _ < /dev/console; }
die() { echo "FAILED: $*"; exit 1; }
until_ready() { # SECONDS COMMAND...
    left=$(($1 * 20)); shift
    until "$@"; do left=$((left - 1)); [ $left -gt 0 ] || die "in vain: $*"; usleep 50000; done
}
file_systems() { # DEVICE
    for make in "mkfs.ext4 -q -F" "mkfs.xfs -q -f"; do
        type=${make%% *}; type=${type#mkfs.}
        $make $1 || die "$make"
        mount -t $type $1 /mnt || die "mount $type"
        dd if=/dev/urandom of=/mnt/file bs=64k count=100 2>/dev/null || die write
        sum=$(md5sum < /mnt/file)
        umount /mnt || die umount
        mount -t $type $1 /mnt || die "mount again"
        [ "$(md5sum < /mnt/file)" = "$sum" ] || die "$type: other data"
        fstrim /mnt || die trim
        umount /mnt || die umount
    done
}
"#;

/// Kernel of a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kernel {
    /// User-mode Linux: one processor, boots immediately.
    UserMode,
    /// Debian's kernel in QEMU without KVM, with this number of processors.
    Emulated(u32),
}

/// A guest to boot.
#[derive(Debug)]
pub(crate) struct Guest<'a> {
    kernel: Kernel,
    memory_mib: u32,
    with_fio: bool,
    with_tiers: bool,
    with_drivelab: bool,
    network: Option<&'a Network>,
    disks: Vec<PathBuf>,
}

impl<'a> Guest<'a> {
    /// Returns a guest without devices.
    pub(crate) fn new(kernel: Kernel) -> Guest<'a> {
        Guest {
            kernel,
            memory_mib: 256,
            with_fio: false,
            with_tiers: false,
            with_drivelab: false,
            network: None,
            disks: Vec::new(),
        }
    }

    /// Adds fio.
    pub(crate) fn with_fio(mut self) -> Guest<'a> {
        self.with_fio = true;
        self.memory_mib = self.memory_mib.max(512);
        self
    }

    /// Adds the tools that set up the kernel's own tiers: mdadm, dmsetup, make-bcache.
    pub(crate) fn with_tiers(mut self) -> Guest<'a> {
        self.with_tiers = true;
        self
    }

    /// Adds drivelab itself, and the programs that `measure` calls.
    pub(crate) fn with_drivelab(mut self) -> Guest<'a> {
        self.with_drivelab = true;
        self.with_fio()
    }

    /// Puts the guest into this network, in which `$SERVER` is the server.
    pub(crate) fn within(mut self, network: &'a Network) -> Guest<'a> {
        self.network = Some(network);
        self
    }

    /// Adds a vhost-user-blk disk, `/dev/vda`; the next is `/dev/vdb`.
    pub(crate) fn with_disk(mut self, socket: PathBuf) -> Guest<'a> {
        self.disks.push(socket);
        self
    }

    /// Checks whether this machine has everything that the guest needs; if not, reports that.
    pub(crate) fn is_there(&self) -> bool {
        let archives = guest_file("initramfs.cpio").is_some()
            && (!self.with_fio || guest_file("fio.cpio").is_some())
            && (!self.with_tiers || guest_file("tiers.cpio").is_some())
            && (!self.with_drivelab || guest_file("measure.cpio").is_some() && has(&["strip"]));
        let kernel = match self.kernel {
            Kernel::UserMode => guest_file("linux").is_some(),
            Kernel::Emulated(_) => {
                has(&["qemu-system-x86_64"])
                    && guest_file("vmlinuz").is_some()
                    && guest_file("modules.cpio").is_some()
            }
        };
        archives && kernel && has(&["unshare", "setpriv"])
    }

    /// Boots the guest, runs the script (`sh`), and ends the guest.
    #[track_caller]
    pub(crate) fn run(&self, script: &str, limit: Duration) -> Ended {
        self.run_with(script, limit, |word| panic!("nobody answers `host {word}`"))
    }

    /// Runs the script, and calls `host` with each word that the script passes by `host WORD`.
    #[track_caller]
    pub(crate) fn run_with(
        &self,
        script: &str,
        limit: Duration,
        mut host: impl FnMut(&str),
    ) -> Ended {
        let folder = TempDir::new().expect("a temporary folder");
        let initramfs = folder.path().join("initramfs");
        let server = match self.kernel {
            Kernel::UserMode => SERVER,
            Kernel::Emulated(_) => "10.0.2.2",
        };
        let address = match self.kernel {
            Kernel::UserMode => GUEST,
            Kernel::Emulated(_) => "10.0.2.15/24",
        };
        let environment =
            format!("{ENVIRONMENT}\nexport SERVER={server} GUEST_ADDRESS={address}\n");
        let script = format!(". /job/environment\n{script}");
        let job = archive::folder("job", &[("environment", &environment), ("script", &script)]);
        let mut archives = vec![guest_file("initramfs.cpio")];
        if self.with_fio {
            archives.push(guest_file("fio.cpio"));
        }
        if self.with_tiers {
            archives.push(guest_file("tiers.cpio"));
        }
        if self.with_drivelab {
            archives.push(guest_file("measure.cpio"));
        }
        if self.kernel != Kernel::UserMode {
            archives.push(guest_file("modules.cpio"));
        }
        let archives: Vec<PathBuf> = archives.into_iter().flatten().collect();
        let archives: Vec<_> = archives.iter().map(PathBuf::as_path).collect();
        let last = match self.with_drivelab {
            true => [drivelab(folder.path()), job].concat(),
            false => job,
        };
        archive::join(&archives, &last, &initramfs).expect("room for the initramfs");
        let mut command = match self.kernel {
            Kernel::UserMode => self.user_mode(&initramfs),
            Kernel::Emulated(processors) => self.emulated(processors, &initramfs),
        };
        let mut guest = Running::start(&mut command, true);
        let start = std::time::Instant::now();
        let mut heard = 0;
        let code = loop {
            let left = limit.saturating_sub(start.elapsed());
            let news = guest.wait_for(left, |said| {
                let code = between(said, "--guest-exit-code=", "--").map(|(code, _)| Err(code));
                let word = between(&said[heard..], "--host: ", "--").map(Ok);
                word.or(code)
            });
            match news {
                Ok((word, end)) => {
                    heard += end;
                    host(&word);
                    if word == POWER_CUT {
                        break Some(0);
                    }
                    guest.write("\n");
                }
                Err(code) => break code.parse().ok(),
            }
        };
        // All output has arrived that counts; if its disk is gone, it may never be able to shut down.
        let said = guest.said();
        guest.kill();
        // A failure in a part of the script fails the whole script.
        let failed = said.contains("FAILED: ") && code == Some(0);
        Ended {
            code: if failed { Some(1) } else { code },
            said,
        }
    }

    /// When a PID namespace ends, the kernel's helper processes end with it.
    fn user_mode(&self, initramfs: &std::path::Path) -> Command {
        let own = ["--pid", "--fork", "--kill-child=KILL"];
        let mut command = match self.network {
            Some(network) => network.program("unshare"),
            None => mortal("unshare"),
        };
        command.args(own).arg("--");
        command.arg(guest_file("linux").expect("asked for by `is_there`"));
        command
            .arg(format!("mem={}M", self.memory_mib))
            .arg(format!("initrd={}", initramfs.display()))
            .args([
                "con=null",
                "ssl=null",
                "con0=fd:0,fd:1",
                "loglevel=1",
                "panic=-1",
            ]);
        if self.network.is_some() {
            command.arg(format!("vec0:transport=tap,ifname={TAP},depth=128,gro=1"));
        }
        for socket in &self.disks {
            // 2: a block device.
            command.arg(format!("virtio_uml.device={}:2", socket.display()));
        }
        command
    }

    fn emulated(&self, processors: u32, initramfs: &std::path::Path) -> Command {
        let memory = self.memory_mib + 256;
        let mut command = mortal("qemu-system-x86_64");
        command
            .args([
                "-machine",
                "q35",
                "-cpu",
                "max",
                "-accel",
                "tcg,thread=multi",
            ])
            .args([
                "-nodefaults",
                "-no-user-config",
                "-display",
                "none",
                "-no-reboot",
            ])
            .args(["-serial", "stdio", "-m", &memory.to_string()])
            .args(["-smp", &processors.to_string()])
            .args([
                "-netdev",
                "user,id=net",
                "-device",
                "virtio-net-pci,netdev=net,romfile=",
            ])
            .arg("-kernel")
            .arg(guest_file("vmlinuz").expect("asked for by `is_there`"))
            .arg("-initrd")
            .arg(initramfs)
            // Only panics are printed. On a busy machine the kernel would consider its timer broken.
            .arg("-append")
            .arg("console=ttyS0 quiet loglevel=1 panic=-1 mitigations=off no_timer_check");
        for (index, socket) in self.disks.iter().enumerate() {
            if index == 0 {
                let shared = format!("memory-backend-memfd,id=memory,size={memory}M,share=on");
                command.args(["-object", &shared, "-numa", "node,memdev=memory"]);
            }
            let socket = socket.display();
            command
                .arg("-chardev")
                .arg(format!("socket,id=disk{index},path={socket},reconnect=1"))
                .arg("-device")
                .arg(format!(
                    "vhost-user-blk-pci,chardev=disk{index},num-queues={processors}"
                ));
        }
        command
    }
}

/// Returns the binary without its symbols, as an archive.
#[track_caller]
fn drivelab(folder: &std::path::Path) -> Vec<u8> {
    let stripped = folder.join("drivelab").display().to_string();
    let binary = cargo_bin!("drivelab").display().to_string();
    call("strip", &["--strip-unneeded", "-o", &stripped, &binary]).expect_success();
    archive::program(
        "bin/drivelab",
        &std::fs::read(&stripped).expect("it was made"),
    )
}

/// Returns the text between the first `open` and the `close` after it, and the end of that.
fn between(text: &str, open: &str, close: &str) -> Option<(String, usize)> {
    let start = text.find(open)? + open.len();
    let length = text[start..].find(close)?;
    Some((
        text[start..start + length].to_owned(),
        start + length + close.len(),
    ))
}
