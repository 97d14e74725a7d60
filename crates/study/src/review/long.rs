//! Runs of a given length on pools: the effect of a buffer or a cache over minutes and hours.
//!
//! A pool of flash runs scaled ([`super::scaled`]). Lengths and times are then those of the whole pool, and the actual
//! run is shorter by the factor. Runs of a point follow each other on one drive after its preparation, or each begins
//! on a new drive. A run that would take more I/Os than the suite allows for a point is shortened, and a note states
//! that. Not supported: `ramp_time`; the preparation is a job of its own.

use model::media::Medium;
use model::{Gauge, Span, Time};
use tier::DriveConfig;

use super::cache::cache_of;
use super::course::{Condition, Long, StopCondition, WorkloadRange};
use super::measure::measurement;
use super::results::Measurement;
use super::run::{PointTask, Runner, jobs, rate_of};
use super::scaled::ScaledDrive;
use super::seeds::of_seeds;
use super::series::series;
use super::suite::PointSpec;
use lab::faults::{RunFault, rebuilt_member};
use lab::{Bench, Outcome, Scenario, Work};
use text::digits::duration;
use text::problem::Problems;
use workload::faults::{Fault, ScheduledFault, Timing};

/// Number of intervals of a series.
const INTERVALS: u64 = 240;

/// Name of the drive in jobs.
const DEVICE: &str = "/dev/nvme0n1";

/// Length of the run that determines the rate, in the whole pool's time.
const PILOT: Span = Span::from_ms(20);

const MIB: u64 = 1 << 20;

/// Block size in bytes at and above which an I/O counts as several.
const LARGE: u64 = 32 << 10;

/// Maximum size of a cache that HCIBench uses.
const HCIBENCH_CACHE: u64 = 600_000_000_000;

/// Returns the bytes of the first volume: a workload over several volumes would be two workloads.
fn volume_bytes(drive: &DriveConfig) -> u64 {
    match drive {
        DriveConfig::Pool(pool) => pool.volumes().first().map_or(0, |it| it.bytes),
        other => other.capacity_bytes(),
    }
}

/// Returns the range of each of `threads` threads, in whole MiB; `None` if the drive has no such part.
fn bytes_of(range: WorkloadRange, scaled: &ScaledDrive, threads: u32) -> Option<u64> {
    let drive = &scaled.drive;
    let all = volume_bytes(drive);
    let bytes = match range {
        WorkloadRange::Bytes(bytes) => bytes.min(all),
        WorkloadRange::Share(share) => (all as f64 * share) as u64,
        WorkloadRange::Cache(times) => {
            let bytes = (cache_of(drive)?.bytes as f64 * times) as u64;
            (bytes <= all).then_some(bytes)?
        }
        WorkloadRange::Buffer(times) => {
            let buffer = cache_of(drive)
                .filter(|it| it.writes)
                .map_or(all, |it| it.bytes);
            let most = (HCIBENCH_CACHE as f64 / scaled.stretch) as u64;
            (buffer.min(most) as f64 * times) as u64
        }
    };
    let each = bytes.min(all) / u64::from(threads.max(1)) / MIB * MIB;
    (each > 0).then_some(each)
}

/// One point on one drive, ready to run.
struct Ready<'a> {
    task: &'a PointTask<'a>,
    long: Long,
    spec: PointSpec,
    scaled: ScaledDrive,
    /// Bytes of each thread's range.
    each: u64,
    warm_seed: u64,
}

impl Ready<'_> {
    /// Returns the number of I/Os at which a run is shortened. A large I/O is several I/Os for tiers, and figures over
    /// time need more than one value.
    fn most(&self, most: u64) -> u64 {
        let large = self.spec.settings.block_bytes.unwrap_or(0) / LARGE;
        let most = most / large.max(1);
        if self.long.over_time { most } else { most / 4 }
    }

    /// Returns the actual length of a run from its length in the whole pool's time.
    fn shorter(&self, span: Span) -> Span {
        let us = span.seconds() / self.scaled.stretch * 1e6;
        Span::from_us(us.round().max(1000.0) as u64)
    }

    /// Returns the job that writes the range sequentially.
    fn filling(&self) -> String {
        let threads: u32 = self.spec.threads.iter().map(|it| it.0).sum();
        format!(
            "[fill]\nioengine=libaio\ndirect=1\nfilename={DEVICE}\nrw=write\nbs=1m\niodepth=8\nsize={}\n",
            self.each * u64::from(threads)
        )
    }
}

impl Runner<'_> {
    /// Runs a point over its time with all seeds; `None` if the drive has no such part.
    pub(super) fn long(
        &self,
        task: &PointTask<'_>,
        long: Long,
    ) -> Result<Option<Measurement>, Problems> {
        let whole = &self.request.drives[task.drive].config;
        let scaled = match long.scaled {
            true => ScaledDrive::smallest_for(whole),
            false => ScaledDrive::whole(whole),
        };
        let threads: u32 = task.spec.threads.iter().map(|it| it.0).sum();
        let Some(each) = bytes_of(long.range, &scaled, threads) else {
            return Ok(None);
        };
        let mut spec = task.spec.clone();
        // All jobs use one device; otherwise each job would have a file of its own.
        spec.options.push(("filename", DEVICE.to_owned()));
        spec.options.push(("size", each.to_string()));
        if threads > 1 {
            spec.options.push(("offset_increment", each.to_string()));
        }
        let ready = Ready {
            task,
            long,
            spec,
            scaled,
            each,
            warm_seed: self.seed(task.spec.chapter),
        };
        self.of_ready(&ready).map(Some)
    }

    fn of_ready(&self, ready: &Ready<'_>) -> Result<Measurement, Problems> {
        let mut bench = self.bench(ready);
        if ready.long.filled {
            self.run_jobs(&mut bench, ready, "fill", &ready.filling())?;
        }
        let pilot = self.named(ready, "pilot");
        let text = ready.spec.text(pilot, Span::ZERO, ready.shorter(PILOT));
        let rate = rate_of(&self.run_jobs(&mut bench, ready, "pilot", &text)?);
        let (text, cut) = self.job(ready, rate);
        if ready.long.warm > Span::ZERO {
            let warm = self.named(ready, "warm");
            let length = ready.shorter(ready.long.warm.scale(cut));
            self.run_jobs(
                &mut bench,
                ready,
                "warm",
                &ready.spec.text(warm, Span::ZERO, length),
            )?;
        }
        let mut outcomes = Vec::new();
        let mut job = String::new();
        for number in 1..=self.effort.seeds.max(1) {
            let name = match number {
                1 => String::new(),
                _ => format!("seed {number}"),
            };
            let text = text(self.named(ready, &name));
            outcomes.push(vec![match ready.long.over_time {
                true => self.anew(ready, &name, &text, rate)?,
                false => self.run_jobs(&mut bench, ready, &name, &text)?,
            }]);
            if job.is_empty() {
                job = text;
            }
        }
        let mut result = of_seeds(&outcomes, ready.spec.keep, ready.spec.is_deep);
        result.job = job;
        if ready.long.over_time {
            let mut each: Vec<_> = outcomes
                .iter()
                .map(|one| time_series(ready, &one[0]))
                .collect();
            for (result, told) in result.each.iter_mut().zip(&each) {
                result.series = Some(told.clone());
            }
            result.series = Some(each.swap_remove(0));
        }
        result.notes = notes(ready, cut, &result);
        let first = outcomes.iter().flatten().next();
        result.notes.extend(folded(&ready.scaled.drive));
        // The last note: the sentences of a review of rebuilds have it.
        result.notes.extend(
            first
                .into_iter()
                .flat_map(|it| condition_notes(it, ready.long.condition)),
        );
        Ok(result)
    }

    /// Returns the seed of a run of a point.
    fn named(&self, ready: &Ready<'_>, run: &str) -> u64 {
        match run {
            "" => self.seed(&ready.spec.name),
            run => self.seed(&format!("{}/{run}", ready.spec.name)),
        }
    }

    fn bench(&self, ready: &Ready<'_>) -> Bench<'_> {
        let machine = self.request.machine_of(ready.task.drive);
        let machine = machine.with_drive(ready.scaled.drive.clone());
        Bench::new(self.lab, &machine, ready.spec.state, ready.warm_seed)
    }

    fn run_jobs(
        &self,
        bench: &mut Bench<'_>,
        ready: &Ready<'_>,
        run: &str,
        text: &str,
    ) -> Result<Outcome, Problems> {
        let work = Work::Jobs(jobs(&ready.spec.name, text)?);
        bench.run(work, self.named(ready, run), Span::ZERO)
    }

    /// Runs on a new drive.
    fn anew(
        &self,
        ready: &Ready<'_>,
        run: &str,
        text: &str,
        rate: f64,
    ) -> Result<Outcome, Problems> {
        let machine = self.request.machine_of(ready.task.drive);
        let machine = machine.with_drive(ready.scaled.drive.clone());
        let work = Work::Jobs(jobs(&ready.spec.name, text)?);
        let seed = self.named(ready, run);
        let mut scenario = Scenario::new(machine, ready.spec.state, work, seed);
        scenario.warm_seed = Some(ready.warm_seed);
        self.set_condition(&mut scenario, ready, text)?;
        scenario.series_every = match ready.long.ends {
            StopCondition::After(_) => {
                let outcome = jobs(&ready.spec.name, text)?;
                let length = outcome.iter().filter_map(|job| job.runtime).max();
                Span::from_us((length.unwrap_or(PILOT).ns() / 1000 / INTERVALS).max(100))
            }
            // The rate grows as the cache fills, so the intervals are fine enough for the final rate.
            StopCondition::AfterReads(_) => {
                let longest = ready.most(self.effort.sustained_writes) as f64 / rate.max(1.0);
                Span::from_us((longest * 1e6 / (INTERVALS * 10) as f64).max(100.0) as u64)
            }
        };
        self.lab.run(&scenario)
    }

    /// Sets what happens to the drive during the run.
    fn set_condition(
        &self,
        scenario: &mut Scenario,
        ready: &Ready<'_>,
        text: &str,
    ) -> Result<(), Problems> {
        let sheet = &self.request.drives[ready.task.drive];
        let back = match ready.long.condition {
            Condition::None => return Ok(()),
            Condition::Heat => {
                scenario.heat = Some(sheet.management.thermal.clone());
                return Ok(());
            }
            Condition::Returns => Fault::Returns,
            Condition::Replaced => Fault::Replaced,
        };
        // A run may be shorter than planned.
        let jobs = jobs(&ready.spec.name, text)?;
        let length = jobs.iter().filter_map(|job| job.runtime).max();
        let length = length.unwrap_or(PILOT);
        let config = &ready.scaled.drive;
        let Some((member, name)) = rebuilt_member(config) else {
            return Ok(());
        };
        for (at, fault) in [(0.125, Fault::Dies), (0.25, back)] {
            let planned = ScheduledFault {
                when: Timing::At(length.scale(at)),
                drive: Some(name.clone()),
                fault,
            };
            let faults = RunFault::resolve(&planned, config, Some(member));
            let faults = faults.map_err(|why| Problems::whole(&sheet.id, why))?;
            scenario.faults.extend(faults);
        }
        Ok(())
    }

    /// Returns the text of a job by seed, and the share of its length that the suite's I/Os allow.
    fn job(&self, ready: &Ready<'_>, rate: f64) -> (impl Fn(u64) -> String, f64) {
        let spec = ready.spec.clone();
        let most = ready.most(self.effort.sustained_writes);
        let (length, ios, cut) = match ready.long.ends {
            StopCondition::After(counted) => {
                let whole = (counted + ready.long.warm).seconds() / ready.scaled.stretch;
                let cut = (most as f64 / (whole * rate).max(1.0)).min(1.0);
                (Some(ready.shorter(counted.scale(cut))), 0, cut)
            }
            StopCondition::AfterReads(times) => {
                let lines = cache_of(&ready.scaled.drive).map_or(1, |it| it.bytes / it.line);
                let wanted = (lines as f64 * times).max(1.0);
                let ios = wanted.min(most as f64);
                (None, ios as u64, ios / wanted)
            }
        };
        let text = move |seed| match length {
            Some(length) => spec.text(seed, Span::ZERO, length),
            None => spec.fixed_text(seed, Span::ZERO, ios),
        };
        (text, cut)
    }
}

/// Returns a run as a series in the whole pool's time.
fn time_series(ready: &Ready<'_>, outcome: &Outcome) -> super::series::TimeSeries {
    let threads = outcome.threads.iter();
    let both = threads.flat_map(|thread| [&thread.read, &thread.write]);
    let every = outcome.over_time.every;
    let mut series = series(both, every, ready.scaled.stretch, INTERVALS as usize);
    let all = measurement(&[outcome], Default::default());
    let ios = all.iops() * outcome.end.since(Time::ZERO).seconds();
    series.ios_an_interval = super::results::rounded(ios / series.iops.len().max(1) as f64);
    series.tell_tiers(&outcome.over_time);
    series
}

/// Returns notes on heat and rebuilds in a run under this condition.
fn condition_notes(outcome: &Outcome, condition: Condition) -> Vec<String> {
    let throttled = outcome.gauge(Gauge::ThermalThrottleSeconds);
    let heat = throttled.zip(outcome.gauge(Gauge::Celsius));
    let heat = heat.map(|(seconds, celsius)| {
        format!(
            "throttled for {} of {}; {celsius:.1} degrees Celsius at the end",
            duration(seconds),
            duration(outcome.counted.seconds())
        )
    });
    let rebuilds = outcome.rebuilds.iter().map(lab::Rebuild::words);
    let is_expected = matches!(condition, Condition::Returns | Condition::Replaced);
    let none = (is_expected && outcome.rebuilds.is_empty())
        .then(|| "no rebuild: nothing was written without the member".to_owned());
    heat.into_iter().chain(rebuilds).chain(none).collect()
}

/// Returns a note that some nodes of a cluster represent all nodes.
fn folded(drive: &DriveConfig) -> Option<String> {
    match drive {
        DriveConfig::Pool(pool) => pool.cluster()?.fold_words(),
        _ => None,
    }
}

/// Returns notes on such a run for the reader.
fn notes(ready: &Ready<'_>, cut: f64, result: &Measurement) -> Vec<String> {
    let mut notes = Vec::new();
    let stretch = ready.scaled.stretch;
    if stretch > 1.0 {
        notes.push(format!(
            "scaled model: 1/{stretch:.0} of the capacity and of the buffer's limits; times are those of the whole pool, the job's \
             are divided by {stretch:.0}"
        ));
    }
    if cut < 1.0 {
        notes.push(match ready.long.ends {
            StopCondition::After(counted) => format!(
                "cut short: {} instead of {}",
                duration(counted.seconds() * cut),
                duration(counted.seconds())
            ),
            StopCondition::AfterReads(_) => format!(
                "cut short after {:.2} % of the reads that a cache of this size is given: it may not be full",
                cut * 100.0
            ),
        });
    }
    let rising = result.series.as_ref().and_then(|it| rising(&it.hit_ratio));
    if let Some(by) = rising {
        notes.push(format!(
            "the hit ratio still rises at the end, by {:.1} % of the reads over its last eighth",
            by * 100.0
        ));
    }
    notes
}

/// Returns the increase of a ratio from the second to last eighth to the last eighth, if it exceeds 0.01.
fn rising(ratio: &[Option<f64>]) -> Option<f64> {
    let part = ratio.len() / 8;
    let mean = |part: &[Option<f64>]| {
        let known: Vec<f64> = part.iter().flatten().copied().collect();
        (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
    };
    let (rest, last) = ratio.split_at(ratio.len() - part);
    let by = mean(last)? - mean(&rest[rest.len().checked_sub(part)?..])?;
    (by > 0.01).then_some(by)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn working_sets_are_those_of_hcibench() {
        let sheet = catalogue::drive("group").expect("built in");
        let whole = ScaledDrive::whole(&sheet.config);
        let each = bytes_of(WorkloadRange::Buffer(0.75), &whole, 16).expect("it has room");
        // Three quarters of the cache, in 16 virtual disks.
        assert!(
            (each as f64 / (0.75 * 400e9 / 16.0) - 1.0).abs() < 0.01,
            "{each}"
        );
        let large = catalogue::drive("d7-p5510-3840").expect("built in");
        let large = ScaledDrive::whole(&large.config);
        assert_eq!(
            bytes_of(WorkloadRange::Buffer(0.75), &large, 1),
            Some(450_000_000_000 >> 20 << 20)
        );
        assert_eq!(bytes_of(WorkloadRange::Cache(2.0), &large, 1), None);
    }

    #[test]
    fn a_ratio_that_rises_is_told_and_one_that_does_not_is_not() {
        let rise: Vec<Option<f64>> = (0..40).map(|it| Some(f64::from(it) * 0.01)).collect();
        assert!(rising(&rise).is_some_and(|by| (by - 0.05).abs() < 1e-9));
        assert_eq!(rising(&[Some(0.7); 40]), None);
        assert_eq!(rising(&[]), None);
    }
}
