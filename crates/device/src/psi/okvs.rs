//! How long a store is, and which columns a key has.

use zeroize::Zeroize;

use super::SEEDS;

/// A store of keys: so many bins, each with sparse columns and dense ones.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Okvs {
    /// Number of bins.
    pub bins: u32,
    /// Sparse columns of a bin, of which a key has three.
    pub sparse: u32,
    /// Dense columns of a bin, of which a key has multiples of all.
    pub dense: u32,
}

/// Most keys of a bin, on average.
pub const KEYS_OF_A_BIN: u32 = 1 << 14;

/// Where a key belongs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Zeroize)]
pub(crate) struct Row {
    pub(crate) bin: u32,
    /// Different sparse columns of it.
    pub(crate) at: [u32; 3],
}

/// Failures to encode are rarer than 2^-SECURITY.
const SECURITY: u64 = 40;

/// Expansions, in units of 2^-16, rounded up, for 2^0, 2^1, … keys: 1.223 + (40 + 9.2) / 2^(0.555 k + c) for 2^k keys, with
/// c = 0.093 l³ − 1.01 l² + 2.925 l − 0.133 and l = log2 3, which Raghuraman and Rindal fitted to measured failures (CCS 2022, and the code of the paper) of rows of
/// weight 3. Below 2^-20 it is an extrapolation.
const EXPANSIONS: [u64; 16] = [
    718_732, 514_806, 376_002, 281_524, 217_217, 173_446, 143_653, 123_374, 109_571, 100_176,
    93_781, 89_428, 86_466, 84_449, 83_077, 82_142,
];

impl Okvs {
    /// The store of `keys` keys at most, which fails with a probability below about 2^-40: bins of 2^14 keys on average, each as long as for the keys that it does not
    /// exceed but with that probability, with 1 % more sparse columns and one more dense one than published. One of no keys is one of a key.
    pub fn of(keys: u32) -> Self {
        let bins = keys.div_ceil(KEYS_OF_A_BIN).max(1);
        let sparse = sparse_for(capacity(keys.max(1), bins));
        // ⌊40 / log2 of the columns⌋, and one more.
        let (mut dense, mut power) = (1, u128::from(sparse));
        while power <= 1 << SECURITY {
            (dense, power) = (dense + 1, power * u128::from(sparse));
        }
        Okvs {
            bins,
            sparse: sparse as u32,
            dense,
        }
    }

    /// Columns of a bin.
    pub const fn width(self) -> u64 {
        self.sparse as u64 + self.dense as u64
    }

    /// Columns of the store: blocks of a message, and of the VOLE.
    pub const fn columns(self) -> u64 {
        self.bins as u64 * self.width()
    }

    /// Blocks that an encoding takes of its call: seeds, then a block for each column.
    pub const fn counters(self) -> u64 {
        SEEDS as u64 + self.columns()
    }

    /// Keys that a receiver can choose P for if it lies and tries 2^80 hashes, by a count of equations: n' keys take 128 bits each, less 80 − log2 n' that are
    /// met by choosing among hashes, of 128 for each column. *Unverified*: it is no proof.
    pub fn most_keys(self) -> u64 {
        let fits = |keys: u64| {
            let bits = 48 + u128::from(keys.ilog2());
            u128::from(keys) * bits <= 128 * u128::from(self.columns())
        };
        let (mut most, mut over) = (1, (3 * self.columns()).max(2));
        while over - most > 1 {
            let middle = most + (over - most) / 2;
            if fits(middle) {
                most = middle;
            } else {
                over = middle;
            }
        }
        most
    }

    /// Whether a device does it.
    pub(super) const fn is_there(self) -> bool {
        self.bins > 0
            && self.sparse >= 3
            && self.sparse <= 1 << 24
            && self.dense <= 1 << 8
            && self.columns() <= 1 << 28
    }

    /// The row of a key whose ρ is hashed to `block`.
    #[inline]
    pub(crate) fn row(self, block: [u8; 16]) -> Row {
        let words = u128::from_le_bytes(block);
        let below =
            |k: u32, n: u32| ((u64::from((words >> (32 * k)) as u32) * u64::from(n)) >> 32) as u32;
        let a = below(1, self.sparse);
        let b = below(2, self.sparse - 1);
        let b = b + u32::from(b >= a);
        let c = below(3, self.sparse - 2);
        let c = c + u32::from(c >= a.min(b));
        let c = c + u32::from(c >= a.max(b));
        Row {
            bin: below(0, self.bins),
            at: [a, b, c],
        }
    }
}

/// Keys that a bin does not exceed but with a probability of 2^-40 over all bins, by Bernstein's inequality: Pr\[X ≥ μ + t\] ≤ exp(−t² / 2 (σ² + t / 3)).
fn capacity(keys: u32, bins: u32) -> u64 {
    if bins == 1 {
        return keys.into();
    }
    let mean = u64::from(keys.div_ceil(bins));
    // L = (40 + log2 bins) ln 2 in units of 2^-10, rounded up; t = L / 3 + √(L² / 9 + 2 σ² L).
    let log = u64::from(bins.next_power_of_two().ilog2());
    let exponent = (SECURITY + log) * 710;
    let third = exponent.div_ceil(3);
    let variance = (mean * u64::from(bins - 1)).div_ceil(bins.into());
    let square = third * third + ((2 * variance * exponent) << 10);
    mean + (third + square.isqrt() + 1).div_ceil(1 << 10)
}

/// Sparse columns of a bin of so many keys: between powers of two the expansion lies below its chord.
fn sparse_for(keys: u64) -> u64 {
    let log = keys.ilog2() as usize;
    let (above, below) = (EXPANSIONS[log], EXPANSIONS[log + 1]);
    let expansion = above - (((above - below) * (keys - (1 << log))) >> log);
    (keys * expansion * 101).div_ceil(100 << 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expansions_are_those_of_the_formula() {
        let log = 3f64.log2();
        let c = 0.093 * log.powi(3) - 1.01 * log.powi(2) + 2.925 * log - 0.133;
        for (k, expansion) in (0..).zip(EXPANSIONS) {
            let exact = 1.223 + 49.2 / (0.555 * f64::from(k) + c).exp2();
            let units = (exact * 65_536.0).ceil();
            assert_eq!(expansion, units as u64, "2^{k} keys: {exact}");
        }
    }

    /// Sizes that both parties have to agree about: any change of these is one of the protocol.
    #[test]
    fn stores_have_these_sizes() {
        for (keys, bins, sparse, dense) in [
            (0, 1, 12, 12),
            (1, 1, 12, 12),
            (2, 1, 16, 11),
            (3, 1, 21, 10),
            (1 << 10, 1, 1480, 4),
            (1 << 14, 1, 20_977, 3),
            ((1 << 14) + 1, 2, 11_294, 3),
            (1_000_000, 62, 21_943, 3),
            (10_000_000, 611, 22_318, 3),
        ] {
            let okvs = Okvs {
                bins,
                sparse,
                dense,
            };
            assert_eq!(Okvs::of(keys), okvs, "{keys} keys");
            assert!(okvs.is_there());
        }
        // Longer ones do not panic.
        assert!(!Okvs::of(u32::MAX).is_there());
    }

    #[test]
    fn a_receiver_that_lies_may_have_about_so_many_keys() {
        for (keys, most) in [(1, 57), (1 << 10, 3219), (1_000_000, 2_524_108)] {
            assert_eq!(Okvs::of(keys).most_keys(), most, "{keys} keys");
        }
    }

    /// The capacity of bins against the tail of the binomial distribution itself.
    #[test]
    fn bins_are_exceeded_with_less_than_the_probability() {
        for keys in [20_000u32, 40_000, 1_000_000, 10_000_000] {
            let bins = keys.div_ceil(KEYS_OF_A_BIN);
            let (n, p) = (f64::from(keys), 1.0 / f64::from(bins));
            let most = capacity(keys, bins);
            // ln Pr[X = k], from the mode on.
            let mean = (n * p).floor();
            let mut term = -(2.0 * std::f64::consts::PI * n * p * (1.0 - p)).ln() / 2.0;
            let mut tail = 0.0;
            for k in 0..most - mean as u64 + 300 {
                let x = mean + k as f64;
                if x > most as f64 {
                    tail += term.exp();
                }
                term += ((n - x) / (x + 1.0) * p / (1.0 - p)).ln();
            }
            let all = tail * f64::from(bins);
            assert!(all < 0.5f64.powi(40), "{keys} keys: {}", all.log2());
            assert!(all > 0.5f64.powi(50), "{keys} keys: {}", all.log2());
        }
    }

    #[test]
    fn columns_of_a_row_are_different_and_in_the_bin() {
        let okvs = Okvs {
            bins: 3,
            sparse: 5,
            dense: 2,
        };
        let mut seen = std::collections::BTreeSet::new();
        let mut state = 1u128;
        for _ in 0..20_000 {
            state = state
                .wrapping_mul(0xda94_2042_e4dd_58b5_5851_f42d_4c95_7f2d)
                .wrapping_add(1);
            let row = okvs.row((state ^ state >> 64).to_le_bytes());
            let [a, b, c] = row.at;
            assert!(row.bin < 3 && a < 5 && b < 5 && c < 5 && a != b && b != c && a != c);
            seen.insert((row.bin, row.at));
        }
        assert_eq!(seen.len(), 3 * 60);
        for block in [[0; 16], [0xff; 16]] {
            let row = okvs.row(block);
            assert!(row.bin < 3 && row.at.iter().all(|at| *at < 5));
        }
    }
}
