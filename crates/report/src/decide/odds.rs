//! The odds of data loss: `drivelab odds`.

use serde_json::{Value, json};
use study::decide::odds::{EXPOSED, LossCause, OddsAnswer, OddsRequest, PerYear, Repair};
use text::digits::{bytes_decimal, digits, duration, percent};
use text::terminal::{Width, paragraph};

use super::document;
use super::headline::{first_that_fits, short};
use super::table::{AnswerColumn, AnswerTable};

/// Years between two events of this rate.
pub(super) fn years(rate: f64) -> String {
    let years = 1.0 / rate;
    match years {
        none if none.is_infinite() => String::from("never"),
        more if more >= 1e12 => String::from("over 10^12 years"),
        more if more >= 1e9 => format!("{} billion years", digits(more / 1e9)),
        more if more >= 1e6 => format!("{} million years", digits(more / 1e6)),
        more if more >= 2.0 => format!("{} years", digits(text::digits::rounded(more, 3))),
        less => format!("{} days", digits(less * 365.25)),
    }
}

/// From the greatest rate to the least.
fn range([_, least, greatest]: PerYear) -> Option<String> {
    let (from, to) = (years(greatest), years(least));
    let unit = to.rsplit(' ').next().unwrap_or("");
    let words: Vec<&str> = to.split(' ').collect();
    let same = match words[..] {
        [_, unit] => from.strip_suffix(&format!(" {unit}")),
        [_, scale, unit] => from.strip_suffix(&format!(" {scale} {unit}")),
        _ => None,
    };
    let from = same.map_or(from.clone(), str::to_owned);
    (years(least) != years(greatest) && unit != "never").then(|| format!("{from} to {to}"))
}

/// Probability below which a text has one in a number instead of percent.
const RARE: f64 = 1e-3;

/// Returns a probability as text: percent, or one in a number if it is rare.
fn chance(share: f64) -> String {
    match share < RARE {
        true => one_in(share),
        false => percents(share),
    }
}

fn percents(share: f64) -> String {
    format!("{} %", digits(100.0 * share))
}

fn one_in(share: f64) -> String {
    match 1.0 / share {
        none if none.is_infinite() => String::from("0 %"),
        more if more >= 1e12 => String::from("under 1 in 10^12"),
        more if more >= 1e9 => format!("1 in {} billion", digits(more / 1e9)),
        more if more >= 1e6 => format!("1 in {} million", digits(more / 1e6)),
        more => format!("1 in {}", digits(text::digits::rounded(more, 3))),
    }
}

/// Returns a probability with its range, all in the unit of the typical one.
fn chances([typical, least, greatest]: [f64; 3]) -> String {
    let unit = if typical < RARE { one_in } else { percents };
    match least == greatest {
        true => unit(typical),
        false => format!("{} ({} to {})", unit(typical), unit(least), unit(greatest)),
    }
}

/// Pools whose typical rates of loss differ by a smaller factor are equal here.
const EQUAL: f64 = 1.05;

/// Returns which of several pools of one kind of drive is lost least often, and by which factor than the others. Pools of
/// different drives are not compared: their failure rates have different sources and wide ranges.
pub(super) fn comparison(answers: &[OddsAnswer]) -> Option<String> {
    let mut drives = answers.iter().flat_map(|it| &it.drives);
    let first = drives.next()?;
    if drives.any(|it| it.drive != first.drive) {
        return None;
    }
    let by_loss = |a: &&OddsAnswer, b: &&OddsAnswer| a.losses[0].total_cmp(&b.losses[0]);
    let best = answers.iter().min_by(by_loss)?;
    let least = best.losses[0];
    let worse: Vec<String> = answers
        .iter()
        .filter(|one| least > 0.0 && one.losses[0] > EQUAL * least)
        .map(|one| {
            let factor = text::digits::rounded(one.losses[0] / least, 2);
            format!("{} {} times as often", short(&one.drive), digits(factor))
        })
        .collect();
    (!worse.is_empty()).then(|| {
        format!(
            "At the same failure rates, {} as a whole is lost least often; {}.{}",
            short(&best.drive),
            worse.join(", "),
            least_blocks(answers)
        )
    })
}

/// Returns which pool loses some blocks least often, in a sentence; empty if several are equal. A pool without copies has
/// no such rate.
fn least_blocks(answers: &[OddsAnswer]) -> String {
    let rates = answers.iter();
    let mut rates: Vec<_> = rates
        .filter_map(|it| Some((it.some_blocks()?[0], it)))
        .collect();
    rates.sort_by(|a, b| a.0.total_cmp(&b.0));
    match &*rates {
        [(least, best), (next, _), ..] if *next > EQUAL * least => {
            format!(
                " Some blocks are lost least often by {}.",
                short(&best.drive)
            )
        }
        _ => String::new(),
    }
}

/// Returns the probabilities over the requested years in a sentence.
fn over_years(name: &str, answer: &OddsAnswer) -> Option<String> {
    let over = answer.over?;
    let pool = match answer.some_blocks() {
        Some(_) => "the pool is lost",
        None => "data are lost",
    };
    let within = digits(over.years);
    let [lost, brief] = [chances(over.losses), chance(over.losses[0])];
    let blocks = over.some_blocks.map_or_else(String::new, |blocks| {
        format!(", some blocks with {}", chance(blocks[0]))
    });
    Some(first_that_fits([lost, brief].map(|lost| {
        format!("{name}: within {within} years {pool} with a probability of {lost}{blocks}.")
    })))
}

/// Returns the answer on one pool: when it is lost, and when some of its blocks are. Either alone would compare pools
/// wrongly. Probabilities over the requested years come first.
pub fn answer(answer: &OddsAnswer) -> Vec<String> {
    let name = short(&answer.drive);
    let over = over_years(&name, answer);
    over.into_iter().chain([once(&name, answer)]).collect()
}

/// Returns the mean times between losses in a sentence.
fn once(name: &str, answer: &OddsAnswer) -> String {
    let [typical, ..] = answer.losses;
    let once = match range(answer.losses) {
        Some(range) => format!("{} (range {range})", years(typical)),
        None => years(typical),
    };
    let Some([blocks, ..]) = answer.some_blocks() else {
        return format!("{name}: data loss once in {once}.");
    };
    let crash = answer.crash_losses.map_or(0.0, |rates| rates[0]);
    let why = match crash > blocks / 2.0 {
        true => "crash with a drive missing",
        false => "unreadable sectors",
    };
    let blocks = years(blocks);
    first_that_fits([
        format!("{name}: the pool is lost once in {once}, some blocks once in {blocks} ({why})."),
        format!(
            "{name}: the pool is lost once in {}, some blocks once in {blocks} ({why}).",
            years(typical)
        ),
        format!(
            "{name}: the pool is lost once in {}, some blocks once in {blocks}.",
            years(typical)
        ),
    ])
}

/// Returns the cause of a loss as text.
pub fn cause(cause: &LossCause) -> String {
    let drives = match cause.drives {
        1 => String::from("1 drive fails"),
        more => format!("{more} drives failed at once"),
    };
    match (cause.drives, cause.crash) {
        (0, _) => String::from("a crash"),
        (1, true) => String::from("1 drive failed, a crash"),
        (more, true) => format!("{more} drives failed, a crash"),
        _ => drives,
    }
}

fn failures(repair: &Repair) -> String {
    let [typical, least, greatest] = repair.failures.map(|it| digits(100.0 * it));
    match least == greatest {
        true => format!("{typical} %"),
        false => format!("{typical} % ({least} to {greatest})"),
    }
}

fn or_none(rates: Option<PerYear>) -> String {
    rates.map_or_else(|| String::from("-"), |rates| years(rates[0]))
}

/// Returns a table of the pools, and one of their drives.
pub fn tables(answers: &[OddsAnswer]) -> Vec<AnswerTable> {
    let mut columns = vec![
        AnswerColumn::words("pool"),
        AnswerColumn::figures("usable").headed("usable capacity"),
        AnswerColumn::figures("pool lost").headed("pool lost once in"),
        AnswerColumn::figures("by crash").headed("some blocks lost by a crash once in"),
        AnswerColumn::figures("sectors").headed("unreadable sectors once in"),
        AnswerColumn::words("cause").headed("most frequent cause"),
        AnswerColumn::words("share").headed("its share"),
    ];
    if let Some(over) = answers.iter().find_map(|answer| answer.over) {
        let within = digits(over.years);
        columns.push(AnswerColumn::figures(format!("pool in {within} y")));
        columns.push(AnswerColumn::figures(format!("blocks in {within} y")));
    }
    let mut pools = AnswerTable::new("Data loss of each pool", 1, columns);
    let columns = vec![
        AnswerColumn::words("drive"),
        AnswerColumn::words("class"),
        AnswerColumn::words("fail in a year"),
        AnswerColumn::figures("rebuild").headed("time of a rebuild"),
    ];
    let mut drives = AnswerTable::new("Failures and rebuilds of each drive", 1, columns);
    let mut listed: Vec<&str> = Vec::new();
    for answer in answers {
        let mut cells = vec![
            short(&answer.drive),
            bytes_decimal(answer.usable_bytes as f64),
            years(answer.losses[0]),
            or_none(answer.crash_losses),
            or_none(answer.unreadable),
            cause(&answer.cause),
            percent(Some(answer.cause.share), 0),
        ];
        if let Some(over) = answer.over {
            let blocks = over.some_blocks;
            cells.push(chance(over.losses[0]));
            cells.push(blocks.map_or_else(|| String::from("-"), |blocks| chance(blocks[0])));
        }
        pools.add(cells);
        for repair in &answer.drives {
            if listed.contains(&&*repair.drive) {
                continue;
            }
            listed.push(&repair.drive);
            drives.add([
                repair.drive.clone(),
                repair.class.map_or("-", |class| class.name()).to_owned(),
                failures(repair),
                duration(repair.rebuild_seconds),
            ]);
        }
    }
    vec![pools, drives]
}

/// Returns the method and its limits.
pub fn method(
    request: &OddsRequest,
    answers: &[OddsAnswer],
    command: &str,
    width: Width,
) -> String {
    let how = format!(
        "A failed drive is replaced after {} and then rebuilt alone, for its whole capacity (simulated on {}). \"pool lost\": all members of a set that loses data are failed at once. \"sectors\": a rebuild reads the last copy and meets an unreadable sector; some blocks are lost. \"by crash\": the machine crashes {} a year. A RAID 5 or 6 that lacks a member then loses blocks that are being written (its write hole, unless its controller closes it). So does an intent log within {} s after its last device has failed. {}Drives are taken to fail independently of each other: beyond some ten thousand years other causes decide (one batch, one firmware, fire, mistakes). Wear is not in it: `drivelab life`.",
        duration(3600.0 * request.replace_hours),
        request.host.id,
        match request.crashes {
            1.0 => String::from("once"),
            times => format!("{} times", digits(times)),
        },
        digits(EXPOSED),
        request.years.map_or_else(String::new, |years| format!(
            "\"in {0} y\": the probability of at least one such loss within {0} years, at these rates. ",
            digits(years)
        )),
    );
    let mut lines = vec![paragraph("", &how, width)];
    let mut told: Vec<String> = Vec::new();
    for repair in answers.iter().flat_map(|answer| &answer.drives) {
        let line = match repair.class.filter(|_| repair.source != "given") {
            Some(class) => {
                let of = class.rate().unreadable_source;
                paragraph(
                    &format!("{}: ", class.name()),
                    &format!("{}; unreadable sectors: {of}.", repair.source),
                    width,
                )
            }
            None => format!("{}: {} (given).", repair.drive, failures(repair)),
        };
        if !told.contains(&line) {
            told.push(line);
        }
    }
    lines.extend(told);
    lines.push(format!("Repeat: {command}"));
    lines.join("\n")
}

/// Everything as JSON.
pub fn json(request: &OddsRequest, answers: &[OddsAnswer], command: &str) -> Value {
    let afr = request.failures.iter();
    let afr: Vec<Value> = afr
        .map(|(drive, share)| json!({ "drive": drive, "share": share }))
        .collect();
    let asked = json!({
        "replace_hours": request.replace_hours,
        "crashes_per_year": request.crashes,
        "years": request.years,
        "afr": afr,
        "host": request.host.id,
        "seed": request.seed,
    });
    document("drivelab odds", command, &asked, &answers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn years_have_a_scale_and_short_ones_are_days() {
        assert_eq!(years(0.0), "never");
        assert_eq!(years(2.0), "183 days");
        assert_eq!(years(0.0044), "227 years");
        assert_eq!(years(1.0 / 12_345.0), "12,300 years");
        assert_eq!(years(1.0 / 3.2e6), "3.2 million years");
        assert_eq!(years(1e-15), "over 10^12 years");
    }

    #[test]
    fn small_chances_are_one_in_a_number() {
        assert_eq!(chance(0.0), "0 %");
        assert_eq!(chance(0.0026), "0.26 %");
        assert_eq!(chance(1.0 / 24_800.0), "1 in 24,800");
        assert_eq!(chance(1.0 / 29e6), "1 in 29 million");
        assert_eq!(chance(1.0 / 2.6e9), "1 in 2.6 billion");
        assert_eq!(chance(1e-13), "under 1 in 10^12");
        assert_eq!(chance(1.43e-4), "1 in 6990");
    }

    #[test]
    fn a_range_of_chances_has_one_unit() {
        assert_eq!(
            chances([1.43e-4, 7.1e-6, 3.01e-4]),
            "1 in 6990 (1 in 141,000 to 1 in 3320)"
        );
        assert_eq!(chances([0.02, 0.0005, 0.04]), "2 % (0.05 % to 4 %)");
    }

    #[test]
    fn a_range_says_its_unit_once_where_both_ends_have_it() {
        assert_eq!(
            range([0.0044, 0.0007, 0.012]).as_deref(),
            Some("83.3 to 1430 years")
        );
        assert_eq!(
            range([1e-5, 1e-7, 1e-3]).as_deref(),
            Some("1000 years to 10 million years")
        );
        assert_eq!(range([0.01; 3]), None);
    }
}
