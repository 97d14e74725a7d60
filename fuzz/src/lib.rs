//! What the fuzz targets check, besides that nothing panics.

use model::host::{Engine, HostConfig};
use model::media::ram::RamConfig;
use model::media::{DriveConfig, Precondition};
use model::{Op, Span};
use study::run::replay::{ReplayPlan, replay};
use study::workload::replay::{Beyond, Pace};
use study::workload::trace::{self, Format, Options};

/// Most requests of one input: enough to reach every state of a reader.
const MOST: usize = 20_000;

/// A trace is read or refused; what is read is in order and can be replayed to the last request.
pub fn trace(format: Option<&str>, bytes: &[u8]) {
    let options = Options {
        format: format
            .map(|name| Format::named(name).expect("a target names a format that there is")),
        most_records: MOST,
        ..Options::default()
    };
    let trace = match trace::read_from(bytes, "fuzz", &options) {
        Ok(trace) => trace,
        Err(problems) => {
            assert!(!problems.to_string().is_empty());
            return;
        }
    };
    assert_eq!(trace.records[0].arrival_ns(), 0);
    assert!(trace.records.is_sorted_by_key(|record| record.arrival_ns()));
    let summary = trace.summary();
    let counted = summary.read.requests + summary.write.requests + summary.other.requests;
    assert_eq!(counted, trace.records.len() as u64);
    let end = trace
        .records
        .iter()
        .map(|record| record.request())
        .filter(|request| request.op != Op::Flush);
    assert!(end.into_iter().all(|request| {
        request.offset + u64::from(request.bytes) <= summary.ends[usize::from(request.volume)]
    }));
    replays(&trace);
}

fn replays(trace: &trace::Trace) {
    let plan = ReplayPlan {
        name: "ram".into(),
        drive: DriveConfig::Ram(RamConfig {
            bytes: 1 << 33,
            per_command: Span::from_us(1),
            picoseconds_per_byte: 1,
        }),
        state: Precondition::Fresh,
        host: HostConfig::default(),
        engine: Engine::Libaio,
        threads: Some(1),
        pace: Pace::Depth(7),
        beyond: Beyond::Wrap,
        seed: 1,
        series_every: Span::ZERO,
    };
    // What is longer than a command can be is refused.
    let Ok(replayed) = replay(trace, &plan, &|_| {}) else {
        return;
    };
    let thread = &replayed.outcome.threads[0];
    let kinds = [&thread.read, &thread.write, &thread.trim, &thread.sync];
    let done: u64 = kinds.iter().map(|kind| kind.ios).sum();
    assert!(
        kinds.iter().all(|kind| kind.errors == 0),
        "a request was put beyond the drive"
    );
    assert_eq!(done + replayed.empty, trace.records.len() as u64);
}
