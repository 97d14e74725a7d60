//! Limits on the resources of connections, and on the server's waiting.

use model::Span;

/// Limits on connections.
#[derive(Clone, Debug)]
pub struct ConnectionLimits {
    /// Maximum number of connections.
    pub connections: usize,
    /// Maximum commands in flight per connection.
    pub commands: u32,
    /// Maximum bytes in flight per connection, reads and writes, without replies already sent.
    pub bytes: u64,
    /// Maximum bytes in flight over all connections.
    pub total_bytes: u64,
    /// Additional bytes for small commands of clients that have nothing else in flight, so that other clients cannot
    /// block them.
    pub reserve_bytes: u64,
    /// While a client waits for memory, a client that holds memory and has neither sent nor read a byte for this time
    /// is disconnected.
    pub patience: Span,
    /// Time of spinning before a deadline, instead of sleeping.
    pub spin_before: Span,
    /// Time of spinning after the last command, if a drive's latency is imitated.
    pub spin_after: Span,
}

impl Default for ConnectionLimits {
    fn default() -> ConnectionLimits {
        ConnectionLimits {
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
