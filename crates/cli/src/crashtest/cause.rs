//! Explanation of a failure: the files that the lost writes belong to, and the acknowledgements and flushes around
//! them.
//!
//! A lost range belongs to the file that has it at the moment of the power cut if nothing is lost. A range that no file
//! has then is looked up at the following moments: data are often written before the file system commits their inode.

use std::collections::BTreeMap;

use crash::context::{Context, number_of_flush, sent_next};
use crash::ext4::Ext4;
use crash::log::Event;
use crash::name::Name;
use crash::places::{OwnedRange, Owner, merged, texts};
use crash::search::Failure;
use crash::xfs::Structures;
use crash::{EventKind, Fork, Log, Lost, Walk};
use serde_json::{Value, json};

use super::guest::FileRange;
use super::source::Source;

/// Number of moments at which an unknown range is looked up.
const LATER: u32 = 64;

/// Number of moments at which an unknown range of an unsent command is looked up.
const LATER_NEXT: u32 = 8;

/// Number of unsent commands that are explained.
const NEXT: usize = 16;

/// Number of commands that the text describes.
const SHOWN: usize = 4;

/// Number of ranges of a command that the text describes.
const RANGES: usize = 4;

/// Unit of ranges on an XFS.
const SECTOR: usize = 512;

/// Lists the files of the complete image of a walk's moment.
pub(super) type Lister<'a> = dyn FnMut(&Walk<'_>) -> Vec<FileRange> + 'a;

/// Explanation of a failure.
pub(super) struct FailureCause {
    /// Description of the power cut.
    cut: String,
    /// Lost writes.
    lost: Vec<Part>,
    /// Writes that were sent after the cut and before the next acknowledgement.
    next: Vec<Part>,
}

/// A command, and the owners of the ranges that were lost or not written.
struct Part {
    command: u32,
    ranges: Vec<(u64, u64)>,
    places: Vec<OwnedRange>,
    context: Context,
}

impl FailureCause {
    /// Explains a failure; `None` if its image cannot be found.
    pub(super) fn from_failure(
        source: &Source,
        failure: &Failure,
        list: &mut Lister<'_>,
    ) -> Option<FailureCause> {
        let log = &source.log;
        let name: Name = failure.name.parse().ok()?;
        let (walk, lost) = name.find(&Walk::new(log, source.how)).ok()?;
        let image = walk.image(&lost);
        let finder = Finder::new(&walk, &image, list);
        let part = |command: u32, places: Vec<Vec<OwnedRange>>, ranges: &[(u64, u64)]| Part {
            command,
            ranges: ranges.to_vec(),
            places: merged(places.concat()),
            context: Context::from_command(log, &log.commands[command as usize], walk.moment()),
        };
        let all: Vec<(u64, u64)> = { failure.lost.iter() }
            .flat_map(|(_, ranges)| ranges)
            .copied()
            .collect();
        let mut found = finder.owners(&walk, &all, LATER).into_iter();
        let lost = failure.lost.iter().map(|(number, ranges)| {
            let places = found.by_ref().take(ranges.len()).collect();
            part(*number, places, ranges)
        });
        let lost: Vec<Part> = lost.collect();
        let mut later = walk.clone();
        let mut next = Vec::new();
        for number in sent_next(log, walk.moment(), NEXT) {
            let it = &log.commands[number as usize];
            while later.moment().event <= it.submitted && later.advance().is_some() {}
            if it.writes() {
                let range = [(it.offset, it.offset + it.bytes)];
                let places = finder.owners(&later, &range, LATER_NEXT);
                next.push(part(number, places, &range));
            }
        }
        Some(FailureCause {
            cut: cut(&walk),
            lost,
            next,
        })
    }

    /// Returns the lines of the report: heading and text.
    pub(super) fn lines(&self, log: &Log) -> Vec<(&'static str, String)> {
        let mut lines = Vec::new();
        for part in self.lost.iter().take(SHOWN) {
            let text = format!("{}: {}", few(&part.places), part.order(log));
            lines.push(("lost", text));
        }
        if self.lost.len() > SHOWN {
            let more = self.lost.len() - SHOWN;
            lines.push(("lost", format!("and {more} more writes (--json lists all)")));
        }
        lines.push(("power cut", self.cut.clone()));
        if self.lost.is_empty() {
            for part in self.next.iter().take(SHOWN) {
                lines.push(("not sent", few(&part.places)));
            }
            if self.next.len() > SHOWN {
                let more = self.next.len() - SHOWN;
                lines.push((
                    "not sent",
                    format!("and {more} more writes (--json lists them)"),
                ));
            }
        }
        lines
    }

    /// Returns the ranges of lost writes, and if nothing was lost of those not sent.
    pub(super) fn places(&self) -> impl Iterator<Item = (&'static str, &OwnedRange)> {
        let (state, parts) = match self.lost.is_empty() {
            true => ("not sent", &self.next),
            false => ("lost", &self.lost),
        };
        let places = parts.iter().flat_map(|it| &it.places);
        places.map(move |it| (state, it))
    }

    /// Returns the members of a failure in JSON.
    pub(super) fn json(&self, log: &Log) -> BTreeMap<&'static str, Value> {
        let of = |parts: &[Part]| -> Vec<Value> { parts.iter().map(|it| it.json(log)).collect() };
        BTreeMap::from([
            ("power_cut", json!(self.cut)),
            ("lost", json!(of(&self.lost))),
            ("not_sent", json!(of(&self.next))),
        ])
    }
}

impl Part {
    /// Returns the order of the command, acknowledgements and flushes.
    fn order(&self, log: &Log) -> String {
        let it = self.context;
        let sent = match (it.acks, it.flushes) {
            (0, 0) => String::from("sent before the first acknowledgement and the first flush"),
            (0, flush) => format!("sent after flush {flush}"),
            (ack, 0) => format!("sent after `ack {}`", log.acks[ack - 1]),
            (ack, flush) => format!("sent after `ack {}` and flush {flush}", log.acks[ack - 1]),
        };
        match (it.completed, it.flush) {
            (false, _) => format!("{sent}; in flight"),
            (true, None) => format!("{sent}; completed; no flush was sent after that"),
            (true, Some((flush, false))) => {
                format!("{sent}; completed; flush {flush} had not completed")
            }
            (true, Some((flush, true))) => {
                format!("{sent}; completed; flush {flush} completed too")
            }
        }
    }

    fn json(&self, log: &Log) -> Value {
        let command = &log.commands[self.command as usize];
        let it = self.context;
        let places = self.places.iter().map(|place| {
            let mut value = json!({
                "range": (place.start, place.end),
                "owner": place.owner.word(),
                "text": place.owner.to_string(),
            });
            if let (Some(path), Some(value)) = (place.owner.path(), value.as_object_mut()) {
                value.insert("path".into(), json!(path));
                if let Owner::File { offset, .. } = place.owner {
                    value.insert("offset".into(), json!(offset));
                }
            }
            value
        });
        json!({
            "command": self.command,
            "kind": command.kind.word(),
            "offset": command.offset,
            "bytes": command.bytes,
            "ranges": self.ranges,
            "places": places.collect::<Vec<Value>>(),
            "acks_before": it.acks,
            "flushes_before": it.flushes,
            "completed": it.completed,
            "flush_after": it.flush.map(|it| it.0),
            "flush_completed": it.flush.is_some_and(|it| it.1),
        })
    }
}

/// Returns the text of the first places.
fn few(places: &[OwnedRange]) -> String {
    let all = texts(places);
    let mut text = all[..all.len().min(RANGES)].join("; ");
    if all.len() > RANGES {
        text.push_str(&format!("; and {} more ranges", all.len() - RANGES));
    }
    text
}

/// Returns the events around the power cut of a moment.
fn cut(walk: &Walk<'_>) -> String {
    let (log, moment) = (walk.log(), walk.moment());
    let mut text = match moment.acks {
        0 => String::new(),
        acks => format!("after `ack {}`, ", log.acks[acks - 1]),
    };
    text.push_str(&match log.events.get(moment.event) {
        Some(Event::Completed(number)) => match log.commands[*number as usize].kind {
            EventKind::Flush => format!("before flush {} completes", number_of_flush(log, *number)),
            kind => format!("before command {number}, a {}, completes", kind.word()),
        },
        _ => String::from("at the end of the log"),
    });
    if let Some(next) = log.acks.get(moment.acks) {
        text.push_str(&format!("; the next acknowledgement is `ack {next}`"));
    }
    text
}

/// Finds the owners of ranges.
struct Finder<'f> {
    /// The image that failed.
    image: &'f Fork,
    /// Files of an XFS at the power cut, then at the end, by start.
    listed: Vec<BTreeMap<u64, FileRange>>,
}

impl<'f> Finder<'f> {
    /// Returns a finder for the image of a walk. `list` lists the files of an XFS.
    fn new(walk: &Walk<'_>, image: &'f Fork, list: &mut Lister<'_>) -> Finder<'f> {
        let mut listed = Vec::new();
        if Structures::read(image).is_some() {
            for walk in [walk.clone(), walk.clone().go_to_end()] {
                let files = list(&walk).into_iter();
                listed.push(files.map(|it| (it.start, it)).collect());
            }
        }
        Finder { image, listed }
    }

    /// Returns the owners of ranges at the walk's moment, or at one of `later` moments after it.
    fn owners(&self, from: &Walk<'_>, ranges: &[(u64, u64)], later: u32) -> Vec<Vec<OwnedRange>> {
        let unknown = |&(start, end): &(u64, u64)| {
            vec![OwnedRange {
                start,
                end,
                owner: Owner::Unknown,
            }]
        };
        let mut all: Vec<Vec<OwnedRange>> = ranges.iter().map(unknown).collect();
        let mut walk = from.clone();
        for tries in 0..=later {
            let image = walk.image(&Lost::nothing(walk.undecided().len()));
            let Some(files) = Ext4::read(&image) else {
                if let Some(structures) = Structures::read(&image) {
                    let look_up = |it: &(u64, u64)| self.on_xfs(structures, *it);
                    all = ranges.iter().map(look_up).collect();
                }
                break;
            };
            let look_up = |place: OwnedRange| match place.owner {
                Owner::Unknown => files.places(self.image, place.start, place.end),
                _ => vec![place],
            };
            for places in &mut all {
                *places = { std::mem::take(places).into_iter() }
                    .flat_map(look_up)
                    .collect();
            }
            if all.iter().flatten().all(|it| it.owner != Owner::Unknown) {
                break;
            }
            match tries + 1 {
                last if last == later => walk = walk.go_to_end(),
                _ if walk.advance().is_none() => break,
                _ => {}
            }
        }
        all.into_iter().map(merged).collect()
    }

    /// Returns the owners of a range on an XFS.
    fn on_xfs(&self, structures: Structures, (start, end): (u64, u64)) -> Vec<OwnedRange> {
        let file = |at: u64| {
            let mut found = self.listed.iter().filter_map(|files| {
                let (from, file) = files.range(..=at).next_back()?;
                let within = Some(at - from).filter(|it| *it < file.bytes)?;
                let path = file.path.clone();
                Some(match file.is_directory {
                    true => Owner::Directory {
                        path,
                        changes: Vec::new(),
                    },
                    false => Owner::File {
                        path,
                        offset: file.offset + within,
                    },
                })
            });
            found.next()
        };
        merged((start..end).step_by(SECTOR).map(|at| OwnedRange {
            start: at,
            end: end.min(at + SECTOR as u64),
            owner: (structures.owner(at).or_else(|| file(at))).unwrap_or(Owner::Unknown),
        }))
    }
}

/// Returns the texts of the owners of ranges, for a list of the commands of an image.
pub(super) fn texts_of(
    walk: &Walk<'_>,
    lost: &Lost,
    ranges: &[(u64, u64)],
    list: &mut Lister<'_>,
) -> Vec<String> {
    let image = walk.image(lost);
    let all = Finder::new(walk, &image, list).owners(walk, ranges, LATER);
    all.iter().map(|places| few(places)).collect()
}
