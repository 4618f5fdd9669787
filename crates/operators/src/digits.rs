//! Circuits that find the position of every row by one digit of its key.
//!
//! Of a digit t of L bits the indicators e_t are bits; E_t are they as integers, S_t\[j\] counts the rows with digit t before row j, and those with a
//! smaller digit anywhere. Then row j belongs at Σ E_t\[j\] · S_t\[j\]: a stable sort by counting.

use veil_circuit::{Builder, Circuit, Per, Wire};
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

/// From E_t and S_t of all digits but 0, and the number that Σ S_t is subtracted from for S_0, to the position of the row.
pub(crate) fn position(bits: u32) -> Circuit {
    let mut b = Builder::new(Ring::Z32);
    let mut each = |name: &str| -> Vec<Wire> {
        let digits = 1..1u32 << bits;
        let ports = digits.map(|digit| b.input(format!("{name}{digit}"), 1, Per::Row)[0]);
        ports.collect()
    };
    let (e, s) = (each("e"), each("s"));
    let first = b.input("first", 1, Per::Row)[0];
    let zero = s.iter().fold(first, |zero, s| b.sub(zero, *s));
    // Σ E_t S_t with E_0 = 1 - Σ E_t.
    let mut products = Vec::new();
    for (e, s) in e.into_iter().zip(s) {
        let more = b.sub(s, zero);
        products.push(b.mul(e, more));
    }
    let sum = products
        .into_iter()
        .reduce(|sum, product| b.add(sum, product));
    let position = sum.map_or(zero, |sum| b.add(sum, zero));
    b.output("position", &[position]);
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

    #[test]
    fn a_position_is_that_of_its_digit() {
        for bits in 1..=3 {
            let circuit = position(bits);
            circuit.validate().unwrap();
            let digits = (1u128 << bits) - 1;
            let starts: Vec<u128> = (0..=digits).map(|digit| 100 * digit + 7).collect();
            let first = starts.iter().sum();
            for digit in 0..=digits {
                let mut inputs: Vec<Vec<u128>> = (1..=digits)
                    .map(|other| vec![u128::from(digit == other)])
                    .collect();
                inputs.extend(starts[1..].iter().map(|s| vec![*s]));
                inputs.push(vec![first]);
                let found = circuit.evaluate(&inputs).unwrap();
                assert_eq!(found, [[starts[digit as usize]]]);
            }
        }
    }
}
