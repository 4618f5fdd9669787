//! The protocol as it is printed (Frederiksen, Nielsen 2013) leaks where ours does not: what its evaluator accepts, in the clear, with the
//! cheats that `cut_and_choose.rs` plays against ours.

use sha2::{Digest, Sha256};

type Key = [u8; 16];

fn hash(key: Key) -> [u8; 32] {
    Sha256::digest(key).into()
}

fn xor(a: Key, b: Key) -> Key {
    std::array::from_fn(|k| a[k] ^ b[k])
}

/// A key that follows from numbers.
fn key(of: [u32; 3]) -> Key {
    let mut hash = Sha256::new();
    for n in of {
        hash.update(n.to_le_bytes());
    }
    let digest: [u8; 32] = hash.finalize().into();
    *digest.first_chunk().expect("16 of 32 bytes")
}

/// What the garbler sends of one input bit of the evaluator, for each value: δ = X ⊕ k and χ = H(X).
struct Sent {
    masked: [Key; 2],
    hashed: [[u8; 32]; 2],
}

/// The printed check of a circuit that is opened: the evaluator has the key of its bit, and the labels k of both values. It recovers the other key
/// too (of which the printed formula lacks a term), and compares both with their hashes.
fn accepts(bit: usize, known: Key, labels: [Key; 2], sent: &Sent) -> bool {
    let other = 1 - bit;
    let recovered = xor(sent.masked[other], labels[other]);
    xor(sent.masked[bit], labels[bit]) == known
        && hash(known) == sent.hashed[bit]
        && hash(recovered) == sent.hashed[other]
}

/// P2: who hashes the garbage that it masks is accepted exactly if the evaluator's bit is the other one.
#[test]
fn the_printed_check_of_masked_labels_tells_the_bit() {
    for bit in 0..2 {
        for circuit in 0..50u32 {
            let labels = [0, 1].map(|b| key([circuit, b, 0]));
            let keys = [0, 1].map(|b| key([circuit, b, 1]));
            let send = |keys: [Key; 2]| Sent {
                masked: [0, 1].map(|b| xor(keys[b], labels[b])),
                hashed: keys.map(hash),
            };
            assert!(accepts(bit, keys[bit], labels, &send(keys)));
            let garbage = send([key([circuit, 0, 2]), keys[1]]);
            assert_eq!(accepts(bit, keys[bit], labels, &garbage), bit == 1);
        }
    }
}

/// P3: one circuit whose digest of the garbler's input is wrong exactly if a bit of the evaluator's is 1 survives half of all openings, and then
/// whether the evaluator gives up is that bit. In ours the sums are XORs of input labels, outside the circuit, so that no circuit can make them
/// depend on anything else.
#[test]
fn the_printed_comparison_of_digests_tells_a_bit() {
    const CIRCUITS: u32 = 8;
    for bit in [false, true] {
        let (mut survived, mut gave_up) = (0, 0);
        let halves = (0..1u32 << CIRCUITS).filter(|opened| opened.count_ones() == CIRCUITS / 2);
        for opened in halves {
            // Circuit 0 is the bad one.
            if opened & 1 == 1 {
                continue;
            }
            survived += 1;
            let digest = |circuit: u32| u32::from(circuit == 0 && bit);
            let evaluated = (0..CIRCUITS).filter(|circuit| opened >> circuit & 1 == 0);
            let mut digests: Vec<u32> = evaluated.map(digest).collect();
            digests.dedup();
            gave_up += u32::from(digests.len() > 1);
        }
        assert_eq!(survived, 35);
        assert_eq!(gave_up, if bit { survived } else { 0 });
    }
}
