//! Effect of each modelled option: one small function per option, with the name of the option.

use model::host::Advice;

use crate::job::{Distribution, Mix, RateProcess, Sequencer, SteadyMetric, SyncMode, Unified};

use super::engines;
use super::settings::Settings;
use super::split;
use super::value::{self, OptionError, OptionValue};

pub(super) type ApplyResult = Result<(), OptionError>;

/// Options that only store a value: `name: field = parser`.
macro_rules! store {
    ($($name:ident: $($place:ident).+ = |$given:ident| $read:expr;)+) => {
        $(pub(super) fn $name(settings: &mut Settings, $given: &OptionValue) -> ApplyResult {
            settings.$($place).+ = $read?;
            Ok(())
        })+
    };
}

store! {
    name: job.name = |given| given.text().map(String::from);
    description: job.reporting.description = |given| given.text().map(|text| Some(text.into()));
    wait_for: wait_for = |given| given.text().map(|text| Some(text.into()));
    stonewall: job.stonewall = |given| given.set();
    new_group: job.new_group = |given| given.set();
    numjobs: job.numjobs = |given| given.number32(1, 65_535);
    thread: job.thread = |given| given.set();
    group_reporting: job.group_reporting = |given| given.set();
    runtime: job.runtime = |given| given.seconds().map(Some);
    time_based: job.time_based = |given| given.set();
    ramp_time: job.ramp_time = |given| given.seconds();
    loops: job.loops = |given| given.number32(0, u32::MAX);
    filename: filename = |given| given.text().map(|text| Some(text.trim().into()));
    directory: directory = |given| given.text().map(|text| Some(text.trim().into()));
    number_ios: job.number_ios = |given| given.number(0, u64::MAX).map(|ios| (ios > 0).then_some(ios));
    bs_unaligned: unaligned = |given| given.set();
    bs_is_seq_rand: sizes_by_pattern = |given| given.boolean();
    norandommap: job.norandommap = |given| given.set();
    randseed: job.randseed = |given| given.number(0, u64::MAX).map(Some);
    rwmixread: job.read_percent = |given| given.number32(0, 100);
    rwmixwrite: job.read_percent = |given| given.number32(0, 100).map(|writes| 100 - writes);
    iodepth: job.iodepth = |given| given.number32(1, 65_535);
    iodepth_batch: job.iodepth_batch = |given| given.number32(0, 65_535);
    iodepth_batch_complete_min: job.iodepth_batch_complete_min = |given| given.number32(0, 65_535);
    iodepth_batch_complete_max: job.iodepth_batch_complete_max = |given| given.number32(0, 65_535);
    iodepth_low: job.iodepth_low = |given| given.number32(0, 65_535);
    invalidate: job.invalidate = |given| given.boolean();
    overwrite: job.overwrite = |given| given.boolean();
    fsync: job.fsync = |given| given.number32(0, u32::MAX);
    fdatasync: job.fdatasync = |given| given.number32(0, u32::MAX);
    end_fsync: job.end_fsync = |given| given.boolean();
    hipri: job.high_priority = |given| given.set();
    sqthread_poll: job.sq_poll = |given| given.set();
    thinktime: think.pause = |given| given.microseconds();
    thinktime_spin: think.spin = |given| given.microseconds();
    thinktime_iotime: think.iotime = |given| given.seconds();
    latency_target: latency_target = |given| given.microseconds();
    latency_window: latency_window = |given| given.microseconds();
    latency_run: latency_run = |given| given.boolean();
    steadystate_duration: steady_duration = |given| given.seconds();
    steadystate_check_interval: steady_interval = |given| given.seconds().map(Some);
    steadystate_ramp_time: steady_ramp = |given| given.seconds();
    replay_no_stall: iolog.no_stall = |given| given.boolean();
    replay_time_scale: iolog.time_scale = |given| given.number32(1, u32::MAX);
    clat_percentiles: job.clat_percentiles = |given| given.boolean();
    lat_percentiles: job.lat_percentiles = |given| given.boolean();
    slat_percentiles: job.slat_percentiles = |given| given.boolean();
    disable_lat: job.reporting.disable_lat = |given| given.boolean();
    disable_clat: job.reporting.disable_clat = |given| given.boolean();
    disable_slat: job.reporting.disable_slat = |given| given.boolean();
    disable_bw: job.reporting.disable_bw = |given| given.boolean();
}

fn merge<T: Copy>(into: &mut [Option<T>; 3], values: [Option<T>; 3]) {
    for (into, value) in into.iter_mut().zip(values) {
        *into = value.or(*into);
    }
}

pub(super) fn startdelay(settings: &mut Settings, given: &OptionValue) -> ApplyResult {
    let text = given.text()?;
    let first = text.split(['-', ',', ':']).next();
    if first != Some(text) {
        let note = format!("startdelay={text}: the lower end of the range is used");
        settings.notes.push(note);
    }
    let first = OptionValue {
        text: first,
        ..*given
    };
    settings.job.startdelay = first.seconds()?;
    Ok(())
}

pub(super) fn filesize(settings: &mut Settings, given: &OptionValue) -> ApplyResult {
    let [low, high, _] = given.by_direction(0, u64::MAX)?;
    if low != high {
        let text = given.text.unwrap_or_default();
        let note =
            format!("filesize={text}: the size is not drawn from the range but its upper end");
        settings.notes.push(note);
    }
    settings.job.filesize = high.or(low).filter(|&bytes| bytes > 0);
    Ok(())
}

/// Checks whether fio's value of `rw` means random I/O; the other values are sequential.
pub fn is_random(rw: &str) -> bool {
    rw.starts_with("rand")
}

pub(super) fn rw(settings: &mut Settings, given: &OptionValue) -> ApplyResult {
    let modes = [
        ("read", (Mix::Read, false)),
        ("write", (Mix::Write, false)),
        ("trim", (Mix::Trim, false)),
        ("randread", (Mix::Read, true)),
        ("randwrite", (Mix::Write, true)),
        ("randtrim", (Mix::Trim, true)),
        ("rw", (Mix::ReadWrite, false)),
        ("readwrite", (Mix::ReadWrite, false)),
        ("randrw", (Mix::ReadWrite, true)),
        ("trimwrite", (Mix::TrimWrite, false)),
        ("randtrimwrite", (Mix::TrimWrite, true)),
    ];
    let ((mix, random), modifier) = given.word(&modes)?;
    let job = &mut settings.job;
    (job.mix, job.random) = (mix, random);
    (job.sequence, job.skip) = (1, 0);
    match modifier {
        None => {}
        Some(count) if random => {
            job.sequence = count
                .parse()
                .ok()
                .filter(|&count| count > 0)
                .ok_or_else(|| {
                    OptionError::new(
                        format!("`{count}` is not a count"),
                        "a number of I/Os, such as randread:8",
                    )
                })?;
        }
        Some(skip) => {
            let (sign, digits) = match skip.strip_prefix('-') {
                Some(digits) => (-1, digits),
                None => (1, skip),
            };
            let bytes = i64::try_from(given.count(digits)?).map_err(|_| {
                OptionError::new(
                    format!("{skip} is too large"),
                    "bytes to leave out, such as write:8k",
                )
            })?;
            job.skip = sign * bytes;
        }
    }
    Ok(())
}

pub(super) fn rw_sequencer(settings: &mut Settings, given: &OptionValue) -> ApplyResult {
    let kinds = [
        ("sequential", Sequencer::Sequential),
        ("identical", Sequencer::Identical),
    ];
    settings.job.sequencer = given.word(&kinds)?.0;
    Ok(())
}

pub(super) fn direct(settings: &mut Settings, given: &OptionValue) -> ApplyResult {
    settings.job.direct = given.boolean()?;
    settings.says_buffered = !settings.job.direct;
    Ok(())
}

pub(super) fn buffered(settings: &mut Settings, given: &OptionValue) -> ApplyResult {
    settings.says_buffered = given.boolean()?;
    settings.job.direct = !settings.says_buffered;
    Ok(())
}

pub(super) fn fadvise_hint(settings: &mut Settings, given: &OptionValue) -> ApplyResult {
    let hints = [
        ("0", Some(Advice::Normal)),
        ("none", Some(Advice::Normal)),
        // By the job's accesses, which is fio's default.
        ("1", None),
        ("random", Some(Advice::Random)),
        ("sequential", Some(Advice::Sequential)),
        // Linux ignores this advice for reads (mm/fadvise.c).
        ("noreuse", Some(Advice::Normal)),
    ];
    settings.advice = given.word(&hints)?.0;
    Ok(())
}

pub(super) fn bs(settings: &mut Settings, given: &OptionValue) -> ApplyResult {
    for (size, value) in settings.bs.iter_mut().zip(given.by_direction(1, u64::MAX)?) {
        *size = value.unwrap_or(*size);
    }
    Ok(())
}

pub(super) fn ba(settings: &mut Settings, given: &OptionValue) -> ApplyResult {
    merge(&mut settings.align, given.by_direction(1, u64::MAX)?);
    Ok(())
}

pub(super) fn bsrange(settings: &mut Settings, given: &OptionValue) -> ApplyResult {
    let ranges = given.ranges()?;
    merge(
        &mut settings.min_bs,
        ranges.map(|range| range.map(|(low, _)| low)),
    );
    merge(
        &mut settings.max_bs,
        ranges.map(|range| range.map(|(_, high)| high)),
    );
    Ok(())
}

pub(super) fn bssplit(settings: &mut Settings, given: &OptionValue) -> ApplyResult {
    for (direction, split) in split::sizes(given)?.into_iter().enumerate() {
        if let Some(split) = split {
            let sizes = || split.iter().map(|&(size, _)| size);
            settings.min_bs[direction] = sizes().min();
            settings.max_bs[direction] = sizes().max();
            settings.split[direction] = Some(split);
        }
    }
    Ok(())
}

pub(super) fn random_distribution(settings: &mut Settings, given: &OptionValue) -> ApplyResult {
    #[derive(Clone, Copy)]
    enum DistributionShape {
        Random,
        Zipf,
        Pareto,
        Normal,
        Zoned,
        ZonedAbsolute,
    }
    let kinds = [
        ("random", DistributionShape::Random),
        ("zipf", DistributionShape::Zipf),
        ("pareto", DistributionShape::Pareto),
        ("normal", DistributionShape::Normal),
        ("zoned", DistributionShape::Zoned),
        ("zoned_abs", DistributionShape::ZonedAbsolute),
    ];
    if given.text()?.starts_with("sequence") {
        return Err(OptionError::new(
            "sequence is a distribution of fio 3.43 that is not simulated",
            "rw=read for blocks in order, or read_iolog for a list of blocks",
        ));
    }
    let (kind, rest) = given.word(&kinds)?;
    let mut parameters = rest
        .filter(|rest| !rest.is_empty())
        .into_iter()
        .flat_map(|rest| rest.splitn(2, ':'));
    let mut parameter = |default: f64, min: f64, max: f64| match parameters.next() {
        Some(text) => value::float(text, min, max),
        None => Ok(default),
    };
    let distribution = match kind {
        DistributionShape::Random => Distribution::Random,
        DistributionShape::Zipf => {
            let theta = parameter(1.1, 0.0, f64::MAX)?;
            if theta == 1.0 {
                return Err(OptionError::new(
                    "the zipf theta must not be exactly 1",
                    "such as 0.99 or 1.1",
                ));
            }
            let centre = centre(&mut parameter)?;
            Distribution::Zipf { theta, centre }
        }
        DistributionShape::Pareto => {
            let power = parameter(0.2, f64::MIN_POSITIVE, 1.0 - f64::EPSILON)?;
            let centre = centre(&mut parameter)?;
            Distribution::Pareto { power, centre }
        }
        DistributionShape::Normal => {
            let deviation = parameter(0.0, 0.0, 99.999_999)?;
            let centre = centre(&mut parameter)?;
            Distribution::Normal { deviation, centre }
        }
        DistributionShape::Zoned | DistributionShape::ZonedAbsolute => {
            let absolute = matches!(kind, DistributionShape::ZonedAbsolute);
            let zones = split::zones(given, rest.unwrap_or(""), absolute)?;
            for (distribution, zones) in settings.job.distribution.iter_mut().zip(zones) {
                *distribution = zones.unwrap_or_else(|| distribution.clone());
            }
            return Ok(());
        }
    };
    settings.job.distribution = [distribution.clone(), distribution.clone(), distribution];
    Ok(())
}

/// Reads the second parameter of a distribution: its centre. -1 (fio's default) leaves the place to hashing.
fn centre(
    parameter: &mut impl FnMut(f64, f64, f64) -> Result<f64, OptionError>,
) -> Result<Option<f64>, OptionError> {
    let centre = parameter(-1.0, -1.0, 1.0)?;
    if centre == -1.0 {
        Ok(None)
    } else if centre >= 0.0 {
        Ok(Some(centre))
    } else {
        Err(OptionError::new(
            format!("{centre} is out of range"),
            "0 to 1",
        ))
    }
}

pub(super) fn percentage_random(settings: &mut Settings, given: &OptionValue) -> ApplyResult {
    for (percent, value) in settings
        .job
        .percentage_random
        .iter_mut()
        .zip(given.by_direction(0, 100)?)
    {
        *percent = value.map_or(*percent, |value| value as u32);
    }
    Ok(())
}

pub(super) fn ioengine(settings: &mut Settings, given: &OptionValue) -> ApplyResult {
    let name = given.text()?.trim();
    let names = || engines::ENGINES.iter().map(|engine| engine.name);
    let Some(engine) = engines::find(name) else {
        // The engine's own options apply to no other engine, so they need no message.
        settings.job.engine_name = name.into();
        let Some(why) = engines::without_model(name) else {
            return Err(value::one_of(name, names()));
        };
        let all = names().collect::<Vec<_>>().join(", ");
        return Err(OptionError::new(
            format!("`{name}` {why}"),
            format!("for the same I/O on a drive, use one of {all}"),
        ));
    };
    settings.job.engine = engine.engine;
    settings.job.engine_name = engine.name.into();
    Ok(())
}

pub(super) fn atomic(settings: &mut Settings, given: &OptionValue) -> ApplyResult {
    settings.job.direct |= given.boolean()?;
    Ok(())
}

pub(super) fn fsync_on_close(settings: &mut Settings, given: &OptionValue) -> ApplyResult {
    // The file is closed when the job ends, so this is one flush at that time.
    settings.job.end_fsync |= given.boolean()?;
    Ok(())
}

pub(super) fn sync(settings: &mut Settings, given: &OptionValue) -> ApplyResult {
    let modes = [
        ("none", SyncMode::None),
        ("0", SyncMode::None),
        ("sync", SyncMode::Sync),
        ("1", SyncMode::Sync),
        ("dsync", SyncMode::DataSync),
    ];
    settings.job.sync = given.word(&modes)?.0;
    Ok(())
}

pub(super) fn rate(settings: &mut Settings, given: &OptionValue) -> ApplyResult {
    merge(&mut settings.rate_bytes, given.by_direction(0, u64::MAX)?);
    Ok(())
}

pub(super) fn rate_iops(settings: &mut Settings, given: &OptionValue) -> ApplyResult {
    merge(
        &mut settings.rate_iops,
        given.by_direction(0, u32::MAX.into())?,
    );
    Ok(())
}

pub(super) fn rate_process(settings: &mut Settings, given: &OptionValue) -> ApplyResult {
    let kinds = [
        ("linear", RateProcess::Linear),
        ("poisson", RateProcess::Poisson),
    ];
    settings.job.rate_process = given.word(&kinds)?.0;
    Ok(())
}

pub(super) fn thinktime_blocks(settings: &mut Settings, given: &OptionValue) -> ApplyResult {
    settings.think_blocks = Some(given.number32(0, u32::MAX)?);
    Ok(())
}

pub(super) fn thinktime_blocks_type(settings: &mut Settings, given: &OptionValue) -> ApplyResult {
    settings.think.by_issue = given.word(&[("complete", false), ("issue", true)])?.0;
    Ok(())
}

pub(super) fn latency_percentile(settings: &mut Settings, given: &OptionValue) -> ApplyResult {
    settings.latency_percentile = given.floats(0.0, 100.0, 1)?[0];
    Ok(())
}

pub(super) fn steadystate(settings: &mut Settings, given: &OptionValue) -> ApplyResult {
    let criteria = [
        ("iops", (SteadyMetric::Iops, false)),
        ("iops_slope", (SteadyMetric::Iops, true)),
        ("bw", (SteadyMetric::Bandwidth, false)),
        ("bw_slope", (SteadyMetric::Bandwidth, true)),
        ("lat", (SteadyMetric::Latency, false)),
        ("lat_slope", (SteadyMetric::Latency, true)),
    ];
    let ((metric, slope), limit) = given.word(&criteria)?;
    let limit = limit
        .filter(|limit| !limit.is_empty())
        .ok_or_else(|| OptionError::new("has no limit", "such as iops:2% or iops_slope:0.3%"))?;
    settings.steady = match value::percent(limit) {
        Some(percent) => (metric, slope, value::float(percent, 0.0, f64::MAX)?, true),
        None if metric == SteadyMetric::Bandwidth => {
            (metric, slope, given.count(limit)? as f64, false)
        }
        // Latencies are compared in nanoseconds.
        None if metric == SteadyMetric::Latency => {
            let text = Some(limit);
            let limit = OptionValue { text, ..*given }.microseconds()?;
            (metric, slope, limit.ns() as f64, false)
        }
        None => (metric, slope, value::float(limit, 0.0, f64::MAX)?, false),
    };
    Ok(())
}

pub(super) fn read_iolog(settings: &mut Settings, given: &OptionValue) -> ApplyResult {
    let text = given.text()?.trim();
    if text.replace("\\:", "").contains(':') {
        return Err(OptionError::new(
            format!("`{text}` names several logs"),
            "one log per job; use a job for each log",
        ));
    }
    if text == "-" {
        return Err(OptionError::new(
            "a log from standard input is not read",
            "the path of a file",
        ));
    }
    settings.iolog.path = text.replace("\\:", ":").into();
    Ok(())
}

/// Reads `kb_base` before the other options of its section, which depend on it.
pub(super) fn kb_base(settings: &mut Settings, given: &OptionValue) -> ApplyResult {
    settings.job.reporting.kb_base = given.word(&[("1024", 1024), ("1000", 1000)])?.0;
    Ok(())
}

pub(super) fn unit_base(settings: &mut Settings, given: &OptionValue) -> ApplyResult {
    settings.job.reporting.bits = given.word(&[("0", false), ("8", false), ("1", true)])?.0;
    Ok(())
}

pub(super) fn percentile_list(settings: &mut Settings, given: &OptionValue) -> ApplyResult {
    let mut percentiles = given.floats(f64::MIN_POSITIVE, 100.0, 20)?;
    percentiles.sort_by(f64::total_cmp);
    let digits = |part: &str| {
        part.split_once('.')
            .map_or(0, |(_, digits)| digits.trim_end().len())
    };
    settings.job.reporting.percentile_digits =
        given.text()?.split(':').map(digits).max().unwrap_or(0);
    settings.job.percentile_list = percentiles;
    Ok(())
}

pub(super) fn significant_figures(settings: &mut Settings, given: &OptionValue) -> ApplyResult {
    settings.job.reporting.significant_figures = given.number(1, 10)? as usize;
    Ok(())
}

pub(super) fn unified_rw_reporting(settings: &mut Settings, given: &OptionValue) -> ApplyResult {
    let kinds = [
        ("none", Unified::Separate),
        ("0", Unified::Separate),
        ("mixed", Unified::Mixed),
        ("1", Unified::Mixed),
        ("both", Unified::Both),
        ("2", Unified::Both),
    ];
    settings.job.reporting.unified = given.word(&kinds)?.0;
    Ok(())
}

pub(super) fn gtod_reduce(settings: &mut Settings, given: &OptionValue) -> ApplyResult {
    if given.boolean()? {
        let job = &mut settings.job;
        job.reporting.disable_lat = true;
        job.reporting.disable_clat = true;
        job.reporting.disable_slat = true;
        job.reporting.disable_bw = true;
        job.clat_percentiles = false;
        job.lat_percentiles = false;
        job.slat_percentiles = false;
    }
    Ok(())
}
