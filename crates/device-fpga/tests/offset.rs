//! The offset of a garbler cannot be computed from its tables (case C1): the attack on a hash without an orthomorphism of labels, which
//! succeeds against such a hash and fails against ours.
//!
//! With H(X, t) = AES(X ⊕ t) ⊕ X ⊕ t and a colour q = 1 of the second operand, the first row of half-gates is
//! T_G = AES(m) ⊕ AES(m ⊕ Δ) for m = A ⊕ t: what the hash adds to its results differs by Δ, and q Δ takes that away. A party with m finds
//! Δ = m ⊕ AES⁻¹(T_G ⊕ AES(m)). Tables are those of every device, of the card and of the core that takes gates in the order of a netlist.

use std::sync::Arc;

use crate::common::{hash, sigma};
use aes::Aes128;
use aes::cipher::{BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};
use veil_circuit::{Limits, scd};
use veil_device::{
    ColumnType, Command, Cpu, Device, Frame, Garbling, Instr, KeyId, Layout, Op, PrfCall, Program,
    Reference, Region, Residency, Span, Src, Tag,
};
use veil_device_fpga::ordered::{Entries, Job, Ordered};
use veil_device_fpga::{Fpga, Garbler, Simulated, Stalls};
use veil_math::Ring;
use veil_prss::{DomainTag, Prf};
use veil_session::Secret;
use veil_testkit::Seed;

/// AES-128 under a key that all parties know, in both directions.
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

/// All that the attack takes for the offset, from one row of a table: of an evaluator that has the active label of the operand that the row
/// is of, and maybe a label of the other.
fn guesses(cipher: &Cipher, tweak: u64, active: u128, others: &[u128], row: u128) -> Vec<u128> {
    let mut all = Vec::new();
    for known in [&[0, active], others].concat() {
        for m in [active, sigma(active), active ^ u128::from(tweak)] {
            let got = attack(cipher, m, row ^ known);
            all.extend([got, inverse(got), got ^ m, got ^ active]);
        }
    }
    all
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
        for active in [a, a ^ offset] {
            let got = guesses(&broken.cipher, tweak, active, &[], row);
            // From every gate whose second operand has colour 1, and from no other.
            assert_eq!(got.contains(&offset), b & 1 == 1, "gate {tweak}, {seed}");
        }
    }
}

/// Attacks each row of the tables of these gates: `gates` has the number and the zero-labels of each.
fn assert_safe(
    tables: &[u128],
    gates: &[(u64, [u128; 2])],
    (offset, start): (u128, u128),
    seed: Seed,
) {
    let mut colours = [0; 2];
    assert_eq!(tables.len(), 2 * gates.len());
    for (&(number, [a, b]), table) in gates.iter().zip(tables.as_chunks::<2>().0) {
        let tweak = 2 * number;
        // The table is what the attack below is about.
        let row = first_row(|x| hash(start, tweak, x), offset, [a, b]);
        assert_eq!(table[0], row, "gate {number}, {seed}");
        colours[(b & 1) as usize] += 1;
        for (row, label, other) in [(0, a, 0), (1, b, a)] {
            // All parties know the keys of the cipher; the evaluator has one label of each wire.
            let tweak = tweak + row as u64;
            let cipher = Cipher::new(start ^ u128::from(tweak) << 64);
            for active in [label, label ^ offset] {
                let others = [other, other ^ offset];
                let got = guesses(&cipher, tweak, active, &others, table[row]);
                assert!(!got.contains(&offset), "gate {number}, {seed}");
            }
        }
    }
    assert!(colours.iter().all(|n| *n > 0), "both colours, {seed}");
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
    let region = |residency, column, count| Region {
        residency,
        column,
        components: 1,
        count,
    };
    let layout = Layout {
        chunk_rows: 1,
        regions: vec![
            region(Residency::Resident, ColumnType::Labels, 3 * GATES),
            region(Residency::Mapped, ColumnType::Label, 1),
            region(Residency::Mapped, ColumnType::Labels, 2 * GATES),
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
        job_wide: 1,
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
    let workspace = device.open(&layout, FRAME).expect("a workspace");
    let tables = layout.all(2, 0);
    let bytes: Vec<u8> = zero.iter().flat_map(|x| x.to_le_bytes()).collect();
    device.write(workspace, tables, &bytes).expect("labels");
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
    garble.calls = vec![PrfCall {
        key: START,
        tag: DomainTag::GARBLE,
        first: FIRST,
    }];
    device
        .submit(workspace, &[copy, garble], Tag(1))
        .expect("gates");
    let bytes = device.view(workspace, tables).expect("it is mapped");
    let labels = bytes.as_chunks().0.iter().copied();
    labels.map(u128::from_le_bytes).collect()
}

/// Every device that there is.
fn devices() -> Vec<Box<dyn Device>> {
    let mut devices: Vec<Box<dyn Device>> =
        vec![Box::new(Reference::default()), Box::new(Cpu::detect())];
    for rows in Simulated::built() {
        let garbler = Garbler::simulated(rows, Stalls::default()).expect("it is built");
        devices.push(Box::new(Fpga::with(garbler)));
    }
    if devices.len() == 2 {
        println!("skipped: no card is in this build");
    }
    devices
}

#[test]
fn our_tables_do_not_give_the_offset_away() {
    let seed = Seed::any();
    let mut numbers = seed.numbers("our hash");
    let keys = [numbers.next_u128() | 1, numbers.next_u128()];
    let (offset, prf) = (keys[0], Prf::new(&Secret::new(keys[1].to_le_bytes())));
    let zero: Vec<u128> = (0..2 * GATES).map(|_| numbers.next_u128()).collect();
    let start = prf.block(DomainTag::GARBLE, FRAME.lane, 0, FRAME.chunk);
    let start = u128::from_le_bytes(start);
    let pairs = zero.as_chunks::<2>().0;
    let gates: Vec<_> = (FIRST..)
        .map(|p| p << 16)
        .zip(pairs.iter().copied())
        .collect();
    for mut device in devices() {
        let tables = garbled(&mut *device, keys, &zero);
        assert_safe(&tables, &gates, (offset, start), seed);
    }
}

#[test]
fn tables_of_gates_in_order_do_not_give_the_offset_away() {
    let seed = Seed::any();
    let mut numbers = seed.numbers("in order");
    // ANDs of an even input and the odd one beside it.
    let list = |number: fn(u32) -> u32| -> String {
        let list: Vec<String> = (0..GATES).map(|k| number(k).to_string()).collect();
        list.join(" ")
    };
    let lists = [list(|k| 2 * k), list(|k| 2 * k + 1), list(|_| 8)].join("\n");
    let text = format!(
        "{} 0 0 0 0 1 {GATES}\n{lists}\n{}\n\n\n",
        2 * GATES,
        2 * GATES
    );
    let netlist = scd::netlist(text.as_bytes(), &Limits::default()).expect("a netlist");
    let entries = Entries::of(&netlist).expect("it fits");
    let mut labels = vec![0; 32 * GATES as usize];
    numbers.fill(&mut labels);
    let job = Job {
        cycles: 1,
        first: FIRST,
        instance: 9,
        keys: (numbers.next_u128() | 1, numbers.next_u128()),
        labels: &labels,
    };
    for rows in Ordered::built() {
        let mut core = Ordered::new(rows, Stalls::default()).expect("it is built");
        let garbled = core.run(&entries, &job).expect("it runs");
        let words = |bytes: &[u8]| -> Vec<u128> {
            let words = bytes.as_chunks::<16>().0.iter();
            words.map(|word| u128::from_le_bytes(*word)).collect()
        };
        let zero = words(&garbled.labels);
        let pairs = zero.as_chunks::<2>().0.iter().copied();
        let gates: Vec<_> = (FIRST..).map(|p| p << 16 | 9).zip(pairs).collect();
        assert_safe(&words(&garbled.tables), &gates, job.keys, seed);
    }
}

/// What σ maps to `x`.
fn inverse(x: u128) -> u128 {
    let (hi, lo) = (x >> 64, x as u64 as u128);
    lo << 64 | (hi ^ lo)
}
