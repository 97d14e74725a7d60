//! Lines of decisions.

use serde::Serialize;

use super::Table;
use study::decide::check;
use study::decide::choose;
use study::decide::explain;
use study::decide::failure_rates::DriveClass;
use study::decide::fill;
use study::decide::life;
use study::decide::load::Height;
use study::decide::max::MaxAnswer;
use study::decide::mix;
use study::decide::odds;
use study::decide::size;
use study::decide::table_of_s3::TableRow;

/// A load that was tried, with one limit.
#[derive(Clone, Debug, Serialize)]
struct TriedLoadRow<'a> {
    drive: &'a str,
    model: &'a str,
    #[serde(rename = "loop")]
    name: &'a str,
    arrivals_per_second: Option<f64>,
    in_flight: Option<u32>,
    iops: f64,
    seeds_within: u32,
    seeds: u32,
    answer: bool,
    limit: &'a str,
    value: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    met: Option<bool>,
}

/// Returns a line for each load that `max` tried and each limit; `value` is in the limit's own unit (latencies in
/// microseconds).
pub fn max(answers: &[MaxAnswer]) -> Table {
    let mut lines = Vec::new();
    for answer in answers {
        for (name, highest) in [("open", &answer.open), ("closed", &answer.closed)] {
            let at = highest.at.as_ref().map(|at| at.height);
            for tried in &highest.tried {
                let (arrivals, depth) = match tried.height {
                    Height::Arrivals(rate) => (Some(rate), None),
                    Height::InFlight(depth) => (None, Some(depth)),
                };
                lines.extend(tried.readings.iter().map(|reading| TriedLoadRow {
                    drive: &answer.drive,
                    model: answer.model,
                    name,
                    arrivals_per_second: arrivals,
                    in_flight: depth,
                    iops: tried.iops,
                    seeds_within: tried.within[0],
                    seeds: tried.within[1],
                    answer: at == Some(tried.height),
                    limit: &reading.limit,
                    value: reading.value,
                    low: reading.interval.map(|ends| ends[0]),
                    high: reading.interval.map(|ends| ends[1]),
                    met: reading.met,
                }));
            }
        }
    }
    Table::from_rows(lines)
}

/// A pool and a kind of drive in it.
#[derive(Clone, Debug, Serialize)]
struct Odds<'a> {
    pool: &'a str,
    usable_bytes: u64,
    losses_per_year: f64,
    losses_per_year_low: f64,
    losses_per_year_high: f64,
    crash_losses_per_year: Option<f64>,
    unreadable_per_year: Option<f64>,
    unreadable_per_year_low: Option<f64>,
    unreadable_per_year_high: Option<f64>,
    years: Option<f64>,
    loss_in_years: Option<f64>,
    loss_in_years_low: Option<f64>,
    loss_in_years_high: Option<f64>,
    cause_drives: usize,
    cause_crash: bool,
    cause_share: f64,
    drive: &'a str,
    count: usize,
    class: Option<&'static str>,
    failures_per_year: f64,
    failures_per_year_low: f64,
    failures_per_year_high: f64,
    rebuild_seconds: f64,
}

/// A line for each kind of drive of each pool of `odds`.
pub fn odds(answers: &[odds::OddsAnswer]) -> Table {
    let kinds = answers
        .iter()
        .flat_map(|answer| answer.drives.iter().map(move |kind| (answer, kind)));
    Table::from_rows(kinds.map(|(answer, kind)| Odds {
        pool: &answer.drive,
        usable_bytes: answer.usable_bytes,
        losses_per_year: answer.losses[0],
        losses_per_year_low: answer.losses[1],
        losses_per_year_high: answer.losses[2],
        crash_losses_per_year: answer.crash_losses.map(|rates| rates[0]),
        unreadable_per_year: answer.unreadable.map(|rates| rates[0]),
        unreadable_per_year_low: answer.unreadable.map(|rates| rates[1]),
        unreadable_per_year_high: answer.unreadable.map(|rates| rates[2]),
        years: answer.over.map(|over| over.years),
        loss_in_years: answer.over.map(|over| over.losses[0]),
        loss_in_years_low: answer.over.map(|over| over.losses[1]),
        loss_in_years_high: answer.over.map(|over| over.losses[2]),
        cause_drives: answer.cause.drives,
        cause_crash: answer.cause.crash,
        cause_share: answer.cause.share,
        drive: &kind.drive,
        count: kind.count,
        class: kind.class.map(DriveClass::name),
        failures_per_year: kind.failures[0],
        failures_per_year_low: kind.failures[1],
        failures_per_year_high: kind.failures[2],
        rebuild_seconds: kind.rebuild_seconds,
    }))
}

/// A mix of a drive.
#[derive(Clone, Debug, Serialize)]
struct MixRow<'a> {
    drive: &'a str,
    model: &'a str,
    read_percent: u32,
    iops: f64,
    iops_low: f64,
    iops_high: f64,
    mb_s: f64,
    read_mean_us: Option<f64>,
    read_p99_us: Option<f64>,
    read_p99_9_us: Option<f64>,
    write_mean_us: Option<f64>,
    write_p99_us: Option<f64>,
    write_p99_9_us: Option<f64>,
    of_ends: Option<f64>,
}

/// Returns a line for each mix of `mix`.
pub fn mix(answers: &[mix::MixAnswer]) -> Table {
    let points = answers
        .iter()
        .flat_map(|answer| answer.points.iter().map(move |point| (answer, point)));
    Table::from_rows(points.map(|(answer, point)| MixRow {
        drive: &answer.drive,
        model: answer.model,
        read_percent: point.read_percent,
        iops: point.iops[0],
        iops_low: point.iops[1],
        iops_high: point.iops[2],
        mb_s: point.mb_s,
        read_mean_us: point.read.map(|it| it.mean_us),
        read_p99_us: point.read.and_then(|it| it.p99_us),
        read_p99_9_us: point.read.and_then(|it| it.p99_9_us),
        write_mean_us: point.write.map(|it| it.mean_us),
        write_p99_us: point.write.and_then(|it| it.p99_us),
        write_p99_9_us: point.write.and_then(|it| it.p99_9_us),
        of_ends: point.of_ends,
    }))
}

/// A piece of the data written to a drive.
#[derive(Clone, Debug, Serialize)]
struct FillRow<'a> {
    drive: &'a str,
    model: &'a str,
    used_percent: u32,
    written_gb: f64,
    seconds: f64,
    mb_s: f64,
}

/// Returns a line for each piece that `fill` wrote, for the first seed.
pub fn fill(answers: &[fill::FillAnswer]) -> Table {
    let states = answers
        .iter()
        .flat_map(|answer| answer.at.iter().map(move |one| (answer, one)));
    let pieces = states.flat_map(|(answer, one)| {
        one.curve.iter().map(move |piece| FillRow {
            drive: &answer.drive,
            model: answer.model,
            used_percent: one.used_percent,
            written_gb: piece.gb,
            seconds: piece.seconds,
            mb_s: piece.mb_s,
        })
    });
    Table::from_rows(pieces)
}

/// A measured run, with one case of its model.
#[derive(Clone, Debug, Serialize)]
struct ExplainRow<'a> {
    run: &'a str,
    drive: Option<&'a str>,
    model: Option<&'a str>,
    bound_by: &'a str,
    kind: &'a str,
    key: &'a str,
    what: &'a str,
    iops: f64,
    iops_low: Option<f64>,
    iops_high: Option<f64>,
    mean_us: Option<f64>,
    factor: Option<f64>,
    distance: Option<f64>,
    explains: bool,
    rated_iops: Option<f64>,
}

/// Returns a line for each measured run, and one for each case that its model ran: as measured, under a condition,
/// without an option.
pub fn explain(answers: &[explain::answer::ExplainAnswer]) -> Table {
    let mut lines = Vec::new();
    for answer in answers {
        let model = answer.model.as_ref();
        let measured = ExplainRow {
            run: &answer.run,
            drive: model.map(|model| &*model.drive),
            model: model.map(|model| model.model),
            bound_by: answer.bound.by,
            kind: "measured",
            key: "measured",
            what: "measured",
            iops: answer.measured.iops,
            iops_low: None,
            iops_high: None,
            mean_us: None,
            factor: None,
            distance: None,
            explains: false,
            rated_iops: model.and_then(|model| Some(model.rating.as_ref()?.iops)),
        };
        lines.push(measured.clone());
        let Some(model) = model else {
            continue;
        };
        let cases = std::iter::once(("as asked", &model.as_asked))
            .chain(model.conditions.iter().map(|trial| ("condition", trial)))
            .chain(model.options.iter().map(|trial| ("option", trial)));
        lines.extend(cases.map(|(kind, trial)| ExplainRow {
            kind,
            key: &trial.key,
            what: &trial.what,
            iops: trial.iops,
            iops_low: Some(trial.iops_by_seed[0]),
            iops_high: Some(trial.iops_by_seed[1]),
            mean_us: trial.mean_us,
            factor: Some(trial.factor),
            distance: trial.distance,
            explains: kind == "condition" && model.explained_by.contains(&trial.key),
            ..measured.clone()
        }));
    }
    Table::from_rows(lines)
}

/// A drive, or a member of a pool.
#[derive(Clone, Debug, Serialize)]
struct Life<'a> {
    drive: &'a str,
    model: &'a str,
    part: &'a str,
    part_drive: &'a str,
    capacity_bytes: u64,
    rated_tb: Option<f64>,
    rated_dwpd: Option<f64>,
    lasting_mb_s: Option<f64>,
    written_mb_s: Option<f64>,
    written_mb_s_low: Option<f64>,
    written_mb_s_high: Option<f64>,
    written_dwpd: Option<f64>,
    written_tb: Option<f64>,
    years: f64,
    write_amplification: Option<f64>,
    write_amplification_low: Option<f64>,
    write_amplification_high: Option<f64>,
    rated_write_amplification: Option<f64>,
    years_to_rating: Option<f64>,
    used_percent: f64,
    used_percent_in_a_year: Option<f64>,
    day_of_100_percent: Option<f64>,
    day_of_105_percent: Option<f64>,
}

/// Returns a line for each drive, or member of a pool.
pub fn life(answers: &[life::LifeAnswer]) -> Table {
    let parts = answers
        .iter()
        .flat_map(|answer| answer.parts.iter().map(move |part| (answer, part)));
    Table::from_rows(parts.map(|(answer, part)| {
        let (rating, written) = (part.rating.as_ref(), part.written.as_ref());
        let rate = |index: usize| written.map(|written| written.mb_s[index]);
        let amplification = |index: usize| Some(written?.write_amplification?[index]);
        let cycles = part.cycles.as_ref();
        Life {
            drive: &answer.drive,
            model: answer.model,
            part: &part.name,
            part_drive: &part.drive,
            capacity_bytes: part.capacity_bytes,
            rated_tb: rating.map(|rating| rating.tbw),
            rated_dwpd: rating.and_then(|rating| rating.dwpd),
            lasting_mb_s: rating.map(|rating| rating.lasting_mb_s),
            written_mb_s: rate(0),
            written_mb_s_low: rate(1),
            written_mb_s_high: rate(2),
            written_dwpd: written.map(|written| written.dwpd),
            written_tb: written.map(|written| written.tbw),
            years: answer.years,
            write_amplification: amplification(0),
            write_amplification_low: amplification(1),
            write_amplification_high: amplification(2),
            rated_write_amplification: cycles.and_then(|cycles| cycles.rated_write_amplification),
            years_to_rating: written.and_then(|written| written.years_to_rating),
            used_percent: part.used_percent,
            used_percent_in_a_year: part.used_percent_a_year,
            day_of_100_percent: part.passes.first().map(|pass| pass.day),
            day_of_105_percent: part.passes.get(1).map(|pass| pass.day),
        }
    }))
}

/// Returns a line for each row of S3's Table 1.
pub fn table_of_s3(rows: &[TableRow]) -> Table {
    Table::from_rows(rows)
}

/// A candidate, with one limit.
#[derive(Clone, Debug, Serialize)]
struct CandidateRow<'a> {
    drive: &'a str,
    model: &'a str,
    meets: Option<bool>,
    limit: Option<&'a str>,
    value: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    room: Option<f64>,
    iops: f64,
    iops_low: f64,
    iops_high: f64,
    p99_us: Option<f64>,
    watts: Option<f64>,
    iops_per_watt: Option<f64>,
    years: Option<f64>,
    usd: Option<f64>,
    usd_with_power: Option<f64>,
    usd_per_year: Option<f64>,
    drives_bought: u64,
    drives_bought_by_cycles: Option<u64>,
    usd_with_power_by_cycles: Option<f64>,
    no_longer_made: Option<&'a str>,
    ends_after_years: Option<f64>,
    completes: Option<f64>,
    own_maximum_iops: Option<f64>,
    limited_by: Option<&'static str>,
    screened: bool,
}

/// Returns a line for each candidate and limit; one for each candidate if there are no limits.
pub fn choose(answer: &choose::ChooseAnswer) -> Table {
    let mut lines = Vec::new();
    for one in &answer.candidates {
        let readings = one.readings.iter().map(Some);
        let none = one.readings.is_empty().then_some(None);
        for reading in readings.chain(none) {
            lines.push(CandidateRow {
                drive: &one.drive,
                model: one.model,
                meets: one.meets,
                limit: reading.map(|reading| &*reading.limit),
                value: reading.and_then(|reading| reading.value),
                low: reading.and_then(|reading| Some(reading.interval?[0])),
                high: reading.and_then(|reading| Some(reading.interval?[1])),
                room: reading.and_then(|reading| reading.room),
                iops: one.iops,
                iops_low: one.iops_by_seed[0],
                iops_high: one.iops_by_seed[1],
                p99_us: one.p99_us,
                watts: one.watts,
                iops_per_watt: one.iops_per_watt,
                years: one.years,
                usd: one.usd,
                usd_with_power: one.usd_in_all,
                usd_per_year: one.usd_per_year,
                drives_bought: one.drives_bought,
                drives_bought_by_cycles: one.drives_bought_by_cycles,
                usd_with_power_by_cycles: one.usd_in_all_by_cycles,
                no_longer_made: one.no_longer_made.as_ref().map(|old| &*old.until),
                ends_after_years: one.ends_after_years,
                completes: one.completes,
                own_maximum_iops: one.own_maximum.as_ref().map(|most| most.iops),
                limited_by: one.binds.map(study::decide::binds::Binds::words),
                screened: one.screened,
            });
        }
    }
    Table::from_rows(lines)
}

/// A drive, with one figure.
#[derive(Clone, Debug, Serialize)]
struct CheckRow<'a> {
    drive: &'a str,
    model: &'a str,
    passes: Option<bool>,
    figure: &'a str,
    unit: &'a str,
    value: Option<f64>,
    least_seed: Option<f64>,
    greatest_seed: Option<f64>,
    met: Option<bool>,
}

/// Returns a line for each drive and each figure of a check, those of the minimum first.
pub fn check(answers: &[check::CheckAnswer]) -> Table {
    let all = answers.iter().flat_map(|answer| {
        let figures = answer.minimum.iter().chain(&answer.figures);
        figures.map(move |one| (answer, one))
    });
    Table::from_rows(all.map(|(answer, one)| CheckRow {
        drive: &answer.drive,
        model: answer.model,
        passes: answer.passes,
        figure: &one.reading.limit,
        unit: one.reading.unit,
        value: one.reading.value,
        least_seed: one.by_seed.map(|ends| ends[0]),
        greatest_seed: one.by_seed.map(|ends| ends[1]),
        met: one.reading.met,
    }))
}

/// A size of a log, buffer or cache.
#[derive(Clone, Debug, Serialize)]
struct SizeRow<'a> {
    drive: &'a str,
    model: &'a str,
    bytes: u64,
    never_full: Option<bool>,
    most_held_bytes: Option<f64>,
    most_held_bytes_least_seed: Option<f64>,
    most_held_bytes_greatest_seed: Option<f64>,
    never_pressed: Option<bool>,
    pressed_seconds: Option<f64>,
    pressed_seconds_least_seed: Option<f64>,
    pressed_seconds_greatest_seed: Option<f64>,
    hits: Option<f64>,
    hits_least_seed: Option<f64>,
    hits_greatest_seed: Option<f64>,
    hits_by_arithmetic: Option<f64>,
    iops: f64,
    iops_least_seed: f64,
    iops_greatest_seed: f64,
    p99_us: Option<f64>,
    meets: bool,
}

/// Returns a line for each drive and size.
pub fn size(answers: &[size::SizeAnswer]) -> Table {
    let rows = answers.iter().flat_map(|answer| {
        let rows = answer.rows.iter();
        rows.map(move |row| (answer, row))
    });
    Table::from_rows(rows.map(|(answer, row)| SizeRow {
        drive: &answer.drive,
        model: answer.model,
        bytes: row.bytes,
        never_full: row.never_full,
        most_held_bytes: answer.most_held_bytes.map(|it| it[0]),
        most_held_bytes_least_seed: answer.most_held_bytes.map(|it| it[1]),
        most_held_bytes_greatest_seed: answer.most_held_bytes.map(|it| it[2]),
        never_pressed: row.never_pressed,
        pressed_seconds: row.pressed_seconds.map(|it| it[0]),
        pressed_seconds_least_seed: row.pressed_seconds.map(|it| it[1]),
        pressed_seconds_greatest_seed: row.pressed_seconds.map(|it| it[2]),
        hits: row.hits.map(|hits| hits[0]),
        hits_least_seed: row.hits.map(|hits| hits[1]),
        hits_greatest_seed: row.hits.map(|hits| hits[2]),
        hits_by_arithmetic: row.hits_by_arithmetic,
        iops: row.iops[0],
        iops_least_seed: row.iops[1],
        iops_greatest_seed: row.iops[2],
        p99_us: row.p99_us,
        meets: row.meets,
    }))
}
