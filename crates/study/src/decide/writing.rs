//! Writes at a given rate as a load: `life --writes` in the program, `life(writes=)` in Python.
//!
//! A rate is in bytes per second, bytes per day, or drive writes per day (DWPD), which differ by drive. The number of
//! threads follows from the rate; each sequential thread has its own range of the drive.

use catalogue::DriveSheet;
use model::Span;
use text::problem::Problems;
use text::quantity::{Rate, quantity, split};

use super::life::DAY;
use super::ranges::Ranges;
use super::rate;
use super::work::Load;
use crate::review::Workload;

/// I/Os that a run should have, and its minimum and maximum duration in seconds.
const WRITES: f64 = 60_000.0;
const SECONDS: (f64, f64) = (1.0, 60.0);
/// Maximum bytes per second of one thread, while there are fewer than [`THREADS`].
const THREAD: f64 = 400e6;
/// Maximum number of threads: each sequential thread has its own range, in whole percent of the drive. More threads
/// would share ranges.
const THREADS: f64 = 100.0;
/// Allowed rates of a drive, bytes per second.
const RATES: std::ops::Range<f64> = 1e3..1e11;

/// Amount of writes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum WriteAmount {
    /// Bytes per second.
    Rate(f64),
    /// Drive writes per day.
    PerDay(f64),
}

impl WriteAmount {
    /// Parses `100MB/s`, `2TB/day` or `1DWPD`.
    ///
    /// # Errors
    /// A description of the allowed form.
    pub fn read(text: &str) -> Result<WriteAmount, String> {
        let help = "write bytes per second, day, month or year, such as 100MB/s or 2TB/day, or drive writes per day, such as 1DWPD";
        let read =
            split(text).and_then(|(number, unit)| match (rate::bytes_over_days(text), unit) {
                (Some(rate), _) => Some(WriteAmount::Rate(rate)),
                (None, "DWPD" | "dwpd") => Some(WriteAmount::PerDay(number)),
                (None, _) => quantity::<Rate>(text)
                    .ok()
                    .map(|rate| WriteAmount::Rate(rate.0)),
            });
        match read {
            Some(WriteAmount::Rate(rate)) if !RATES.contains(&rate) => Err(String::from(
                "no rate that a drive can have: from 1kB/s to 100GB/s",
            )),
            Some(WriteAmount::PerDay(writes)) if !(writes > 0.0 && writes <= 1000.0) => {
                Err(String::from("from above 0 to 1000 drive writes per day"))
            }
            Some(writing) => Ok(writing),
            None => Err(String::from(help)),
        }
    }

    /// Returns the bytes per second on this drive.
    fn bytes_per_second(self, drive: &DriveSheet) -> f64 {
        match self {
            WriteAmount::Rate(rate) => rate,
            WriteAmount::PerDay(writes) => {
                (writes * drive.capacity as f64 / DAY).clamp(RATES.start, RATES.end)
            }
        }
    }

    /// Returns the rate as text, for answers.
    fn words(self, rate: f64) -> String {
        let rate = format!("{:.6} MB/s", rate * 1e-6);
        let rate = rate.replace(".000000", "");
        match self {
            WriteAmount::Rate(_) => format!("writes at {rate}"),
            WriteAmount::PerDay(writes) => format!("{writes} drive writes per day"),
        }
    }

    /// Returns the load on this drive: `rw` and `bs` as in fio; `runtime` overrides the duration that follows from
    /// the rate.
    ///
    /// # Errors
    /// Values of `rw` and `bs` that fio would refuse.
    pub fn load(
        self,
        drive: &DriveSheet,
        rw: &str,
        bs: &str,
        runtime: Option<Span>,
    ) -> Result<Load, Problems> {
        let rate = self.bytes_per_second(drive);
        let threads = (rate / THREAD).ceil().clamp(1.0, THREADS) as u32;
        let mut ranges = Ranges::for_threads(rw, [].into_iter(), threads);
        let range = ranges.next(threads).map_or(String::new(), |it| it + "\n");
        let source = self.words(rate);
        let written = |runtime: &str| {
            let text = format!(
                "[writes]\nioengine=libaio\ndirect=1\nnorandommap=1\nrw={rw}\nbs={bs}\niodepth=32\nnumjobs={threads}\n{range}\
                 group_reporting=1\nrate={:.0}\ntime_based=1\nramp_time=200ms\nruntime={runtime}\n",
                rate / f64::from(threads),
            );
            Load::of_text(&source, text)
        };
        let load = match runtime {
            Some(runtime) => written(&format!("{}us", runtime.ns() / 1000))?,
            None => {
                let block = match &written("1s")?.user_workload().workload {
                    Workload::Jobs(jobs) => jobs.first().map_or(4096.0, rate::written_bytes),
                    Workload::Trace(_) => 4096.0,
                };
                let enough = (WRITES * block / rate).clamp(SECONDS.0, SECONDS.1).ceil();
                written(&format!("{enough}s"))?
            }
        };
        let order = match workload::fio::is_random(rw) {
            true => "random",
            false => "sequential",
        };
        Ok(load.writing(rate * 1e-6, format!("{order} {bs}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_in_all_units() {
        let drive = catalogue::drive("950pro-256").expect("built in");
        for (text, rate) in [
            ("100MB/s", 1e8),
            ("100 MB/s", 1e8),
            ("8.64TB/day", 1e8),
            ("365 GB/month", 365e9 * 12.0 / (365.0 * 86_400.0)),
            ("365TB/year", 1e12 / 86_400.0),
            ("0.5 GB/day", 0.5e9 / 86_400.0),
            ("1DWPD", drive.capacity as f64 / 86_400.0),
            ("0.5 dwpd", drive.capacity as f64 / 172_800.0),
        ] {
            let read = WriteAmount::read(text)
                .expect(text)
                .bytes_per_second(&drive);
            assert!((read / rate - 1.0).abs() < 1e-9, "{text}: {read}");
        }
        for text in [
            "100", "TB/day", "2 TB", "0DWPD", "-1DWPD", "1B/s", "9TB/s", "1 DWPW",
        ] {
            assert!(WriteAmount::read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_load_is_as_long_as_its_rate_and_blocks_need() {
        let drive = catalogue::drive("950pro-256").expect("built in");
        let text = |rate: &str, bs: &str| {
            let writing = WriteAmount::read(rate).expect(rate);
            let load = writing.load(&drive, "randwrite", bs, None).expect("a job");
            load.user_workload().text.clone()
        };
        assert!(text("20MB/s", "4k").contains("runtime=13s"));
        assert!(text("20MB/s", "32k").contains("runtime=60s"));
        assert!(text("1GB/s", "4k").contains("numjobs=3"));
        assert!(
            WriteAmount::Rate(1e8)
                .load(&drive, "randwrite", "4q", None)
                .is_err()
        );
    }
}
