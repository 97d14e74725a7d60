//! The pace at which a drive that holds writes back lets them in: the rate at which its dies can go on taking them, with
//! the copies that a unit costs at the moment.

use super::Nand;
use super::config::NandConfig;
use crate::time::Span;

/// How much longer than what a unit takes of the dies its turn is: they keep up, and the buffer stays nearly empty.
const IN_HAND: f64 = 1.01;

/// What a page takes of a die: it crosses the channel, is programmed, and the room it takes has been sensed and erased.
fn page_time(config: &NandConfig) -> Span {
    let (timing, geometry) = (&config.timing, &config.geometry);
    let page = u64::from(geometry.planes) * u64::from(geometry.page_bytes);
    let crosses = timing.channel_command + Span::per_bytes(timing.channel_ps_per_byte, page);
    let erases = timing.erase.ns() / u64::from(geometry.pages_per_block);
    crosses + timing.program + timing.read + Span::from_ns(erases)
}

impl Nand {
    /// Sets the pace by what a unit costs now.
    pub(super) fn pace_writes(&mut self) {
        if !self.shared.front.paces() {
            return;
        }
        let units = u64::from(self.shape.dies) * u64::from(self.shape.page_slots);
        let page = page_time(&self.config).ns() as f64 / units as f64;
        let interval = page * (1.0 + self.shared.ftl.price()) * IN_HAND;
        let interval = Span::from_ns(libm::round(interval) as u64);
        self.shared.front.set_pace(interval);
    }
}
