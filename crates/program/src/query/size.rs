//! The end of a party for the size of a relation that is kept: what was opened of how many of its rows count.

use veil_job::{DataError, Sink, Slice};
use veil_physical::{KeepPorts, SizePort};

use super::Queries;

/// Says a line to what keeps the relation.
type Say = Box<dyn Fn(String) -> Result<(), DataError> + Send + Sync>;

/// Takes the number that the parties open of a relation, and says it as a line of the dataset's schema.
pub struct SizeSink {
    port: SizePort,
    say: Say,
}

impl SizeSink {
    /// Of a relation whose size is opened by this pass.
    pub fn new(
        port: SizePort,
        say: impl Fn(String) -> Result<(), DataError> + Send + Sync + 'static,
    ) -> Self {
        Self {
            port,
            say: Box::new(say),
        }
    }
}

impl Sink for SizeSink {
    fn put(&self, port: usize, slice: Slice, values: &[u8]) -> Result<(), DataError> {
        let beyond = || DataError::out_of_reach(port, slice);
        if port != 0 || (slice.block, slice.first, slice.rows) != (0, 0, 1) {
            return Err(beyond());
        }
        let number = number(values).ok_or_else(beyond)?;
        let rows = self.port.rows(number).ok_or_else(|| {
            DataError::own("the parties have opened a size that no relation of so many rows has")
        })?;
        (self.say)(format!("opened_size = {rows}"))
    }

    fn finish(&self) -> Result<(), DataError> {
        Ok(())
    }
}

/// A number modulo 2^32, opened as an integer, or as its bits in one row: a byte for each.
fn number(values: &[u8]) -> Option<u32> {
    if let Ok(bytes) = values.try_into() {
        return Some(u32::from_le_bytes(bytes));
    }
    let bits: &[u8; 32] = values.try_into().ok()?;
    let mut numbered = bits.iter().zip(0..);
    numbered.try_fold(0, |number, (bit, at)| match bit {
        0 | 1 => Some(number | u32::from(*bit) << at),
        _ => None,
    })
}

impl Queries {
    /// The relations that are kept and whose size is opened.
    pub fn sized(&self) -> impl Iterator<Item = (&KeepPorts, SizePort)> {
        let keeps = self.physical().keeps.iter();
        keeps.filter_map(|kept| Some((kept, kept.size?)))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use veil_relation::Bucket;

    use super::*;

    fn sink() -> (SizeSink, Arc<Mutex<Vec<String>>>) {
        let port = SizePort {
            pass: 3,
            bucket: Bucket::RoundUpTo(10),
            capacity: 25,
        };
        let said = Arc::new(Mutex::new(Vec::new()));
        let into = Arc::clone(&said);
        let sink = SizeSink::new(port, move |line| {
            into.lock().expect("no test panics there").push(line);
            Ok(())
        });
        (sink, said)
    }

    const ONE: Slice = Slice {
        block: 0,
        first: 0,
        rows: 1,
    };

    #[test]
    fn a_number_is_said_as_rows() {
        for (number, line) in [
            (0_u32, "opened_size = 0"),
            (2, "opened_size = 20"),
            (3, "opened_size = 25"),
        ] {
            let (sink, said) = sink();
            sink.put(0, ONE, &number.to_le_bytes()).expect("a size");
            assert_eq!(*said.lock().expect("no test panics there"), [line]);
        }
    }

    #[test]
    fn a_number_is_said_in_bits_too() {
        for (number, line) in [(0_u32, "opened_size = 0"), (2, "opened_size = 20")] {
            let (sink, said) = sink();
            let bits: Vec<u8> = (0..32).map(|bit| (number >> bit & 1) as u8).collect();
            sink.put(0, ONE, &bits).expect("a size");
            assert_eq!(*said.lock().expect("no test panics there"), [line]);
        }
        let (sink, _) = sink();
        let mut bits = [0; 32];
        bits[0] = 2;
        sink.put(0, ONE, &bits).expect_err("a byte is a bit");
    }

    #[test]
    fn what_is_no_size_is_refused() {
        let (sink, said) = sink();
        let refused = |port, slice, bytes: &[u8]| {
            sink.put(port, slice, bytes)
                .expect_err("no size")
                .to_string()
        };
        for said in [
            refused(1, ONE, &[0; 4]),
            refused(0, Slice { rows: 2, ..ONE }, &[0; 8]),
            refused(0, Slice { first: 1, ..ONE }, &[0; 4]),
            refused(0, ONE, &[0; 8]),
        ] {
            assert!(said.contains("this is a mistake of the program"), "{said}");
        }
        let beyond = refused(0, ONE, &4_u32.to_le_bytes());
        assert_eq!(
            beyond,
            "the parties have opened a size that no relation of so many rows has"
        );
        assert!(said.lock().expect("no test panics there").is_empty());
    }
}
