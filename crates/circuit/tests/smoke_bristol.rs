//! Damaged Bristol files: the body of the fuzz target on mutations of good files, from a fixed seed.

use crate::common::numbers::Xorshift;
use veil_circuit::bristol::{Flavour, fuzz, write};
use veil_circuit::{Builder, Initial, Per, make};
use veil_math::Ring;

/// What is likely to matter to a parser: separators, huge and negative numbers, names.
const PIECES: [&str; 24] = [
    " sequential 3",
    "\ninput 1 cycle x\n",
    "\noutput 1 last z\n",
    "\nregister 3 zero\n",
    "cycle",
    "one",
    "job",
    " ",
    "\n",
    "\r\n",
    "0",
    "1",
    "2",
    "-1",
    "4294967295",
    "4294967296",
    "18446744073709551615",
    "XOR",
    "MAND",
    "EQ",
    "LIFT",
    "BIT",
    " integers 64",
    "\0",
];

fn damage(text: &mut Vec<u8>, random: &mut Xorshift) {
    let at = random.below(text.len() + 1);
    match random.below(6) {
        0 => text.truncate(at),
        1 => text.insert(at, random.below(256) as u8),
        2 if at < text.len() => text[at] ^= 1 << random.below(8),
        3 if at < text.len() => {
            let end = (at + 1 + random.below(12)).min(text.len());
            text.drain(at..end);
        }
        4 => {
            // Repeat a piece of the file elsewhere.
            let end = (at + random.below(40)).min(text.len());
            let piece = text[at..end].to_vec();
            let to = random.below(text.len() + 1);
            text.splice(to..to, piece);
        }
        _ => {
            let end = (at + random.below(4)).min(text.len());
            text.splice(at..end, PIECES[random.below(PIECES.len())].bytes());
        }
    }
}

/// Counts the ones of a stream, from a number on.
fn clocked() -> veil_circuit::Circuit {
    let mut b = Builder::new(Ring::Bits);
    b.cycles(3);
    let from = b.input("where it begins", 2, Per::Row);
    let mut carry = b.input("x", 1, Per::Cycle)[0];
    let count = [
        Initial::Wire(from[0]),
        Initial::Wire(from[1]),
        Initial::Constant(true),
    ];
    let count = count.map(|initial| b.register(initial));
    for bit in count {
        let sum = b.xor(bit, carry);
        carry = b.and(bit, carry);
        b.set_next(bit, sum);
    }
    b.output_every_cycle("count", &count);
    b.output("carry", &[carry]);
    b.finish().expect("a good circuit")
}

#[test]
fn damaged_files_are_read_or_refused() {
    let mut good =
        vec![b"3 6\n2 1 1\n1 2\n4 2 0 1 1 0 2 3 MAND\n1 1 1 4 EQ\n1 1 2 5 EQW\n".to_vec()];
    for specification in ["adder:3", "lt-signed-fast:4", "mul:3"] {
        for flavour in [Flavour::Fashion, Flavour::Old] {
            let mut text = Vec::new();
            write(
                &make(specification).expect("a name of the catalogue"),
                flavour,
                &mut text,
            )
            .expect("memory");
            good.push(text);
        }
    }
    for specification in ["int-lt:8", "int-half-signed:16", "matmul64:2x1x2"] {
        let circuit = make(specification).expect("a name of the catalogue");
        let mut text = Vec::new();
        write(&circuit, Flavour::Integers, &mut text).expect("memory");
        good.push(text);
    }
    let mut text = Vec::new();
    write(&clocked(), Flavour::Sequential, &mut text).expect("memory");
    good.push(text);
    let mut random = Xorshift(0x5eed_0001);
    let (mut read, mut refused) = (0u32, 0u32);
    for round in 0..400_000 {
        let mut text = good[round % good.len()].clone();
        for _ in 0..=random.below(3) {
            damage(&mut text, &mut random);
        }
        *(if fuzz(&text) { &mut read } else { &mut refused }) += 1;
    }
    // Both paths were taken, often.
    assert!(
        read > 1_000 && refused > 100_000,
        "{read} read, {refused} refused"
    );
}
