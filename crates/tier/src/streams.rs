//! Detection of sequential streams. Sequentially read data is read once, and would evict data that is read often from a
//! cache; the backing drives of a cache handle sequential writes well.

/// Number of streams followed at once.
const FOLLOWED: usize = 16;

/// Next expected offset of each followed stream, and its sequential length so far.
#[derive(Clone, Debug)]
pub(super) struct Streams {
    streams: [(u64, u64); FOLLOWED],
    /// The stream that is replaced next.
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
    /// Adds a command; returns the sequential length of its stream up to the command's end.
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
