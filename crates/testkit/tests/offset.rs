//! The offset of a garbler cannot be computed from its tables (case C1): the attack on a hash without an orthomorphism of labels, which
//! succeeds against such a hash and fails against ours.
//!
//! With H(X, t) = AES(X ⊕ t) ⊕ X ⊕ t and a colour q = 1 of the second operand, the first row of half-gates is
//! T_G = AES(m) ⊕ AES(m ⊕ Δ) for m = A ⊕ t: what the hash adds to its results differs by Δ, and q Δ takes that away. Whoever has m finds
//! Δ = m ⊕ AES⁻¹(T_G ⊕ AES(m)).

use std::sync::Arc;

use aes::Aes128;
use aes::cipher::{BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};
use veil_device::garble::hash;
use veil_device::{
    Command, Cpu, Device, Draw, Frame, Garbling, Instr, Item, KeyId, Layout, Op, Place, Program,
    Reference, Region, Span, Src, Tag,
};
use veil_math::Ring;
use veil_prss::{Prf, Use};
use veil_session::Secret;
use veil_testkit::Seed;

/// AES-128 under a key that everybody knows, in both directions.
struct Cipher(Aes128);

impl Cipher {
    fn new(key: u128) -> Self {
        Cipher(Aes128::new(&key.to_le_bytes().into()))
    }

    fn forward(&self, x: u128) -> u128 {
        let mut block = x.to_le_bytes().into();
        self.0.encrypt_block(&mut block);
        u128::from_le_bytes(block.into())
    }

    fn back(&self, x: u128) -> u128 {
        let mut block = x.to_le_bytes().into();
        self.0.decrypt_block(&mut block);
        u128::from_le_bytes(block.into())
    }
}

/// The hash of engines that have none of their own for labels: no orthomorphism, and one key for all gates.
struct Broken {
    cipher: Cipher,
}

impl Broken {
    fn hash(&self, x: u128, tweak: u64) -> u128 {
        let m = x ^ u128::from(tweak);
        self.cipher.forward(m) ^ m
    }
}

/// T_G of half-gates.
fn first_row(hash: impl Fn(u128) -> u128, offset: u128, [a, b]: [u128; 2]) -> u128 {
    hash(a) ^ hash(a ^ offset) ^ ((b & 1).wrapping_neg() & offset)
}

/// What the attack takes for the offset: `m` is what the active label goes into the cipher as.
fn attack(cipher: &Cipher, m: u128, row: u128) -> u128 {
    m ^ cipher.back(row ^ cipher.forward(m))
}

const GATES: u32 = 64;

#[test]
fn one_gate_of_a_hash_without_orthomorphism_gives_the_offset_away() {
    let seed = Seed::any();
    let mut numbers = seed.numbers("broken hash");
    let offset = numbers.next_u128() | 1;
    let broken = Broken {
        cipher: Cipher::new(numbers.next_u128()),
    };
    for tweak in 0..u64::from(GATES) {
        let [a, b] = [numbers.next_u128(), numbers.next_u128()];
        let row = first_row(|x| broken.hash(x, tweak), offset, [a, b]);
        for value in [0, offset] {
            let got = attack(&broken.cipher, a ^ value ^ u128::from(tweak), row);
            // From every gate whose second operand has colour 1, and from no other.
            assert_eq!(got == offset, b & 1 == 1, "gate {tweak}, {seed:?}");
        }
    }
}

const OFFSET: KeyId = KeyId(0);
const START: KeyId = KeyId(1);
const FIRST: u64 = 1000;
const FRAME: Frame = Frame {
    epoch: 0,
    lane: 1,
    chunk: 2,
    rows: 1,
};

/// Tables that a device makes of `GATES` gates with these zero-labels.
fn garbled(device: &mut dyn Device, keys: [u128; 2], zero: &[u128]) -> Vec<u128> {
    let region = |place, item, count| Region {
        place,
        item,
        parts: 1,
        count,
    };
    let layout = Layout {
        chunk_rows: 1,
        regions: vec![
            region(Place::Resident, Item::Labels, 3 * GATES),
            region(Place::Mapped, Item::Label, 1),
            region(Place::Mapped, Item::Labels, 2 * GATES),
        ],
    };
    let product = |k| Instr::Product {
        pairs: k..k + 1,
        out: 2 * GATES + k,
        index: k,
    };
    let program = Program {
        ring: Ring::Bits,
        slots: 0,
        uniforms: 1,
        sums: 1,
        temps: 0,
        pairs: (0..GATES)
            .map(|k| (Src::Slot(2 * k), Src::Slot(2 * k + 1)))
            .collect(),
        code: (0..GATES).map(product).collect(),
    };
    for (id, key) in [OFFSET, START].into_iter().zip(keys) {
        let key = Secret::new(key.to_le_bytes());
        device.load_key(id, &key).expect("a key");
    }
    let id = device.load(&Arc::new(program), &layout).expect("a program");
    let bank = device.open(&layout, FRAME).expect("a bank");
    let tables = layout.all(2, 0);
    let bytes: Vec<u8> = zero.iter().flat_map(|x| x.to_le_bytes()).collect();
    device.write(bank, tables, &bytes).expect("labels");
    let copy = Op::Combine {
        ring: Ring::Bits,
        minus: 0,
    };
    let inputs = Span {
        region: 0,
        ..tables
    };
    let copy = Command::new(copy, vec![tables], vec![inputs]);
    let op = Op::Garble {
        scheme: Garbling::HalfGates,
        offset: OFFSET,
    };
    let mut garble = Command::new(op, vec![], vec![tables]);
    garble.program = Some(id);
    garble.draws = vec![Draw {
        key: START,
        tag: Use::GARBLE,
        first: FIRST,
    }];
    device.submit(bank, &[copy, garble], Tag(1)).expect("gates");
    let bytes = device.view(bank, tables).expect("it is mapped");
    let labels = bytes.as_chunks().0.iter().copied();
    labels.map(u128::from_le_bytes).collect()
}

#[test]
fn our_tables_do_not_give_the_offset_away() {
    let seed = Seed::any();
    let mut numbers = seed.numbers("our hash");
    let keys = [numbers.next_u128() | 1, numbers.next_u128()];
    let (offset, prf) = (keys[0], Prf::new(&Secret::new(keys[1].to_le_bytes())));
    let zero: Vec<u128> = (0..2 * GATES).map(|_| numbers.next_u128()).collect();
    let start = prf.block(Use::GARBLE, FRAME.lane, 0, FRAME.chunk);
    let start = u128::from_le_bytes(start);
    let devices: [Box<dyn Device>; 2] = [Box::new(Reference::default()), Box::new(Cpu::detect())];
    for mut device in devices {
        let tables = garbled(&mut *device, keys, &zero);
        let mut colours = [0; 2];
        for gate in 0..GATES as usize {
            let [a, b] = [zero[2 * gate], zero[2 * gate + 1]];
            let tweak = 2 * ((FIRST + gate as u64) << 16);
            // The table is what the attack below is about.
            let row = first_row(|x| hash(start, tweak, x), offset, [a, b]);
            assert_eq!(tables[2 * gate], row, "gate {gate}, {seed:?}");
            colours[(b & 1) as usize] += 1;
            for (row, label, other) in [(0, a, 0), (1, b, a)] {
                // Everybody knows the keys of the cipher; the evaluator has one label of each wire.
                let cipher = Cipher::new(start ^ u128::from(tweak + row as u64) << 64);
                let table = tables[2 * gate + row];
                for active in [label, label ^ offset] {
                    for known in [0, other, other ^ offset, active] {
                        for m in [active, sigma(active), active ^ u128::from(tweak)] {
                            let got = attack(&cipher, m, table ^ known);
                            let guesses = [got, inverse(got), got ^ m, got ^ active];
                            assert!(!guesses.contains(&offset), "gate {gate}, {seed:?}");
                        }
                    }
                }
            }
        }
        assert!(colours.iter().all(|n| *n > 0), "both colours, {seed:?}");
    }
}

/// (hi ⊕ lo) ‖ hi.
fn sigma(x: u128) -> u128 {
    let (hi, lo) = (x >> 64, x as u64 as u128);
    (hi ^ lo) << 64 | hi
}

/// What σ maps to `x`.
fn inverse(x: u128) -> u128 {
    let (hi, lo) = (x >> 64, x as u64 as u128);
    lo << 64 | (hi ^ lo)
}
