//! Settings of a review's point, for which its charts have axes and choices.

use serde::Serialize;

/// Workload settings of a point. Fields that do not apply are omitted.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct PointSettings {
    /// Direction: `read`, `write` or `mix`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direction: Option<&'static str>,
    /// Access pattern: `random` or `sequential`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern: Option<&'static str>,
    /// Bytes of one I/O.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_bytes: Option<u64>,
    /// Alignment of offsets in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub align_bytes: Option<u64>,
    /// `block` if offsets are aligned to the block, `sector` if to 512 B.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alignment: Option<&'static str>,
    /// I/Os in flight over all threads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_depth: Option<u32>,
    /// Number of threads that issue I/Os.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<u32>,
    /// Reads, in percent of the I/Os.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_percent: Option<u32>,
    /// Arrival rate in IOPS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offered_iops: Option<u64>,
    /// Arrival rate as a share of this drive's saturated throughput, if it was chosen so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share_of_saturation: Option<f64>,
    /// A short name, for fixed combinations of size and mix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<&'static str>,
    /// Figures that the source of the workload prints: `iops`, `mb_s`, or `p99_us` and `p99_99_us`.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub headline: &'static [&'static str],
    /// File of a user's own job or trace, and the part of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

impl PointSettings {
    /// Returns the settings that two workloads have in common.
    pub(crate) fn common(&self, other: &PointSettings) -> PointSettings {
        fn common_value<T: Clone + PartialEq>(one: &Option<T>, other: &Option<T>) -> Option<T> {
            one.clone().filter(|_| one == other)
        }
        PointSettings {
            direction: common_value(&self.direction, &other.direction),
            pattern: common_value(&self.pattern, &other.pattern),
            block_bytes: common_value(&self.block_bytes, &other.block_bytes),
            align_bytes: common_value(&self.align_bytes, &other.align_bytes),
            alignment: common_value(&self.alignment, &other.alignment),
            queue_depth: common_value(&self.queue_depth, &other.queue_depth),
            threads: common_value(&self.threads, &other.threads),
            read_percent: common_value(&self.read_percent, &other.read_percent),
            offered_iops: common_value(&self.offered_iops, &other.offered_iops),
            share_of_saturation: common_value(
                &self.share_of_saturation,
                &other.share_of_saturation,
            ),
            profile: common_value(&self.profile, &other.profile),
            headline: self.headline,
            source: common_value(&self.source, &other.source),
        }
    }

    /// Checks whether a point runs the workload that a chapter shows. No setting that both have may differ, and the
    /// load is not rate-limited. The competing load, if any, is the same share of the drive's maximum rate.
    pub(crate) fn runs(&self, shown: &PointSettings) -> bool {
        fn agrees<T: PartialEq>(one: &Option<T>, other: &Option<T>) -> bool {
            one.is_none() || other.is_none() || one == other
        }
        self.offered_iops.is_none()
            && self.share_of_saturation == shown.share_of_saturation
            && agrees(&self.direction, &shown.direction)
            && agrees(&self.pattern, &shown.pattern)
            && agrees(&self.block_bytes, &shown.block_bytes)
            && agrees(&self.alignment, &shown.alignment)
            && agrees(&self.queue_depth, &shown.queue_depth)
            && agrees(&self.read_percent, &shown.read_percent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_depth_or_a_paced_load_is_another_point() {
        let at = |depth| PointSettings {
            direction: Some("read"),
            queue_depth: Some(depth),
            ..PointSettings::default()
        };
        assert!(at(4).runs(&at(4)) && !at(4).runs(&at(16)));
        assert!(PointSettings::default().runs(&at(4)));
        let paced = PointSettings {
            offered_iops: Some(9),
            ..at(4)
        };
        assert!(!paced.runs(&at(4)));
    }

    #[test]
    fn another_share_beside_is_another_point() {
        let beside = |share| PointSettings {
            direction: Some("mix"),
            share_of_saturation: share,
            ..PointSettings::default()
        };
        let [none, some, more] = [None, Some(0.4), Some(0.8)].map(beside);
        assert!(some.runs(&some) && none.runs(&none));
        for (one, other) in [(&some, &more), (&some, &none), (&none, &some)] {
            assert!(!one.runs(other), "{one:?} {other:?}");
        }
    }
}
