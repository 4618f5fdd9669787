//! Programs over shares, as cores run them.

use veil_device::{ColumnType, Layout, Program};
use veil_math::Ring;

use super::command::{LONGEST, WORD};
use super::steps::{Destination, Steps};

/// A program over shares, as a core runs it.
pub(super) struct Loaded {
    pub(super) steps: Steps,
    pub(super) ring: Ring,
    /// Components of a share: two among three parties, three among four.
    pub(super) parts: usize,
    /// Regions of slots, job-wide values and sums.
    pub(super) regions: [u16; 3],
}

impl Loaded {
    /// A program that was checked, for workspaces of this layout, if its values are shares; `words` are those of a beat, by components. Or says
    /// what there is too much of.
    pub(super) fn of(
        program: &Program,
        layout: &Layout,
        words: impl Fn(usize) -> Option<usize>,
    ) -> Result<Option<Self>, String> {
        let slots = &layout.regions[program.slots as usize];
        let parts = usize::from(slots.components);
        let Some(words) = words(parts).filter(|_| slots.column == ColumnType::Rows(program.ring))
        else {
            return Ok(None);
        };
        let bytes = program.ring.bytes(layout.chunk_rows.into()) as usize;
        let beats = bytes.div_ceil(WORD * words);
        let steps = Steps::of(program);
        let pairs = steps.most_pairs();
        if beats > LONGEST {
            return Err(format!(
                "a column of {beats} beats, where commands have {LONGEST} at most: chunks have fewer rows with more lanes"
            ));
        }
        if pairs > LONGEST {
            return Err(format!(
                "a sum of {pairs} products, where commands have {LONGEST} at most"
            ));
        }
        Ok(Some(Loaded {
            steps,
            ring: program.ring,
            parts,
            regions: [program.slots, program.job_wide, program.sums],
        }))
    }

    /// The products of rows and those that are summed, if those of a kind have all places of a message: how many there are.
    pub(super) fn counts(&self) -> [Option<u32>; 2] {
        self.products().map(|products| {
            let dense = (0..).zip(&products).all(|(at, (index, _))| at == *index);
            dense.then_some(products.len() as u32)
        })
    }

    /// The products of rows and those that are summed, in the order of their messages: place there, and region and item of the result.
    pub(super) fn products(&self) -> [Vec<(u32, (u16, u32))>; 2] {
        let [slots, _, sums] = self.regions;
        let mut products = [Vec::new(), Vec::new()];
        for step in &self.steps.all {
            match step.place {
                Destination::Product { slot, index } => products[0].push((index, (slots, slot))),
                Destination::ProductSum { item, index } => products[1].push((index, (sums, item))),
                Destination::Value | Destination::Sum { .. } => {}
            }
        }
        products
    }

    /// Whether no two products have one result.
    pub(super) fn apart(&self) -> bool {
        let results = self.products().into_iter().flatten().map(|(_, at)| at);
        let mut results: Vec<(u16, u32)> = results.collect();
        results.sort_unstable();
        results.windows(2).all(|two| two[0] != two[1])
    }
}
