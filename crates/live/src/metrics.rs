//! Metrics of the served drives in Prometheus text format, and their condition, over a minimal HTTP server.
//!
//! One request per connection: GET of `/metrics` or `/healthz`. Not supported: all other functions of HTTP.

use std::fmt::Write as _;

use model::management::Health;
use model::{Gauge, Time};
use statistics::Histogram;

use crate::outbox::Outbox;
use crate::port::{ConnectionEnd, Endpoint, Front, Port, Socket};
use crate::protocol::{Address, AddressKind, Clients, Protocol, Service};
use crate::served::{Reply, ServedDevice};
use crate::stream::{Connection, Stream};

/// Maximum length of a request.
const LONGEST: usize = 8192;

/// The protocol for Prometheus metrics.
pub const PROTOCOL: Protocol = Protocol {
    option: "metrics",
    value: "ADDR",
    help: "Serve metrics for Prometheus at this address",
    places: AddressKind::Addresses { passed: false },
    clients: Clients::Watchers,
    settings: &[],
    read: |_| Ok(Box::new(Metrics)),
};

/// Front end for scrapers.
#[derive(Debug, Default)]
pub struct Metrics;

impl Service for Metrics {
    fn front(&self, _: usize) -> Box<dyn Front> {
        Box::new(Metrics)
    }

    fn lines(&self, at: &Address) -> Vec<String> {
        match at {
            Address::Tcp(address) => vec![
                format!("  figures: http://{address}/metrics"),
                format!("  condition: http://{address}/healthz"),
            ],
            Address::Unix(_) | Address::Passed(_) => Vec::new(),
        }
    }
}

impl Front for Metrics {
    fn name(&self) -> &'static str {
        "metrics"
    }

    fn accept(&mut self, socket: Socket, _peer: &str) -> Result<Box<dyn Endpoint>, String> {
        Ok(Box::new(Stream::new(socket, Scrape)))
    }
}

/// A connection with one request.
#[derive(Debug)]
struct Scrape;

impl Connection for Scrape {
    fn is_client(&self) -> bool {
        false
    }

    fn input(
        &mut self,
        bytes: &[u8],
        out: &mut Outbox,
        port: &mut Port<'_>,
    ) -> Result<usize, ConnectionEnd> {
        if !bytes.windows(4).any(|end| end == b"\r\n\r\n") {
            if bytes.len() > LONGEST {
                return Err(ConnectionEnd::broke("a request without end"));
            }
            return Ok(0);
        }
        let (status, kind, text) = answer(bytes, port);
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            text.len()
        );
        out.push(head.as_bytes());
        out.push(text.as_bytes());
        // Collected output is sent before the connection is closed.
        Err(ConnectionEnd::Left)
    }

    fn reply(&mut self, _: &Reply, _: &mut Outbox, _: &mut Port<'_>) -> Result<(), ConnectionEnd> {
        Ok(())
    }
}

const PLAIN: &str = "text/plain; charset=utf-8";

/// Returns status, type and text of the answer to a request.
fn answer(request: &[u8], port: &mut Port<'_>) -> (&'static str, &'static str, String) {
    match path(request) {
        Err(()) => ("405 Method Not Allowed", PLAIN, String::new()),
        Ok("/metrics" | "/") => ("200 OK", "text/plain; version=0.0.4", text(port)),
        Ok("/healthz") => {
            let (works, text) = health(port);
            let status = match works {
                true => "200 OK",
                false => "503 Service Unavailable",
            };
            (status, PLAIN, text)
        }
        Ok(_) => {
            let known = String::from("there are /metrics and /healthz\n");
            ("404 Not Found", PLAIN, known)
        }
    }
}

/// Returns the path of a request, without the part after `?`.
fn path(request: &[u8]) -> Result<&str, ()> {
    let line = request.split(|byte| *byte == b'\r').next();
    let line = line.and_then(|line| std::str::from_utf8(line).ok());
    let rest = line.and_then(|line| line.strip_prefix("GET ")).ok_or(())?;
    let target = rest.split(' ').next().unwrap_or_default();
    Ok(target.split('?').next().unwrap_or_default())
}

/// Returns whether all drives accept writes, and a line for each drive with its condition and the reasons.
fn health(port: &mut Port<'_>) -> (bool, String) {
    let (mut works, mut text) = (true, String::new());
    for index in 0..port.drives() {
        let now = port.model_time(index);
        let drive = port.drive(index);
        let (condition, reasons) = drive.condition(now);
        works &= condition.takes_writes();
        text.push_str(&format!("{}: {condition}", drive.name()));
        if !reasons.is_empty() {
            text.push_str(&format!(" ({})", reasons.join("; ")));
        }
        text.push('\n');
    }
    (works, text)
}

/// Returns a label's value, escaped as the format requires.
fn escaped(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for c in value.chars() {
        match c {
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            '\n' => text.push_str("\\n"),
            other => text.push(other),
        }
    }
    text
}

/// A metric of all drives.
struct Metric {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    values: Vec<f64>,
}

/// Returns the metrics in Prometheus text format.
pub fn text(port: &mut Port<'_>) -> String {
    let mut metrics: Vec<Metric> = Vec::new();
    let mut names = Vec::new();
    for index in 0..port.drives() {
        let now = port.model_time(index);
        names.push(escaped(port.drive(index).name()));
        for (place, (name, kind, help, value)) in of_drive(port, index, now).into_iter().enumerate()
        {
            if place == metrics.len() {
                metrics.push(Metric {
                    name,
                    kind,
                    help,
                    values: Vec::new(),
                });
            }
            metrics[place].values.push(value);
        }
    }
    let mut text = String::new();
    for metric in &metrics {
        // Writing to a string does not fail.
        let _ = writeln!(text, "# HELP drivelab_{} {}", metric.name, metric.help);
        let _ = writeln!(text, "# TYPE drivelab_{} {}", metric.name, metric.kind);
        for (name, value) in names.iter().zip(&metric.values) {
            let _ = writeln!(text, "drivelab_{}{{drive=\"{name}\"}} {value}", metric.name);
        }
    }
    latencies(port, &names, &mut text);
    lateness(port, &mut text);
    let floor = port.clock().floor().seconds();
    text.push_str(
        "# HELP drivelab_compensation_seconds Subtracted from each deadline, for the transport.\n",
    );
    text.push_str("# TYPE drivelab_compensation_seconds gauge\n");
    let _ = writeln!(text, "drivelab_compensation_seconds {floor}");
    text
}

type Figure = (&'static str, &'static str, &'static str, f64);

fn of_drive(port: &mut Port<'_>, index: usize, now: Time) -> Vec<Figure> {
    let drive = port.drive(index);
    let health = drive.health(now);
    let mut figures = of_commands(drive);
    figures.extend(of_health(&health));
    figures.push(level(
        "out_of_sync_members",
        "Members of the pool's mirrors and arrays that lack acknowledged data.",
        drive.out_of_sync() as f64,
    ));
    figures
}

fn total(name: &'static str, help: &'static str, value: f64) -> Figure {
    (name, "counter", help, value)
}

fn level(name: &'static str, help: &'static str, value: f64) -> Figure {
    (name, "gauge", help, value)
}

fn of_commands(drive: &ServedDevice) -> Vec<Figure> {
    let counters = *drive.counters();
    let medium = drive.gauge(Gauge::MediumBytesWritten);
    let seconds = counters.latency_ns as f64 * 1e-9;
    let depth = drive.in_flight() as f64;
    let others = counters.others as f64;
    vec![
        total(
            "reads_total",
            "Read commands completed.",
            counters.reads as f64,
        ),
        total(
            "writes_total",
            "Write commands completed.",
            counters.writes as f64,
        ),
        total(
            "other_commands_total",
            "Flushes, trims and write-zeroes completed.",
            others,
        ),
        total(
            "errors_total",
            "Commands that failed.",
            counters.errors as f64,
        ),
        total(
            "read_bytes_total",
            "Bytes read by hosts.",
            counters.bytes_read as f64,
        ),
        total(
            "written_bytes_total",
            "Bytes written by hosts.",
            counters.bytes_written as f64,
        ),
        total(
            "model_latency_seconds_total",
            "Sum of the model's latencies.",
            seconds,
        ),
        total(
            "medium_written_bytes_total",
            "Bytes written to the medium.",
            medium,
        ),
        level(
            "write_amplification_ratio",
            "Medium bytes per host byte (write amplification).",
            drive.write_amplification(),
        ),
        level("queue_depth", "Commands in the drive.", depth),
        level(
            "namespace_bytes",
            "Size of the namespace.",
            drive.bytes() as f64,
        ),
    ]
}

fn of_health(health: &Health) -> Vec<Figure> {
    let life = &health.lifetime;
    let warning = f64::from(health.warning.bits());
    let errors = life.media_errors as f64;
    let cycles = life.power_cycles as f64;
    let lost = life.unsafe_shutdowns as f64;
    vec![
        level(
            "percentage_used",
            "SMART's Percentage Used.",
            life.percentage_used,
        ),
        level(
            "temperature_celsius",
            "Temperature of the drive.",
            health.celsius,
        ),
        level(
            "critical_warning",
            "SMART's critical warning bits.",
            warning,
        ),
        total(
            "media_errors_total",
            "Media errors in the drive's life.",
            errors,
        ),
        total(
            "power_on_seconds_total",
            "Time with power.",
            life.power_on.seconds(),
        ),
        total("power_cycles_total", "Times it was switched on.", cycles),
        total(
            "unsafe_shutdowns_total",
            "Power losses without a preceding shutdown (unsafe shutdowns).",
            lost,
        ),
    ]
}

/// Appends latencies of the model by drive and kind of command.
fn latencies(port: &mut Port<'_>, names: &[String], text: &mut String) {
    const NAME: &str = "drivelab_command_latency_seconds";
    text.push_str(&format!(
        "# HELP {NAME} The model's latency of commands that succeeded.\n# TYPE {NAME} summary\n"
    ));
    for (index, name) in names.iter().enumerate() {
        for (kind, histogram) in port.drive(index).latencies().by_kind() {
            let labels = format!("drive=\"{name}\",command=\"{kind}\"");
            summary(NAME, &labels, histogram, text);
        }
    }
}

/// Appends the lateness of replies, as a summary.
fn lateness(port: &Port<'_>, text: &mut String) {
    const NAME: &str = "drivelab_lateness_seconds";
    let lateness = port.lateness();
    text.push_str(&format!(
        "# HELP {NAME} Time from the model's completion to the departure of the reply.\n# TYPE {NAME} summary\n"
    ));
    summary(NAME, "", lateness.histogram(), text);
    text.push_str(
        "# HELP drivelab_late_ratio Share of replies late by more than a tenth of their latency.\n",
    );
    text.push_str("# TYPE drivelab_late_ratio gauge\n");
    let _ = writeln!(
        text,
        "drivelab_late_ratio {}",
        lateness.share_over_a_tenth()
    );
}

/// Appends quantiles (1 is the maximum), sum and count.
fn summary(name: &str, labels: &str, histogram: &Histogram, text: &mut String) {
    let quantiles = [
        ("0.5", histogram.percentile(50.0)),
        ("0.99", histogram.percentile(99.0)),
        ("0.999", histogram.percentile(99.9)),
        ("0.9999", histogram.percentile(99.99)),
        ("1", histogram.max()),
    ];
    let comma = if labels.is_empty() { "" } else { "," };
    for (quantile, span) in quantiles {
        let value = span.map_or(f64::NAN, |span| span.seconds());
        let _ = writeln!(
            text,
            "{name}{{{labels}{comma}quantile=\"{quantile}\"}} {value}"
        );
    }
    let labels = if labels.is_empty() {
        String::new()
    } else {
        format!("{{{labels}}}")
    };
    let count = histogram.count();
    let sum = histogram.mean_ns() * 1e-9 * count as f64;
    let _ = writeln!(text, "{name}_sum{labels} {sum}");
    let _ = writeln!(text, "{name}_count{labels} {count}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_names_a_path() {
        assert_eq!(
            path(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"),
            Ok("/healthz")
        );
        assert_eq!(path(b"GET /metrics?x=1 HTTP/1.0\r\n\r\n"), Ok("/metrics"));
        assert_eq!(path(b"POST /metrics HTTP/1.1\r\n\r\n"), Err(()));
        assert_eq!(path(b"GET \xff HTTP/1.1\r\n\r\n"), Err(()));
    }

    #[test]
    fn what_would_end_a_label_is_escaped() {
        assert_eq!(escaped("p4800x-375"), "p4800x-375");
        assert_eq!(escaped("a\"b\\c\nd"), "a\\\"b\\\\c\\nd");
    }
}
