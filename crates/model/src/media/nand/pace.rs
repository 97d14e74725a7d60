//! Write pace of a drive that paces writes: the rate at which its dies can continuously take units, including the
//! copies that a unit currently causes.

use super::Nand;
use super::config::NandConfig;
use crate::time::Span;

/// Ratio of the interval between units to their die time: above 1, so that dies keep up, and the buffer stays nearly
/// empty.
const IN_HAND: f64 = 1.01;

/// Returns the die time of a page: transfer over the channel, program, and sensing and erasing for the space that it
/// takes.
fn page_time(config: &NandConfig) -> Span {
    let (timing, geometry) = (&config.timing, &config.geometry);
    let page = u64::from(geometry.planes) * u64::from(geometry.page_bytes);
    let crosses = timing.channel_command + Span::per_bytes(timing.channel_ps_per_byte, page);
    let erases = timing.erase.ns() / u64::from(geometry.pages_per_block);
    crosses + timing.program + timing.read + Span::from_ns(erases)
}

impl Nand {
    /// Sets the pace by the current cost of a unit.
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
