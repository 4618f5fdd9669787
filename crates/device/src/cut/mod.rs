//! Cut-and-choose: many garbled circuits of one function, of which some are opened and checked and the others are evaluated.
//!
//! A workspace has a row for each circuit. Values common to all circuits, inputs for instance, are columns that all rows share. Row r stands for a
//! *circuit* with a number, an offset Δ of its own and a start point S of its own, each a column of [labels](crate::ColumnType::Labels). Of 2 R
//! circuits a workspace with R rows holds a *half* at a time: values kept of all have twice the columns, first of circuits 0 to R - 1, then of the
//! others.
//!
//! Garbling is by half-gates ([`garble`](crate::garble)), with the row's Δ and S, and product p of a command has the gate number (first +
//! p) · 2^16 in every row: S separates circuits. So a circuit is the same in whichever row and with whichever others it is garbled.
//!
//! # Hashes
//!
//! A *digest* of a row is SHA-256 of a block of 64 bytes that says where it belongs, [`head`], and of the row's labels of all sources in
//! order, 16 bytes each; of bits, a source has a byte for each column. It is two labels, the first 16 bytes and the last.
//!
//! The *mark* of a label X on wire w of circuit c is [`mark`]: SHA-256 of 52 bytes, the first 16 of the session, LE16 of the kind, LE16 of the
//! epoch, LE16 of the lane, two zeros, LE32 of the chunk, LE32 of w, LE32 of c, and X. It tells nothing of a label that is not known otherwise, and
//! binds to it. The marks of a wire are four labels: both marks, two labels each.
//!
//! # Matrices
//!
//! A matrix follows from a key of 16 bytes: bit j of row i is bit j mod 128 of AES-128 under the key of LE64(i) ‖ LE64(⌊j / 128⌋), bit 0
//! being bit 0 of byte 0 ([`matrix_row`]). A party that knows the key before inputs are fixed could look for two inputs that it does not
//! tell apart.

mod check;
mod plain;

use aes::Aes128;
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use sha2::{Digest, Sha256};
use veil_session::{Frame, SessionId};

pub(crate) use check::{check, tables};
pub(crate) use plain::{Columns, step};

/// Labels of a digest, and of one mark.
pub const DIGEST: u32 = 2;

/// Labels of the marks of a wire.
pub const MARKS: u32 = 4;

/// In which order the two marks of a wire are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum By {
    /// That of the label with colour 0 first: the order tells nothing of values.
    Colour,
    /// The mark of the label for 0 first: a holder of a label learns its value.
    Value,
}

/// A step of cut-and-choose.
///
/// Labels are [`ColumnType::Labels`](crate::ColumnType::Labels), bits that all rows share [`ColumnType::One`](crate::ColumnType::One). An offset, a
/// start point, a circuit's number, a seed are one column of labels.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Cut {
    /// Everything of a circuit that depends on no gate. src: seeds. dst: offsets, start points, labels. With B_k = AES-128 under the seed of
    /// LE128(k), the offset is B_0 with bit 0 set, the start point B_1, and label k of the destination is B_(2 + k).
    Stretch,
    /// dst 0 = the numbers of circuits: first + r in row r.
    Number {
        /// Of row 0.
        first: u32,
    },
    /// dst 0, two columns, = the digests of the sources.
    Digest {
        /// The use of the digest: different for each use, and from the uses of [`Op::Hash`](crate::Op::Hash).
        label: u16,
    },
    /// dst 0, four columns for each of src 0, = marks of both labels of wires. src: labels for 0, offsets, numbers. Wires are numbered as the
    /// columns of src 0.
    Marks {
        /// Kind of mark.
        label: u16,
        /// Order of the two.
        by: By,
    },
    /// Compares marks: each label of src 0 has one of the two of its wire in src 1, in every row, or the batch ends with
    /// [`Outcome::Mismatch`](crate::Outcome::Mismatch). src: labels, marks, numbers.
    Member {
        /// Kind of mark.
        label: u16,
    },
    /// dst 0, bits that all rows share, = whether more than half of all rows vote for 1: rows whose label has the second of the marks of
    /// its wire. src: labels, marks by value, numbers.
    Majority {
        /// Kind of mark.
        label: u16,
    },
    /// dst 0 = src 0 ⊕ M · src 1: labels, or bits that all rows share. M has a row for each column of dst 0 and a column for each of src 1.
    Matrix {
        /// The key of M; else it is src 2, one [`ColumnType::Label`](crate::ColumnType::Label).
        key: Option<[u8; 16]>,
    },
    /// dst 0 = the active labels. src: labels for 0, offsets, a bit for each column.
    Active,
    /// dst 0, rows of bits, = the bits of src 0, which all rows share, one after the other: bit j is row j mod R of column ⌊j / R⌋. The rest
    /// of the rows becomes zero.
    Spread,
    /// dst 0 = both labels of wires, each under its key. src: labels for 0, offsets, numbers, keys for 0, keys for 1. The keys of wire j are
    /// in row j mod R of column ⌊j / R⌋; label b of wire j is column 2 j + b, XOR AES-128 under key b of LE128 of the circuit's number.
    Mask,
    /// dst 0 = labels out of the result of [`Cut::Mask`]: of each wire the one that a bit chooses. src: both labels masked, keys of the
    /// chosen ones, as there; bits that all rows share; numbers.
    Unmask,
    /// dst 0, `Bytes(8 R)`, = an order of all circuits that follows from src 0, a digest of 32 bytes ([`order`]). The first half of them
    /// is opened, the others are evaluated.
    Shuffle,
    /// dst 0 = what the chosen circuits have of src 0, which has twice the columns: row r is circuit `half · R + r` of the order src 1. Labels, or
    /// rows of bits.
    Pick {
        /// 0: opened circuits, 1: evaluated ones.
        half: u8,
    },
    /// Compares the rows of each column of src 0, rows of bits: if they are not all the same the batch ends with
    /// [`Outcome::Mismatch`](crate::Outcome::Mismatch).
    Same,
    /// Runs the program over labels as [`Op::Garble`](crate::Op::Garble) does, by half-gates. src: offsets, start points. dst: tables.
    Garble {
        /// Number of product 0.
        first: u64,
    },
    /// The same as the evaluator. src: start points, tables.
    Evaluate {
        /// Number of product 0.
        first: u64,
    },
}

/// The block that a digest begins with: the session, LE16 of the label, of the epoch and of the lane, LE32 of the chunk and of the rows, and zeros.
pub fn head(session: &SessionId, label: u16, frame: Frame) -> [u8; 64] {
    let mut head = [0; 64];
    head[..32].copy_from_slice(&session.0);
    head[32..34].copy_from_slice(&label.to_le_bytes());
    head[34..36].copy_from_slice(&frame.epoch.to_le_bytes());
    head[36..38].copy_from_slice(&frame.lane.to_le_bytes());
    head[38..42].copy_from_slice(&frame.chunk.to_le_bytes());
    head[42..46].copy_from_slice(&frame.rows.to_le_bytes());
    head
}

/// Bytes that a mark is of.
pub const MARKED: usize = 52;

/// The preimage of a mark, without the label, its last 16 bytes.
pub fn marked(
    (session, frame): (&SessionId, Frame),
    label: u16,
    wire: u32,
    circuit: u32,
) -> [u8; MARKED] {
    let mut bytes = [0; MARKED];
    bytes[..16].copy_from_slice(&session.0[..16]);
    bytes[16..18].copy_from_slice(&label.to_le_bytes());
    bytes[18..20].copy_from_slice(&frame.epoch.to_le_bytes());
    bytes[20..22].copy_from_slice(&frame.lane.to_le_bytes());
    bytes[24..28].copy_from_slice(&frame.chunk.to_le_bytes());
    bytes[28..32].copy_from_slice(&wire.to_le_bytes());
    bytes[32..36].copy_from_slice(&circuit.to_le_bytes());
    bytes
}

/// The mark of a label of kind `label`, on a wire of a circuit.
pub fn mark(
    at: (&SessionId, Frame),
    label: u16,
    (wire, circuit): (u32, u32),
    x: [u8; 16],
) -> [u8; 32] {
    let mut bytes = marked(at, label, wire, circuit);
    bytes[MARKED - 16..].copy_from_slice(&x);
    Sha256::digest(bytes).into()
}

/// AES-128 under `key`.
pub(crate) fn cipher(key: [u8; 16]) -> Aes128 {
    Aes128::new(&key.into())
}

/// AES-128 of LE128(number).
pub(crate) fn block(cipher: &Aes128, number: u128) -> [u8; 16] {
    let mut block = number.to_le_bytes().into();
    cipher.encrypt_block(&mut block);
    block.into()
}

/// The first `count` bits of row `row` of the matrix of a key, 128 in each number.
pub fn matrix_row(key: [u8; 16], row: u32, count: u32) -> Vec<u128> {
    let cipher = cipher(key);
    let word = |k: u32| u128::from_le_bytes(block(&cipher, u128::from(k) << 64 | u128::from(row)));
    let mut words: Vec<u128> = (0..count.div_ceil(128)).map(word).collect();
    if let (Some(last), rest @ 1..) = (words.last_mut(), count % 128) {
        *last &= (1 << rest) - 1;
    }
    words
}

/// An order of `circuits` circuits that follows from a digest: position k from the first on is exchanged with k + ⌊x (n - k) / 2^64⌋, where x
/// is the low half of AES-128 under the first 16 bytes of the digest, of LE128(k) (Fisher and Yates; no order is more than n 2^-64 likelier than
/// another).
pub fn order(digest: &[u8; 32], circuits: u32) -> Vec<u32> {
    let (key, _) = digest
        .split_first_chunk()
        .expect("32 bytes are more than 16");
    let cipher = cipher(*key);
    let mut order: Vec<u32> = (0..circuits).collect();
    for k in 0..circuits {
        let x = u128::from_le_bytes(block(&cipher, k.into())) & u128::from(u64::MAX);
        let by = (x * u128::from(circuits - k)) >> 64;
        order.swap(k as usize, k as usize + by as usize);
    }
    order
}
