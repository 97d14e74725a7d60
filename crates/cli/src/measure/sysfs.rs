//! Properties and uses of a block device, read from the kernel's sysfs and procfs.
//!
//! Source: the kernel's Documentation/ABI/stable/sysfs-block, Documentation/filesystems/proc.rst (mountinfo), sd(4).
//! Not detected: uses that the kernel does not know, such as a virtual machine that has only opened the device.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use study::measure::MeasuredDevice;

/// Paths of the two file systems.
pub(super) struct Tree {
    sys: PathBuf,
    proc: PathBuf,
}

/// A block device.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct BlockDevice {
    /// Folder of the device in sysfs.
    dir: PathBuf,
    /// Folder of the disk that it is, or is a partition of.
    disk: PathBuf,
}

/// A use that forbids writing to a device.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Use {
    /// A device is mounted at this place.
    Mounted { device: String, at: String },
    /// The disk has the root file system.
    Root { device: String },
    /// A device is used as swap.
    Swap { device: String },
    /// A device is part of another device.
    Held { device: String, by: String },
}

/// A block device that may be in use.
struct Node {
    /// Name in the kernel, and name in device mapper.
    names: Vec<String>,
    /// Device number, `major:minor`.
    number: String,
}

fn text(path: impl AsRef<Path>) -> Option<String> {
    let text = fs::read(path).ok()?;
    let text = String::from_utf8_lossy(&text)
        .trim_matches(|it: char| it.is_whitespace() || it == '\0')
        .to_owned();
    (!text.is_empty()).then_some(text)
}

fn name_of(dir: &Path) -> String {
    dir.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// Returns the names in a folder, in order; empty if it does not exist.
fn inside(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// Decodes a path of /proc, in which characters such as blanks are written as `\040`.
fn unescaped(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut all = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part
            .get(..3)
            .and_then(|octal| u8::from_str_radix(octal, 8).ok());
        match code {
            Some(code) => {
                all.push(char::from(code));
                all.push_str(&part[3..]);
            }
            None => {
                all.push('\\');
                all.push_str(part);
            }
        }
    }
    all
}

impl Tree {
    /// Returns the tree of this machine.
    pub(super) fn of_the_machine() -> Tree {
        Tree {
            sys: PathBuf::from("/sys"),
            proc: PathBuf::from("/proc"),
        }
    }

    /// Returns the device with this number.
    pub(super) fn block(&self, major: u32, minor: u32) -> io::Result<BlockDevice> {
        let dir = fs::canonicalize(self.sys.join(format!("dev/block/{major}:{minor}")))?;
        let disk = match dir.join("partition").is_file() {
            true => dir.parent().unwrap_or(&dir).to_owned(),
            false => dir.clone(),
        };
        Ok(BlockDevice { dir, disk })
    }

    /// Returns the properties of the device; `path` is its name on the command line.
    pub(super) fn device(&self, block: &BlockDevice, path: &str) -> MeasuredDevice {
        let disk = |name: &str| text(block.disk.join(name));
        let serial = disk("device/serial")
            .or_else(|| disk("serial"))
            .or_else(|| vital_product_data(&block.disk));
        let stands_for_it = [
            "loop/backing_file",
            "wwid",
            "device/wwid",
            "dm/uuid",
            "md/uuid",
        ];
        let name = serial
            .clone()
            .or_else(|| stands_for_it.iter().find_map(|name| disk(name)));
        let part = text(block.dir.join("partition")).filter(|_| block.dir != block.disk);
        let name = match (name, part) {
            (Some(name), None) => name,
            (Some(name), Some(part)) => format!("{name}-part{part}"),
            (None, _) => format!("/dev/{}", name_of(&block.dir)),
        };
        let sectors = text(block.dir.join("size")).and_then(|it| it.parse::<u64>().ok());
        // The one in brackets is in use.
        let scheduler = disk("queue/scheduler").map(|all| {
            let chosen = all.split(['[', ']']).nth(1);
            chosen.unwrap_or(&all).to_owned()
        });
        MeasuredDevice {
            kind: "block".into(),
            name,
            path: path.to_owned(),
            model: disk("device/model"),
            firmware: disk("device/firmware_rev").or_else(|| disk("device/rev")),
            serial,
            size_bytes: sectors.map(|sectors| sectors * 512),
            block_bytes: disk("queue/logical_block_size").and_then(|it| it.parse().ok()),
            is_rotational: disk("queue/rotational").map(|it| it == "1"),
            scheduler,
        }
    }

    /// Returns the names of its partitions.
    pub(super) fn partitions(&self, block: &BlockDevice) -> Vec<String> {
        self.partitions_in(&block.dir)
    }

    fn partitions_in(&self, dir: &Path) -> Vec<String> {
        let names = inside(dir).into_iter();
        names
            .filter(|name| dir.join(name).join("partition").is_file())
            .collect()
    }

    /// Collects a device, its partitions, and all devices built on them; `held` gets each that is part of another.
    fn collect_devices(&self, dir: &Path, nodes: &mut Vec<Node>, held: &mut Vec<Use>) {
        let name = name_of(dir);
        if nodes.iter().any(|node| node.names[0] == name) {
            return;
        }
        let mapped = text(dir.join("dm/name")).map(|name| format!("mapper/{name}"));
        nodes.push(Node {
            names: [Some(name.clone()), mapped].into_iter().flatten().collect(),
            number: text(dir.join("dev")).unwrap_or_default(),
        });
        for part in self.partitions_in(dir) {
            self.collect_devices(&dir.join(part), nodes, held);
        }
        for by in inside(&dir.join("holders")) {
            held.push(Use::Held {
                device: name.clone(),
                by: by.clone(),
            });
            self.collect_devices(&self.sys.join("class/block").join(by), nodes, held);
        }
    }

    /// Returns the uses of a device.
    ///
    /// # Errors
    /// The list of mounts cannot be read.
    pub(super) fn uses(&self, block: &BlockDevice) -> io::Result<Vec<Use>> {
        let (mut nodes, mut uses) = (Vec::new(), Vec::new());
        self.collect_devices(&block.dir, &mut nodes, &mut uses);
        let mounts = fs::read_to_string(self.proc.join("self/mountinfo"))?;
        for (node, at) in mounted(&nodes, &mounts) {
            uses.push(Use::Mounted {
                device: node.names[0].clone(),
                at,
            });
        }
        let swaps = fs::read_to_string(self.proc.join("swaps")).unwrap_or_default();
        for line in swaps.lines().skip(1) {
            let path = unescaped(line.split_whitespace().next().unwrap_or_default());
            uses.extend(
                nodes
                    .iter()
                    .filter(|node| node.is_at(&path))
                    .map(|node| Use::Swap {
                        device: node.names[0].clone(),
                    }),
            );
        }
        let mut disk = Vec::new();
        self.collect_devices(&block.disk, &mut disk, &mut Vec::new());
        let root = mounted(&disk, &mounts)
            .into_iter()
            .find(|(_, at)| at == "/");
        uses.extend(root.map(|_| Use::Root {
            device: name_of(&block.disk),
        }));
        Ok(uses)
    }

    /// Returns the kernel release.
    pub(super) fn kernel(&self) -> String {
        text(self.proc.join("sys/kernel/osrelease")).unwrap_or_default()
    }

    fn cpuinfo(&self) -> String {
        text(self.proc.join("cpuinfo")).unwrap_or_default()
    }

    /// Returns the name of the processor; empty if the kernel does not report it.
    pub(super) fn cpu(&self) -> String {
        let all = self.cpuinfo();
        let line = all.lines().find(|line| line.starts_with("model name"));
        let name = line.and_then(|line| line.split_once(':'));
        name.map_or_else(String::new, |(_, name)| name.trim().to_owned())
    }

    /// Returns the number of processors.
    pub(super) fn processors(&self) -> u32 {
        let all = self.cpuinfo();
        all.lines()
            .filter(|line| line.starts_with("processor"))
            .count() as u32
    }
}

impl Node {
    fn is_at(&self, path: &str) -> bool {
        let name = path.strip_prefix("/dev/");
        name.is_some_and(|name| self.names.iter().any(|it| it == name))
    }
}

/// Returns which of these are mounted, and where.
fn mounted<'n>(nodes: &'n [Node], mounts: &str) -> Vec<(&'n Node, String)> {
    let mut found = Vec::new();
    for line in mounts.lines() {
        // ID, parent, major:minor, root, mount point, options, optional fields, a dash, type, source, options.
        let words: Vec<&str> = line.split(' ').collect();
        let (Some(number), Some(at)) = (words.get(2), words.get(4)) else {
            continue;
        };
        let dash = words.iter().position(|word| *word == "-");
        let source = dash
            .and_then(|dash| words.get(dash + 2))
            .copied()
            .unwrap_or_default();
        let source = unescaped(source);
        // Some file systems have device numbers of their own, and only their source identifies the device.
        let is_it = |node: &&Node| node.number == *number || node.is_at(&source);
        found.extend(nodes.iter().filter(is_it).map(|node| (node, unescaped(at))));
    }
    found
}

/// Returns a SCSI disk's serial number: four bytes of header, then its characters.
fn vital_product_data(disk: &Path) -> Option<String> {
    let page = fs::read(disk.join("device/vpd_pg80")).ok()?;
    let letters = String::from_utf8_lossy(page.get(4..)?)
        .trim_matches(|it: char| it.is_whitespace() || it == '\0')
        .to_owned();
    (!letters.is_empty()).then_some(letters)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use tempfile::TempDir;

    /// A simulated machine: an NVMe drive with two partitions, one of them under device mapper; a separate SATA disk;
    /// a loop device.
    pub(crate) struct Made {
        folder: TempDir,
    }

    impl Made {
        pub(crate) fn new() -> Made {
            let made = Made {
                folder: TempDir::new().expect("a folder"),
            };
            made.mount("22 1 0:21 / /proc rw - proc proc rw");
            made.write("proc/swaps", "Filename Type Size Used Priority\n");
            let nvme = "sys/devices/nvme0n1";
            made.disk("nvme0n1", nvme, "259:0");
            made.write(&format!("{nvme}/device/serial"), "S3EVNX0J  \n");
            made.write(&format!("{nvme}/device/model"), "Fast One  \n");
            made.write(&format!("{nvme}/device/firmware_rev"), "1B2C\n");
            made.write(&format!("{nvme}/queue/scheduler"), "[none] mq-deadline\n");
            for part in ["1", "2"] {
                let name = format!("nvme0n1p{part}");
                made.disk(&name, &format!("{nvme}/{name}"), &format!("259:{part}"));
                made.write(&format!("{nvme}/{name}/partition"), part);
            }
            made.disk("dm-0", "sys/devices/dm-0", "253:0");
            made.write("sys/devices/dm-0/dm/name", "vg-data\n");
            made.write("sys/devices/dm-0/dm/uuid", "LVM-abc\n");
            made.write(&format!("{nvme}/nvme0n1p2/holders/dm-0/x"), "");
            made.disk("sda", "sys/devices/sda", "8:0");
            made.write("sys/devices/sda/device/vpd_pg80", "\0\u{1}\0\u{8}  WD-77  ");
            made.disk("loop0", "sys/devices/loop0", "7:0");
            made.write("sys/devices/loop0/loop/backing_file", "/tmp/a disk\n");
            made.disk("zram0", "sys/devices/zram0", "252:0");
            made
        }

        pub(crate) fn write(&self, path: &str, text: &str) {
            let path = self.folder.path().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, text).expect("a file");
        }

        pub(crate) fn mount(&self, line: &str) {
            let path = self.folder.path().join("proc/self/mountinfo");
            let before = fs::read_to_string(&path).unwrap_or_default();
            self.write("proc/self/mountinfo", &format!("{before}{line}\n"));
        }

        fn disk(&self, name: &str, dir: &str, number: &str) {
            self.write(&format!("{dir}/dev"), number);
            self.write(&format!("{dir}/size"), "2048\n");
            self.write(&format!("{dir}/queue/logical_block_size"), "512\n");
            let to = self.folder.path().join(dir);
            for link in [
                format!("sys/dev/block/{number}"),
                format!("sys/class/block/{name}"),
            ] {
                let link = self.folder.path().join(link);
                fs::create_dir_all(link.parent().expect("a folder")).expect("a folder");
                symlink(&to, link).expect("a link");
            }
        }

        pub(crate) fn tree(&self) -> Tree {
            Tree {
                sys: self.folder.path().join("sys"),
                proc: self.folder.path().join("proc"),
            }
        }

        pub(crate) fn device(&self, number: (u32, u32)) -> MeasuredDevice {
            let tree = self.tree();
            let block = tree.block(number.0, number.1).expect("it is there");
            tree.device(&block, "/dev/it")
        }

        pub(crate) fn uses(&self, number: (u32, u32)) -> Vec<Use> {
            let tree = self.tree();
            let block = tree.block(number.0, number.1).expect("it is there");
            tree.uses(&block).expect("mounts can be read")
        }
    }

    fn mounted_at(device: &str, at: &str) -> Use {
        Use::Mounted {
            device: device.into(),
            at: at.into(),
        }
    }

    #[test]
    fn a_device_has_a_name_of_its_own() {
        let made = Made::new();
        let names = [(259, 0), (259, 2), (8, 0), (7, 0), (252, 0)].map(|it| made.device(it).name);
        assert_eq!(
            names,
            [
                "S3EVNX0J",
                "S3EVNX0J-part2",
                "WD-77",
                "/tmp/a disk",
                "/dev/zram0"
            ]
        );
        let drive = made.device((259, 0));
        assert_eq!(drive.model.as_deref(), Some("Fast One"));
        assert_eq!(drive.firmware.as_deref(), Some("1B2C"));
        assert_eq!(drive.scheduler.as_deref(), Some("none"));
        assert_eq!(
            (drive.size_bytes, drive.block_bytes),
            (Some(1 << 20), Some(512))
        );
        assert!(made.tree().block(9, 9).is_err());
    }

    #[test]
    fn a_device_that_nobody_uses_has_no_use() {
        let made = Made::new();
        assert_eq!(made.uses((8, 0)), []);
        let tree = made.tree();
        let partitions = |number: u32| tree.partitions(&tree.block(number, 0).expect("a disk"));
        assert_eq!(partitions(259), ["nvme0n1p1", "nvme0n1p2"]);
        assert_eq!(partitions(8), [""; 0]);
    }

    #[test]
    fn what_is_mounted_on_a_disk_is_found_wherever_it_is() {
        let held = Use::Held {
            device: "nvme0n1p2".into(),
            by: "dm-0".into(),
        };
        let made = Made::new();
        made.mount(r"30 1 253:0 / /srv/my\040data rw - ext4 /dev/mapper/vg-data rw");
        assert_eq!(
            made.uses((259, 0)),
            [held.clone(), mounted_at("dm-0", "/srv/my data")]
        );
        assert_eq!(made.uses((259, 1)), []);
        // Only by its source, as with btrfs.
        let made = Made::new();
        made.mount("30 1 0:45 / /home rw - btrfs /dev/mapper/vg-data rw");
        assert_eq!(made.uses((259, 2)), [held, mounted_at("dm-0", "/home")]);
    }

    #[test]
    fn swap_and_the_root_disk_are_found() {
        let made = Made::new();
        made.write("proc/swaps", "Filename Type\n/dev/nvme0n1p1 partition\n");
        let swap = Use::Swap {
            device: "nvme0n1p1".into(),
        };
        assert!(made.uses((259, 0)).contains(&swap));
        assert!(!made.uses((259, 2)).contains(&swap));
        // A partition of the root disk, although root is on another partition.
        let made = Made::new();
        made.mount("25 1 259:1 / / rw shared:1 - ext4 /dev/root rw");
        let root = Use::Root {
            device: "nvme0n1".into(),
        };
        assert!(made.uses((259, 2)).contains(&root));
        assert_eq!(
            made.uses((259, 0))
                .iter()
                .filter(|it| **it == mounted_at("nvme0n1p1", "/"))
                .count(),
            1
        );
        assert!(!made.uses((8, 0)).contains(&root));
    }
}
