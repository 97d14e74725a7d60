//! `[ram]`: a RAM disk.

use model::Span;
use model::media::ram::{MemoryBus, RamConfig};
use tier::DriveConfig;

use super::{Context, MediumSection, Section};

pub(super) const SECTION: MediumSection = MediumSection {
    name: "ram",
    read,
    free: &["ram.per_command", "ram.rate"],
    composed: false,
};

fn read(section: &mut Section<'_>, context: &Context<'_>) -> DriveConfig {
    DriveConfig::Ram(RamConfig {
        bytes: context.capacity,
        per_command: section.span("per_command", Span::from_ns(1)..=Span::from_ms(1)),
        picoseconds_per_byte: section.rate("rate", 1e6..=1e12).picoseconds_per_byte(),
        memory_bus: section.maybe("read_rate", |section, key| MemoryBus {
            read_picoseconds_per_byte: section.rate(key, 1e6..=1e12).picoseconds_per_byte(),
        }),
        spread: section
            .maybe("spread", |section, key| section.share(key, 0.0..=1.0))
            .unwrap_or(0.0),
    })
}
