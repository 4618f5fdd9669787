//! A party's keys as input of an intersection.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use zeroize::Zeroizing;

use veil_job::{DataError, Holder, KEY_BYTES, Slice, Source};

use super::Intersection;
use super::reading::Reading;
use crate::table::Watch;

/// All keys of a party, and behind them keys that no row has, as many as there may be.
pub(crate) struct KeySource {
    port: usize,
    reading: Arc<Reading>,
    /// Keys that no row has.
    others: Zeroizing<Vec<u8>>,
}

impl fmt::Debug for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeySource of port {}", self.port)
    }
}

impl KeySource {
    /// The keys of `holder`, whose table is in a file.
    ///
    /// # Errors
    /// [`DataError`] with file, line and column if the table is not what the job declares, or if the operating system has no random bytes.
    pub(crate) fn read(
        of: &Intersection,
        holder: Holder,
        file: &Path,
        watch: Watch<'_>,
    ) -> Result<Self, DataError> {
        let (port, reading) = of.reading(holder, file, watch)?;
        let all = of.keys()[port] as usize * KEY_BYTES;
        let mut others = Zeroizing::new(vec![0; all.saturating_sub(reading.keys().len())]);
        getrandom::fill(&mut others).map_err(DataError::own)?;
        Ok(Self {
            port,
            reading,
            others,
        })
    }
}

impl Source for KeySource {
    fn fill(&self, port: usize, slice: Slice, into: &mut [u8]) -> Result<(), DataError> {
        let beyond = || DataError::out_of_reach(port, slice);
        if port != self.port || (slice.block, slice.first) != (0, 0) {
            return Err(beyond());
        }
        let keys = self.reading.keys();
        if into.len() != keys.len() + self.others.len() {
            return Err(beyond());
        }
        let (known, others) = into.split_at_mut(keys.len());
        known.copy_from_slice(keys);
        others.copy_from_slice(&self.others);
        Ok(())
    }
}
