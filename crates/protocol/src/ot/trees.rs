//! Trees of keys of which the sender lacks one leaf each.
//!
//! The receiver draws the root of each tree; the children of a node s are PRF_s(0) and PRF_s(1) (Goldreich, Goldwasser, Micali, "How to
//! Construct Random Functions", 1986). Of each level it sends the sum of all left children and the sum of all right ones, each
//! under a key of a base transfer. The sender knows one of both keys: that of the side off the path to the leaf that it lacks; so
//! it has all nodes of the level but the one on the path.
//!
//! A receiver that sends wrong sums would learn from what happens next which leaf the sender lacks. So each leaf has a check value of 256
//! bits, and the receiver sends their sum in each tree and a digest of all of them (Roy, "SoftSpokenOT", 2022, section 5): the sender finds
//! the value of the leaf that it lacks by the sum, and compares digests. A Byzantine receiver is caught unless it has guessed the bits of
//! the path that its deviation depends on.
//!
//! The sender counts nodes by the XOR with the path: its node 0 of a level is the one that it does not know. So nothing that it reads
//! or writes depends on the path but the contents.

use sha2::digest::Update;
use sha2::{Digest, Sha256};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};
use veil_device::Trees;
use veil_prss::{DomainTag, Prf};
use veil_session::Secret;
use zeroize::Zeroizing;

use super::base::TRANSFERS;
use super::hash::{For, SEAL, open, seal, start};
use super::{Cheat, Ends, Leaf};

/// A node of a tree, or a sum of nodes.
type Node = [u8; 16];

/// The check value of a leaf, or a sum of them.
type Value = [u8; VALUE];

const VALUE: usize = 32;
const NODE: usize = 16;

/// Bytes of the sums of all levels.
const SUMS: usize = TRANSFERS * 2 * NODE;

/// Bytes of the receiver's message: sums of levels, sums of check values, the digest of all check values, and the seal.
pub const fn message_length(trees: Trees) -> usize {
    SUMS + trees.count() as usize * VALUE + 32 + SEAL
}

/// The receiver's message and all leaves, from the root of each tree and both keys of each base transfer. Transfer k i + l is for level l
/// of tree i, from the root on.
///
/// # Panics
/// If there are not as many roots as trees, or not 128 pairs of keys.
pub fn grow(
    ends: &Ends,
    trees: Trees,
    roots: &[Secret],
    keys: &[[Secret; 2]],
) -> (Vec<u8>, Vec<Leaf>) {
    assert_eq!(
        (roots.len(), keys.len()),
        (trees.count() as usize, TRANSFERS)
    );
    let mut message = Vec::with_capacity(message_length(trees));
    let mut leaves =
        Vec::with_capacity(TRANSFERS / trees.bits() as usize * trees.leaves() as usize);
    let mut values = Zeroizing::new(Vec::with_capacity(leaves.capacity()));
    let (mut checks, levels) = (Vec::new(), trees.bits() as usize);
    for (tree, (root, keys)) in roots.iter().zip(keys.chunks(levels)).enumerate() {
        let mut nodes = Zeroizing::new(vec![*root.expose()]);
        for (level, keys) in keys.iter().enumerate() {
            nodes = children(&nodes, tree, level);
            for (side, key) in keys.iter().enumerate() {
                let sum = Zeroizing::new(sum(nodes.iter().skip(side).step_by(2)));
                message.extend_from_slice(&add(&sum, key.expose()));
            }
        }
        let of_tree = Zeroizing::new(nodes.iter().map(value).collect::<Vec<_>>());
        checks.extend_from_slice(&sum(of_tree.iter()));
        values.extend_from_slice(&of_tree);
        leaves.extend(
            (0..)
                .zip(nodes.iter())
                .map(|(x, s)| (trees.index(tree as u32, x), Secret::new(*s))),
        );
    }
    message.extend_from_slice(&checks);
    message.extend_from_slice(&digest(ends, trees, &values));
    message.extend_from_slice(&seal(ends, For::Trees, &message));
    (message, leaves)
}

/// The choices of the base transfers for an offset: the complement of its bits, for each tree from the most significant bit on.
pub fn choices(trees: Trees, offset: &Secret) -> Zeroizing<[u8; TRANSFERS]> {
    let mut choices = Zeroizing::new([0; TRANSFERS]);
    for (transfer, choice) in choices.iter_mut().enumerate() {
        *choice = 1 - bit(trees, offset, transfer);
    }
    choices
}

/// All leaves except the one of each tree that belongs to the offset, from the receiver's message and the chosen key of each base transfer.
/// Leaf y of a tree is the receiver's leaf y XOR the tree's bits of the offset; there is no leaf 0.
///
/// # Errors
/// [`Cheat::Length`] and [`Cheat::Stranger`] if this is no message with trees of these ends and this session, [`Cheat::Trees`] if
/// the leaves do not hash to the receiver's digest.
pub fn puncture(
    ends: &Ends,
    trees: Trees,
    offset: &Secret,
    keys: &[Secret],
    message: &[u8],
) -> Result<Vec<Leaf>, Cheat> {
    let body = open(ends, For::Trees, message_length(trees), message)?;
    let (sums, body) = body.split_at(SUMS);
    let (checks, told) = body.split_at(body.len() - 32);
    let (checks, _) = checks.as_chunks::<VALUE>();
    let levels = trees.bits() as usize;
    let mut leaves = Vec::with_capacity(trees.count() as usize * (trees.leaves() as usize - 1));
    let mut values = Zeroizing::new(Vec::with_capacity(leaves.capacity() + checks.len()));
    for (tree, check) in checks.iter().enumerate() {
        // Node 0 is unknown: zero, and what follows from it is wrong until it is replaced.
        let mut nodes = Zeroizing::new(vec![[0; NODE]]);
        for level in 0..levels {
            let transfer = tree * levels + level;
            let path = Choice::from(bit(trees, offset, transfer));
            let pair = &sums.as_chunks::<NODE>().0[2 * transfer..2 * transfer + 2];
            // Off the path is right where the path goes left.
            let off = Node::conditional_select(&pair[1], &pair[0], path);
            let off = Zeroizing::new(add(&off, keys[transfer].expose()));
            nodes = children(&nodes, tree, level);
            for pair in nodes.as_chunks_mut::<2>().0 {
                let [left, right] = pair;
                Node::conditional_swap(left, right, path);
            }
            nodes[0] = [0; NODE];
            nodes[1] = [0; NODE];
            let others = Zeroizing::new(sum(nodes.iter().skip(1).step_by(2)));
            nodes[1] = add(&off, &others);
        }
        let mut of_tree = Zeroizing::new(nodes.iter().map(value).collect::<Vec<_>>());
        of_tree[0] = add(check, &sum(of_tree.iter().skip(1)));
        for level in 0..levels {
            let path = Choice::from(bit(trees, offset, tree * levels + level));
            let half = of_tree.len() >> (level + 1);
            for two in of_tree.chunks_mut(2 * half) {
                let (low, high) = two.split_at_mut(half);
                low.iter_mut()
                    .zip(high)
                    .for_each(|(a, b)| Value::conditional_swap(a, b, path));
            }
        }
        values.extend_from_slice(&of_tree);
        let known = (0..).zip(nodes.iter()).skip(1);
        leaves.extend(known.map(|(y, s)| (trees.index(tree as u32, y), Secret::new(*s))));
    }
    if !bool::from(digest(ends, trees, &values).ct_eq(told)) {
        return Err(Cheat::Trees);
    }
    Ok(leaves)
}

/// The bit of the offset that a base transfer is for: bit p of a tree's bits is bit k i + p of the offset, and level l of the tree decides
/// bit k − 1 − l.
fn bit(trees: Trees, offset: &Secret, transfer: usize) -> u8 {
    let levels = trees.bits() as usize;
    let place = transfer - transfer % levels + levels - 1 - transfer % levels;
    offset.expose()[place / 8] >> (place % 8) & 1
}

/// The next level: left and right child of each node.
fn children(nodes: &[Node], tree: usize, level: usize) -> Zeroizing<Vec<Node>> {
    let mut next = Zeroizing::new(Vec::with_capacity(2 * nodes.len()));
    for node in nodes {
        let prf = Prf::new(&Secret::new(*node));
        next.extend(
            [0, 1].map(|side| prf.block(DomainTag::OT_NODE, tree as u16, side, level as u32)),
        );
    }
    next
}

/// The check value of a leaf.
fn value(leaf: &Node) -> Value {
    let mut value = [0; VALUE];
    Prf::new(&Secret::new(*leaf)).stream(DomainTag::OT_PUNCTURE, 0, 0, 0, &mut value);
    value
}

fn digest(ends: &Ends, trees: Trees, values: &[Value]) -> [u8; 32] {
    let mut hash: Sha256 = start(ends, For::Leaves);
    Update::update(&mut hash, &[trees.bits() as u8]);
    Update::update(&mut hash, values.as_flattened());
    hash.finalize().into()
}

fn add<const N: usize>(a: &[u8; N], b: &[u8; N]) -> [u8; N] {
    std::array::from_fn(|i| a[i] ^ b[i])
}

fn sum<'a, const N: usize>(all: impl Iterator<Item = &'a [u8; N]>) -> [u8; N] {
    all.fold([0; N], |sum, x| add(&sum, x))
}
