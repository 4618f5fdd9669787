//! How often a wrong message gets the code of the right one: the code of `Op::Mac` as formulas for a field of any size, equal to the device's in
//! GF(2^128), and measured in GF(2^8), where wrong messages do escape.

use veil_device::{
    ColumnType, Command, Device, Frame, KeyId, Layout, Op, PrfCall, Reference, Region, Residency,
    Tag,
};
use veil_prss::{DomainTag, Prf};
use veil_session::Secret;

/// GF(2^bits): polynomials modulo x^bits + `rest`.
#[derive(Clone, Copy)]
struct Field {
    bits: u32,
    rest: u128,
}

/// The field of POLYVAL (Gueron, Langley, Lindell, RFC 8452, section 3).
const LARGE: Field = Field {
    bits: 128,
    rest: 1 << 127 | 1 << 126 | 1 << 121 | 1,
};

/// x^8 + x^4 + x^3 + x + 1.
const SMALL: Field = Field {
    bits: 8,
    rest: 0x1b,
};

/// Elements of the small field.
const KEYS: u128 = 1 << SMALL.bits;

impl Field {
    fn times_x(self, a: u128) -> u128 {
        let top = a >> (self.bits - 1) & 1;
        let kept = a & !(1 << (self.bits - 1));
        kept << 1 ^ if top == 1 { self.rest } else { 0 }
    }

    fn product(self, a: u128, b: u128) -> u128 {
        let bits = (0..self.bits).rev().map(|k| b >> k & 1);
        bits.fold(0, |sum, bit| {
            self.times_x(sum) ^ if bit == 1 { a } else { 0 }
        })
    }

    /// a x^-bits.
    fn divided(self, a: u128) -> u128 {
        let half = |a: u128| {
            let odd = a & 1 == 1;
            // (a + modulus) / x, of which x^bits / x is the top bit.
            (if odd { a ^ self.rest } else { a }) >> 1 | u128::from(odd) << (self.bits - 1)
        };
        (0..self.bits).fold(a, |a, _| half(a))
    }

    /// The code of blocks under the hash's key and a mask.
    fn code(self, key: u128, mask: u128, blocks: &[u128]) -> u128 {
        let step = |state: u128, block: &u128| self.divided(self.product(state ^ block, key));
        blocks.iter().fold(0, step) ^ mask
    }
}

/// Reproducible random numbers.
struct Numbers(Prf, u64);

impl Numbers {
    fn next(&mut self) -> u128 {
        self.1 += 1;
        u128::from_le_bytes(self.0.block(DomainTag(0), 0, self.1, 0))
    }
}

fn numbers(seed: u8) -> Numbers {
    Numbers(Prf::new(&Secret::new([seed; 16])), 0)
}

#[test]
fn the_formula_is_the_code_of_the_device() {
    let mut numbers = numbers(1);
    for bytes in [1, 16, 40, 100] {
        let mut layout = Layout {
            chunk_rows: 1,
            regions: vec![],
        };
        let mut region = |bytes| {
            layout.add(Region {
                residency: Residency::Mapped,
                column: ColumnType::Bytes(bytes),
                components: 1,
                count: 1,
            })
        };
        let [message, code] = [bytes, 16].map(&mut region);
        let frame = Frame {
            epoch: 0,
            lane: 3,
            chunk: 7,
            rows: 1,
        };
        let (key, tag, first) = (
            Secret::new(numbers.next().to_le_bytes()),
            DomainTag::mac4(2),
            5,
        );
        let mut device = Reference::default();
        device.load_key(KeyId(0), &key).expect("room for a key");
        let workspace = device.open(&layout, frame).expect("room for a workspace");
        let text: Vec<u8> = (0..bytes).map(|_| numbers.next() as u8).collect();
        device
            .write(workspace, layout.all(message, 0), &text)
            .expect("as long as the region");
        let (from, to) = (layout.all(message, 0), layout.all(code, 0));
        let mut command = Command::new(Op::Mac, vec![from], vec![to]);
        command.calls = vec![PrfCall {
            key: KeyId(0),
            tag,
            first,
        }];
        device
            .submit(workspace, &[command], Tag(0))
            .expect("a command");

        let prf = Prf::new(&key);
        let number = |block: [u8; 16]| u128::from_le_bytes(block);
        let hash_key = number(prf.block(DomainTag::MAC_KEY, 0, 0, 0));
        let mask = number(prf.block(tag, frame.lane, first, frame.chunk));
        let padded = text.chunks(16).map(|block| {
            let mut whole = [0; 16];
            whole[..block.len()].copy_from_slice(block);
            number(whole)
        });
        let blocks: Vec<u128> = padded.chain([u128::from(bytes)]).collect();
        let want = LARGE.code(hash_key, mask, &blocks).to_le_bytes();
        assert_eq!(device.view(workspace, to).expect("mapped"), want, "{bytes}");
    }
}

/// Keys of the small field under which `change` added to a message leaves its code as it is. Nothing else matters: the code is linear, and
/// the block of the length, which follows, is the plan's.
fn escapes(change: &[u128]) -> u128 {
    let whole = [change, &[0]].concat();
    (0..KEYS)
        .filter(|key| SMALL.code(*key, 0, &whole) == 0)
        .count() as u128
}

/// The change to `blocks` blocks that escapes most: Π (y - r) over as many r as its degree allows.
fn worst(blocks: usize) -> Vec<u128> {
    // Coefficients, the highest power first.
    let mut product = vec![1];
    for root in 1..blocks as u128 {
        let shifted = [&[0], &product[..]].concat();
        product.push(0);
        for (high, low) in product.iter_mut().zip(shifted) {
            *high ^= SMALL.product(low, root);
        }
    }
    product
}

/// No change of one or two blocks escapes more often than the bound says, nor does the worst of more: the bound counts the length as well.
#[test]
fn no_change_escapes_more_often_than_the_bound() {
    for first in 1..KEYS {
        assert_eq!(escapes(&[first]), 1);
        for second in 0..KEYS {
            assert!((1..=2).contains(&escapes(&[first, second])));
        }
    }
    for blocks in 1..=64 {
        assert_eq!(escapes(&worst(blocks)), blocks as u128);
    }
}

/// What a sender may add to its message, all with the keys that it escapes under; then as often as that, in runs with keys that it does not
/// know.
#[test]
fn wrong_messages_escape_as_often_as_the_formula_says() {
    const TRIALS: u32 = 100_000;
    const BLOCKS: usize = 16;
    let one = |at: usize, value| {
        let mut change = vec![0; BLOCKS];
        change[at] = value;
        change
    };
    let mut numbers = numbers(2);
    let changes: [(&str, Vec<u128>); 6] = [
        ("one lane", one(5, 1)),
        ("the top bit of one element", one(15, 0x80)),
        ("the first element", one(0, 0xff)),
        ("every bit of the message", vec![0xff; BLOCKS]),
        (
            "anything",
            (0..BLOCKS).map(|_| numbers.next() % KEYS).collect(),
        ),
        ("the worst", worst(BLOCKS)),
    ];
    for (what, change) in changes {
        let mut escaped = 0;
        for _ in 0..TRIALS {
            let [key, mask] = [(); 2].map(|()| numbers.next() % KEYS);
            let mut message: Vec<u128> = (0..BLOCKS).map(|_| numbers.next() % KEYS).collect();
            message.push(BLOCKS as u128);
            let honest = SMALL.code(key, mask, &message);
            for (block, change) in message.iter_mut().zip(&change) {
                *block ^= change;
            }
            escaped += u32::from(SMALL.code(key, mask, &message) == honest);
        }
        let rate = |keys: u128| keys as f64 / KEYS as f64;
        let (p, bound) = (rate(escapes(&change)), rate(BLOCKS as u128 + 1));
        let found = f64::from(escaped) / f64::from(TRIALS);
        let deviation = (p * (1.0 - p) / f64::from(TRIALS)).sqrt();
        println!("{what}: {found:.5} of messages escape, {p:.5} by formula, at most {bound:.5}");
        assert!((found - p).abs() < 5.0 * deviation, "{what}");
        assert!(p <= bound, "{what}");
    }
}
