//! Buffers that are used again, so that a message costs no allocation once a run is under way.

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
        let mut buffer = self.free.pop().unwrap_or_default();
        self.held -= buffer.capacity() as u64;
        buffer.clear();
        buffer.reserve(bytes);
        buffer
    }

    /// Takes a buffer back.
    pub(crate) fn put(&mut self, buffer: Vec<u8>) {
        let bytes = buffer.capacity() as u64;
        if bytes > 0 && self.held + bytes <= self.limit {
            self.held += bytes;
            self.free.push(buffer);
        }
    }

    /// Gives all free buffers away, to whoever fills them.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_come_back_and_the_limit_holds() {
        let mut pool = Pool::new(1000);
        let mut first = pool.take(600);
        first.extend_from_slice(&[7; 600]);
        let address = first.as_ptr();
        pool.put(first);
        let again = pool.take(10);
        assert_eq!((again.as_ptr(), again.len()), (address, 0));
        pool.put(again);
        pool.put(Vec::with_capacity(600));
        assert_eq!(
            pool.free.len(),
            1,
            "a second buffer of 600 bytes is beyond the limit"
        );
    }
}
