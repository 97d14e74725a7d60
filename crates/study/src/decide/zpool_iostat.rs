//! Text of `zpool iostat -w`, `-r` or `-q`: the synchronous share of the writes of a real ZFS pool. It answers whether
//! the pool needs a log device, but gives no rate by which a log could be sized.
//!
//! `-w` (latency histograms) and `-r` (request sizes) count the I/Os of each priority queue. The share is the writes of
//! the synchronous queue among those of both queues; for `-r`, individual and aggregated I/Os are added. Several pools,
//! vdevs and intervals are added. The first table of a vdev is of the time since boot: it is left out if more tables of
//! this vdev follow. With `-y`, the first table is an interval, and the text does not say so. `-q` shows only how many
//! I/Os are queued or in flight at the end of each interval. Such samples miss short writes, so at least [`SAMPLES`]
//! moments with writes are required to say that none is synchronous. Columns are found by the second header line,
//! because `-l` adds groups of one column before the queues.
//!
//! The synchronous queue also has writes of labels and uberblocks, a few for each transaction group. The text has no
//! time, so a share alone cannot rule out synchronous writes, which may be few among many. A pool needs no log only if
//! all intervals together have at most [`LABEL_WRITES`] synchronous writes and a share of at most [`LABELS`]. No
//! interval may have a burst ([`BURST`]), and the table that is left out must not contradict the others. If these do
//! not hold, the log is used, or the text does not decide it.
//!
//! K, M and G are multiples of 1024. Not covered: `-H` (no header), the length of an interval (`-T`), an idle pool,
//! whose labels are a large share of its writes, and a pool of many vdevs, whose labels exceed [`LABEL_WRITES`].
//!
//! Sources: OpenZFS, zpool-iostat(8) of 29 January 2024; the header lines as OpenZFS 2.1 prints them; that labels use the
//! synchronous queue, and how many labels are written, is from memory, not checked.

use std::collections::BTreeMap;

use text::problem::{Place, Problem, Problems};

use super::zilstat::{ZilStatistics, number};
use crate::review::results::rounded;

/// Share of synchronous writes that labels and uberblocks may cause.
const LABELS: f64 = 0.01;
/// Synchronous writes of all intervals that labels may cause (assumed): a mirror of two writes 8 labels and uberblocks
/// for each transaction group, of which 60 s have 12.
const LABEL_WRITES: f64 = 100.0;
/// Synchronous writes of one interval up to which their share in this interval is not judged (assumed): labels of two
/// transaction groups.
const BURST: f64 = 16.0;
/// Minimum number of writes whose share is meaningful.
const WRITES: f64 = 1_000.0;
/// Minimum number of moments with writes in which no synchronous write is queued.
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

    /// Returns the names of the groups of synchronous and of asynchronous writes.
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

    /// Checks whether a line is the first header line of any table.
    fn is_above(words: &[&str]) -> bool {
        let kinds = [IostatTable::Latency, IostatTable::Size, IostatTable::Queues];
        kinds.iter().any(|kind| words.contains(&kind.first()))
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
    /// Reads two header lines; each group of a histogram has two columns, except the single ones at the end.
    fn read(above: &[&str], below: &[&str], kind: IostatTable) -> Option<Columns> {
        let first = above.iter().position(|word| *word == kind.first())?;
        // With `-l`, groups of one column precede the queues, whose own columns begin with `pend`.
        let queues = || above.iter().copied().filter(|word| is_queue(word));
        let pending: Vec<usize> = (0..below.len()).filter(|at| below[*at] == "pend").collect();
        if kind == IostatTable::Queues && pending.len() != queues().count() {
            return None;
        }
        let column = |group: &str| {
            // Words before the first group are the name, even if one is called like a group.
            let at = above[first..].iter().position(|word| *word == group)?;
            // Of a pair of read and write, the second one; otherwise both.
            Some(match kind {
                IostatTable::Latency => vec![2 + 2 * at],
                IostatTable::Size => vec![1 + 2 * at, 2 + 2 * at],
                IostatTable::Queues => {
                    let at = pending.get(queues().position(|word| word == group)?)?;
                    vec![*at, at + 1]
                }
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

/// Checks whether a group of the first header line is a queue of `-q`.
fn is_queue(group: &str) -> bool {
    group.ends_with("q_read") || group.ends_with("q_write")
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
                // A vdev's name keeps an indent, which tells it from a pool's.
                IostatTable::Queues if line.starts_with(' ') => format!(" {}", words[0]),
                IostatTable::Queues => words[0].to_owned(),
                _ => table.name.clone(),
            };
            let rows = tables.entry(name).or_default();
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
    match kind {
        IostatTable::Queues => of_samples(source, &tables),
        IostatTable::Latency | IostatTable::Size => of_counts(source, &tables),
    }
}

/// Checks whether a line belongs to a table: it begins with a bucket, or for `-q` has as many words.
fn is_of(table: &Columns, words: &[&str]) -> bool {
    match table.kind {
        IostatTable::Queues => words.len() == table.count,
        // A time stamp is one word. A vdev's name above a header may begin with a digit.
        _ => {
            words.len() > 1
                && words[0].starts_with(|it: char| it.is_ascii_digit())
                && !IostatTable::is_above(words)
        }
    }
}

/// Splits the tables of a vdev into the one of the time since boot, if more follow, and the intervals.
fn split_first(all: &[[f64; 2]]) -> (Option<&[f64; 2]>, &[[f64; 2]]) {
    match all {
        [first, rest @ ..] if !rest.is_empty() => (Some(first), rest),
        _ => (None, all),
    }
}

/// Returns the sums of synchronous and of all writes, and the share of the synchronous ones.
fn share_of(tables: &[[f64; 2]]) -> (f64, f64, f64) {
    let synchronous: f64 = tables.iter().map(|writes| writes[0]).sum();
    let all: f64 = tables.iter().flatten().sum();
    (synchronous, all, synchronous / all.max(1.0))
}

/// Checks whether the first table of a vdev contradicts that the intervals have labels only: with `-y` it is an
/// interval.
fn is_contradicted(tables: &[[f64; 2]]) -> bool {
    let (Some(first), rest) = split_first(tables) else {
        return false;
    };
    let (synchronous, _, share) = share_of(&[*first]);
    synchronous > LABEL_WRITES && share > LABELS.min(2.0 * share_of(rest).2)
}

/// Returns the statistics of counted I/Os.
fn of_counts(
    source: &str,
    tables: &BTreeMap<String, Vec<[f64; 2]>>,
) -> Result<ZilStatistics, Problems> {
    let counted: Vec<[f64; 2]> = tables
        .values()
        .flat_map(|all| split_first(all).1)
        .copied()
        .collect();
    let (synchronous, all, share) = share_of(&counted);
    if all < WRITES {
        let what = format!("{all:.0} writes are too few: at least {WRITES:.0}");
        return Err(few(source, what, HELP));
    }
    let exceeds = |most: f64| {
        let mut tables = counted.iter().map(|one| share_of(&[*one]));
        tables.any(|(synchronous, _, share)| synchronous > most && share > LABELS)
    };
    let are_labels = synchronous <= LABEL_WRITES
        && share <= LABELS
        && !exceeds(BURST)
        && !tables.values().any(|all| is_contradicted(all));
    Ok(ZilStatistics {
        synchronous_share: Some(rounded(share)),
        synchronous_writes: Some(rounded(synchronous)),
        is_decided: are_labels || exceeds(LABEL_WRITES),
        ..statistics(source, counted.len(), !are_labels)
    })
}

/// Returns the statistics of samples of the queues.
fn of_samples(
    source: &str,
    tables: &BTreeMap<String, Vec<[f64; 2]>>,
) -> Result<ZilStatistics, Problems> {
    // Queues of the first sample are of its moment, too.
    let is_used = tables.values().flatten().any(|writes| writes[0] > 0.0);
    // Without a line of a pool, as in a part of the output, vdevs stand for it.
    let is_vdev = |name: &str| name.starts_with(' ');
    let only_vdevs = tables.keys().all(|name| is_vdev(name));
    let pools = || { tables.iter() }.filter(|(name, _)| only_vdevs || !is_vdev(name));
    let with_writes = pools().map(|(_, all)| {
        let moments = split_first(all).1.iter();
        moments.filter(|writes| writes[1] > 0.0).count()
    });
    // Lines of several pools or vdevs are of one moment; idle ones do not count.
    let with_writes = with_writes.filter(|count| *count > 0).min().unwrap_or(0);
    if !is_used && with_writes < SAMPLES {
        let what = format!(
            "no synchronous write is queued in {with_writes} samples with writes, which is too few to rule them out: at least {SAMPLES}"
        );
        let help = "`zpool iostat -w POOL 60 2` counts all writes";
        return Err(few(source, what, help));
    }
    let moments = pools().map(|(_, all)| split_first(all).1.len()).max();
    Ok(statistics(source, moments.unwrap_or(0), is_used))
}

fn statistics(source: &str, intervals: usize, is_used: bool) -> ZilStatistics {
    ZilStatistics {
        source: source.to_owned(),
        intervals,
        most_mb_s: 0.0,
        mean_mb_s: 0.0,
        is_used,
        is_iostat: true,
        is_decided: true,
        synchronous_share: None,
        synchronous_writes: None,
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

    /// A share cannot tell a small database beside a bulk writer, a burst, or a first interval of `-y` from labels.
    #[test]
    fn a_small_share_does_not_rule_a_log_out() {
        let first = latency("10", "2K");
        let quiet = latency("0", "200K");
        let burst = latency("60000", "6000");
        for (text, is_decided) in [
            (format!("{first}{}", latency("3500", "360K")), false),
            (format!("{first}{}{burst}", quiet.repeat(60)), true),
            (format!("{first}{}{}", quiet, latency("20", "80")), false),
            (format!("{}{quiet}", latency("200K", "5000")), false),
            (format!("{}{quiet}", latency("3500", "360K")), false),
            // The table since boot alone.
            (latency("3500", "360K"), false),
        ] {
            let found = read_statistics("z", &text).expect("tables");
            assert!(!found.needs_no_log(), "{text}");
            assert_eq!(found.is_decided, is_decided, "{text}");
        }
        let text = format!("{}{}", latency("3500", "360K"), latency("90", "10K"));
        let found = read_statistics("z", &text).expect("tables");
        assert!(found.needs_no_log(), "{found:?}");
        assert_eq!(found.synchronous_writes, Some(90.0));
    }

    /// `-v` may name vdevs by GUID.
    #[test]
    fn names_may_begin_with_a_digit() {
        let text = latency("0", "5000") + &latency("30000", "5000");
        let text = text.replace("tank ", "9123372 ");
        let found = read_statistics("z", &text).expect("tables of a vdev");
        assert!(!found.needs_no_log() && found.intervals == 1, "{found:?}");
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

    /// `-l` adds seven groups before the queues; the last three have one column each.
    #[test]
    fn latencies_before_the_queues_do_not_move_the_columns() {
        let header = "capacity operations bandwidth total_wait disk_wait syncq_wait asyncq_wait scrub trim rebuild syncq_read syncq_write asyncq_read asyncq_write\n\
                      pool alloc free read write read write read write read write read write read write wait wait wait pend activ pend activ pend activ pend activ\n";
        let line = |synchronous: u32, asynchronous: u32| {
            format!(
                "tank 1T 2T 0 500 0 60M - 2ms - 1ms - 3us - 4us - - - 0 0 {synchronous} 9 0 0 {asynchronous} 2\n"
            )
        };
        let busy = format!("{header}{}", line(5, 0).repeat(150));
        assert!(!read_statistics("z", &busy).expect("samples").needs_no_log());
        let quiet = format!(
            "{header}{}",
            line(0, 30).replace(" 0 9 ", " 0 0 ").repeat(150)
        );
        let found = read_statistics("z", &quiet).expect("samples");
        assert!(found.needs_no_log() && found.intervals == 149, "{found:?}");
        // A queue without its pair of columns.
        let other = quiet.replacen(" pend activ\n", " wait\n", 1);
        read_statistics("z", &other).expect_err("columns that do not match");
    }

    #[test]
    fn vdevs_of_one_moment_are_one_sample() {
        let header = "capacity operations bandwidth syncq_read syncq_write asyncq_read asyncq_write\n\
                      pool alloc free read write read write pend activ pend activ pend activ pend activ\n";
        let names = ["tank", "  mirror-0", "    sda", "    sdb"];
        let moment: String = names
            .iter()
            .map(|name| format!("{name} 1T 2T 0 500 0 60M 0 0 0 0 0 0 3 2\n"))
            .collect();
        let problems = read_statistics("z", &format!("{header}{}", moment.repeat(27)))
            .expect_err("too few moments");
        assert!(
            problems.0[0].what.contains("26 samples"),
            "{:?}",
            problems.0
        );
        let found = read_statistics("z", &format!("{header}{}", moment.repeat(101)));
        assert_eq!(found.expect("enough moments").intervals, 100);
    }

    /// Found by fuzzing: such a text had no interval.
    #[test]
    fn vdevs_without_their_pool_stand_for_it() {
        let header = "capacity operations bandwidth syncq_read syncq_write asyncq_read asyncq_write\n\
                      pool alloc free read write read write pend activ pend activ pend activ pend activ\n";
        let line = |pending: u32| format!("  sda 1T 2T 0 500 0 60M 0 0 {pending} 0 0 0 3 2\n");
        let busy = read_statistics("z", &format!("{header}{}", line(1))).expect("a sample");
        assert!(!busy.needs_no_log() && busy.intervals == 1, "{busy:?}");
        let quiet = format!("{header}{}", line(0).repeat(101));
        let quiet = read_statistics("z", &quiet).expect("samples");
        assert!(quiet.needs_no_log() && quiet.intervals == 100, "{quiet:?}");
    }

    /// Found by fuzzing: the subtraction of the two places overflowed.
    #[test]
    fn a_pool_may_be_called_like_a_group() {
        let table = |name: &str| {
            format!(
                "{name} sync_read sync_write async_read async_write scrub trim\n\
                 req_size ind agg ind agg ind agg ind agg ind agg ind agg\n\
                 4K 0 0 5000 0 0 0 2000 0 0 0 0 0\n"
            )
        };
        let share = |name| {
            let found = read_statistics("z", &table(name)).expect("a table");
            found.synchronous_share
        };
        assert_eq!(share("async_write"), share("tank"));
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
