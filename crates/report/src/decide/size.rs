//! Size of a log, a write buffer or a read cache: `drivelab size`.

use serde_json::{Value, json};
use study::decide::size::{BufferRule, SizeAnswer, SizeRequest, SizeResult};
use text::digits::{
    bytes_binary, bytes_decimal, count, digits, duration, megabytes_a_second, microseconds,
};
use text::terminal::{Width, paragraph};

use super::ends::early_end;
use super::headline::{in_lines, named};
use super::sentences::HAS_FILES;
use super::table::{AnswerColumn, AnswerTable};
use super::{document, known_and_again, percent, range, reading_within, seeds};

/// Returns the hit ratio of a cache of this size, compared with the largest tried size; then, if main is slower than
/// the trace, the hit ratio of requests in sequence.
fn hits(row: &SizeResult, last: &SizeResult, request: &SizeRequest) -> Vec<String> {
    let simulated = row.hits.map(|hits| hits[0]);
    let largest = match row.bytes == last.bytes {
        true => String::from("the largest that was tried"),
        false => format!(
            "within 1 % of the largest tried, {}",
            bytes_binary(last.bytes as f64)
        ),
    };
    let found = format!(
        "{} of cache hit {} of the bytes read, {largest} (from empty, {})",
        bytes_binary(row.bytes as f64),
        percent(simulated),
        seeds(request.conditions.seed, request.conditions.seeds)
    );
    let slower = row
        .hits_by_arithmetic
        .filter(|exact| simulated.is_some_and(|hits| hits + 0.05 < *exact));
    let slower = slower.map(|exact| {
        format!(
            "if requests ran one after another, it would be {}: here, data that is still being fetched from main is requested again",
            percent(Some(exact))
        )
    });
    std::iter::once(found).chain(slower).collect()
}

/// Returns the rule for a write buffer.
fn buffer(rule: &BufferRule, answer: &SizeAnswer) -> String {
    let capped = match rule.bytes > rule.limit_bytes as f64 {
        true => format!(
            ", more than the {} of a group's buffer that count",
            bytes_decimal(rule.limit_bytes as f64)
        ),
        false => String::new(),
    };
    let has = answer.rows.last().map_or(0, |row| row.bytes);
    let trapped = match rule.trapped_bytes {
        0 => String::new(),
        bytes => format!(
            " ({} of the drive are not used)",
            bytes_decimal(bytes as f64)
        ),
    };
    let failed = rule.failed_node_of.map_or_else(String::new, |nodes| {
        format!(" (with one of {nodes} nodes failed)")
    });
    format!(
        "by the rule a working set of {}{failed} asks for {} of buffer{capped}; the drive gives {}{trapped}",
        bytes_decimal(rule.working_set_bytes as f64),
        bytes_decimal(rule.bytes),
        bytes_decimal(has as f64)
    )
}

/// Returns the size at and above which writes are not delayed.
fn pressure(request: &SizeRequest, answer: &SizeAnswer) -> String {
    let seeds = seeds(request.conditions.seed, request.conditions.seeds);
    let load = &answer.load.source;
    match (answer.enough_bytes, answer.rows.last()) {
        (Some(bytes), _) => format!(
            "at {load} no write is held back from {} on (simulated, {seeds})",
            bytes_decimal(bytes as f64)
        ),
        (None, Some(last)) => format!(
            "at {load} writes are held back with each size that was tried, with the largest {} (simulated, {seeds})",
            pressed(last)
        ),
        (None, None) => {
            String::from("the cache is smaller than the smallest buffer that can be tried")
        }
    }
}

/// Returns the time after which writes are delayed.
fn pressed(row: &SizeResult) -> String {
    match (row.never_pressed, row.pressed_seconds) {
        (Some(true), _) => String::from("never"),
        (_, Some(seconds)) => format!("from {}", range(seconds, duration)),
        _ => String::from("with some seeds"),
    }
}

/// Returns the maximum use of a log.
fn held(answer: &SizeAnswer) -> String {
    answer.most_held_bytes.map_or_else(String::new, |held| {
        format!(": it holds at most {}", range(held, bytes_decimal))
    })
}

/// Returns a line for each drive, then what did not fit into the lines.
pub fn sentences(request: &SizeRequest, answers: &[SizeAnswer]) -> Vec<String> {
    let (mut firsts, mut others) = (Vec::new(), Vec::new());
    for one in answers {
        let name = named(&one.drive, one.model);
        let mut lines = in_lines(&name, &parts(request, one)).into_iter();
        firsts.extend(lines.next());
        others.extend(lines);
    }
    firsts.extend(others);
    if answers.iter().any(|one| one.load.has_files_to_read) {
        firsts.push(String::from(HAS_FILES));
    }
    firsts
}

/// Returns the parts of the answer on one drive, the most important first.
fn parts(request: &SizeRequest, answer: &SizeAnswer) -> Vec<String> {
    let is_log = answer.rows.iter().any(|row| row.never_full.is_some());
    let load = &answer.load.source;
    let seeds = seeds(request.conditions.seed, request.conditions.seeds);
    let mut parts = match (is_log, answer.enough_bytes, answer.rows.last()) {
        _ if answer.buffer_rule.is_some() => vec![pressure(request, answer)],
        (true, ..) if answer.most_held_bytes == Some([0.0; 3]) => vec![format!(
            "at {load} nothing is written to the log: no write is synchronous, so no log is needed ({seeds})"
        )],
        (true, Some(bytes), _) => vec![format!(
            "at {load} the log is never full from {} on{} ({seeds})",
            bytes_binary(bytes as f64),
            held(answer),
        )],
        (true, None, _) => vec![format!(
            "at {load} the log is full at each size that was tried"
        )],
        (false, Some(bytes), Some(last)) => {
            let row = answer.rows.iter().find(|row| row.bytes == bytes);
            hits(row.unwrap_or(last), last, request)
        }
        (false, ..) => vec![String::from(
            "the drive is smaller than the smallest cache that was tried",
        )],
    };
    let met = (!request.slo.limits.is_empty()).then(|| met(request, answer));
    let worn = early_end(answer.first_end.as_ref(), &answer.drive);
    let rule = answer.rule.as_ref().map(|rule| {
        format!(
            "by the rule {} are enough for {} in",
            bytes_decimal(rule.bytes),
            megabytes_a_second(rule.inbound_mb_s)
        )
    });
    let buffer = answer.buffer_rule.as_ref().map(|rule| buffer(rule, answer));
    // A limit that no size meets comes first, and so does the rule for the rate that the user gives: the simulation
    // covers only the rate of its load.
    let missed = answer.meets_bytes.is_none();
    let first = [met.clone().filter(|_| missed), rule];
    let is_used = answer.most_held_bytes != Some([0.0; 3]);
    let important = [met.filter(|_| !missed), worn, buffer];
    parts.splice(1..1, important.into_iter().flatten());
    let first = first.into_iter().flatten().filter(|_| is_used);
    first.chain(parts).collect()
}

/// Returns the size from which the limits are met.
fn met(request: &SizeRequest, answer: &SizeAnswer) -> String {
    let slo = request.slo.text();
    match (answer.meets_bytes, &answer.buffer_rule) {
        (Some(bytes), Some(_)) => {
            format!("{slo} is met at {} and above", bytes_decimal(bytes as f64))
        }
        (Some(bytes), None) => format!("{slo} is met at {} and above", bytes_binary(bytes as f64)),
        (None, _) => format!("{slo} is not met at the largest size"),
    }
}

/// Returns a table with a line for each size.
pub fn tables(answers: &[SizeAnswer]) -> Vec<AnswerTable> {
    let rows = || answers.iter().flat_map(|answer| &answer.rows);
    let (logs, buffers, caches) = (
        rows().any(|row| row.never_full.is_some()),
        rows().any(|row| row.never_pressed.is_some()),
        rows().any(|row| row.hits.is_some()),
    );
    let figures = |name: &str| AnswerColumn::figures(name);
    let mut columns = vec![AnswerColumn::words("drive"), figures("size")];
    columns.extend(logs.then(|| figures("never full")));
    columns.extend(buffers.then(|| figures("held back").headed("writes held back")));
    columns.extend(caches.then(|| figures("hits")));
    columns.extend(caches.then(|| figures("by arithmetic").headed("hits by arithmetic")));
    columns.extend([figures("IOPS"), figures("p99")]);
    if let Some(first) = rows().next() {
        columns.extend(first.readings.iter().map(|one| figures(&one.limit)));
    }
    let mut table = AnswerTable::new("Figures at each size", 1, columns);
    let cells = |drive: &str, row: &SizeResult| {
        // Logs and caches have powers of two as sizes; buffers have those of their drives.
        let size = match buffers {
            true => bytes_decimal(row.bytes as f64),
            false => bytes_binary(row.bytes as f64),
        };
        let mut cells = vec![drive.to_owned(), size];
        cells.extend(
            row.never_full
                .map(|never| String::from(if never { "yes" } else { "no" })),
        );
        cells.extend(row.never_pressed.map(|_| pressed(row)));
        let share = |share: f64| format!("{:.1} %", share * 100.0);
        cells.extend(row.hits.map(|hits| range(hits, share)));
        cells.extend(row.hits_by_arithmetic.map(share));
        cells.push(range(row.iops, count));
        cells.push(row.p99_us.map_or_else(|| String::from("-"), microseconds));
        cells.extend(row.readings.iter().map(reading_within));
        cells
    };
    for answer in answers {
        for row in &answer.rows {
            table.add(cells(&answer.drive, row));
        }
    }
    vec![table]
}

/// Returns the method.
pub fn method(
    request: &SizeRequest,
    answers: &[SizeAnswer],
    command: &str,
    width: Width,
) -> String {
    let mut lines = Vec::new();
    for rule in answers
        .iter()
        .filter_map(|answer| answer.rule.as_ref())
        .take(1)
    {
        let text = format!(
            "Rule: the writes that arrive during 2 transaction groups of {} s, at most twice the {} that may be dirty (a tenth of the \
             memory, at most 4 GiB; OpenZFS). S2-097 has 4 GB at 10 GbE.",
            digits(rule.txg_seconds),
            bytes_decimal(rule.dirty_bytes as f64)
        );
        lines.push(paragraph("", &text, width));
    }
    for answer in answers {
        if let Some(rate) = answer.logged_mb_s {
            let text = format!(
                "{}: {} logs {}. A log counts as never full if there is space for each block when it is written. IOPS do \
                 not show this: the disks of main limit the rate, differently in each group and with each seed, and a \
                 log that is sometimes full only delays writers until those disks catch up.",
                answer.drive,
                answer.load.source,
                megabytes_a_second(rate)
            );
            lines.push(paragraph("", &text, width));
        }
    }
    let has_hits = |one: &SizeAnswer| one.rows.iter().any(|row| row.hits.is_some());
    if answers.iter().any(|one| one.buffer_rule.is_some()) {
        let text = "Rule: the working set is at most 40 % of the buffer (VMware's performance guide for vSAN). At most the \
                    pool's buffer_limit counts as buffer. Simulated: the load for its whole duration, from the pool's initial \
                    state. The duration has 240 intervals. Writes count as held back after the first interval that ends with a \
                    congestion level above 0. Pools of flash run scaled; sizes and times are for the whole pool. If a working set \
                    does not fit, a larger buffer only delays congestion.";
        lines.push(paragraph("", text, width));
    }
    if answers.iter().any(has_hits) {
        let text = "By arithmetic: an exact LRU, one request after the other. Simulated, as recorded: reads also miss lines \
                    that are still being read from main, and a write to a part of a line in use removes the line.";
        lines.push(paragraph("", text, width));
    }
    let conditions = &request.conditions;
    let text = format!(
        "On {}, drives {} at the start, {}.",
        conditions.host.id,
        conditions.state.name(),
        seeds(request.conditions.seed, request.conditions.seeds)
    );
    lines.push(paragraph("", &text, width));
    let drives = answers.iter();
    let drives = drives.map(|one| (&*one.drive, one.model, &*one.model_text));
    known_and_again(lines, drives, command, width)
}

/// Returns everything as JSON.
pub fn json(request: &SizeRequest, answers: &[SizeAnswer], command: &str) -> Value {
    let asked = json!({
        "slo": request.slo.text(),
        "host": request.conditions.host.id,
        "state": request.conditions.state.name(),
        "seed": request.conditions.seed,
        "seeds": request.conditions.seeds,
    });
    document("drivelab size", command, &asked, &answers)
}
