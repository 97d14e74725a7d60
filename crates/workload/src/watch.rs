//! Monitors of a running job: the search for the depth that meets a latency (`latency_target`), and the steady-state
//! test (`steadystate`).
//!
//! The search follows fio: the depth starts at 1 and doubles while each window meets the target. Then the search
//! halves the gap between the largest depth that met the target and the smallest that did not. If depth 1 does not meet
//! it either, the job continues at depth 1. Unlike fio, it ignores I/Os issued before the last change of the depth.

use model::{Span, Time};

use super::job::{LatencyTarget, SteadyMetric, SteadyState};

/// Request of a monitor to its thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Advice {
    Nothing,
    /// Use this depth from now on.
    Depth(u32),
    /// Stop: the depth has been found.
    Found(u32),
    /// Stop: the job is in steady state.
    Steady,
}

/// Search for a depth.
#[derive(Clone, Debug)]
pub(crate) struct DepthSearch {
    target: LatencyTarget,
    /// The largest depth known to meet the target, and the smallest known not to meet it (initially one more than the
    /// maximum).
    meets: u32,
    fails: u32,
    depth: u32,
    /// Whether the two are neighbours (`latency_run` continues from there).
    settled: bool,
    window_from: Time,
    met: u64,
    all: u64,
}

impl DepthSearch {
    pub(crate) fn new(target: LatencyTarget, largest: u32, now: Time) -> DepthSearch {
        DepthSearch {
            target,
            meets: 0,
            fails: largest + 1,
            depth: 1,
            settled: false,
            window_from: now,
            met: 0,
            all: 0,
        }
    }

    /// Returns the depth in use.
    pub(crate) fn depth(&self) -> u32 {
        self.depth
    }

    /// Returns the depth that was found; 0 if depth 1 does not meet the target.
    pub(crate) fn found(&self) -> Option<u32> {
        self.settled.then_some(self.meets)
    }

    /// Processes a completion.
    pub(crate) fn complete(&mut self, now: Time, issued: Time, latency: Span) -> Advice {
        if issued >= self.window_from {
            self.all += 1;
            self.met += u64::from(latency <= self.target.target);
        }
        if now < self.window_from + self.target.window || self.all == 0 {
            return Advice::Nothing;
        }
        let success = self.met as f64 * 100.0 >= self.target.percentile * self.all as f64;
        self.window_from = now;
        self.met = 0;
        self.all = 0;
        if self.settled {
            return self.adapt(success);
        }
        if success {
            self.meets = self.depth;
        } else {
            self.fails = self.depth;
        }
        if self.meets + 1 == self.fails {
            self.settled = true;
            self.depth = self.meets.max(1);
            return if self.target.run || self.meets == 0 {
                Advice::Depth(self.depth)
            } else {
                Advice::Found(self.meets)
            };
        }
        let middle = self.meets.midpoint(self.fails);
        self.depth = middle.clamp(1, self.depth * 2);
        Advice::Depth(self.depth)
    }

    /// Adapts after the search: reduces the depth by one if the target is missed.
    fn adapt(&mut self, success: bool) -> Advice {
        if success || self.depth == 1 {
            return Advice::Nothing;
        }
        self.depth -= 1;
        self.meets = self.depth;
        Advice::Depth(self.depth)
    }
}

/// Steady-state test: one sample per interval, and a window of the latest samples.
#[derive(Clone, Debug)]
pub(crate) struct SteadyWatch {
    criterion: SteadyState,
    window: Vec<f64>,
    /// Number of samples in the window.
    length: usize,
    /// Index of the oldest sample, once the window is full.
    oldest: usize,
    sample_ends: Time,
    ios: u64,
    bytes: u64,
    latency_ns: u64,
}

impl SteadyWatch {
    pub(crate) fn new(criterion: SteadyState, now: Time) -> SteadyWatch {
        let length = (criterion.duration.ns() / criterion.interval.ns().max(1)).max(2) as usize;
        SteadyWatch {
            criterion,
            window: Vec::with_capacity(length),
            length,
            oldest: 0,
            sample_ends: now + criterion.ramp + criterion.interval,
            ios: 0,
            bytes: 0,
            latency_ns: 0,
        }
    }

    /// Processes a completion.
    pub(crate) fn complete(&mut self, now: Time, bytes: u32, latency: Span) -> Advice {
        while now >= self.sample_ends {
            self.sample_ends += self.criterion.interval;
            let seconds = self.criterion.interval.seconds();
            let sample = match self.criterion.metric {
                SteadyMetric::Iops => self.ios as f64 / seconds,
                SteadyMetric::Bandwidth => self.bytes as f64 / seconds,
                SteadyMetric::Latency => self.latency_ns as f64 / self.ios.max(1) as f64,
            };
            (self.ios, self.bytes, self.latency_ns) = (0, 0, 0);
            if self.window.len() < self.length {
                self.window.push(sample);
            } else {
                self.window[self.oldest] = sample;
                self.oldest = (self.oldest + 1) % self.length;
            }
            if self.window.len() == self.length && self.is_steady() {
                return Advice::Steady;
            }
        }
        // Completions during the ramp belong to no sample.
        if now + self.criterion.interval >= self.sample_ends {
            self.ios += 1;
            self.bytes += u64::from(bytes);
            self.latency_ns += latency.ns();
        }
        Advice::Nothing
    }

    fn is_steady(&self) -> bool {
        let n = self.window.len() as f64;
        let mean = self.window.iter().sum::<f64>() / n;
        let samples = (0..self.length).map(|i| self.window[(self.oldest + i) % self.length]);
        let found = if self.criterion.slope {
            let middle = (n - 1.0) / 2.0;
            let (mut cross, mut square) = (0.0, 0.0);
            for (index, sample) in samples.enumerate() {
                let x = index as f64 - middle;
                cross += x * (sample - mean);
                square += x * x;
            }
            (cross / square).abs()
        } else {
            samples
                .map(|sample| (sample - mean).abs())
                .fold(0.0, f64::max)
        };
        let limit = if self.criterion.percent {
            mean * self.criterion.limit / 100.0
        } else {
            self.criterion.limit
        };
        mean > 0.0 && found <= limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(target: LatencyTarget, latency_of: impl Fn(u32) -> Span) -> Option<u32> {
        let mut search = DepthSearch::new(target, 64, Time::ZERO);
        let mut now = Time::ZERO;
        for _ in 0..100_000 {
            let latency = latency_of(search.depth());
            let issued = now;
            now += latency;
            if let Advice::Found(depth) = search.complete(now, issued, latency) {
                assert_eq!(search.found(), Some(depth));
                return Some(depth);
            }
        }
        None
    }

    #[test]
    fn the_search_finds_the_largest_depth_that_meets_the_target() {
        let target = LatencyTarget {
            target: Span::from_us(100),
            window: Span::from_ms(1),
            percentile: 100.0,
            run: false,
        };
        for limit in [1, 2, 7, 23, 33, 63, 64] {
            let latency = |depth: u32| Span::from_us(if depth <= limit { 90 } else { 110 });
            assert_eq!(search(target, latency), Some(limit));
        }
        assert_eq!(
            search(target, |_| Span::from_us(200)),
            None,
            "as fio: goes on at depth 1"
        );
        let run = LatencyTarget {
            run: true,
            ..target
        };
        assert_eq!(search(run, |_| Span::from_us(90)), None, "goes on");
    }

    fn steady_after(slope: bool, figure: impl Fn(u64) -> u64) -> Option<u64> {
        let criterion = SteadyState {
            metric: SteadyMetric::Iops,
            slope,
            limit: 10.0,
            percent: true,
            duration: Span::from_ms(5000),
            ramp: Span::from_ms(2000),
            interval: Span::from_ms(1000),
        };
        let mut watch = SteadyWatch::new(criterion, Time::ZERO);
        for second in 0..60 {
            for io in 0..figure(second) {
                let now = Time::from_ns(second * 1_000_000_000 + io);
                if watch.complete(now, 4096, Span::from_us(10)) == Advice::Steady {
                    return Some(second);
                }
            }
        }
        None
    }

    #[test]
    fn steadiness_waits_for_the_ramp_and_the_window() {
        assert_eq!(steady_after(false, |_| 100), Some(7));
        assert_eq!(steady_after(true, |_| 100), Some(7));
        // A cliff at 20 s: not in steady state while it is in the window.
        let cliff = |second| if second < 20 { 400 - second * 18 } else { 40 };
        assert_eq!(steady_after(false, cliff), Some(25));
        // Growth of 50 per second: the slope is 10 % of the mean when the value has reached 500.
        assert_eq!(steady_after(true, |second| 50 * second), Some(13));
    }
}
