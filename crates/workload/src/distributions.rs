//! Distribution of random offsets: `random_distribution`.
//!
//! The formulas are those in fio's documentation, evaluated exactly and not by fio's approximations. Zipf uses
//! rejection-inversion (Hörmann and Derflinger, "Rejection-inversion to generate variates from monotone discrete
//! distributions", ACM TOMACS 6, 1996), which needs no table for any range. Pareto uses its inverse, the normal
//! distribution Marsaglia's polar method. If no centre is given, a bijection spreads the ranks over the range, so no
//! two ranks share a block (fio hashes, and some ranks do). Logarithms and powers come from `libm`, for the same bits
//! on every platform.

use model::Stream;

use super::job::Distribution;
use super::permutation::Permutation;

/// Generator of block numbers in `0..blocks`.
#[derive(Clone, Debug)]
pub(crate) enum Sampler {
    /// Every block once before any block repeats.
    Map,
    /// Independent draws.
    Uniform,
    Zipf(Zipf, Placement),
    Pareto {
        exponent: f64,
        placement: Placement,
    },
    Normal {
        mean: f64,
        deviation: f64,
    },
    /// Cumulative share of accesses, first block, blocks.
    Zones(Box<[(f64, u64, u64)]>),
}

/// Mapping of ranks (0 is the hottest) to blocks.
#[derive(Clone, Debug)]
pub(crate) enum Placement {
    /// Spread over the range by a bijection.
    Spread(Permutation),
    /// In order starting at this block, with wrap-around.
    From(u64),
}

impl Placement {
    fn new(centre: Option<f64>, blocks: u64, stream: &mut Stream) -> Placement {
        match centre {
            Some(centre) => Placement::From(((blocks as f64 * centre) as u64).min(blocks - 1)),
            None => Placement::Spread(Permutation::new(blocks, stream)),
        }
    }

    #[inline]
    fn place(&self, rank: u64, blocks: u64) -> u64 {
        match self {
            Placement::Spread(permutation) => permutation.image(rank),
            Placement::From(first) => (rank + first) % blocks,
        }
    }
}

impl Sampler {
    /// Creates a sampler; `block_bytes` is the distance between neighbouring blocks (for zones given in bytes).
    pub(crate) fn new(
        distribution: &Distribution,
        map: bool,
        blocks: u64,
        block_bytes: u64,
        stream: &mut Stream,
    ) -> Sampler {
        match distribution {
            Distribution::Random if map => Sampler::Map,
            Distribution::Random => Sampler::Uniform,
            &Distribution::Zipf { theta, centre } => Sampler::Zipf(
                Zipf::new(theta, blocks),
                Placement::new(centre, blocks, stream),
            ),
            &Distribution::Pareto { power, centre } => Sampler::Pareto {
                exponent: libm::log(power) / libm::log(1.0 - power),
                placement: Placement::new(centre, blocks, stream),
            },
            &Distribution::Normal { deviation, centre } => Sampler::Normal {
                mean: blocks as f64 * centre.unwrap_or(0.5),
                deviation: blocks as f64 * deviation / 100.0,
            },
            Distribution::Zoned(zones) => Sampler::Zones(cumulate(
                zones
                    .iter()
                    .map(|&(access, share)| (access, blocks as f64 * share / 100.0)),
                blocks,
            )),
            Distribution::ZonedAbsolute(zones) => Sampler::Zones(cumulate(
                zones
                    .iter()
                    .map(|&(access, bytes)| (access, bytes as f64 / block_bytes as f64)),
                blocks,
            )),
        }
    }

    /// Returns the next block; only [`Sampler::Map`] uses `map`.
    #[inline]
    pub(crate) fn draw(&self, blocks: u64, map: &mut Permutation, stream: &mut Stream) -> u64 {
        match self {
            Sampler::Map => map.next(stream),
            other => other.draw_one(blocks, stream),
        }
    }

    /// Returns the next block for all variants except [`Sampler::Map`]. A separate function, because most jobs use a
    /// map, and inlining would make their path longer.
    #[inline(never)]
    fn draw_one(&self, blocks: u64, stream: &mut Stream) -> u64 {
        match self {
            Sampler::Map => unreachable!("walked by draw"),
            Sampler::Uniform => stream.uniform_below(blocks),
            Sampler::Zipf(zipf, placement) => placement.place(zipf.draw(stream) - 1, blocks),
            Sampler::Pareto {
                exponent,
                placement,
            } => {
                let rank = ((blocks - 1) as f64 * libm::pow(stream.unit(), *exponent)) as u64;
                placement.place(rank.min(blocks - 1), blocks)
            }
            Sampler::Normal { mean, deviation } => loop {
                let value = mean + deviation * standard_normal(stream);
                if value >= 0.0 && value < blocks as f64 {
                    return value as u64;
                }
            },
            Sampler::Zones(zones) => {
                let access = stream.unit() * 100.0;
                let zone = zones
                    .iter()
                    .find(|zone| access < zone.0)
                    .unwrap_or(&zones[zones.len() - 1]);
                zone.1 + stream.uniform_below(zone.2)
            }
        }
    }
}

/// Makes shares and lengths cumulative. Zones are cut at the end of the range, and empty zones take one block.
fn cumulate(zones: impl Iterator<Item = (f64, f64)>, blocks: u64) -> Box<[(f64, u64, u64)]> {
    let mut access_sum = 0.0;
    let mut end = 0.0;
    zones
        .map(|(access, length)| {
            let first = (libm::round(end) as u64).min(blocks - 1);
            access_sum += access;
            end += length;
            let last = (libm::round(end) as u64).clamp(first + 1, blocks);
            (access_sum, first, last - first)
        })
        .collect()
}

/// Draws from the normal distribution with mean 0 and deviation 1.
fn standard_normal(stream: &mut Stream) -> f64 {
    loop {
        let x = 2.0 * stream.unit() - 1.0;
        let y = 2.0 * stream.unit() - 1.0;
        let square = x * x + y * y;
        if square > 0.0 && square < 1.0 {
            return x * libm::sqrt(-2.0 * libm::log(square) / square);
        }
    }
}

/// Zipf: the probability of rank k in `1..=n` is proportional to `k^-theta`.
#[derive(Clone, Debug)]
pub(crate) struct Zipf {
    theta: f64,
    n: f64,
    integral_first: f64,
    integral_last: f64,
    squeeze: f64,
}

impl Zipf {
    /// Creates a generator; `theta` is positive, `n` at least 1.
    pub(crate) fn new(theta: f64, n: u64) -> Zipf {
        let mut zipf = Zipf {
            theta,
            n: n as f64,
            integral_first: 0.0,
            integral_last: 0.0,
            squeeze: 0.0,
        };
        zipf.integral_first = zipf.integral(1.5) - 1.0;
        zipf.integral_last = zipf.integral(zipf.n + 0.5);
        zipf.squeeze = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.density(2.0));
        zipf
    }

    fn density(&self, x: f64) -> f64 {
        libm::exp(-self.theta * libm::log(x))
    }

    /// An antiderivative of the density: `(x^(1-theta) - 1) / (1 - theta)`, or the logarithm if theta is 1.
    fn integral(&self, x: f64) -> f64 {
        let log_x = libm::log(x);
        let exponent = (1.0 - self.theta) * log_x;
        if exponent.abs() < 1e-8 {
            log_x * (1.0 + exponent / 2.0)
        } else {
            libm::expm1(exponent) / (1.0 - self.theta)
        }
    }

    fn inverse(&self, y: f64) -> f64 {
        let t = ((1.0 - self.theta) * y).max(-1.0);
        if t.abs() < 1e-8 {
            libm::exp(y * (1.0 - t / 2.0))
        } else {
            libm::exp(libm::log1p(t) / (1.0 - self.theta))
        }
    }

    /// Draws a rank in `1..=n`.
    fn draw(&self, stream: &mut Stream) -> u64 {
        loop {
            let u = self.integral_last + stream.unit() * (self.integral_first - self.integral_last);
            let x = self.inverse(u);
            let k = libm::round(x).clamp(1.0, self.n);
            if k - x <= self.squeeze || u >= self.integral(k + 0.5) - self.density(k) {
                return k as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: u32 = 200_000;

    fn counts(distribution: &Distribution, blocks: u64) -> Vec<f64> {
        let mut stream = Stream::new(7, "test");
        let mut map = Permutation::new(blocks, &mut stream);
        let sampler = Sampler::new(distribution, false, blocks, 4096, &mut stream);
        let mut counts = vec![0.0; blocks as usize];
        for _ in 0..DRAWS {
            counts[sampler.draw(blocks, &mut map, &mut stream) as usize] += 1.0;
        }
        counts
    }

    /// Checks whether the frequency is within five standard errors of the probability.
    fn near(count: f64, probability: f64) -> bool {
        let n = f64::from(DRAWS);
        (count / n - probability).abs() <= 5.0 * (probability * (1.0 - probability) / n).sqrt()
    }

    #[test]
    fn zipf_ranks_follow_the_power_law() {
        for theta in [0.6, 1.0, 1.2] {
            let blocks = 1000;
            let counts = counts(
                &Distribution::Zipf {
                    theta,
                    centre: Some(0.0),
                },
                blocks,
            );
            let norm: f64 = (1..=blocks).map(|k| (k as f64).powf(-theta)).sum();
            for rank in [1u64, 2, 3, 10, 100, 999] {
                let probability = (rank as f64).powf(-theta) / norm;
                assert!(
                    near(counts[rank as usize - 1], probability),
                    "theta {theta} rank {rank}: {} of {DRAWS}, probability {probability}",
                    counts[rank as usize - 1]
                );
            }
        }
    }

    #[test]
    fn spreading_keeps_the_frequencies_and_moves_the_blocks() {
        let mut at_start = counts(
            &Distribution::Zipf {
                theta: 1.2,
                centre: Some(0.0),
            },
            64,
        );
        let mut spread = counts(
            &Distribution::Zipf {
                theta: 1.2,
                centre: None,
            },
            64,
        );
        assert_ne!(at_start, spread);
        at_start.sort_by(f64::total_cmp);
        spread.sort_by(f64::total_cmp);
        assert!((at_start[63] - spread[63]).abs() < 0.02 * at_start[63]);
        assert!(spread[0] > 0.0, "a bijection leaves no block out");
    }

    #[test]
    fn pareto_gives_the_share_its_power_names() {
        // Power 0.2: 80 % of accesses go to 20 % of the range.
        let counts = counts(
            &Distribution::Pareto {
                power: 0.2,
                centre: Some(0.0),
            },
            10_000,
        );
        let first_fifth: f64 = counts[..2000].iter().sum();
        assert!(near(first_fifth, 0.8), "{first_fifth}");
    }

    #[test]
    fn normal_has_its_deviation() {
        let counts = counts(
            &Distribution::Normal {
                deviation: 10.0,
                centre: None,
            },
            10_000,
        );
        let within_one: f64 = counts[4000..6000].iter().sum();
        let within_two: f64 = counts[3000..7000].iter().sum();
        assert!(near(within_one, 0.682_689), "{within_one}");
        assert!(near(within_two, 0.954_500), "{within_two}");
    }

    #[test]
    fn zones_get_their_share() {
        let counts = counts(
            &Distribution::Zoned(vec![(60.0, 10.0), (30.0, 20.0), (8.0, 30.0), (2.0, 40.0)]),
            1000,
        );
        let zone = |from: usize, to: usize| counts[from..to].iter().sum::<f64>();
        assert!(near(zone(0, 100), 0.6));
        assert!(near(zone(100, 300), 0.3));
        assert!(near(zone(300, 600), 0.08));
        assert!(near(zone(600, 1000), 0.02));
    }
}
