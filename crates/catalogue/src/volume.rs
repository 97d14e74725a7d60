//! `[volume]`: a cloud volume or a virtual disk.
//!
//! The file omits limits that the volume does not have. `[volume.instance]` gives the limits of the machine to which
//! the volume is attached, if known.

use std::ops::RangeInclusive;

use model::Span;
use model::media::volume::{
    Burst, IoPath, Limit, Limits, MOST_WIDTH, Pause, SHORTEST_PACE, Store, VolumeConfig,
    WIDEST_SPREAD,
};
use tier::DriveConfig;

use super::{Context, MediumSection, Section};

fn up_to_ms(ms: u64) -> RangeInclusive<Span> {
    Span::ZERO..=Span::from_ms(ms)
}

/// Bytes per second of one I/O.
const RATES: RangeInclusive<f64> = 1e6..=1e12;

pub(super) const SECTION: MediumSection = MediumSection {
    name: "volume",
    read,
    free: &[
        "volume.path.round",
        "volume.path.each",
        "volume.path.read",
        "volume.path.write",
        "volume.path.spread",
        "volume.store.read",
        "volume.store.write",
        "volume.store.spread",
        "volume.store.width",
        "volume.limits.iops",
        "volume.limits.rate",
    ],
    composed: false,
};

fn read(section: &mut Section<'_>, context: &Context<'_>) -> DriveConfig {
    let before = section.problems();
    let config = VolumeConfig {
        bytes: context.capacity,
        block: context.block,
        path: path(&mut section.section("path")),
        store: store(&mut section.section("store")),
        limits: maybe_limits(section, "limits"),
        instance: maybe_limits(section, "instance"),
    };
    // Contradictions between figures; not reported while single figures are wrong.
    if section.problems() == before {
        for problem in config.problems() {
            section.whole_problem(problem, "the figures contradict each other");
        }
    }
    DriveConfig::Volume(Box::new(config))
}

fn path(section: &mut Section<'_>) -> IoPath {
    IoPath {
        round: section.span("round", up_to_ms(100)),
        each: section.span("each", up_to_ms(100)),
        read_ps_per_byte: section.rate("read", RATES).picoseconds_per_byte(),
        write_ps_per_byte: section.rate("write", RATES).picoseconds_per_byte(),
        spread: section.share("spread", 0.0..=WIDEST_SPREAD),
        pace: section.span("pace", SHORTEST_PACE..=Span::from_ms(1_000)),
        pause: section
            .has("pause")
            .then(|| pause(&mut section.section("pause"))),
    }
}

fn pause(section: &mut Section<'_>) -> Pause {
    Pause {
        every: section.span("every", Span::from_us(1)..=Span::from_ms(3_600_000)),
        mean: section.span("mean", up_to_ms(60_000)),
    }
}

fn store(section: &mut Section<'_>) -> Store {
    Store {
        read: section.span("read", up_to_ms(10_000)),
        write: section.span("write", up_to_ms(10_000)),
        read_ps_per_byte: section.rate("read_rate", RATES).picoseconds_per_byte(),
        write_ps_per_byte: section.rate("write_rate", RATES).picoseconds_per_byte(),
        spread: section.share("spread", 0.0..=WIDEST_SPREAD),
        width: section.count("width", 1..=MOST_WIDTH),
    }
}

fn maybe_limits(section: &mut Section<'_>, key: &str) -> Limits {
    match section.has(key) {
        true => limits(&mut section.section(key)),
        false => Limits::NONE,
    }
}

fn limits(section: &mut Section<'_>) -> Limits {
    let counted =
        |section: &mut Section<'_>, key: &str| section.count(key, 1..=1_000_000_000_000u64);
    let rated = |section: &mut Section<'_>, key: &str| section.rate(key, 1e3..=1e13).0 as u64;
    let sized = |section: &mut Section<'_>, key: &str| section.bytes(key, 1..=1 << 60);
    Limits {
        iops: limit(section, "iops", &counted, &counted),
        bytes: limit(section, "rate", &rated, &sized),
        io_size: section.bytes("io_size", 512..=1 << 30) as u32,
        window: section.span("window", Span::from_us(1)..=Span::from_ms(60_000)),
    }
}

/// Reads the limit of this key, with `KEY_burst` and `KEY_credits` if it has credits.
fn limit(
    section: &mut Section<'_>,
    key: &str,
    rate: &dyn Fn(&mut Section<'_>, &str) -> u64,
    credits: &dyn Fn(&mut Section<'_>, &str) -> u64,
) -> Option<Limit> {
    let (burst_key, credits_key) = (format!("{key}_burst"), format!("{key}_credits"));
    let limit = section.maybe(key, rate);
    let burst = section.maybe(&burst_key, rate);
    let saved = section.maybe(&credits_key, credits);
    let lone = match (limit, burst, saved) {
        (None, Some(_), _) => Some((&burst_key, key)),
        (None, _, Some(_)) => Some((&credits_key, key)),
        (_, Some(_), None) => Some((&burst_key, &*credits_key)),
        (_, None, Some(_)) => Some((&credits_key, &*burst_key)),
        _ => None,
    };
    if let Some((with, without)) = lone {
        section.problem(
            with,
            format!("`{with}` needs `{without}`"),
            "a limit with credits requires its rate, the burst rate and the amount of credits",
        );
    }
    Some(Limit {
        rate: limit?,
        burst: burst
            .zip(saved)
            .map(|(rate, credits)| Burst { rate, credits }),
    })
}

#[cfg(test)]
mod tests {
    use crate::{Change, drive, drive_with};
    use model::Span;
    use model::media::Medium;
    use model::media::volume::{Limits, VolumeConfig};
    use tier::DriveConfig;

    fn config(name: &str, changes: &[(&str, &str)]) -> VolumeConfig {
        let changes: Vec<Change> = changes
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect();
        match drive_with(name, &changes).map(|sheet| sheet.config) {
            Ok(DriveConfig::Volume(config)) => *config,
            other => panic!("{name}: {other:?}"),
        }
    }

    fn complaints(name: &str, key: &str, value: &str) -> String {
        drive_with(name, &[(key.to_owned(), value.to_owned())])
            .expect_err("it must be refused")
            .to_string()
    }

    #[test]
    fn limits_of_the_documents_arrive_in_the_units_of_the_model() {
        let found = |name: &str| {
            let limits = config(name, &[]).limits;
            (
                limits.iops.map(|it| it.rate),
                limits.bytes.map(|it| it.rate),
            )
        };
        assert_eq!(found("gp3"), (Some(3_000), Some(125 << 20)));
        assert_eq!(found("io2"), (Some(256_000), Some(4_000 << 20)));
        assert_eq!(found("premium-ssd-v2"), (Some(3_000), Some(125_000_000)));
        // 30 IOPS and 0.48 MiB/s per GiB for 500 GiB, plus 6,000 IOPS and 240 MiB/s.
        assert_eq!(found("pd-ssd"), (Some(21_000), Some(480 << 20)));
        assert_eq!(config("gp3", &[]).store.read, Span::from_us(600));
        assert_eq!(config("gp3", &[]).limits.io_size, 256 << 10);
    }

    /// 5.4 million credits last for half an hour at 3,000 IOPS, and slightly longer because 300 per second are added.
    #[test]
    fn credits_last_as_long_as_the_document_says() {
        let limit = config("gp2-100", &[]).limits.iops.expect("a limit");
        let burst = limit.burst.expect("credits");
        assert_eq!(limit.rate, 3 * (config("gp2-100", &[]).bytes >> 30));
        assert_eq!(burst.credits / burst.rate, 30 * 60);
        assert_eq!(burst.credits / (burst.rate - limit.rate), 2000);
    }

    #[test]
    fn nothing_of_a_volume_is_volatile_and_no_endurance_is_known() {
        for name in [
            "gp3",
            "gp2-100",
            "io2",
            "premium-ssd-v2",
            "pd-ssd",
            "volume-base",
        ] {
            let sheet = drive(name).expect("built in");
            assert_eq!(sheet.config.volatile_bytes(), 0, "{name}");
            assert_eq!(sheet.endurance_bytes, None, "{name}");
        }
    }

    #[test]
    fn an_instance_has_limits_where_they_are_given() {
        assert_eq!(config("gp3", &[]).instance.iops, None);
        let small = config("gp3", &[("volume.instance.rate", "60 MB/s")]);
        assert_eq!(small.instance.bytes.map(|it| it.rate), Some(60_000_000));
        assert_eq!(config("volume-base", &[]).instance, Limits::NONE);
    }

    #[test]
    fn a_limit_with_half_of_its_credits_is_refused() {
        let lone = complaints("gp3", "volume.limits.iops_credits", "5400000");
        assert!(lone.contains("`iops_credits` needs `iops_burst`"), "{lone}");
        let slow = complaints("gp2-100", "volume.limits.iops_burst", "100");
        assert!(
            slow.contains("the burst rate must be at least the rate after the burst"),
            "{slow}"
        );
        let unknown = complaints("gp3", "volume.limits.ipos", "100");
        assert!(unknown.contains("volume.limits.ipos"), "{unknown}");
        let wide = complaints("gp3", "volume.store.width", "0");
        assert!(wide.contains("volume.store.width"), "{wide}");
    }
}
