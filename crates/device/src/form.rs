//! Bilinear forms: how shares are multiplied. A protocol says which form its product is; a device computes it.

use veil_math::Ring;

/// A bilinear form with masks: how a product of shares is made of products of components, as the protocol defines it.
///
/// With operands a and b and drawn elements d_0, d_1, …, cross term k is m_k = Σ_(p, q) in terms a_p · b_q ± Σ d, and is message k of
/// the product. A component of the result is the sum of the m_k that go to it and of the calls that it keeps; one that gets nothing
/// is left as it is. Devices specialise the forms they know and compute any other by the formula.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Form {
    /// Ring of the components.
    pub ring: Ring,
    /// Its cross terms, in the order of their messages: one to [`Form::MOST_CROSSES`].
    pub crosses: &'static [Cross],
    /// Calls that are added as they are: number of the call, component.
    pub keeps: &'static [(u8, u8)],
}

/// One cross term of a [`Form`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Cross {
    /// Pairs of components that are multiplied.
    pub terms: &'static [(u8, u8)],
    /// Calls that mask it: number of the call, and whether it is subtracted.
    pub masks: &'static [(u8, bool)],
    /// Component that it is added to.
    pub to: u8,
}

impl Form {
    /// Why a device whose multipliers are made for the forms that it knows refuses any other ([`Fault::Unsupported`](crate::Fault::Unsupported)).
    pub const OTHER: &'static str =
        "products of this form: it multiplies replicated shares of three parties, and of four";
    /// As many cross terms as a form may have.
    pub const MOST_CROSSES: usize = 3;
    /// As many calls as a form may have.
    pub const MOST_PRF_CALLS: usize = 6;
    /// As many components as it may be about.
    pub const MOST_PARTS: usize = 3;

    /// How many calls it takes for row products, and again for sums.
    pub fn calls(&self) -> usize {
        let masks = self.crosses.iter().flat_map(|c| c.masks);
        let masks = masks.map(|(call, _)| *call);
        let keeps = self.keeps.iter().map(|(call, _)| *call);
        masks.chain(keeps).max().map_or(0, |d| usize::from(d) + 1)
    }

    /// Whether it is that of replicated shares of three or of four parties.
    pub fn is_replicated(&self) -> bool {
        let four = FOURFOLD[number(self.ring)].as_flattened();
        self == Form::replicated(self.ring) || four.contains(self)
    }

    /// Whether it can be computed on shares of `parts` components.
    pub(crate) fn fits(&self, parts: u8) -> bool {
        let component = |c: u8| c < parts && usize::from(c) < Form::MOST_PARTS;
        (1..=Form::MOST_CROSSES).contains(&self.crosses.len())
            && self.calls() <= Form::MOST_PRF_CALLS
            && self.keeps.iter().all(|(_, to)| component(*to))
            && self.crosses.iter().all(|cross| {
                component(cross.to)
                    && (cross.terms.iter()).all(|(i, j)| component(*i) && component(*j))
            })
    }

    /// Whether its operands and masks can be traced, as a proof of its products needs.
    pub(crate) fn traces(&self) -> bool {
        self == Form::replicated(Ring::Bits)
    }

    /// Whether cross term `k` is all that its component of the result gets: the message is that component.
    pub fn is_component(&self, k: usize) -> bool {
        let mine = |cross: &Cross| self.crosses.get(k).is_some_and(|of| of.to == cross.to);
        let kept = self.keeps.iter();
        self.crosses.iter().filter(|cross| mine(cross)).count() == 1
            && !kept.clone().any(|(_, to)| *to == self.crosses[k].to)
    }

    /// The components of the result that it writes: bit c for component c.
    pub fn writes(&self) -> u8 {
        let crosses = self.crosses.iter().map(|cross| cross.to);
        let keeps = self.keeps.iter().map(|(_, to)| *to);
        crosses.chain(keeps).fold(0, |bits, c| bits | 1 << c)
    }
}

const fn cross(terms: &'static [(u8, u8)], masks: &'static [(u8, bool)], to: u8) -> Cross {
    Cross { terms, masks, to }
}

const fn of_replicated(ring: Ring, terms: &'static [Cross]) -> Form {
    Form {
        ring,
        crosses: terms,
        keeps: &[],
    }
}

/// One cross term of components (u, u'), masked by the first call minus the second: u (w + w') + u' w. Of bits it is
/// u w' + u' (w + w'), which the messages of Wolfe et al. (2020) are.
static REPLICATED: [Form; 4] = [
    of_replicated(
        Ring::Bits,
        &[cross(
            &[(0, 1), (1, 0), (1, 1)],
            &[(0, false), (1, true)],
            0,
        )],
    ),
    of_replicated(Ring::Z64, &[RING_TERM]),
    of_replicated(Ring::Z128, &[RING_TERM]),
    of_replicated(Ring::Z32, &[RING_TERM]),
];

const RING_TERM: Cross = cross(&[(0, 0), (0, 1), (1, 0)], &[(0, false), (1, true)], 0);

/// Cross terms of components (u0, u1, u2) with the next holder, with the previous one, and with the one opposite.
const NEXT: Cross = cross(&[(1, 1), (1, 2), (2, 1)], &[(0, true)], 1);
const PREVIOUS: Cross = cross(&[(0, 0), (0, 1), (1, 0)], &[(1, true)], 0);
const OPPOSITE: [Cross; 2] = [
    cross(&[(0, 2), (2, 0)], &[(2, true)], 0),
    cross(&[(0, 2), (2, 0)], &[(2, true)], 2),
];

static CROSSES: [[Cross; 3]; 2] = [[NEXT, PREVIOUS, OPPOSITE[0]], [NEXT, PREVIOUS, OPPOSITE[1]]];

/// The masks of the cross terms, then those of cross terms that others compute.
static KEEPS: [[(u8, u8); 5]; 2] = [
    [(0, 2), (1, 1), (2, 2), (3, 0), (4, 1)],
    [(0, 2), (1, 1), (2, 0), (3, 0), (4, 1)],
];

const fn of_fourfold(ring: Ring, swapped: usize, calls: usize) -> Form {
    Form {
        ring,
        crosses: &CROSSES[swapped],
        keeps: KEEPS[swapped].split_at(calls).0,
    }
}

const fn fourfolds(ring: Ring) -> [[Form; 2]; 2] {
    [
        [of_fourfold(ring, 0, 4), of_fourfold(ring, 0, 5)],
        [of_fourfold(ring, 1, 4), of_fourfold(ring, 1, 5)],
    ]
}

static FOURFOLD: [[[Form; 2]; 2]; 4] = [
    fourfolds(Ring::Bits),
    fourfolds(Ring::Z64),
    fourfolds(Ring::Z128),
    fourfolds(Ring::Z32),
];

const fn number(ring: Ring) -> usize {
    match ring {
        Ring::Bits => 0,
        Ring::Z64 => 1,
        Ring::Z128 => 2,
        Ring::Z32 => 3,
    }
}

impl Form {
    /// The product of two-of-three replicated shares: one cross term, which goes to component 0.
    pub const fn replicated(ring: Ring) -> &'static Form {
        &REPLICATED[number(ring)]
    }

    /// The product of three-of-four replicated shares, whose components 0, 1, 2 belong to the next three holders: cross terms with the next
    /// holder, the previous one, and the one opposite.
    ///
    /// If `swapped`, the last goes to component 2 and its mask to component 0, else the other way round. With `five` calls instead of
    /// four, the last is added to component 1.
    pub const fn fourfold(ring: Ring, swapped: bool, five: bool) -> &'static Form {
        &FOURFOLD[number(ring)][swapped as usize][five as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_forms_fit_their_shares() {
        for ring in Ring::ALL {
            let form = Form::replicated(ring);
            assert!(form.fits(2) && !form.fits(1));
            assert_eq!((form.calls(), form.writes()), (2, 0b01));
            for swapped in [false, true] {
                for five in [false, true] {
                    let form = Form::fourfold(ring, swapped, five);
                    assert_eq!(form.ring, ring);
                    assert!(form.fits(3) && !form.fits(2));
                    assert_eq!(form.calls(), 4 + usize::from(five));
                    assert_eq!(form.writes(), 0b111);
                }
            }
        }
    }
}
