//! The file in the folder of a pool's stores that describes the pool: its structure, and the stores that belong to it.
//!
//! It is a short text, `pool.state`: a first line with the version, then `key value` lines; the last line is the
//! CRC-32C of all before it. It is written when the pool is created, and again at each opening, after the labels of
//! the members. So if all members are older than this file states, they are known to be old copies. It is also written
//! whenever a member of a mirror or an array goes out of sync, or is in sync again, before a client can learn of it. All
//! other changing state is in the members' states and labels.

use std::io;
use std::path::{Path, PathBuf};

use tier::below::Opening;

/// First line. The number changes when an older program could misread the rest.
const HEAD: &str = "drivelab-pool 2";
/// First line of the previous version, which has no openings.
const HEAD_1: &str = "drivelab-pool 1";

/// Description of a pool in its folder.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PoolState {
    /// Unique id in the labels of its members.
    pub uuid: u128,
    /// Serial number of the pool.
    pub serial: String,
    /// Served bytes.
    pub bytes: u64,
    /// Structure with a line for each tier, and all other properties that determine the placement of data.
    pub topology: Vec<String>,
    /// Serial number and name of each member, in order.
    pub members: Vec<(String, String)>,
    /// The last opening of the pool.
    pub opening: Opening,
    /// Tiers with children that are out of sync, by name, with these children: one bit each.
    pub behind: Vec<(String, u32)>,
}

impl PoolState {
    /// Returns the text of the file.
    pub fn emit(&self) -> String {
        let mut text = format!(
            "{HEAD}\nuuid {:032x}\nserial {}\nbytes {}\n",
            self.uuid, self.serial, self.bytes
        );
        for line in &self.topology {
            text.push_str(&format!("topology {line}\n"));
        }
        for (serial, name) in &self.members {
            text.push_str(&format!("member {serial} {name}\n"));
        }
        let Opening { number, mark } = self.opening;
        text.push_str(&format!("opening {number} {mark:016x}\n"));
        for (tier, behind) in &self.behind {
            text.push_str(&format!("behind {behind:08x} {tier}\n"));
        }
        let sum = crc32c::crc32c(text.as_bytes());
        text.push_str(&format!("crc32c {sum:08x}\n"));
        text
    }

    /// Parses the text of the file.
    ///
    /// # Errors
    /// The problem, as a message for the user.
    pub fn parse(text: &str) -> Result<PoolState, String> {
        let head = text.lines().next().unwrap_or_default();
        if head != HEAD && head != HEAD_1 {
            return Err(match head.starts_with("drivelab-pool ") {
                true => format!("it is of another version (`{head}`, this program knows `{HEAD}`)"),
                false => String::from("it is not the state of a pool's stores"),
            });
        }
        let tail = text.rfind("crc32c ").ok_or("its end is missing")?;
        let sum = crc32c::crc32c(&text.as_bytes()[..tail]);
        if text[tail..] != format!("crc32c {sum:08x}\n") {
            return Err(String::from("it is damaged: its checksum is wrong"));
        }
        let mut state = PoolState::default();
        for line in text[..tail].split_terminator('\n').skip(1) {
            let wrong = || format!("line `{}`", line.escape_debug());
            let (key, value) = line.split_once(' ').ok_or_else(wrong)?;
            match key {
                "uuid" => state.uuid = u128::from_str_radix(value, 16).map_err(|_| wrong())?,
                "serial" => value.clone_into(&mut state.serial),
                "bytes" => state.bytes = value.parse().map_err(|_| wrong())?,
                "topology" => state.topology.push(value.to_owned()),
                "member" => {
                    let (serial, name) = value.split_once(' ').ok_or_else(wrong)?;
                    state.members.push((serial.to_owned(), name.to_owned()));
                }
                "opening" => {
                    let (number, mark) = value.split_once(' ').ok_or_else(wrong)?;
                    state.opening = Opening {
                        number: number.parse().map_err(|_| wrong())?,
                        mark: u64::from_str_radix(mark, 16).map_err(|_| wrong())?,
                    };
                }
                "behind" => {
                    let (behind, tier) = value.split_once(' ').ok_or_else(wrong)?;
                    let behind = u32::from_str_radix(behind, 16).map_err(|_| wrong())?;
                    state.behind.push((tier.to_owned(), behind));
                }
                _ => return Err(wrong()),
            }
        }
        Ok(state)
    }

    /// Writes the file atomically.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn save(&self, path: &Path) -> io::Result<()> {
        super::state::replace(path, &self.emit())
    }
}

/// Returns the path of the file in a folder.
pub fn pool_state_path(folder: &Path) -> PathBuf {
    folder.join("pool.state")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_saved_is_read_again_and_damage_is_found() {
        let state = PoolState {
            uuid: 7 << 100 | 5,
            serial: "DL1".into(),
            bytes: 1 << 30,
            topology: vec!["m = mirror region 67108864 over a 0+4096, b 0+4096".into()],
            members: vec![("S1".into(), "a b".into()), ("S2".into(), "b".into())],
            opening: Opening {
                number: 9,
                mark: 0xfeed,
            },
            behind: vec![("a mirror".into(), 0x8000_0002)],
        };
        let text = state.emit();
        assert_eq!(PoolState::parse(&text), Ok(state));
        for (from, to, word) in [
            ("bytes 1", "bytes 2", "checksum"),
            ("pool 2", "pool 3", "version"),
            ("drivelab-pool", "whatever", "not the state"),
        ] {
            let said = PoolState::parse(&text.replacen(from, to, 1)).expect_err("damaged");
            assert!(said.contains(word), "{said}");
        }
    }
}
