//! Text of `zilstat -i 1`: the rates of the intent log of a real ZFS pool. They answer whether the pool needs a log
//! device, and give the rate by which a log is sized.
//!
//! Each line has the rates of one interval: `idb/s` (copied and needcopy bytes) and `iib/s` (indirect bytes), or their
//! sum `iwb/s`. Indirect data is written to main without a log device, and to the log device of a pool that has one, so
//! both count. These columns have records of data only.
//!
//! `ic/s` (all records) and the columns of allocated blocks (`imnc/s`, `imnw/s`, `imsc/s`, `imsw/s`) also have records
//! of metadata, such as creations of files that are then synced. These use a log as well, but the file does not give
//! their rate in bytes. K, M and G are multiples of 1024 in columns of bytes. Lines of one time (several datasets) are
//! added. Texts of `zpool iostat` are read by `super::zpool_iostat`.
//!
//! Sources: OpenZFS, zilstat(1) of 9 March 2026, and the printing of its script (`cmd/zilstat.in`); that a log device
//! takes indirect data is from memory, not checked.

use std::collections::BTreeMap;

use serde::Serialize;
use text::problem::{Place, Problem, Problems};

use crate::review::results::rounded;

/// Rates of an intent log over the intervals of a file.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ZilStatistics {
    /// Name of the file.
    pub source: String,
    /// Number of intervals.
    pub intervals: usize,
    /// Bytes logged per second in the interval with the most, 10^6.
    pub most_mb_s: f64,
    /// Mean over the intervals.
    pub mean_mb_s: f64,
    /// Whether some interval logged data or metadata.
    pub is_used: bool,
    /// Whether it is a text of `zpool iostat`, which has no rates.
    #[serde(skip)]
    pub is_iostat: bool,
    /// Whether the file decides if the log is used; if not, `is_used` is true.
    #[serde(skip)]
    pub is_decided: bool,
    /// For `zpool iostat -w` and `-r`: synchronous writes as a share of all, labels included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub synchronous_share: Option<f64>,
    /// For `zpool iostat -w` and `-r`: number of synchronous writes, labels included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub synchronous_writes: Option<f64>,
}

/// How to make a file.
const HELP: &str = "make the file with `zilstat -i 1 > zil.txt`, or `zpool iostat -w POOL 60 2 > zil.txt`, while the pool is busy";

/// ZilColumns whose sum is the logged bytes: the total, or its two parts.
const TOTAL: [&str; 1] = ["iwb/s"];
const PARTS: [&str; 2] = ["idb/s", "iib/s"];
/// Columns that are not zero if anything was logged: records, and blocks of pool and log device with their bytes.
const USE: [&str; 5] = ["ic/s", "imnc/s", "imnw/s", "imsc/s", "imsw/s"];

/// Bound of a number in a file: sums of numbers below it are finite.
const MOST: f64 = 1e24;

/// Rates of one line or interval.
#[derive(Clone, Copy, Default)]
struct ZilRates {
    bytes: f64,
    is_used: bool,
}

impl ZilStatistics {
    /// Checks whether nothing was logged, so that a log device would have no effect.
    pub fn needs_no_log(&self) -> bool {
        !self.is_used
    }

    /// Checks whether records of metadata were logged, but no data.
    pub fn has_metadata_only(&self) -> bool {
        self.is_used && self.rate().is_none()
    }

    /// Returns the bytes per second of the busiest interval; `None` if no data was logged.
    pub fn rate(&self) -> Option<f64> {
        (self.most_mb_s > 0.0).then_some(self.most_mb_s * 1e6)
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// The text is not that of `zilstat` with an interval, or a line is invalid; with its number.
    pub fn read(source: &str, text: &str) -> Result<ZilStatistics, Problems> {
        let mut columns: Option<ZilColumns> = None;
        let mut seen: BTreeMap<usize, ZilRates> = BTreeMap::new();
        let (mut at, mut time) = (0, String::new());
        let mut problems = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let words: Vec<&str> = line.split_whitespace().collect();
            if words.is_empty() {
                continue;
            }
            if is_header(&words) {
                match ZilColumns::from_header(&words) {
                    Ok(found) => columns = Some(found),
                    Err(what) => problems.push(problem(source, index, what)),
                }
                continue;
            }
            let Some(columns) = &columns else { continue };
            match columns.rates(&words) {
                Some(rates) => {
                    let now = columns.time.and_then(|it| words.get(it)).copied();
                    if now.is_none_or(|now| now != time) {
                        at += 1;
                        time = now.unwrap_or_default().to_owned();
                    }
                    let interval = seen.entry(at).or_default();
                    interval.bytes += rates.bytes;
                    interval.is_used |= rates.is_used;
                }
                None => problems.push(problem(
                    source,
                    index,
                    String::from("not a line of zilstat"),
                )),
            }
        }
        Problems(problems).or(())?;
        if columns.is_none() || seen.len() < 2 {
            let what = match columns {
                None => "no header of zilstat with idb/s and iib/s, or iwb/s",
                Some(_) => "fewer than two intervals: the first line of zilstat is always 0",
            };
            return Err(Problems(vec![Problem {
                help: Some(String::from(HELP)),
                ..Problems::whole(source, what).0.remove(0)
            }]));
        }
        // The first interval has no predecessor and is printed as 0.
        let intervals = || seen.values().skip(1);
        let rates: Vec<f64> = intervals().map(|one| one.bytes).collect();
        Ok(ZilStatistics {
            source: source.to_owned(),
            intervals: rates.len(),
            most_mb_s: rounded(rates.iter().copied().fold(0.0, f64::max) * 1e-6),
            mean_mb_s: rounded(rates.iter().sum::<f64>() / rates.len() as f64 * 1e-6),
            is_used: intervals().any(|one| one.is_used),
            is_iostat: false,
            is_decided: true,
            synchronous_share: None,
            synchronous_writes: None,
        })
    }
}

fn problem(source: &str, index: usize, what: String) -> Problem {
    Problem {
        origin: source.to_owned(),
        place: Place::Line(index + 1),
        what,
        help: Some(String::from(HELP)),
    }
}

/// Checks whether a line names columns of zilstat.
fn is_header(words: &[&str]) -> bool {
    let bare = |word: &&str| ["cc", "ic", "idb", "iwb"].contains(&word.trim_end_matches("/s"));
    words.iter().any(bare)
}

/// Positions of the columns in a line.
struct ZilColumns {
    count: usize,
    time: Option<usize>,
    bytes: Vec<usize>,
    uses: Vec<usize>,
}

impl ZilColumns {
    fn from_header(words: &[&str]) -> Result<ZilColumns, String> {
        let at = |name: &&str| words.iter().position(|word| word == name);
        let total: Option<Vec<usize>> = TOTAL.iter().map(at).collect();
        let parts: Option<Vec<usize>> = PARTS.iter().map(at).collect();
        let bytes =
            total
                .or(parts)
                .ok_or_else(|| match words.iter().any(|word| word.ends_with("/s")) {
                    true => String::from("the columns idb and iib, or iwb, are missing"),
                    false => String::from("values since the start of the module, not per second"),
                })?;
        Ok(ZilColumns {
            count: words.len(),
            time: at(&"time"),
            bytes,
            uses: USE.iter().filter_map(at).collect(),
        })
    }

    /// Returns the rates of a line; `None` if it is invalid.
    fn rates(&self, words: &[&str]) -> Option<ZilRates> {
        if words.len() != self.count {
            return None;
        }
        let sum = |columns: &[usize]| -> Option<f64> {
            columns.iter().map(|at| number(words.get(*at)?)).sum()
        };
        let bytes = sum(&self.bytes)?;
        Some(ZilRates {
            bytes,
            is_used: bytes > 0.0 || sum(&self.uses)? > 0.0,
        })
    }
}

/// Reads a number of bytes as zilstat prints it: `17K` is 17 x 1024.
pub(super) fn number(word: &str) -> Option<f64> {
    let units = ['K', 'M', 'G', 'T', 'P'];
    let (digits, power) = match word
        .chars()
        .last()
        .and_then(|last| units.iter().position(|it| *it == last))
    {
        Some(at) => (&word[..word.len() - 1], at as i32 + 1),
        None => (word, 0),
    };
    let value: f64 = digits.parse().ok()?;
    let bytes = value * libm::pow(1024.0, f64::from(power));
    (value >= 0.0 && bytes < MOST).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str =
        "    time   cc/s   ic/s  idc/s  idb/s  iic/s  iib/s  imnc/s  imnw/s  imsc/s  imsw/s\n";

    fn read(lines: &str) -> Result<ZilStatistics, Problems> {
        ZilStatistics::read("zil.txt", &format!("{HEADER}{lines}"))
    }

    /// By hand: 2.0M and 512K are (2 + 0.5) x 1,048,576 = 2.62 MB/s.
    #[test]
    fn the_rate_is_that_of_the_busiest_interval() {
        let busy = "10:00:00  0  0  0  0  0  0  0  0  0  0\n\
                    10:00:01  9  9  9  2.0M  1  512K  0  0  9  3.0M\n\
                    10:00:02  1  1  1  1000  0  0  0  0  1  4K\n";
        let found = read(busy).expect("zilstat's lines");
        assert_eq!((found.intervals, found.most_mb_s), (2, 2.62144));
        assert!((found.mean_mb_s - 1.31122).abs() < 1e-4, "{found:?}");
        assert!(!found.needs_no_log() && !found.has_metadata_only());
        assert_eq!(found.rate(), Some(2.62144e6));
    }

    #[test]
    fn datasets_of_one_time_are_added_and_an_idle_log_is_not_needed() {
        let text = "time ds cc/s idb/s iib/s\n1 a 0 0 0\n1 b 0 0 0\n2 a 1 1K 0\n2 b 1 3K 0\n";
        let found = ZilStatistics::read("z", text).expect("zilstat's lines");
        assert_eq!((found.intervals, found.most_mb_s), (1, 0.004096));
        let idle = "1 0 0 0 0 0 0 0 0 0 0\n2 0 0 0 0 0 0 0 0 0 0\n3 7 0 0 0 0 0 0 0 0 0\n";
        assert!(read(idle).expect("zilstat's lines").needs_no_log());
    }

    /// Creations of files that are synced write records without data: 200 blocks of 8 KiB per second.
    #[test]
    fn metadata_uses_a_log_without_a_rate_of_data() {
        let metadata = "1 0 0 0 0 0 0 0 0 0 0\n2 200 500 0 0 0 0 200 1.6M 0 0\n";
        let found = read(metadata).expect("zilstat's lines");
        assert!(
            !found.needs_no_log() && found.has_metadata_only(),
            "{found:?}"
        );
        assert_eq!(found.rate(), None);
        // The first interval does not count.
        let first = "1 9 9 9 9 9 9 9 9 9 9\n2 5 0 0 0 0 0 0 0 0 0\n";
        let idle = read(first).expect("zilstat's lines");
        assert!(idle.needs_no_log() && !idle.has_metadata_only(), "{idle:?}");
    }

    #[test]
    fn other_texts_are_refused_with_the_command_that_makes_one() {
        let iostat =
            "              capacity     operations\npool        alloc   free   read  write\n";
        let since =
            "    time     cc     ic    idc    idb    iic    iib\n10:00:00  9  9  9  9K  0  0\n";
        for text in [
            "",
            iostat,
            since,
            &format!("{HEADER}1 2 3\n"),
            &format!("{HEADER}1 0 0 0 xK 0 0 0 0 0 0\n"),
        ] {
            let problems = ZilStatistics::read("zil.txt", text).expect_err(text);
            let help = problems.0[0].help.as_deref().expect("help");
            assert!(help.contains("zilstat -i 1"), "{help}");
        }
    }
}
