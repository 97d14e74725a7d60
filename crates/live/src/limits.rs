//! What connections may take of the server, and how it waits.

use model::Span;

/// What connections may take.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Connections at a time.
    pub connections: usize,
    /// Commands of one connection in flight.
    pub commands: u32,
    /// Bytes that one connection may have in flight, read and written, sent replies not counted.
    pub bytes: u64,
    /// Bytes that all together may have in flight.
    pub total_bytes: u64,
    /// Bytes beyond that for small commands of those who have nothing else under way: nobody is shut out by others.
    pub reserve_bytes: u64,
    /// While somebody waits for room, who holds some and has neither sent nor read a byte for so long is disconnected.
    pub patience: Span,
    /// Spin this long before a deadline instead of sleeping.
    pub spin_before: Span,
    /// Spin this long after the last command, where a drive's latency is imitated.
    pub spin_after: Span,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections: 1024,
            commands: 4096,
            bytes: 64 << 20,
            total_bytes: 256 << 20,
            reserve_bytes: 64 << 20,
            patience: Span::from_ms(5_000),
            spin_before: Span::from_us(70),
            spin_after: Span::from_us(50),
        }
    }
}
