//! Damaged copies of bytes.

use crate::seed::Numbers;

/// Bytes that are removed or repeated at once at most.
const PART: usize = 12;

/// `bytes` with one to four changes: a bit, a byte, a part removed, a part repeated, the end cut off.
pub fn damaged(bytes: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..=numbers.below(4) {
        if bytes.is_empty() {
            break;
        }
        let at = numbers.index(bytes.len());
        let end = (at + 1 + numbers.index(PART)).min(bytes.len());
        match numbers.below(16) {
            0..5 => bytes[at] ^= 1 << numbers.below(8),
            5..8 => bytes[at] = numbers.below(256) as u8,
            8..10 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][numbers.index(5)],
            10..12 => drop(bytes.drain(at..end)),
            12..15 => {
                let part = bytes[at..end].to_vec();
                bytes.splice(at..at, part);
            }
            _ => bytes.truncate(at),
        }
    }
    bytes
}
