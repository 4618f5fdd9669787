//! Shares at rest, as a job names them: what it loads, and what it keeps.

use crate::{Job, Kind, Resharing, stats::Stats};

/// A dataset that a block of a job is loaded from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DatasetRef {
    /// The dataset's name.
    pub name: String,
    /// Index of the block.
    pub block: u32,
    /// Input ports of the job, and the ports of the dataset that they load.
    pub ports: Vec<(usize, usize)>,
    /// The schema that the dataset's columns must have. It does not fix the ring: shares over 128 bits can be loaded into a job over 64
    /// bits by truncation, not the other way round.
    pub schema: String,
    /// Rows that the dataset must have, in all its blocks together.
    pub rows: u64,
}

/// The dataset that a job keeps.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Keep {
    /// The dataset's name.
    pub name: String,
    /// The output port of the job behind each port of the dataset.
    pub ports: Vec<usize>,
    /// The schema of the columns.
    pub schema: String,
}

impl Job {
    fn stats_of(&self) -> Option<&Stats> {
        match self.kind() {
            Kind::Stats(stats) => Some(stats),
            Kind::Circuit(_) | Kind::Reshare(_) => None,
        }
    }

    /// The resharing, if the job is one.
    pub fn resharing(&self) -> Option<&Resharing> {
        match self.kind() {
            Kind::Reshare(resharing) => Some(resharing),
            Kind::Stats(_) | Kind::Circuit(_) => None,
        }
    }

    /// Whether its parties need a place for shares.
    pub fn needs_stores(&self) -> bool {
        self.is_durable() || self.keeps().is_some() || !self.datasets().is_empty()
    }

    /// The datasets that the job loads, block by block.
    pub fn datasets(&self) -> Vec<DatasetRef> {
        let Some(stats) = self.stats_of() else {
            return Vec::new();
        };
        let ports: Vec<(usize, usize)> = self.columns_of_ports().enumerate().collect();
        let blocks = stats.blocks.iter().enumerate();
        blocks
            .filter_map(|(index, block)| {
                Some(DatasetRef {
                    name: block.stored.clone()?,
                    block: index as u32,
                    ports: ports.clone(),
                    schema: stats.schema(),
                    rows: block.rows,
                })
            })
            .collect()
    }

    /// The dataset that the job keeps, if it keeps one.
    pub fn keeps(&self) -> Option<Keep> {
        let (name, schema) = match self.kind() {
            Kind::Stats(stats) => (stats.keep.as_ref()?.name.clone(), stats.schema()),
            Kind::Reshare(resharing) => (resharing.name.clone(), resharing.schema.clone()),
            Kind::Circuit(_) => return None,
        };
        let ports = self.lowered().keeps();
        Some(Keep {
            name,
            ports: ports.into_iter().map(|port| port.port).collect(),
            schema,
        })
    }
}
