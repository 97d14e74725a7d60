//! Mixed reads and writes: `drivelab mix`.

use serde_json::{Value, json};
use study::decide::mix::{DirectionLatency, MixAnswer, MixPoint, MixRequest};
use text::digits::{count, digits, microseconds};
use text::terminal::{Width, paragraph};

use super::table::{AnswerColumn, AnswerTable};
use super::{document, known_and_again, percent, range, seeds};

/// Returns the answer on one drive: the two ends and where the rate drops, then the figures in between.
pub fn answer(answer: &MixAnswer) -> Vec<String> {
    let iops = |point: &MixPoint| range(point.iops, count);
    let at = |percent: u32| answer.points.iter().find(|one| one.read_percent == percent);
    let ends = [(100, "reads alone"), (0, "writes alone")];
    let ends = ends
        .into_iter()
        .filter_map(|(percent, what)| Some(format!("{} IOPS of {what}", iops(at(percent)?))));
    let ends: Vec<String> = ends.collect();
    let step = match answer.falls_off {
        Some(step) => format!(
            "falls off from {} to {} % reads, to {} of the IOPS",
            step.read_percent[0],
            step.read_percent[1],
            percent(Some(step.kept))
        ),
        None => String::from("no step reduces the IOPS by 25 % or more"),
    };
    let mut lines = vec![format!("{}: {}; {step}.", answer.drive, ends.join(", "))];
    if let Some(least) = answer.least_of_ends {
        let share = percent(Some(least.of_ends));
        lines.push(match least.of_ends {
            below if below < 0.9 => format!(
                "With {} % reads {} does {share} of what reads alone and writes alone would do in turn: reads and writes slow each other down.",
                least.read_percent, answer.drive
            ),
            _ => format!(
                "Every mix on {} does at least {share} of what reads alone and writes alone would do in turn.",
                answer.drive
            ),
        });
    }
    lines
}

fn latency(one: Option<DirectionLatency>) -> [String; 2] {
    let Some(one) = one else {
        return [String::from("-"), String::from("-")];
    };
    let p99 = one
        .p99_us
        .map_or_else(|| String::from("too few"), microseconds);
    [microseconds(one.mean_us), p99]
}

/// Returns a table with a line for each mix.
pub fn tables(answers: &[MixAnswer]) -> Vec<AnswerTable> {
    let columns = vec![
        AnswerColumn::words("drive"),
        AnswerColumn::figures("reads").headed("share of reads"),
        AnswerColumn::figures("IOPS"),
        AnswerColumn::figures("MB/s"),
        AnswerColumn::figures("read").headed("mean read latency"),
        AnswerColumn::figures("p99").headed("read p99"),
        AnswerColumn::figures("write").headed("mean write latency"),
        AnswerColumn::figures("p99").headed("write p99"),
        AnswerColumn::figures("of ends"),
    ];
    let mut table = AnswerTable::new("Rate and latency of each mix", 2, columns);
    for answer in answers {
        for point in &answer.points {
            let mut cells = vec![
                answer.drive.clone(),
                format!("{} %", point.read_percent),
                count(point.iops[0]),
                digits(point.mb_s),
            ];
            cells.extend(latency(point.read));
            cells.extend(latency(point.write));
            cells.push(percent(point.of_ends));
            table.add(cells);
        }
    }
    vec![table]
}

/// Returns notes on the method.
pub fn method(request: &MixRequest, answers: &[MixAnswer], command: &str, width: Width) -> String {
    let options = request.pattern.options.iter();
    let options: Vec<String> = options
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    let how = format!(
        "{} with {} in flight on {}, {}, drives {} at the start, {}. Each mix begins in that state. \"of ends\": IOPS as a share of what reads alone and writes alone would do in turn. Latency is fio's, from issue; IOPS are the mean of the seeds.",
        request.pattern.rw,
        request.depth,
        request.host.id,
        options.join(" "),
        request.state.name(),
        seeds(request.seed, request.seeds),
    );
    let lines = vec![paragraph("", &how, width)];
    let drives = answers.iter();
    let drives = drives.map(|one| (&*one.drive, one.model, &*one.model_text));
    known_and_again(lines, drives, command, width)
}

/// Returns everything as JSON.
pub fn json(request: &MixRequest, answers: &[MixAnswer], command: &str) -> Value {
    let asked = json!({
        "pattern": request.pattern,
        "in_flight": request.depth,
        "read_percents": request.percents,
        "host": request.host.id,
        "state": request.state.name(),
        "seed": request.seed,
        "seeds": request.seeds,
    });
    document("drivelab mix", command, &asked, &answers)
}
