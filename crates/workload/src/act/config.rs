//! Configuration of an ACT run, and the rates that follow from it.

use model::Span;
use serde::{Deserialize, Serialize};

/// Rounding unit of record sizes in bytes: version 3, version 6.
const RECORD_UNIT: [u32; 2] = [128, 16];

/// Maximum rate of reads, and of writes, per second: 10,000x.
pub const LARGEST_RATE: u32 = 20_000_000;

/// ACT version, and the threads that read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Generation {
    /// Version 3: transaction queues with their own threads.
    Queues {
        /// Queues (`num-queues`).
        queues: u16,
        /// Threads per queue (`threads-per-queue`).
        threads_per_queue: u16,
    },
    /// Version 6: each service thread reads when its next read is due.
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

    /// Version 6 with its default of five threads per core.
    pub const fn version_6(cores: u16) -> Generation {
        Generation::Service {
            threads: cores.saturating_mul(5),
        }
    }

    /// Returns the version as in the program's log.
    pub const fn version(self) -> &'static str {
        match self {
            Generation::Queues { .. } => "3.0",
            Generation::Service { .. } => "6.6",
        }
    }

    /// Returns the number of threads that read (and that write records, in version 6 with `commit-to-device`).
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

/// Content of a configuration file. Valid if it comes from [`super::from_text`] or [`Config::load`]. The read rate
/// may be zero only if there are writes.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Config {
    /// Name of the drive in the log.
    pub device: String,
    /// Version, queues and threads.
    pub generation: Generation,
    /// Duration of the test; counted in report intervals.
    pub duration: Span,
    /// Time between reports of the counts.
    pub report_interval: Span,
    /// Whether the log's buckets are in microseconds instead of milliseconds.
    pub microseconds: bool,
    /// Client reads per second.
    pub reads_per_second: u32,
    /// Client writes per second.
    pub writes_per_second: u32,
    /// Bytes per record.
    pub record_bytes: u32,
    /// Bytes of the largest record if sizes are distributed evenly, otherwise 0 (version 6).
    pub record_bytes_range_max: u32,
    /// Bytes per large block, a power of two.
    pub large_block_bytes: u32,
    /// Copies of each write in the drive's cluster (version 6).
    pub replication_factor: u32,
    /// Percent of writes that read the record first (version 6).
    pub update_percent: u32,
    /// Blocks filled to less than this percentage are defragmented (version 6; version 3 uses 50).
    pub defrag_low_water_percent: u32,
    /// Whether defragmentation reads nothing (version 6).
    pub no_defrag_reads: bool,
    /// Compressibility of the written data in percent (version 6). It has no effect here.
    pub compress_percent: u32,
    /// Whether writes may be acknowledged before they are durable (version 6; always the case in version 3).
    pub disable_odsync: bool,
    /// Whether records are also written individually, not only in large blocks (version 6).
    pub commit_to_device: bool,
    /// The test stops if a thread is later than this; zero means never (version 6).
    pub max_lag: Span,
}

impl Config {
    /// Returns the standard test at `load` times the load of 1x.
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

    /// Returns this test at another load.
    pub fn at_load(&self, load: f64) -> Config {
        Config {
            reads_per_second: (2_000.0 * load + 0.5) as u32,
            writes_per_second: (1_000.0 * load + 0.5) as u32,
            ..self.clone()
        }
    }

    /// Returns the multiple of the standard read rate, or of the write rate if there are no reads.
    pub fn load_factor(&self) -> f64 {
        if self.reads_per_second > 0 {
            f64::from(self.reads_per_second) / 2_000.0
        } else {
            f64::from(self.writes_per_second) / 1_000.0
        }
    }

    /// Checks whether this is version 3.
    pub fn has_queues(&self) -> bool {
        matches!(self.generation, Generation::Queues { .. })
    }

    /// Returns the bytes that a record takes in a block: the smallest and the largest record.
    pub fn stored_bytes(&self) -> (u32, u32) {
        let unit = RECORD_UNIT[usize::from(!self.has_queues())];
        let smallest = self.record_bytes.next_multiple_of(unit);
        let largest = match self.record_bytes_range_max {
            0 => smallest,
            most => most.next_multiple_of(unit),
        };
        (smallest, largest)
    }

    /// Returns the record reads per second: those of the clients, and the reads that precede updates.
    pub fn record_reads_per_second(&self) -> u32 {
        let updates = u64::from(self.writes_per_second) * u64::from(self.update_percent) / 100;
        self.reads_per_second + updates as u32
    }

    /// Returns the record writes per second; zero if records are only written in large blocks.
    pub fn record_writes_per_second(&self) -> u32 {
        if self.commit_to_device {
            self.writes_per_second * self.replication_factor
        } else {
            0
        }
    }

    /// Returns the requests per second that the program's threads make of the rates above. In version 6 each thread
    /// makes a whole number of requests (at least one), so 160 threads make 1,920 of 2,000.
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

    /// Returns the large reads per second.
    pub fn large_reads_per_second(&self) -> f64 {
        if self.no_defrag_reads {
            0.0
        } else {
            self.blocks_filled_per_second() * self.defrag_amplification()
        }
    }

    /// Returns the large writes per second.
    pub fn large_writes_per_second(&self) -> f64 {
        let amplification = self.defrag_amplification();
        // With `commit-to-device`, client writes go out record by record, and only defragmentation writes blocks.
        let committed = if self.commit_to_device { 1.0 } else { 0.0 };
        self.blocks_filled_per_second() * (amplification - committed)
    }

    /// Returns the blocks per second that the clients' records fill. A block holds a whole number of records.
    fn blocks_filled_per_second(&self) -> f64 {
        let (smallest, largest) = self.stored_bytes();
        let per_block = self.large_block_bytes / (smallest.midpoint(largest)).max(1);
        let writes = f64::from(self.replication_factor) * f64::from(self.writes_per_second);
        writes / f64::from(per_block.max(1))
    }

    /// Returns the blocks written per block of new records: defragmenting a half-full block frees half a block.
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
        // Two copies; defragmentation doubles the writes.
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
