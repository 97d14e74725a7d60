//! Which drive to take: `drivelab choose`.

use serde_json::{Value, json};
use study::decide::choose::{Answer, Best, Candidate, Measure, NAMED, Request};
use study::decide::likeness::Likeness;
use text::digits::{count, digits, duration, microseconds};
use text::terminal::{Width, folded, paragraph, plain, right};

use super::{document, model, range, reading, reading_within, seeds};

/// The answer, in a sentence or two.
pub fn answer(request: &Request, answer: &Answer, by: Measure) -> String {
    let meet = answer.candidates.iter().filter(|one| one.meets).count();
    let all = answer.candidates.len() + answer.unfit.len();
    let within = match (request.slo.limits.is_empty(), meet) {
        (true, _) => format!("the best of the {} that ran", answer.candidates.len()),
        (false, 1) => format!("the only one (of {all}) within {}", limits(request)),
        (false, _) => format!(
            "the best of the {meet} (of {all}) within {}",
            limits(request)
        ),
    };
    if meet == 0 {
        let nearest = answer.nearest().map_or_else(String::new, |one| {
            format!(" Nearest: {}, {}.", one.drive, missed(one))
        });
        // What is not known is not taken to be met, and not to be missed either.
        let known = answer.candidates.iter();
        let known = known.filter(|one| one.readings.iter().any(|it| it.met == Some(false)));
        let none = match known.count() + answer.unfit.len() == all {
            true => format!("None of {all} stays within {}.", limits(request)),
            false => format!("None of {all} is known to stay within {}.", limits(request)),
        };
        return format!("{none}{nearest}{}", unknown(answer));
    }
    let others = answer.best.iter().filter(|best| best.by != by);
    let others: Vec<String> = others
        .map(|best| {
            format!(
                "by {}: {}{} ({})",
                best.by.words(),
                best.drive,
                or_ties(best),
                figure(best.by, best.value)
            )
        })
        .collect();
    let others = match others.is_empty() {
        true => String::new(),
        false => format!(" Otherwise {}.", others.join("; ")),
    };
    let others = format!("{others}{}", buffers(answer));
    match answer.best_by(by) {
        Some(best) if !best.ties.is_empty() => {
            let mut shown = vec![spread(&best.drive, by, best.value, best.by_seed)];
            let ends = best.ties.iter().filter(|_| best.ties.len() <= NAMED);
            shown.extend(ends.map(|tie| spread(&tie.drive, by, tie.value, tie.by_seed)));
            format!(
                "Take {}{} by {}, too close to tell apart ({}): {within}.{others}",
                best.drive,
                or_ties(best),
                by.words(),
                shown.join(", ")
            )
        }
        Some(best) => format!(
            "Take {} by {}: {}, {within}.{others}",
            best.drive,
            by.words(),
            figure(by, best.value)
        ),
        None => format!(
            "By {} none can be taken: it is not known of any of those that meet{}.{others}",
            by.words(),
            match by {
                Measure::P99 =>
                    " (too few reads, writes or syncs; a limit on one direction, such as read.p99<1ms, has its own column)",
                _ => "",
            }
        ),
    }
}

/// What is not told of write buffers that the runs did not fill.
fn buffers(answer: &Answer) -> String {
    let full = answer.candidates.iter();
    let full = full.filter_map(|one| Some((&one.drive, one.buffer_full_seconds?)));
    match full.min_by(|a, b| a.1.total_cmp(&b.1)) {
        None => String::new(),
        Some((drive, seconds)) => format!(
            " All this holds as long as write buffers have room: at this load that of {drive} is full after {} if nothing is \
             destaged (--runtime runs longer, `drivelab size vsan-cache` says from when on writes are held back).",
            duration(seconds)
        ),
    }
}

/// Others that are not told apart from the best.
fn or_ties(best: &Best) -> String {
    let ties = best.ties.iter().map(|tie| format!(" or {}", tie.drive));
    match best.ties.len() <= NAMED {
        true => ties.collect(),
        false => format!(" or any of {} others", best.ties.len()),
    }
}

/// What is told of one that is not told apart from another.
fn spread(drive: &str, by: Measure, value: f64, by_seed: [f64; 2]) -> String {
    let [least, most] = by_seed.map(|value| figure(by, value));
    let unit = most.rfind(' ').map_or("", |at| &most[at..]);
    let least_alone = least.strip_suffix(unit).unwrap_or(&least);
    match least == most {
        true => format!("{drive} {}", figure(by, value)),
        false => format!("{drive} {least_alone} to {most}"),
    }
}

/// Why limits are not known of some.
fn unknown(answer: &Answer) -> String {
    let readings = answer.candidates.iter().flat_map(|one| &one.readings);
    let mut few: Vec<(&str, &str)> = Vec::new();
    for one in readings.filter(|one| one.met.is_none()) {
        let found = (one.limit.as_str(), one.too_few.unwrap_or_default());
        if one.too_few.is_some() && !few.contains(&found) {
            few.push(found);
        }
    }
    let words = few.iter().map(|(limit, direction)| {
        format!(" Of {limit} there are too few {direction}; a limit on one direction (read.p99) or a lower percentile may be told.")
    });
    words.collect()
}

/// What a candidate misses.
fn missed(candidate: &Candidate) -> String {
    let missed = candidate
        .readings
        .iter()
        .filter(|reading| reading.met != Some(true));
    let missed: Vec<String> = missed
        .map(|one| format!("{} at {}", one.limit, reading(one)))
        .collect();
    missed.join(", ").replace(" !", "")
}

fn limits(request: &Request) -> String {
    let texts = request.slo.limits.iter().map(|limit| limit.text.clone());
    texts.collect::<Vec<_>>().join(", ")
}

fn figure(by: Measure, value: f64) -> String {
    match by {
        Measure::Usd => format!("{} USD", digits(value)),
        Measure::Watt => format!("{} IOPS/W", count(value)),
        Measure::Iops => format!("{} IOPS", count(value)),
        Measure::P99 => microseconds(value),
        Measure::Years => format!("{} years", digits(value)),
    }
}

/// The 99th percentile with those of the seeds.
fn p99(one: &Candidate) -> String {
    match (one.p99_us, one.p99_us_by_seed) {
        (None, _) => String::from("-"),
        (Some(value), None) => microseconds(value),
        (Some(value), Some([least, most])) => range([value, least, most], microseconds),
    }
}

fn or_none(value: Option<f64>) -> String {
    value.map_or_else(|| String::from("-"), digits)
}

/// What is paid for besides the drives.
fn with(request: &Request) -> &'static str {
    let prices = request.prices.as_ref();
    match prices.map(|prices| (prices.kwh.is_some(), prices.place.is_some())) {
        Some((true, true)) => "with power and place",
        Some((true, false)) => "with power",
        Some((false, true)) => "with place",
        _ => "in all",
    }
}

/// A line for each candidate.
pub fn table(request: &Request, answer: &Answer, width: Width) -> String {
    let mut table = plain();
    let priced = request.prices.is_some();
    let pools = answer.candidates.iter().any(|one| one.promise.is_some());
    let mut header = vec![String::from("drive"), String::from("meets")];
    header.extend(request.slo.limits.iter().map(|limit| limit.text.clone()));
    header.extend(["room", "IOPS", "p99", "W", "IOPS/W", "years"].map(String::from));
    if priced {
        header.push(String::from("USD"));
        header.push(format!("{}, {} y", with(request), digits(request.years)));
    }
    header.push(String::from("model"));
    if pools {
        header.push(String::from("promise"));
    }
    let columns = header.len();
    table.set_header(header);
    for one in &answer.candidates {
        let mut cells = vec![
            one.drive.clone(),
            String::from(if one.meets { "yes" } else { "no" }),
        ];
        cells.extend(one.readings.iter().map(reading_within));
        cells.extend([
            one.room.map_or_else(
                || String::from("-"),
                |room| format!("{:.0} %", room * 100.0),
            ),
            range([one.iops, one.iops_by_seed[0], one.iops_by_seed[1]], count),
            p99(one),
            or_none(one.watts),
            one.iops_per_watt.map_or_else(|| String::from("-"), count),
            or_none(one.years),
        ]);
        if priced {
            cells.extend([or_none(one.usd), or_none(one.usd_in_all)]);
        }
        cells.push(one.model.to_owned());
        if pools {
            cells.push(one.promise.clone().unwrap_or_default());
        }
        table.add_row(cells);
    }
    right(&mut table, 2..columns - 1 - usize::from(pools));
    folded(&table, 1, width)
}

/// How near others come to a drive, in a sentence.
pub fn likeness(wanted: &str, found: &[Likeness]) -> String {
    match found.first() {
        None => format!("Nothing else ran that could stand for {wanted}."),
        Some(nearest) => format!(
            "Nearest to {wanted} at this load: {}, its rates and latencies a factor of {} away; lost: {}.",
            nearest.drive,
            digits(nearest.factor),
            lost(nearest)
        ),
    }
}

fn lost(one: &Likeness) -> String {
    match one.lost.is_empty() {
        true => String::from("nothing that is a fifth worse"),
        false => one.lost.join(", "),
    }
}

/// The nearest of them, with their figures over those of the drive.
pub fn likenesses(wanted: &str, found: &[Likeness], width: Width) -> String {
    const MOST: usize = 8;
    let mut table = plain();
    table.set_header([
        &format!("over {wanted}"),
        "factor",
        "IOPS",
        "p99",
        "mean",
        "watts",
        "endurance",
        "capacity",
        "lost",
    ]);
    for one in found.iter().take(MOST) {
        table.add_row([
            one.drive.clone(),
            digits(one.factor),
            digits(one.iops),
            or_none(one.p99),
            or_none(one.mean),
            or_none(one.watts),
            or_none(one.endurance),
            or_none(one.capacity),
            lost(one),
        ]);
    }
    right(&mut table, 1..8);
    folded(&table, 1, width)
}

/// How it was found.
pub fn method(request: &Request, answer: &Answer, command: &str, width: Width) -> String {
    let mut lines = Vec::new();
    for unfit in &answer.unfit {
        lines.push(paragraph(
            &format!("{} did not run: ", unfit.drive),
            &unfit.why,
            width,
        ));
    }
    let facts = request.load.facts();
    let cut = facts.at_most_seconds.map_or_else(String::new, |most| {
        format!(
            "; a job is counted for {} s (--runtime), longer on slow drives",
            digits(most)
        )
    });
    let conditions = &request.conditions;
    let usd = match &request.prices {
        None => " No prices were given (--usd prices.toml), so there is no cost.",
        Some(_) => " A drive without a price in your file has no cost.",
    };
    let how = format!(
        "{} on {}, drives {} at the start, {}{cut}. \"room\" is what is left to the nearest limit, which each seed is to keep; years are to the rated \
         endurance at this load, of a pool's weakest member.{usd}",
        facts.source,
        conditions.host.id,
        conditions.state.name(),
        seeds(conditions.seed, conditions.seeds),
    );
    lines.push(paragraph("", &how, width));
    // Where none is within the limits the answer says it.
    if answer.candidates.iter().any(|one| one.meets) {
        let unknown = unknown(answer);
        if !unknown.is_empty() {
            lines.push(paragraph("", unknown.trim(), width));
        }
    }
    lines.extend(
        answer
            .named()
            .map(|one| model(&one.drive, one.model, &one.model_text, width)),
    );
    lines.push(format!("Again: {command}"));
    lines.join("\n")
}

/// Everything as JSON.
pub fn json(
    request: &Request,
    answer: &Answer,
    like: Option<(&str, &[Likeness])>,
    command: &str,
) -> Value {
    let asked = json!({
        "load": request.load.facts(),
        "slo": request.slo.limits,
        "years": request.years,
        "host": request.conditions.host.id,
        "state": request.conditions.state.name(),
        "seed": request.conditions.seed,
        "seeds": request.conditions.seeds,
    });
    let mut json = document("drivelab choose", command, &asked, &answer);
    if let Some((wanted, found)) = like {
        json["like"] = json!({ "drive": wanted, "others": found });
    }
    json
}
