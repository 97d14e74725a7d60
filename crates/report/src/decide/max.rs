//! The highest load within limits: `drivelab max`.

use serde_json::{Value, json};
use study::decide::load::Height;
use study::decide::max::{Highest, LoadPoint, MaxAnswer, MaxRequest};
use study::decide::pauses::REMARK;
use study::decide::tally::busiest;
use study::decide::work::IN_MEMORY;
use text::digits::{count, digits};
use text::terminal::{Width, paragraph};

use super::ends::early_end;
use super::headline::{first_that_fits, named};
use super::table::{AnswerColumn, AnswerTable};
use super::{document, known_and_again, percent, reading_within, seeds};

/// Returns a line for each drive, then what limits each.
pub fn sentences(request: &MaxRequest, answers: &[MaxAnswer]) -> Vec<String> {
    let limits = answers.iter().filter(|one| one.open.at.is_some());
    let limits = limits.map(|one| format!("{}: {}", one.drive, gives_way(&one.open)));
    let found: Vec<String> = answers.iter().map(|one| answer(request, one)).collect();
    let worn = answers.iter().zip(&found);
    let worn: Vec<String> = worn.filter_map(|(one, line)| worn_out(one, line)).collect();
    let memory = answers.iter().filter_map(in_memory);
    let found = found.into_iter().chain(worn);
    found.chain(limits).chain(memory).collect()
}

/// Returns when a drive reaches its rated endurance, if its first line has no space for it.
fn worn_out(answer: &MaxAnswer, line: &str) -> Option<String> {
    let at = answer.open.at.as_ref()?;
    let end = early_end(answer.first_end.as_ref(), &answer.drive)?;
    let rate = count(at.iops);
    (!line.contains(&end)).then(|| format!("{}: at {rate} IOPS {end}.", answer.drive))
}

/// Returns a note on a pool that keeps much of what is written in memory.
fn in_memory(answer: &MaxAnswer) -> Option<String> {
    let share = answer.in_memory.filter(|share| *share > IN_MEMORY)?;
    Some(format!(
        "{}: at this load {} of the writes were still in memory at the end. A longer load is slower (use a larger --ios).",
        answer.drive,
        percent(Some(share))
    ))
}

/// Returns the verdict on one drive, as one line.
fn answer(request: &MaxRequest, answer: &MaxAnswer) -> String {
    let slo = limits(request);
    let name = named(&answer.drive, answer.model);
    let Some(open) = &answer.open.at else {
        let lowest = answer.open.beyond.as_ref();
        let at = count(lowest.map_or(0.0, |point| point.iops));
        let (arrivals, exceed) = match at.as_str() {
            "1" => ("arrival", "exceeds"),
            _ => ("arrivals", "exceed"),
        };
        let broke = match answer.open.broke.as_deref() {
            Some("keeps up") => format!("{exceed} its maximum rate"),
            broke => format!("{exceed} {}", broke.unwrap_or("it")),
        };
        return first_that_fits([
            format!(
                "{name}: no load that was tried stays within {slo}: even {at} {arrivals} per second {broke}."
            ),
            format!("{name}: no load that was tried stays within all limits."),
        ]);
    };
    let best_seed = match answer.open.interval {
        Some([least, most]) if count(least) != count(most) => {
            format!("; best seed {}", count(most))
        }
        _ => String::new(),
    };
    let closed = match &answer.closed.at {
        None => String::from("; not even QD1 stays within"),
        Some(closed) => format!("; QD{} does {}", in_flight(closed), count(closed.iops)),
    };
    let missed = open.readings.iter();
    let missed = missed.filter(|reading| reading.met != Some(true));
    let missed: Vec<&str> = missed.map(|reading| reading.limit.as_str()).collect();
    let missed = match missed.is_empty() {
        true => String::new(),
        false => format!(" That misses {}.", missed.join(", ")),
    };
    let worn = early_end(answer.first_end.as_ref(), &answer.drive);
    let worn = worn.map_or_else(String::new, |text| format!(" At this rate {text}."));
    let iops = count(open.iops);
    // Pauses would lower the rate: without them, it is an upper bound.
    if answer.model_text.contains(REMARK) {
        return first_that_fits([
            format!(
                "{name}: at most {iops} IOPS within {slo} (open loop{best_seed}{closed}; pauses of garbage collection are not \
                 known).{missed}{worn}"
            ),
            format!(
                "{name}: at most {iops} IOPS within {slo} (open loop{best_seed}; its pauses are not known).{missed}{worn}"
            ),
            format!(
                "{name}: at most {iops} IOPS within {slo} (open loop; pauses of garbage collection are not known).{missed}{worn}"
            ),
            format!(
                "{name}: at most {iops} IOPS within {slo} (its pauses are not known).{missed}{worn}"
            ),
            format!("{name}: at most {iops} IOPS within {slo}.{missed}{worn}"),
            format!("{name}: at most {iops} IOPS within the limits.{missed}{worn}"),
        ]);
    }
    first_that_fits([
        format!("{name}: {iops} IOPS within {slo} (open loop{best_seed}{closed}).{missed}{worn}"),
        format!("{name}: {iops} IOPS within {slo} (open loop{best_seed}).{missed}{worn}"),
        format!("{name}: {iops} IOPS within {slo} (open loop).{missed}{worn}"),
        format!("{name}: {iops} IOPS within the limits (open loop).{missed}{worn}"),
    ])
}

fn in_flight(point: &LoadPoint) -> String {
    match point.height {
        Height::InFlight(depth) => depth.to_string(),
        Height::Arrivals(rate) => count(rate),
    }
}

fn limits(request: &MaxRequest) -> String {
    let texts = request.slo.limits.iter().map(|limit| limit.text.clone());
    texts.collect::<Vec<_>>().join(", ")
}

/// Returns the first limit that is exceeded, and the latency part that grows.
fn gives_way(highest: &Highest) -> String {
    let (Some(broke), Some(beyond)) = (&highest.broke, &highest.beyond) else {
        return String::from("All limits hold up to the highest load tried.");
    };
    let what = match broke.as_str() {
        "keeps up" => format!(
            "Above this rate, it completes only {} of the arrivals",
            kept_up(beyond)
        ),
        limit => format!("Above this rate, it does not meet {limit}"),
    };
    let wait = highest.wait.as_ref().map(|wait| {
        let which = match wait.from_percent {
            0.0 => wait.direction.to_owned(),
            from => format!("slowest {} % of {}", digits(100.0 - from), wait.direction),
        };
        let share = percent(Some(wait.share));
        (
            wait.place,
            format!(
                "the {which} spend {share} of their time on \"{}\"",
                wait.part
            ),
        )
    });
    let full = busiest(&beyond.measurement, beyond.threads);
    let full = full.map(|(place, busy)| (placed(place), busy));
    match (full, wait) {
        (Some((place, busy)), Some((_, waiting))) => {
            format!("{what}: {place}, {} busy; {waiting}.", percent(Some(busy)))
        }
        (Some((place, busy)), None) => format!("{what}: {place}, {} busy.", percent(Some(busy))),
        (None, Some((place, waiting))) => format!("{what}: {}; {waiting}.", placed(place)),
        (None, None) => format!("{what}."),
    }
}

/// Returns a place as text.
pub(super) fn placed(place: &str) -> &'static str {
    match place {
        "host" => "the host's cores",
        "limit" => "the limit of its power, or a volume's of its rate",
        "link" => "the link or data path",
        "controller" => "the controller",
        "pool" => "the pool's own work",
        _ => "the dies",
    }
}

fn kept_up(point: &LoadPoint) -> String {
    match point.height {
        Height::Arrivals(rate) => percent(Some(point.iops / rate)),
        Height::InFlight(_) => String::from("all"),
    }
}

/// Returns the figures at the answer and at the first load beyond it.
pub fn tables(request: &MaxRequest, answers: &[MaxAnswer]) -> Vec<AnswerTable> {
    let figures = |name: &str| AnswerColumn::figures(name);
    let mut columns = vec![
        AnswerColumn::words("drive"),
        AnswerColumn::words("loop"),
        figures("load"),
        figures("IOPS"),
    ];
    let limits = request.slo.limits.iter();
    columns.extend(limits.map(|limit| figures(&limit.text)));
    columns.extend([
        figures("W").headed("power, W"),
        figures("WA").headed("write amplification"),
        figures("controller").headed("controller busy"),
        figures("link").headed("link busy"),
        figures("dies").headed("dies busy"),
        figures("host cores").headed("host cores busy"),
    ]);
    let caption = "The highest load within the limits, and the next load that was tried";
    let mut table = AnswerTable::new(caption, 2, columns);
    for answer in answers {
        for (name, highest) in [("open", &answer.open), ("closed", &answer.closed)] {
            for (at, point) in [("", &highest.at), ("beyond: ", &highest.beyond)] {
                if let Some(point) = point {
                    table.add(row(&answer.drive, name, at, point));
                }
            }
        }
    }
    vec![table]
}

fn row(drive: &str, name: &str, at: &str, point: &LoadPoint) -> Vec<String> {
    let load = match point.height {
        Height::Arrivals(rate) => format!("{at}{}/s", count(rate)),
        Height::InFlight(depth) => format!("{at}QD{depth}"),
    };
    let measured = &point.measurement;
    let figure = |value: Option<f64>| value.map_or_else(|| String::from("-"), digits);
    let mut cells = vec![drive.to_owned(), name.to_owned(), load, count(point.iops)];
    cells.extend(point.readings.iter().map(reading_within));
    cells.extend([figure(measured.watts), figure(measured.write_amplification)]);
    cells.extend(
        [
            measured.controller_busy,
            measured.link_busy,
            measured.medium_busy,
        ]
        .map(percent),
    );
    cells.push(match measured.host_cores {
        Some(cores) => format!("{} of {}", digits(cores), point.threads),
        None => String::from("-"),
    });
    cells
}

/// Returns notes on the method.
pub fn method(request: &MaxRequest, answers: &[MaxAnswer], command: &str, width: Width) -> String {
    let ios = "A rate counts if every seed stays within all limits and completes 97 % of what arrives. Latency is fio's: from issue.";
    let how = format!(
        "{} on {}, {} drives {} at the start, {}; up to {} threads. {ios}",
        request.pattern.rw,
        request.host.id,
        match request.pattern.options.iter().find(|(key, _)| key == "bs") {
            Some((_, bs)) => format!("bs={bs},"),
            None => String::from("bs=4k,"),
        },
        request.state.name(),
        seeds(request.seed, request.seeds),
        request.pattern.threads,
    );
    let lines = vec![paragraph("", &how, width)];
    let drives = answers.iter();
    let drives = drives.map(|one| (&*one.drive, one.model, &*one.model_text));
    known_and_again(lines, drives, command, width)
}

/// Returns everything as JSON.
pub fn json(request: &MaxRequest, answers: &[MaxAnswer], command: &str) -> Value {
    let asked = json!({
        "slo": request.slo.limits,
        "pattern": request.pattern,
        "host": request.host.id,
        "state": request.state.name(),
        "seed": request.seed,
        "seeds": request.seeds,
    });
    document("drivelab max", command, &asked, &answers)
}
