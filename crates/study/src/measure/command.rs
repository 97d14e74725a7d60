//! The arguments of a fio call for a step.

use super::beside;
use super::plan::PlanStep;

/// A measured device, as fio names it.
#[derive(Clone, PartialEq, Debug)]
pub enum FioTarget {
    /// A block device or a regular file, by its path.
    Path(String),
    /// An export of an NBD server, by its URI.
    Nbd(String),
}

/// Settings that all calls of a measurement share.
#[derive(Clone, PartialEq, Debug)]
pub struct MeasureSettings {
    /// The measured device.
    pub target: FioTarget,
    /// fio's I/O engine.
    pub engine: String,
    /// Bytes from the beginning that are used; `None` for all.
    pub size_bytes: Option<u64>,
    /// Whether fio must not write.
    pub is_read_only: bool,
}

/// Returns fio's arguments. `seed` is the seed of fio's random numbers: fio's own default seed is constant, so each
/// round would write the blocks of the previous round. `taken` is the rate of the steady rounds, which determines the
/// rate of a rate-limited step; before it is known, the arguments describe what it will be.
pub fn arguments(
    step: &PlanStep,
    settings: &MeasureSettings,
    seed: u32,
    taken: Option<f64>,
) -> Vec<String> {
    let mut words = vec![format!("--name={}", step.name)];
    let common = common(settings);
    words.extend_from_slice(&common);
    words.extend(step.options.iter().map(|(key, value)| match &**value {
        "" => format!("--{key}"),
        value => format!("--{key}={value}"),
    }));
    words.extend(
        step.beside
            .map(|percent| beside::pace(percent, taken))
            .unwrap_or_default(),
    );
    words.push(format!("--randseed={seed}"));
    if let Some(percent) = step.beside.filter(|percent| *percent > 0) {
        words.extend(beside::competing_job(percent, taken, step, &common));
        words.push(format!("--randseed={}", seed + 1));
    }
    if settings.is_read_only {
        words.push("--readonly".into());
    }
    words.push("--output-format=json".into());
    words
}

/// Returns the options of every job of a call.
fn common(settings: &MeasureSettings) -> Vec<String> {
    let mut words = Vec::new();
    match &settings.target {
        // In fio, a colon ends a file name.
        FioTarget::Path(path) => {
            let path = path.replace('\\', "\\\\").replace(':', "\\:");
            words.push(format!("--filename={path}"));
            words.push(format!("--ioengine={}", settings.engine));
        }
        FioTarget::Nbd(uri) => {
            words.push(format!("--ioengine={}", settings.engine));
            words.push(format!("--uri={uri}"));
        }
    }
    if let Some(bytes) = settings.size_bytes {
        words.push(format!("--size={bytes}"));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Plan;

    #[test]
    fn a_call_says_all_that_fio_needs() {
        let plan = Plan::named("quick").expect("a plan");
        let mut settings = MeasureSettings {
            target: FioTarget::Path("/dev/disk/by-path/pci-0000:01".into()),
            engine: "io_uring".into(),
            size_bytes: Some(4096),
            is_read_only: true,
        };
        let words = arguments(&plan.steps[1], &settings, 7, None).join(" ");
        assert_eq!(
            words,
            "--name=read-4k-qd4 --filename=/dev/disk/by-path/pci-0000\\:01 --ioengine=io_uring --size=4096 --direct=1 \
             --norandommap=1 --time_based=1 --runtime=15 --ramp_time=2 --rw=randread --bs=4k --iodepth=4 --randseed=7 \
             --readonly --output-format=json"
        );
        settings.target = FioTarget::Nbd("nbd+unix:///a?socket=b".into());
        settings.engine = "nbd".into();
        let words = arguments(&plan.steps[0], &settings, 1, None).join(" ");
        assert!(
            words.contains("--ioengine=nbd --uri=nbd+unix:///a?socket=b"),
            "{words}"
        );
        assert!(!words.contains("--filename"), "{words}");
    }
}
