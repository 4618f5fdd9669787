//! Circuits of the digits of a key.
//!
//! Of a digit t of L bits the indicators e_t are bits; E_t are they as integers, S_t\[j\] counts the rows with digit t before row j, and those with a
//! smaller digit anywhere. Then row j belongs at Σ E_t\[j\] · S_t\[j\]: a stable sort by counting.

use veil_circuit::{Builder, Circuit, Wire};
use veil_math::Ring;

/// A circuit that is written for every digit alike.
const VALID: &str = "gates of one ring in their order";

/// From the `bits` bits of a digit to the indicators E_t of all digits but 0, as integers.
pub(crate) fn indicators(bits: u32) -> Circuit {
    let mut b = Builder::new(Ring::Z32);
    let digit = b.input_bits("digit", bits);
    let all = 1usize << bits;
    // The product of the bits of each set, of which single bits are the inputs: that of one half of the set with that of the other, so that there are
    // as few rounds as can be.
    let mut products = vec![Wire(0); all];
    for set in 1..all {
        products[set] = match set.count_ones() {
            1 => digit[set.trailing_zeros() as usize],
            size => {
                let of_set = (0..bits).filter(|bit| set >> bit & 1 == 1);
                let low = of_set
                    .take(size as usize / 2)
                    .fold(0, |low, bit| low | 1 << bit);
                b.and(products[low], products[set ^ low])
            }
        };
    }
    for digit in 1..all {
        // Π b_i Π (1 + b_k) is the sum of the products of all sets that contain the digit.
        let others = (digit + 1..all).filter(|set| set & digit == digit);
        let sum = others.fold(products[digit], |sum, set| b.xor(sum, products[set]));
        let lifted = b.lift(sum);
        b.output(format!("e{digit}"), &[lifted]);
    }
    b.finish().expect(VALID)
}

#[cfg(test)]
mod tests {
    use veil_circuit::Gate;

    use super::*;

    #[test]
    fn one_indicator_is_one() {
        for bits in 1..=4 {
            let circuit = indicators(bits);
            circuit.validate().unwrap();
            let products = circuit.gates.iter().filter(|g| matches!(g, Gate::Mul(..)));
            assert_eq!(products.count(), (1 << bits) - bits as usize - 1);
            for digit in 0..1u128 << bits {
                let input = (0..bits).map(|bit| digit >> bit & 1).collect();
                let found = circuit.evaluate(&[input]).unwrap();
                let want: Vec<Vec<u128>> = (1..1 << bits)
                    .map(|other| vec![u128::from(digit == other)])
                    .collect();
                assert_eq!(found, want);
            }
        }
    }
}
