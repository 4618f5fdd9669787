//! Keys of two parties in bins, and circuits over the bins.
//!
//! The first bits of a key are the number of its bin, the next ones its *tag*. A bin has as many *slots* for each party, in which the party puts the tags of its keys in
//! ascending order; slots behind them are empty. A circuit merges both lists of a bin, and compares neighbours:
//!
//! ```text
//! slots of one party  ┐
//!                     ├─► in order, each? ─► merge ─► neighbours equal? ─► numbers, sums
//! slots of the other  ┘                        ▲                     │
//!                                              └──── back to slots ◄─┘   values of the other party
//! ```
//!
//! The sizes follow from the declared numbers of keys alone. A bin has more keys than slots, or two keys of a party have one bin and one tag, with a probability below
//! 2^-40 each, if the keys are digests of texts that were chosen without a view to them.

mod circuit;
mod sink;
mod source;

use veil_circuit::generate::Merging;
use veil_relation::Type;

use super::{Intersection, Shows};

pub use sink::{BinSink, OfCommon};
pub(crate) use source::BinSource;

/// Failures are less likely than 2 to the minus this.
const FAILURE: u32 = 40;

/// Bits of the probability that a bin has too few slots, as a number.
const UNLIKELY: f64 = 1.0 / (1u64 << FAILURE) as f64;

/// The most keys of a bin on average: the probability of an empty one is no smaller than the smallest numbers that a computer computes with.
const MOST_IN_A_BIN: u64 = 512;

/// ANDs of a cycle: enough that layers are wide.
const CYCLE: u64 = 1 << 15;

/// ANDs of a cycle at most.
const MOST: u64 = 1 << 19;

/// A column whose values count, as bits in a slot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Cell {
    /// Its number in the table.
    pub(super) column: usize,
    /// The least value.
    min: i64,
    /// The largest value.
    max: i64,
    /// Bits of a value: two's complement if it can be negative.
    bits: u32,
    /// Whether a value can be missing: a bit behind it is 1 if it is there.
    flag: bool,
}

impl Cell {
    /// Of a column of this type; nothing for keys and quotients, and for numbers beyond 64 bits.
    pub(super) fn of(column: usize, ty: &Type) -> Option<Self> {
        let range = ty.kind.range()?;
        let ends = [range.min(), range.max()].map(i64::try_from);
        let [Ok(min), Ok(max)] = ends else {
            return None;
        };
        // Below 0 the complement has the bits of the number.
        let bits = [min, max].map(|end| {
            let size = if end < 0 { !end } else { end };
            u64::BITS - (size as u64).leading_zeros()
        });
        let bits = bits[0].max(bits[1]) + u32::from(min < 0);
        Some(Self {
            column,
            min,
            max,
            bits: bits.max(1),
            flag: ty.nullable,
        })
    }

    /// Whether values can be negative.
    const fn signed(&self) -> bool {
        self.min < 0
    }

    /// Bits in a slot.
    const fn width(&self) -> u32 {
        self.bits + self.flag as u32
    }

    /// How it is read, in words: everything that its bits depend on.
    pub(super) fn words(&self, ty: &Type) -> String {
        let values = match &ty.kind {
            veil_relation::Kind::Category(values) => format!(" {:?}", values.texts()),
            _ => format!(" {} to {}", self.min, self.max),
        };
        let missing = if self.flag { ", may be missing" } else { "" };
        format!("{}{values}{missing}", ty.kind)
    }
}

/// How keys lie in bins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Bins {
    /// There are 2 to the power of this many bins.
    log: u32,
    /// Bins of a cycle.
    each: u64,
    /// Slots of a bin, by table.
    slots: [u32; 2],
    /// Bits of a tag.
    tag: u32,
    /// Bits of the values of a slot, by table.
    widths: [u32; 2],
}

/// Bits of the numbers below this one.
const fn length(number: u64) -> u32 {
    u64::BITS - number.leading_zeros()
}

/// The fewest slots of each of `2^log` bins for so many keys, so that a bin has more with a probability below 2^-40.
fn slots(keys: u64, log: u32) -> u32 {
    if log == 0 {
        return keys as u32;
    }
    let bins = (1u64 << log) as f64;
    let (hit, miss) = (1.0 / bins, 1.0 - 1.0 / bins);
    // Of all keys, none is in the bin: multiplications alone, whose results are the same on every machine.
    let mut chance = (0..keys).fold(1.0, |chance: f64, _| chance * miss);
    for found in 1..keys {
        let left = (keys - found + 1) as f64;
        let ratio = |found: u64, left: f64| left / found as f64 * hit / miss;
        chance *= ratio(found, left);
        // Each further number of keys is less likely by this factor and more.
        let next = ratio(found + 1, left - 1.0);
        if next < 1.0 && bins * chance * next / (1.0 - next) < UNLIKELY {
            return found as u32;
        }
    }
    keys as u32
}

impl Bins {
    /// Those of an intersection: as many as take the fewest ANDs.
    pub(super) fn of(of: &Intersection) -> Self {
        let keys = of.keys();
        let widths = [0, 1].map(|at| of.values(at).iter().map(Cell::width).sum());
        let most = keys[0].max(keys[1]);
        let bits = FAILURE + 2 * length(most - 1);
        let sized = |log: u32| Bins {
            log,
            each: 1,
            slots: keys.map(|keys| slots(keys, log)),
            tag: bits - log,
            widths,
        };
        let costed = |log: u32| {
            let bins = sized(log);
            (bins.ands(of.opened), bins)
        };
        let candidates = (0..=length(most)).filter(|log| most >> log <= MOST_IN_A_BIN);
        let candidates = candidates.map(costed);
        let fitting = candidates.filter(|(ands, bins)| *ands <= MOST || bins.slots == [1, 1]);
        let best = fitting.min_by_key(|(ands, bins)| ands << bins.log);
        let (ands, mut best) = best.unwrap_or_else(|| costed(length(most)));
        let bins = 1u64 << best.log;
        while best.each < bins && best.each * ands < CYCLE {
            best.each *= 2;
        }
        best
    }

    /// Cycles.
    const fn cycles(&self) -> u64 {
        (1 << self.log) / self.each
    }

    /// Bits of a slot: a tag, whether it is empty, values.
    const fn width(&self, at: usize) -> u32 {
        self.tag + 1 + self.widths[at]
    }

    /// ANDs of a bin, about.
    fn ands(&self, opened: Shows) -> u64 {
        let [first, second] = self.slots;
        let (key, values) = (
            u64::from(self.tag) + 2,
            u64::from(self.widths[0].max(self.widths[1])),
        );
        let back = match opened {
            Shows::Columns => values + 1,
            _ => 0,
        };
        let comparators = Merging::new(first, second).comparators().len() as u64;
        let all = u64::from(first + second);
        comparators * (2 * key + values + back) + all * (2 * key + 2 * values)
    }

    /// How keys become inputs, for all participants to agree on.
    pub(super) fn schema(&self) -> String {
        format!(
            "intersection in bins 1: key = SHA-256 of its texts, first half; bin = its lowest {} bits, tag = the next {}; slots of a bin = {} and {}; bins of a cycle = {}; \
             tags ascend, and empty slots behind them count from 0",
            self.log, self.tag, self.slots[0], self.slots[1], self.each
        )
    }
}

#[cfg(test)]
mod tests {
    use super::slots;

    /// log2 of the binomial coefficient.
    fn choose(n: u64, k: u64) -> f64 {
        (1..=k)
            .map(|i| ((n - k + i) as f64).log2() - (i as f64).log2())
            .sum()
    }

    /// The tail of the binomial distribution, summed in another way.
    #[test]
    fn bins_are_too_small_with_a_probability_below_2_to_the_minus_40_and_not_far_below() {
        for (keys, log) in [
            (2, 1),
            (1000, 3),
            (1000, 9),
            (65_536, 8),
            (65_536, 7),
            (4096, 12),
        ] {
            let (hit, bins) = (-f64::from(log), 2f64.powi(log as i32));
            let miss = (1.0 - 1.0 / bins).log2();
            let likely = |most: u64| -> f64 {
                let of = |found: u64| {
                    let chance =
                        choose(keys, found) + hit * found as f64 + miss * (keys - found) as f64;
                    chance.exp2()
                };
                bins * (most + 1..=keys.min(most + 300)).map(of).sum::<f64>()
            };
            let found = u64::from(slots(keys, log));
            let unlikely = 2f64.powi(-40);
            assert!(
                likely(found) < unlikely,
                "{keys} keys, {bins} bins: {found}"
            );
            assert!(
                found == 1 || likely(found - 2) > unlikely,
                "{keys} keys, {bins} bins: {found}"
            );
        }
    }
}
