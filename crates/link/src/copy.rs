//! Copies of messages, in blocks that a C library moves by vectors.
//!
//! Beyond some thousand bytes a C library copies by `rep movsb`, which on processors of AMD (Zen 3 and 4) takes fifteen times as long where the
//! destination begins a few bytes (here 16) behind the source, modulo the size of a page: 0.35 instead of 0.02 ns a byte. A message that the allocator has put at the head of
//! a page, sixteen bytes behind it, and a plane that begins with a page are such a pair.

/// Bytes of a block: less than from where on libraries use that instruction.
const BLOCK: usize = 2048;

/// Copies all of `from`.
///
/// # Panics
/// If the lengths differ.
pub fn copy(into: &mut [u8], from: &[u8]) {
    assert_eq!(
        into.len(),
        from.len(),
        "a message and its place are as long"
    );
    for (into, from) in into.chunks_mut(BLOCK).zip(from.chunks(BLOCK)) {
        into.copy_from_slice(from);
    }
}

/// Appends all of `from`. There should be room.
pub fn append(into: &mut Vec<u8>, from: &[u8]) {
    for from in from.chunks(BLOCK) {
        into.extend_from_slice(from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bytes_are_copied() {
        for length in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 7] {
            let from: Vec<u8> = (0..length).map(|k| (k % 251) as u8).collect();
            let mut into = vec![0; length];
            copy(&mut into, &from);
            assert_eq!(into, from);
            append(&mut into, &from);
            assert_eq!(into, from.repeat(2));
        }
    }

    #[test]
    #[should_panic(expected = "as long")]
    fn another_length_is_a_defect() {
        copy(&mut [0; 3], &[0; 4]);
    }
}
