//! Text of `zpool iostat -w`, `-r` or `-q`: the synchronous share of the writes of a real ZFS pool. It answers whether
//! the pool needs a log device, but gives no rate by which a log could be sized.
//!
//! `-w` (latency histograms) and `-r` (request sizes) count the I/Os of each priority queue. The share is the writes of
//! the synchronous queue among those of both queues; for `-r`, individual and aggregated I/Os are added. Several pools,
//! vdevs and intervals are added. The first table of a vdev is of the time since boot: it is left out if more tables of
//! this vdev follow. `-q` shows only how many I/Os are queued or in flight at the end of each interval. Such samples
//! miss short writes, so at least [`SAMPLES`] of them with writes are required to say that none is synchronous.
//!
//! The synchronous queue also has writes of labels and uberblocks, a few for each transaction group. A share of at most
//! [`LABELS`] is therefore taken for no synchronous load. K, M and G are multiples of 1024. Not covered: `-H` (no
//! header), and an idle pool, whose labels are a large share of its writes.
//!
//! Sources: OpenZFS, zpool-iostat(8) of 29 January 2024; the header lines as OpenZFS 2.1 prints them; that labels use the
//! synchronous queue is from memory, not checked.

use std::collections::BTreeMap;

use text::problem::{Place, Problem, Problems};

use super::zilstat::{ZilStatistics, number};
use crate::review::results::rounded;

/// Share of synchronous writes that labels and uberblocks may cause.
const LABELS: f64 = 0.01;
/// Minimum number of writes whose share is meaningful.
const WRITES: f64 = 1_000.0;
/// Minimum number of samples with writes in which no synchronous write is queued.
const SAMPLES: usize = 100;

const HELP: &str =
    "make the file with `zpool iostat -w POOL 60 2 > zil.txt` while the pool is busy";

/// Table that an option of `zpool iostat` prints.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum IostatTable {
    /// `-w`.
    Latency,
    /// `-r`.
    Size,
    /// `-q`.
    Queues,
}

impl IostatTable {
    /// Returns the kind of a second header line.
    fn from_header(words: &[&str]) -> Option<IostatTable> {
        match *words.first()? {
            "latency" => Some(IostatTable::Latency),
            "req_size" => Some(IostatTable::Size),
            "pool" if words.contains(&"pend") => Some(IostatTable::Queues),
            _ => None,
        }
    }

    /// Returns the names of the columns of synchronous and of asynchronous writes, and how many columns each has.
    const fn groups(self) -> [&'static str; 2] {
        match self {
            IostatTable::Latency => ["syncq_wait", "asyncq_wait"],
            IostatTable::Size => ["sync_write", "async_write"],
            IostatTable::Queues => ["syncq_write", "asyncq_write"],
        }
    }

    /// Returns the first group of the first header line.
    const fn first(self) -> &'static str {
        match self {
            IostatTable::Latency => "total_wait",
            IostatTable::Size => "sync_read",
            IostatTable::Queues => "capacity",
        }
    }
}

/// Columns of a table.
struct Columns {
    kind: IostatTable,
    /// Name of the pool or vdev; empty for `-q`, whose lines have it.
    name: String,
    count: usize,
    /// Columns of synchronous and of asynchronous writes.
    writes: [Vec<usize>; 2],
}

impl Columns {
    /// Reads two header lines; each group has two columns, except the single ones at the end.
    fn read(above: &[&str], below: &[&str], kind: IostatTable) -> Option<Columns> {
        let first = above.iter().position(|word| *word == kind.first())?;
        let column = |group: &str| {
            let at = above.iter().position(|word| *word == group)? - first;
            // Of a pair of read and write, the second one; otherwise both.
            Some(match kind {
                IostatTable::Latency => vec![2 + 2 * at],
                IostatTable::Size | IostatTable::Queues => vec![1 + 2 * at, 2 + 2 * at],
            })
        };
        let [synchronous, asynchronous] = kind.groups().map(column);
        Some(Columns {
            kind,
            name: above[..first].join(" "),
            count: below.len(),
            writes: [synchronous?, asynchronous?],
        })
    }

    /// Returns the synchronous and asynchronous writes of a line; `None` if it is invalid.
    fn writes(&self, words: &[&str]) -> Option<[f64; 2]> {
        if words.len() != self.count {
            return None;
        }
        let of = |columns: &Vec<usize>| -> Option<f64> {
            columns.iter().map(|at| cell(words.get(*at)?)).sum()
        };
        Some([of(&self.writes[0])?, of(&self.writes[1])?])
    }
}

/// Reads a cell; a dash is 0.
fn cell(word: &str) -> Option<f64> {
    if word == "-" { Some(0.0) } else { number(word) }
}

/// Reads the text of `zpool iostat -w`, `-r` or `-q`, or of `zilstat -i 1`.
///
/// # Errors
/// The text is of none of them, or a line is invalid; with its number.
pub fn read_statistics(source: &str, text: &str) -> Result<ZilStatistics, Problems> {
    match is_one(text) {
        true => read(source, text),
        false => ZilStatistics::read(source, text),
    }
}

/// Checks whether a text is of `zpool iostat -w`, `-r` or `-q`.
fn is_one(text: &str) -> bool {
    let words = |line: &str| {
        IostatTable::from_header(&line.split_whitespace().collect::<Vec<_>>()).is_some()
    };
    text.lines().any(words)
}

/// Reads the text of a file.
///
/// # Errors
/// A line is invalid, with its number, or the file has too few writes.
fn read(source: &str, text: &str) -> Result<ZilStatistics, Problems> {
    let mut above: Vec<&str> = Vec::new();
    let mut columns: Option<Columns> = None;
    // Of each pool or vdev, the writes of its tables.
    let mut tables: BTreeMap<String, Vec<[f64; 2]>> = BTreeMap::new();
    let mut kind = IostatTable::Latency;
    let mut problems = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_rule = words
            .iter()
            .all(|word| word.chars().all(|it| it == '-') && word.len() > 1);
        if is_rule {
            continue;
        }
        if let Some(found) = IostatTable::from_header(&words) {
            columns = Columns::read(&above, &words, found);
            kind = found;
            if columns.is_none() {
                problems.push(line_problem(
                    source,
                    index,
                    "the line above does not name the queues",
                ));
            }
            if let Some(table) = columns.as_ref().filter(|_| found != IostatTable::Queues) {
                tables.entry(table.name.clone()).or_default().push([0.0; 2]);
            }
        } else if let Some(table) = columns.as_ref().filter(|table| is_of(table, &words)) {
            let name = match table.kind {
                IostatTable::Queues => words[0],
                _ => &table.name,
            };
            let rows = tables.entry(name.to_owned()).or_default();
            match (table.writes(&words), rows.last_mut()) {
                (Some(writes), Some(sum)) if table.kind != IostatTable::Queues => {
                    sum[0] += writes[0];
                    sum[1] += writes[1];
                }
                (Some(writes), _) => rows.push(writes),
                (None, _) => {
                    problems.push(line_problem(source, index, "not a line of zpool iostat"))
                }
            }
        }
        above = words;
    }
    Problems(problems).or(())?;
    // The first table is of the time since boot.
    let counted = tables.values().flat_map(|all| match all.len() {
        0 | 1 => &all[..],
        _ => &all[1..],
    });
    let counted: Vec<[f64; 2]> = counted.copied().collect();
    match kind {
        IostatTable::Queues => of_samples(source, &counted),
        IostatTable::Latency | IostatTable::Size => of_counts(source, &counted),
    }
}

/// Checks whether a line belongs to a table: it begins with a bucket, or for `-q` has as many words.
fn is_of(table: &Columns, words: &[&str]) -> bool {
    match table.kind {
        IostatTable::Queues => words.len() == table.count,
        // A time stamp is one word.
        _ => words.len() > 1 && words[0].starts_with(|it: char| it.is_ascii_digit()),
    }
}

/// Returns the statistics of counted I/Os.
fn of_counts(source: &str, tables: &[[f64; 2]]) -> Result<ZilStatistics, Problems> {
    let sum = |at: usize| tables.iter().map(|writes| writes[at]).sum::<f64>();
    let (synchronous, all) = (sum(0), sum(0) + sum(1));
    if all < WRITES {
        let what = format!("{all:.0} writes are too few: at least {WRITES:.0}");
        return Err(few(source, what, HELP));
    }
    let share = rounded(synchronous / all);
    Ok(statistics(
        source,
        tables.len(),
        share > LABELS,
        Some(share),
    ))
}

/// Returns the statistics of samples of the queues.
fn of_samples(source: &str, samples: &[[f64; 2]]) -> Result<ZilStatistics, Problems> {
    let is_used = samples.iter().any(|writes| writes[0] > 0.0);
    let with_writes = samples.iter().filter(|writes| writes[1] > 0.0).count();
    if !is_used && with_writes < SAMPLES {
        let what = format!(
            "no synchronous write is queued in {with_writes} samples with writes, which is too few to rule them out: at least {SAMPLES}"
        );
        let help = "`zpool iostat -w POOL 60 2` counts all writes";
        return Err(few(source, what, help));
    }
    Ok(statistics(source, samples.len(), is_used, None))
}

fn statistics(source: &str, intervals: usize, is_used: bool, share: Option<f64>) -> ZilStatistics {
    ZilStatistics {
        source: source.to_owned(),
        intervals,
        most_mb_s: 0.0,
        mean_mb_s: 0.0,
        is_used,
        is_iostat: true,
        synchronous_share: share,
    }
}

fn few(source: &str, what: String, help: &str) -> Problems {
    Problems(vec![Problem {
        origin: source.to_owned(),
        place: Place::Whole,
        what,
        help: Some(String::from(help)),
    }])
}

fn line_problem(source: &str, index: usize, what: &str) -> Problem {
    Problem {
        origin: source.to_owned(),
        place: Place::Line(index + 1),
        what: String::from(what),
        help: Some(String::from(HELP)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATENCY: &str = "tank         total_wait     disk_wait    syncq_wait    asyncq_wait\n\
                           latency      read  write   read  write   read  write   read  write  scrub   trim  rebuild\n\
                           ----------  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----\n";

    /// Returns a table with these synchronous and asynchronous writes.
    fn latency(synchronous: &str, asynchronous: &str) -> String {
        format!(
            "{LATENCY}1us  0  0  0  0  0  0  0  0  0  0  0\n\
             2us  9  9  9  9  9  {synchronous}  0  {asynchronous}  0  0  0\n\
             ------------------------------------------------------------\n"
        )
    }

    /// By hand: 2K are 2,048 writes, 10 of 2,058 are 0.49 %; labels may be 1 %.
    #[test]
    fn the_share_is_that_of_the_synchronous_queue() {
        let found = read_statistics("z", &latency("10", "2K")).expect("a table");
        assert_eq!(found.synchronous_share, Some(0.004_859_09));
        assert!(found.needs_no_log() && found.rate().is_none(), "{found:?}");
        let found = read_statistics("z", &latency("1K", "1K")).expect("a table");
        assert_eq!(found.synchronous_share, Some(0.5));
        assert!(
            !found.needs_no_log() && found.has_metadata_only(),
            "{found:?}"
        );
    }

    /// The first table is of the time since boot, and does not count if another one follows.
    #[test]
    fn tables_after_the_first_count() {
        let text = latency("1M", "1M") + &latency("0", "5000");
        let found = read_statistics("z", &text).expect("two tables");
        assert_eq!((found.synchronous_share, found.intervals), (Some(0.0), 1));
        // Another pool has a first table of its own.
        let other = latency("0", "5000").replace("tank", "data");
        let text = latency("1M", "1M") + &other;
        assert!(
            !read_statistics("z", &text)
                .expect("two pools")
                .needs_no_log()
        );
    }

    #[test]
    fn request_sizes_count_individual_and_aggregated_writes() {
        let sizes = |synchronous: &str| {
            format!(
                "tank            sync_read    sync_write    async_read    async_write      scrub         trim\n\
                 req_size      ind    agg    ind    agg    ind    agg    ind    agg    ind    agg    ind    agg\n\
                 ----------  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----\n\
                 4K              0      0      {synchronous}      0      0      0   1500    500      0      0      0      0\n"
            )
        };
        let found = read_statistics("z", &sizes("2000")).expect("a table");
        assert_eq!(found.synchronous_share, Some(0.5));
        assert!(
            read_statistics("z", &sizes("2"))
                .expect("a table")
                .needs_no_log()
        );
    }

    #[test]
    fn samples_of_queues_need_many_to_say_none() {
        let header = "              capacity     operations     bandwidth    syncq_read    syncq_write   asyncq_read  asyncq_write\n\
                      pool        alloc   free   read  write   read  write   pend  activ   pend  activ   pend  activ   pend  activ\n";
        let line = |synchronous: u32| {
            format!(
                "tank        1.2T   2.1T   0   500   0   60M   0   0   0   {synchronous}   0   0   3   2\n"
            )
        };
        let quiet = format!("{header}{}", line(0).repeat(101));
        assert!(
            read_statistics("z", &quiet)
                .expect("samples")
                .needs_no_log()
        );
        let busy = format!("{quiet}{}", line(1));
        assert!(!read_statistics("z", &busy).expect("samples").needs_no_log());
        let short = format!("{header}{}", line(0).repeat(20));
        let problems = read_statistics("z", &short).expect_err("too few");
        assert!(
            problems.0[0].what.contains("19 samples"),
            "{:?}",
            problems.0
        );
    }

    #[test]
    fn invalid_lines_and_idle_pools_are_refused() {
        for text in [
            latency("x", "2K"),
            latency("1 1", "2K"),
            latency("3", "4"),
            String::from("tank  nothing\nlatency  read  write\n1us 0 0\n"),
        ] {
            let problems = read_statistics("z", &text).expect_err(&text);
            let help = problems.0[0].help.as_deref().expect("help");
            assert!(help.contains("zpool iostat -w"), "{help}");
        }
    }
}
