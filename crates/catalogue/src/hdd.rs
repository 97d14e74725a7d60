//! `[hdd]`: a hard disk.
//!
//! Rates are sustained rates, as specifications give them: over whole tracks, including the switches between tracks.

use std::ops::RangeInclusive;

use model::Span;
use model::media::hdd::{
    Disk, HddBuffer, HddConfig, HddController, HddPower, HddQueue, Link, MOST_WRITES, MOST_ZONES,
    Seek,
};
use tier::DriveConfig;

use super::{Context, MediumSection, Section};

fn up_to_ms(ms: u64) -> RangeInclusive<Span> {
    Span::ZERO..=Span::from_ms(ms)
}

pub(super) const SECTION: MediumSection = MediumSection {
    name: "hdd",
    read,
    free: &[
        "hdd.seek.average",
        "hdd.seek.write_settle",
        "hdd.disk.outer",
        "hdd.disk.inner",
        "hdd.controller.command",
    ],
    composed: false,
};

fn read(section: &mut Section<'_>, context: &Context<'_>) -> DriveConfig {
    let before = section.problems();
    let config = HddConfig {
        bytes: context.capacity,
        block: context.block,
        disk: disk(&mut section.section("disk")),
        seek: seek(&mut section.section("seek")),
        controller: controller(&mut section.section("controller")),
        link: link(&mut section.section("link")),
        queue: queue(&mut section.section("queue")),
        buffer: buffer(&mut section.section("buffer")),
        write_cache: section.flag("write_cache"),
        spin_up: section.span("spin_up", up_to_ms(120_000)),
        power: power(&mut section.section("power")),
    };
    // Contradictions between figures; not reported while single figures are wrong.
    if section.problems() == before {
        for problem in config.problems() {
            section.whole_problem(problem, "the figures contradict each other");
        }
    }
    DriveConfig::Hdd(Box::new(config))
}

fn disk(section: &mut Section<'_>) -> Disk {
    const RATES: RangeInclusive<f64> = 1e6..=1e12;
    let turns = section.count("turns_per_minute", 1000..=30_000u32);
    Disk {
        heads: section.count("heads", 1..=64u32),
        zones: section.count("zones", 1..=MOST_ZONES),
        turn: Span::from_seconds(60.0 / f64::from(turns)),
        sector: section.bytes("sector", 512..=4096) as u32,
        outer: section.rate("outer", RATES).0 as u64,
        inner: section.rate("inner", RATES).0 as u64,
        read_retry: section.share("read_retry", 0.0..=0.5),
    }
}

fn seek(section: &mut Section<'_>) -> Seek {
    Seek {
        track: section.span("track", Span::from_us(1)..=Span::from_ms(50)),
        average: section.span("average", Span::from_us(1)..=Span::from_ms(200)),
        full: section.span("full", Span::from_us(1)..=Span::from_ms(500)),
        write_settle: section.span("write_settle", up_to_ms(50)),
    }
}

fn controller(section: &mut Section<'_>) -> HddController {
    HddController {
        command: section.span("command", up_to_ms(10)),
        access: section.span("access", up_to_ms(10)),
    }
}

fn link(section: &mut Section<'_>) -> Link {
    Link {
        delay: section.span("delay", up_to_ms(1)),
        ps_per_byte: section.rate("rate", 1e6..=1e12).picoseconds_per_byte(),
    }
}

fn queue(section: &mut Section<'_>) -> HddQueue {
    HddQueue {
        depth: section.count("depth", 1..=4096u32),
        oldest: section.span("oldest", Span::from_ms(1)..=Span::from_ms(60_000)),
    }
}

fn buffer(section: &mut Section<'_>) -> HddBuffer {
    HddBuffer {
        segments: section.count("segments", 1..=4096u32),
        segment: section.bytes("segment", 4096..=1 << 32),
        read_ahead: section.bytes("read_ahead", 0..=1 << 32),
        write: section.bytes("write", 4096..=1 << 36),
        writes: section.count("writes", 1..=MOST_WRITES),
    }
}

fn power(section: &mut Section<'_>) -> HddPower {
    let watts = 0.0..=1000.0;
    HddPower {
        idle: section.watts("idle", watts.clone()),
        seek: section.watts("seek", watts.clone()),
        transfer: section.watts("transfer", watts),
    }
}

#[cfg(test)]
mod tests {
    use crate::{drive, drive_from_text};
    use model::Span;
    use model::media::Medium;
    use model::media::hdd::HddConfig;
    use tier::DriveConfig;

    const OWN: &str = include_str!("../../../catalogue/hdd/savvio-10k4-600.toml");

    fn config(name: &str) -> HddConfig {
        match drive(name).map(|sheet| sheet.config) {
            Ok(DriveConfig::Hdd(config)) => *config,
            other => panic!("{name}: {other:?}"),
        }
    }

    /// Returns the messages about that disk with `from` replaced.
    fn complaints(from: &str, to: &str) -> String {
        assert!(OWN.contains(from), "{from} is not in the file");
        let text = OWN.replace(from, to);
        drive_from_text("changed.toml", &text)
            .expect_err("it must be refused")
            .to_string()
    }

    #[test]
    fn figures_of_the_manual_arrive_in_the_units_of_the_model() {
        let config = config("savvio-10k4-600");
        assert_eq!(config.disk.turn, Span::from_ms(6));
        assert_eq!(config.disk.heads, 6);
        assert_eq!(config.seek.track, Span::from_us(300));
        assert_eq!(config.seek.average, Span::from_us(3800));
        assert_eq!(config.seek.full, Span::from_us(7810));
        // The manual's average for a write is 0.6 ms longer.
        assert_eq!(config.seek.write_settle, Span::from_us(600));
        assert_eq!(
            config.controller.command + config.controller.access,
            Span::from_us(200)
        );
        // 147,620 tracks per surface, six surfaces, 677,557 bytes per track on average: this follows from the rates.
        let mean = (config.disk.outer + config.disk.inner) as f64 / 2.0;
        let track = mean * (config.disk.turn + config.skew()).seconds();
        assert!((track / 677_557.0 - 1.0).abs() < 0.01, "{track}");
        assert_eq!(config.volatile_bytes(), config.buffer.write);
    }

    #[test]
    fn a_format_writes_all_of_it_in_order() {
        let config = config("exos-x18-16tb");
        let mean = (config.disk.outer + config.disk.inner) as f64 / 2.0;
        let expected = config.bytes as f64 / mean;
        let found = config.format_duration().seconds();
        assert!(
            (found / expected - 1.0).abs() < 0.01,
            "{found} for {expected}"
        );
    }

    #[test]
    fn contradictions_are_refused() {
        let average = complaints("\"3.8 ms\"", "\"7.8 ms\"");
        assert!(
            average.contains("the average seek time must be"),
            "{average}"
        );
        let watts = complaints("[hdd.power]", "[hdd.power]\nseak = 3");
        assert!(watts.contains("unknown key `hdd.power.seak`"), "{watts}");
        assert!(watts.contains("did you mean `seek`?"), "{watts}");
        let cache = complaints(
            "write_cache = { value = true",
            "write_cache = { value = \"on\"",
        );
        assert!(cache.contains("hdd.write_cache"), "{cache}");
        let kept = complaints(
            "power_loss_protection = { value = false",
            "power_loss_protection = { value = true",
        );
        assert!(kept.contains("write buffer is volatile"), "{kept}");
    }
}
