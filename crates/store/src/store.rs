//! A party's store, as runs use it: the shares that a job keeps, the shares that it loads.

use std::path::PathBuf;
use std::sync::Arc;

use veil_circuit::Per;
use veil_program::{DataError, Job, Lowered, ShareSink, ShareSource, Slice, StoredPort};
use veil_session::{PartyId, PlanHash};

use crate::{Description, Expected, Member, Port, Reader, Rows, StoreError, StoreKey, Writer};

/// The datasets of one party, for jobs of one set of parties.
#[derive(Clone, Debug)]
pub struct Store {
    /// The folder of datasets.
    pub root: PathBuf,
    /// The party's key.
    pub key: StoreKey,
    /// Which party of the job it is.
    pub party: PartyId,
    /// The parties of the job.
    pub parties: [Member; 3],
}

impl Store {
    /// What the blocks of `job` load from datasets of earlier jobs; nothing if none does.
    pub fn loads(&self, job: &Job) -> Result<Option<Loads>, StoreError> {
        let mut blocks: Vec<Option<Part>> = job.lowered().blocks.iter().map(|_| None).collect();
        for wanted in job.datasets() {
            let (schema, rows) = (Some(&wanted.schema[..]), Some(wanted.rows));
            let reader = self.open(job.lowered(), &wanted.name, None, schema, rows)?;
            let mut ports = vec![None; job.lowered().circuit.inputs.len()];
            for (input, kept) in wanted.ports {
                ports[input] = Some(kept);
            }
            blocks[wanted.block as usize] = Some(Part {
                reader,
                first: 0,
                ports,
            });
        }
        let any = blocks.iter().any(Option::is_some);
        Ok(any.then(|| Loads::new(blocks)))
    }

    /// Where what `job` keeps goes, in a run of `plan` in chunks of `chunk_rows`; nothing if it keeps nothing.
    pub fn kept(
        &self,
        job: &Job,
        plan: PlanHash,
        chunk_rows: u32,
    ) -> Result<Option<Keeps>, StoreError> {
        let keep = job.keeps();
        keep.map(|keep| self.keeps(job.lowered(), plan, chunk_rows, &keep.name, &keep.schema))
            .transpose()
    }

    /// Makes the dataset `name` of what `job`, planned as `plan` in chunks of `chunk_rows`, keeps.
    pub fn keeps(
        &self,
        job: &Lowered,
        plan: PlanHash,
        chunk_rows: u32,
        name: &str,
        schema: &str,
    ) -> Result<Keeps, StoreError> {
        let kept = job.keeps();
        let description = Description {
            name: name.to_owned(),
            plan,
            ring: job.circuit.ring,
            party: self.party,
            parties: self.parties.clone(),
            ports: kept.iter().map(port).collect(),
            blocks: blocks(job),
            schema: schema.to_owned(),
            chunk_rows,
        };
        Ok(Keeps {
            ports: kept.iter().map(|port| port.port).collect(),
            writer: Writer::create(&self.root, &self.key, &description)?,
        })
    }

    /// Opens dataset `name` for `job`.
    pub fn open(
        &self,
        job: &Lowered,
        name: &str,
        plan: Option<PlanHash>,
        schema: Option<&str>,
        rows: Option<u64>,
    ) -> Result<Arc<Reader>, StoreError> {
        // The key of the store says whose it is; the party may have another identity by now.
        let mut parties = self.parties.clone();
        parties[self.party.index()].fingerprints.clear();
        let expected = Expected {
            party: self.party,
            parties: &parties,
            ring: job.circuit.ring,
            plan,
            schema,
            rows,
        };
        Reader::open(&self.root, name, &self.key, &expected).map(Arc::new)
    }

    /// What the compute stage of a durable job loads: dataset `name`, which plan `input` has made, block by block.
    pub fn resume(&self, job: &Lowered, name: &str, input: PlanHash) -> Result<Loads, StoreError> {
        let reader = self.open(job, name, Some(input), None, Some(job.rows()))?;
        let ports: Vec<Option<usize>> = (0..job.circuit.inputs.len()).map(Some).collect();
        let mut first = 0;
        let blocks = job.blocks.iter().map(|block| {
            let part = Part {
                reader: Arc::clone(&reader),
                first,
                ports: ports.clone(),
            };
            first += block.rows;
            Some(part)
        });
        Ok(Loads::new(blocks.collect()))
    }
}

fn port(port: &StoredPort) -> Port {
    Port {
        name: port.name.clone(),
        width: port.width,
        once: port.per == Per::Job,
    }
}

fn blocks(job: &Lowered) -> Vec<Rows> {
    let block = |block: &veil_program::Block| Rows {
        name: block.name.clone(),
        rows: block.rows,
    };
    job.blocks.iter().map(block).collect()
}

/// Keeps what a run gives, under the numbers of its output ports.
pub struct Keeps {
    /// The output port behind each port of the dataset.
    ports: Vec<usize>,
    writer: Writer,
}

impl ShareSink for Keeps {
    fn keep(
        &self,
        port: usize,
        component: u8,
        slice: Slice,
        shares: &[u8],
    ) -> Result<(), DataError> {
        let own = self.ports.iter().position(|output| *output == port);
        let own = own.ok_or_else(|| DataError::out_of_reach(port, slice))?;
        Ok(self.writer.keep(own, component, slice, shares)?)
    }

    fn finish(&self) -> Result<(), DataError> {
        Ok(self.writer.finish()?)
    }
}

/// What one block of a job is loaded from.
pub struct Part {
    /// The dataset.
    pub reader: Arc<Reader>,
    /// The row of the dataset, counted over its blocks, that is the first of the job's block.
    pub first: u64,
    /// The port of the dataset behind each input port of the job, if it is loaded.
    pub ports: Vec<Option<usize>>,
}

/// Loads what a run asks for, block by block, under the numbers of its input ports.
pub struct Loads {
    blocks: Vec<Option<Part>>,
}

impl Loads {
    /// From a part for each block of the job that loads something.
    pub fn new(blocks: Vec<Option<Part>>) -> Self {
        Loads { blocks }
    }
}

impl ShareSource for Loads {
    fn load(
        &self,
        port: usize,
        component: u8,
        slice: Slice,
        into: &mut [u8],
    ) -> Result<(), DataError> {
        let Slice { block, first, rows } = slice;
        let part = self.blocks.get(block as usize).and_then(Option::as_ref);
        let found = part.and_then(|part| Some((part, (*part.ports.get(port)?)?)));
        let (part, own) = found.ok_or_else(|| DataError::out_of_reach(port, slice))?;
        if part.reader.has_once(own) {
            return Ok(part.reader.load(own, component, slice, into)?);
        }
        let first = part.first.saturating_add(first);
        Ok(part.reader.load_rows(own, component, first, rows, into)?)
    }
}
