//! The evaluator's view of one gate, counted: over all labels, offsets, dice and hashes of a small model, in which labels have a few bits
//! and the hash is a random function. It does not depend on the values of the operands, and with the result opened on that alone.
//!
//! The equations are the devices'; they are bitwise, so that labels whose other bits are zero keep them so.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use super::*;

/// The bits that labels have in the model, and what the hash gives.
struct Model {
    scheme: Garbling,
    /// Places of a label's bits, the colour first.
    places: &'static [u32],
    /// One hash for all operands: tweaks that repeat (attack case C2).
    repeats: bool,
}

const HALF_GATES: Model = Model {
    scheme: Garbling::HalfGates,
    places: &[0, 1],
    repeats: false,
};

/// A bit of each half, and the hash's bit beside the low half.
const THREE_HALVES: Model = Model {
    scheme: Garbling::ThreeHalves,
    places: &[0, 64],
    repeats: false,
};

const MODELS: [Model; 2] = [HALF_GATES, THREE_HALVES];

/// How often each view comes up.
type Histogram = HashMap<u64, u32>;

impl Model {
    fn bits(&self) -> u32 {
        self.places.len() as u32
    }

    /// The label of a number.
    fn label(&self, number: u64) -> u128 {
        let places = (0..).zip(self.places);
        places.fold(0, |label, (k, place)| {
            label | u128::from(number >> k & 1) << place
        })
    }

    /// The number of a label.
    fn number(&self, label: u128) -> u64 {
        let places = (0..).zip(self.places);
        let number = places.fold(0, |number, (k, place)| {
            number | ((label >> place & 1) as u64) << k
        });
        assert_eq!(self.label(number), label, "a bit that no label has");
        number
    }

    /// All that the evaluator sees of a gate with operands `values`: its labels, the table, and what it can hash; and the garbler's share of the
    /// result if that is opened to it.
    fn views(&self, values: [u128; 2], opened: bool) -> Histogram {
        let labels = 1u64 << self.bits();
        let (tweaks, dice) = match self.scheme {
            Garbling::HalfGates => (2, 1),
            Garbling::ThreeHalves => (3, 4),
        };
        // Each operand has two labels, which are hashed.
        let hashes = 1u64 << (self.bits() * 2 * tweaks);
        let mut histogram = Histogram::new();
        for (a, b) in (0..labels).flat_map(|a| (0..labels).map(move |b| (a, b))) {
            for offset in (0..labels).filter(|offset| offset & 1 == 1) {
                for (dice, drawn) in (0..dice).flat_map(|d| (0..hashes).map(move |h| (d, h))) {
                    let zero = [a, b].map(|number| self.label(number));
                    let view = self.view(values, zero, self.label(offset), dice, drawn, opened);
                    *histogram.entry(view).or_default() += 1;
                }
            }
        }
        histogram
    }

    /// What it sees of one; digits of `drawn` are what the hash gives, in the order in which it is asked.
    fn view(
        &self,
        values: [u128; 2],
        zero: [u128; 2],
        offset: u128,
        dice: u8,
        drawn: u64,
        opened: bool,
    ) -> u64 {
        let known: RefCell<Vec<(u128, u64, u128)>> = RefCell::default();
        let left = Cell::new(drawn);
        let hash = |x: u128, tweak: u64| {
            let tweak = if self.repeats { 0 } else { tweak };
            let mut known = known.borrow_mut();
            if let Some((.., hash)) = known.iter().find(|(y, t, _)| (*y, *t) == (x, tweak)) {
                return *hash;
            }
            let hash = self.label(left.get());
            left.set(left.get() >> self.bits());
            known.push((x, tweak, hash));
            hash
        };
        let (c, table) = match self.scheme {
            Garbling::HalfGates => half::garble(hash, offset, zero),
            Garbling::ThreeHalves => three::garble(hash, offset, zero, dice),
        };
        let masked = |value: u128| value.wrapping_neg() & offset;
        let active = [zero[0] ^ masked(values[0]), zero[1] ^ masked(values[1])];
        let got = match self.scheme {
            Garbling::HalfGates => half::evaluate(hash, active, &table),
            Garbling::ThreeHalves => three::evaluate(hash, active, &table),
        };
        assert_eq!(got, c ^ masked(values[0] & values[1]));
        let [x, y] = active;
        let hashed: &[(u128, u64)] = match self.scheme {
            Garbling::HalfGates => &[(x, 0), (y, 1)],
            Garbling::ThreeHalves => &[(x, 0), (y, 1), (x ^ y, 2)],
        };
        let hashed = hashed.iter().map(|(x, tweak)| hash(*x, *tweak));
        let seen = active.into_iter().chain(table.labels).chain(hashed);
        let seen = seen.fold(0, |view, label| view << self.bits() | self.number(label));
        let share = if opened { (c & 1) as u64 } else { 0 };
        (seen << 5 | u64::from(table.bits)) << 1 | share
    }
}

const VALUES: [[u128; 2]; 4] = [[0, 0], [0, 1], [1, 0], [1, 1]];

#[test]
fn a_gate_shows_the_evaluator_nothing() {
    for model in MODELS {
        let first = model.views(VALUES[0], false);
        for values in VALUES {
            let same = model.views(values, false) == first;
            assert!(same, "{:?}: {values:?}", model.scheme);
        }
    }
}

#[test]
fn a_gate_whose_result_is_opened_shows_the_evaluator_the_result_only() {
    for model in MODELS {
        let all = VALUES.map(|values| (values, model.views(values, true)));
        for (a, seen) in &all {
            for (b, other) in &all {
                let same = a[0] & a[1] == b[0] & b[1];
                assert_eq!(seen == other, same, "{:?}: {a:?}, {b:?}", model.scheme);
            }
        }
    }
}

/// The test can fail: under one tweak for all operands a table tells which values its operands have.
#[test]
fn a_gate_that_repeats_a_tweak_shows_the_evaluator_something() {
    for model in MODELS {
        let model = Model {
            repeats: true,
            ..model
        };
        let [zero, one] = [VALUES[0], VALUES[1]].map(|values| model.views(values, false));
        assert!(zero != one, "{:?}", model.scheme);
    }
}
