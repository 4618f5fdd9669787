//! The steps as they are defined: block by block. Devices that do better with some of them do the others this way.
//!
//! No branch and no place in memory depends on a choice: where a node is changed whose number is secret, all are looked at.

use polyval::Polyval;
use polyval::universal_hash::UniversalHash;
use veil_prss::Prf;
use zeroize::Zeroizing;

use super::{HIDING, Lpn, Over, Silent, WEIGHT, vole};
use crate::command::Command;
use crate::cut::Columns;
use crate::garble::Fixed;
use crate::gf128::{ONE, dot, pack};
use crate::layout::Span;

/// Bytes of a block.
const BLOCK: usize = 16;

/// What a step knows beside the workspace.
pub(crate) struct Known<'a> {
    /// Δ; 0 where a step has none.
    pub(crate) offset: Zeroizing<u128>,
    /// The keys of the calls.
    pub(crate) keys: Vec<&'a Prf>,
}

impl Known<'_> {
    /// Block number `at` of call `k`.
    pub(crate) fn drawn(
        &self,
        (lane, chunk): (u16, u32),
        command: &Command,
        (k, at): (usize, u64),
    ) -> u128 {
        let call = command.calls[k];
        let block = self.keys[k].block(call.tag, lane, call.first + at, chunk);
        u128::from_le_bytes(block)
    }
}

/// All bits where both numbers are the same. Unknown to the compiler, which could branch on it otherwise.
pub(crate) fn mask_of(a: u64, b: u64) -> u128 {
    let differs = a ^ b;
    let same = 1 ^ ((differs | differs.wrapping_neg()) >> 63);
    u128::from(std::hint::black_box(same)).wrapping_neg()
}

/// All bits where a block's bit 0 is 1.
pub(super) fn chosen(block: u128) -> u128 {
    (std::hint::black_box(block) & 1).wrapping_neg()
}

/// The span of leaves that has tree `tree`, and the first of its columns.
fn tree_of(set: Lpn, [a, b]: [Span; 2], tree: u32) -> (Span, u32) {
    let at = tree * set.tree_columns();
    if at < a.count {
        (a, at)
    } else {
        (b, at - a.count)
    }
}

/// All leaves of a tree.
pub(super) fn leaves_of<W: Columns>(
    workspace: &W,
    set: Lpn,
    leaves: [Span; 2],
    tree: u32,
) -> Zeroizing<Vec<u128>> {
    let (span, k) = tree_of(set, leaves, tree);
    let from = u64::from(k) * u64::from(set.leaves() / set.tree_columns());
    run(workspace, span, from, (0, set.leaves() as usize))
}

/// Writes all leaves of a tree.
pub(super) fn put_leaves<W: Columns>(
    workspace: &mut W,
    set: Lpn,
    (leaves, tree): ([Span; 2], u32),
    blocks: &[u128],
) {
    let (span, k) = tree_of(set, leaves, tree);
    let columns = blocks.chunks(blocks.len() / set.tree_columns() as usize);
    for (k, blocks) in (k..).zip(columns) {
        put(workspace, span, k, blocks);
    }
}

/// Block `at` of an array that is spread over the columns of a span.
pub(super) fn block<W: Columns>(workspace: &W, span: Span, at: u64) -> u128 {
    let each = (workspace.get(span, 0).len() / BLOCK) as u64;
    let column = workspace.get(span, (at / each) as u32);
    let bytes = column[(at % each) as usize * BLOCK..].first_chunk();
    u128::from_le_bytes(*bytes.expect("the array has it"))
}

/// Run `p` of `count` blocks of such an array, from number `first` on.
pub(super) fn run<W: Columns>(
    workspace: &W,
    span: Span,
    first: u64,
    (p, count): (u32, usize),
) -> Zeroizing<Vec<u128>> {
    let mut at = first + u64::from(p) * count as u64;
    let mut blocks = Zeroizing::new(Vec::with_capacity(count));
    while blocks.len() < count {
        let each = (workspace.get(span, 0).len() / BLOCK) as u64;
        let column = workspace.get(span, (at / each) as u32);
        let (column, _) = column[(at % each) as usize * BLOCK..].as_chunks::<BLOCK>();
        let taken = column.len().min(count - blocks.len());
        blocks.extend(column[..taken].iter().map(|b| u128::from_le_bytes(*b)));
        at += taken as u64;
    }
    blocks
}

pub(super) fn put<W: Columns>(workspace: &mut W, span: Span, k: u32, blocks: &[u128]) {
    let column = workspace.get_mut(span, k).as_chunks_mut::<BLOCK>();
    for (bytes, block) in column.0.iter_mut().zip(blocks) {
        *bytes = block.to_le_bytes();
    }
}

/// Does a step, which was checked.
pub(crate) fn step<W: Columns>(
    workspace: &mut W,
    known: &Known<'_>,
    step: Silent,
    command: &Command,
) {
    let (src, dst) = (&command.src[..], &command.dst[..]);
    let offset = *known.offset;
    match step {
        Silent::Grow { set, .. } => {
            for tree in 0..set.trees {
                grow(workspace, known, (set, tree), command);
            }
        }
        Silent::Puncture { set } => {
            for tree in 0..set.trees {
                puncture(workspace, known, (set, tree), command);
            }
        }
        Silent::Pack => vole::pack_all(workspace, src[0], dst),
        Silent::Give { set } => {
            for tree in 0..set.trees {
                vole::give(workspace, known, (set, tree), command);
            }
        }
        Silent::Fill { set } => {
            for tree in 0..set.trees {
                vole::fill(workspace, known, (set, tree), command);
            }
        }
        Silent::Ask { set } if set.over == Over::Blocks => {
            let challenge = block(workspace, src[6], 0);
            let [own, other] = [src[4], src[5]].map(|base| vole::hides(workspace, set, base));
            let told = fold(workspace, challenge, [src[2], src[3]]) ^ other;
            let folded = fold(workspace, challenge, [src[0], src[1]]);
            put(workspace, dst[0], 0, &[told]);
            put(workspace, dst[1], 0, &[folded ^ own]);
        }
        Silent::Ask { set } => {
            let challenge = block(workspace, src[3], 0);
            let folded = fold(workspace, challenge, [src[0], src[1]]);
            let (own, choices) = hiding(workspace, set, src[2]);
            let told = weight(workspace, set, src[2], challenge) ^ choices;
            put(workspace, dst[0], 0, &[told]);
            put(workspace, dst[1], 0, &[folded ^ own]);
        }
        Silent::Answer { set, .. } => {
            let challenge = block(workspace, src[3], 0);
            let folded = fold(workspace, challenge, [src[0], src[1]]);
            let own = match set.over {
                Over::Bits => hiding(workspace, set, src[2]).0,
                Over::Blocks => vole::hides(workspace, set, src[2]),
            };
            let told = dot(block(workspace, src[4], 0), offset);
            put(workspace, dst[0], 0, &[folded ^ own ^ told]);
        }
        Silent::Rows { set } => {
            for tree in 0..set.trees {
                match set.over {
                    Over::Bits => rows(workspace, known, (set, tree), command),
                    Over::Blocks => vole::rows(workspace, known, (set, tree), command),
                }
            }
        }
        Silent::Choose { first } => choose(workspace, first, [src[0], src[1]], [dst[0], dst[1]]),
        Silent::Turn { first, .. } => {
            let count = workspace.frame().rows as usize;
            for p in 0..dst[0].count {
                let mut labels = run(workspace, src[0], first, (p, count));
                let bits = workspace.get(src[1], p);
                for (row, label) in labels.iter_mut().enumerate() {
                    *label ^= chosen((bits[row / 8] >> (row % 8)).into()) & offset;
                }
                put(workspace, dst[0], p, &labels);
            }
        }
        Silent::Take { first, at, count } => take(workspace, (src[0], first), (dst[0], at), count),
    }
}

/// Copies blocks of an array to another one, column by column of both.
fn take<W: Columns>(
    workspace: &mut W,
    (outputs, first): (Span, u64),
    (to, at): (Span, u64),
    count: u64,
) {
    let each = (workspace.get(to, 0).len() / BLOCK) as u64;
    let mut done = 0;
    while done < count {
        let (column, within) = ((at + done) / each, (at + done) % each);
        let some = (each - within).min(count - done);
        let blocks = run(workspace, outputs, first + done, (0, some as usize));
        let column = workspace.get_mut(to, column as u32);
        let (column, _) = column[within as usize * BLOCK..].as_chunks_mut::<BLOCK>();
        for (bytes, block) in column.iter_mut().zip(blocks.iter()) {
            *bytes = block.to_le_bytes();
        }
        done += some;
    }
}

/// The first level of a tree where levels are.
fn levels(set: Lpn, tree: u32) -> u64 {
    let secret = match set.over {
        Over::Bits => 1 << set.log_secret,
        Over::Blocks => 0,
    };
    secret + u64::from(tree) * u64::from(set.height)
}

/// The number of the leaf that the receiver lacks: the complement of its choices.
pub(crate) fn lacking<W: Columns>(workspace: &W, set: Lpn, base: Span, tree: u32) -> u64 {
    let choice = |k: u8| block(workspace, base, levels(set, tree) + u64::from(k)) as u64 & 1;
    (0..set.height).fold(0, |path, k| path | (1 - choice(k)) << k)
}

pub(super) fn frame<W: Columns>(workspace: &W) -> (u16, u32) {
    let frame = workspace.frame();
    (frame.lane, frame.chunk)
}

fn grow<W: Columns>(
    workspace: &mut W,
    known: &Known<'_>,
    (set, tree): (Lpn, u32),
    command: &Command,
) {
    let [a, b, sums] = [command.dst[0], command.dst[1], command.dst[2]];
    let drawn = |k| known.drawn(frame(workspace), command, (k, tree.into()));
    let (hash, root) = (Fixed::new(drawn(0)), drawn(1));
    let mut nodes = Zeroizing::new(vec![0u128; set.leaves() as usize]);
    (nodes[0], nodes[1]) = (root, root ^ *known.offset);
    let mut left = root;
    for level in 0..set.height {
        let m = 1 << level;
        if level > 0 {
            left = 0;
            for i in 0..m {
                let node = nodes[i];
                let child = hash.of(node);
                (nodes[i], nodes[i + m]) = (child, node ^ child);
                left ^= child;
            }
        }
        let key = block(
            workspace,
            command.src[0],
            levels(set, tree) + u64::from(level),
        );
        let number = tree * u32::from(set.height) + u32::from(level);
        put(workspace, sums, number, &[key ^ left]);
    }
    nodes.iter_mut().for_each(|node| *node &= !1);
    put_leaves(workspace, set, ([a, b], tree), &nodes);
}

fn puncture<W: Columns>(
    workspace: &mut W,
    known: &Known<'_>,
    (set, tree): (Lpn, u32),
    command: &Command,
) {
    let hash = Fixed::new(known.drawn(frame(workspace), command, (0, tree.into())));
    // The sum of the side off the path, and its number.
    let side = |workspace: &W, level: u8| {
        let own = block(
            workspace,
            command.src[0],
            levels(set, tree) + u64::from(level),
        );
        let number = tree * u32::from(set.height) + u32::from(level);
        let told = block(workspace, command.src[1], u64::from(number));
        (own ^ told, (own & 1) as u64)
    };
    let mut nodes = Zeroizing::new(vec![0u128; set.leaves() as usize]);
    // The correction of a node that is added when it is next read, and the node's number; the number of the node that lacks, which is zero.
    let (mut missing, mut at) = side(workspace, 0);
    let mut path = 1 - at;
    let mut sum = 0;
    for level in 1..set.height {
        let m = 1 << level;
        let mut sums = [0, 0];
        for i in 0..m {
            let node = nodes[i] ^ missing & mask_of(i as u64, at);
            let there = !mask_of(i as u64, path);
            let left = hash.of(node);
            let both = [left & there, (node ^ left) & there];
            [nodes[i], nodes[i + m]] = both;
            sums[0] ^= both[0];
            sums[1] ^= both[1];
        }
        let (of_side, right) = side(workspace, level);
        missing = of_side ^ sums[0] ^ chosen(right.into()) & (sums[0] ^ sums[1]);
        at = path + right * m as u64;
        path += (1 - right) * m as u64;
        sum = sums[0] ^ sums[1] ^ missing;
    }
    let last = sum | 1;
    for (i, node) in (0..).zip(nodes.iter_mut()) {
        *node = (*node ^ missing & mask_of(i, at)) & !1 ^ last & mask_of(i, path);
    }
    let leaves = [command.dst[0], command.dst[1]];
    put_leaves(workspace, set, (leaves, tree), &nodes);
}

/// Σ χ^(n−i) leaf i.
pub(super) fn fold<W: Columns>(workspace: &W, challenge: u128, leaves: [Span; 2]) -> u128 {
    let mut state = Polyval::new(&challenge.to_le_bytes().into());
    for span in leaves {
        for k in 0..span.count {
            state.update_padded(workspace.get(span, k));
        }
    }
    let folded: [u8; BLOCK] = state.finalize().into();
    u128::from_le_bytes(folded)
}

/// The sum of the correlations that hide, and their choices.
pub(crate) fn hiding<W: Columns>(workspace: &W, set: Lpn, base: Span) -> (u128, u128) {
    let first = levels(set, set.trees);
    let one = |i: u32| block(workspace, base, first + u64::from(i));
    let choices = (0..HIDING).fold(0, |bits, i| bits | (one(i) & 1) << i);
    (pack((0..HIDING).map(one)), choices)
}

/// φ: of each tree the power of the challenge that belongs to the leaf that the receiver lacks. Its number is the complement of the choices.
pub(crate) fn weight<W: Columns>(workspace: &W, set: Lpn, base: Span, challenge: u128) -> u128 {
    let mut powers = vec![challenge];
    for level in 0..usize::from(set.height) {
        powers.push(dot(powers[level], powers[level]));
    }
    let whole = powers[usize::from(set.height)];
    (0..set.trees).fold(0, |sum, tree| {
        let mut term = challenge;
        for (level, power) in (0..set.height).zip(&powers) {
            let at = levels(set, tree) + u64::from(level);
            let right = chosen(block(workspace, base, at));
            term = dot(term, ONE ^ right & (ONE ^ power));
        }
        dot(sum, whole) ^ term
    })
}

fn rows<W: Columns>(
    workspace: &mut W,
    known: &Known<'_>,
    (set, tree): (Lpn, u32),
    command: &Command,
) {
    let call = command.calls[0];
    let blocks = set.row_blocks() / u64::from(set.trees);
    let mut words = vec![0; blocks as usize * BLOCK];
    let (lane, chunk) = frame(workspace);
    let first = call.first + u64::from(tree) * blocks;
    known.keys[0].stream(call.tag, lane, first, chunk, &mut words);
    let (words, _) = words.as_chunks::<4>();
    let to = [command.dst[0], command.dst[1]];
    let mut leaves = leaves_of(workspace, set, to, tree);
    for (leaf, places) in leaves.iter_mut().zip(words.chunks(WEIGHT)) {
        for place in places {
            let place = u32::from_le_bytes(*place) & ((1 << set.log_secret) - 1);
            *leaf ^= block(workspace, command.src[0], place.into());
        }
    }
    put_leaves(workspace, set, (to, tree), &leaves);
}

fn choose<W: Columns>(
    workspace: &mut W,
    first: u64,
    [outputs, choices]: [Span; 2],
    [told, labels]: [Span; 2],
) {
    let count = workspace.frame().rows as usize;
    for p in 0..labels.count {
        let own = run(workspace, outputs, first, (p, count));
        let bits = Zeroizing::new(workspace.get(choices, p).to_vec());
        let to = workspace.get_mut(told, p);
        to.fill(0);
        for (row, label) in own.iter().enumerate() {
            let bit = (bits[row / 8] >> (row % 8) ^ *label as u8) & 1;
            to[row / 8] |= bit << (row % 8);
        }
        put(workspace, labels, p, &own);
    }
}
