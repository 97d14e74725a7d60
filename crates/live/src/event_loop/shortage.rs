//! When memory is short: who holds some of it and lets nothing move has to go.
//!
//! Replies that nobody reads, and the data of writes that stopped half way, stay as long as their connection does. While
//! they leave room for others that is their own affair.

use super::EventLoop;
use crate::clock::Wall;
use crate::port::Ending;

impl EventLoop {
    /// While somebody waits for what others hold: ends the connection that holds most of it and has been still for long.
    /// Called every tenth of a second, which is time enough for the first to take what became free.
    pub(super) fn relieve(&mut self, now: Wall) {
        let patience = self.limits.patience;
        let mut starved = false;
        let mut most = None;
        for (id, place) in self.places.iter_mut() {
            if place.endpoint.is_none() {
                continue;
            }
            // Who still waits asks again at each tick.
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
            self.end(id, &Ending::Failed(why));
        }
    }
}
