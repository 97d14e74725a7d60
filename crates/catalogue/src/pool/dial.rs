//! What somebody may turn on a pool who has no file to edit: of each kind the settings and figures that matter most, with
//! values around the present one.
//!
//! Which keys there are, what they may be and what they are now is what the readers of the kinds say: each value offered
//! has been read by them, as `--set tier.NAME.KEY=VALUE` is. Left out: keys that only matter together with others, and
//! what the software of an intent log costs.

use model::Span;
use serde::Serialize;

use super::keys::bytes_of;
use crate::change::as_value;
use crate::{Change, DriveSheet, Settings, drive_as};
use text::quantity::{Bytes, Quantity, Share, split};

/// By kind: what may be turned, in the order in which it is shown.
const OFFERED: [(&str, &[&str]); 6] = [
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

/// Something that can be turned.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Dial {
    /// What `--set` calls it: `tier.NAME.KEY`.
    pub key: String,
    /// Its present value in words.
    pub now: String,
    /// All values, the present one among them: quantities from the least, words as they are defined.
    pub values: Vec<String>,
    /// Whether the values are words without an order.
    pub words: bool,
}

impl DriveSheet {
    /// What can be turned on this pool, which `settings` made; nothing if it is none, or cannot be had by its name.
    pub fn dials(&self, settings: &Settings) -> Vec<Dial> {
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
                    None => around(&now),
                };
                let takes = |value: &String| *value == now || self.takes(settings, &key, value);
                let values: Vec<String> = values.into_iter().filter(takes).collect();
                if values.len() > 1 {
                    dials.push(Dial {
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

    /// The present value of a tier's setting or figure.
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

    /// Whether the pool can be had with this value.
    fn takes(&self, settings: &Settings, key: &str, value: &str) -> bool {
        let mut settings = settings.clone();
        let change: Change = (key.to_owned(), value.to_owned());
        settings.figures.retain(|(set, _)| set != key);
        settings.figures.push(change);
        drive_as(&self.id, &settings).is_ok()
    }
}

/// Values around a quantity in words, from the least, it among them.
fn around(now: &str) -> Vec<String> {
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
    // The present value comes last: of two that are the same it is the one that stays.
    all.reverse();
    all.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    all.dedup_by(|(b, _), (a, _)| (*a - *b).abs() <= 1e-9 * a.abs());
    all.into_iter().map(|(_, words)| words).collect()
}

/// A size in words, and the most that it can become: what words do not say to the unit is the size of a device, of which
/// there is no more.
fn size(now: &str) -> Option<(u64, u64)> {
    if let Some(bytes) = bytes_of(&as_value(now)) {
        let is_round = bytes.is_multiple_of(4096);
        return Some((bytes, if is_round { u64::MAX } else { bytes }));
    }
    let (number, unit) = split(now)?;
    let whole = bytes_of(&as_value(&format!("{} {unit}", number as u64)))?;
    (number >= 1.0).then_some((whole, whole))
}

/// Nothing, and powers of two up to sixteen times less and more; around `else_around` if there is nothing now.
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

/// Nothing, and 1, 2 and 5 in the decades around; around a millisecond if there is nothing now.
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

    fn dial(words: &str, key: &str) -> Dial {
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
