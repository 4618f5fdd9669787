//! Reversal of transfers: of 128 transfers in one direction, 128 fresh ones in the other.
//!
//! Of the old transfers one end has both keys of each, the other one has choices and the chosen keys. In the new ones the first end chooses, and
//! the second gets both keys. It is the transfer extension of `veil_device::ot` with trees of one bit, one block of transfers and one block
//! that hides them (Roy, "SoftSpokenOT: Communication-Computation Tradeoffs in OT Extension", 2022), where a leaf is a key of an old
//! transfer, and its string is a hash:
//!
//! - L_{i,j} = H(i, j, key j of transfer i), two blocks of 16 bytes; u_i = L_{i,0} ⊕ L_{i,1}, t_i = L_{i,1};
//! - x is the string of choices, then the last block of u_0; d_i = x ⊕ u_i is sent, but for the last block of d_0, which is zero;
//! - χ = H(all d), and h(t_i) and h(x) are sent ([`fold`]);
//! - the other end, which lacks key Δ_i of transfer i, has q_i = L_{i,1−Δ_i} ⊕ Δ_i d_i = t_i ⊕ Δ_i x, and compares h(q_i) with h(t_i) ⊕ Δ_i h(x).
//!
//! Bit i of the label T_r or Q_r of transfer r is bit r of t_i or q_i, so that Q_r = T_r ⊕ x_r Δ. The new keys are H(r, Q_r) and
//! H(r, Q_r ⊕ Δ), of which the first end has H(r, T_r). Every H has the session, both ends and what it is for, so that a pair of ends can
//! turn the same transfers in two sessions and has nothing in common in both.
//!
//! A Byzantine first end has to guess a bit of Δ for each transfer in which its d_i is of another x, and is caught if it is wrong.

use sha2::digest::Update;
use sha2::{Digest, Sha256};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};
use veil_device::ot::{BLOCK, fold};
use veil_session::Secret;
use zeroize::{Zeroize, Zeroizing};

use super::base::TRANSFERS;
use super::hash::{For, SEAL, open, seal, start};
use super::{Cheat, Ends};

/// Choices of 128 transfers, each 0 or 1. In a place of their own, so that none is left behind where they were before they moved.
pub type Choices = Box<Zeroizing<[u8; TRANSFERS]>>;

/// A string: a block of transfers, and one that hides them.
type Text = [u8; 2 * BLOCK];

/// Bytes of the corrections.
const CORRECTIONS: usize = (2 * TRANSFERS - 1) * BLOCK;

/// Bytes of the message: corrections, folds of all t and of x, and the seal.
pub const MESSAGE: usize = CORRECTIONS + (TRANSFERS + 1) * BLOCK + SEAL;

/// Choices that are the bits of a secret.
pub fn choices(secret: &Secret) -> Choices {
    let mut choices = Box::new(Zeroizing::new([0; TRANSFERS]));
    for (i, choice) in choices.iter_mut().enumerate() {
        *choice = secret.expose()[i / 8] >> (i % 8) & 1;
    }
    choices
}

/// The end that has both keys of each old transfer makes its choices: its message ([`MESSAGE`]), and the key of each new transfer that it has chosen. It
/// is the receiver of `ends`.
///
/// # Panics
/// If there are not 128 pairs.
pub fn choose(
    ends: &Ends,
    pairs: &[[Secret; 2]],
    choices: &[u8; TRANSFERS],
) -> (Vec<u8>, Vec<Secret>) {
    assert_eq!(pairs.len(), TRANSFERS);
    let mut x = Zeroizing::new([0; 2 * BLOCK]);
    for (i, choice) in choices.iter().enumerate() {
        x[i / 8] |= choice << (i % 8);
    }
    let mut message = Vec::with_capacity(MESSAGE);
    let mut columns = Zeroizing::new([[0; 2 * BLOCK]; TRANSFERS]);
    for (i, (pair, column)) in pairs.iter().zip(columns.iter_mut()).enumerate() {
        string(ends, (i, 1), &pair[1], column);
        let mut d = Zeroizing::new([0; 2 * BLOCK]);
        string(ends, (i, 0), &pair[0], &mut d);
        add(&mut d, column);
        if i == 0 {
            x[BLOCK..].copy_from_slice(&d[BLOCK..]);
        }
        add(&mut d, &x);
        message.extend_from_slice(&d[..if i == 0 { BLOCK } else { 2 * BLOCK }]);
    }
    let challenge = challenge(ends, &message);
    for string in columns.iter().chain([&*x]) {
        message.extend_from_slice(&fold(&challenge, string));
    }
    message.extend_from_slice(&seal(ends, For::Turn, &message));
    let labels = labels(&columns);
    let keys = labels.iter().enumerate().map(|(r, t)| key(ends, r, *t));
    (message, keys.collect())
}

/// The end that has chosen in the old transfers: both keys of each new one, if the message passes its check. It is the sender of `ends`.
///
/// # Panics
/// If there are not 128 keys.
///
/// # Errors
/// [`Cheat::Length`] and [`Cheat::Stranger`] if this is no such message of these ends and this session, [`Cheat::Reversed`] if the
/// folds do not fit: the corrections are of several choices.
pub fn offer(
    ends: &Ends,
    choices: &[u8; TRANSFERS],
    keys: &[Secret],
    message: &[u8],
) -> Result<Vec<[Secret; 2]>, Cheat> {
    assert_eq!(keys.len(), TRANSFERS);
    let body = open(ends, For::Turn, MESSAGE, message)?;
    let (corrections, folds) = body.split_at(CORRECTIONS);
    let challenge = challenge(ends, corrections);
    let (folds, _) = folds.as_chunks::<BLOCK>();
    let (first, rest) = corrections.split_at(BLOCK);
    let mut zero = [0; 2 * BLOCK];
    zero[..BLOCK].copy_from_slice(first);
    let strings = [&zero].into_iter().chain(rest.as_chunks().0);
    let mut columns = Zeroizing::new([[0; 2 * BLOCK]; TRANSFERS]);
    let (mut offset, mut right) = (Zeroizing::new(0u128), Choice::from(1));
    for (i, (column, d)) in columns.iter_mut().zip(strings).enumerate() {
        string(ends, (i, choices[i]), &keys[i], column);
        let lacks = Choice::from(1 - choices[i]);
        *offset |= u128::from(lacks.unwrap_u8()) << i;
        add(column, &where_set(lacks, d));
        let mut want = where_set(lacks, &folds[TRANSFERS]);
        add(&mut want, &folds[i]);
        right &= fold(&challenge, column).ct_eq(&*want);
    }
    if !bool::from(right) {
        return Err(Cheat::Reversed);
    }
    let labels = labels(&columns);
    let pair = |(r, q): (usize, &u128)| [key(ends, r, *q), key(ends, r, *q ^ *offset)];
    Ok(labels.iter().enumerate().map(pair).collect())
}

/// L_{i,j}.
fn string(ends: &Ends, (i, j): (usize, u8), key: &Secret, to: &mut Text) {
    let mut hash: Sha256 = start(ends, For::String);
    Update::update(&mut hash, &(i as u16).to_le_bytes());
    Update::update(&mut hash, &[j]);
    Update::update(&mut hash, key.expose());
    hash.finalize_into(to.into());
}

/// χ.
fn challenge(ends: &Ends, corrections: &[u8]) -> [u8; BLOCK] {
    let mut hash: Sha256 = start(ends, For::Challenge);
    Update::update(&mut hash, corrections);
    let digest: [u8; 32] = hash.finalize().into();
    std::array::from_fn(|i| digest[i])
}

/// H(r, label).
fn key(ends: &Ends, r: usize, label: u128) -> Secret {
    let mut hash: Sha256 = start(ends, For::Reversed);
    Update::update(&mut hash, &(r as u16).to_le_bytes());
    Update::update(&mut hash, &label.to_le_bytes());
    let mut digest: [u8; 32] = hash.finalize().into();
    let (bytes, _) = digest.split_first_chunk().expect("16 of 32 bytes");
    let secret = Secret::new(*bytes);
    digest.zeroize();
    secret
}

/// Label r has bit r of every column.
fn labels(columns: &[Text; TRANSFERS]) -> Zeroizing<Vec<u128>> {
    let first = |column: &Text| {
        let (block, _) = column.split_first_chunk().expect("two blocks");
        u128::from_le_bytes(*block)
    };
    let columns: Zeroizing<Vec<u128>> = Zeroizing::new(columns.iter().map(first).collect());
    let label = |r: usize| {
        let bits = columns.iter().enumerate();
        bits.fold(0, |label, (i, column)| label | (column >> r & 1) << i)
    };
    Zeroizing::new((0..TRANSFERS).map(label).collect())
}

fn add<const N: usize>(to: &mut [u8; N], other: &[u8; N]) {
    to.iter_mut().zip(other).for_each(|(a, b)| *a ^= b);
}

/// The bytes, or zeros.
fn where_set<const N: usize>(bit: Choice, bytes: &[u8; N]) -> Zeroizing<[u8; N]> {
    Zeroizing::new(<[u8; N]>::conditional_select(&[0; N], bytes, bit))
}
