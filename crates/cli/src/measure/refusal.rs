//! Reasons to refuse a plan that writes to a device, and notes for a plan that reads.
//!
//! A device in use is always refused: mounted, swap, held by another device, the root disk. A device with data of
//! unknown value is refused unless the user named it: partitions, signatures, regular files, exports of a server.

use std::process::{Command, Stdio};

use serde_json::Value;
use study::measure::MeasuredDevice;
use text::problem::Problems;
use text::words::listed;

use super::of_device;
use super::sysfs::{Tree, Use};
use super::target::MeasuredTarget;

/// Kind of the name of a file.
const PATH: &str = "its path";
const URI: &str = "its URI";

/// State of a target.
#[derive(Clone, Debug, Default)]
pub(super) struct TargetState {
    /// Name on the command line.
    path: String,
    /// Name that `--destroy-data` must have.
    name: String,
    /// Kind of that name.
    kind: &'static str,
    /// Uses of the device.
    uses: Vec<Use>,
    /// Descriptions of data on it that may be needed.
    data: Vec<String>,
    /// Checks that failed.
    unknown: Vec<String>,
}

impl TargetState {
    /// Inspects a target.
    pub(super) fn inspect(
        target: &MeasuredTarget,
        device: &MeasuredDevice,
        tree: &Tree,
    ) -> TargetState {
        let mut standing = TargetState {
            path: device.path.clone(),
            name: device.name.clone(),
            ..TargetState::default()
        };
        match target {
            MeasuredTarget::Nbd { .. } => {
                standing.kind = URI;
                standing
                    .data
                    .push("it belongs to a server, and its content is unknown".into());
            }
            MeasuredTarget::File { .. } => {
                standing.kind = PATH;
                standing.data.push("it is a file with data".into());
            }
            MeasuredTarget::Block { block, path } => {
                standing.kind = match device.serial {
                    Some(_) => "its serial number",
                    None => "what tells it from others",
                };
                match tree.uses(block) {
                    Ok(uses) => standing.uses = uses,
                    Err(error) => standing.unknown.push(format!("the mounts ({error})")),
                }
                let partitions = tree.partitions(block);
                if !partitions.is_empty() {
                    standing
                        .data
                        .push(format!("it has partitions: {}", listed(&partitions)));
                }
                match signatures(path) {
                    Ok(found) if found.is_empty() => {}
                    Ok(found) => standing
                        .data
                        .push(format!("it has signatures: {}", listed(&found))),
                    Err(why) => standing
                        .data
                        .push(format!("its signatures cannot be read: {why}")),
                }
            }
        }
        standing
    }

    /// Returns why a plan is refused; `word` is the argument of `--destroy-data`.
    pub(super) fn problems(&self, writes: bool, word: Option<&str>) -> Problems {
        let mut problems = Problems::default();
        let mut refused = |what: String, help: &str| {
            problems.0.push(of_device(&self.path, what, help));
        };
        // A file or an export has no name except its argument; the path of a device may refer to another device later.
        let is_path = self.kind == PATH || self.kind == URI;
        let is_named = |word: &&str| *word == self.name || (is_path && *word == self.path);
        if let Some(word) = word.filter(|word| !is_named(word)) {
            let what = format!(
                "--destroy-data names `{word}`, but {} is `{}`",
                self.kind, self.name
            );
            refused(what, "make sure that it is the right device");
        }
        if !writes {
            return problems;
        }
        for reason in &self.unknown {
            refused(
                format!("cannot be checked: {reason}"),
                "a plan that only reads needs no check: --plan quick",
            );
        }
        for one in &self.uses {
            refused(format!("is in use: {}", one.text()), one.help());
        }
        if word.is_none() {
            let help = format!(
                "the plan destroys its data; if that is meant, add --destroy-data '{}', {}",
                self.name, self.kind
            );
            for reason in &self.data {
                refused(reason.clone(), &help);
            }
        }
        problems
    }

    /// Returns influences that disturb a read-only measurement.
    pub(super) fn notes(&self) -> Vec<String> {
        let uses = self
            .uses
            .iter()
            .map(|it| format!("it was in use meanwhile: {}", it.text()));
        uses.collect()
    }
}

impl Use {
    fn text(&self) -> String {
        match self {
            Use::Mounted { device, at } => format!("{device} is mounted at {at}"),
            Use::Root { device } => format!("the root file system is on {device}"),
            Use::Swap { device } => format!("{device} is swap"),
            Use::Held { device, by } => format!("{device} is part of {by}"),
        }
    }

    fn help(&self) -> &'static str {
        match self {
            Use::Mounted { .. } => {
                "umount it, or measure another; --destroy-data does not change this"
            }
            Use::Root { .. } => "measure another; --destroy-data does not change this",
            Use::Swap { .. } => "swapoff, or measure another; --destroy-data does not change this",
            Use::Held { .. } => {
                "take it out (LVM: vgchange -an, MD: mdadm --stop, dmsetup remove), or measure another; --destroy-data does \
                 not change this"
            }
        }
    }
}

/// Returns the signatures that libblkid finds: file systems, LVM, MD, ZFS, partition tables.
fn signatures(path: &str) -> Result<Vec<String>, String> {
    let found = Command::new("wipefs")
        .args(["--no-act", "--json", "--"])
        .arg(path)
        .stdin(Stdio::null())
        .output();
    let found = found.map_err(|error| format!("wipefs (util-linux): {error}"))?;
    if !found.status.success() {
        return Err(String::from_utf8_lossy(&found.stderr).trim().to_owned());
    }
    types(&String::from_utf8_lossy(&found.stdout))
}

fn types(said: &str) -> Result<Vec<String>, String> {
    // Older versions print nothing if there is nothing.
    if said.trim().is_empty() {
        return Ok(Vec::new());
    }
    let said: Value = serde_json::from_str(said).map_err(|error| format!("wipefs: {error}"))?;
    let all = said["signatures"]
        .as_array()
        .ok_or("wipefs: no `signatures`")?;
    let mut types: Vec<String> = all
        .iter()
        .map(|it| it["type"].as_str().unwrap_or("unknown").to_owned())
        .collect();
    types.dedup();
    Ok(types)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standing(uses: Vec<Use>, data: &[&str]) -> TargetState {
        TargetState {
            path: "/dev/nvme1n1".into(),
            name: "S3EVNX0J".into(),
            kind: "its serial number",
            uses,
            data: data.iter().map(|it| String::from(*it)).collect(),
            unknown: Vec::new(),
        }
    }

    fn said(standing: &TargetState, writes: bool, word: Option<&str>) -> String {
        standing.problems(writes, word).to_string()
    }

    #[test]
    fn a_word_lets_data_go_but_not_what_is_in_use() {
        let partitions = "it has partitions: nvme1n1p1";
        let idle = standing(Vec::new(), &[partitions]);
        let refused = said(&idle, true, None);
        assert!(
            refused.contains(partitions) && refused.contains("--destroy-data 'S3EVNX0J'"),
            "{refused}"
        );
        assert_eq!(said(&idle, true, Some("S3EVNX0J")), "");
        assert_eq!(said(&standing(Vec::new(), &[]), true, None), "");
        let all = [
            Use::Mounted {
                device: "nvme1n1p1".into(),
                at: "/srv".into(),
            },
            Use::Root {
                device: "nvme1n1".into(),
            },
            Use::Swap {
                device: "nvme1n1p2".into(),
            },
            Use::Held {
                device: "nvme1n1p3".into(),
                by: "md0".into(),
            },
        ];
        for one in &all {
            let one = standing(vec![one.clone()], &[]);
            let refused = said(&one, true, Some("S3EVNX0J"));
            assert!(
                refused.contains("is in use") && refused.contains("does not change this"),
                "{refused}"
            );
            assert_eq!(said(&one, false, None), "");
            assert_eq!(one.notes().len(), 1);
        }
        let many = standing(all.to_vec(), &[partitions]);
        assert_eq!(many.problems(true, None).0.len(), 5);
    }

    #[test]
    fn a_word_for_another_device_is_refused() {
        let idle = standing(Vec::new(), &["it has signatures: ext4"]);
        let refused = said(&idle, true, Some("S3EVNX0K"));
        assert!(
            refused.contains("names `S3EVNX0K`, but its serial number is `S3EVNX0J`"),
            "{refused}"
        );
        assert!(said(&idle, false, Some("S3EVNX0K")).contains("names `S3EVNX0K`"));
    }

    #[test]
    fn what_cannot_be_checked_is_refused() {
        let mut blind = standing(Vec::new(), &[]);
        blind.unknown.push("the mounts (denied)".into());
        assert!(said(&blind, true, Some("S3EVNX0J")).contains("cannot be checked"));
        assert_eq!(said(&blind, false, None), "");
    }

    #[test]
    fn signatures_are_read_as_wipefs_writes_them() {
        let said = r#"{"signatures": [{"device": "a", "offset": "0x438", "type": "ext4"}, {"type": "gpt"}, {"type": "gpt"}]}"#;
        assert_eq!(types(said), Ok(vec!["ext4".to_owned(), "gpt".to_owned()]));
        assert_eq!(types(r#"{"signatures": []}"#), Ok(Vec::new()));
        assert_eq!(types("\n"), Ok(Vec::new()));
        assert!(types("{}").is_err() && types("nothing").is_err());
    }
}
