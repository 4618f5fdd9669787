//! Parts of a table that were parsed a moment ago: the ports of one slice read the same rows one after another.

use std::{
    sync::{Arc, Mutex, OnceLock, PoisonError},
    thread,
};

use super::cells::Chunk;
use veil_job::DataError;

/// Parts that a lane has in use: four of 4096 rows make the longest slice; twice that, as lanes are not in step.
const PER_LANE: usize = 8;

/// The parts that were used last. Many threads at once; a part that several want is parsed by one of them.
#[derive(Debug)]
pub(super) struct Cache {
    /// The one that was used last comes last.
    parts: Mutex<Vec<(usize, Arc<Part>)>>,
    most: usize,
}

#[derive(Debug, Default)]
struct Part {
    chunk: OnceLock<Arc<Chunk>>,
    /// Held by the thread that parses.
    parsing: Mutex<()>,
}

impl Cache {
    /// For a table of so many parts.
    pub(super) fn new(parts: usize) -> Self {
        let lanes = thread::available_parallelism().map_or(1, usize::from);
        Self {
            parts: Mutex::default(),
            most: (PER_LANE * lanes).clamp(16, 128).min(parts.max(1)),
        }
    }

    /// Part `index`, parsed if it is not here: into a chunk that no reader needs any more, if there is one.
    pub(super) fn get(
        &self,
        index: usize,
        parse: impl FnOnce(Option<Chunk>) -> Result<Chunk, DataError>,
    ) -> Result<Arc<Chunk>, DataError> {
        let (part, old) = self.place(index);
        if let Some(chunk) = part.chunk.get() {
            return Ok(Arc::clone(chunk));
        }
        let _parsing = part.parsing.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(chunk) = part.chunk.get() {
            return Ok(Arc::clone(chunk));
        }
        let old = old.and_then(|part| Arc::into_inner(part)?.chunk.into_inner());
        let chunk = Arc::new(parse(old.and_then(Arc::into_inner))?);
        let _ = part.chunk.set(Arc::clone(&chunk));
        Ok(chunk)
    }

    /// The place of a part, and one that had to go for it.
    fn place(&self, index: usize) -> (Arc<Part>, Option<Arc<Part>>) {
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let here = parts.iter().rposition(|(other, _)| *other == index);
        let (part, old) = if let Some(place) = here {
            (parts.remove(place).1, None)
        } else {
            let old = (parts.len() >= self.most).then(|| parts.remove(0).1);
            (Arc::default(), old)
        };
        parts.push((index, Arc::clone(&part)));
        (part, old)
    }
}
