//! Recommended drive: `drivelab choose`.

use serde_json::{Value, json};
use study::decide::binds::Binds;
use study::decide::choose::{Candidate, ChooseAnswer, ChooseRequest};
use study::decide::likeness::Replacements;
use study::decide::slc::SlcUse;
use study::decide::syncs::Syncs;
use study::decide::work::LoadFacts;
use text::digits::{count, digits, duration, microseconds};
use text::terminal::{Width, paragraph};

use super::phrases::kind_of_costly_cycles;
use super::replacement::ratios;
pub use super::replacement::replacement;
use super::sentences::unknown;
pub use super::sentences::{LENGTH, answer};
use super::table::{AnswerColumn, AnswerTable};
use super::{document, model, or_none, percent, range, reading_within, seeds};

/// Returns p99 with its range over seeds.
fn p99(one: &Candidate) -> String {
    match (one.p99_us, one.p99_us_by_seed) {
        (None, _) => String::from("-"),
        (Some(value), None) => microseconds(value),
        (Some(value), Some([least, most])) => range([value, least, most], microseconds),
    }
}

/// Returns the costs that are included besides the drives.
fn cost_label(request: &ChooseRequest) -> &'static str {
    let prices = request.prices.as_ref();
    match prices.map(|prices| (prices.kwh.is_some(), prices.place.is_some())) {
        Some((true, true)) => "with power and place",
        Some((true, false)) => "with power",
        Some((false, true)) => "with place",
        _ => "in all",
    }
}

/// Returns whether a run ended within an SLC cache or was counted after it, and the cache's size.
fn slc_cache(cache: SlcUse) -> String {
    let when = if cache.is_within { "within" } else { "after" };
    format!("{when} {} GB", digits(cache.gb))
}

/// Returns a figure with the one that cycles decide, if there is one.
fn and_by_cycles(figure: String, by_cycles: Option<String>) -> String {
    match by_cycles {
        Some(other) => format!("{figure} ({other})"),
        None => figure,
    }
}

/// Returns whether a drive meets the limits, as text.
const fn meets(meets: Option<bool>) -> &'static str {
    match meets {
        Some(true) => "yes",
        Some(false) => "no",
        None => "not run in full",
    }
}

/// Columns that only some answers have.
struct OptionalColumns<'a> {
    request: &'a ChooseRequest,
    /// Arrival rate in I/Os per second.
    paced: Option<f64>,
    own_maximum: bool,
    binds: bool,
    cache: bool,
    pools: bool,
}

impl OptionalColumns<'_> {
    fn header(&self) -> Vec<AnswerColumn> {
        let request = self.request;
        let words = |name: &str| AnswerColumn::words(name);
        let figures = |name: &str| AnswerColumn::figures(name);
        let mut header = vec![words("drive"), words("meets").headed("meets the limits")];
        let limits = request.slo.limits.iter();
        header.extend(limits.map(|limit| figures(&limit.text)));
        header.push(figures("room").headed("room to the limit"));
        header.push(figures(match self.own_maximum {
            true => "IOPS at most",
            false => "IOPS",
        }));
        let paced = self.paced.map(|rate| format!("of {}/s", count(rate)));
        header.extend(paced.map(AnswerColumn::figures));
        header.extend([
            figures("p99"),
            figures("W").headed("power, W"),
            figures("IOPS/W"),
            figures("years").headed("years to the rating"),
        ]);
        if request.prices.is_some() {
            header.extend([
                figures("USD"),
                figures("drives").headed("drives bought"),
                AnswerColumn::figures(format!(
                    "{}, {} y",
                    cost_label(request),
                    digits(request.years)
                )),
                figures("USD/year"),
            ]);
        }
        header.extend(self.binds.then(|| words("limited by")));
        header.extend(self.cache.then(|| words("SLC cache")));
        header.push(words("model"));
        header.extend(self.pools.then(|| words("promise")));
        header
    }

    fn row(&self, one: &Candidate) -> Vec<String> {
        let none = || String::from("-");
        let mut cells = vec![one.drive.clone(), String::from(meets(one.meets))];
        cells.extend(one.readings.iter().map(reading_within));
        let (iops, [least, most]) = match &one.own_maximum {
            Some(own) => (own.iops, own.iops_by_seed),
            None => (one.iops, one.iops_by_seed),
        };
        let room = |room| format!("{:.0} %", room * 100.0);
        cells.push(one.room.map_or_else(none, room));
        cells.push(range([iops, least, most], count));
        cells.extend(self.paced.map(|_| percent(one.completes)));
        cells.extend([
            p99(one),
            or_none(one.watts),
            one.iops_per_watt.map_or_else(none, count),
            or_none(one.years),
        ]);
        if self.request.prices.is_some() {
            let by_cycles = one.usd_in_all_by_cycles;
            let a_year = by_cycles.map(|usd| digits(usd / self.request.years));
            let bought = one.drives_bought_by_cycles.map(|more| more.to_string());
            cells.extend([
                or_none(one.usd),
                and_by_cycles(one.drives_bought.to_string(), bought),
                and_by_cycles(or_none(one.usd_in_all), by_cycles.map(digits)),
                and_by_cycles(or_none(one.usd_per_year), a_year),
            ]);
        }
        if self.binds {
            cells.push(one.binds.map_or("-", Binds::words).to_owned());
        }
        if self.cache {
            cells.push(one.slc_cache.map_or_else(none, slc_cache));
        }
        cells.push(one.model.to_owned());
        if self.pools {
            cells.push(one.promise.clone().unwrap_or_default());
        }
        cells
    }
}

/// Returns a table with a line for each candidate.
pub fn tables(
    request: &ChooseRequest,
    answer: &ChooseAnswer,
    like: Option<&Replacements>,
) -> Vec<AnswerTable> {
    let any = |has: fn(&Candidate) -> bool| answer.candidates.iter().any(has);
    let columns = OptionalColumns {
        request,
        paced: request.load.offered_iops(),
        own_maximum: any(|one| one.own_maximum.is_some()),
        binds: any(|one| one.binds.is_some()),
        cache: any(|one| one.slc_cache.is_some()),
        pools: any(|one| one.promise.is_some()),
    };
    let mut table = AnswerTable::new("Figures of each drive", 1, columns.header());
    for one in &answer.candidates {
        table.add(columns.row(one));
    }
    let ratios = like.map(ratios);
    ratios.into_iter().chain([table]).collect()
}

/// Returns the counted time of a job, as the end of a sentence.
pub(super) fn counted(facts: &LoadFacts) -> String {
    match (facts.extended_seconds, facts.at_most_seconds) {
        (Some(seconds), _) => format!(
            "; a job is counted for {} of virtual time, as few I/Os arrive",
            duration(seconds)
        ),
        (None, Some(most)) => format!(
            "; a job is counted for {} s (--runtime), longer on slow drives",
            digits(most)
        ),
        (None, None) => String::new(),
    }
}

/// Returns what costs in parentheses are, if there are some.
fn costs_by_cycles(request: &ChooseRequest, answer: &ChooseAnswer) -> String {
    let mut costly = answer
        .candidates
        .iter()
        .filter(|one| request.prices.is_some() && one.drives_bought_by_cycles.is_some())
        .map(|one| kind_of_costly_cycles(one, request.years))
        .peekable();
    let has_cycles = costly.peek().is_some();
    let kind = if costly.all(|kind| kind == "rated") {
        "rated"
    } else {
        "assumed"
    };
    match has_cycles {
        true => format!(
            " In parentheses: if {kind} cycles decide, which end much earlier than the rating."
        ),
        false => String::new(),
    }
}

/// Returns the method.
pub fn method(
    request: &ChooseRequest,
    answer: &ChooseAnswer,
    command: &str,
    width: Width,
) -> String {
    let mut lines = Vec::new();
    for unfit in &answer.unfit {
        lines.push(paragraph(
            &format!("{} did not run: ", unfit.drive),
            &unfit.why,
            width,
        ));
    }
    let facts = request.facts();
    let cut = counted(&facts);
    let pace = match (request.load.offered_iops(), request.load.is_trace()) {
        (Some(rate), _) => format!(
            " Every drive is asked for {} IOPS (open loop, Poisson arrivals); one that completes less than 97 % of them does not keep \
             up.",
            count(rate)
        ),
        (None, true) => String::new(),
        (None, false) => String::from(
            " Each drive runs at its own maximum: a faster one is written more and lasts shorter; --rate 50k asks all for the same.",
        ),
    };
    let screened = answer.candidates.iter().filter(|one| one.screened).count();
    let short = match screened {
        0 => String::new(),
        some => format!(
            " A short run of each drive came first: {some} drives are far from the best by every criterion or clearly miss a limit, and \
             their lines are of that run. A command that names a drive without --all runs it in full."
        ),
    };
    let conditions = &request.conditions;
    let by_cycles = costs_by_cycles(request, answer);
    let usd = match &request.prices {
        None => " No prices were given (--usd prices.toml), so there is no cost.",
        Some(_) => {
            " A drive without a price in your file has no cost; \"drives\" is how many are bought in these years, as worn ones are \
             replaced."
        }
    };
    let how = format!(
        "{} on {}, drives {} at the start, {}{cut}.{short}{pace} \"room\" is the distance to the nearest limit, which each seed must meet. Years are the time to the rated \
         endurance at this load, for a pool that of its weakest member.{usd}{by_cycles}",
        facts.source,
        conditions.host.id,
        conditions.state.name(),
        seeds(conditions.seed, conditions.seeds),
    );
    lines.push(paragraph("", &how, width));
    // If no candidate is within the limits, the answer states that.
    if answer.candidates.iter().any(Candidate::is_met) {
        lines.extend(unknown(answer).map(|unknown| paragraph("", &unknown, width)));
    }
    lines.extend(
        answer
            .named()
            .map(|one| model(&one.drive, one.model, &one.model_text, width)),
    );
    lines.push(format!("Repeat: {command}"));
    lines.join("\n")
}

/// Returns everything as JSON.
pub fn json(
    request: &ChooseRequest,
    answer: &ChooseAnswer,
    like: Option<&Replacements>,
    command: &str,
) -> Value {
    let asked = json!({
        "load": request.facts(),
        "slo": request.slo.limits,
        "years": request.years,
        "host": request.conditions.host.id,
        "state": request.conditions.state.name(),
        "seed": request.conditions.seed,
        "seeds": request.conditions.seeds,
    });
    let mut json = document("drivelab choose", command, &asked, &answer);
    // As in the answer to `--zilstat` without a run.
    if let Some(Syncs::Share(share)) = answer.syncs {
        json["synchronous_share"] = json!(share);
    }
    if let Some(like) = like {
        json["like"] = json!(like);
    }
    json
}
