//! `drivelab bench-target`: benchmark of an NVMe/TCP or NBD target, with a client that never sleeps.

use std::io::{self, Write};
use std::time::Duration;

use comfy_table::Table;
use live::bench_target::{BenchJob, BenchResult, Pattern, Uri, measure};
use model::Span;
use serde_json::{Value, json};
use text::quantity::quantity;
use text::terminal::{folded, plain, right};

use crate::failure::Failure;
use crate::output;
use crate::size::size;

/// Percentiles in the report.
const PERCENTILES: [f64; 5] = [50.0, 90.0, 99.0, 99.9, 99.99];

/// Measure any NVMe/TCP or NBD target with a busy-polling client
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  drivelab bench-target nvme-tcp://127.0.0.1:4420
  drivelab bench-target nvme-tcp://127.0.0.1:4420 --qd 1,32 --rw randread --time 5s
  drivelab bench-target nbd://127.0.0.1:10809/p4800x-375 --json
  drivelab bench-target 'nbd+unix:///?socket=/tmp/nbd.sock' --rw randwrite --bs 16k

The client uses a whole core; let the server run on another one. Writes overwrite the data of the target.")]
pub(crate) struct Args {
    /// `nvme-tcp://HOST:PORT[/NQN]`, `nbd://HOST[:PORT][/EXPORT]` or `nbd+unix:///[EXPORT]?socket=PATH`
    #[arg(value_name = "TARGET", value_parser = |text: &str| text.parse::<Uri>())]
    target: Uri,

    /// Queue depths, with one measurement each
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1,32", value_parser = clap::value_parser!(u16).range(1..=512))]
    qd: Vec<u16>,

    /// Access pattern: read, write, randread or randwrite
    #[arg(long, value_name = "RW", default_value = "randread", value_parser = pattern)]
    rw: Pattern,

    /// Block size, such as 4k: suffixes are binary, as in fio
    #[arg(long, value_name = "SIZE", default_value = "4k", value_parser = block)]
    bs: u32,

    /// Duration of each measurement
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = time)]
    time: Duration,

    /// Time at the start that is excluded from the results
    #[arg(long, value_name = "TIME", default_value = "200ms", value_parser = time)]
    ramp: Duration,

    /// Header digests, over NVMe/TCP
    #[arg(long)]
    header_digest: bool,

    /// Data digests, over NVMe/TCP
    #[arg(long)]
    data_digest: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn pattern(text: &str) -> Result<Pattern, String> {
    let found = Pattern::ALL.iter().find(|(name, _)| *name == text);
    found
        .map(|(_, pattern)| *pattern)
        .ok_or_else(|| "must be read, write, randread or randwrite".into())
}

fn block(text: &str) -> Result<u32, String> {
    u32::try_from(size(text)?)
        .ok()
        .filter(|bytes| bytes.is_multiple_of(512) && (512..=32 << 20).contains(bytes))
        .ok_or_else(|| "must be a multiple of 512, at most 32M".into())
}

fn time(text: &str) -> Result<Duration, String> {
    let time = Duration::from_nanos(quantity::<Span>(text)?.ns());
    if time <= Duration::from_secs(86_400) {
        Ok(time)
    } else {
        Err("must be at most a day".into())
    }
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let mut all = Vec::new();
    for &depth in &args.qd {
        let job = BenchJob {
            pattern: args.rw,
            block: args.bs,
            depth,
            time: args.time,
            ramp: args.ramp,
            commands: u64::MAX,
            digests: u8::from(args.header_digest) | u8::from(args.data_digest) << 1,
        };
        let measured = measure(&args.target, &job).map_err(Failure::Failed)?;
        all.push((depth, measured));
    }
    let mut out = io::stdout().lock();
    if args.json {
        let rows: Vec<Value> = all.iter().map(|(depth, it)| as_json(*depth, it)).collect();
        writeln!(out, "{:#}", json!({ "measurements": rows }))?;
    } else {
        writeln!(out, "{}", folded(&table(args, &all), 1, output::width()))?;
    }
    let errors: u64 = all.iter().map(|(_, measured)| measured.errors).sum();
    if errors > 0 {
        return Err(Failure::Failed(format!("{errors} commands failed")));
    }
    Ok(())
}

fn as_json(depth: u16, measured: &BenchResult) -> Value {
    let latencies = &measured.latencies;
    let us = |ns: f64| (ns / 10.0).round() / 100.0;
    let percentiles: serde_json::Map<String, Value> = PERCENTILES
        .iter()
        .filter_map(|&percent| {
            let span = latencies.percentile(percent)?;
            Some((format!("p{percent}"), json!(us(span.ns() as f64))))
        })
        .collect();
    json!({
        "queue_depth": depth,
        "commands": measured.commands,
        "errors": measured.errors,
        "seconds": measured.seconds,
        "iops": measured.iops().round(),
        "mean_us": us(latencies.mean_ns()),
        "percentiles_us": percentiles,
        "client_cpu_seconds": measured.client_cpu_seconds,
    })
}

/// Returns a table with one row for each depth. A percentile with too few samples beyond it is left out.
fn table(args: &Args, all: &[(u16, BenchResult)]) -> Table {
    let mut table = plain();
    let heads = PERCENTILES.iter().map(|percent| format!("p{percent} us"));
    let heads = ["QD", "IOPS", "MB/s", "mean us"]
        .map(String::from)
        .into_iter()
        .chain(heads);
    table.set_header(heads);
    for (depth, measured) in all {
        let latencies = &measured.latencies;
        let mut row = vec![
            depth.to_string(),
            format!("{:.0}", measured.iops()),
            format!("{:.0}", measured.iops() * f64::from(args.bs) * 1e-6),
            format!("{:.1}", latencies.mean_ns() * 1e-3),
        ];
        row.extend(PERCENTILES.iter().map(|&percent| {
            latencies.percentile(percent).map_or_else(
                || "-".into(),
                |span| format!("{:.1}", span.ns() as f64 * 1e-3),
            )
        }));
        table.add_row(row);
    }
    right(&mut table, 0..usize::MAX);
    table
}
