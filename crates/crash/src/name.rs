//! Names of images: the moment and the lost writes.
//!
//! `171` loses nothing. `171-2,5` loses the writes 2 and 5 (of those that are undecided at this moment, numbered from
//! 1 in the order in which they apply), `171-1..4` the writes 1 to 4, `171/3:1` all pieces of write 3 after its first,
//! `171/3.2` its second piece, and `171-2/3:1,4.1` all of these together. `end` is the last moment.

use std::fmt::Write as _;

use crate::lost::Lost;
use crate::moments::Walk;

/// Name of the last moment, and of the image of an orderly end, which loses nothing there.
pub const END: &str = "end";

/// A parsed name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Name {
    /// Number of the moment; `None` for the last.
    pub moment: Option<u32>,
    lost: Vec<Item>,
}

/// A lost part of an image.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Item {
    /// Writes in this range, both ends included.
    Writes(usize, usize),
    /// All pieces of this write after this number of pieces.
    Behind(usize, usize),
    /// This piece of this write.
    Piece(usize, usize),
}

/// Returns the name of an image.
pub fn name(walk: &Walk<'_>, lost: &Lost) -> String {
    let mut text = walk.moment().number.to_string();
    let (mut whole, mut torn) = (Vec::new(), Vec::new());
    let mut first = 0;
    for (number, pieces) in (1..).zip(walk.writes()) {
        let count = pieces.len();
        let gone: Vec<bool> = (first..first + count).map(|it| lost.contains(it)).collect();
        first += count;
        let kept = gone.iter().take_while(|it| !**it).count();
        match gone.iter().filter(|it| **it).count() {
            0 => {}
            lost if lost == count => whole.push(number),
            lost if kept + lost == count => torn.push(format!("{number}:{kept}")),
            _ => {
                let pieces = (1..).zip(&gone).filter(|(_, gone)| **gone);
                torn.extend(pieces.map(|(piece, _): (usize, _)| format!("{number}.{piece}")));
            }
        }
    }
    let runs: Vec<String> = { whole.chunk_by(|a: &usize, b| a + 1 == *b) }
        .map(|run| match run {
            [one] => one.to_string(),
            _ => format!("{}..{}", run[0], run[run.len() - 1]),
        })
        .collect();
    // Writing to a string does not fail.
    if !runs.is_empty() {
        let _ = write!(text, "-{}", runs.join(","));
    }
    if !torn.is_empty() {
        let _ = write!(text, "/{}", torn.join(","));
    }
    text
}

impl std::str::FromStr for Name {
    type Err = String;

    fn from_str(text: &str) -> Result<Name, String> {
        let wrong = || {
            format!("`{text}` is not the name of an image: `171`, `171-2,5` or `171/3:1` are such")
        };
        let number = |text: &str| match text.parse::<u32>() {
            Ok(number) if number > 0 => Ok(number as usize),
            _ => Err(wrong()),
        };
        let (before, torn) = match text.split_once('/') {
            Some((before, torn)) => (before, Some(torn)),
            None => (text, None),
        };
        let (moment, whole) = match before.split_once('-') {
            Some((moment, whole)) => (moment, Some(whole)),
            None => (before, None),
        };
        let mut lost = Vec::new();
        for item in whole.iter().flat_map(|it| it.split(',')) {
            let (from, to) = item.split_once("..").unwrap_or((item, item));
            let (from, to) = (number(from)?, number(to)?);
            if from > to {
                return Err(wrong());
            }
            lost.push(Item::Writes(from, to));
        }
        for item in torn.iter().flat_map(|it| it.split(',')) {
            lost.push(match (item.split_once(':'), item.split_once('.')) {
                (Some((write, "0")), _) => Item::Behind(number(write)?, 0),
                (Some((write, kept)), _) => Item::Behind(number(write)?, number(kept)?),
                (_, Some((write, piece))) => Item::Piece(number(write)?, number(piece)?),
                _ => return Err(wrong()),
            });
        }
        let moment = match moment {
            END => None,
            _ => Some(number(moment)? as u32),
        };
        Ok(Name { moment, lost })
    }
}

impl Name {
    /// Advances to the moment of this image.
    ///
    /// # Errors
    /// The log does not have the moment or the writes.
    pub fn find<'a>(&self, start: &Walk<'a>) -> Result<(Walk<'a>, Lost), String> {
        let walk = match self.moment {
            None => start.clone().go_to_end(),
            Some(moment) => start.clone().go_to(moment).ok_or_else(|| {
                let last = start.clone().go_to_end().moment().number;
                format!("there is no moment {moment}: they are 1 to {last}")
            })?,
        };
        let moment = walk.moment().number;
        let counts: Vec<usize> = walk.writes().map(<[_]>::len).collect();
        let mut gone: Vec<Vec<bool>> = counts.iter().map(|count| vec![false; *count]).collect();
        let all = counts.len();
        let mut lose = |write: usize, from: usize, to: usize| {
            let pieces = gone.get_mut(write - 1).ok_or_else(|| {
                format!("moment {moment} has no undecided write {write}: there are {all}")
            })?;
            let count = pieces.len();
            let range = pieces
                .get_mut(from..to.min(count))
                .filter(|it| !it.is_empty());
            let range = range
                .ok_or_else(|| format!("write {write} of moment {moment} has {count} pieces"))?;
            range.fill(true);
            Ok::<(), String>(())
        };
        for item in &self.lost {
            match *item {
                Item::Writes(from, to) => {
                    for write in from..=to {
                        lose(write, 0, usize::MAX)?;
                    }
                }
                Item::Behind(write, kept) => lose(write, kept, usize::MAX)?,
                Item::Piece(write, piece) => lose(write, piece - 1, piece)?,
            }
        }
        let gone = gone.concat();
        let lost = Lost::from_fn(gone.len(), |piece| gone[piece]);
        Ok((walk, lost))
    }
}
