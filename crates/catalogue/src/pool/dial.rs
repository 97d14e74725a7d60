//! Pool settings that can be varied without a file: for each kind, the most important settings and figures, with
//! values around the present one.
//!
//! The readers of the kinds define which keys exist, their allowed values and their present values. Each offered
//! value has been read by them, as `--set tier.NAME.KEY=VALUE` is. Not included: keys that only matter together with
//! others, and the software costs of an intent log.

use model::Span;
use serde::Serialize;

use super::keys::bytes_of;
use crate::change::as_value;
use crate::{Change, DriveSheet, Settings, drive_as};
use text::quantity::{Bytes, Quantity, Share, split};

/// By kind: the keys that can be varied, in display order.
const OFFERED: [(&str, &[&str]); 7] = [
    ("mirror", &["reads"]),
    ("stripe", &["chunk"]),
    ("raidz", &["parity"]),
    (
        "intent-log",
        &["sync", "logbias", "txg", "ram", "record", "zil_slog_bulk"],
    ),
    (
        "read-cache",
        &[
            "like",
            "line",
            "policy",
            "writes",
            "fill_at_miss",
            "sequential_cutoff",
        ],
    ),
    ("log-structured", &["compression", "stripe", "memory"]),
    (
        "write-back-cache",
        &[
            "like",
            "buffer_limit",
            "destage_from",
            "destage_pause",
            "congestion_from",
            "congestion_delay",
            "chunk",
            "record",
        ],
    ),
];

/// A setting or figure that can be varied.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TunableSetting {
    /// Key for `--set`: `tier.NAME.KEY`.
    pub key: String,
    /// Present value as text.
    pub now: String,
    /// All values, including the present one: quantities in ascending order, words in the order of their definition.
    pub values: Vec<String>,
    /// Whether the values are words without an order.
    pub words: bool,
}

impl DriveSheet {
    /// Returns the keys that can be varied on this pool, which `settings` produced. Empty for a drive that is not a
    /// pool, or for a pool that its name cannot load.
    pub fn dials(&self, settings: &Settings) -> Vec<TunableSetting> {
        let (Some(config), Some(pool)) = (self.pool_config(), &self.pool) else {
            return Vec::new();
        };
        let mut dials = Vec::new();
        for (tier, sheet) in config.tiers.iter().zip(&pool.tiers) {
            let offered = OFFERED.iter().filter(|(kind, _)| *kind == sheet.kind);
            for below in offered.flat_map(|(_, keys)| *keys) {
                let key = format!("tier.{}.{below}", tier.name);
                let words = sheet.words.iter().find(|(word, _)| word == below);
                let Some(now) = self.now(&key) else { continue };
                let values = match words {
                    Some((_, words)) => words.clone(),
                    None => candidate_values(&now),
                };
                let takes = |value: &String| *value == now || self.takes(settings, &key, value);
                let values: Vec<String> = values.into_iter().filter(takes).collect();
                if values.len() > 1 {
                    dials.push(TunableSetting {
                        key,
                        now,
                        values,
                        words: words.is_some(),
                    });
                }
            }
        }
        dials
    }

    /// Returns the present value of a tier's setting or figure.
    fn now(&self, key: &str) -> Option<String> {
        let figure = self.figures.iter().find(|figure| figure.key == key);
        figure
            .map(|figure| figure.value.clone())
            .or_else(|| self.setting(key))
    }

    fn setting(&self, key: &str) -> Option<String> {
        let (config, pool) = (self.pool_config()?, self.pool.as_ref()?);
        let (name, below) = key.strip_prefix("tier.")?.split_once('.')?;
        let at = config.tiers.iter().position(|tier| tier.name == name)?;
        let settings = pool.tiers[at].settings.iter();
        settings
            .filter(|(setting, _)| setting == below)
            .map(|(_, value)| value.clone())
            .next()
    }

    /// Checks whether the pool accepts this value.
    fn takes(&self, settings: &Settings, key: &str, value: &str) -> bool {
        let mut settings = settings.clone();
        let change: Change = (key.to_owned(), value.to_owned());
        settings.figures.retain(|(set, _)| set != key);
        settings.figures.push(change);
        drive_as(&self.id, &settings).is_ok()
    }
}

/// Returns values around a quantity given as text, in ascending order, including the quantity.
fn candidate_values(now: &str) -> Vec<String> {
    let value = as_value(now);
    let mut all: Vec<(f64, String)> = if let Some(Share(share)) = Share::read(&value) {
        let tenths = (0..=10).map(|tenth| (f64::from(tenth) / 10.0, format!("{} %", tenth * 10)));
        tenths.chain([(share, now.to_owned())]).collect()
    } else if let Some(span) = Span::read(&value) {
        let ns = span.ns();
        let times = decades(ns).map(|ns| (ns as f64, Span::from_ns(ns).show()));
        times.chain([(ns as f64, now.to_owned())]).collect()
    } else if let Some((bytes, most)) = size(now) {
        let sizes = octaves(bytes, 1 << 20).filter(|&size| size <= most);
        let sizes = sizes.map(|bytes| (bytes as f64, Bytes(bytes).show()));
        sizes.chain([(bytes as f64, now.to_owned())]).collect()
    } else if let Some(count) = u64::read(&value) {
        let counts = octaves(count, 1).map(|count| (count as f64, count.to_string()));
        counts.chain([(count as f64, now.to_owned())]).collect()
    } else {
        return Vec::new();
    };
    // The present value comes last, so that of two equal values the present one remains.
    all.reverse();
    all.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    all.dedup_by(|(b, _), (a, _)| (*a - *b).abs() <= 1e-9 * a.abs());
    all.into_iter().map(|(_, words)| words).collect()
}

/// Parses a size and returns it with its upper limit. A size whose text is rounded to its unit is the size of a
/// device, and is its own limit.
fn size(now: &str) -> Option<(u64, u64)> {
    if let Some(bytes) = bytes_of(&as_value(now)) {
        let is_round = bytes.is_multiple_of(4096);
        return Some((bytes, if is_round { u64::MAX } else { bytes }));
    }
    let (number, unit) = split(now)?;
    let whole = bytes_of(&as_value(&format!("{} {unit}", number as u64)))?;
    (number >= 1.0).then_some((whole, whole))
}

/// Returns zero, and powers of two from 1/16 to 16 times `now`; around `else_around` if `now` is zero.
fn octaves(now: u64, else_around: u64) -> impl Iterator<Item = u64> {
    let middle = match now {
        0 => else_around,
        now => 1 << now.ilog2(),
    };
    let steps = (-4..=4).map(move |step: i32| match step < 0 {
        true => middle >> -step,
        false => middle << step.min(middle.leading_zeros() as i32 - 1),
    });
    [0].into_iter().chain(steps)
}

/// Returns zero, and 1, 2 and 5 in the decades around `now`; around 1 ms if `now` is zero.
fn decades(now: u64) -> impl Iterator<Item = u64> {
    let decade = 10u64.pow(match now {
        0 => 6,
        now => now.ilog10(),
    });
    let steps = [decade / 10, decade, decade.saturating_mul(10)];
    let times = steps
        .into_iter()
        .flat_map(|decade| [1, 2, 5].map(|times| decade.saturating_mul(times)));
    [0].into_iter().chain(times)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{drive, pool_names};

    fn dial(words: &str, key: &str) -> TunableSetting {
        let sheet = drive(words).expect("it loads");
        let dials = sheet.dials(&Settings::default());
        let found = dials.iter().find(|dial| dial.key == key);
        found.unwrap_or_else(|| panic!("{key}: {dials:?}")).clone()
    }

    #[test]
    fn every_value_offered_is_taken_and_changes_the_pool() {
        let caches = "write-back-cache(cache=p4801x-100, capacity=exos-x18-16tb; like=vsan)";
        let read = "read-cache(cache=p4801x-100, main=exos-x18-16tb)";
        let stripe = "stripe(2*p4801x-100)";
        let all = pool_names().into_iter().chain([caches, read, stripe]);
        for name in all {
            let sheet = drive(name).expect("it loads");
            for dial in sheet.dials(&Settings::default()) {
                assert!(dial.values.contains(&dial.now), "{name}: {dial:?}");
                for value in dial.values.iter().filter(|value| **value != dial.now) {
                    let settings = Settings {
                        figures: vec![(dial.key.clone(), value.clone())],
                        ..Settings::default()
                    };
                    let turned = drive_as(name, &settings);
                    let turned = turned.unwrap_or_else(|error| panic!("{dial:?}: {error:?}"));
                    assert!(turned.config != sheet.config, "{name}: {value}: {dial:?}");
                }
            }
        }
    }

    #[test]
    fn kinds_offer_what_matters() {
        let sync = dial("s2-slog", "tier.tank.sync");
        assert_eq!(sync.values, ["standard", "always", "disabled"]);
        assert!(sync.words);
        let txg = dial("s2-slog", "tier.tank.txg");
        assert_eq!(txg.now, "5 s");
        assert!(txg.values.contains(&String::from("500 ms")), "{txg:?}");
        let from = dial("group", "tier.group.destage_from");
        assert!(from.values.contains(&String::from("50 %")), "{from:?}");
        let pause = dial("group", "tier.group.destage_pause");
        assert_eq!((&*pause.now, &*pause.values[0]), ("5 ms", "0 ns"));
        let caches = "write-back-cache(cache=p4801x-100, capacity=exos-x18-16tb)";
        let limit = dial(caches, "tier.write-back-cache.buffer_limit");
        assert!(limit.values.contains(&String::from("16 GiB")), "{limit:?}");
        assert_eq!(limit.values.last(), Some(&limit.now));
        let chunk = dial("stripe(2*p4801x-100)", "tier.stripe.chunk");
        assert!(chunk.values.contains(&String::from("64 KiB")), "{chunk:?}");
        let parity = dial("s2-slog", "tier.main.parity");
        assert_eq!(parity.values, ["1", "2"]);
    }

    #[test]
    fn a_drive_offers_nothing() {
        let sheet = drive("p4800x-375").expect("built in");
        assert_eq!(sheet.dials(&Settings::default()), []);
    }
}
