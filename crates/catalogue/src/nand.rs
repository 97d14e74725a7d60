//! `[nand]`: a NAND drive.

use std::num::NonZeroU32;
use std::ops::RangeInclusive;

use model::Span;
use model::ftl::{NandGeometry, Watermark};
use model::media::nand::{
    Bursts, Collection, Housekeeping, MapConfig, NandConfig, NandController, NandPower,
    NandRefresh, NandTiming, Pace, ReadAhead, ReadCoreConfig, SlcCache, Suspend, WriteBuffer,
};
use tier::DriveConfig;

use super::{Context, DriveRole, MediumSection, Section};

/// The two behaviours of writes when the SLC cache is full; see [`SlcCache::folds`].
const WHEN_FULL: [(&str, bool); 2] = [("direct", false), ("fold", true)];

const RATES: RangeInclusive<f64> = 1e6..=1e12;

fn up_to_ms(ms: u64) -> RangeInclusive<Span> {
    Span::ZERO..=Span::from_ms(ms)
}

pub(super) const SECTION: MediumSection = MediumSection {
    name: "nand",
    read,
    free: &[
        "nand.medium.read",
        "nand.medium.program",
        "nand.controller.read_interval",
        "nand.cores.read",
        "nand.controller.write_interval",
        "nand.controller.read_delay",
        "nand.link.rate",
    ],
    composed: false,
};

fn read(section: &mut Section<'_>, context: &Context<'_>) -> DriveConfig {
    let before = section.problems();
    let (controller, buffer) = controller(section);
    let mut geometry = geometry(&mut section.section("array"), context);
    if let DriveRole::DataSheet(_) = context.role {
        take_dies(&mut geometry);
    }
    let wear = wear(&mut section.section("wear"));
    let config = NandConfig {
        geometry,
        block: context.block,
        timing: timing(section),
        controller,
        buffer,
        collection: collection(&mut section.section("collection")),
        read_ahead: part(section, "read_ahead", |part| ReadAhead {
            bytes: part.bytes("size", 4096..=1 << 30) as u32,
            after: part.count("after", 1..=1000u32),
        }),
        map: part(section, "map", |part| MapConfig {
            bytes: part.bytes("memory", 4096..=1 << 40),
            read: part.span("read", Span::from_us(1)..=Span::from_ms(10)),
        }),
        slc: part(section, "slc", |part| SlcCache {
            blocks_per_die: part.count("blocks_per_die", 1..=100_000u32),
            bits: part.count("bits", 2..=4u32),
            read: part.span("read", Span::from_us(1)..=Span::from_ms(10)),
            program: part.span("program", Span::from_us(1)..=Span::from_ms(100)),
            folds: part
                .maybe("when_full", |part, key| part.choice(key, &WHEN_FULL))
                .unwrap_or_default(),
        }),
        refresh: part(section, "refresh", |part| NandRefresh {
            every: part.span("every", Span::from_ms(1)..=Span::from_ms(1_000_000_000)),
            lasts: part.span("lasts", Span::from_us(1)..=Span::from_ms(1000)),
        }),
        housekeeping: part(section, "housekeeping", |part| Housekeeping {
            every_units: part.bytes("every", 4096..=1 << 50) / 4096,
            mean: part.span("mean", Span::from_us(1)..=Span::from_ms(10_000)),
        }),
        pace: part(section, "pace", |part| Pace {
            depth: part.count("depth", 1..=4096u32),
        }),
        power: power(&mut section.section("power")),
        rated_cycles: wear.0,
        percentage_used_at_start: 0.0,
        wear_factor: 1.0,
        read_only_at_percent: wear.1,
        filled: 1.0,
    };
    // Contradictions between figures; not reported while single figures are wrong.
    if section.problems() == before
        && let Err(wrong) = config.check()
    {
        for what in wrong {
            section.whole_problem(what, "the figures contradict each other");
        }
    }
    DriveConfig::Nand(Box::new(config))
}

/// Reads the rated cycles, and the Percentage Used at which the medium becomes read-only, if it does.
fn wear(section: &mut Section<'_>) -> (u32, Option<f64>) {
    let cycles = section.count("rated_cycles", 1..=10_000_000u32);
    let read_only = section.maybe("read_only_at", |section, key| {
        section.share(key, 0.0..=10.0)
    });
    (cycles, read_only.map(|share| share * 100.0))
}

/// Reads an optional section.
fn part<T>(
    section: &mut Section<'_>,
    key: &str,
    get: impl FnOnce(&mut Section<'_>) -> T,
) -> Option<T> {
    section.has(key).then(|| get(&mut section.section(key)))
}

/// Reads an optional time of at most `most_us` microseconds; zero if absent.
fn maybe_span(section: &mut Section<'_>, key: &str, most_us: u64) -> Span {
    let range = Span::ZERO..=Span::from_us(most_us);
    section
        .maybe(key, |section, key| section.span(key, range))
        .unwrap_or(Span::ZERO)
}

fn geometry(array: &mut Section<'_>, context: &Context<'_>) -> NandGeometry {
    NandGeometry {
        channels: array.count("channels", 1..=128u32),
        dies_per_channel: array.count("dies_per_channel", 1..=256u32),
        planes: array.count("planes", 1..=16u32),
        blocks_per_plane: array.count("blocks_per_plane", 8..=100_000u32),
        pages_per_block: array.count("pages_per_block", 8..=10_000u32),
        page_bytes: array.bytes("page", 4096..=1 << 20) as u32,
        reserved: array.share("reserved", 0.0..=0.9),
        capacity: context.capacity,
        indirection: array
            .maybe("indirection", |array, key| {
                array.bytes(key, 4096..=1 << 20) as u32
            })
            .unwrap_or(4096),
        stripe: array
            .maybe("stripe", |array, key| {
                array.bytes(key, 4096..=1 << 24) as u32
            })
            .unwrap_or(0),
    }
}

/// Minimum ratio of usable bytes to host-addressable bytes in an array built for a capacity. With less, garbage
/// collection has no spare area. More spare area for random writes is solved later.
const LEAST_ROOM: f64 = 1.05;

/// Sets the number of dies that the capacity needs, on at most the given number of channels.
fn take_dies(geometry: &mut NandGeometry) {
    let dies = f64::from(geometry.channels * geometry.dies_per_channel);
    let usable = geometry.raw_bytes() as f64 / dies * (1.0 - geometry.reserved);
    let wanted = geometry.capacity as f64 * LEAST_ROOM / usable.max(1.0);
    let wanted = (libm::ceil(wanted) as u32).max(1);
    geometry.channels = geometry.channels.min(wanted);
    geometry.dies_per_channel = wanted.div_ceil(geometry.channels);
}

fn timing(section: &mut Section<'_>) -> NandTiming {
    let suspend = part(section, "suspend", |part| Suspend {
        latency: part.span("latency", up_to_ms(10)),
        resume: part.span("resume", up_to_ms(10)),
        most: part.count("most", 0..=10_000u32),
        step: maybe_span(part, "step", 300),
        blind: maybe_span(part, "blind", 800),
        erase_step: maybe_span(part, "erase_step", 3000),
    });
    let (channel_command, channel_ps_per_byte) = {
        let mut channel = section.section("channel");
        (
            channel.span("command", up_to_ms(1)),
            channel.rate("rate", RATES).picoseconds_per_byte(),
        )
    };
    let mut medium = section.section("medium");
    NandTiming {
        read: medium.span("read", Span::from_us(1)..=Span::from_ms(10)),
        read_spread: medium.share("read_spread", 0.0..=1.0),
        read_thresholds: medium
            .maybe("read_thresholds", |medium, key| {
                medium.list::<u64>(key, 1..=15)
            })
            .unwrap_or_default()
            .into_iter()
            .map(|count| count as u32)
            .collect(),
        retry_probability: medium.share("read_retry", 0.0..=0.5),
        cache_read: medium.flag("cache_read"),
        program_spread: medium.share("program_spread", 0.0..=0.99),
        program_jitter: medium
            .maybe("program_jitter", |medium, key| {
                medium.share(key, 0.0..=0.99)
            })
            .unwrap_or(0.0),
        program: medium.span("program", Span::from_us(1)..=Span::from_ms(100)),
        erase: medium.span("erase", Span::from_us(1)..=Span::from_ms(1000)),
        suspend,
        channel_command,
        channel_ps_per_byte,
    }
}

fn controller(section: &mut Section<'_>) -> (NandController, WriteBuffer) {
    let buffer = {
        let mut buffer = section.section("buffer");
        WriteBuffer {
            bytes: buffer.bytes("size", 4096..=1 << 36),
            protected: buffer.flag("protected"),
            save_tables: buffer.span("save_tables", Span::ZERO..=Span::from_ms(100)),
            fua_tables: maybe_span(&mut buffer, "fua_tables", 5000),
            tables_per_write: buffer
                .maybe("tables_per_write", |buffer, key| {
                    buffer.share(key, 0.0..=4.0)
                })
                .unwrap_or(0.0),
        }
    };
    let (link_latency, link_ps_per_byte, link_write_ps_per_byte, slots) = {
        let mut link = section.section("link");
        (
            link.span("delay", up_to_ms(1)),
            link.rate("rate", RATES).picoseconds_per_byte(),
            link.maybe("write_rate", |link, key| {
                link.rate(key, RATES).picoseconds_per_byte()
            }),
            link.maybe("slots", |link, key| link.count(key, 1..=1024u32))
                .and_then(NonZeroU32::new),
        )
    };
    let cores = part(section, "cores", |part| ReadCoreConfig {
        count: part.count("count", 1..=64u32),
        per_read: part.span("read", up_to_ms(1)),
    });
    let mut controller = section.section("controller");
    let controller = NandController {
        per_read: controller.span("read_interval", up_to_ms(1)),
        per_read_unit: controller.maybe("read_unit_interval", |controller, key| {
            controller.span(key, up_to_ms(1))
        }),
        per_write: controller.span("write_interval", up_to_ms(1)),
        per_write_unit: controller.span("write_unit_interval", up_to_ms(1)),
        issue_interval: controller.span("issue_interval", up_to_ms(1)),
        write_issue_interval: controller.span("write_issue_interval", up_to_ms(1)),
        cores,
        read_latency: controller.span("read_delay", up_to_ms(1)),
        write_latency: controller.span("write_delay", up_to_ms(1)),
        write_spread: controller
            .maybe("write_delay_spread", |controller, key| {
                controller.span(key, up_to_ms(1))
            })
            .unwrap_or(Span::ZERO),
        link_latency,
        link_ps_per_byte,
        link_write_ps_per_byte,
        slots,
        max_transfer: controller.bytes("max_transfer", 4096..=1 << 30) as u32,
        merge_before_ack: controller.flag("merge_before_ack"),
    };
    (controller, buffer)
}

fn collection(section: &mut Section<'_>) -> Collection {
    Collection {
        watermark: Watermark {
            low: section.count("low_water", 2..=1000u32),
        },
        background_free: section.count("background_free", 0..=10_000u32),
        idle_after: section.span("idle_after", Span::from_us(1)..=Span::from_ms(3_600_000)),
        per_unit: section.span("unit_interval", up_to_ms(1)),
        bursts: section.maybe("burst", |section, key| Bursts {
            pages: section.count(key, 1..=64u32),
            host_share: section.count("host_share", 2..=64u32),
            yield_at: section.count("yield", 64..=4096u32),
            yield_after: section.span("yield_after", Span::from_ms(1)..=Span::from_ms(200)),
        }),
    }
}

fn power(section: &mut Section<'_>) -> NandPower {
    NandPower {
        idle: section.watts("idle", 0.0..=1000.0),
        read: section.joules("read", 0.0..=1.0),
        program: section.joules("program", 0.0..=1.0),
        erase: section.joules("erase", 0.0..=1.0),
        per_byte: section.joules("per_megabyte", 0.0..=1.0) * 1e-6,
    }
}
