//! Which commands go on where another ended: what is read in order is read once, and would push out what is read often;
//! what is written in order the drives behind a cache take well.

/// Streams that are followed at once.
const FOLLOWED: usize = 16;

/// Where each followed stream will go on, and how much came in order.
#[derive(Clone, Debug)]
pub(super) struct Streams {
    streams: [(u64, u64); FOLLOWED],
    /// The one that is forgotten next.
    oldest: usize,
}

impl Default for Streams {
    fn default() -> Streams {
        Streams {
            streams: [(u64::MAX, 0); FOLLOWED],
            oldest: 0,
        }
    }
}

impl Streams {
    /// A command comes: how much came in order up to its end.
    pub(super) fn add(&mut self, offset: u64, bytes: u64) -> u64 {
        let known = self.streams.iter().position(|stream| stream.0 == offset);
        let (place, before) = match known {
            Some(place) => (place, self.streams[place].1),
            None => {
                self.oldest = (self.oldest + 1) % FOLLOWED;
                (self.oldest, 0)
            }
        };
        self.streams[place] = (offset + bytes, before + bytes);
        before + bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_grows_beside_others_and_what_is_apart_begins_anew() {
        let mut streams = Streams::default();
        for step in 0..8 {
            assert_eq!(streams.add(step * 4096, 4096), (step + 1) * 4096);
            assert_eq!(
                streams.add((1 << 30) + step * 8192, 8192),
                (step + 1) * 8192
            );
        }
        assert_eq!(streams.add(1 << 20, 4096), 4096);
    }
}
