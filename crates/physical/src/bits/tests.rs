//! Circuits over wires, against what they mean.

use veil_circuit::generate::Aim;
use veil_circuit::{Builder, Circuit, Per};
use veil_math::Ring;

use super::InRows;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u128 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        u128::from(z ^ (z >> 31))
    }
}

fn bits(number: u128, count: u32) -> Vec<u128> {
    (0..count).map(|bit| number >> bit & 1).collect()
}

fn number(bits: &[u128]) -> u128 {
    bits.iter().zip(0..).map(|(bit, at)| bit << at).sum()
}

/// Every gate of a circuit over integers, on integers and bits.
fn all_gates(ring: Ring) -> Circuit {
    let mut b = Builder::new(ring);
    let x = b.input("x", 1, Per::Row)[0];
    let y = b.input("y", 1, Per::Row)[0];
    let p = b.input_bits("p", 3);
    let mut out = vec![b.add(x, y), b.sub(x, y), b.mul(x, y)];
    for number in [3, ring.reduce(u128::MAX), ring.reduce(u128::MAX - 40), 1000] {
        out.push(b.plus(x, number));
        out.push(b.times(y, number));
    }
    let low = b.bit(x, 0);
    let high = b.bit(y, ring.bits() - 1);
    let (both, differ, not) = (b.and(low, p[0]), b.xor(high, p[1]), b.not(p[2]));
    let none = b.is_zero(x, 3);
    for bit in [both, differ, not, none] {
        out.push(b.lift(bit));
    }
    let mut word = b.constant(0);
    for bit in p {
        word = b.append(word, bit);
    }
    out.push(word);
    // Numbers of few bits: the upper ones are taken off.
    let mut small = b.constant(0);
    for bit in (0..20).rev() {
        let bit = b.bit(x, bit);
        small = b.append(small, bit);
    }
    out.push(b.shift_right(small, 7, 20));
    out.push(b.truncate_pr(small, 4, 20));
    let chosen = b.mux(low, x, y);
    out.push(chosen);
    for (k, wire) in out.iter().enumerate() {
        b.output(format!("z{k}"), &[*wire]);
    }
    b.output("bits", &[both, differ, none]);
    b.finish().unwrap()
}

/// Bit for bit the same as the circuit in the clear; of fewer bits that are read, these.
#[test]
fn circuits_of_integers_are_those_of_their_bits() {
    let mut random = Random(5);
    let rings = [Ring::Z32, Ring::Z64, Ring::Z128];
    let each = [Aim::Size, Aim::Depth].map(|aim| rings.map(|ring| (ring, aim)));
    for (ring, aim) in each.concat() {
        let of = all_gates(ring);
        for read in [u32::MAX, ring.bits() - 1, 9, 1] {
            let outputs: Vec<u32> = of.outputs.iter().map(|_| read).collect();
            let rows = InRows::new(&of, &outputs, aim);
            let mut b = Builder::new(Ring::Bits);
            let widths = [0, 1, 2].map(|port| rows.input_bits(port));
            assert_eq!(widths, [ring.bits(), ring.bits(), 3]);
            let inputs = b.input("all", widths.iter().sum(), Per::Row);
            for (k, wires) in rows.row(&mut b, inputs).unwrap().into_iter().enumerate() {
                let (width, integers) = rows.output_bits(k);
                assert_eq!(wires.len() as u32, width);
                assert_eq!(integers, k + 1 < of.outputs.len());
                b.output(format!("z{k}"), &wires);
            }
            let flat = b.finish().unwrap();
            for turn in 0..40u128 {
                let short = if turn % 2 == 0 { 2 } else { ring.bits() };
                let mut drawn = || ring.reduce(random.next() << 64 | random.next());
                let [x, y] = [drawn() >> (ring.bits() - short), drawn()];
                let p = bits(turn, 3);
                let wanted = of.evaluate(&[vec![x], vec![y], p.clone()]).unwrap();
                let all = [bits(x, ring.bits()), bits(y, ring.bits()), p].concat();
                let found = flat.evaluate(&[all]).unwrap();
                for (found, wanted) in found.iter().zip(&wanted) {
                    if wanted.len() > 1 {
                        let read = wanted.len().min(read as usize);
                        assert_eq!(found[..read], wanted[..read]);
                        continue;
                    }
                    let mask = u128::MAX >> (128 - read.min(ring.bits()));
                    let found = number(found) & mask;
                    assert_eq!(found, wanted[0] & mask, "{ring:?}, {read} bits, {x} {y}");
                }
            }
        }
    }
}
