//! Lifetime of drives: `drivelab life`.

use serde_json::{Value, json};
use study::decide::life::{LifeAnswer, LifePart, cycles_end_first, is_assumed};
use study::decide::life_part::EnduranceRating;
use study::decide::work::Conditions;
use text::digits::{bytes_decimal, count, digits, duration, megabytes_a_second};
use text::terminal::{Width, paragraph};

use super::ends::{cycles_kind, duration_of, years_of};
use super::headline::{first_that_fits, named, pause, short, some_of};
use super::sentences::HAS_FILES;
use super::table::{AnswerColumn, AnswerTable};
use super::{document, known_and_again, range, seeds};

/// Returns a line for each drive or pool, then further facts on them.
pub fn sentences(answers: &[LifeAnswer]) -> Vec<String> {
    let facts = answers.iter().filter_map(facts);
    let has_files =
        |answer: &LifeAnswer| answer.load.as_ref().is_some_and(|it| it.has_files_to_read);
    let files = answers.iter().any(has_files).then(|| HAS_FILES.to_owned());
    answers
        .iter()
        .map(answer)
        .chain(facts)
        .chain(files)
        .collect()
}

/// Returns the verdict on one drive or pool, as one line.
fn answer(answer: &LifeAnswer) -> String {
    let Some(load) = &answer.load else {
        return unloaded(answer);
    };
    let rate = written_mb_s(answer);
    let name = named(&answer.drive, answer.model);
    if let (true, Some(false), Some((part, _))) = (rate == 0.0, answer.lasts(), answer.weakest()) {
        let term = digits(answer.years);
        let used = digits(part.used_percent);
        let head = format!("{name} does not last {term} years at this load");
        return first_that_fits([
            format!("{head}: it is read-only at {used} % Percentage Used."),
            format!("{head}: it is read-only."),
        ]);
    }
    if rate == 0.0 {
        let source = &load.source;
        return first_that_fits([
            format!("{name}: {source} has no writes and does not wear the drive."),
            format!("{name}: the load has no writes and does not wear the drive."),
        ]);
    }
    let slower = slower(answer, rate).map_or_else(String::new, |text| format!(" {text}"));
    let Some((part, years)) = answer.weakest() else {
        return unknown_end(answer, &name, rate, &slower);
    };
    let first = first_member(answer, years);
    let Some(is_lasting) = answer.lasts() else {
        return without_rating(&format!("{name}{first}"), part, years, &slower);
    };
    let term = digits(answer.years);
    let pause = pause(answer);
    let verdict = match is_lasting {
        true => format!("{name}{first} lasts the {term} years at this load{pause}"),
        false => format!("{name}{first} does not last {term} years at this load{pause}"),
    };
    let rated = until_rating(part);
    if let Some((worn, days)) = cycles_end_first(&answer.parts, answer.years) {
        return cycles_first(
            answer,
            is_lasting,
            [&verdict, &rated, &slower],
            (worn, days),
        );
    }
    let member = match answer.parts.len() {
        1 => String::new(),
        _ => format!(" (member {})", short(&part.name)),
    };
    let brief = match is_lasting {
        true => format!("{} lasts the", short(&answer.drive)),
        false => format!("{} does not last", short(&answer.drive)),
    };
    let range = by_seed(part).map_or_else(String::new, |[least, most]| {
        format!(" (seeds {least} to {most})")
    });
    first_that_fits([
        format!("{verdict}{rated}{range}.{slower}"),
        format!("{verdict}{rated}.{slower}"),
        format!("{brief} {term} years at this load{pause}{rated}{member}.{slower}"),
        format!("{brief} {term} years at this load{pause}{rated}{member}."),
        format!("{verdict}.{slower}"),
    ])
}

/// Returns the verdict on a drive without a rating and without cycles.
fn unknown_end(answer: &LifeAnswer, name: &str, rate: f64, slower: &str) -> String {
    if answer.parts.len() == 1 && answer.parts[0].is_disk {
        return of_disk(name, rate, slower);
    }
    let rate = megabytes_a_second(rate);
    first_that_fits([
        format!(
            "{name}: written at {rate}; this catalogue has no rating of it, so its life is not known.{slower}"
        ),
        format!("{name}: this catalogue has no rating of it.{slower}"),
    ])
}

/// Returns the verdict on a hard disk, which writes do not wear. Makers may limit the bytes of reads and writes of a year.
fn of_disk(name: &str, written_mb_s: f64, slower: &str) -> String {
    let a_year = bytes_decimal(written_mb_s * 1e6 * 365.0 * 86_400.0);
    first_that_fits([
        format!(
            "{name}: writes do not wear it; {a_year} a year are written. Its data sheet may limit reads and writes of a year.{slower}"
        ),
        format!("{name}: writes do not wear it; {a_year} a year are written.{slower}"),
        format!("{name}: writes do not wear a hard disk.{slower}"),
    ])
}

/// Returns the end of a drive without a rating: by the model's Percentage Used.
fn without_rating(name: &str, part: &LifePart, years: f64, slower: &str) -> String {
    let after = duration_of(years * 365.0);
    let head = format!("{name}: this catalogue has no rating of it");
    if years <= 0.0 {
        let used = digits(part.used_percent);
        return format!("{head}; Percentage Used is {used} already.{slower}");
    }
    first_that_fits([
        format!("{head}; Percentage Used passes 100 after {after} by assumed cycles.{slower}"),
        format!("{head}; used up after {after} by assumed cycles.{slower}"),
    ])
}

/// Returns the time until the rated bytes are written; empty without a rating.
fn until_rating(part: &LifePart) -> String {
    let kind = part.rating.as_ref().map_or("", |rating| rating.kind);
    match (part.years_to_rating(), is_assumed(kind)) {
        (None, _) => String::new(),
        (Some(0.0), true) => String::from(": its assumed rating is used up already"),
        (Some(0.0), false) => String::from(": its rated bytes are written already"),
        (Some(years), true) => format!(": {} until its assumed rating", years_of(years)),
        (Some(years), false) => format!(": {} until the rated bytes are written", years_of(years)),
    }
}

/// Returns the verdict on a drive whose cycles end much earlier than its rating. A verdict by the rating alone would
/// be wrong.
fn cycles_first(
    answer: &LifeAnswer,
    is_lasting: bool,
    [verdict, rated, slower]: [&str; 3],
    (worn, days): (&LifePart, f64),
) -> String {
    let assumed = cycles_kind(worn.cycles.as_ref().map_or("", |it| it.kind));
    let days = duration_of(days);
    let whose = match answer.parts.len() {
        1 => String::new(),
        _ => format!(" of {}", short(&worn.name)),
    };
    if !is_lasting {
        return first_that_fits([
            format!(
                "{verdict}{rated}, {days} until the {assumed} cycles{whose} are used up.{slower}"
            ),
            format!("{verdict}{rated}, {days} by {assumed} cycles.{slower}"),
            format!("{verdict}{rated}.{slower}"),
            format!("{verdict}: {days} until the {assumed} cycles{whose} are used up."),
            format!("{verdict}."),
        ]);
    }
    let name = named(&answer.drive, answer.model);
    let amplification = worn.written.as_ref().and_then(|it| it.write_amplification);
    let amplification = amplification.map_or_else(String::new, |[mean, ..]| {
        format!(" (write amplification {})", digits(mean))
    });
    let rating = match worn.rating.as_ref().map(|rating| is_assumed(rating.kind)) {
        Some(true) => "assumed rating",
        _ => "rated bytes",
    };
    let years = worn.years_to_rating().map_or_else(String::new, years_of);
    let pause = pause(answer);
    let head = format!("{name}: its {assumed} cycles{whose} last {days} at this load{pause}");
    first_that_fits([
        format!("{head}{amplification}, the {rating} {years}.{slower}"),
        format!("{head}, the {rating} {years}.{slower}"),
        format!("{head}, the {rating} {years}."),
        format!("{head}."),
    ])
}

/// Returns the years to the rating over seeds as text, if they differ.
fn by_seed(part: &LifePart) -> Option<[String; 2]> {
    let written = part.written.as_ref()?;
    // Later destaging is computed arithmetically and does not depend on a seed.
    if written.years_to_rating != part.years_to_rating() {
        return None;
    }
    let [least, most] = written.years_to_rating_by_seed?.map(years_of);
    let unit = most.rfind(' ').map_or("", |at| &most[at..]);
    let bare = least.strip_suffix(unit).unwrap_or(&least).to_owned();
    (least != most).then_some([bare, most])
}

/// Two members that end at times that differ by a smaller share end together.
const TOGETHER: f64 = 0.01;

/// Returns which members of a pool end first, after these years; those that end together are named together.
fn first_member(answer: &LifeAnswer, years: f64) -> String {
    if answer.parts.len() == 1 {
        return String::new();
    }
    let rated = answer.parts.iter().any(|part| part.rating.is_some());
    let parts = answer.parts.iter();
    let known = parts.filter(|part| part.rating.is_some() == rated);
    let together = known.filter(|part| {
        part.years()
            .is_some_and(|ends| ends <= years * (1.0 + TOGETHER))
    });
    let names: Vec<String> = together.map(|part| short(&part.name)).collect();
    match names.len() {
        1 => format!(" (its member {} first)", names.join("")),
        _ => format!(" (its members {} first)", some_of(&names, 2)),
    }
}

/// Returns the bytes that are written to all members, in 10^6 per second.
fn written_mb_s(answer: &LifeAnswer) -> f64 {
    let written = answer.parts.iter().filter_map(|part| part.written.as_ref());
    written.map(|written| written.mb_s[0]).sum()
}

/// Returns Percentage Used of the part that ends first, and notes on runs that differ from the load as asked.
fn facts(answer: &LifeAnswer) -> Option<String> {
    let rate = written_mb_s(answer);
    if answer.load.is_none() || rate == 0.0 {
        return None;
    }
    let mut facts = Vec::new();
    // The verdict names the part whose cycles end much earlier than its rating.
    let worn = cycles_end_first(&answer.parts, answer.years).or_else(|| answer.weakest());
    if let (Some((part, _)), Some(_)) = (worn, answer.lasts())
        && let (Some(pass), Some(cycles)) = (part.passes.first(), &part.cycles)
    {
        let by = match is_assumed(cycles.kind) {
            true => "assumed rated cycles",
            false => "its rated cycles",
        };
        facts.push(match pass.day > 0.0 {
            true => format!(
                "Percentage Used passes 100 after {}, by {by} and the write amplification of this load.",
                duration_of(pass.day)
            ),
            false => format!("Percentage Used is {} already.", digits(part.used_percent)),
        });
    }
    facts.extend(few_writes(answer));
    facts.extend(buffered(answer));
    (!facts.is_empty()).then(|| format!("{}: {}", answer.drive, facts.join(" ")))
}

/// A drive is slower than the load if it completes less than this share of the requested bytes.
const SLOWER: f64 = 0.95;

/// Returns a note if the drive completed less than the requested writes or I/Os.
fn slower(answer: &LifeAnswer, rate: f64) -> Option<String> {
    let load = answer.load.as_ref()?;
    if let (Some(offered), Some(iops)) = (load.offered_iops, answer.iops) {
        return (answer.keeps_up() == Some(false)).then(|| {
            format!(
                "It completes only {} of the {} IOPS.",
                count(iops),
                count(offered)
            )
        });
    }
    let asked = load.asked_mb_s?;
    (answer.parts.len() == 1 && rate < SLOWER * asked).then(|| {
        let pattern = load.asked_pattern.as_ref();
        let pattern = pattern.map_or_else(String::new, |pattern| format!(" ({pattern})"));
        format!(
            "It sustains only {} of the {}{pattern}.",
            megabytes_a_second(rate),
            megabytes_a_second(asked)
        )
    })
}

/// Returns a note if a run writes too few bytes to know wear.
fn few_writes(answer: &LifeAnswer) -> Option<String> {
    let parts = answer.parts.iter();
    let (part, few) = parts
        .filter_map(|part| Some((part, part.few_writes.as_ref()?)))
        .next()?;
    let who = match answer.parts.len() {
        1 => String::new(),
        _ => format!(" of its member {}", part.name),
    };
    Some(format!(
        "Wear{who} at this rate is not known: a run writes {}, less than its pSLC cache holds ({}).",
        bytes_decimal(few.written_gb * 1e9),
        bytes_decimal(few.cache_gb * 1e9)
    ))
}

/// Returns a note if a write buffer has not been full yet, so that the drives below it are not worn as they will be.
fn buffered(answer: &LifeAnswer) -> Option<String> {
    let seconds = answer.buffer_full_seconds?;
    Some(format!(
        "At this load its write buffer is full after {} if nothing is destaged: {}.",
        duration(seconds),
        destage_note(answer)
    ))
}

/// Returns the bytes that the drives below a write buffer are written when it is full.
fn destage_note(answer: &LifeAnswer) -> String {
    let parts = answer.parts.iter();
    let all = parts.filter_map(|part| Some((part, part.destaged.as_ref()?)));
    let most = all.clone().max_by(|a, b| a.1.mb_s.total_cmp(&b.1.mb_s));
    let Some((_, most)) = most else {
        return String::from(
            "what members are written from then on is in none of these figures, and may end another one first",
        );
    };
    let rated = all.filter_map(|(part, later)| Some((part, later.years_to_rating?)));
    let least = rated.min_by(|a, b| a.1.total_cmp(&b.1));
    let ends = least.map_or_else(String::new, |(part, years)| {
        format!(
            ", {} until the rated bytes of {}",
            years_of(years),
            part.name
        )
    });
    format!(
        "from then on up to {} go to each drive behind{ends}, less where the load writes again what waits there; their wear is in \
         none of the runs",
        megabytes_a_second(most.mb_s)
    )
}

fn unloaded(answer: &LifeAnswer) -> String {
    let rated = answer
        .parts
        .iter()
        .filter_map(|part| Some((part, part.rating.as_ref()?)));
    let least = rated.min_by(|a, b| a.1.lasting_mb_s.total_cmp(&b.1.lasting_mb_s));
    let Some((part, rating)) = least else {
        return format!(
            "{}: this catalogue has no rating of it.",
            short(&answer.drive)
        );
    };
    let of = match answer.parts.len() {
        1 => String::new(),
        _ => format!(" its member {}:", short(&part.name)),
    };
    let assumed = if is_assumed(rating.kind) {
        ", assumed"
    } else {
        ""
    };
    let dwpd = rating
        .dwpd
        .map_or_else(String::new, |dwpd| format!(", {} DWPD", digits(dwpd)));
    let head = format!(
        "{}:{of} lasts {} years if written at {} without pause",
        short(&answer.drive),
        digits(answer.years),
        megabytes_a_second(rating.lasting_mb_s),
    );
    let rated = bytes_decimal(rating.tbw * 1e12);
    first_that_fits([
        format!("{head} (rated {rated}{dwpd}{assumed})."),
        format!("{head}."),
    ])
}

/// Returns years for a table; an end that has passed is `now`.
fn cell(years: f64) -> String {
    match years > 0.0 {
        true => years_of(years),
        false => String::from("now"),
    }
}

const NONE: &str = "-";

fn or_none(value: Option<f64>) -> String {
    value.map_or_else(|| String::from(NONE), digits)
}

/// Maximum characters of a member's name in the table.
const MEMBER: usize = 56;

/// Returns a line for each drive, or member of a pool.
pub fn tables(answers: &[LifeAnswer]) -> Vec<AnswerTable> {
    let loaded = answers.iter().any(|answer| answer.load.is_some());
    let years = answers.first().map_or(0.0, |answer| answer.years);
    let then = format!("TB in {} y", digits(years));
    let figures = |name: &str| AnswerColumn::figures(name);
    let mut columns = vec![
        AnswerColumn::words("drive"),
        figures("rated").headed("rated bytes"),
        figures("DWPD").headed("rated DWPD"),
        figures("MB/s that last").headed("rate that lasts, MB/s"),
    ];
    if loaded {
        columns.extend([
            figures("written MB/s"),
            figures("DWPD now").headed("DWPD at this load"),
            figures(&then),
            figures("WA").headed("write amplification"),
            figures("WA rated").headed("rated write amplification"),
            figures("years to rating").headed("time to the rating"),
            figures("used a year").headed("Percentage Used per year"),
            figures("100 % on").headed("100 % used after"),
            figures("105 % on").headed("105 % used after"),
        ]);
    }
    let mut table = AnswerTable::new("Endurance of each drive", 1, columns);
    for answer in answers {
        for part in &answer.parts {
            table.add(row(answer, part, loaded));
        }
    }
    vec![table]
}

/// Returns the name of a pool's member with the pool and the drive; shorter if that would leave no width for figures.
fn member_name(answer: &LifeAnswer, part: &LifePart) -> String {
    let whole = format!("{}: {} {}", answer.drive, part.name, part.drive);
    if whole.chars().count() <= MEMBER {
        return whole;
    }
    let pool: String = answer.drive.chars().take(MEMBER / 3).collect();
    match part.name.starts_with(&part.drive) {
        true => format!("{pool}…: {}", part.name),
        false => format!("{pool}…: {} {}", part.name, part.drive),
    }
}

fn row(answer: &LifeAnswer, part: &LifePart, loaded: bool) -> Vec<String> {
    let name = match answer.parts.len() {
        1 => part.drive.clone(),
        _ => member_name(answer, part),
    };
    let rating = part.rating.as_ref();
    let assumed = |kind: &str| if is_assumed(kind) { " (assumed)" } else { "" };
    let mut cells = vec![
        name,
        rating.map_or_else(
            || String::from("no rating"),
            |rating| {
                format!(
                    "{}{}",
                    bytes_decimal(rating.tbw * 1e12),
                    assumed(rating.kind)
                )
            },
        ),
        or_none(rating.and_then(|rating| rating.dwpd)),
        rating.map_or_else(
            || String::from(NONE),
            |rating| lasting(rating, part, answer.years),
        ),
    ];
    if !loaded {
        return cells;
    }
    let written = part.written.as_ref();
    let used = part
        .used_percent_a_year
        .map(|used| used - part.used_percent);
    let pass = |index: usize| {
        part.passes
            .get(index)
            .map_or_else(|| String::from(NONE), |pass| cell(pass.day / 365.0))
    };
    cells.extend([
        written.map_or_else(|| String::from(NONE), |it| range(it.mb_s, digits)),
        or_none(written.map(|written| written.dwpd)),
        or_none(written.map(|written| written.tbw)),
        written
            .and_then(|written| written.write_amplification)
            .map_or_else(|| String::from(NONE), |it| range(it, digits)),
        part.cycles.as_ref().map_or_else(
            || String::from(NONE),
            |cycles| match cycles.rated_write_amplification {
                Some(rated) => format!("{}{}", digits(rated), assumed(cycles.kind)),
                None => String::from(NONE),
            },
        ),
        written
            .and_then(|written| written.years_to_rating)
            .map_or_else(|| String::from(NONE), cell),
        used.map_or_else(|| String::from(NONE), |used| format!("{} %", digits(used))),
        pass(0),
        pass(1),
    ]);
    cells
}

/// Returns the rate that lasts the years by the rating, and in parentheses that by the cycles if these end much earlier.
fn lasting(rating: &EnduranceRating, part: &LifePart, years: f64) -> String {
    let by_rating = digits(rating.lasting_mb_s);
    let early = cycles_end_first(std::slice::from_ref(part), years);
    match early.zip(part.written.as_ref()) {
        Some(((_, days), written)) => {
            let by_cycles = written.mb_s[0] * days / (years * 365.0);
            format!("{by_rating} ({})", digits(by_cycles))
        }
        None => by_rating,
    }
}

/// Returns what happens at 100 and 105 percent, and the method.
pub fn method(
    answers: &[LifeAnswer],
    conditions: &Conditions,
    command: &str,
    width: Width,
) -> String {
    let mut lines = Vec::new();
    for answer in answers {
        // Equal members have the same end.
        let mut ends: Vec<(f64, &str, Vec<&str>)> = Vec::new();
        for part in &answer.parts {
            for pass in &part.passes {
                let same =
                    |end: &&mut (f64, &str, Vec<&str>)| end.0 == pass.percent && end.1 == pass.then;
                match ends.iter_mut().find(same) {
                    Some((.., names)) => names.push(&part.name),
                    None => ends.push((pass.percent, &pass.then, vec![&part.name])),
                }
            }
        }
        for (percent, then, names) in ends {
            let head = format!("{}, {} % used: ", names.join(", "), digits(percent));
            lines.push(paragraph("", &format!("{head}{then}"), width));
        }
    }
    if let Some(load) = answers.iter().find_map(|answer| answer.load.as_ref()) {
        let cut = super::choose::counted(load);
        let pace = match (load.offered_iops, load.asked_mb_s) {
            (Some(rate), _) => format!(
                " Every drive is asked for {} IOPS (open loop, Poisson arrivals).",
                count(rate)
            ),
            // A job file may have a rate of its own.
            (None, None) if load.at_most_seconds.is_some() => String::from(
                " Without --rate, jobs without a rate of their own run at each drive's own maximum: a faster drive is written more and ends earlier.",
            ),
            (None, _) => String::new(),
        };
        let mut parts = answers.iter().flat_map(|answer| &answer.parts);
        let is_early = |part: &LifePart| {
            cycles_end_first(std::slice::from_ref(part), answers[0].years).is_some()
        };
        let by_cycles = match parts.any(is_early) {
            true => " In parentheses: the rate that lasts by the cycles at this load.",
            false => "",
        };
        let how = format!(
            "{} on {}, drives {} at the start, {}{cut}.{pace}{by_cycles} \"WA rated\" is the write amplification at which the rated bytes use \
             up the rated cycles. The rates of the runs are assumed to stay constant. Not modelled: a write buffer that fills later, and a \
             drive that leaves its initial state (a fresh drive fills up; sequential writes undo the effect of random writes).",
            load.source,
            conditions.host.id,
            conditions.state.name(),
            seeds(conditions.seed, conditions.seeds),
        );
        lines.push(paragraph("", &how, width));
    }
    let drives = answers.iter();
    let drives = drives.map(|one| (&*one.drive, one.model, &*one.model_text));
    known_and_again(lines, drives, command, width)
}

/// Returns everything as JSON.
pub fn json(answers: &[LifeAnswer], conditions: &Conditions, command: &str) -> Value {
    let asked = json!({
        "host": conditions.host.id,
        "state": conditions.state.name(),
        "seed": conditions.seed,
        "seeds": conditions.seeds,
    });
    document("drivelab life", command, &asked, &answers)
}
