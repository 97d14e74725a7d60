//! Service-level objectives: the limits of a load, as written on a command line: `p99<1ms,iops>50k`.
//!
//! A limit is `[read.|write.|sync.]FIGURE OP VALUE`. Figures are latencies (`mean`, `p99`, `p99.9`, ...; as fio counts
//! them, from issue to reaping), `iops`, `bw`, `watts`, `years` (to the rated endurance) and `capacity`. Latencies and watts have
//! an upper bound, the others a lower bound. `=` means the bound itself, and `<` and `<=` are equivalent for figures
//! that are never exact. A latency without a direction must hold separately for reads, for writes and for syncs; a
//! rate without one is that of reads and writes together.
//!
//! Source: the words are those of ACT, fio and YCSB users; the grammar is our own.

use model::Span;
use serde::Serialize;
use text::digits::trimmed;
use text::problem::{Place, Problem, Problems, nearest};
use text::quantity::{Bytes, Rate, Watts, quantity, split};

/// I/Os that a limit applies to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LimitScope {
    /// Reads, writes and syncs: latencies separately, rates together.
    All,
    /// Only reads.
    Read,
    /// Only writes.
    Write,
    /// fsync and fdatasync.
    Sync,
}

/// Figure that is limited.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub enum LimitMetric {
    /// Mean latency in microseconds.
    Mean,
    /// A percentile of latency, given in percent; the value is in microseconds.
    Percentile(f64),
    /// I/Os per second.
    Iops,
    /// 10^6 bytes per second.
    Bandwidth,
    /// Mean power in watts.
    Watts,
    /// Years to the rated endurance.
    Years,
    /// Usable bytes of the drive or pool, 10^9.
    Capacity,
}

impl LimitMetric {
    /// Checks whether the bound is an upper bound.
    pub const fn is_from_above(self) -> bool {
        matches!(
            self,
            LimitMetric::Mean | LimitMetric::Percentile(_) | LimitMetric::Watts
        )
    }

    /// Checks whether it is a latency.
    pub const fn is_latency(self) -> bool {
        matches!(self, LimitMetric::Mean | LimitMetric::Percentile(_))
    }

    /// Returns its unit in results.
    pub const fn unit(self) -> &'static str {
        match self {
            LimitMetric::Mean | LimitMetric::Percentile(_) => "us",
            LimitMetric::Iops => "IOPS",
            LimitMetric::Bandwidth => "MB/s",
            LimitMetric::Watts => "W",
            LimitMetric::Years => "years",
            LimitMetric::Capacity => "GB",
        }
    }
}

/// A limit of an objective.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Limit {
    /// Text for display: `read.p99 < 1 ms`.
    pub text: String,
    /// I/Os that it applies to.
    pub of: LimitScope,
    /// Figure that is limited.
    #[serde(skip)]
    pub figure: LimitMetric,
    /// The bound, in the figure's unit.
    pub bound: f64,
    /// Unit of the bound.
    pub unit: &'static str,
}

impl Limit {
    /// Returns a figure without a bound, by its name: `sync.p99`.
    ///
    /// # Errors
    /// There is no such figure.
    pub fn figure_alone(name: &str) -> Result<Limit, Problems> {
        let found = direction(name).and_then(|(of, rest)| Ok((of, figure(rest)?)));
        let (of, figure) = found.map_err(|(what, help)| {
            let mut problems = Problems::whole(name, what);
            problems.0[0].help = Some(help);
            problems
        })?;
        Ok(Limit {
            text: name.to_owned(),
            of,
            figure,
            bound: f64::INFINITY,
            unit: figure.unit(),
        })
    }

    /// Checks whether a figure meets the limit.
    pub fn holds(&self, value: f64) -> bool {
        match self.figure.is_from_above() {
            true => value <= self.bound,
            false => value >= self.bound,
        }
    }

    /// Returns the name without the bound: `read.p99`.
    pub fn name(&self) -> &str {
        self.text.split(' ').next().unwrap_or(&self.text)
    }

    /// Returns the margin as a share of the bound: 0.25 for a figure a quarter inside it, negative outside.
    pub fn room(&self, value: f64) -> f64 {
        let share = value / self.bound;
        match self.figure.is_from_above() {
            true => 1.0 - share,
            false => share - 1.0,
        }
    }
}

/// All limits of an objective; at least one.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Slo {
    /// Limits in the given order.
    pub limits: Vec<Limit>,
}

impl Slo {
    /// Parses `text`, which messages call `--slo`.
    ///
    /// # Errors
    /// All problems of the text.
    pub fn read(text: &str) -> Result<Slo, Problems> {
        let mut problems = Problems::default();
        let mut limits: Vec<Limit> = Vec::new();
        let whole: std::sync::Arc<str> = text.into();
        let mut at = 0;
        for written in text.split(',') {
            let range = at..at + written.len();
            at = range.end + 1;
            let found = limit(written.trim()).and_then(|limit| {
                let same = |other: &&Limit| other.name() == limit.name();
                match limits.iter().find(same) {
                    Some(_) => Err((
                        format!("{} is bounded twice", limit.name()),
                        String::from("name each figure once"),
                    )),
                    None => Ok(limit),
                }
            });
            match found {
                Ok(limit) => limits.push(limit),
                Err((what, help)) => problems.0.push(Problem {
                    origin: String::from("--slo"),
                    place: Place::Text {
                        text: whole.clone(),
                        range,
                    },
                    what,
                    help: Some(help),
                }),
            }
        }
        problems.or(Slo { limits })
    }

    /// Returns the highest percentile that is limited.
    pub fn deepest(&self) -> Option<f64> {
        let percent = self.limits.iter().filter_map(|limit| match limit.figure {
            LimitMetric::Percentile(percent) => Some(percent),
            _ => None,
        });
        percent.max_by(f64::total_cmp)
    }

    /// Returns the limits that more load can exceed: latencies and watts.
    pub fn ceilings(&self) -> impl Iterator<Item = &Limit> {
        self.limits
            .iter()
            .filter(|limit| limit.figure.is_from_above())
    }

    /// Returns the text for a command line.
    pub fn text(&self) -> String {
        let limits = self.limits.iter().map(|limit| limit.text.replace(' ', ""));
        limits.collect::<Vec<_>>().join(",")
    }
}

const HELP: &str = "write FIGURE<VALUE or FIGURE>VALUE, such as p99<1ms, read.p99.9<5ms, mean<200us, iops>50k, bw>1GB/s, \
                    watts<10W, years>5 or capacity>1500GB";

type LimitError = (String, String);

fn limit_error(what: impl Into<String>, help: impl Into<String>) -> LimitError {
    (what.into(), help.into())
}

/// Comparison operators, the longer first.
const COMPARISONS: [(&str, Option<bool>); 5] = [
    ("<=", Some(true)),
    (">=", Some(false)),
    ("<", Some(true)),
    (">", Some(false)),
    ("=", None),
];

fn limit(written: &str) -> Result<Limit, LimitError> {
    if written.is_empty() {
        return Err(limit_error("an empty limit", HELP));
    }
    let at = written.find(['<', '>', '=']);
    let Some((name, rest)) = at.map(|at| written.split_at(at)) else {
        return Err(limit_error(format!("`{written}` bounds nothing"), HELP));
    };
    let found = COMPARISONS
        .iter()
        .find_map(|(sign, above)| Some((rest.strip_prefix(sign)?, *above)));
    let (value, above) = found.unwrap_or((rest, None));
    let name = name.trim();
    let (of, figure_name) = direction(name)?;
    let figure = figure(figure_name)?;
    if above.is_some_and(|above| above != figure.is_from_above()) {
        let (is, right) = match figure.is_from_above() {
            true => ("above", "<"),
            false => ("below", ">"),
        };
        return Err(limit_error(
            format!("`{written}`: {name} is bounded from {is}"),
            format!("{name}{right}{}", value.trim()),
        ));
    }
    let bound = bound(figure, value.trim())?;
    if of == LimitScope::Sync && !figure.is_latency()
        || of != LimitScope::All
            && matches!(
                figure,
                LimitMetric::Watts | LimitMetric::Years | LimitMetric::Capacity
            )
    {
        return Err(limit_error(
            format!("`{name}`: there is no such figure of one direction"),
            "sync has latencies; watts, years and capacity are of the whole drive",
        ));
    }
    let sign = if figure.is_from_above() { "<" } else { ">" };
    Ok(Limit {
        text: format!("{name} {sign} {}", shown(figure, bound)),
        of,
        figure,
        bound,
        unit: figure.unit(),
    })
}

fn direction(name: &str) -> Result<(LimitScope, &str), LimitError> {
    for (prefix, of) in [
        ("read.", LimitScope::Read),
        ("write.", LimitScope::Write),
        ("sync.", LimitScope::Sync),
    ] {
        if let Some(rest) = name.strip_prefix(prefix) {
            return Ok((of, rest));
        }
    }
    match name.split_once('.') {
        Some((direction, figure)) if !name.starts_with('p') && !figure.is_empty() => {
            let near = nearest(direction, ["read", "write", "sync"]);
            Err(limit_error(
                format!("`{name}`: no direction `{direction}`"),
                near.map_or_else(
                    || String::from("read., write. or sync."),
                    |near| format!("did you mean `{near}.{figure}`?"),
                ),
            ))
        }
        _ => Ok((LimitScope::All, name)),
    }
}

fn figure(name: &str) -> Result<LimitMetric, LimitError> {
    if let Some(percent) = name.strip_prefix('p') {
        return match percent.parse::<f64>() {
            Ok(percent) if (1.0..=99.999).contains(&percent) => {
                Ok(LimitMetric::Percentile(percent))
            }
            _ => Err(limit_error(
                format!("invalid percentile `{name}`"),
                "p1 to p99.999, such as p99 or p99.9",
            )),
        };
    }
    const NAMES: [(&str, LimitMetric); 6] = [
        ("mean", LimitMetric::Mean),
        ("iops", LimitMetric::Iops),
        ("bw", LimitMetric::Bandwidth),
        ("watts", LimitMetric::Watts),
        ("years", LimitMetric::Years),
        ("capacity", LimitMetric::Capacity),
    ];
    let found = NAMES.iter().find(|(known, _)| *known == name);
    found.map(|(_, figure)| *figure).ok_or_else(|| {
        let near = nearest(name, NAMES.map(|(known, _)| known));
        limit_error(
            format!("no figure is called `{name}`"),
            near.map_or_else(
                || String::from(HELP),
                |near| format!("did you mean `{near}`?"),
            ),
        )
    })
}

fn bound(figure: LimitMetric, value: &str) -> Result<f64, LimitError> {
    let read = match figure {
        LimitMetric::Mean | LimitMetric::Percentile(_) => quantity::<Span>(value).map(Span::us),
        LimitMetric::Iops => count(value),
        LimitMetric::Bandwidth => quantity::<Rate>(value).map(|rate| rate.0 * 1e-6),
        LimitMetric::Watts => quantity::<Watts>(value).map(|watts| watts.0),
        LimitMetric::Years => years(value),
        LimitMetric::Capacity => quantity::<Bytes>(value).map(|bytes| bytes.0 as f64 / 1e9),
    };
    match read {
        Ok(bound) if bound > 0.0 && bound.is_finite() => Ok(bound),
        Ok(_) => Err(limit_error(format!("`{value}` is not above zero"), HELP)),
        Err(help) => Err(limit_error(format!("invalid value `{value}`"), help)),
    }
}

/// Parses `50k`, `1.2M`, `800`.
pub(super) fn count(text: &str) -> Result<f64, String> {
    let factor = match split(text).map(|(_, unit)| unit) {
        Some("") => 1.0,
        Some("k" | "K") => 1e3,
        Some("M" | "m") => 1e6,
        _ => return Err(String::from("write a number, such as 800, 50k or 1.2M")),
    };
    Ok(split(text).map_or(0.0, |(number, _)| number) * factor)
}

fn years(text: &str) -> Result<f64, String> {
    match split(text) {
        Some((number, "" | "y" | "years" | "year")) => Ok(number),
        _ => Err(String::from("write a number of years, such as 5")),
    }
}

fn shown(figure: LimitMetric, bound: f64) -> String {
    let number = |value: f64| trimmed(&format!("{value:.3}")).to_owned();
    match figure {
        LimitMetric::Mean | LimitMetric::Percentile(_) => match bound {
            us if us >= 1e6 => format!("{} s", number(us / 1e6)),
            us if us >= 1e3 => format!("{} ms", number(us / 1e3)),
            us => format!("{} us", number(us)),
        },
        LimitMetric::Iops => match bound {
            iops if iops >= 1e6 => format!("{}M", number(iops / 1e6)),
            iops if iops >= 1e3 => format!("{}k", number(iops / 1e3)),
            iops => number(iops),
        },
        LimitMetric::Bandwidth => format!("{} MB/s", number(bound)),
        LimitMetric::Watts => format!("{} W", number(bound)),
        LimitMetric::Years => number(bound),
        LimitMetric::Capacity => format!("{} GB", number(bound)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(slo: &str) -> Vec<String> {
        let slo = Slo::read(slo).expect("it is right");
        slo.limits.into_iter().map(|limit| limit.text).collect()
    }

    #[test]
    fn limits_are_read_as_written_and_written_as_read() {
        let text = "p99<1ms,read.p99.9<=5 ms,mean=200us,iops>50k,write.bw>1GB/s,watts<10W,years>=5y,capacity>1.5TB";
        let shown = [
            "p99 < 1 ms",
            "read.p99.9 < 5 ms",
            "mean < 200 us",
            "iops > 50k",
            "write.bw > 1000 MB/s",
            "watts < 10 W",
            "years > 5",
            "capacity > 1500 GB",
        ];
        assert_eq!(texts(text), shown);
        let again = Slo::read(text).expect("it is right").text();
        assert_eq!(texts(&again), shown);
    }

    #[test]
    fn figures_are_held_against_their_side_of_the_bound() {
        let slo = Slo::read("p99<1ms,iops>50k").expect("it is right");
        let [latency, rate] = &slo.limits[..] else {
            panic!("two limits")
        };
        assert!(latency.holds(1000.0) && !latency.holds(1000.1));
        assert!(rate.holds(50_000.0) && !rate.holds(49_999.0));
        assert!((latency.room(750.0) - 0.25).abs() < 1e-12);
        assert!((rate.room(25_000.0) + 0.5).abs() < 1e-12);
    }

    #[test]
    fn everything_wrong_is_told_at_once() {
        let problems = Slo::read("p99>1ms,p999<1ms,p99<1,iops>fast,,reed.p99<1ms,lat<1ms,watts=-1W,years,sync.iops>5,iops>1,iops>2")
            .expect_err("all but one are wrong");
        insta::assert_snapshot!(problems.render(false));
    }
}
