//! Output buffer of a client: contiguous, so that many replies are sent with one system call.
//!
//! The buffer is zeroed once and then reused, so growing by a block only costs the copy of its data.

/// Size to which an empty buffer shrinks after a burst.
const KEEP: usize = 256 << 10;

/// Size at and above which the buffer grows in steps of this size, instead of doubling.
const STEP: usize = 8 << 20;

/// Bytes that wait to be sent.
#[derive(Debug, Default)]
pub struct Outbox {
    buffer: Vec<u8>,
    sent: usize,
    filled: usize,
}

impl Outbox {
    /// Appends bytes.
    #[inline]
    pub fn push(&mut self, bytes: &[u8]) {
        self.grow(bytes.len()).copy_from_slice(bytes);
    }

    /// Appends `bytes` bytes of undefined content, for the caller to overwrite all of them.
    #[inline]
    pub fn grow(&mut self, bytes: usize) -> &mut [u8] {
        let start = self.filled;
        self.filled += bytes;
        if self.filled > self.buffer.len() {
            // Doubles while it is small, then grows in steps.
            let target = if self.filled < STEP {
                self.filled.next_power_of_two().max(4096)
            } else {
                self.filled.next_multiple_of(STEP)
            };
            self.buffer.reserve_exact(target - self.buffer.len());
            self.buffer.resize(target, 0);
        }
        &mut self.buffer[start..self.filled]
    }

    /// Removes the last `bytes` bytes (of a reply that was replaced).
    pub fn shrink(&mut self, bytes: usize) {
        self.filled = self.filled.saturating_sub(bytes).max(self.sent);
    }

    /// Returns the unsent bytes.
    pub fn unsent(&self) -> &[u8] {
        &self.buffer[self.sent..self.filled]
    }

    /// Returns the number of unsent bytes.
    pub fn len(&self) -> usize {
        self.filled - self.sent
    }

    /// Returns the bytes of memory that are used until all has been sent.
    pub fn memory(&self) -> usize {
        if self.is_empty() {
            0
        } else {
            self.buffer.len()
        }
    }

    /// Checks whether all has been sent.
    pub fn is_empty(&self) -> bool {
        self.sent == self.filled
    }

    /// Records that the first `bytes` unsent bytes have been sent.
    pub fn sent(&mut self, bytes: usize) {
        self.sent = (self.sent + bytes).min(self.filled);
        if self.is_empty() {
            self.sent = 0;
            self.filled = 0;
            if self.buffer.len() > KEEP {
                self.buffer.truncate(KEEP);
                self.buffer.shrink_to_fit();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Outbox;

    #[test]
    fn bytes_come_out_in_order_whatever_is_sent_at_a_time() {
        let mut out = Outbox::default();
        out.push(b"abc");
        out.grow(3).copy_from_slice(b"def");
        out.sent(2);
        out.push(b"gh");
        assert_eq!(out.unsent(), b"cdefgh");
        out.shrink(2);
        assert_eq!(out.unsent(), b"cdef");
        out.sent(4);
        assert!(out.is_empty());
    }
}
