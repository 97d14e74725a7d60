//! How long writes stay fast: `drivelab fill`.

use serde_json::{Value, json};
use study::decide::fill::{FallsOff, FillAnswer, FillRequest, FillResult};
use text::digits::{bytes_binary, bytes_decimal, digits, duration, megabytes_a_second};
use text::terminal::{Width, paragraph};

use super::table::{AnswerColumn, AnswerTable};
use super::{document, known_and_again, range, seeds};

/// Returns the answer on one drive: a sentence for each share in use.
pub fn answer(answer: &FillAnswer) -> Vec<String> {
    let sentence = |one: &FillResult| {
        let fast = range(one.fast_mb_s, megabytes_a_second);
        let head = format!("{}, {} % in use", answer.drive, one.used_percent);
        let Some(falls) = &one.falls_off else {
            let written = bytes_decimal(one.written_gb * 1e9);
            let last = range(one.last_mb_s, megabytes_a_second);
            return format!(
                "{head}: writes stay at three quarters of {fast} or more for all of the {written} that ran; at the end {last}."
            );
        };
        format!(
            "{head}: {} at {fast} ({}), then {}; {}.",
            range(falls.gb, |gb| bytes_decimal(gb * 1e9)),
            duration(falls.seconds[0]),
            range(falls.slow_mb_s, megabytes_a_second),
            recovers(falls),
        )
    };
    answer.at.iter().map(sentence).collect()
}

fn recovers(falls: &FallsOff) -> String {
    match falls.recovers_seconds {
        Some(seconds) => format!("fast again after {} of idle time", duration(seconds)),
        None => String::from("an idle hour does not make it fast again"),
    }
}

/// Returns a table with a line for each share in use.
pub fn tables(answers: &[FillAnswer]) -> Vec<AnswerTable> {
    let columns = vec![
        AnswerColumn::words("drive"),
        AnswerColumn::figures("in use"),
        AnswerColumn::figures("fast MB/s"),
        AnswerColumn::figures("for GB").headed("fast for, GB"),
        AnswerColumn::figures("for").headed("fast for, time"),
        AnswerColumn::figures("slow MB/s"),
        AnswerColumn::figures("recovers").headed("recovers in"),
        AnswerColumn::figures("to GB").headed("recovers to, GB"),
    ];
    let caption = "Write rate before and after it falls, by share in use";
    let mut table = AnswerTable::new(caption, 2, columns);
    for answer in answers {
        for one in &answer.at {
            let mut cells = vec![
                answer.drive.clone(),
                format!("{} %", one.used_percent),
                digits(one.fast_mb_s[0]),
            ];
            match &one.falls_off {
                Some(falls) => cells.extend([
                    digits(falls.gb[0]),
                    duration(falls.seconds[0]),
                    digits(falls.slow_mb_s[0]),
                    falls
                        .recovers_seconds
                        .map_or_else(|| String::from("no"), duration),
                    digits(falls.recovered_gb),
                ]),
                None => cells.extend([
                    format!("{}+", digits(one.written_gb)),
                    String::from("-"),
                    String::from("-"),
                    String::from("-"),
                    String::from("-"),
                ]),
            }
            table.add(cells);
        }
    }
    vec![table]
}

/// Returns notes on the method.
pub fn method(
    request: &FillRequest,
    answers: &[FillAnswer],
    command: &str,
    width: Width,
) -> String {
    let how = format!(
        "{} writes of {}, {} in flight, on {}, {}; filled in order up to the share in use, the rest trimmed{}. A rate below three quarters of the first is slow. \"recovers\": the shortest of nine idle times up to an hour after which it takes nine tenths of what it takes after an hour (\"to GB\"), first seed. A flash drive is simulated as one of 16 GiB that behaves alike; heat is left out.",
        if request.random { "Random" } else { "In-order" },
        bytes_binary(f64::from(request.block)),
        request.depth,
        request.host.id,
        seeds(request.seed, request.seeds),
        if request.random {
            "; writes are random over the whole drive"
        } else {
            "; writes begin where that ends and continue at the first block"
        },
    );
    let lines = vec![paragraph("", &how, width)];
    let drives = answers.iter();
    let drives = drives.map(|one| (&*one.drive, one.model, &*one.model_text));
    known_and_again(lines, drives, command, width)
}

/// Returns everything as JSON.
pub fn json(request: &FillRequest, answers: &[FillAnswer], command: &str) -> Value {
    let asked = json!({
        "random": request.random,
        "block_bytes": request.block,
        "in_flight": request.depth,
        "used_percents": request.used,
        "host": request.host.id,
        "seed": request.seed,
        "seeds": request.seeds,
    });
    document("drivelab fill", command, &asked, &answers)
}
