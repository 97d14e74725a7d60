//! Analysis of a measured run: `drivelab explain`.

use serde_json::{Value, json};
use study::decide::explain::answer::{
    AGREES, ExplainAnswer, ExplainRequest, GAIN, ModelComparison, Trial,
};
use study::decide::explain::change::Change;
use study::decide::explain::depth::DepthAdvice;
use study::decide::explain::rating::PerformanceRating;
use text::digits::{bytes_binary, count, digits, megabytes_a_second, microseconds};
use text::terminal::{Width, paragraph};

use super::bottleneck::first_line;
use super::headline::first_that_fits;
use super::table::{AnswerColumn, AnswerTable};
use super::{document, model as known, percent, range, seeds};

/// Checks on the machine if a run is faster than its drive can be.
const OTHER_DRIVE: &str = "To check: `filename` is the drive that was named; `direct=1`; no cache (page cache, RAID \
                           controller, hypervisor) between fio and the drive; the blocks were written before they were \
                           read.";

/// Returns a line for each run, then further facts on each.
pub fn sentences(answers: &[ExplainAnswer]) -> Vec<String> {
    let wrong = answers.iter().flat_map(|answer| {
        let all = answer.contradictions.iter();
        all.map(|wrong| {
            first_that_fits([
                format!(
                    "{}: the results contradict their options: {wrong}.",
                    answer.run
                ),
                format!(
                    "{}: the results contradict their options, as stated below.",
                    answer.run
                ),
            ])
        })
    });
    let lines = wrong.chain(answers.iter().map(first_line));
    let facts = answers.iter().map(|answer| match answers.len() {
        1 => facts(answer),
        _ => format!("{}: {}", answer.run, facts(answer)),
    });
    lines.chain(facts).collect()
}

/// Returns the distance from rating and model, the conditions that explain it, and what helps.
fn facts(answer: &ExplainAnswer) -> String {
    let mut sentences = Vec::new();
    let Some(model) = &answer.model else {
        sentences.push(format!(
            "{} IOPS, {}.",
            count(answer.measured.iops),
            megabytes_a_second(answer.measured.mb_s)
        ));
        sentences.extend(answer.change.as_ref().map(changed));
        sentences.extend(follows(answer));
        return sentences.join(" ");
    };
    let exceeds = model.gap.exceeds.as_ref();
    sentences.extend(exceeds.map(|limit| format!("{}.", limit.arithmetic)));
    sentences.push(far(answer, model));
    sentences.extend(difference(model));
    sentences.extend(answer.change.as_ref().map(changed));
    if model.gap.beyond_model {
        // Neither the options nor the ratings of this drive say anything about the run.
        sentences.push(String::from(OTHER_DRIVE));
    } else {
        sentences.extend(costs(model));
        sentences.extend(change(answer, model));
    }
    sentences.extend(follows(answer));
    sentences.join(" ")
}

/// Returns the consequence of the bottleneck.
fn follows(answer: &ExplainAnswer) -> Option<String> {
    (!answer.follows.is_empty()).then(|| format!("What helps: {}.", answer.follows.join("; ")))
}

/// Returns a sentence on what became slower or faster during the run.
fn changed(change: &Change) -> String {
    let mut text = change.text.clone();
    if let Some(first) = text.get(..1).map(str::to_uppercase) {
        text.replace_range(..1, &first);
    }
    let to_tell = match (change.to_tell.is_empty(), change.causes.len()) {
        (true, _) => String::new(),
        (false, 1) => format!(" To be sure: {}.", change.to_tell),
        (false, _) => format!(" To tell which: {}.", change.to_tell),
    };
    format!("{text}.{to_tell}")
}

fn rated(rating: &PerformanceRating, bytes: Option<u32>) -> String {
    match (rating.in_bytes, bytes) {
        (true, Some(bytes)) => megabytes_a_second(rating.iops * f64::from(bytes) / 1e6),
        _ => format!("{} IOPS", count(rating.iops)),
    }
}

fn block(answer: &ExplainAnswer) -> Option<u32> {
    answer.measured.asked.as_ref()?.block_bytes
}

/// Returns the distance from the rating.
fn far(answer: &ExplainAnswer, model: &ModelComparison) -> String {
    let is = match &model.rating {
        Some(rating) if rating.in_bytes => megabytes_a_second(answer.measured.mb_s),
        _ => format!("{} IOPS", count(answer.measured.iops)),
    };
    match (&model.rating, model.of_rating) {
        (Some(rating), Some(share)) => format!(
            "{is} is {} of the {} that {} is rated at for {} blocks{} ({}).",
            percent(Some(share)),
            rated(rating, block(answer)),
            model.drive,
            bytes_binary(rating.block_bytes as f64),
            if rating.of_new_drive {
                " on a new drive"
            } else {
                ""
            },
            rating.source,
        ),
        _ => format!(
            "{is}; this catalogue has no rating of {} for this access pattern.",
            model.drive
        ),
    }
}

/// Returns whether the model agrees, and if not, what explains the difference.
fn difference(model: &ModelComparison) -> Option<String> {
    let asked = &model.as_asked;
    if model.as_asked_agrees {
        return Some(format!(
            "The model reaches {} with the given options, so no other cause is needed.",
            count(asked.iops)
        ));
    }
    let of_model = model.gap.of_model;
    let than = match of_model > 1.0 {
        true => format!("the measured rate is {} times as high", digits(of_model)),
        false => format!(
            "{} times the measured rate",
            digits(1.0 / of_model.max(1e-9))
        ),
    };
    let head = format!(
        "With the options of the run, the model reaches {} ({than})",
        count(asked.iops)
    );
    let named = |key: &String| model.conditions.iter().find(|trial| trial.key == *key);
    let trials: Vec<&Trial> = model.explained_by.iter().filter_map(named).collect();
    let causes = trials.iter();
    let causes = causes.map(|trial| format!("{} ({} IOPS)", trial.what, count(trial.iops)));
    let causes: Vec<String> = causes.collect();
    let tell = to_tell(&trials);
    Some(match (causes.is_empty(), model.agrees) {
        (true, _) => format!(
            "{head}. No condition that is simulated explains the difference, nor do two of them together."
        ),
        (false, true) if trials.iter().any(|trial| trial.check.len() > 1) => format!(
            "{head}. No single condition explains it; two fit: {}.{tell}",
            causes.join("; or ")
        ),
        (false, true) => format!("{head}. A likely cause is {}.{tell}", causes.join("; or ")),
        (false, false) => format!(
            "{head}. The nearest condition does not explain all of it: {}.{tell}",
            causes.join("; or ")
        ),
    })
}

/// Returns how to find out on the machine which of these trials applies.
fn to_tell(trials: &[&Trial]) -> String {
    let mut all: Vec<&str> = Vec::new();
    for one in trials.iter().flat_map(|trial| &trial.to_tell) {
        if !all.contains(one) {
            all.push(one);
        }
    }
    let head = match trials.len() {
        1 => "To be sure",
        _ => "These causes fit equally well; to distinguish them",
    };
    match all.is_empty() {
        true => String::new(),
        false => format!(" {head}: {}.", all.join("; ")),
    }
}

/// Returns the cost of each option, the greatest first.
fn costs(model: &ModelComparison) -> Option<String> {
    let mut gains: Vec<&Trial> = model
        .options
        .iter()
        .filter(|it| it.factor >= GAIN)
        .collect();
    gains.sort_by(|a, b| b.factor.total_cmp(&a.factor));
    let words = gains.iter().take(3);
    let words = words.map(|it| format!("{} ({} IOPS)", it.what, count(it.iops)));
    let words: Vec<String> = words.collect();
    (!words.is_empty()).then(|| format!("Faster in the model: {}.", words.join("; ")))
}

/// Returns the recommended changes.
fn change(answer: &ExplainAnswer, model: &ModelComparison) -> Option<String> {
    let advice = model.advice.as_ref()?;
    let of = match &model.rating {
        Some(rating) => format!("95 % of the rated {}", rated(rating, block(answer))),
        None => String::from("95 % of the model's maximum"),
    };
    Some(match advice.reached {
        true => format!(
            "To see {of}: {} with iodepth={} (the model does {}{}).",
            threads(advice),
            advice.iodepth,
            count(advice.iops),
            state(advice, model),
        ),
        false => format!(
            "The model does not reach {of} on this host at any depth: {} at most.",
            count(advice.iops)
        ),
    })
}

fn threads(advice: &DepthAdvice) -> String {
    format!("numjobs={}", advice.numjobs)
}

fn state(advice: &DepthAdvice, model: &ModelComparison) -> String {
    let new = advice.state == "fresh" && model.rating.as_ref().is_some_and(|it| it.of_new_drive);
    match new {
        true => String::from(" on a new drive, as the sheet rates it"),
        false => String::new(),
    }
}

/// Returns measured and simulated rates and latencies, and the model's latency breakdown next to fio's figures.
pub fn tables(answers: &[ExplainAnswer]) -> Vec<AnswerTable> {
    match answers.iter().any(|answer| answer.model.is_some()) {
        true => vec![cases(answers), anatomy(answers)],
        false => vec![measured(answers)],
    }
}

fn measured(answers: &[ExplainAnswer]) -> AnswerTable {
    let figures = |name: &str| AnswerColumn::figures(name);
    let columns = vec![
        AnswerColumn::words("run"),
        AnswerColumn::words("I/Os"),
        figures("IOPS"),
        figures("bandwidth"),
        figures("mean").headed("mean latency"),
        figures("submission").headed("mean submission"),
        figures("completion").headed("mean completion"),
        figures("p99"),
    ];
    let mut table = AnswerTable::new("Figures as measured", 2, columns);
    let us = |value: Option<f64>| value.map_or_else(|| String::from("-"), microseconds);
    for answer in answers {
        for side in &answer.measured.sides {
            table.add([
                answer.run.clone(),
                side.direction.to_owned(),
                count(side.iops),
                megabytes_a_second(side.mb_s),
                us(side.mean_us),
                us(side.submission_us),
                us(side.completion_us),
                us(side.p99_us),
            ]);
        }
    }
    table
}

fn cases(answers: &[ExplainAnswer]) -> AnswerTable {
    let columns = vec![
        AnswerColumn::words("run"),
        AnswerColumn::words("").headed("case"),
        AnswerColumn::figures("IOPS"),
        AnswerColumn::figures("mean").headed("mean latency"),
        AnswerColumn::figures("of as asked").headed("IOPS over \"as asked\""),
        AnswerColumn::figures("off measured").headed("distance from the measurement"),
        AnswerColumn::words("what").headed("condition or option"),
    ];
    let caption = "The measurement, and the model under each condition";
    let mut table = AnswerTable::new(caption, 2, columns);
    for answer in answers {
        let Some(model) = &answer.model else {
            continue;
        };
        let means = answer
            .measured
            .sides
            .iter()
            .map(|side| Some(side.mean_us? * side.ios));
        let ios: f64 = answer.measured.sides.iter().map(|side| side.ios).sum();
        let mean = means
            .collect::<Option<Vec<f64>>>()
            .map(|all| all.iter().sum::<f64>() / ios.max(1.0));
        table.add([
            answer.run.clone(),
            String::from("measured"),
            count(answer.measured.iops),
            mean.map_or_else(|| String::from("-"), microseconds),
            String::from("-"),
            String::from("-"),
            String::new(),
        ]);
        table.add(case(answer, "as asked", &model.as_asked));
        for trial in &model.conditions {
            let explains = model.explained_by.contains(&trial.key);
            table.add(case(
                answer,
                if explains { "if: explains" } else { "if" },
                trial,
            ));
        }
        for trial in &model.options {
            table.add(case(answer, "with", trial));
        }
    }
    table
}

fn case(answer: &ExplainAnswer, kind: &str, trial: &Trial) -> [String; 7] {
    [
        answer.run.clone(),
        kind.to_owned(),
        range(
            [trial.iops, trial.iops_by_seed[0], trial.iops_by_seed[1]],
            count,
        ),
        trial
            .mean_us
            .map_or_else(|| String::from("-"), microseconds),
        format!("{:.2}", trial.factor),
        percent(trial.distance),
        match kind {
            "as asked" => String::new(),
            _ => trial.what.clone(),
        },
    ]
}

fn anatomy(answers: &[ExplainAnswer]) -> AnswerTable {
    let columns = vec![
        AnswerColumn::words("run"),
        AnswerColumn::words("I/Os"),
        AnswerColumn::words("part"),
        AnswerColumn::figures("model"),
        AnswerColumn::figures("share"),
        AnswerColumn::figures("measured"),
    ];
    let caption = "Latency breakdown: mean of each part in the model, and as measured";
    let mut table = AnswerTable::new(caption, 3, columns);
    let us = |value: Option<f64>| value.map_or_else(|| String::from("-"), microseconds);
    for answer in answers {
        for side in answer.model.iter().flat_map(|model| &model.anatomy) {
            let measured = answer
                .measured
                .sides
                .iter()
                .find(|one| one.direction == side.direction);
            let mut row = |part: &str, model: Option<f64>, measured: Option<f64>| {
                table.add([
                    answer.run.clone(),
                    side.direction.to_owned(),
                    part.to_owned(),
                    us(model),
                    percent(model.map(|us| us / side.mean_us)),
                    us(measured),
                ]);
            };
            for (part, time) in &side.parts {
                row(part, Some(*time), None);
            }
            row(
                "submission (slat)",
                side.submission_us,
                measured.and_then(|it| it.submission_us),
            );
            row(
                "completion (clat)",
                Some(side.completion_us),
                measured.and_then(|it| it.completion_us),
            );
            row(
                "all (lat)",
                Some(side.mean_us),
                measured.and_then(|it| it.mean_us),
            );
        }
    }
    table
}

/// Returns whether each run was steady and its file is consistent, and the method.
pub fn method(
    answers: &[ExplainAnswer],
    request: Option<&ExplainRequest>,
    command: &str,
    width: Width,
) -> String {
    let mut lines = Vec::new();
    for answer in answers {
        let facts = &answer.measured;
        let steady = match facts.steadiness.steady {
            Some(true) => "yes",
            Some(false) => "no",
            None => "cannot be told",
        };
        let text = format!(
            "steady: {steady}; {}. Little's law: {}.",
            facts.steadiness.text, facts.little.text
        );
        lines.push(paragraph(&format!("{}: ", answer.run), &text, width));
        if let Some(heat) = answer.model.as_ref().and_then(|model| model.heat.as_ref()) {
            let text = format!(
                "heat, by arithmetic: {}. Figures of `[thermal]` (drivelab show; most are assumed, --set thermal.ambient=50C changes \
                 them); no run slows down by heat.",
                heat.text
            );
            lines.push(paragraph(&format!("{}: ", answer.run), &text, width));
        }
        for wrong in &answer.contradictions {
            let text = format!(
                "the results contradict their options: {wrong}; they may be of different runs, so nothing above is certain"
            );
            lines.push(paragraph(&format!("{}: ", answer.run), &text, width));
        }
        for unlike in &answer.unlike {
            let text = format!("differs from the simulation: {unlike}");
            lines.push(paragraph(&format!("{}: ", answer.run), &text, width));
        }
    }
    if let Some(request) = request {
        let how = format!(
            "{} on {}, {} at the start, {}. \"If\" is a condition that the file does not tell, \"with\" an option of it \
             changed, under the condition that explains it best; \"off measured\" is the distance of rate, mean and percentiles from those measured. A model agrees if its rate is \
             within {:.0} % and that distance below {:.0} %. \
             Two conditions at once are tried where no single one explains a run. Not simulated: slowing down by heat, file systems, the page cache, other users of the drive.",
            request.drive.id,
            request.host.id,
            request.state.name(),
            seeds(request.seed, request.seeds),
            AGREES * 100.0,
            AGREES * 200.0,
        );
        lines.push(paragraph("", &how, width));
    }
    if let Some(one) = answers.iter().find_map(|answer| answer.model.as_ref()) {
        lines.push(known(&one.drive, one.model, &one.model_text, width));
    }
    lines.push(format!("Repeat: {command}"));
    lines.join("\n")
}

/// Returns everything as JSON.
pub fn json(answers: &[ExplainAnswer], request: Option<&ExplainRequest>, command: &str) -> Value {
    let asked = request.map(|request| {
        json!({
            "drive": request.drive.id,
            "host": request.host.id,
            "state": request.state.name(),
            "seed": request.seed,
            "seeds": request.seeds,
        })
    });
    document("drivelab explain", command, &asked, &answers)
}
