//! The steps of rounds over blocks, as they are defined.

use zeroize::Zeroizing;

use super::steps::{Known, block, frame, lacking, leaves_of, mask_of, put, put_leaves, run};
use super::{HIDING, Lpn, WEIGHT};
use crate::command::Command;
use crate::cut::Columns;
use crate::garble::Fixed;
use crate::gf128::{dot, pack};
use crate::layout::Span;

/// Entries of correlations: their sums, and, at the receiver, their choices.
pub(super) fn pack_all<W: Columns>(workspace: &mut W, from: Span, dst: &[Span]) {
    for k in 0..dst[0].count {
        let taken = run(workspace, from, 0, (k, HIDING as usize));
        put(workspace, dst[0], k, &[pack(taken.iter().copied())]);
        if let Some(to) = dst.get(1) {
            let choices = (0..HIDING).zip(taken.iter());
            let choices = choices.fold(0, |bits, (i, one)| bits | (one & 1) << i);
            put(workspace, *to, k, &[choices]);
        }
    }
}

/// The entry of a base that belongs to the noise of a tree.
fn noise<W: Columns>(workspace: &W, (set, tree): (Lpn, u32), base: Span) -> u128 {
    block(workspace, base, (1 << set.log_secret) + u64::from(tree))
}

/// The entry of a base that hides what the check tells.
pub(crate) fn hides<W: Columns>(workspace: &W, set: Lpn, base: Span) -> u128 {
    noise(workspace, (set, set.trees), base)
}

/// The hashes of leaves from the start point of their tree.
fn hashed<W: Columns>(
    workspace: &W,
    known: &Known<'_>,
    (set, tree): (Lpn, u32),
    command: &Command,
) -> Zeroizing<Vec<u128>> {
    let hash = Fixed::new(known.drawn(frame(workspace), command, (0, tree.into())));
    let leaves = [command.dst[0], command.dst[1]];
    let mut leaves = leaves_of(workspace, set, leaves, tree);
    leaves.iter_mut().for_each(|leaf| *leaf = hash.of(*leaf));
    leaves
}

pub(super) fn give<W: Columns>(
    workspace: &mut W,
    known: &Known<'_>,
    (set, tree): (Lpn, u32),
    command: &Command,
) {
    let leaves = hashed(workspace, known, (set, tree), command);
    let key = noise(workspace, (set, tree), command.src[0]);
    let told = leaves.iter().fold(key, |sum, leaf| sum ^ leaf);
    put(workspace, command.dst[2], tree, &[told]);
    let to = [command.dst[0], command.dst[1]];
    put_leaves(workspace, set, (to, tree), &leaves);
}

pub(super) fn fill<W: Columns>(
    workspace: &mut W,
    known: &Known<'_>,
    (set, tree): (Lpn, u32),
    command: &Command,
) {
    let (src, dst) = (&command.src[..], &command.dst[..]);
    let path = lacking(workspace, set, src[0], tree);
    let mut leaves = hashed(workspace, known, (set, tree), command);
    let mut last = block(workspace, src[1], tree.into());
    let [own, other] = [src[2], src[3]].map(|base| noise(workspace, (set, tree), base));
    last ^= own;
    for (i, leaf) in (0..).zip(leaves.iter_mut()) {
        *leaf &= !mask_of(i, path);
        last ^= *leaf;
    }
    let mut of_noise = Zeroizing::new(vec![0; leaves.len()]);
    for (i, (leaf, noise)) in (0..).zip(leaves.iter_mut().zip(of_noise.iter_mut())) {
        let lacks = mask_of(i, path);
        *leaf |= last & lacks;
        *noise = other & lacks;
    }
    put_leaves(workspace, set, ([dst[0], dst[1]], tree), &leaves);
    put_leaves(workspace, set, ([dst[2], dst[3]], tree), &of_noise);
}

pub(super) fn rows<W: Columns>(
    workspace: &mut W,
    known: &Known<'_>,
    (set, tree): (Lpn, u32),
    command: &Command,
) {
    let call = command.calls[0];
    let blocks = set.row_blocks() / u64::from(set.trees);
    let mut terms = vec![0; 16 * blocks as usize];
    let (lane, chunk) = frame(workspace);
    let first = call.first + u64::from(tree) * blocks;
    known.keys[0].stream(call.tag, lane, first, chunk, &mut terms);
    let (terms, _) = terms.as_chunks::<16>();
    let places = (1u128 << set.log_secret) - 1;
    for (base, to) in command.src.iter().zip(command.dst.chunks(2)) {
        let to = [to[0], to[1]];
        let mut leaves = leaves_of(workspace, set, to, tree);
        for (leaf, terms) in leaves.iter_mut().zip(terms.chunks(WEIGHT)) {
            for term in terms {
                let term = u128::from_le_bytes(*term);
                let of_secret = block(workspace, *base, (term & places) as u64);
                *leaf ^= dot(term & !places, of_secret);
            }
        }
        put_leaves(workspace, set, (to, tree), &leaves);
    }
}
