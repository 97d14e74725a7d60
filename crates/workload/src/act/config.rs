//! What a run of ACT is told, and what follows from it.

use model::Span;
use serde::{Deserialize, Serialize};

/// Bytes that the rounding of records is counted in: version 3, version 6.
const RECORD_UNIT: [u32; 2] = [128, 16];

/// Largest rate of reads, and of writes, a second: 10,000x.
pub const LARGEST_RATE: u32 = 20_000_000;

/// Whose threads read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Generation {
    /// Version 3: transaction queues with threads of their own.
    Queues {
        /// Queues (`num-queues`).
        queues: u16,
        /// Threads of each (`threads-per-queue`).
        threads_per_queue: u16,
    },
    /// Version 6: threads that read when their next read is due.
    Service {
        /// Threads (`service-threads`).
        threads: u16,
    },
}

impl Generation {
    /// Version 3 with the queues and threads that its configuration program gives by default: 64 threads (S4-148).
    pub const VERSION_3: Generation = Generation::Queues {
        queues: 8,
        threads_per_queue: 8,
    };

    /// Version 6 with its default of five threads a core.
    pub const fn version_6(cores: u16) -> Generation {
        Generation::Service {
            threads: cores.saturating_mul(5),
        }
    }

    /// As in the program's log.
    pub const fn version(self) -> &'static str {
        match self {
            Generation::Queues { .. } => "3.0",
            Generation::Service { .. } => "6.6",
        }
    }

    /// Threads that read (and write records, in version 6 with `commit-to-device`).
    pub const fn readers(self) -> u32 {
        match self {
            Generation::Queues {
                queues,
                threads_per_queue,
            } => queues as u32 * threads_per_queue as u32,
            Generation::Service { threads } => threads as u32,
        }
    }
}

/// A configuration file's content. Valid when made by [`super::from_text`] or [`Config::load`]; a rate of reads may be
/// zero only if there are writes.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Config {
    /// What the log calls the drive.
    pub device: String,
    /// Version, queues and threads.
    pub generation: Generation,
    /// How long the test lasts; counted in report intervals.
    pub duration: Span,
    /// How often counts are reported.
    pub report_interval: Span,
    /// The log's buckets in microseconds rather than milliseconds.
    pub microseconds: bool,
    /// Client reads a second.
    pub reads_per_second: u32,
    /// Client writes a second.
    pub writes_per_second: u32,
    /// Bytes of a record.
    pub record_bytes: u32,
    /// Bytes of the largest record where sizes are spread evenly; 0 where they are not (version 6).
    pub record_bytes_range_max: u32,
    /// Bytes of a large block, a power of two.
    pub large_block_bytes: u32,
    /// Copies of each write on this drive's cluster (version 6).
    pub replication_factor: u32,
    /// Percent of writes that read the record first (version 6).
    pub update_percent: u32,
    /// Blocks less full than this percent are defragmented (version 6; version 3 has 50).
    pub defrag_low_water_percent: u32,
    /// Defragmentation reads nothing (version 6).
    pub no_defrag_reads: bool,
    /// Compressibility of what is written, percent (version 6). Nothing here depends on it.
    pub compress_percent: u32,
    /// Writes need not be durable when acknowledged (version 6; never so in version 3).
    pub disable_odsync: bool,
    /// Records are written one by one, not only in large blocks (version 6).
    pub commit_to_device: bool,
    /// The test stops when a thread is late by more than this; zero for never (version 6).
    pub max_lag: Span,
}

impl Config {
    /// The standard test at `load` times the load of 1x.
    pub fn load(load: f64, generation: Generation, duration: Span) -> Config {
        Config {
            device: String::from("simulated"),
            generation,
            duration,
            report_interval: Span::from_ms(1_000),
            microseconds: false,
            reads_per_second: (2_000.0 * load + 0.5) as u32,
            writes_per_second: (1_000.0 * load + 0.5) as u32,
            record_bytes: 1_536,
            record_bytes_range_max: 0,
            large_block_bytes: 128 << 10,
            replication_factor: 1,
            update_percent: 0,
            defrag_low_water_percent: 50,
            no_defrag_reads: false,
            compress_percent: 100,
            disable_odsync: false,
            commit_to_device: false,
            max_lag: Span::from_ms(10_000),
        }
    }

    /// The same test at another load.
    pub fn at_load(&self, load: f64) -> Config {
        Config {
            reads_per_second: (2_000.0 * load + 0.5) as u32,
            writes_per_second: (1_000.0 * load + 0.5) as u32,
            ..self.clone()
        }
    }

    /// Multiples of the standard rate of reads, or of writes where there are no reads.
    pub fn load_factor(&self) -> f64 {
        if self.reads_per_second > 0 {
            f64::from(self.reads_per_second) / 2_000.0
        } else {
            f64::from(self.writes_per_second) / 1_000.0
        }
    }

    /// Whether this is version 3.
    pub fn has_queues(&self) -> bool {
        matches!(self.generation, Generation::Queues { .. })
    }

    /// Bytes that a record takes in a block: the smallest, the largest.
    pub fn stored_bytes(&self) -> (u32, u32) {
        let unit = RECORD_UNIT[usize::from(!self.has_queues())];
        let smallest = self.record_bytes.next_multiple_of(unit);
        let largest = match self.record_bytes_range_max {
            0 => smallest,
            most => most.next_multiple_of(unit),
        };
        (smallest, largest)
    }

    /// Reads of records a second: the clients', and those that updates need first.
    pub fn record_reads_per_second(&self) -> u32 {
        let updates = u64::from(self.writes_per_second) * u64::from(self.update_percent) / 100;
        self.reads_per_second + updates as u32
    }

    /// Writes of records a second; none where records go only into large blocks.
    pub fn record_writes_per_second(&self) -> u32 {
        if self.commit_to_device {
            self.writes_per_second * self.replication_factor
        } else {
            0
        }
    }

    /// Requests a second that the program's threads make of the above. In version 6 each thread makes a whole number of
    /// them (at least one), so 160 threads make 1,920 of 2,000.
    pub fn requests_per_second(&self) -> u32 {
        let all = self.record_reads_per_second() + self.record_writes_per_second();
        match self.generation {
            Generation::Service { threads } if all > 0 => {
                let threads = u32::from(threads.max(1));
                (all / threads).max(1) * threads
            }
            _ => all,
        }
    }

    /// Large reads a second.
    pub fn large_reads_per_second(&self) -> f64 {
        if self.no_defrag_reads {
            0.0
        } else {
            self.blocks_filled_per_second() * self.defrag_amplification()
        }
    }

    /// Large writes a second.
    pub fn large_writes_per_second(&self) -> f64 {
        let amplification = self.defrag_amplification();
        // What the clients write goes out record by record; only what defragmentation moves goes in blocks.
        let committed = if self.commit_to_device { 1.0 } else { 0.0 };
        self.blocks_filled_per_second() * (amplification - committed)
    }

    /// Blocks a second that the clients' records fill. A block holds a whole number of records.
    fn blocks_filled_per_second(&self) -> f64 {
        let (smallest, largest) = self.stored_bytes();
        let per_block = self.large_block_bytes / (smallest.midpoint(largest)).max(1);
        let writes = f64::from(self.replication_factor) * f64::from(self.writes_per_second);
        writes / f64::from(per_block.max(1))
    }

    /// Blocks written for each block of new records: a block that is half full gives half a block back.
    fn defrag_amplification(&self) -> f64 {
        100.0 / f64::from(100 - self.defrag_low_water_percent.min(99))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standard(load: f64, generation: Generation) -> Config {
        Config::load(load, generation, Span::from_ms(10_000))
    }

    #[test]
    fn one_times_the_load_is_what_the_test_is_defined_as() {
        for generation in [Generation::VERSION_3, Generation::version_6(32)] {
            let one = standard(1.0, generation);
            assert_eq!((one.reads_per_second, one.writes_per_second), (2000, 1000));
            assert_eq!(format!("{:.2}", one.large_reads_per_second()), "23.53");
            assert_eq!(format!("{:.2}", one.large_writes_per_second()), "23.53");
        }
        assert_eq!(Generation::VERSION_3.readers(), 64);
        assert_eq!(Generation::version_6(32).readers(), 160);
    }

    #[test]
    fn rates_scale_with_the_load() {
        let one = standard(1.0, Generation::VERSION_3);
        let fifty = one.at_load(50.0);
        assert_eq!(fifty.reads_per_second, 100_000);
        assert_eq!(fifty.writes_per_second, 50_000);
        assert!(
            (fifty.large_reads_per_second() / one.large_reads_per_second() - 50.0).abs() < 1e-9
        );
        assert!((fifty.load_factor() - 50.0).abs() < 1e-9);
    }

    #[test]
    fn committing_records_moves_them_out_of_the_large_blocks() {
        let base = standard(10.0, Generation::version_6(4));
        let commits = Config {
            commit_to_device: true,
            replication_factor: 2,
            update_percent: 30,
            ..base.clone()
        };
        assert_eq!(commits.record_writes_per_second(), 20_000);
        assert_eq!(commits.record_reads_per_second(), 23_000);
        // Two copies, of which defragmentation writes as much again.
        let blocks = 20_000.0 / 85.0;
        assert!((commits.large_reads_per_second() - 2.0 * blocks).abs() < 1e-9);
        assert!((commits.large_writes_per_second() - blocks).abs() < 1e-9);
        let quiet = Config {
            no_defrag_reads: true,
            ..base
        };
        assert_eq!(quiet.large_reads_per_second(), 0.0);
    }
}
