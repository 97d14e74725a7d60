//! `[xpoint]`: a drive of 3D XPoint memory.
//!
//! Power is written as specifications give it, in watts at full speed; the model wants joules for each byte.

use model::Span;
use model::media::DriveConfig;
use model::media::xpoint::{Levelling, Power, Recovery, Refresh, Timing, UNIT, Wear, XPointConfig};

use super::{Context, Section};

pub(super) fn read(section: &mut Section<'_>, context: &Context<'_>) -> DriveConfig {
    let before = section.problems();
    let mut medium = section.section("medium");
    let channels = medium.count("channels", 1..=64u32);
    let dies_per_channel = medium.count("dies_per_channel", 1..=32u32);
    let die_bytes = medium.bytes("die", 1 << 20..=1 << 40);
    let die_read = medium.span("read", Span::from_ns(1)..=Span::from_ms(10));
    let die_write = medium.span("write", Span::from_ns(1)..=Span::from_ms(10));
    drop(medium);
    let (timing, max_transfer) = timing(section, die_read, die_write);
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
        power: Power {
            idle_watts: 0.0,
            read_joules_per_byte: 0.0,
            write_joules_per_byte: 0.0,
            limit_watts: 1.0,
            governor_window: Span::ZERO,
        },
        wear,
    };
    config.power = power(&mut section.section("power"), &config);
    // What is wrong only in combination; not worth saying while single figures are wrong.
    if section.problems() == before {
        for problem in config.problems() {
            section.whole_problem(problem, "the figures contradict each other");
        }
    }
    DriveConfig::XPoint(Box::new(config))
}

fn timing(section: &mut Section<'_>, die_read: Span, die_write: Span) -> (Timing, u32) {
    const RATES: std::ops::RangeInclusive<f64> = 1e6..=1e12;
    let mut link = section.section("link");
    let delay = link.span("delay", Span::ZERO..=Span::from_ms(1));
    let data_fetch = link.span("data_fetch", Span::ZERO..=Span::from_ms(1));
    let link_ps_per_byte = link.rate("rate", RATES).picoseconds_per_byte();
    drop(link);
    let mut controller = section.section("controller");
    let timing = Timing {
        link: delay,
        link_ps_per_byte,
        data_fetch,
        controller: controller.span("delay", Span::ZERO..=Span::from_ms(1)),
        controller_slots: controller.count("slots", 1..=1_000_000u32),
        controller_interval: controller.span("interval", Span::ZERO..=Span::from_ms(1)),
        read_path_ps_per_byte: controller.rate("read_path", RATES).picoseconds_per_byte(),
        write_path_ps_per_byte: controller.rate("write_path", RATES).picoseconds_per_byte(),
        turnaround: controller.span("turnaround", Span::ZERO..=Span::from_ms(1)),
        die_read,
        die_write,
    };
    let max_transfer = controller.bytes("max_transfer", u64::from(UNIT)..=1 << 30);
    (timing, max_transfer as u32)
}

fn refresh(section: &mut Section<'_>) -> Refresh {
    let pass = Span::from_ms(1)..=Span::from_seconds(10.0 * 365.0 * 86_400.0);
    Refresh {
        batch_units: section.count("batch", 0..=100_000u32),
        period: section.span("period", pass.clone()),
        after_power_on: section.span("after_power_on", pass.clone()),
        uptime_at_start: section.span("uptime_at_start", Span::ZERO..=*pass.end()),
    }
}

fn power(section: &mut Section<'_>, config: &XPointConfig) -> Power {
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
        // Full speed is that of the data path or of all groups of dies, whichever is slower.
        let unit = f64::from(UNIT);
        let path = 1e12 / paths[index].max(1) as f64;
        let medium = unit * f64::from(config.groups()) / units[index].seconds().max(1e-9);
        joules[index] = (active - idle_watts).max(0.0) / path.min(medium);
    }
    Power {
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
        protect_at_percent: protect * 100.0,
        protected_bytes_per_second: rate as u64,
    }
}
