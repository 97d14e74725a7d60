//! scratch
use model::Span;
use model::media::Precondition;
use study::catalogue;
use study::run::{Plan, simulate};
use study::workload::job::*;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let drive = catalogue::drive(&args[1]).unwrap_or_else(|e| panic!("{e}"));
    let host = catalogue::host(args.get(4).map_or("xeon-2017", |s| s.as_str()))
        .unwrap_or_else(|e| panic!("{e}"));
    let mode = &args[2];
    for qd in args[3].split(',').map(|q| q.parse::<u32>().unwrap()) {
        let threads = if mode.ends_with('1') { 1 } else { qd.min(4) };
        let mut job = Job {
            random: true,
            iodepth: qd / threads,
            numjobs: threads,
            runtime: Some(Span::from_ms(2000)),
            time_based: true,
            ramp_time: Span::from_ms(200),
            norandommap: true,
            ..Job::default()
        };
        if mode.starts_with('w') {
            job.mix = Mix::Write;
        }
        if mode.starts_with('m') {
            job.mix = Mix::ReadWrite;
            job.read_percent = 70;
        }
        let mut h = host.config.clone();
        h.io_queues = drive.io_queues;
        let plan = Plan {
            drive: drive.config.clone(),
            state: Precondition::Steady,
            host: h,
            jobs: vec![job],
            seed: 1,
            series_every: Span::ZERO,
        };
        let t = std::time::Instant::now();
        let o = simulate(&plan, &|_| {}).unwrap();
        let wall = t.elapsed().as_secs_f64();
        let mut m = study::run::Measured::default();
        for th in &o.threads {
            for d in [&th.read, &th.write] {
                if d.ios > 0 {
                    m.ios += d.ios;
                    m.bytes += d.bytes;
                    m.over = d.over;
                    m.latency.merge(&d.latency);
                    m.bands.merge(&d.bands);
                }
            }
        }
        print!(
            "{mode} qd{qd:3} {:8.0} IOPS mean {:.2} p50 {:.2} p99 {:.1} p99.9 {:.1} p99.99 {:?} p99.999 {:?} us | {:.2} M sim/s wall {:.1}",
            m.ios as f64 / o.counted.seconds(),
            m.latency.mean_ns() / 1e3,
            m.latency.quantile(50.).unwrap().us(),
            m.latency.quantile(99.).unwrap().us(),
            m.latency.quantile(99.9).unwrap().us(),
            m.latency.percentile(99.99).map(|x| x.us()),
            m.latency.percentile(99.999).map(|x| x.us()),
            m.ios as f64 / wall / 1e6 * 1.1,
            wall
        );
        for b in m.bands.between(&[0., 100.]) {
            for (p, v) in model::Part::ALL.iter().zip(b.mean_ns) {
                if v > 20.0 {
                    print!(" {}={:.0}", p.name(), v);
                }
            }
        }
        println!();
    }
}
