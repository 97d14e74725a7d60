//! Figures that a metric can name: those of a run (`read.iops`, `write.p99_us`, `watts`) and those of a drive of the
//! catalogue (`endurance_tbw`, `xpoint.power.limit_w`).

use model::media::Medium;
use model::{Gauge, Part, Span};

use super::expression::ExpressionError;
use super::loss::odds;
use catalogue::DriveSheet;
use lab::act::ActResult;
use lab::{Measured, Outcome, ThreadOutcome};
use statistics::Histogram;
use text::problem::nearest;
use text::quantity::in_unit;
use workload::act::RequestKind;

/// A figure of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RunFigure {
    /// A figure of one direction, or of reads and writes together.
    Of(FigureDirection, FigureQuantity),
    /// Mean power.
    Watts,
    /// Bytes programmed for each byte that the host wrote.
    WriteAmplification,
    /// Mean number of busy cores.
    HostCores,
    /// Busy share of the controller, 0 to 1.
    ControllerBusy,
    /// Busy share of the medium, 0 to 1.
    MediumBusy,
    /// Virtual time of the whole run.
    Seconds,
    /// Rated endurance used, percent.
    PercentageUsed,
    /// A figure of an ACT run.
    OfAct(ActFigure),
}

/// A figure of an ACT run, at its load or at the score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ActFigure {
    /// The highest multiple of 1x that passes, or the given load.
    Load,
    /// Reads per second.
    Reads,
    /// Percent of reads that took 2^n milliseconds or more, in the worst slice.
    Over(usize),
    /// Mean latency of reads, microseconds.
    Mean,
    /// Large reads per second.
    LargeReads,
    /// Large writes per second.
    LargeWrites,
}

/// Direction of the I/Os.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FigureDirection {
    /// Only reads.
    Read,
    /// Only writes.
    Write,
    /// Only trims.
    Trim,
    /// Reads and writes together.
    Total,
}

/// Quantity of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FigureQuantity {
    /// I/Os per second.
    Iops,
    /// 10^6 bytes per second.
    MbPerSecond,
    /// 2^20 bytes per second.
    MibPerSecond,
    /// I/Os counted.
    Ios,
    /// Mean time in the drive, without the host's part.
    DriveMean,
    /// A statistic of fio's lat, slat or clat.
    Latency(LatencyKind, Statistic),
}

/// One of fio's three latencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatencyKind {
    /// Total latency: from issue to reaping.
    Total,
    /// Submission latency: from issue until the drive has the command.
    Submission,
    /// Completion latency: from submission to reaping.
    Completion,
}

/// A statistic of a latency, in microseconds or in percent of all I/Os.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Statistic {
    /// Arithmetic mean.
    Mean,
    /// Standard deviation.
    Deviation,
    /// The minimum.
    Min,
    /// The maximum.
    Max,
    /// Percentile with this rank.
    Percentile(f64),
    /// Percent of I/Os slower than this many microseconds.
    Over(f64),
}

/// Percentile at and above which a tail is called deep.
pub const DEEP: f64 = 99.99;

const WHOLE: &[(&str, RunFigure)] = &[
    ("watts", RunFigure::Watts),
    ("write_amplification", RunFigure::WriteAmplification),
    ("host_cores", RunFigure::HostCores),
    ("controller_busy", RunFigure::ControllerBusy),
    ("medium_busy", RunFigure::MediumBusy),
    ("seconds", RunFigure::Seconds),
    ("percentage_used", RunFigure::PercentageUsed),
    ("act_load", RunFigure::OfAct(ActFigure::Load)),
    ("act_reads_s", RunFigure::OfAct(ActFigure::Reads)),
    ("act_over_1ms_percent", RunFigure::OfAct(ActFigure::Over(0))),
    ("act_over_2ms_percent", RunFigure::OfAct(ActFigure::Over(1))),
    ("act_over_8ms_percent", RunFigure::OfAct(ActFigure::Over(3))),
    (
        "act_over_64ms_percent",
        RunFigure::OfAct(ActFigure::Over(6)),
    ),
    ("act_mean_us", RunFigure::OfAct(ActFigure::Mean)),
    ("act_large_reads_s", RunFigure::OfAct(ActFigure::LargeReads)),
    (
        "act_large_writes_s",
        RunFigure::OfAct(ActFigure::LargeWrites),
    ),
];

const DIRECTIONS: &[(&str, FigureDirection)] = &[
    ("read", FigureDirection::Read),
    ("write", FigureDirection::Write),
    ("trim", FigureDirection::Trim),
    ("total", FigureDirection::Total),
];

const COUNTS: &[(&str, FigureQuantity)] = &[
    ("iops", FigureQuantity::Iops),
    ("mb_s", FigureQuantity::MbPerSecond),
    ("mib_s", FigureQuantity::MibPerSecond),
    ("ios", FigureQuantity::Ios),
    ("drive_mean_us", FigureQuantity::DriveMean),
];

const CLOCKS: &[(&str, LatencyKind)] = &[
    ("slat.", LatencyKind::Submission),
    ("clat.", LatencyKind::Completion),
    ("lat.", LatencyKind::Total),
    ("", LatencyKind::Total),
];

const STATISTICS: &[(&str, Statistic)] = &[
    ("mean_us", Statistic::Mean),
    ("deviation_us", Statistic::Deviation),
    ("min_us", Statistic::Min),
    ("max_us", Statistic::Max),
];

fn named<T: Copy>(list: &[(&str, T)], name: &str) -> Option<T> {
    let found = list.iter().find(|(known, _)| *known == name)?;
    Some(found.1)
}

impl RunFigure {
    /// Returns the figure with this name.
    ///
    /// # Errors
    /// No such figure; the message lists the names.
    pub fn named(name: &str) -> Result<RunFigure, ExpressionError> {
        if let Some(whole) = named(WHOLE, name) {
            return Ok(whole);
        }
        let of = name.split_once('.').and_then(|(direction, rest)| {
            let direction = named(DIRECTIONS, direction)?;
            let what = named(COUNTS, rest).or_else(|| latency(rest))?;
            Some(RunFigure::Of(direction, what))
        });
        of.ok_or_else(|| {
            let names: Vec<&str> = WHOLE.iter().map(|known| known.0).collect();
            ExpressionError(format!(
                "a run has no figure `{name}`; it has {}, and of read, write and total: iops, mb_s, mib_s, ios, \
                 drive_mean_us, mean_us, min_us, max_us, deviation_us, p99_us, p99.999_us (any percentile), \
                 over_1000us_percent, and slat.mean_us, clat.p99_us and so on",
                names.join(", ")
            ))
        })
    }

    /// Checks whether the figure depends on the few slowest I/Os: a percentile of 99.99 or above, the share beyond a
    /// limit, or the slowest I/O.
    pub fn is_deep_tail(self) -> bool {
        match self {
            RunFigure::Of(_, FigureQuantity::Latency(_, statistic)) => match statistic {
                Statistic::Percentile(percent) => percent >= DEEP,
                Statistic::Over(_) | Statistic::Max => true,
                Statistic::Mean | Statistic::Deviation | Statistic::Min => false,
            },
            RunFigure::OfAct(ActFigure::Over(_)) => true,
            _ => false,
        }
    }

    /// Returns the percentile, if the figure is one.
    pub fn percentile(self) -> Option<f64> {
        match self {
            RunFigure::Of(_, FigureQuantity::Latency(_, Statistic::Percentile(percent))) => {
                Some(percent)
            }
            _ => None,
        }
    }

    /// Returns the figure's value in an ACT run; `score` is the score that was searched for, if any.
    ///
    /// # Errors
    /// The figure belongs to other runs, or there is no score.
    pub fn of_act(self, tested: &ActResult, score: Option<u32>) -> Result<f64, ExpressionError> {
        let RunFigure::OfAct(what) = self else {
            return Err(ExpressionError("a run of `act` does not have it".into()));
        };
        if score == Some(0) {
            return Err(ExpressionError("it does not even pass 1x".into()));
        }
        Ok(match what {
            ActFigure::Load => tested.config.load_factor(),
            ActFigure::Reads => tested.rate(RequestKind::Read),
            ActFigure::Over(power) => tested.worst()[power],
            ActFigure::Mean => tested.latency(RequestKind::Read).mean_ns() / 1e3,
            ActFigure::LargeReads => tested.rate(RequestKind::LargeRead),
            ActFigure::LargeWrites => tested.rate(RequestKind::LargeWrite),
        })
    }

    /// Returns the figure's value in a run.
    ///
    /// # Errors
    /// The run has no value: no I/O of that direction, or too few samples beyond a percentile.
    pub fn value(self, outcome: &Outcome) -> Result<f64, ExpressionError> {
        let gauge = |value: Option<f64>| {
            value.ok_or_else(|| ExpressionError("not reported by the drive".into()))
        };
        match self {
            RunFigure::Watts => gauge(outcome.watts()),
            RunFigure::WriteAmplification => gauge(outcome.write_amplification()),
            RunFigure::HostCores => gauge(outcome.utilisation(Gauge::HostCpuSeconds)),
            RunFigure::ControllerBusy => gauge(outcome.utilisation(Gauge::ControllerBusySeconds)),
            RunFigure::MediumBusy => gauge(outcome.utilisation(Gauge::MediumBusySeconds)),
            RunFigure::PercentageUsed => gauge(outcome.gauge(Gauge::PercentageUsed)),
            RunFigure::OfAct(_) => Err(ExpressionError("only a run of `act` has it".into())),
            RunFigure::Seconds => Ok(outcome.end.since(model::Time::ZERO).seconds()),
            RunFigure::Of(direction, what) => {
                let parts = outcome
                    .threads
                    .iter()
                    .flat_map(|thread| direction.results(thread));
                let parts: Vec<&Measured> = parts.filter(|part| part.ios > 0).collect();
                if parts.is_empty() {
                    return Err(ExpressionError("no I/O of this direction completed".into()));
                }
                what.value(&parts)
            }
        }
    }
}

fn latency(name: &str) -> Option<FigureQuantity> {
    let (clock, rest) = CLOCKS
        .iter()
        .find_map(|(prefix, clock)| Some((*clock, name.strip_prefix(prefix)?)))?;
    let number = |prefix: &str, suffix: &str| {
        let digits = rest.strip_prefix(prefix)?.strip_suffix(suffix)?;
        digits
            .parse::<f64>()
            .ok()
            .filter(|number| number.is_finite())
    };
    let statistic = named(STATISTICS, rest)
        .or_else(|| {
            let percent = number("p", "_us")?;
            (0.0..100.0)
                .contains(&percent)
                .then_some(Statistic::Percentile(percent))
        })
        .or_else(|| number("over_", "us_percent").map(Statistic::Over))?;
    Some(FigureQuantity::Latency(clock, statistic))
}

impl FigureDirection {
    fn results(self, thread: &ThreadOutcome) -> impl Iterator<Item = &Measured> {
        let (first, second) = match self {
            FigureDirection::Read => (&thread.read, None),
            FigureDirection::Write => (&thread.write, None),
            FigureDirection::Trim => (&thread.trim, None),
            FigureDirection::Total => (&thread.read, Some(&thread.write)),
        };
        std::iter::once(first).chain(second)
    }
}

impl FigureQuantity {
    fn value(self, parts: &[&Measured]) -> Result<f64, ExpressionError> {
        let sum = |figure: fn(&Measured) -> f64| parts.iter().map(|part| figure(part)).sum::<f64>();
        Ok(match self {
            FigureQuantity::Iops => sum(Measured::iops),
            FigureQuantity::MbPerSecond => sum(Measured::bytes_per_second) / 1e6,
            FigureQuantity::MibPerSecond => sum(Measured::bytes_per_second) / 1_048_576.0,
            FigureQuantity::Ios => sum(|part| part.ios as f64),
            FigureQuantity::DriveMean => {
                let mut all = statistics::AnatomyBands::default();
                parts.iter().for_each(|part| all.merge(&part.bands));
                let band = &all.percentile_bands(&[0.0, 100.0])[0];
                let host = |part: &Part| HOST.contains(part);
                let spent = Part::ALL.iter().zip(band.mean_ns);
                spent
                    .filter(|(part, _)| !host(part))
                    .map(|(_, ns)| ns)
                    .sum::<f64>()
                    * 1e-3
            }
            FigureQuantity::Latency(clock, statistic) => {
                let mut all = Histogram::default();
                for part in parts {
                    all.merge(match clock {
                        LatencyKind::Total => &part.latency,
                        LatencyKind::Submission => &part.submission,
                        LatencyKind::Completion => &part.completion,
                    });
                }
                return statistic.value(&all);
            }
        })
    }
}

/// Parts of an I/O's latency that are not the drive's.
const HOST: [Part; 4] = [
    Part::ThreadBusy,
    Part::HostSubmission,
    Part::QueueSlot,
    Part::HostCompletion,
];

impl Statistic {
    fn value(self, all: &Histogram) -> Result<f64, ExpressionError> {
        let some = |span: Option<Span>| {
            span.map(Span::us)
                .ok_or_else(|| ExpressionError("no sample".into()))
        };
        match self {
            Statistic::Mean => Ok(all.mean_ns() / 1e3),
            Statistic::Deviation => Ok(all.deviation_ns() / 1e3),
            Statistic::Min => some(all.min()),
            Statistic::Max => some(all.max()),
            Statistic::Percentile(percent) => {
                all.percentile(percent).map(Span::us).ok_or_else(|| {
                    ExpressionError(format!(
                        "{} samples are too few for p{percent}: ten must lie beyond",
                        all.count()
                    ))
                })
            }
            Statistic::Over(us) => {
                let slower = all.buckets().filter(|&(low, _, _)| low as f64 >= us * 1e3);
                let slower: u64 = slower.map(|(_, _, count)| count).sum();
                Ok(slower as f64 / all.count().max(1) as f64 * 100.0)
            }
        }
    }
}

/// Figures of a drive that follow from its sheet.
const DERIVED: &[&str] = &[
    "capacity_gb",
    "capacity_gib",
    "endurance_tbw",
    "warranty_years",
    "dwpd",
    "price_usd",
    "usd_per_gb",
    "io_queues",
    "lba_formats",
    "block",
    "raw_gb",
    "spare_gb",
    "spare_percent",
    "max_transfer_kib",
    "format_s",
    "retention_months",
    "lowest_power_setting_w",
    "volatile_write_cache",
    "power_loss_protection",
    "lba_format_N_data",
    "lba_format_N_metadata",
    "lba_format_N_rating",
];

/// Returns figures that follow from a drive's dies and from its management properties. Raw and spare gigabytes are
/// counted as reviewers do, with a die of 128 Gb as 16 GB. Yes is 1, no is 0. The rating of a format is 0 for best and
/// 2 for good.
fn administration(sheet: &DriveSheet, name: &str) -> Option<f64> {
    let management = &sheet.management;
    if let Some(rest) = name.strip_prefix("lba_format_") {
        let (number, what) = rest.split_once('_')?;
        let format = management.lba_formats.get(number.parse::<usize>().ok()?)?;
        return match what {
            "data" => Some(f64::from(format.data)),
            "metadata" => Some(f64::from(format.metadata)),
            "rating" => Some(f64::from(format.performance as u8)),
            _ => None,
        };
    }
    let spare = sheet.spare().map(|spare| spare.nominal_gb());
    match name {
        "raw_gb" => Some(spare?.0),
        "spare_gb" => Some(spare?.1),
        "spare_percent" => spare.map(|(raw, rest)| rest / raw * 100.0),
        "max_transfer_kib" => Some(f64::from(sheet.config.max_transfer()?) / 1024.0),
        "format_s" => Some(sheet.config.format_duration().seconds()),
        "retention_months" => {
            let month = 365.0 / 12.0 * 86_400.0;
            Some(management.retention?.seconds() / month)
        }
        "lowest_power_setting_w" => {
            let settings = management.power_limits_watts.iter().copied();
            settings.reduce(f64::min)
        }
        "volatile_write_cache" => Some(f64::from(u8::from(sheet.config.volatile_write_cache()))),
        "power_loss_protection" => Some(f64::from(u8::from(sheet.power_loss_protection?))),
        _ => None,
    }
}

/// `loss_at_1_percent`: percent of such drives or pools that lose durable data if 1 % of drives are lost.
fn loss_percent(sheet: &DriveSheet, name: &str) -> Option<f64> {
    let share = name.strip_prefix("loss_at_")?.strip_suffix("_percent")?;
    let lost = share.parse::<f64>().ok()? / 100.0;
    let sensible = (0.0..=1.0).contains(&lost);
    Some(odds(sheet, lost).filter(|_| sensible)? * 100.0)
}

/// Units in which a metric can request a figure of the catalogue, by the ending of its name.
const UNITS: &[(&str, &str)] = &[
    ("_mb_s", "MB/s"),
    ("_gb_s", "GB/s"),
    ("_percent", "%"),
    ("_years", "years"),
    ("_days", "days"),
    ("_gib", "GiB"),
    ("_kib", "KiB"),
    ("_gb", "GB"),
    ("_tb", "TB"),
    ("_ns", "ns"),
    ("_us", "us"),
    ("_ms", "ms"),
    ("_h", "h"),
    ("_w", "W"),
];

/// Returns a figure of a drive of the catalogue: one that follows from its sheet, or one of its file in the unit at
/// the end of the name (`xpoint.power.limit_w`; a count has no unit).
///
/// # Errors
/// There is no such figure, or it is not a number.
pub fn of_drive(sheet: &DriveSheet, name: &str) -> Result<f64, ExpressionError> {
    let gb = sheet.capacity as f64 * 1e-9;
    let derived = match name {
        "capacity_gb" => Some(gb),
        "capacity_gib" => Some(sheet.capacity as f64 / 1_073_741_824.0),
        "endurance_tbw" => sheet.endurance_bytes.map(|bytes| bytes as f64 * 1e-12),
        "warranty_years" => sheet.warranty_years,
        "dwpd" => sheet.drive_writes_per_day(),
        "price_usd" => sheet.price_usd,
        "usd_per_gb" => sheet.usd_per_gb(),
        "io_queues" => Some(f64::from(sheet.io_queues)),
        "lba_formats" => Some(sheet.management.lba_formats.len() as f64),
        "block" => sheet
            .management
            .lba_formats
            .first()
            .map(|format| f64::from(format.data)),
        _ => loss_percent(sheet, name).or_else(|| administration(sheet, name)),
    };
    if let Some(value) = derived {
        return Ok(value);
    }
    if DERIVED.contains(&name) {
        return Err(ExpressionError(format!(
            "{} has no published `{name}`",
            sheet.id
        )));
    }
    let unit = UNITS
        .iter()
        .find_map(|(ending, unit)| Some((name.strip_suffix(ending)?, *unit)));
    let (key, unit) = match (sheet.figure(name), unit) {
        (None, Some((key, unit))) => (key, Some(unit)),
        _ => (name, None),
    };
    let Some(figure) = sheet.figure(key) else {
        let known = sheet.figures.iter().map(|figure| &*figure.key);
        let near = nearest(key, known.chain(DERIVED.iter().copied()));
        let near = near.map(|near| format!(": did you mean `{near}`?"));
        return Err(ExpressionError(format!(
            "{} has no figure `{key}`{}",
            sheet.id,
            near.unwrap_or_default()
        )));
    };
    in_unit(&figure.value, unit).ok_or_else(|| {
        ExpressionError(format!(
            "`{key}` of {} is `{}`: end its name with a unit it can be in, such as {key}_us, _gb, _mb_s, _w, _percent",
            sheet.id, figure.value
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use catalogue;

    #[test]
    fn names_of_a_run_are_read() {
        let percentile = |name| RunFigure::named(name).map(RunFigure::percentile);
        assert_eq!(percentile("read.p99.999_us"), Ok(Some(99.999)));
        assert_eq!(percentile("total.clat.p50_us"), Ok(Some(50.0)));
        assert_eq!(percentile("write.iops"), Ok(None));
        assert_eq!(
            RunFigure::named("read.over_1000us_percent"),
            Ok(RunFigure::Of(
                FigureDirection::Read,
                FigureQuantity::Latency(LatencyKind::Total, Statistic::Over(1000.0))
            ))
        );
        for wrong in [
            "iops",
            "read",
            "read.p100_us",
            "read.p99",
            "reads.iops",
            "read.over_us_percent",
        ] {
            assert!(RunFigure::named(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn figures_of_a_drive_come_in_the_unit_of_their_name() {
        let sheet = catalogue::drive("p4800x-375").expect("it is built in");
        let figure = |name| of_drive(&sheet, name);
        assert_eq!(figure("xpoint.power.write_w"), Ok(13.0));
        assert_eq!(figure("xpoint.wear.protected_rate_mb_s"), Ok(30.0));
        assert_eq!(figure("xpoint.refresh.after_power_on_h"), Ok(3.0));
        assert_eq!(figure("xpoint.medium.channels"), Ok(7.0));
        assert!((figure("capacity_gb").unwrap_or_default() - 375.0).abs() < 1e-5);
        assert!(figure("xpoint.power.write_us").is_err());
        assert!(
            figure("xpoint.power.writ_w")
                .is_err_and(|wrong| wrong.0.contains("xpoint.power.write"))
        );
    }
}
