//! Where threads go whose I/Os are in order: each has a range of its own. In one and the same, each would find what the others have
//! just read or written in the drive's memory.

use workload::fio;

/// Options of fio's that say where I/Os go.
const WHERE: [&str; 4] = ["offset", "size", "offset_increment", "filesize"];

/// Ranges of one load's threads, given out one after the other.
pub struct Ranges {
    /// Percent of the drive, whole as fio's are.
    each: Option<u32>,
    given: u32,
}

impl Ranges {
    /// For so many threads of a load with this `rw` and these other options. Threads share all of the drive where the user says where
    /// I/Os go, where they go anywhere, and where there are more threads than percent.
    pub fn of<'a>(rw: &str, mut options: impl Iterator<Item = &'a str>, threads: u32) -> Ranges {
        let shared = fio::is_random(rw) || options.any(|key| WHERE.contains(&key));
        Ranges {
            each: ((2..=100).contains(&threads) && !shared).then(|| 100 / threads),
            given: 0,
        }
    }

    /// The options of the next so many threads, if they have any.
    pub fn next(&mut self, copies: u32) -> Option<String> {
        let each = self.each?;
        let first = self.given * each;
        self.given += copies;
        Some(format!(
            "offset={first}%\nsize={each}%\noffset_increment={each}%"
        ))
    }
}
