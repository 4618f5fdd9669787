//! The steps of cut-and-choose that need no program, as they are defined: column by column, row by row. Devices that do better with some of them
//! do the others this way.

use aes::cipher::BlockCipherEncrypt;
use sha2::{Digest, Sha256};
use subtle::{Choice, ConstantTimeEq};
use veil_session::{Frame, SessionId};
use zeroize::Zeroizing;

use super::{By, Cut, MARKS, block, cipher, head, mark, matrix_row, order};
use crate::command::Command;
use crate::layout::{ColumnType, Span};

/// A workspace, by packed columns.
pub(crate) trait Columns {
    fn frame(&self) -> Frame;
    fn kind(&self, region: u16) -> ColumnType;
    fn get(&self, span: Span, k: u32) -> &[u8];
    fn get_mut(&mut self, span: Span, k: u32) -> &mut [u8];
}

/// A label of row `row`.
fn label(workspace: &impl Columns, span: Span, k: u32, row: u32) -> [u8; 16] {
    let bytes = &workspace.get(span, k)[16 * row as usize..][..16];
    bytes.try_into().expect("16 bytes")
}

fn put(workspace: &mut impl Columns, span: Span, k: u32, row: u32, label: [u8; 16]) {
    workspace.get_mut(span, k)[16 * row as usize..][..16].copy_from_slice(&label);
}

fn xor(a: [u8; 16], b: [u8; 16]) -> [u8; 16] {
    (u128::from_ne_bytes(a) ^ u128::from_ne_bytes(b)).to_ne_bytes()
}

/// A label where a bit is 1, else zeros.
fn times(bit: u8, x: [u8; 16]) -> [u8; 16] {
    let mask = u128::from(std::hint::black_box(bit & 1)).wrapping_neg();
    (u128::from_ne_bytes(x) & mask).to_ne_bytes()
}

/// The number of a circuit, as marks have it.
fn number(workspace: &impl Columns, numbers: Span, row: u32) -> u32 {
    u128::from_le_bytes(label(workspace, numbers, 0, row)) as u32
}

/// Does a step, which was checked, and says what a comparison found.
///
/// # Panics
/// At steps with a program.
pub(crate) fn step(
    workspace: &mut impl Columns,
    session: &SessionId,
    step: Cut,
    command: &Command,
) -> bool {
    let (src, dst) = (&command.src[..], &command.dst[..]);
    let frame = workspace.frame();
    let at = (session, frame);
    match step {
        Cut::Stretch => stretch(workspace, src[0], dst),
        Cut::Number { first } => {
            for row in 0..frame.rows {
                put(
                    workspace,
                    dst[0],
                    0,
                    row,
                    u128::from(first + row).to_le_bytes(),
                );
            }
        }
        Cut::Digest { label } => digest(workspace, &head(session, label, frame), src, dst[0]),
        Cut::Marks { label, by } => marks(workspace, at, (label, by), src, dst[0]),
        Cut::Member { label } => {
            let mut all = Choice::from(1);
            votes(workspace, at, label, src, |_, [zero, one]| {
                all &= zero | one;
            });
            return all.into();
        }
        Cut::Majority { label } => {
            let mut ones = vec![0u32; src[0].count as usize];
            votes(workspace, at, label, src, |wire, [_, one]| {
                ones[wire as usize] += u32::from(one.unwrap_u8());
            });
            for (wire, ones) in (0..).zip(ones) {
                workspace.get_mut(dst[0], wire)[0] = u8::from(2 * ones > frame.rows);
            }
        }
        Cut::Matrix { key } => matrix(workspace, key, src, dst[0]),
        Cut::Active => {
            let offsets = labels(workspace, src[1], 0);
            for k in 0..dst[0].count {
                let bit = workspace.get(src[2], k)[0];
                let mut active = labels(workspace, src[0], k);
                for (x, offset) in active.iter_mut().zip(offsets.iter()) {
                    *x = xor(*x, times(bit, *offset));
                }
                put_all(workspace, dst[0], k, &active);
            }
        }
        Cut::Spread => {
            for k in 0..dst[0].count {
                workspace.get_mut(dst[0], k).fill(0);
            }
            for j in 0..src[0].count {
                let bit = workspace.get(src[0], j)[0] & 1;
                let (k, row) = (j / frame.rows, j % frame.rows);
                workspace.get_mut(dst[0], k)[row as usize / 8] |= bit << (row % 8);
            }
        }
        Cut::Mask => mask(workspace, src, dst[0]),
        Cut::Unmask => unmask(workspace, src, dst[0]),
        Cut::Shuffle => {
            let digest = workspace.get(src[0], 0).try_into().expect("32 bytes");
            let order = order(&digest, 2 * frame.rows);
            for (to, circuit) in workspace.get_mut(dst[0], 0).chunks_mut(4).zip(order) {
                to.copy_from_slice(&circuit.to_le_bytes());
            }
        }
        Cut::Pick { half } => pick(workspace, half, src, dst[0]),
        Cut::Same => {
            let mut same = Choice::from(1);
            for k in 0..src[0].count {
                let bits = workspace.get(src[0], k);
                let bit = |row: u32| bits[row as usize / 8] >> (row % 8) & 1;
                for row in 1..frame.rows {
                    same &= bit(row).ct_eq(&bit(0));
                }
            }
            return same.into();
        }
        Cut::Garble { .. } | Cut::Evaluate { .. } => {
            unreachable!("programs over labels are run by the device")
        }
    }
    true
}

fn stretch(workspace: &mut impl Columns, seeds: Span, dst: &[Span]) {
    for row in 0..workspace.frame().rows {
        let cipher = cipher(label(workspace, seeds, 0, row));
        let mut offset = block(&cipher, 0);
        offset[0] |= 1;
        put(workspace, dst[0], 0, row, offset);
        put(workspace, dst[1], 0, row, block(&cipher, 1));
        for k in 0..dst[2].count {
            put(workspace, dst[2], k, row, block(&cipher, 2 + u128::from(k)));
        }
    }
}

fn digest(workspace: &mut impl Columns, head: &[u8; 64], src: &[Span], to: Span) {
    for row in 0..workspace.frame().rows {
        let mut hash = Sha256::new();
        hash.update(head);
        for span in src {
            for k in 0..span.count {
                match workspace.kind(span.region) {
                    ColumnType::Labels => hash.update(label(workspace, *span, k, row)),
                    _ => hash.update([workspace.get(*span, k)[row as usize / 8] >> (row % 8) & 1]),
                }
            }
        }
        put_digest(workspace, to, 0, row, hash.finalize().into());
    }
}

/// Two labels from number `k` on.
fn put_digest(workspace: &mut impl Columns, to: Span, k: u32, row: u32, digest: [u8; 32]) {
    for (k, half) in (k..).zip(digest.as_chunks().0) {
        put(workspace, to, k, row, *half);
    }
}

fn marks(
    workspace: &mut impl Columns,
    at: (&SessionId, Frame),
    (kind, by): (u16, By),
    src: &[Span],
    to: Span,
) {
    for wire in 0..src[0].count {
        for row in 0..at.1.rows {
            let (zero, offset) = (
                label(workspace, src[0], wire, row),
                label(workspace, src[1], 0, row),
            );
            let swap = match by {
                By::Colour => zero[0] & 1,
                By::Value => 0,
            };
            let first = xor(zero, times(swap, offset));
            let place = (wire, number(workspace, src[2], row));
            for (k, x) in [first, xor(first, offset)].into_iter().enumerate() {
                let column = MARKS * wire + 2 * k as u32;
                put_digest(workspace, to, column, row, mark(at, kind, place, x));
            }
        }
    }
}

/// Tells of each label of src 0 whether it has the first and the second of the marks in src 1.
fn votes(
    workspace: &impl Columns,
    at: (&SessionId, Frame),
    kind: u16,
    src: &[Span],
    mut tell: impl FnMut(u32, [Choice; 2]),
) {
    for wire in 0..src[0].count {
        for row in 0..at.1.rows {
            let x = label(workspace, src[0], wire, row);
            let own = mark(at, kind, (wire, number(workspace, src[2], row)), x);
            let equal = [0, 2].map(|k| {
                let halves = own.as_chunks::<16>().0;
                let half = |h: u32| label(workspace, src[1], MARKS * wire + k + h, row);
                half(0).ct_eq(&halves[0]) & half(1).ct_eq(&halves[1])
            });
            tell(wire, equal);
        }
    }
}

fn matrix(workspace: &mut impl Columns, key: Option<[u8; 16]>, src: &[Span], to: Span) {
    let key = key.unwrap_or_else(|| workspace.get(src[2], 0).try_into().expect("16 bytes"));
    for i in 0..to.count {
        let mut sum = Zeroizing::new(workspace.get(src[0], i).to_vec());
        let bits = matrix_row(key, i, src[1].count);
        for j in 0..src[1].count {
            if bits[j as usize / 128] >> (j % 128) & 1 == 1 {
                let add = workspace.get(src[1], j);
                sum.iter_mut().zip(add).for_each(|(a, b)| *a ^= b);
            }
        }
        workspace.get_mut(to, i).copy_from_slice(&sum);
    }
}

/// AES under `key` of the numbers of circuits, added to labels.
fn add_pads(key: [u8; 16], numbers: &[[u8; 16]], labels: &mut [[u8; 16]]) {
    let cipher = cipher(key);
    let mut pads: Vec<_> = numbers.iter().map(|number| (*number).into()).collect();
    cipher.encrypt_blocks(&mut pads);
    for (label, pad) in labels.iter_mut().zip(pads) {
        *label = xor(*label, pad.into());
    }
}

/// The labels of a column.
fn labels(workspace: &impl Columns, span: Span, k: u32) -> Zeroizing<Vec<[u8; 16]>> {
    Zeroizing::new(workspace.get(span, k).as_chunks().0.to_vec())
}

fn put_all(workspace: &mut impl Columns, span: Span, k: u32, labels: &[[u8; 16]]) {
    workspace
        .get_mut(span, k)
        .copy_from_slice(labels.as_flattened());
}

fn mask(workspace: &mut impl Columns, src: &[Span], to: Span) {
    let rows = workspace.frame().rows;
    let (offsets, numbers) = (labels(workspace, src[1], 0), labels(workspace, src[2], 0));
    for j in 0..src[0].count {
        let mut x = labels(workspace, src[0], j);
        for b in 0..2 {
            let mut masked = x.clone();
            let key = label(workspace, src[3 + b as usize], j / rows, j % rows);
            add_pads(key, &numbers, &mut masked);
            put_all(workspace, to, 2 * j + b, &masked);
            for (x, offset) in x.iter_mut().zip(offsets.iter()) {
                *x = xor(*x, *offset);
            }
        }
    }
}

fn unmask(workspace: &mut impl Columns, src: &[Span], to: Span) {
    let rows = workspace.frame().rows;
    let numbers = labels(workspace, src[3], 0);
    for j in 0..to.count {
        let bit = workspace.get(src[2], j)[0];
        let mut chosen = labels(workspace, src[0], 2 * j);
        let one = workspace.get(src[0], 2 * j + 1).as_chunks().0;
        for (zero, one) in chosen.iter_mut().zip(one) {
            *zero = xor(*zero, times(bit, xor(*zero, *one)));
        }
        let key = label(workspace, src[1], j / rows, j % rows);
        add_pads(key, &numbers, &mut chosen);
        put_all(workspace, to, j, &chosen);
    }
}

fn pick(workspace: &mut impl Columns, half: u8, src: &[Span], to: Span) {
    let rows = workspace.frame().rows;
    let order = workspace.get(src[1], 0).as_chunks().0;
    let half = usize::from(half) * rows as usize;
    let order: Vec<u32> = order[half..]
        .iter()
        .map(|c| u32::from_le_bytes(*c))
        .collect();
    // Public, but bytes of a region are whatever was written there.
    let order: Vec<(u32, u32)> = (order.iter().take(rows as usize))
        .map(|circuit| circuit % (2 * rows))
        .map(|circuit| (circuit / rows, circuit % rows))
        .collect();
    let whole = workspace.kind(to.region) == ColumnType::Labels;
    for k in 0..to.count {
        if whole {
            let halves =
                [0, 1].map(|half| workspace.get(src[0], half * to.count + k).as_chunks().0);
            let from = |(half, row): &(u32, u32)| halves[*half as usize][*row as usize];
            let picked = Zeroizing::new(order.iter().map(from).collect::<Vec<[u8; 16]>>());
            put_all(workspace, to, k, &picked);
            continue;
        }
        workspace.get_mut(to, k).fill(0);
        for (row, (half, from)) in (0..rows).zip(&order) {
            let from_byte = workspace.get(src[0], half * to.count + k)[*from as usize / 8];
            let bit = from_byte >> (from % 8) & 1;
            workspace.get_mut(to, k)[row as usize / 8] |= bit << (row % 8);
        }
    }
}
