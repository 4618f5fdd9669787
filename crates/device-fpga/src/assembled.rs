//! Programs as a core runs them, and those that were assembled already.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use veil_device::{Layout, Program};

use crate::garble::program::Layer;
use crate::garble::{Capacity, Image, TooLarge};

/// Words of bundles that are kept, at most: 64 MiB. What comes later is assembled whenever it is loaded.
const MOST: usize = 1 << 24;

/// Rows of a run at most: repetitions whose labels are on their way at once.
pub(crate) const ROWS: u32 = 1 << 10;

/// Programs that were assembled, for all devices that are given the same: a caller that asks whether a program fits has assembled it for
/// the device that runs it. Programs are public.
#[derive(Clone, Default, Debug)]
pub struct Assembled(Arc<Mutex<Kept>>);

#[derive(Default, Debug)]
struct Kept {
    programs: HashMap<Key, Arc<Loaded>>,
    words: usize,
    assembled: u64,
}

/// All that an image follows from.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Key {
    program: Arc<Program>,
    capacity: Capacity,
    slots: u32,
    job_wide: u32,
    repetitions: u32,
}

/// A program, as the card runs it.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) program: Arc<Program>,
    pub(crate) layer: Layer,
    pub(crate) image: Image,
}

impl Assembled {
    /// Programs that were assembled so far, not counting those that were there.
    pub fn count(&self) -> u64 {
        self.kept(|kept| kept.assembled)
    }

    /// A program over labels that was checked, for workspaces of this layout.
    pub(crate) fn program(
        &self,
        program: &Arc<Program>,
        layout: &Layout,
        capacity: &Capacity,
    ) -> Result<Arc<Loaded>, TooLarge> {
        let key = Key {
            program: Arc::clone(program),
            capacity: *capacity,
            slots: layout.regions[program.slots as usize].count,
            job_wide: layout.regions[program.job_wide as usize].count,
            repetitions: layout.chunk_rows.min(ROWS),
        };
        if let Some(there) = self.kept(|kept| kept.programs.get(&key).cloned()) {
            return Ok(there);
        }
        // No caller waits for another here: two at once do it twice, and get the same.
        let layer = Layer::of(program, key.slots, key.job_wide);
        let image = Image::of(&layer.body, capacity, key.repetitions.into())?;
        let loaded = Arc::new(Loaded {
            program: Arc::clone(program),
            layer,
            image,
        });
        self.kept(|kept| {
            kept.assembled += 1;
            let words = kept.words + loaded.image.bundles.len();
            if words <= MOST && kept.programs.insert(key, Arc::clone(&loaded)).is_none() {
                kept.words = words;
            }
        });
        Ok(loaded)
    }

    fn kept<T>(&self, f: impl FnOnce(&mut Kept) -> T) -> T {
        // Every change leaves it whole.
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
