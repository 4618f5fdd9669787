//! A party's store, as runs use it: the shares that a job keeps, the shares that it loads.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use veil_circuit::Per;
use veil_job::{DataError, JobSpec, ShareSink, ShareSource, Slice, StoredPort};
use veil_math::Ring;
use veil_session::{PartyId, PlanHash};

use crate::error::Unfit;
use crate::fewer::Fewer;
use crate::{BlockRows, Description, Expected, Member, Port, Reader, StoreError, StoreKey, Writer};

/// The datasets of one party that are shared among one set of parties.
#[derive(Clone, Debug)]
pub struct Store {
    /// The folder of datasets.
    pub root: PathBuf,
    /// The party's key.
    pub key: StoreKey,
    /// Which of them it is.
    pub party: PartyId,
    /// The parties that share the values, in the order of the scheme: of the job, or of a dataset that the job shares again.
    pub parties: Vec<Member>,
}

/// A dataset with all that it must be.
#[derive(Clone, Copy, Debug)]
pub struct Whole<'a> {
    /// The dataset's name.
    pub dataset: &'a str,
    /// The plan whose run has made it.
    pub made_by: PlanHash,
    /// Ring of its shares.
    pub ring: Ring,
    /// Names and widths of its ports. Each has a value in every row.
    pub ports: &'a [(String, u32)],
    /// Names and rows of its blocks.
    pub blocks: &'a [(String, u64)],
    /// What its columns mean.
    pub schema: &'a str,
}

/// What passes of a program load or keep, by the number of the pass.
pub type ByPass<T> = Vec<(usize, Arc<T>)>;

impl Store {
    /// What the blocks of `job` load from datasets of earlier jobs; nothing if none does.
    ///
    /// # Errors
    /// [`StoreError`] if the store has no dataset of a name, if it cannot be read, or if it is not the one that the job declares.
    pub fn loads(&self, job: &JobSpec) -> Result<Option<Loads>, StoreError> {
        self.loads_with(job, &mut HashMap::new())
    }

    /// What the passes of a program load, by the number of the pass: each dataset is opened once.
    ///
    /// # Errors
    /// [`StoreError`] as of [`Store::loads`].
    pub fn loads_of<'a>(
        &self,
        passes: impl Iterator<Item = (usize, &'a JobSpec)>,
    ) -> Result<ByPass<dyn ShareSource>, StoreError> {
        let mut opened = HashMap::new();
        let mut all = Vec::new();
        for (pass, job) in passes {
            if let Some(loads) = self.loads_with(job, &mut opened)? {
                all.push((pass, Arc::new(loads) as Arc<dyn ShareSource>));
            }
        }
        Ok(all)
    }

    /// Where what the passes of a program keep goes, by the number of the pass, in a run of `plan`; each pass has its own chunks. `found` is what a pass keeps only
    /// with what the run finds out of it.
    ///
    /// # Errors
    /// [`StoreError`] as of [`Writer::create`]: then no dataset is left of those that were begun.
    pub fn kept_of<'a>(
        &self,
        passes: impl Iterator<Item = (usize, &'a JobSpec, u32)>,
        plan: PlanHash,
        found: impl Fn(usize) -> Option<Arc<Found>>,
    ) -> Result<ByPass<dyn ShareSink>, StoreError> {
        let mut all = Vec::new();
        for (pass, job, chunk_rows) in passes {
            if let Some(keeps) = self.kept(job, plan, chunk_rows)? {
                let keeps = Keeps {
                    found: found(pass),
                    ..keeps
                };
                all.push((pass, Arc::new(keeps) as Arc<dyn ShareSink>));
            }
        }
        Ok(all)
    }

    fn loads_with(
        &self,
        job: &JobSpec,
        opened: &mut HashMap<(String, String), Arc<Reader>>,
    ) -> Result<Option<Loads>, StoreError> {
        let mut blocks: Vec<Option<BlockSource>> = job.blocks.iter().map(|_| None).collect();
        for wanted in &job.datasets {
            let (schema, rows) = (Some(&wanted.schema[..]), Some(wanted.rows));
            // A program declares a dataset in one way, and loads it over one ring.
            let key = (wanted.name.clone(), wanted.schema.clone());
            let known = opened.get(&key).filter(|known| {
                known.asked_for() == job.circuit.ring
                    && rows == Some(known.head().description.rows())
            });
            let reader = match known {
                Some(known) => Arc::clone(known),
                None => self.open(job.circuit.ring, &wanted.name, None, schema, rows)?,
            };
            opened.insert(key, Arc::clone(&reader));
            let mut ports = vec![None; job.circuit.inputs.len()];
            for (input, kept) in &wanted.ports {
                ports[*input] = Some(*kept);
            }
            blocks[wanted.block as usize] = Some(BlockSource {
                reader,
                first: 0,
                ports,
            });
        }
        let any = blocks.iter().any(Option::is_some);
        Ok(any.then(|| Loads::new(blocks)))
    }

    /// Where what `job` keeps goes, in a run of `plan` in chunks of `chunk_rows`; nothing if it keeps nothing.
    ///
    /// # Errors
    /// [`StoreError`] as of [`Writer::create`].
    pub fn kept(
        &self,
        job: &JobSpec,
        plan: PlanHash,
        chunk_rows: u32,
    ) -> Result<Option<Keeps>, StoreError> {
        let keep = job.keep.as_ref();
        keep.map(|keep| self.keeps(job, plan, chunk_rows, &keep.name, &keep.schema))
            .transpose()
    }

    /// Makes the dataset `name` of what `job`, planned as `plan` in chunks of `chunk_rows`, keeps.
    ///
    /// # Errors
    /// [`StoreError`] as of [`Writer::create`].
    pub fn keeps(
        &self,
        job: &JobSpec,
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
            found: None,
        })
    }

    /// Opens dataset `name` for a job over `ring`.
    fn open(
        &self,
        ring: Ring,
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
            ring,
            plan,
            schema,
            rows,
        };
        Reader::open(&self.root, name, &self.key, &expected).map(Arc::new)
    }

    /// What the compute stage of a durable job loads: dataset `name`, which plan `input` has made, block by block.
    ///
    /// # Errors
    /// [`StoreError`] if there is no such dataset, if it cannot be read, or if another plan has made it.
    pub fn resume(&self, job: &JobSpec, name: &str, input: PlanHash) -> Result<Loads, StoreError> {
        let rows = Some(job.rows());
        let reader = self.open(job.circuit.ring, name, Some(input), None, rows)?;
        let blocks = job.blocks.iter().map(|block| block.rows);
        Ok(Loads::whole(&reader, job.circuit.inputs.len(), blocks))
    }

    /// The same as one of three parties of whom each has its shares of four: without party `dropped`.
    ///
    /// # Panics
    /// If that is this party.
    ///
    /// # Errors
    /// [`StoreError`] as of [`Store::resume`].
    pub fn resume_without(
        &self,
        job: &JobSpec,
        name: &str,
        input: PlanHash,
        dropped: PartyId,
    ) -> Result<Arc<dyn ShareSource>, StoreError> {
        let four = Arc::new(self.resume(job, name, input)?);
        let ring = job.circuit.ring;
        Ok(Arc::new(Fewer::new(ring, four, self.party, dropped)))
    }

    /// A dataset as a whole, if it is this one: what its party supplies where it is shared again.
    ///
    /// # Errors
    /// [`StoreError`] if there is no such dataset, if it cannot be read, or if its plan, ports, rows or schema are others.
    pub fn whole(&self, of: &Whole<'_>) -> Result<Loads, StoreError> {
        let reader = self.open(of.ring, of.dataset, None, None, None)?;
        let own = &reader.head().description;
        let theirs = own.ports.iter().filter(|port| !port.once);
        let same = theirs
            .map(|port| (&port.name, port.width))
            .eq(of.ports.iter().map(|(name, width)| (name, *width)));
        let rows = of.blocks.iter().map(|block| block.1).sum();
        let why = if own.plan != of.made_by {
            Unfit::Dataset {
                theirs: own.plan.to_string(),
                ours: of.made_by.to_string(),
            }
        } else if own.schema != of.schema || !same || own.ports.len() != of.ports.len() {
            Unfit::Schema {
                theirs: own.schema.clone(),
                ours: of.schema.to_owned(),
            }
        } else if own.rows() != rows {
            Unfit::Rows {
                theirs: own.rows(),
                ours: rows,
            }
        } else {
            let blocks = of.blocks.iter().map(|block| block.1);
            return Ok(Loads::whole(&reader, of.ports.len(), blocks));
        };
        Err(StoreError::Unfit {
            name: of.dataset.to_owned(),
            why,
        })
    }
}

fn port(port: &StoredPort) -> Port {
    Port {
        name: port.name.clone(),
        width: port.width,
        once: port.per == Per::Job,
    }
}

fn blocks(job: &JobSpec) -> Vec<BlockRows> {
    let block = |block: &veil_job::Block| BlockRows {
        name: block.name.clone(),
        rows: block.rows,
    };
    job.blocks.iter().map(block).collect()
}

/// What a run finds out of the rows that it keeps, as a line of the dataset's schema: it is known when the run is over, and not before.
#[derive(Debug, Default)]
pub struct Found(OnceLock<String>);

impl Found {
    /// Says what it is.
    ///
    /// # Errors
    /// [`DataError::Own`] if the run has said something before.
    pub fn set(&self, line: String) -> Result<(), DataError> {
        let set = self.0.set(line);
        set.map_err(|_| DataError::own("a run says twice what it finds out of what it keeps; this is a mistake of the program"))
    }
}

/// Keeps what a run gives, under the numbers of its output ports.
pub struct Keeps {
    /// The output port behind each port of the dataset.
    ports: Vec<usize>,
    writer: Writer,
    /// What has to be known before the dataset is complete.
    found: Option<Arc<Found>>,
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
        let found = self.found.as_ref().map(|found| found.0.get());
        let found = match found {
            None => None,
            Some(Some(line)) => Some(line.as_str()),
            Some(None) => return Err(DataError::Incomplete { got: 0, want: 1 }),
        };
        Ok(self.writer.finish_with(found)?)
    }
}

/// The source of one block's shares.
pub struct BlockSource {
    /// The dataset.
    pub reader: Arc<Reader>,
    /// The row of the dataset, counted over its blocks, that is the first of the job's block.
    pub first: u64,
    /// The port of the dataset behind each input port of the job, if it is loaded.
    pub ports: Vec<Option<usize>>,
}

/// Loads what a run asks for, block by block, under the numbers of its input ports.
pub struct Loads {
    blocks: Vec<Option<BlockSource>>,
}

impl Loads {
    /// From a source for each block of the job that loads something.
    pub fn new(blocks: Vec<Option<BlockSource>>) -> Self {
        Loads { blocks }
    }

    /// All `ports` of a dataset, and all its rows, in blocks of so many rows.
    fn whole(reader: &Arc<Reader>, ports: usize, blocks: impl Iterator<Item = u64>) -> Self {
        let ports: Vec<Option<usize>> = (0..ports).map(Some).collect();
        let mut first = 0;
        let blocks = blocks.map(|rows| {
            let source = BlockSource {
                reader: Arc::clone(reader),
                first,
                ports: ports.clone(),
            };
            first += rows;
            Some(source)
        });
        Loads::new(blocks.collect())
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
        let source = self.blocks.get(block as usize).and_then(Option::as_ref);
        let found = source.and_then(|source| Some((source, (*source.ports.get(port)?)?)));
        let (source, own) = found.ok_or_else(|| DataError::out_of_reach(port, slice))?;
        if source.reader.has_once(own) {
            return Ok(source.reader.load(own, component, slice, into)?);
        }
        let first = source.first.saturating_add(first);
        Ok(source.reader.load_rows(own, component, first, rows, into)?)
    }
}
