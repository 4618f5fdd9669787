//! Shares at rest, as a job names them: what it loads, and what it keeps.

use veil_job::{DatasetRef, InputSpec};

use crate::stats::{Opening, Stats};
use crate::{Job, Kind, Resharing};

impl Job {
    /// What a job that shares a dataset again is about.
    pub fn resharing(&self) -> Option<&Resharing> {
        match self.kind() {
            Kind::Reshare(resharing) => Some(resharing),
            Kind::Stats(_) | Kind::Circuit(_) | Kind::Query(_) | Kind::Intersection(_) => None,
        }
    }

    /// Whether its parties need a place for shares.
    pub fn needs_stores(&self) -> bool {
        let spec = self.spec();
        self.is_durable() || spec.keep.is_some() || !spec.datasets.is_empty()
    }
}

impl Stats {
    /// How each column of each block is read.
    pub(crate) fn inputs(&self) -> Vec<InputSpec> {
        let blocks = self.blocks.iter();
        let each = blocks.flat_map(|block| {
            let columns = self.columns.iter().zip(&block.holders);
            columns.map(|(column, holder)| InputSpec {
                holder: *holder,
                block: Some(block.name.clone()),
                column: Some(column.name.clone()),
                port: None,
                format: match &block.stored {
                    None => format!("{}{}", column.type_name(), block.notation(*holder).makes()),
                    Some(dataset) => {
                        format!("{}, kept as shares in `{dataset}`", column.type_name())
                    }
                },
            })
        });
        each.collect()
    }

    /// The datasets that blocks are loaded from.
    pub(crate) fn datasets(&self, opening: &Opening) -> Vec<DatasetRef> {
        let ports: Vec<(usize, usize)> = opening.columns.iter().copied().enumerate().collect();
        let blocks = self.blocks.iter().enumerate();
        blocks
            .filter_map(|(index, block)| {
                Some(DatasetRef {
                    name: block.stored.clone()?,
                    block: index as u32,
                    ports: ports.clone(),
                    schema: self.schema(),
                    rows: block.rows,
                })
            })
            .collect()
    }
}
