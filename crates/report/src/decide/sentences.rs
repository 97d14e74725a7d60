//! The answer of `drivelab choose` in sentences: the first is the verdict, with at most [`LENGTH`] characters.

use study::decide::choose::{
    BestCandidate, Candidate, ChooseAnswer, ChooseRequest, Measure, NAMED, reads,
};
use study::decide::screening::misses;
use study::decide::syncs::Syncs;
use study::decide::work::IN_MEMORY;
use text::digits::{count, digits, duration, megabytes_a_second};

use super::ends::{candidate_cycles, itself, years_of};
pub use super::headline::LENGTH;
use super::headline::{first_that_fits, named_with, some_of};
use super::phrases::{
    ChosenRate, best_figure, chosen_rate, dated, figure, limits, made_until, none_lasts,
    selection_text, unranked, without_figure, words,
};
use super::tied::{at_own_maximum, or_ties, tied, ties, worn};
use super::{percent, reading};

/// Returns the verdict, then ties over seeds, the best by other criteria, and what the runs do not show.
pub fn answer(request: &ChooseRequest, answer: &ChooseAnswer, by: Measure) -> Vec<String> {
    let meets = answer.candidates.iter().any(Candidate::is_met);
    let mut lines = vec![match meets {
        true => verdict(request, answer, by),
        false => none_meets(request, answer),
    }];
    if !meets {
        lines.extend(unknown(answer));
        return lines;
    }
    match answer.best_by(by) {
        Some(best) => {
            let worn = worn(request, answer, best);
            let brief = without_term(request, &worn);
            let is_said = |line: &String| line.contains(worn.trim()) || line.contains(brief.trim());
            if !lines.iter().any(is_said) {
                lines.push(worn.trim().to_owned());
            }
            lines.extend(answer.candidate(&best.drive).and_then(itself));
            lines.extend(costs_by_cycles(request, answer, best));
            let within = selection_text(request, answer);
            if !lines.iter().any(|line| line.contains(&within)) {
                lines.push(format!("Of these drives: {within}."));
            }
            lines.extend(ample_room(request, answer));
            let no_p99 = request.load.offered_iops().is_some() && answer.best_by(Measure::P99).is_none();
            lines.extend(no_p99.then(|| {
                String::from("Too few I/Os completed to know p99 of any drive that meets the limits, so p99 does not rank them.")
            }));
            lines.extend(missing(answer, by).filter(|_| !lines[0].contains(&unranked(answer, by))));
            lines.extend(old(answer, best).filter(|_| !lines[0].contains("no longer made")));
            lines.extend(ties(request, best));
        }
        None if by == Measure::P99 => lines.push(String::from(
            "Too few reads, writes or syncs; a limit on one direction, such as read.p99<1ms, has its own column.",
        )),
        None => {}
    }
    lines.extend(not_in_full(request, answer));
    lines.extend(binds(answer));
    lines.extend(others(request, answer, by));
    // The verdict already names the cache of a single best drive.
    let has_cache = lines.iter().any(|line| line.contains(WITHIN));
    let is_new = |line: &String| !has_cache || !line.contains(WITHIN);
    lines.extend(remarks(answer).into_iter().filter(is_new));
    if answer.syncs.is_some() && reads(&request.load.user_workload().workload) {
        lines.push(String::from(
            "p99 is that of syncs, or of writes if there are none: a log does not change reads.",
        ));
    }
    if answer.syncs == Some(Syncs::NotRecorded) {
        lines.push(String::from(
            "It is unknown whether this trace needs a log: its format records no flushes, so all its writes run as asynchronous.",
        ));
    }
    lines
}

/// Returns what the runs do not show: full buffers, full memory, and full caches.
pub(super) fn remarks(answer: &ChooseAnswer) -> Vec<String> {
    let all = [
        buffers(answer),
        in_memory(answer),
        has_files(answer),
        cold_caches(answer),
        after_cache_note(answer),
        within_cache_note(answer),
    ];
    all.into_iter().flatten().collect()
}

/// Returns a note on the drives with a short run only: how many clearly miss a limit, and how many may meet all.
fn not_in_full(request: &ChooseRequest, answer: &ChooseAnswer) -> Option<String> {
    let short: Vec<&Candidate> = answer
        .candidates
        .iter()
        .filter(|one| one.screened)
        .collect();
    if short.is_empty() || request.slo.limits.is_empty() && request.load.offered_iops().is_none() {
        return None;
    }
    let offered = request.load.offered_iops();
    let miss = short.iter().filter(|one| misses(one, offered)).count();
    let may = short.len() - miss;
    let drives = |count: usize| match count {
        1 => String::from("1 drive"),
        more => format!("{more} drives"),
    };
    Some(format!(
        "{} only ran briefly: {miss} clearly miss a limit, and {may} may meet them all but are far from the best by every \
         criterion. Name a drive to run it in full.",
        drives(short.len())
    ))
}

/// Returns the answer on a load that does not use a log, and its synchronous share; `None` if it uses one, or this is
/// not known.
pub fn needs_no_log(source: &str, syncs: Syncs) -> Option<(String, f64)> {
    let (Syncs::Share(share), true) = (syncs, syncs.needs_no_log()) else {
        return None;
    };
    let why = match share > 0.0 {
        true => format!("{} % of all here", digits(share * 100.0)),
        false => String::from("and this load has none"),
    };
    let said =
        format!("You need no log for {source}: a log stores only synchronous writes, {why}.");
    Some((said, share))
}

/// Returns when the cheapest drive ends by its cycles, and which is the cheapest if cycles decide.
fn costs_by_cycles(
    request: &ChooseRequest,
    answer: &ChooseAnswer,
    best: &BestCandidate,
) -> Option<String> {
    let met = answer.candidates.iter().filter(|one| one.is_met());
    let cost = |one: &Candidate| one.usd_in_all_by_cycles.or(one.usd_in_all);
    let cheapest = met
        .filter_map(|one| Some((one, cost(one)?)))
        .min_by(|a, b| a.1.total_cmp(&b.1))?;
    let one = answer.candidate(&best.drive)?;
    one.usd_in_all_by_cycles
        .filter(|_| best.by == Measure::Usd)?;
    let (member, used) = candidate_cycles(one, request.years)?;
    let rating = match one.ends_within(request.years) {
        Some(years) => format!(" and reaches its rating after {}", years_of(years)),
        None => format!("; its rating lasts the {} years", digits(request.years)),
    };
    let who = member.map_or_else(
        || one.drive.clone(),
        |member| format!("Member {member} of {}", one.drive),
    );
    let other = match cheapest.0.drive == one.drive {
        true => String::from(" It is the cheapest in both cases."),
        false => format!(
            " If cycles decide, {} is the cheapest: {}.",
            cheapest.0.drive,
            figure(request, Measure::Usd, cheapest.1)
        ),
    };
    Some(format!("{who} {used}{rating}.{other}"))
}

/// Returns why p99 does not rank drives with ample room.
fn ample_room(request: &ChooseRequest, answer: &ChooseAnswer) -> Option<String> {
    let ample = answer.ample_room.as_ref()?;
    let is_limited = request.slo.limits.iter().any(|it| it.figure.is_latency());
    let why = match ample.busy {
        None if !is_limited => String::from("Sequential writes at a rate ask for bandwidth"),
        Some(busy) => format!(
            "No part of these drives is busy for more than {} of the time",
            percent(Some(busy))
        ),
        None => String::from("Their latency is at most half of each limit"),
    };
    Some(format!(
        "{why}, so {} ranks them; --by p99 ranks by latency.",
        match ample.by {
            Measure::Years => "their life",
            by => words(request, by),
        }
    ))
}

/// Returns the drives that meet the limits and have no figure for a criterion.
fn missing(answer: &ChooseAnswer, by: Measure) -> Option<String> {
    let (what, all) = without_figure(answer, by)?;
    let names: Vec<String> = all.iter().map(|one| one.drive.clone()).collect();
    Some(format!(
        "Not ranked, as there is no {what}: {}.",
        some_of(&names, NAMED)
    ))
}

/// Returns the drives of the verdict that are no longer made.
fn old(answer: &ChooseAnswer, best: &BestCandidate) -> Option<String> {
    let old = { best.names() }.filter_map(|name| dated(name, answer.candidate(name)?));
    let old: Vec<String> = old.collect();
    (!old.is_empty()).then(|| format!("No longer made: {}.", old.join(", ")))
}

/// Returns the statement of an end without the requested years: "It wears out after 273 days."
fn without_term(request: &ChooseRequest, worn: &str) -> String {
    worn.replace(&format!(" of the {} years", digits(request.years)), "")
}

fn verdict(request: &ChooseRequest, answer: &ChooseAnswer, by: Measure) -> String {
    let Some(best) = answer.best_by(by) else {
        return format!(
            "No drive can be ranked by {}: the value is not known of any drive that meets the limits.",
            by.words()
        );
    };
    if !best.ties.is_empty() {
        let ours = chosen_rate(request, answer);
        return tied(request, answer, best, ours.as_ref());
    }
    let model = answer.candidate(&best.drive).map_or("", |one| one.model);
    let made = answer.candidate(&best.drive).and_then(made_until);
    let name = named_with(&best.drive, model, made.as_deref());
    let head = match by {
        Measure::Years if best.value < request.years => none_lasts(request, &name, best.value),
        _ => format!(
            "Take {name} by {}: {}{}",
            words(request, by),
            best_figure(request, answer, best),
            slc_note(answer, &best.drive)
        ),
    };
    let worn = worn(request, answer, best);
    let drives: Vec<&Candidate> = answer.candidate(&best.drive).into_iter().collect();
    let at = at_own_maximum(request, &drives, by);
    let selection = selection_text(request, answer);
    let counted = format!("{selection}{}", unranked(answer, by));
    let ours = chosen_rate(request, answer);
    let brief = without_term(request, &worn);
    let with_rate = ours.iter().flat_map(|ChosenRate { iops, share }| {
        [
            format!("{head}, {selection} ({share} the fastest's maximum).{worn}"),
            format!("{head} at {iops} IOPS, {share} the fastest log's maximum.{worn}"),
            format!("{head} at {iops} IOPS, {share} the fastest log's maximum.{brief}"),
        ]
    });
    let without = [
        format!("{head}{at}, {counted}.{worn}"),
        format!("{head}, {counted}.{worn}"),
        format!("{head}{at}, {selection}.{worn}"),
        format!("{head}{at}, {selection}.{brief}"),
        format!("{head}{at}.{worn}"),
        format!("{head}, {selection}.{worn}"),
        format!("{head}.{worn}"),
    ];
    first_that_fits(with_rate.chain(without))
}

fn none_meets(request: &ChooseRequest, answer: &ChooseAnswer) -> String {
    let all = answer.candidates.len() + answer.unfit.len();
    if let Some(slow) = none_keeps_up(request, answer) {
        return slow;
    }
    let nearest = answer.nearest().map_or_else(String::new, |one| {
        format!(" Nearest: {}, {}.", one.drive, missed(one))
    });
    // An unknown figure counts neither as met nor as missed.
    let known = answer.candidates.iter();
    let known = known.filter(|one| one.readings.iter().any(|it| it.met == Some(false)));
    let none = match known.count() + answer.unfit.len() == all {
        true => format!("None of {all} stays within"),
        false => format!("None of {all} is known to stay within"),
    };
    first_that_fits([
        format!("{none} {}.{nearest}", limits(request)),
        format!("{none} all limits.{nearest}"),
        format!("{none} all limits."),
    ])
}

/// Returns a note if no drive completes the arriving I/Os.
fn none_keeps_up(request: &ChooseRequest, answer: &ChooseAnswer) -> Option<String> {
    let rate = request.load.offered_iops()?;
    let known = answer.candidates.iter();
    let known = known.filter_map(|one| Some((one, one.completes?)));
    let (most, _) = known.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let limits = !request.slo.limits.is_empty();
    let all_met = |one: &Candidate| one.readings.iter().all(|it| it.met == Some(true));
    if limits && answer.candidates.iter().any(all_met) {
        return None;
    }
    (!limits).then(|| {
        format!(
            "No drive keeps up with {} IOPS. Nearest: {}, which completes {} IOPS.",
            count(rate),
            most.drive,
            count(most.iops)
        )
    })
}

/// Returns the bottleneck of pools with an intent log.
fn binds(answer: &ChooseAnswer) -> Option<String> {
    let known = answer.candidates.iter();
    let known = known.filter_map(|one| Some(format!("{}: {}", one.drive, one.binds?.words())));
    let known: Vec<String> = known.collect();
    (!known.is_empty()).then(|| {
        format!(
            "Bottleneck of each at its own maximum: {}.",
            known.join("; ")
        )
    })
}

/// Returns the best candidates by the other criteria.
fn others(request: &ChooseRequest, answer: &ChooseAnswer, by: Measure) -> Option<String> {
    // At a given rate, IOPS only show whether drives kept up.
    let paced = request.load.offered_iops().is_some() || request.load.is_trace();
    let own = answer
        .candidates
        .iter()
        .any(|one| one.own_maximum.is_some());
    let says = |by: Measure| by != Measure::Iops || !paced || own;
    let others = answer
        .best
        .iter()
        .filter(|best| best.by != by && says(best.by));
    let others = others.map(|best| {
        format!(
            "by {}: {}{} ({})",
            words(request, best.by),
            best.drive,
            or_ties(best),
            best_figure(request, answer, best)
        )
    });
    let others: Vec<String> = others.collect();
    (!others.is_empty()).then(|| format!("Otherwise {}.", others.join("; ")))
}

/// Returns a note on pools that kept much of what was written in memory.
fn in_memory(answer: &ChooseAnswer) -> Option<String> {
    let known = answer.candidates.iter();
    let known = known.filter_map(|one| Some((one, one.stays_in_memory?)));
    let (one, share) = known
        .filter(|(_, share)| *share > IN_MEMORY)
        .max_by(|a, b| a.1.total_cmp(&b.1))?;
    Some(format!(
        "Not in steady state: {} of the measured writes stayed in the memory of {}, so its drives sustain a lower rate \
         (use a longer --runtime).",
        percent(Some(share)),
        one.drive
    ))
}

/// Returns a note on pools that ran with the files that the load reads.
fn has_files(answer: &ChooseAnswer) -> Option<String> {
    let mut all = answer.candidates.iter();
    all.any(|one| one.has_files_to_read)
        .then(|| String::from(HAS_FILES))
}

/// Note on pools that ran with the files that the load reads.
pub(super) const HAS_FILES: &str = "This load reads, so it ran on a pool with existing files, as with --overwrite (filled=true): a read of a new file would \
     find no data and cost no time.";

/// Returns a note on read caches that were empty at the start.
fn cold_caches(answer: &ChooseAnswer) -> Option<String> {
    let mut all = answer.candidates.iter();
    all.any(|one| one.starts_cold).then(|| {
        String::from(
            "Read caches are empty at the start, and few blocks are read twice in a short run. --trace, or `drivelab size \
             read-cache` with one, shows the share of hits; --runtime runs longer.",
        )
    })
}

const WITHIN: &str = "within its SLC cache";

/// Returns the cache that a candidate's run ended within, as an addition to a verdict.
fn slc_note(answer: &ChooseAnswer, drive: &str) -> String {
    let cache = answer.candidate(drive).and_then(|one| one.slc_cache);
    let cache = cache.filter(|cache| cache.is_within);
    cache.map_or_else(String::new, |cache| {
        format!(
            " {WITHIN} ({} GB; {} after it)",
            digits(cache.gb),
            megabytes_a_second(cache.after_mb_s)
        )
    })
}

/// Returns a note on drives whose runs ended within their SLC cache.
fn within_cache_note(answer: &ChooseAnswer) -> Option<String> {
    let within = answer
        .candidates
        .iter()
        .filter(|one| !slc_note(answer, &one.drive).is_empty());
    let within: Vec<String> = within
        .map(|one| format!("{}{}", one.drive, slc_note(answer, &one.drive)))
        .collect();
    (!within.is_empty())
        .then(|| format!("Measured within the SLC cache only: {}.", within.join(", ")))
}

/// Returns a note on drives whose runs were counted after their SLC cache was full.
fn after_cache_note(answer: &ChooseAnswer) -> Option<String> {
    let all = answer.candidates.iter();
    let after = all.filter_map(|one| Some((one, one.slc_cache.filter(|it| !it.is_within)?)));
    let after: Vec<String> = after
        .map(|(one, cache)| format!("{} ({} GB)", one.drive, digits(cache.gb)))
        .collect();
    (!after.is_empty()).then(|| {
        format!(
            "This load fills an SLC cache, so these drives were measured after theirs was full: {}.",
            after.join(", ")
        )
    })
}

/// Returns a note on write buffers that the runs did not fill.
fn buffers(answer: &ChooseAnswer) -> Option<String> {
    let full = answer.candidates.iter();
    let full = full.filter_map(|one| Some((&one.drive, one.buffer_full_seconds?)));
    let (drive, seconds) = full.min_by(|a, b| a.1.total_cmp(&b.1))?;
    Some(format!(
        "All this holds while write buffers have space. At this load the buffer of {drive} is full after {} if nothing is \
         destaged. Use --runtime to run longer; `drivelab size vsan-cache` shows when writes are held back.",
        duration(seconds)
    ))
}

/// Returns limits that are unknown for some candidates, and why.
pub(super) fn unknown(answer: &ChooseAnswer) -> Option<String> {
    // Short runs have few I/Os by design.
    let full = answer.candidates.iter().filter(|one| !one.screened);
    let readings = full.flat_map(|one| &one.readings);
    let mut few: Vec<(&str, &str)> = Vec::new();
    for one in readings.filter(|one| one.met.is_none()) {
        let found = (one.limit.as_str(), one.too_few.unwrap_or_default());
        if one.too_few.is_some() && !few.contains(&found) {
            few.push(found);
        }
    }
    let words = few.iter().map(|(limit, direction)| {
        format!("Too few {direction} to judge {limit}; limit one direction (read.p99) or a lower percentile.")
    });
    let words: Vec<String> = words.collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// Returns the limits that a candidate misses.
fn missed(candidate: &Candidate) -> String {
    let missed = candidate
        .readings
        .iter()
        .filter(|reading| reading.met != Some(true));
    let missed: Vec<String> = missed
        .map(|one| match one.value {
            Some(_) => format!("{} at {}", one.limit, reading(one)),
            None => format!("{} not known", one.limit),
        })
        .collect();
    missed.join(", ").replace(" !", "")
}
