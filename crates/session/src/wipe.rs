//! Memory that is wiped, at the speed of a fill.

use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{Ordering, compiler_fence};

/// Overwrites secrets with zeros. The compiler keeps the stores: as far as it knows, a reader sees the zeros.
///
/// A volatile store of each byte, as the `zeroize` crate does it, takes a nanosecond a byte; columns of relations are wiped at the speed of memory.
pub fn wipe<T: Copy + Default>(secrets: &mut [T]) {
    secrets.fill(T::default());
    std::hint::black_box(secrets.as_ptr());
    compiler_fence(Ordering::SeqCst);
}

/// A list of secrets that is wiped on drop. It never grows: no copy of it is left behind.
#[derive(Default)]
pub struct Wiped<T: Copy + Default>(Vec<T>);

impl<T: Copy + Default> Wiped<T> {
    /// So many elements, all zero.
    pub fn zeros(count: usize) -> Self {
        Wiped(vec![T::default(); count])
    }

    /// The list itself, for memory that is wiped elsewhere.
    pub fn into_inner(mut self) -> Vec<T> {
        std::mem::take(&mut self.0)
    }

    /// Where the elements are, as [`Vec::as_mut_ptr`] says it.
    pub fn as_mut_ptr(&mut self) -> *mut T {
        self.0.as_mut_ptr()
    }
}

impl<T: Copy + Default> From<Vec<T>> for Wiped<T> {
    fn from(secrets: Vec<T>) -> Self {
        Wiped(secrets)
    }
}

impl<T: Copy + Default> Deref for Wiped<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T: Copy + Default> DerefMut for Wiped<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}

impl<T: Copy + Default> Drop for Wiped<T> {
    /// Wipes all of its room: the list may have been longer before it was given away.
    fn drop(&mut self) {
        let room = self.0.spare_capacity_mut();
        room.fill(MaybeUninit::new(T::default()));
        std::hint::black_box(room.as_ptr());
        wipe(&mut self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_become_zeros() {
        let mut secrets = [1u32, 2, 3];
        wipe(&mut secrets);
        assert_eq!(secrets, [0; 3]);
        let mut kept = Wiped::from(vec![7u8; 4]);
        kept[0] = 1;
        assert_eq!(kept[..], [1, 7, 7, 7]);
        assert_eq!(kept.into_inner(), [1, 7, 7, 7]);
    }
}
