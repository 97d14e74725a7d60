//! Reader of ACT configuration files: `key: value` lines; `#` starts a comment that extends to the end of the line.
//!
//! ACT accepts any word as a number, and any word as "no". This reader refuses what it does not understand, and
//! reports all errors together. If the caller does not select a version, keys that exist in only one version do. Keys
//! of both versions contradict each other. These keys are accepted without effect, because a simulation has nothing
//! that they name: `use-valloc`, `scheduler-mode`, `compress-pct`.

use model::Span;

use super::config::{Config, Generation, LARGEST_RATE};
use text::problem::{Place, Problem, Problems, nearest};

/// Keys of both versions.
const COMMON: &[&str] = &[
    "device-names",
    "test-duration-sec",
    "report-interval-sec",
    "microsecond-histograms",
    "read-reqs-per-sec",
    "write-reqs-per-sec",
    "record-bytes",
    "large-block-op-kbytes",
    "scheduler-mode",
];
/// Keys of version 3 only.
const QUEUES: &[&str] = &[
    "num-queues",
    "threads-per-queue",
    "queue-per-device",
    "use-valloc",
];
/// Keys of version 6 only.
const SERVICE: &[&str] = &[
    "service-threads",
    "record-bytes-range-max",
    "replication-factor",
    "update-pct",
    "defrag-lwm-pct",
    "no-defrag-reads",
    "compress-pct",
    "disable-odsync",
    "commit-to-device",
    "tomb-raider",
    "tomb-raider-sleep-usec",
    "max-lag-sec",
];

/// Largest block that the database writes, bytes.
const LARGEST_BLOCK: u64 = 8 << 20;

struct Entry<'a> {
    line: usize,
    key: &'a str,
    value: &'a str,
}

struct ConfigReader<'a> {
    origin: &'a str,
    entries: Vec<Entry<'a>>,
    problems: Vec<Problem>,
}

/// Reads the text of a configuration file; `origin` names it in messages. `generation`, if given, determines version
/// and threads. Otherwise the file's keys do; a file without such keys is version 6. `cores` is the number of cores
/// of the host, for version 6's default of five threads per core.
///
/// # Errors
/// All problems in it.
pub fn from_text(
    origin: &str,
    text: &str,
    generation: Option<Generation>,
    cores: u16,
) -> Result<Config, Problems> {
    let mut reader = ConfigReader {
        origin,
        entries: Vec::new(),
        problems: Vec::new(),
    };
    reader.split(text.strip_prefix('\u{feff}').unwrap_or(text));
    reader.check_keys(generation);
    let generation = reader.generation(generation, cores);
    let config = reader.config(generation);
    Problems(reader.problems).or(config)
}

impl<'a> ConfigReader<'a> {
    fn problem(&mut self, line: usize, what: impl Into<String>, help: Option<String>) {
        self.problems.push(Problem {
            origin: self.origin.to_owned(),
            place: if line == 0 {
                Place::Whole
            } else {
                Place::Line(line)
            },
            what: what.into(),
            help,
        });
    }

    fn split(&mut self, text: &'a str) {
        for (index, whole) in text.lines().enumerate() {
            let line = index + 1;
            let content = whole.split('#').next().unwrap_or("").trim();
            if content.is_empty() {
                continue;
            }
            let Some((key, value)) = content.split_once(':') else {
                let what = format!("`{content}` is not `key: value`");
                self.problem(line, what, None);
                continue;
            };
            let (key, value) = (key.trim(), value.trim());
            if let Some(first) = self.entries.iter().find(|entry| entry.key == key) {
                let what = format!("{key}: already given in line {}", first.line);
                self.problem(line, what, Some(String::from("give it once")));
                continue;
            }
            self.entries.push(Entry { line, key, value });
        }
    }

    fn check_keys(&mut self, generation: Option<Generation>) {
        let all = || [COMMON, QUEUES, SERVICE].concat();
        let mut found = Vec::new();
        for entry in &self.entries {
            if !all().contains(&entry.key) {
                let near = nearest(entry.key, all());
                let help = near.map(|near| format!("did you mean `{near}`?"));
                found.push((entry.line, format!("unknown key `{}`", entry.key), help));
            }
        }
        let of = |keys: &[&str]| {
            let found = self.entries.iter().find(|entry| keys.contains(&entry.key));
            found.map(|entry| (entry.line, entry.key))
        };
        let wrong = match generation {
            Some(Generation::Queues { .. }) => {
                of(SERVICE).map(|one| (one, "version 3 was requested"))
            }
            Some(Generation::Service { .. }) => {
                of(QUEUES).map(|one| (one, "version 6 was requested"))
            }
            None => of(QUEUES)
                .and_then(|_| of(SERVICE))
                .map(|one| (one, "the file has keys of version 3 too")),
        };
        if let Some(((line, key), why)) = wrong {
            let version = if SERVICE.contains(&key) { 6 } else { 3 };
            let what = format!("{key}: is a key of version {version}, but {why}");
            found.push((
                line,
                what,
                Some(String::from("keep the keys of one version")),
            ));
        }
        for (line, what, help) in found {
            self.problem(line, what, help);
        }
    }

    fn find(&self, key: &str) -> Option<(usize, &'a str)> {
        let entry = self.entries.iter().find(|entry| entry.key == key)?;
        Some((entry.line, entry.value))
    }

    /// Reads a whole number within a range; `default` if the key is absent.
    fn number(
        &mut self,
        key: &str,
        default: Option<u64>,
        range: std::ops::RangeInclusive<u64>,
    ) -> u64 {
        let (low, high) = (*range.start(), *range.end());
        let help = || Some(format!("a whole number from {low} to {high}"));
        let Some((line, value)) = self.find(key) else {
            if default.is_none() {
                self.problem(0, format!("{key} is missing"), help());
            }
            return default.unwrap_or(low);
        };
        match value.parse::<u64>() {
            Ok(number) if range.contains(&number) => number,
            _ => {
                self.problem(line, format!("{key}: `{value}`"), help());
                low
            }
        }
    }

    fn yes(&mut self, key: &str) -> bool {
        match self.find(key) {
            None | Some((_, "no")) => false,
            Some((_, "yes")) => true,
            Some((line, value)) => {
                let help = Some(String::from("yes or no"));
                self.problem(line, format!("{key}: `{value}`"), help);
                false
            }
        }
    }

    fn generation(&mut self, asked: Option<Generation>, cores: u16) -> Generation {
        let queues = self.entries.iter().any(|one| QUEUES.contains(&one.key));
        let default = asked.unwrap_or(if queues {
            Generation::VERSION_3
        } else {
            Generation::version_6(cores)
        });
        match default {
            Generation::Queues {
                queues,
                threads_per_queue,
            } => {
                if self.yes("queue-per-device") {
                    // One drive has one queue.
                    let threads = self.number(
                        "threads-per-queue",
                        Some(threads_per_queue.into()),
                        1..=1_024,
                    );
                    return Generation::Queues {
                        queues: 1,
                        threads_per_queue: threads as u16,
                    };
                }
                let queues = self.number("num-queues", Some(queues.into()), 1..=256);
                let threads = self.number(
                    "threads-per-queue",
                    Some(threads_per_queue.into()),
                    1..=1_024,
                );
                if queues * threads > 4_096 {
                    self.problem(
                        0,
                        format!("{queues} queues with {threads} threads each"),
                        Some(String::from("at most 4096 threads")),
                    );
                }
                Generation::Queues {
                    queues: queues as u16,
                    threads_per_queue: threads as u16,
                }
            }
            Generation::Service { threads } => {
                let count = self.number("service-threads", Some(threads.into()), 0..=4_096) as u16;
                // ACT interprets 0 as its default.
                Generation::Service {
                    threads: if count == 0 { threads } else { count },
                }
            }
        }
    }

    fn config(&mut self, generation: Generation) -> Config {
        let device = self.device();
        let reads = self.number("read-reqs-per-sec", Some(0), 0..=LARGEST_RATE.into()) as u32;
        let writes = self.number("write-reqs-per-sec", Some(0), 0..=LARGEST_RATE.into()) as u32;
        let given = |key| self.find(key).is_some_and(|(_, value)| value != "0");
        let no_reads = reads == 0 && !given("read-reqs-per-sec");
        if no_reads && (writes == 0 || matches!(generation, Generation::Queues { .. })) {
            let what = "read-reqs-per-sec is zero or missing";
            let help = "a load of 1x is 2000 reads and 1000 writes per second";
            self.problem(0, what, Some(String::from(help)));
        }
        let record = self.number("record-bytes", Some(1_536), 1..=LARGEST_BLOCK) as u32;
        let range_max = self.number("record-bytes-range-max", Some(0), 0..=LARGEST_BLOCK) as u32;
        if range_max != 0 && range_max <= record {
            let what = format!("record-bytes-range-max: {range_max}, but record-bytes is {record}");
            self.problem(
                0,
                what,
                Some(String::from(
                    "a larger number, or 0 for records of one size",
                )),
            );
        }
        let large = self.number("large-block-op-kbytes", Some(128), 1..=LARGEST_BLOCK >> 10) << 10;
        if !large.is_power_of_two() || large < u64::from(record.max(range_max)) {
            let what = format!("large-block-op-kbytes: {}", large >> 10);
            self.problem(
                0,
                what,
                Some(String::from("a power of two that holds a record")),
            );
        }
        if self.yes("tomb-raider") {
            self.problem(
                0,
                "tomb-raider: yes is not modelled",
                Some(String::from("leave it out")),
            );
        }
        self.number("tomb-raider-sleep-usec", Some(0), 0..=u64::from(u32::MAX));
        self.yes("use-valloc");
        let disable_odsync = self.yes("disable-odsync");
        let commit_to_device = self.yes("commit-to-device");
        if disable_odsync && commit_to_device {
            self.problem(
                0,
                "disable-odsync and commit-to-device contradict each other",
                None,
            );
        }
        let seconds = |count: u64| Span::from_ms(count * 1_000);
        Config {
            device,
            generation,
            duration: seconds(self.number("test-duration-sec", None, 1..=31_536_000)),
            report_interval: seconds(self.number("report-interval-sec", Some(1), 1..=86_400)),
            microseconds: self.yes("microsecond-histograms"),
            reads_per_second: reads,
            writes_per_second: writes,
            record_bytes: record,
            record_bytes_range_max: range_max,
            large_block_bytes: large as u32,
            replication_factor: self.number("replication-factor", Some(1), 1..=16) as u32,
            update_percent: self.number("update-pct", Some(0), 0..=100) as u32,
            defrag_low_water_percent: self.number("defrag-lwm-pct", Some(50), 1..=99) as u32,
            no_defrag_reads: self.yes("no-defrag-reads"),
            compress_percent: self.number("compress-pct", Some(100), 0..=100) as u32,
            disable_odsync,
            commit_to_device,
            max_lag: seconds(self.number("max-lag-sec", Some(10), 0..=86_400)),
        }
    }

    /// Reads the one device that the file names. It is the drive under test, whatever its name.
    fn device(&mut self) -> String {
        let help = "one name: each drive is tested by itself";
        let Some((line, value)) = self.find("device-names") else {
            return String::from("simulated");
        };
        let names: Vec<&str> = value
            .split([',', ';', ' ', '\t'])
            .filter(|name| !name.is_empty())
            .collect();
        if names.len() != 1 {
            let what = format!("device-names: {} names", names.len());
            self.problem(line, what, Some(String::from(help)));
        }
        names
            .first()
            .map_or(String::new(), |name| (*name).to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Result<Config, Problems> {
        from_text("act.conf", text, None, 16)
    }

    #[test]
    fn a_file_of_a_windows_editor_is_read_as_any_other() {
        let text =
            "device-names: a\ntest-duration-sec: 3\nread-reqs-per-sec: 10\nwrite-reqs-per-sec: 5\n";
        let other = format!("\u{feff}{}", text.replace('\n', "\r\n"));
        assert_eq!(read(&other), read(text));
        assert!(read(text).is_ok());
    }

    #[test]
    fn a_standard_file_of_version_6_is_the_standard_test() {
        let text = "\
# ACT-storage config file.
device-names: /dev/nvme0n1   # the drive
test-duration-sec: 30
read-reqs-per-sec: 4000
write-reqs-per-sec: 2000
";
        let config = read(text).unwrap();
        let standard = Config::load(2.0, Generation::version_6(16), Span::from_ms(30_000));
        assert_eq!(
            config,
            Config {
                device: String::from("/dev/nvme0n1"),
                ..standard
            }
        );
    }

    #[test]
    fn a_file_with_queues_is_of_version_3() {
        let text = "\
device-names: /dev/sdc
queue-per-device: no
num-queues: 2
threads-per-queue: 8
test-duration-sec: 60
report-interval-sec: 1
large-block-op-kbytes: 128
record-bytes: 1500
read-reqs-per-sec: 2000
write-reqs-per-sec: 1000
use-valloc: no
scheduler-mode: noop
";
        let config = read(text).unwrap();
        assert_eq!(config.generation.version(), "3.0");
        assert_eq!(config.generation.readers(), 16);
        assert_eq!(config.stored_bytes(), (1_536, 1_536));
    }

    #[test]
    fn everything_wrong_is_said_at_once() {
        let text = "\
device-names: /dev/sda,/dev/sdb
num-queues: many
service-threads: 10
read-reqs-per-sec: 2k
reed-reqs-per-sec: 5
write-reqs-per-sec: 1000
write-reqs-per-sec: 1000
microsecond-histograms: maybe
large-block-op-kbytes: 100
nonsense
";
        insta::assert_snapshot!(read(text).unwrap_err());
    }

    proptest! {
        #[test]
        fn no_text_is_too_strange(text in "[ -~\n]{0,300}") {
            let _ = read(&text);
        }

        #[test]
        fn no_value_is_too_strange(value in "[ -~]{0,20}", key in 0usize..25) {
            let keys = [COMMON, QUEUES, SERVICE].concat();
            let _ = read(&format!("{}: {value}\ntest-duration-sec: 1\n", keys[key]));
        }
    }
}
