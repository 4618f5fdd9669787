//! Columns of a run that wait on the disk: one file without a name, encrypted under a key that is never written.
//!
//! ```text
//! place ─► extent of the file:  block 0 │ tag │ block 1 │ tag │ …        AES-256-GCM, 1 MiB a block
//! nonce = number of the block among all that the run has written         bound: place, number in it, bytes of the place
//! ```
//!
//! The nonce of a block is in memory, with the place: a block that is changed, moved, or an older one of the same place, does not open. The file has no name from the
//! beginning, so that nothing is left of a run that is killed, and what the disk still has is of a key that nothing has.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::rand;
use veil_job::{DataError, Spill};
use zeroize::{Zeroize, Zeroizing};

use crate::error::StoreError;
use crate::key::TAG;

/// Bytes of a block.
const BLOCK: usize = 1 << 20;

/// What a run has written with one key, at most: the nonce counts blocks, and none is used twice.
const MOST_BLOCKS: u64 = 1 << 40;

/// The spilled columns of a run at one party: [`Spill`] in a folder.
///
/// ```
/// use veil_job::Spill;
/// use veil_store::SpillFile;
///
/// let folder = tempfile::tempdir()?;
/// let spill = SpillFile::create(folder.path())?;
/// let place = spill.put(b"shares")?;
/// let mut back = [0; 6];
/// spill.get(place, &mut back)?;
/// assert_eq!(&back, b"shares");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct SpillFile {
    folder: PathBuf,
    file: File,
    key: LessSafeKey,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    places: BTreeMap<u64, Place>,
    next: u64,
    /// Blocks that were written.
    blocks: u64,
    /// Extents of the file that no place has, by where they begin.
    unused: BTreeMap<u64, u64>,
    /// Bytes of the file.
    end: u64,
    /// Ciphertext of a block.
    buffer: Vec<u8>,
}

/// What is known of a place.
#[derive(Clone, Copy)]
struct Place {
    at: u64,
    bytes: usize,
    /// The number of its first block.
    first: u64,
}

impl Place {
    /// Bytes of the file that it has.
    const fn extent(&self) -> u64 {
        (self.bytes + self.bytes.div_ceil(BLOCK) * TAG) as u64
    }

    /// What its blocks are bound to.
    fn bound(&self, place: u64, block: u64) -> Aad<[u8; 24]> {
        let mut bound = [0; 24];
        bound[..8].copy_from_slice(&place.to_le_bytes());
        bound[8..16].copy_from_slice(&block.to_le_bytes());
        bound[16..].copy_from_slice(&(self.bytes as u64).to_le_bytes());
        Aad::from(bound)
    }

    /// The nonce of a block of it.
    fn nonce(&self, block: u64) -> Nonce {
        let mut nonce = [0; 12];
        nonce[..8].copy_from_slice(&(self.first + block).to_le_bytes());
        Nonce::assume_unique_for_key(nonce)
    }

    /// Where a block is in the file.
    const fn offset(&self, block: usize) -> u64 {
        self.at + (block * (BLOCK + TAG)) as u64
    }
}

impl State {
    /// Where so many bytes of the file are unused: the first extent that has room, or the end.
    fn room(&mut self, bytes: u64) -> u64 {
        let fits = self.unused.iter().find(|(_, room)| **room >= bytes);
        let Some((at, room)) = fits.map(|(at, room)| (*at, *room)) else {
            let at = self.end;
            self.end += bytes;
            return at;
        };
        self.unused.remove(&at);
        if room > bytes {
            self.unused.insert(at + bytes, room - bytes);
        }
        at
    }

    /// Gives an extent back, as one with those beside it.
    fn give_back(&mut self, place: &Place) {
        let (mut at, mut bytes) = (place.at, place.extent());
        if bytes == 0 {
            return;
        }
        let before = self.unused.range(..at).next_back();
        if let Some((first, room)) = before.map(|(first, room)| (*first, *room))
            && first + room == at
        {
            self.unused.remove(&first);
            (at, bytes) = (first, bytes + room);
        }
        if let Some(room) = self.unused.remove(&(at + bytes)) {
            bytes += room;
        }
        if at + bytes == self.end {
            self.end = at;
        } else {
            self.unused.insert(at, bytes);
        }
    }
}

impl SpillFile {
    /// A file without a name in a folder.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the folder takes none.
    pub fn create(folder: &Path) -> Result<Self, StoreError> {
        let file = tempfile::tempfile_in(folder);
        let file = file.map_err(StoreError::io("create a file for columns in", folder))?;
        let mut key = Zeroizing::new([0; 32]);
        let filled = rand::fill(&mut *key);
        filled.map_err(|_| StoreError::Io {
            doing: "draw a key for columns in",
            path: folder.to_owned(),
            source: io::Error::other("the system has no random numbers"),
        })?;
        let key = UnboundKey::new(&AES_256_GCM, &*key).expect("the key has 32 bytes");
        Ok(SpillFile {
            folder: folder.to_owned(),
            file,
            key: LessSafeKey::new(key),
            state: Mutex::default(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn io(&self, doing: &'static str) -> impl FnOnce(io::Error) -> StoreError {
        StoreError::io(doing, &self.folder)
    }

    fn damaged(&self) -> StoreError {
        StoreError::Spilled {
            folder: self.folder.clone(),
        }
    }

    fn write(&self, bytes: &[u8], state: &mut State) -> Result<u64, StoreError> {
        let blocks = bytes.len().div_ceil(BLOCK) as u64;
        if state.blocks + blocks > MOST_BLOCKS {
            return Err(self.damaged());
        }
        let mut place = Place {
            at: 0,
            bytes: bytes.len(),
            first: state.blocks,
        };
        place.at = state.room(place.extent());
        // Written or not: the numbers are used.
        state.blocks += blocks;
        let name = state.next;
        state.next += 1;
        let mut buffer = std::mem::take(&mut state.buffer);
        let written = bytes.chunks(BLOCK).enumerate().try_for_each(|(at, block)| {
            buffer.clear();
            buffer.extend_from_slice(block);
            let (nonce, bound) = (place.nonce(at as u64), place.bound(name, at as u64));
            let sealed = self.key.seal_in_place_append_tag(nonce, bound, &mut buffer);
            if sealed.is_err() {
                buffer.zeroize();
                return Err(self.damaged());
            }
            let written = self.file.write_all_at(&buffer, place.offset(at));
            written.map_err(self.io("write columns to"))
        });
        state.buffer = buffer;
        if let Err(error) = written {
            state.give_back(&place);
            return Err(error);
        }
        state.places.insert(name, place);
        Ok(name)
    }

    fn read(&self, name: u64, into: &mut [u8], state: &mut State) -> Result<(), StoreError> {
        let place = state.places.remove(&name);
        let place = place.filter(|place| place.bytes == into.len());
        let place = place.ok_or_else(|| self.damaged())?;
        let mut buffer = std::mem::take(&mut state.buffer);
        let blocks = into.chunks_mut(BLOCK).enumerate();
        let read = { blocks }.try_for_each(|(at, block)| {
            buffer.resize(block.len() + TAG, 0);
            let read = self.file.read_exact_at(&mut buffer, place.offset(at));
            read.map_err(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof => self.damaged(),
                _ => self.io("read columns from")(error),
            })?;
            let (sealed, tag) = buffer.split_at(block.len());
            let (nonce, bound) = (place.nonce(at as u64), place.bound(name, at as u64));
            let opened = self
                .key
                .open_separate_gather(nonce, bound, sealed, tag, block);
            opened.map_err(|_| self.damaged())
        });
        state.buffer = buffer;
        state.give_back(&place);
        if read.is_err() {
            into.zeroize();
        }
        read
    }
}

impl Spill for SpillFile {
    fn put(&self, bytes: &[u8]) -> Result<u64, DataError> {
        Ok(self.write(bytes, &mut self.state())?)
    }

    fn get(&self, place: u64, into: &mut [u8]) -> Result<(), DataError> {
        Ok(self.read(place, into, &mut self.state())?)
    }

    fn free(&self, place: u64) {
        let mut state = self.state();
        if let Some(place) = state.places.remove(&place) {
            state.give_back(&place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> (tempfile::TempDir, SpillFile) {
        let folder = tempfile::tempdir().expect("a folder");
        let spill = SpillFile::create(folder.path()).expect("a file");
        (folder, spill)
    }

    fn bytes(seed: u64, len: usize) -> Vec<u8> {
        let byte = |at: u64| (at.wrapping_mul(seed | 1) >> 7) as u8;
        (0..len as u64).map(byte).collect()
    }

    /// What `get` says of a place.
    fn says(spill: &SpillFile, place: u64, len: usize) -> String {
        let error = spill.get(place, &mut vec![0; len]);
        error.expect_err("it does not open").to_string()
    }

    #[test]
    fn columns_come_back_and_their_room_is_used_again() {
        let (folder, spill) = file();
        let lengths = [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 5];
        for round in 0..4 {
            let put = |(k, len): (usize, &usize)| {
                let bytes = bytes(round + 7 * k as u64, *len);
                (spill.put(&bytes).expect("there is room"), bytes)
            };
            let mut all: Vec<_> = lengths.iter().enumerate().map(put).collect();
            all.rotate_left(round as usize);
            for (k, (place, bytes)) in all.into_iter().enumerate() {
                if k == 2 {
                    spill.free(place);
                    continue;
                }
                let mut back = vec![0; bytes.len()];
                spill.get(place, &mut back).expect("it is there");
                assert!(back == bytes);
                assert!(says(&spill, place, bytes.len()).contains("are not the ones"));
            }
            let state = spill.state();
            assert_eq!((state.end, state.unused.len()), (0, 0), "all room is free");
        }
        // The file has no name.
        assert_eq!(folder.path().read_dir().expect("a folder").count(), 0);
    }

    #[test]
    fn what_was_changed_moved_or_set_back_does_not_open() {
        let len = BLOCK + 100;
        let told = "are not the ones that this run has written";
        for at in [
            0,
            17,
            BLOCK as u64,
            BLOCK as u64 + TAG as u64,
            (len + 2 * TAG - 1) as u64,
        ] {
            let (_folder, spill) = file();
            let place = spill.put(&bytes(3, len)).expect("there is room");
            let mut byte = [0];
            spill
                .file
                .read_exact_at(&mut byte, at)
                .expect("it is there");
            spill
                .file
                .write_all_at(&[byte[0] ^ 4], at)
                .expect("it is written");
            assert!(says(&spill, place, len).contains(told), "byte {at}");
        }
        // The same place of the file, as it was for another column.
        let (_folder, spill) = file();
        let place = spill.put(&bytes(3, len)).expect("there is room");
        let mut old = vec![0; len + 2 * TAG];
        spill.file.read_exact_at(&mut old, 0).expect("it is there");
        spill.get(place, &mut vec![0; len]).expect("it opens");
        let place = spill.put(&bytes(3, len)).expect("there is room");
        spill.file.write_all_at(&old, 0).expect("it is written");
        assert!(says(&spill, place, len).contains(told));
        // Another place, another length, an end that is cut off.
        let place = spill.put(&bytes(5, len)).expect("there is room");
        assert!(says(&spill, place, len - 1).contains(told));
        let place = spill.put(&bytes(5, len)).expect("there is room");
        spill.file.set_len(len as u64).expect("it is cut");
        assert!(says(&spill, place, len).contains(told));
    }

    #[test]
    fn the_file_has_nothing_in_clear() {
        let (_folder, spill) = file();
        spill.put(&[0; 4096]).expect("there is room");
        let mut there = [0; 4096];
        spill
            .file
            .read_exact_at(&mut there, 0)
            .expect("it is there");
        there.sort_unstable();
        assert!(
            there[100] > 0,
            "no more zeros than there are of other bytes"
        );
    }
}
