//! `dd` as a job: its operands become fio's options.
//!
//! `dd` reads a block and writes it, one at a time, with read and write. One side is the drive, or a file on it; the
//! other is `/dev/zero`, `/dev/null` or the like and takes no time. Not modelled: the time to generate random bytes,
//! copies from drive to drive, conversion of data.
//!
//! Source: GNU coreutils 9, manual, "dd invocation".

use std::fmt::Display;

use super::files::is_device;
use text::problem::{Place, Problem, Problems};

const ORIGIN: &str = "--dd";

/// A `dd` as options of a fio job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dd {
    /// Options of the job.
    pub options: Vec<String>,
    /// Block size in bytes (`bs`).
    pub block: u64,
    /// Remarks for the user.
    pub notes: Vec<String>,
}

/// Operands of a command line.
#[derive(Default)]
struct Operands {
    from: Option<String>,
    to: Option<String>,
    block: Option<u64>,
    count: Option<u64>,
    skip: u64,
    seek: u64,
    /// Flags of `conv`, `iflag` and `oflag`.
    conv: Vec<String>,
    iflag: Vec<String>,
    oflag: Vec<String>,
    problems: Problems,
}

impl Operands {
    fn add_problem(&mut self, what: impl Display, help: impl Into<String>) {
        self.problems.0.push(Problem {
            origin: ORIGIN.into(),
            place: Place::Whole,
            what: what.to_string(),
            help: Some(help.into()),
        });
    }

    fn number(&mut self, key: &str, value: &str) -> u64 {
        number(value).unwrap_or_else(|| {
            self.add_problem(
                format!("invalid number in {key}={value}"),
                "a number with a unit, such as 512, 4k, 1M, 1MB (10^6) or 2x1M",
            );
            1
        })
    }

    fn flags(&mut self, key: &str, value: &str, known: &[&str]) -> Vec<String> {
        let flags: Vec<String> = value.split(',').map(String::from).collect();
        for flag in &flags {
            if !known.contains(&flag.as_str()) {
                self.add_problem(
                    format!("{key}={flag} is not simulated"),
                    format!("{key} may be {}", known.join(", ")),
                );
            }
        }
        flags
    }

    fn read(&mut self, operand: &str) {
        let Some((key, value)) = operand.split_once('=') else {
            return self.add_problem(
                format!("unknown operand `{operand}`"),
                "KEY=VALUE, such as bs=1M",
            );
        };
        match key {
            "if" => self.from = Some(value.into()),
            "of" => self.to = Some(value.into()),
            "bs" | "ibs" | "obs" => {
                let bytes = self.number(key, value);
                if self.block.is_some_and(|block| block != bytes) {
                    self.add_problem(
                        format!("{key}={value} differs from the block size given before"),
                        "one block size for both sides: bs=1M",
                    );
                }
                self.block = Some(bytes);
            }
            "count" => self.count = Some(self.number(key, value)),
            "skip" | "iseek" => self.skip = self.number(key, value),
            "seek" | "oseek" => self.seek = self.number(key, value),
            "conv" => {
                let known = [
                    "fdatasync",
                    "fsync",
                    "notrunc",
                    "noerror",
                    "nocreat",
                    "excl",
                ];
                self.conv = self.flags(key, value, &known);
            }
            "iflag" => {
                let known = ["direct", "fullblock", "count_bytes", "skip_bytes"];
                self.iflag = self.flags(key, value, &known);
            }
            "oflag" => {
                let known = ["direct", "dsync", "sync", "seek_bytes"];
                self.oflag = self.flags(key, value, &known);
            }
            "status" => {}
            _ => self.add_problem(
                format!("unknown operand `{key}`"),
                "if, of, bs, count, skip, seek, conv, iflag, oflag, status",
            ),
        }
    }

    /// Returns the drive's side: its name, and whether it is written. `None` is a problem.
    fn drive(&mut self) -> Option<(String, bool)> {
        let no_drive = |name: &Option<String>| {
            let name = name.as_deref();
            name.is_none_or(|name| {
                matches!(
                    name,
                    "/dev/zero" | "/dev/null" | "/dev/urandom" | "/dev/random"
                )
            })
        };
        match (no_drive(&self.from), no_drive(&self.to)) {
            (true, false) => self.to.clone().map(|to| (to, true)),
            (false, true) => self.from.clone().map(|from| (from, false)),
            (true, true) => {
                self.add_problem(
                    "neither if nor of is a drive",
                    "of=/dev/x writes the simulated drive, if=/dev/x reads it, and of=FILE writes a file on it",
                );
                None
            }
            (false, false) => {
                self.add_problem(
                    "a copy from drive to drive is not simulated",
                    "if=/dev/zero, or of=/dev/null",
                );
                None
            }
        }
    }
}

impl Operands {
    /// Returns options of the job that reads or writes this drive or file.
    fn options(&self, name: &str, writes: bool, block: u64, size: Option<u64>) -> Vec<String> {
        let (start, by_byte, flags) = match writes {
            true => (self.seek, has(&self.oflag, "seek_bytes"), &self.oflag),
            false => (self.skip, has(&self.iflag, "skip_bytes"), &self.iflag),
        };
        let start = match by_byte {
            true => start,
            false => start.saturating_mul(block),
        };
        let mut options: Vec<String> = [
            "--name=dd",
            "--ioengine=psync",
            "--fadvise_hint=0",
            "--invalidate=0",
        ]
        .map(String::from)
        .into();
        options.push(format!("--filename={name}"));
        options.push(format!("--rw={}", if writes { "write" } else { "read" }));
        options.push(format!("--bs={block}"));
        options.push(format!("--direct={}", u8::from(has(flags, "direct"))));
        options.extend(size.map(|size| format!("--size={size}")));
        if start > 0 {
            options.push(format!("--offset={start}"));
        }
        if writes {
            let mut each = ["dsync", "sync"].into_iter();
            let each = each.find(|it| has(&self.oflag, it));
            options.extend(each.map(|each| format!("--sync={each}")));
            if has(&self.conv, "fdatasync") || has(&self.conv, "fsync") {
                options.push("--end_fsync=1".into());
            }
        }
        options
    }
}

/// Returns a number with coreutils' suffixes; products are written `2x1M`.
fn number(text: &str) -> Option<u64> {
    text.split('x').try_fold(1u64, |product, factor| {
        let at = factor.find(|c: char| !c.is_ascii_digit());
        let (digits, unit) = factor.split_at(at.unwrap_or(factor.len()));
        let power = |letter: char| "kMGTPE".find(letter).map(|power| power as u32 + 1);
        let unit = match unit {
            "" | "c" | "B" => 1,
            "w" => 2,
            "b" => 512,
            unit => {
                let mut letters = unit.chars();
                let first = letters.next().map(|it| if it == 'K' { 'k' } else { it });
                let power = first.and_then(power)?;
                match letters.as_str() {
                    "" | "iB" => 1024u64.checked_pow(power)?,
                    "B" => 1000u64.checked_pow(power)?,
                    _ => return None,
                }
            }
        };
        product.checked_mul(digits.parse::<u64>().ok()?.checked_mul(unit)?)
    })
}

/// Converts operands of `dd`, separated by spaces, into a job.
///
/// # Errors
/// Everything that is invalid or not simulated.
pub fn dd(text: &str) -> Result<Dd, Problems> {
    let mut operands = Operands::default();
    let words = text.split_whitespace().skip_while(|&word| word == "dd");
    for operand in words {
        operands.read(operand);
    }
    let drive = operands.drive();
    let block = operands.block.unwrap_or(512);
    if block == 0 {
        operands.add_problem("bs=0: blocks of no bytes", "at least 1");
    }
    let Some((name, writes)) = drive else {
        return Err(operands.problems);
    };
    let size = operands
        .count
        .map(|count| match has(&operands.iflag, "count_bytes") {
            true => count,
            false => count.saturating_mul(block),
        });
    if size.is_none() && !is_device(&name) {
        operands.add_problem(
            format!("{name} is endless"),
            "count=N, or a device such as /dev/x, which has a last block",
        );
    }
    let mut notes = Vec::new();
    if operands
        .from
        .as_deref()
        .is_some_and(|from| from.ends_with("random"))
    {
        notes.push("--dd: the time to generate random bytes is not simulated".into());
    }
    let options = operands.options(&name, writes, block, size);
    operands.problems.or(Dd {
        options,
        block,
        notes,
    })
}

fn has(flags: &[String], flag: &str) -> bool {
    flags.iter().any(|it| it == flag)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(text: &str) -> String {
        dd(text).expect("valid").options[4..].join(" ")
    }

    #[test]
    fn operands_become_options_of_fio() {
        assert_eq!(
            options("dd if=/dev/zero of=/dev/x bs=1M count=1024 conv=fdatasync"),
            "--filename=/dev/x --rw=write --bs=1048576 --direct=0 --size=1073741824 --end_fsync=1"
        );
        assert_eq!(
            options("if=/dev/x of=/dev/null bs=128K count=10 skip=2 iflag=direct status=none"),
            "--filename=/dev/x --rw=read --bs=131072 --direct=1 --size=1310720 --offset=262144"
        );
        assert_eq!(
            options("if=/dev/zero of=/dev/x oflag=direct,dsync bs=4k count=1000"),
            "--filename=/dev/x --rw=write --bs=4096 --direct=1 --size=4096000 --sync=dsync"
        );
        assert_eq!(
            options("if=/dev/zero of=file count=8192 iflag=count_bytes seek=1"),
            "--filename=file --rw=write --bs=512 --direct=0 --size=8192 --offset=512"
        );
        assert_eq!(
            dd("if=/dev/urandom of=/dev/x").expect("valid").notes.len(),
            1
        );
    }

    #[test]
    fn numbers_have_the_suffixes_of_coreutils() {
        for (text, bytes) in [
            ("512", 512),
            ("4b", 2048),
            ("1k", 1024),
            ("1K", 1024),
            ("1kB", 1000),
            ("2x1M", 2 << 20),
            ("3GiB", 3 << 30),
            ("1GB", 1_000_000_000),
        ] {
            assert_eq!(number(text), Some(bytes), "{text}");
        }
        for text in ["", "k", "1q", "1x", "99999999999E", "-1"] {
            assert_eq!(number(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_not_simulated_is_refused() {
        for (text, said) in [
            ("if=/dev/zero bs=1M", "neither if nor of is a drive"),
            ("if=/dev/x of=/dev/y", "from drive to drive"),
            ("if=/dev/zero of=/dev/x bs=1q", "invalid number in bs=1q"),
            (
                "if=/dev/zero of=/dev/x ibs=1k obs=2k",
                "differs from the block size",
            ),
            (
                "if=/dev/zero of=/dev/x conv=ucase",
                "conv=ucase is not simulated",
            ),
            ("if=/dev/zero of=/dev/x block=1", "unknown operand `block`"),
            ("if=/dev/zero of=/dev/x fast", "unknown operand `fast`"),
            ("if=/dev/zero of=file", "is endless"),
            ("if=/dev/zero of=/dev/x bs=0", "blocks of no bytes"),
        ] {
            let wrong = dd(text).expect_err(text);
            assert!(wrong.0[0].what.contains(said), "{wrong}");
            assert!(wrong.0[0].help.is_some());
        }
    }
}
