//! Buffers that are used again, so that a message costs no allocation once a run is under way.

use veil_session::Wiped;

/// A buffer of at most so many bytes has a power of two of them. Longer ones would take too much memory that no message uses.
const ROUNDED: usize = 1 << 16;

/// Buffers of one connection, kept up to a number of bytes.
#[derive(Debug)]
pub(crate) struct Pool {
    free: Vec<Vec<u8>>,
    held: u64,
    limit: u64,
}

impl Pool {
    /// A pool that keeps at most `limit` bytes.
    pub(crate) fn new(limit: u64) -> Self {
        Pool {
            free: Vec::new(),
            held: 0,
            limit,
        }
    }

    /// An empty buffer with room for `bytes` bytes.
    pub(crate) fn take(&mut self, bytes: usize) -> Vec<u8> {
        let found = self.find(bytes);
        let mut buffer = found.unwrap_or_else(|| Vec::with_capacity(capacity(bytes)));
        buffer.clear();
        buffer
    }

    /// A buffer of one byte more than `bytes`, which are zeros or what an earlier message left there: to be overwritten.
    pub(crate) fn take_full(&mut self, bytes: usize) -> Vec<u8> {
        let found = self.find(bytes + 1);
        // New memory comes from the system as zeros.
        let mut buffer = found.unwrap_or_else(|| vec![0; capacity(bytes) + 1]);
        buffer.resize(bytes + 1, 0);
        buffer
    }

    /// Of the buffers with so much room, the one that came last, because it is in the cache.
    fn find(&mut self, bytes: usize) -> Option<Vec<u8>> {
        let fits = |buffer: &Vec<u8>| buffer.capacity() >= bytes;
        // Not one that is much too long: then a long message would find none, and what it adds to a short one would be filled with zeros.
        let close = |buffer: &Vec<u8>| fits(buffer) && buffer.capacity() / 2 <= bytes.max(ROUNDED);
        let found = self.free.iter().rposition(close);
        // One that is too small gives way to one that is not: a connection has a few, and they grow with its messages.
        let found = found.or_else(|| self.free.iter().rposition(fits));
        let found = found.or_else(|| self.free.len().checked_sub(1))?;
        let buffer = self.free.remove(found);
        self.held -= buffer.capacity() as u64;
        if fits(&buffer) {
            return Some(buffer);
        }
        forget(buffer);
        None
    }

    /// Takes a buffer back.
    pub(crate) fn put(&mut self, buffer: Vec<u8>) {
        let bytes = buffer.capacity() as u64;
        if bytes > 0 && self.held + bytes <= self.limit {
            self.held += bytes;
            self.free.push(buffer);
        } else {
            forget(buffer);
        }
    }

    /// Gives all free buffers away, to the sender that fills them.
    pub(crate) fn give(&mut self, spare: &mut Vec<Vec<u8>>) {
        self.held = 0;
        if spare.is_empty() {
            std::mem::swap(spare, &mut self.free);
        } else {
            spare.append(&mut self.free);
        }
    }

    /// Takes back all that was given.
    pub(crate) fn receive(&mut self, spare: &mut Vec<Vec<u8>>) {
        for buffer in spare.drain(..) {
            self.put(buffer);
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.free.drain(..).for_each(forget);
    }
}

/// Lets go of a buffer, wiped with all of its room: an owner may have kept shares in it ([`Link::land_whole`](crate::Link::land_whole)).
pub(crate) fn forget(buffer: Vec<u8>) {
    drop(Wiped::from(buffer));
}

/// Room for messages that are a little longer, too: layers of a circuit have tables of many lengths.
const fn capacity(bytes: usize) -> usize {
    if bytes <= ROUNDED {
        bytes.next_power_of_two()
    } else {
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_come_back_and_the_limit_holds() {
        let mut pool = Pool::new(2000);
        let mut first = pool.take(600);
        first.extend_from_slice(&[7; 600]);
        let address = first.as_ptr();
        pool.put(first);
        let again = pool.take(10);
        assert_eq!((again.as_ptr(), again.len()), (address, 0));
        pool.put(again);
        pool.put(Vec::with_capacity(1024));
        assert_eq!(
            pool.free.len(),
            1,
            "a second buffer of 1024 bytes is beyond the limit"
        );
    }

    #[test]
    fn a_buffer_is_taken_that_is_long_enough() {
        let mut pool = Pool::new(1 << 20);
        let long = pool.take(5000);
        let (address, room) = (long.as_ptr(), long.capacity());
        assert_eq!(room, 8192);
        let short = pool.take(30);
        assert_eq!(short.capacity(), 32);
        pool.put(long);
        pool.put(short);
        let again = pool.take(8000);
        assert_eq!((again.as_ptr(), again.capacity()), (address, room));
        // What is too short goes, so that a pool does not fill with what no message can use.
        let other = pool.take(100);
        assert_eq!((other.capacity(), pool.free.len(), pool.held), (128, 0, 0));
        assert_eq!(pool.take(ROUNDED + 1).capacity(), ROUNDED + 1);
    }
}
