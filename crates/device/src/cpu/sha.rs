//! SHA-256 (FIPS 180-4) of sixteen messages side by side, each in a lane of AVX-512: of rows of a workspace, or pieces of a source.

#[allow(
    clippy::wildcard_imports,
    reason = "intrinsics carry their namespace in their names"
)]
use std::arch::x86_64::*;

use veil_math::Ring;
use zeroize::Zeroizing;

use super::workspace::Memory;
use crate::cut::{Columns, MARKED};
use crate::hash::PIECE;
use crate::layout::{ColumnType, Span};

/// Lanes.
pub(super) const LANES: usize = 16;
/// Bytes of a label, the unit of messages.
const UNIT: usize = 16;
/// Bytes of a block.
pub(super) const BLOCK: usize = 64;

/// Section 4.2.2.
const K: [u32; 64] = [
    0x428a_2f98,
    0x7137_4491,
    0xb5c0_fbcf,
    0xe9b5_dba5,
    0x3956_c25b,
    0x59f1_11f1,
    0x923f_82a4,
    0xab1c_5ed5,
    0xd807_aa98,
    0x1283_5b01,
    0x2431_85be,
    0x550c_7dc3,
    0x72be_5d74,
    0x80de_b1fe,
    0x9bdc_06a7,
    0xc19b_f174,
    0xe49b_69c1,
    0xefbe_4786,
    0x0fc1_9dc6,
    0x240c_a1cc,
    0x2de9_2c6f,
    0x4a74_84aa,
    0x5cb0_a9dc,
    0x76f9_88da,
    0x983e_5152,
    0xa831_c66d,
    0xb003_27c8,
    0xbf59_7fc7,
    0xc6e0_0bf3,
    0xd5a7_9147,
    0x06ca_6351,
    0x1429_2967,
    0x27b7_0a85,
    0x2e1b_2138,
    0x4d2c_6dfc,
    0x5338_0d13,
    0x650a_7354,
    0x766a_0abb,
    0x81c2_c92e,
    0x9272_2c85,
    0xa2bf_e8a1,
    0xa81a_664b,
    0xc24b_8b70,
    0xc76c_51a3,
    0xd192_e819,
    0xd699_0624,
    0xf40e_3585,
    0x106a_a070,
    0x19a4_c116,
    0x1e37_6c08,
    0x2748_774c,
    0x34b0_bcb5,
    0x391c_0cb3,
    0x4ed8_aa4a,
    0x5b9c_ca4f,
    0x682e_6ff3,
    0x748f_82ee,
    0x78a5_636f,
    0x84c8_7814,
    0x8cc7_0208,
    0x90be_fffa,
    0xa450_6ceb,
    0xbef9_a3f7,
    0xc671_78f2,
];

/// Section 5.3.3.
const INITIAL: [u32; 8] = [
    0x6a09_e667,
    0xbb67_ae85,
    0x3c6e_f372,
    0xa54f_f53a,
    0x510e_527f,
    0x9b05_688c,
    0x1f83_d9ab,
    0x5be0_cd19,
];

/// A message of each row behind a head of one block: units of 16 bytes for each row, the last of which hold the padding.
pub(super) struct Message<'a> {
    units: Vec<&'a [u8]>,
    /// Bits, a byte for each, and the padding: `[unit][row]`.
    end: Zeroizing<Vec<u8>>,
}

impl<'a> Message<'a> {
    /// Labels, then bits; nothing for another order of sources.
    pub(super) fn of(memory: &'a Memory, src: &[Span]) -> Option<Self> {
        let bits = |span: &&Span| memory.kind(span.region) == ColumnType::Rows(Ring::Bits);
        let labels = src.iter().take_while(|span| !bits(span)).count();
        let (labels, rest) = src.split_at(labels);
        if !rest.iter().all(|span| bits(&span)) {
            return None;
        }
        let mut units = Vec::new();
        for span in labels {
            units.extend((0..span.count).map(|k| memory.column_bytes(*span, k)));
        }
        let rows = memory.frame.rows as usize;
        let bits: usize = rest.iter().map(|span| span.count as usize).sum();
        let bytes = UNIT * units.len() + bits;
        // One bit, zeros, and the length in bits of everything from the head on, in 8 bytes.
        let ends = (bytes + 1 + 8).next_multiple_of(BLOCK) - UNIT * units.len();
        let mut end = Zeroizing::new(vec![0; ends * rows]);
        let at = |byte: usize, row: usize| (byte / UNIT * rows + row) * UNIT + byte % UNIT;
        let length = (8 * (BLOCK + bytes) as u64).to_be_bytes();
        for row in 0..rows {
            let mut byte = 0;
            for span in rest {
                for k in 0..span.count {
                    end[at(byte, row)] = memory.column_bytes(*span, k)[row / 8] >> (row % 8) & 1;
                    byte += 1;
                }
            }
            end[at(byte, row)] = 0x80;
            for (k, of_length) in length.iter().enumerate() {
                end[at(ends - 8 + k, row)] = *of_length;
            }
        }
        Some(Message { units, end })
    }
}

/// The digests of rows: `[half][row]`, 16 bytes each.
///
/// # Safety
/// The machine has AVX-512 F and BW; every unit has 16 bytes for each of `rows` rows.
#[target_feature(enable = "avx512f,avx512bw")]
pub(super) unsafe fn digests(
    head: &[u8; BLOCK],
    message: &Message<'_>,
    rows: usize,
    digests: &mut [u8],
) {
    // SAFETY: the caller's; loads and stores are of rows below `rows`.
    unsafe {
        let mut words = [_mm512_setzero_si512(); 16];
        for (word, bytes) in words.iter_mut().zip(head.as_chunks().0) {
            *word = _mm512_set1_epi32(u32::from_be_bytes(*bytes) as i32);
        }
        let mut start = INITIAL.map(|word| _mm512_set1_epi32(word as i32));
        compress(&mut start, words);
        let ends = message.end.chunks_exact((UNIT * rows).max(1));
        let units: Vec<&[u8]> = message.units.iter().copied().chain(ends).collect();
        for row in (0..rows).step_by(LANES) {
            let mut state = start;
            for block in units.as_chunks::<4>().0 {
                for (k, unit) in block.iter().enumerate() {
                    let four = load(unit, row, rows);
                    words[4 * k..][..4].copy_from_slice(&four);
                }
                compress(&mut state, words);
            }
            store(&state, row, rows, digests);
        }
    }
}

/// The marks of rows: `[half][row]`, 16 bytes each. `marked` is what the mark of a label of circuit 0 is of, but for the label; `labels` has
/// one for each row.
///
/// # Safety
/// The machine has AVX-512 F and BW.
#[target_feature(enable = "avx512f,avx512bw")]
pub(super) unsafe fn marks(
    marked: &[u8; MARKED],
    numbers: &[u32],
    labels: &[u8],
    digests: &mut [u8],
) {
    let rows = numbers.len();
    assert!(labels.len() == UNIT * rows && digests.len() == 2 * UNIT * rows);
    // SAFETY: the caller's; loads and stores are of rows below `rows`.
    unsafe {
        let mut words = [_mm512_setzero_si512(); 16];
        for (word, bytes) in words.iter_mut().zip(marked.as_chunks().0) {
            *word = _mm512_set1_epi32(u32::from_be_bytes(*bytes) as i32);
        }
        words[13] = _mm512_set1_epi32(i32::MIN);
        words[15] = _mm512_set1_epi32(8 * MARKED as i32);
        for row in (0..rows).step_by(LANES) {
            let lanes = (rows - row).min(LANES);
            let from = numbers.as_ptr().add(row).cast();
            let numbers = _mm512_maskz_loadu_epi32(first(lanes), from);
            words[8] = swap(numbers);
            words[9..13].copy_from_slice(&load(labels, row, rows));
            let mut state = INITIAL.map(|word| _mm512_set1_epi32(word as i32));
            compress(&mut state, words);
            store(&state, row, rows, digests);
        }
    }
}

/// The digests of sixteen pieces, one behind the other.
///
/// # Safety
/// The machine has AVX-512 F and BW.
#[target_feature(enable = "avx512f,avx512bw")]
pub(super) unsafe fn pieces(pieces: &[u8; LANES * PIECE]) -> [[u8; 2 * UNIT]; LANES] {
    let mut state = INITIAL.map(|word| _mm512_set1_epi32(word as i32));
    for block in (0..PIECE).step_by(BLOCK) {
        // SAFETY: the caller's; a block at `block` of a piece ends within it.
        unsafe { compress_strided::<PIECE>(&mut state, pieces.as_ptr().add(block)) };
    }
    let mut end = [_mm512_setzero_si512(); 16];
    end[0] = _mm512_set1_epi32(i32::MIN);
    end[15] = _mm512_set1_epi32(8 * PIECE as i32);
    compress(&mut state, end);
    // SAFETY: the caller's.
    unsafe { lanes(&state) }
}

/// The digests of sixteen messages of a block each, which has the padding.
///
/// # Safety
/// The machine has AVX-512 F and BW.
#[target_feature(enable = "avx512f,avx512bw")]
pub(super) unsafe fn blocks(blocks: &[[u8; BLOCK]; LANES]) -> [[u8; 2 * UNIT]; LANES] {
    let mut state = INITIAL.map(|word| _mm512_set1_epi32(word as i32));
    // SAFETY: the caller's; a lane has a block.
    unsafe {
        compress_strided::<BLOCK>(&mut state, blocks.as_ptr().cast());
        lanes(&state)
    }
}

/// The digest of a message of a block, which has the padding.
pub(super) fn block(block: &[u8; BLOCK]) -> [u8; 2 * UNIT] {
    let mut state = INITIAL;
    sha2::block_api::compress256(&mut state, std::slice::from_ref(block));
    let mut digest = [0; 2 * UNIT];
    for (word, to) in state.iter().zip(digest.as_chunks_mut().0) {
        *to = word.to_be_bytes();
    }
    digest
}

/// Compresses a block of each lane, which begin `STRIDE` bytes from one another.
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn compress_strided<const STRIDE: usize>(state: &mut [__m512i; 8], from: *const u8) {
    let unit = |lane: usize, at: usize| {
        // SAFETY: the caller's: there is a block.
        unsafe { _mm_loadu_si128(from.add(STRIDE * lane + at).cast()) }
    };
    let mut words = [_mm512_setzero_si512(); 16];
    for (k, words) in words.as_chunks_mut::<4>().0.iter_mut().enumerate() {
        let at = UNIT * k;
        *words = turned([0, 4, 8, 12].map(|lane| {
            let four = _mm512_castsi128_si512(unit(lane, at));
            let four = _mm512_inserti32x4::<1>(four, unit(lane + 1, at));
            let four = _mm512_inserti32x4::<2>(four, unit(lane + 2, at));
            swap(_mm512_inserti32x4::<3>(four, unit(lane + 3, at)))
        }));
    }
    compress(state, words);
}

/// The digest of each lane.
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn lanes(state: &[__m512i; 8]) -> [[u8; 2 * UNIT]; LANES] {
    let mut halves = [[[0; UNIT]; LANES]; 2];
    // SAFETY: there are two halves of so many lanes.
    unsafe {
        store(
            state,
            0,
            LANES,
            halves.as_flattened_mut().as_flattened_mut(),
        );
    }
    let mut digests = [[0; 2 * UNIT]; LANES];
    for (digest, (low, high)) in digests.iter_mut().zip(halves[0].iter().zip(&halves[1])) {
        digest[..UNIT].copy_from_slice(low);
        digest[UNIT..].copy_from_slice(high);
    }
    digests
}

/// The first so many lanes.
fn first(lanes: usize) -> __mmask16 {
    ((1u32 << lanes) - 1) as u16
}

/// Bytes of each word in the other order.
#[target_feature(enable = "avx512f,avx512bw")]
fn swap(words: __m512i) -> __m512i {
    let order = _mm512_set4_epi32(0x0c0d_0e0f, 0x0809_0a0b, 0x0405_0607, 0x0001_0203);
    _mm512_shuffle_epi8(words, order)
}

/// The words of a unit of sixteen rows from `row` on; of rows that there are not, zeros.
///
/// # Safety
/// The unit has 16 bytes for each of `rows` rows.
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn load(unit: &[u8], row: usize, rows: usize) -> [__m512i; 4] {
    let mut quarters = [_mm512_setzero_si512(); 4];
    for (k, quarter) in quarters.iter_mut().enumerate() {
        let row = row + 4 * k;
        let lanes = rows.saturating_sub(row).min(4);
        if lanes > 0 {
            // SAFETY: the caller's: so many labels are there.
            *quarter = unsafe {
                let from = unit.as_ptr().add(UNIT * row).cast();
                swap(_mm512_maskz_loadu_epi32(first(4 * lanes), from))
            };
        }
    }
    turned(quarters)
}

/// The words of units: four rows' in each vector, to a word of sixteen rows in each.
#[target_feature(enable = "avx512f,avx512bw")]
fn turned(quarters: [__m512i; 4]) -> [__m512i; 4] {
    let [a, b, c, d] = quarters;
    let word = |w: i32| {
        let index = _mm512_set_epi32(
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            28 + w,
            24 + w,
            20 + w,
            16 + w,
            12 + w,
            8 + w,
            4 + w,
            w,
        );
        let low = _mm512_permutex2var_epi32(a, index, b);
        let high = _mm512_permutex2var_epi32(c, index, d);
        _mm512_inserti64x4::<1>(low, _mm512_castsi512_si256(high))
    };
    [word(0), word(1), word(2), word(3)]
}

/// Writes the digests of sixteen rows from `row` on, as far as there are rows.
///
/// # Safety
/// `to` has 32 bytes for each of `rows` rows.
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn store(state: &[__m512i; 8], row: usize, rows: usize, to: &mut [u8]) {
    for half in 0..2 {
        let [w, x, y, z] = [0, 1, 2, 3].map(|k| swap(state[4 * half + k]));
        let (a, b) = (_mm512_unpacklo_epi32(w, x), _mm512_unpackhi_epi32(w, x));
        let (c, d) = (_mm512_unpacklo_epi32(y, z), _mm512_unpackhi_epi32(y, z));
        // Of each, the rows 4 q + k of quarters q.
        let of = [
            _mm512_unpacklo_epi64(a, c),
            _mm512_unpackhi_epi64(a, c),
            _mm512_unpacklo_epi64(b, d),
            _mm512_unpackhi_epi64(b, d),
        ];
        let (e, f) = (
            _mm512_shuffle_i32x4::<0x44>(of[0], of[1]),
            _mm512_shuffle_i32x4::<0x44>(of[2], of[3]),
        );
        let (g, h) = (
            _mm512_shuffle_i32x4::<0xee>(of[0], of[1]),
            _mm512_shuffle_i32x4::<0xee>(of[2], of[3]),
        );
        let quarters = [
            _mm512_shuffle_i32x4::<0x88>(e, f),
            _mm512_shuffle_i32x4::<0xdd>(e, f),
            _mm512_shuffle_i32x4::<0x88>(g, h),
            _mm512_shuffle_i32x4::<0xdd>(g, h),
        ];
        for (k, quarter) in quarters.into_iter().enumerate() {
            let row = row + 4 * k;
            let lanes = rows.saturating_sub(row).min(4);
            if lanes > 0 {
                // SAFETY: the caller's: so many rows are there.
                unsafe {
                    let to = to.as_mut_ptr().add(UNIT * (half * rows + row));
                    _mm512_mask_storeu_epi32(to.cast(), first(4 * lanes), quarter);
                }
            }
        }
    }
}

/// A block of each lane (section 6.2.2).
#[target_feature(enable = "avx512f,avx512bw")]
fn compress(state: &mut [__m512i; 8], mut w: [__m512i; 16]) {
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
    let add = |x, y| _mm512_add_epi32(x, y);
    let xor3 = |x, y, z| _mm512_ternarylogic_epi32::<0x96>(x, y, z);
    macro_rules! round {
        ($t:expr, $a:ident $b:ident $c:ident $d:ident $e:ident $f:ident $g:ident $h:ident) => {
            let t = $t;
            let sum = xor3(
                _mm512_ror_epi32::<6>($e),
                _mm512_ror_epi32::<11>($e),
                _mm512_ror_epi32::<25>($e),
            );
            let choice = _mm512_ternarylogic_epi32::<0xca>($e, $f, $g);
            let constant = add(w[t % 16], _mm512_set1_epi32(K[t] as i32));
            let first = add(add($h, sum), add(choice, constant));
            let sum = xor3(
                _mm512_ror_epi32::<2>($a),
                _mm512_ror_epi32::<13>($a),
                _mm512_ror_epi32::<22>($a),
            );
            let majority = _mm512_ternarylogic_epi32::<0xe8>($a, $b, $c);
            $d = add($d, first);
            $h = add(first, add(sum, majority));
        };
    }
    for sixteen in 0..4 {
        if sixteen > 0 {
            for t in 0..16 {
                let (x, y) = (w[(t + 1) % 16], w[(t + 14) % 16]);
                let x = xor3(
                    _mm512_ror_epi32::<7>(x),
                    _mm512_ror_epi32::<18>(x),
                    _mm512_srli_epi32::<3>(x),
                );
                let y = xor3(
                    _mm512_ror_epi32::<17>(y),
                    _mm512_ror_epi32::<19>(y),
                    _mm512_srli_epi32::<10>(y),
                );
                w[t] = add(add(w[t], x), add(w[(t + 9) % 16], y));
            }
        }
        for eight in [16 * sixteen, 16 * sixteen + 8] {
            round!(eight, a b c d e f g h);
            round!(eight + 1, h a b c d e f g);
            round!(eight + 2, g h a b c d e f);
            round!(eight + 3, f g h a b c d e);
            round!(eight + 4, e f g h a b c d);
            round!(eight + 5, d e f g h a b c);
            round!(eight + 6, c d e f g h a b);
            round!(eight + 7, b c d e f g h a);
        }
    }
    for (state, word) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
        *state = add(*state, word);
    }
}
