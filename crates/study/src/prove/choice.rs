//! Choice of the undecided writes that had reached the media when power failed.
//!
//! If there are few undecided writes (up to 12, and limited by the number of points), every subset is tried. Otherwise
//! the subsets are: the first n, the last n, all but one, a single one, and random ones. In each subset a write in
//! flight may be torn after any of its sectors.

use model::Stream;
use model::data::{Image, UndecidedWrite};

/// Maximum number of subsets that are tried.
pub(super) const MOST: u64 = 1 << 12;

/// One possible result of a power cut.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct CrashOutcome {
    /// By undecided write: whether it has reached the media.
    pub(super) done: Vec<bool>,
    /// A write of which only this number of sectors has reached the media.
    pub(super) torn: Option<(u16, u16)>,
}

/// Calls a function for each result, of `most` subsets, until the function returns that it is enough.
pub(super) fn each(
    undecided: &[(u16, UndecidedWrite)],
    most: u64,
    stream: &mut Stream,
    mut call: impl FnMut(&CrashOutcome) -> bool,
) {
    let count = undecided.len();
    let whole = count < 64 && 1 << count <= most;
    let subsets = if whole { 1 << count } else { most };
    for index in 0..subsets {
        let done: Vec<bool> = if whole {
            (0..count).map(|bit| index & (1 << bit) != 0).collect()
        } else {
            sample(index, count, stream)
        };
        let mut choice = CrashOutcome { done, torn: None };
        if call(&choice) {
            return;
        }
        // With many writes, one in each subset is torn; with few, each in turn.
        let turn = stream.uniform_below(count.max(1) as u64) as usize;
        let torn = if count > 4 { turn..turn + 1 } else { 0..count };
        for write in torn {
            let sectors = undecided[write].1.bytes / 512;
            if !choice.done[write] || !undecided[write].1.inside || sectors < 2 {
                continue;
            }
            // With few writes, every boundary is tried; with many, one.
            let places = match count {
                0..=2 => 1..sectors,
                _ => {
                    let place = 1 + stream.uniform_below(sectors - 1);
                    place..place + 1
                }
            };
            for place in places {
                choice.torn = Some((write as u16, place as u16));
                if call(&choice) {
                    return;
                }
            }
        }
    }
}

fn sample(index: u64, count: usize, stream: &mut Stream) -> Vec<bool> {
    let at = stream.uniform_below(count as u64) as usize;
    let one = |write: usize| match index % 6 {
        0 => write < at,
        1 => write > at,
        2 => write != at,
        3 => write == at,
        _ => stream.uniform_below(2) == 0,
    };
    (0..count).map(one).collect()
}

/// Applies this result to the media.
pub(super) fn apply(
    choice: &CrashOutcome,
    undecided: &[(u16, UndecidedWrite)],
    media: &[Image],
) -> Vec<Image> {
    let mut media = media.to_vec();
    for (index, (member, write)) in undecided.iter().enumerate() {
        let mut until = match choice.done[index] {
            true => write.at + write.bytes,
            false => write.at,
        };
        if let Some((torn, sectors)) = choice.torn
            && usize::from(torn) == index
        {
            until = write.at + u64::from(sectors) * 512;
        }
        // A medium with errors does not accept the write, which is then lost.
        let _ = write.apply(write.at, until, &mut media[usize::from(*member)]);
    }
    media.iter_mut().for_each(Image::power_cut);
    media
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_subsets_of_few_writes_and_all_places_where_one_may_be_torn() {
        let write = |at, bytes| UndecidedWrite {
            order: 1,
            at,
            bytes,
            data: None,
            inside: true,
        };
        let undecided = [(0, write(0, 2048)), (1, write(0, 512))];
        let mut seen = Vec::new();
        each(&undecided, MOST, &mut Stream::new(1, "choice"), |choice| {
            assert!(!seen.contains(choice));
            seen.push(choice.clone());
            false
        });
        // Four subsets; in two of them the first is torn after one, two or three sectors.
        assert_eq!(seen.len(), 4 + 2 * 3);
    }
}
