//! `[xpoint]`: a drive of 3D XPoint memory.
//!
//! Power is written as in specifications, in watts at full speed. The model needs joules per byte.

use model::Span;
use model::media::xpoint::{
    Levelling, MAX_TABLE_PLACES, Recovery, UNIT, Wear, XPointConfig, XPointPower, XPointRefresh,
    XPointTiming,
};
use tier::DriveConfig;

use super::{Context, MediumSection, Section};

pub(super) const SECTION: MediumSection = MediumSection {
    name: "xpoint",
    read,
    free: &[
        "xpoint.medium.read",
        "xpoint.medium.write",
        "xpoint.controller.delay",
        "xpoint.controller.read_path",
        "xpoint.controller.write_path",
    ],
    composed: false,
};

fn read(section: &mut Section<'_>, context: &Context<'_>) -> DriveConfig {
    let before = section.problems();
    let mut medium = section.section("medium");
    let channels = medium.count("channels", 1..=64u32);
    let dies_per_channel = medium.count("dies_per_channel", 1..=32u32);
    let die_bytes = medium.bytes("die", 1 << 20..=1 << 40);
    let die_read = medium.span("read", Span::from_ns(1)..=Span::from_ms(10));
    let decode = medium.span("decode", Span::ZERO..=Span::from_us(50));
    let read_part = medium.bytes("read_part", 512..=u64::from(UNIT)) as u32;
    let die_write = medium.span("write", Span::from_ns(1)..=Span::from_ms(10));
    drop(medium);
    let (mut timing, max_transfer) = timing(section, die_read, die_write, read_part);
    timing.decode = decode;
    let refresh = refresh(&mut section.section("refresh"));
    let mut levelling = section.section("levelling");
    let levelling = Levelling {
        writes_per_move: levelling.count("writes_per_move", 0..=u32::MAX),
        batch_units: levelling.count("batch", 0..=100_000u32),
    };
    let mut recovery = section.section("recovery");
    let recovery = Recovery {
        reads_per_recovery: recovery.count("reads_per_recovery", 0..=u32::MAX),
        time: recovery.span("time", Span::ZERO..=Span::from_ms(1_000)),
    };
    let format_rate = section.section("format").rate("rate", 1e3..=1e12).0 as u64;
    let wear = wear(section, context);
    let mut config = XPointConfig {
        bytes: context.capacity,
        block: context.block,
        channels,
        dies_per_channel,
        die_bytes,
        max_transfer,
        timing,
        refresh,
        levelling,
        recovery,
        power: XPointPower {
            idle_watts: 0.0,
            read_joules_per_byte: 0.0,
            write_joules_per_byte: 0.0,
            limit_watts: 1.0,
            governor_window: Span::ZERO,
        },
        wear,
        format_die_bytes_per_second: format_rate,
    };
    config.power = power(&mut section.section("power"), &config);
    // Contradictions between figures; not reported while single figures are wrong.
    if section.problems() == before {
        for problem in config.problems() {
            section.whole_problem(problem, "the figures contradict each other");
        }
    }
    DriveConfig::XPoint(Box::new(config))
}

fn timing(
    section: &mut Section<'_>,
    die_read: Span,
    die_write: Span,
    read_part: u32,
) -> (XPointTiming, u32) {
    const RATES: std::ops::RangeInclusive<f64> = 1e6..=1e12;
    let mut link = section.section("link");
    let delay = link.span("delay", Span::ZERO..=Span::from_ms(1));
    let data_fetch = link.span("data_fetch", Span::ZERO..=Span::from_ms(1));
    let link_ps_per_byte = link.rate("rate", RATES).picoseconds_per_byte();
    drop(link);
    let mut controller = section.section("controller");
    let read_path_ps_per_byte = controller.rate("read_path", RATES).picoseconds_per_byte();
    let read_unit = Span::per_bytes(read_path_ps_per_byte, u64::from(UNIT)).ns() as f64;
    let spread = controller.share("read_spread", 0.0..=1.0);
    let timing = XPointTiming {
        link: delay,
        link_ps_per_byte,
        data_fetch,
        controller: controller.span("delay", Span::ZERO..=Span::from_ms(1)),
        further_block: controller.span("further_block", Span::ZERO..=Span::from_us(10)),
        controller_slots: controller.count("slots", 1..=1_000_000u32),
        write_buffers: controller.count("write_buffers", 1..=1_000_000u32),
        table_places: controller.count("table", 1..=MAX_TABLE_PLACES),
        controller_interval: controller.span("interval", Span::ZERO..=Span::from_ms(1)),
        read_path_ps_per_byte,
        read_part,
        read_completion: controller.span("completion", Span::ZERO..=Span::from_ms(1)),
        read_spread: Span::from_ns((read_unit * spread) as u64),
        write_path_ps_per_byte: controller.rate("write_path", RATES).picoseconds_per_byte(),
        turnaround: controller.span("turnaround", Span::ZERO..=Span::from_ms(1)),
        duplex: controller.flag("duplex"),
        die_read,
        decode: Span::ZERO,
        die_write,
    };
    let max_transfer = controller.bytes("max_transfer", u64::from(UNIT)..=1 << 30);
    (timing, max_transfer as u32)
}

fn refresh(section: &mut Section<'_>) -> XPointRefresh {
    let pass = Span::from_ms(1)..=Span::from_seconds(10.0 * 365.0 * 86_400.0);
    XPointRefresh {
        batch_units: section.count("batch", 0..=100_000u32),
        period: section.span("period", pass.clone()),
        after_power_on: section.span("after_power_on", pass.clone()),
        uptime_at_start: section.span("uptime_at_start", Span::ZERO..=*pass.end()),
    }
}

fn power(section: &mut Section<'_>, config: &XPointConfig) -> XPointPower {
    let watts = 0.0..=1000.0;
    let idle_watts = section.watts("idle", watts.clone());
    let limit_watts = section.watts("limit", watts.clone());
    let governor_window = section.span("window", Span::ZERO..=Span::from_ms(10_000));
    let timing = &config.timing;
    let paths = [timing.read_path_ps_per_byte, timing.write_path_ps_per_byte];
    let units = [config.unit_read(), config.unit_write()];
    let mut joules = [0.0; 2];
    for (index, key) in ["read", "write"].into_iter().enumerate() {
        let active = section.watts(key, watts.clone());
        if active < idle_watts {
            let what = format!("active power for `{key}` is below idle power");
            section.problem(key, what, "give the whole drive's watts at full speed");
        }
        // Full speed is the speed of the data path or of all groups of dies, whichever is lower.
        let unit = f64::from(UNIT);
        let path = 1e12 / paths[index].max(1) as f64;
        let medium = unit * f64::from(config.groups()) / units[index].seconds().max(1e-9);
        joules[index] = (active - idle_watts).max(0.0) / path.min(medium);
    }
    XPointPower {
        idle_watts,
        read_joules_per_byte: joules[0],
        write_joules_per_byte: joules[1],
        limit_watts,
        governor_window,
    }
}

fn wear(section: &mut Section<'_>, context: &Context<'_>) -> Wear {
    let mut wear = section.section("wear");
    let used = wear.share("used_at_start", 0.0..=10.0);
    let protect = wear.share("protect_at", 0.0..=10.0);
    let rate = wear.rate("protected_rate", 1e3..=1e12).0;
    drop(wear);
    let endurance_bytes = context.endurance_bytes.unwrap_or_else(|| {
        section.whole_problem(
            "an XPoint drive needs its rated endurance",
            "add `endurance`, or `drive_writes_per_day` and `warranty`",
        );
        u64::MAX
    });
    Wear {
        endurance_bytes,
        percentage_used_at_start: used * 100.0,
        factor: 1.0,
        protect_at_percent: protect * 100.0,
        protected_bytes_per_second: rate as u64,
    }
}

#[cfg(test)]
mod tests {
    use crate::{drive, drive_from_text};
    use model::Span;
    use model::media::xpoint::XPointConfig;
    use tier::DriveConfig;

    const OWN: &str = include_str!("../../../catalogue/xpoint/p4800x-375.toml");

    fn config(name: &str) -> XPointConfig {
        match drive(name).map(|sheet| sheet.config) {
            Ok(DriveConfig::XPoint(config)) => *config,
            other => panic!("{name}: {other:?}"),
        }
    }

    /// Returns the messages about a P4800X with `from` replaced.
    fn complaints(from: &str, to: &str) -> String {
        assert!(OWN.contains(from), "{from} is not in the file");
        let text = OWN.replace(from, to);
        drive_from_text("changed.toml", &text)
            .expect_err("it must be refused")
            .to_string()
    }

    #[test]
    fn figures_arrive_in_the_units_of_the_model() {
        let config = config("p4800x-375");
        assert_eq!(config.bytes, 375_000_000_000 / 4096 * 4096);
        assert_eq!((config.channels, config.dies_per_channel), (7, 4));
        assert_eq!(config.unit_read(), Span::from_ns(650));
        assert_eq!(config.max_transfer, 131_072);
        assert_eq!(config.wear.protect_at_percent, 105.0);
        assert_eq!(config.wear.protected_bytes_per_second, 30_000_000);
        // 30 drive writes per day for five years.
        let endurance = config.wear.endurance_bytes as f64;
        assert!((endurance / (375e9 * 30.0 * 1825.0) - 1.0).abs() < 1e-6);
    }

    #[test]
    fn full_speed_draws_the_watts_of_the_specification() {
        for (name, read, write) in [("p4800x-375", 8.0, 13.0), ("p4800x-750", 10.0, 15.0)] {
            let config = config(name);
            let power = &config.power;
            let at = |joules, ps: u64| power.idle_watts + joules * 1e12 / ps as f64;
            let timing = &config.timing;
            let reading = at(power.read_joules_per_byte, timing.read_path_ps_per_byte);
            let writing = at(power.write_joules_per_byte, timing.write_path_ps_per_byte);
            assert!((reading - read).abs() < 1e-6, "{name}: {reading}");
            assert!((writing - write).abs() < 1e-6, "{name}: {writing}");
        }
        // The die limits the write rate of a small module, not the controller.
        let module = config("optane-memory-16");
        let speed = 4096.0 / module.unit_write().seconds();
        let writing = module.power.idle_watts + module.power.write_joules_per_byte * speed;
        assert!((writing - 3.5).abs() < 1e-6, "{writing}");
    }

    #[test]
    fn drives_of_a_family_differ_only_in_what_their_files_say() {
        let (small, large) = (config("900p-280"), config("p4800x-750"));
        assert_eq!(small.timing, large.timing);
        assert_eq!(small.refresh, large.refresh);
        assert_eq!(small.recovery, large.recovery);
    }

    #[test]
    fn contradictions_are_refused() {
        let dies = complaints("value = 4,", "value = 1,");
        assert!(
            dies.contains("the dies hold less than the capacity"),
            "{dies}"
        );
        let watts = complaints("8 W", "3 W");
        assert!(
            watts.contains("active power for `read` is below idle power"),
            "{watts}"
        );
        let idle = complaints(
            "[xpoint.power]",
            "[xpoint.power]\nlimit = { value = \"5 W\", kind = \"assumed\", source = \"a slip\" }",
        );
        assert!(
            idle.contains("the power limit must be above idle power"),
            "{idle}"
        );
        let endless = complaints(
            "drive_writes_per_day = { value = 30, kind = \"spec\", source = \"S4-014\" }",
            "",
        );
        assert!(endless.contains("needs its rated endurance"), "{endless}");
        let slots = complaints(
            "[xpoint.medium]",
            "[xpoint.controller]\nslot = { value = 32, kind = \"assumed\", source = \"a slip\" }\n[xpoint.medium]",
        );
        assert!(
            slots.contains("unknown key `xpoint.controller.slot`"),
            "{slots}"
        );
        assert!(slots.contains("did you mean `slots`?"), "{slots}");
    }
}
