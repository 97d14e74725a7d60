//! Rate-limited reads and writes under competing random writes on a real drive: the counterpart of the review suite
//! `under-load`.
//!
//! Shares refer to the rate of the drive in the preceding steady rounds. Not included: competing reads, other block
//! sizes.

use serde_json::Value;
use text::problem::Problems;

use super::document::{Document, is_ours};
use super::plan::{Plan, PlanStep};

/// Divisor of the rate for the counted reads, and for the counted writes.
pub(crate) const PART: u64 = 10;
/// Threads of each of the two groups.
pub(crate) const THREADS: u32 = 4;
/// Queue depth of each thread that writes without a rate limit.
pub(crate) const DEPTH: u32 = 8;
/// Queue depth of rate-limited threads: the number of I/Os that may be late.
pub(crate) const PACED_DEPTH: u32 = 64;
/// Percentage that stands for competing writes without a rate limit.
pub(crate) const FLAT_OUT: u32 = 100;

/// Names of percentiles in fio and in a review. The latency is the total latency.
const PERCENTILES: [(&str, &str); 4] = [
    ("50.000000", "p50"),
    ("99.000000", "p99"),
    ("99.990000", "p99_99"),
    ("99.999000", "p99_999"),
];

/// Minimum number of I/Os that must be slower than a percentile.
const SLOWER: f64 = 10.0;

/// Returns the rates of each thread in IOPS: of the counted ones in each direction, and of the competing ones if they
/// are rate-limited.
fn rates(taken: u64, percent: u32) -> (u64, Option<u64>) {
    let part = (taken / PART).max(1);
    let left = taken - part.min(taken);
    let each = |rate: u64| (rate / u64::from(THREADS)).max(1);
    let beside = (left as f64 * f64::from(percent) / 100.0) as u64;
    (each(part), (percent != FLAT_OUT).then(|| each(beside)))
}

/// Returns fio's options for the rate of the counted I/Os. Before the rate is known, they describe what it will be.
pub(super) fn pace(percent: u32, taken: Option<f64>) -> Vec<String> {
    let rate = match taken {
        Some(taken) => rates(taken as u64, percent).0.to_string(),
        None => String::from("TAKEN/40"),
    };
    vec![
        format!("--rate_iops={rate},{rate}"),
        String::from("--rate_process=poisson"),
    ]
}

/// Returns the second job of the call, with the competing writes; empty at 0 %. `common` are the options of both jobs.
pub(super) fn competing_job(
    percent: u32,
    taken: Option<f64>,
    step: &PlanStep,
    common: &[String],
) -> Vec<String> {
    if percent == 0 {
        return Vec::new();
    }
    let is_paced = percent != FLAT_OUT;
    let depth = if is_paced { PACED_DEPTH } else { DEPTH };
    let mut words = vec![String::from("--name=beside"), String::from("--new_group=1")];
    words.extend_from_slice(common);
    let kept = [
        "direct",
        "norandommap",
        "refill_buffers",
        "group_reporting",
        "bs",
        "time_based",
        "ramp_time",
        "runtime",
    ];
    let of_step = step
        .options
        .iter()
        .filter(|(key, _)| kept.contains(&&**key));
    words.extend(of_step.map(|(key, value)| format!("--{key}={value}")));
    words.push(String::from("--rw=randwrite"));
    words.push(format!("--iodepth={depth}"));
    words.push(format!("--numjobs={THREADS}"));
    if is_paced {
        let rate = match taken.map(|taken| rates(taken as u64, percent).1) {
            Some(rate) => rate.unwrap_or(1).to_string(),
            None => format!(
                "TAKEN*{}",
                f64::from(percent) * 0.9 / 100.0 / f64::from(THREADS)
            ),
        };
        words.push(format!("--rate_iops={rate}"));
        words.push(String::from("--rate_process=poisson"));
    }
    words
}

/// Counted figures of a step.
#[derive(Clone, PartialEq, Debug)]
pub struct StepFigures {
    /// Name of the step.
    pub step: String,
    /// Competing writes as a share of the drive's rate that the counted I/Os leave.
    pub share: f64,
    /// Direction, `mean` or a percentile as a review names it, and the latency in microseconds from issue to
    /// completion.
    pub figures: Vec<(&'static str, &'static str, f64)>,
}

/// Returns the figures of rate-limited reads and writes in a file; empty if the file is not such a measurement.
/// `origin` names it in messages.
///
/// # Errors
/// The file is a measurement that cannot be read.
pub fn paced(origin: &str, text: &str) -> Result<Vec<StepFigures>, Problems> {
    let Ok(root) = serde_json::from_str::<Value>(text) else {
        return Ok(Vec::new());
    };
    if !is_ours(&root) {
        return Ok(Vec::new());
    }
    let document = Document::read(origin, text)?;
    let Ok(plan) = Plan::named(&document.asked.plan) else {
        return Ok(Vec::new());
    };
    let steps = document.steps.iter().filter_map(|taken| {
        let step = plan.steps.iter().find(|step| step.name == taken.step)?;
        let percent = step.beside?;
        let job = &taken.fio["jobs"][0];
        let ways = ["read", "write"].into_iter();
        Some(StepFigures {
            step: step.name.clone(),
            share: f64::from(percent) / 100.0,
            figures: ways.flat_map(|way| figures(way, &job[way])).collect(),
        })
    });
    Ok(steps.collect())
}

/// Returns the mean of a direction, and the percentiles that have enough samples.
fn figures(way: &'static str, told: &Value) -> Vec<(&'static str, &'static str, f64)> {
    let latency = &told["lat_ns"];
    let ios = told["total_ios"].as_f64().unwrap_or(0.0);
    let us = |ns: &Value| ns.as_f64().map(|ns| ns / 1e3);
    let mean = us(&latency["mean"]).filter(|_| ios > 0.0);
    let mut all: Vec<_> = mean.map(|mean| (way, "mean", mean)).into_iter().collect();
    for (theirs, ours) in PERCENTILES {
        let slower = theirs
            .parse()
            .map_or(0.0, |percent: f64| ios * (100.0 - percent) / 100.0);
        let value = us(&latency["percentile"][theirs]).filter(|_| slower >= SLOWER);
        all.extend(value.map(|value| (way, ours, value)));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{FioTarget, MeasureSettings, arguments};
    use serde_json::json;

    fn words(step: &str, taken: Option<f64>) -> String {
        let plan = Plan::named("under-load").expect("a plan");
        let settings = MeasureSettings {
            target: FioTarget::Path("/dev/nvme0n1".into()),
            engine: "io_uring".into(),
            size_bytes: None,
            is_read_only: false,
        };
        let step = plan
            .steps
            .iter()
            .find(|it| it.name == step)
            .expect("a step");
        arguments(step, &settings, 7, taken).join(" ")
    }

    /// The rates are those of a review's job at the same share (the test for that is in
    /// `review/chapters/under_load.rs`).
    #[test]
    fn a_step_is_one_call_with_two_groups() {
        assert_eq!(
            words("under-load-80", Some(40_000.0)),
            "--name=under-load-80 --filename=/dev/nvme0n1 --ioengine=io_uring --direct=1 --norandommap=1 --refill_buffers=1 \
             --group_reporting=1 --numjobs=4 --bs=4k --rw=randrw --rwmixread=50 --iodepth=64 --lat_percentiles=1 \
             --clat_percentiles=0 --percentile_list=50:99:99.9:99.99:99.999 --time_based=1 --ramp_time=5 --runtime=120 \
             --rate_iops=1000,1000 --rate_process=poisson --randseed=7 --name=beside --new_group=1 --filename=/dev/nvme0n1 \
             --ioengine=io_uring --direct=1 --norandommap=1 --refill_buffers=1 --group_reporting=1 --bs=4k --time_based=1 \
             --ramp_time=5 --runtime=120 --rw=randwrite --iodepth=64 --numjobs=4 --rate_iops=7200 --rate_process=poisson \
             --randseed=8 --output-format=json"
        );
        let flat_out = words("under-load-100", Some(40_000.0));
        assert!(
            flat_out.contains("--rw=randwrite --iodepth=8 --numjobs=4 --randseed"),
            "{flat_out}"
        );
        assert!(!words("under-load-0", Some(40_000.0)).contains("beside"));
        let unknown = words("under-load-80", None);
        assert!(
            unknown.contains("--rate_iops=TAKEN/40,TAKEN/40")
                && unknown.contains("--rate_iops=TAKEN*0.18"),
            "{unknown}"
        );
    }

    #[test]
    fn percentiles_of_too_few_are_left_out() {
        let told = json!({"total_ios": 2000, "lat_ns": {"mean": 1500.0,
            "percentile": {"50.000000": 1000, "99.000000": 9000, "99.990000": 90000}}});
        assert_eq!(
            figures("read", &told),
            [
                ("read", "mean", 1.5),
                ("read", "p50", 1.0),
                ("read", "p99", 9.0)
            ]
        );
        assert!(figures("read", &json!({"total_ios": 0, "lat_ns": {"mean": 0.0}})).is_empty());
    }
}
