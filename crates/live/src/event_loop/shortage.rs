//! Memory shortage: disconnects a client that holds memory without making progress.
//!
//! Replies that a client does not read, and the data of incomplete writes, stay in memory as long as the connection
//! exists. This is acceptable while there is memory for other clients.

use super::EventLoop;
use crate::clock::Wall;
use crate::port::ConnectionEnd;

impl EventLoop {
    /// While a client waits for memory that others hold, ends the idle connection that holds most of it. Called every
    /// 0.1 s, which gives the first waiting client enough time to take the freed memory.
    pub(super) fn relieve(&mut self, now: Wall) {
        let patience = self.limits.patience;
        let mut starved = false;
        let mut most = None;
        for (id, place) in self.places.iter_mut() {
            if place.endpoint.is_none() {
                continue;
            }
            // A client that still waits asks again at each tick.
            starved |= std::mem::take(&mut place.load.starved);
            let since = place.still_since(now);
            let bytes = place.load.waits_for_client();
            if bytes > 0 && now.since(since) >= patience {
                most = most.max(Some((bytes, id)));
            }
        }
        if let (true, Some((bytes, id))) = (starved, most) {
            let why = format!(
                "has moved nothing for {:.1} s and holds {:.1} MiB that others wait for",
                patience.seconds(),
                bytes as f64 / f64::from(1 << 20)
            );
            self.end(id, &ConnectionEnd::Failed(why));
        }
    }
}
