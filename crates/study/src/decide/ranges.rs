//! Ranges of sequential threads: each has a range of its own. In a common range, each would find in the drive's memory
//! what the others have just read or written.

use workload::fio;

/// fio options that set the addresses of I/Os.
const WHERE: [&str; 4] = ["offset", "size", "offset_increment", "filesize"];

/// Ranges of one load's threads, assigned in sequence.
pub struct Ranges {
    /// Percent of the drive for each thread, whole as in fio.
    each: Option<u32>,
    given: u32,
}

impl Ranges {
    /// Returns the ranges for this number of threads of a load with this `rw` and these other options. Threads share
    /// the whole drive if the user sets the addresses, if the load is random, and if there are more threads than
    /// percents.
    pub fn for_threads<'a>(
        rw: &str,
        mut options: impl Iterator<Item = &'a str>,
        threads: u32,
    ) -> Ranges {
        let shared = fio::is_random(rw) || options.any(|key| WHERE.contains(&key));
        Ranges {
            each: ((2..=100).contains(&threads) && !shared).then(|| 100 / threads),
            given: 0,
        }
    }

    /// Returns the options of the next `copies` threads, if they have any.
    pub fn next(&mut self, copies: u32) -> Option<String> {
        let each = self.each?;
        let first = self.given * each;
        self.given += copies;
        Some(format!(
            "offset={first}%\nsize={each}%\noffset_increment={each}%"
        ))
    }
}
