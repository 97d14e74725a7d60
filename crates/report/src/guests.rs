//! Virtual machines on one datastore: a line for each guest, and the fairness between them.

use statistics::Total;

use lab::Outcome;
use serde_json::{Value, json};
use study::review::results::rounded;
use text::terminal::plain;
use workload::job::Job;

use crate::cells::{align, latencies, significant};

/// Results of one guest over all its jobs.
struct GuestResult {
    guest: u32,
    read: Total,
    write: Total,
}

impl GuestResult {
    fn iops(&self) -> f64 {
        self.read.iops + self.write.iops
    }
}

/// Returns the results of each guest; empty if the jobs have none.
fn results(jobs: &[Job], outcome: &Outcome) -> Vec<GuestResult> {
    let guests = jobs.iter().filter_map(|job| job.guest).max().unwrap_or(0);
    let of = |guest: u32| {
        let threads = || {
            let threads = outcome.threads.iter();
            threads.filter(move |it| jobs[it.job].guest == Some(guest))
        };
        GuestResult {
            guest,
            read: Total::from_threads(threads().map(|it| &it.read)),
            write: Total::from_threads(threads().map(|it| &it.write)),
        }
    };
    (1..=guests).map(of).collect()
}

/// Returns Jain's fairness index of the guests' IOPS: 1 if all are equal, 1/n if one guest has everything.
fn fairness(iops: &[f64]) -> f64 {
    let sum: f64 = iops.iter().sum();
    let squares: f64 = iops.iter().map(|it| it * it).sum();
    match squares > 0.0 {
        true => sum * sum / (iops.len() as f64 * squares),
        false => 1.0,
    }
}

/// Returns the lowest and the highest of these.
fn ends(values: &[f64]) -> (f64, f64) {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    (low, values.iter().copied().fold(0.0, f64::max))
}

/// Returns the table of the guests; empty without any.
pub(crate) fn table(jobs: &[Job], outcome: &Outcome) -> String {
    let guests = results(jobs, outcome);
    if guests.is_empty() {
        return String::new();
    }
    let mut table = plain();
    table.set_header([
        "guest", "what", "I/Os", "IOPS", "MB/s", "mean us", "p50", "p99", "p99.9", "p99.99",
        "p99.999",
    ]);
    for guest in &guests {
        let mut name = guest.guest.to_string();
        let ways = [("read", &guest.read), ("write", &guest.write)];
        for (what, total) in ways.into_iter().filter(|(_, total)| total.ios > 0) {
            let mut cells = vec![
                std::mem::take(&mut name),
                what.to_owned(),
                total.ios.to_string(),
                significant(total.iops),
                significant(total.bytes_per_second / 1e6),
            ];
            cells.extend(latencies(&total.latency));
            table.add_row(cells);
        }
    }
    align(&mut table, 2);
    let iops: Vec<f64> = guests.iter().map(GuestResult::iops).collect();
    let (low, high) = ends(&iops);
    format!(
        "\nGuests:\n{table}\nfairness of IOPS: Jain's index {}; lowest {}, highest {}\n",
        significant(fairness(&iops)),
        significant(low),
        significant(high)
    )
}

/// Returns the guests as JSON; `None` without any.
pub(crate) fn json(jobs: &[Job], outcome: &Outcome) -> Option<Value> {
    let guests = results(jobs, outcome);
    if guests.is_empty() {
        return None;
    }
    let iops: Vec<f64> = guests.iter().map(GuestResult::iops).collect();
    let way = |total: &Total| {
        let us = |percent| total.latency.quantile(percent).map(|it| rounded(it.us()));
        json!({
            "ios": total.ios,
            "iops": rounded(total.iops),
            "mb_s": rounded(total.bytes_per_second / 1e6),
            "mean_us": rounded(total.latency.mean_ns() / 1e3),
            "p50_us": us(50.0),
            "p99_us": us(99.0),
            "p99.9_us": us(99.9),
        })
    };
    let one = |it: &GuestResult| json!({ "guest": it.guest, "read": way(&it.read), "write": way(&it.write) });
    Some(json!({
        "fairness": rounded(fairness(&iops)),
        "guests": guests.iter().map(one).collect::<Value>(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fairness_is_one_if_all_are_equal() {
        assert!((fairness(&[5.0; 4]) - 1.0).abs() < 1e-12);
        assert!((fairness(&[8.0, 0.0, 0.0, 0.0]) - 0.25).abs() < 1e-12);
        assert!((fairness(&[3.0, 1.0]) - 0.8).abs() < 1e-12);
        assert!((fairness(&[]) - 1.0).abs() < 1e-12);
    }
}
