//! A cleartext twin of a run in one process: every layer's products, sums and openings compared as they are made.
//!
//! All parties run in this process, so that what they send each other can be put together: the messages of a layer add up to its
//! products. The twin evaluates the same plan on the same inputs in the clear. The first layer that differs is named, and the run
//! ends. This lays open every intermediate value; it is for generated data and for data of one's own, and there is no way to it for
//! a run over a network.
//!
//! The twin compares products per row and sums of products of every layer, and every opened value. An input that is shared wrongly shows at
//! the first of them that reads it.

mod ends;
mod report;
mod twin;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use veil_circuit::Per;
use veil_job::{DataError, Sink, Slice, Source};
use veil_link::Link;
use veil_protocol::{Chunk, Gives, LayerPlan, Meaning, Plan, Protocol};
use veil_session::{Channel, Peer};

use ends::{Compares, Tapped};
pub use report::{Compared, Diverged, Divergence, NoShadow};
use twin::{Column, Twin, differ, unpack};

/// A shadow of one run.
pub struct Shadow {
    plan: Arc<Plan>,
    protocol: Arc<dyn Protocol>,
    sources: BTreeMap<Peer, Arc<dyn Source>>,
    /// Times that an opened value of a row arrives somewhere.
    readers: usize,
    diverged: AtomicBool,
    state: Mutex<State>,
}

/// Chunk, place and part of messages that belong together.
type Name = (u32, u32, u16);

/// What came of them, and from whom.
type Parts = Vec<(Peer, Vec<u8>)>;

#[derive(Default)]
struct State {
    /// Job-wide values, when they are known.
    job_wide: Option<Vec<u128>>,
    chunks: BTreeMap<u32, Going>,
    /// Chunks that were compared to their end.
    over: BTreeSet<u32>,
    totals: Vec<u128>,
    /// Messages of which some are missing.
    parts: BTreeMap<Name, Parts>,
    layers: BTreeSet<usize>,
    compared: Compared,
    verdict: Option<Divergence>,
}

/// A chunk on its way.
struct Going {
    twin: Twin,
    chunk: Chunk,
    /// Layers that the twin has run.
    ran: usize,
    /// Opened ports that are still to come.
    left: usize,
}

impl Shadow {
    /// A shadow of a run of `plan` with these values. `protocol` is any party's.
    ///
    /// # Errors
    /// [`NoShadow`] if the plan has values that no clear value stands for: conversions, random gates or a circuit on totals
    /// ([`NoShadow::Mixed`]), cycles ([`NoShadow::Sequential`]), MACs ([`NoShadow::Authenticated`]), or stored shares
    /// ([`NoShadow::Stored`]); [`NoShadow::Missing`] if `sources` lacks a holder of a block.
    pub fn new(
        plan: &Arc<Plan>,
        protocol: Arc<dyn Protocol>,
        sources: BTreeMap<Peer, Arc<dyn Source>>,
    ) -> Result<Arc<Self>, NoShadow> {
        if plan.is_mixed() || plan.is_random() || plan.totals_plan.is_some() {
            return Err(NoShadow::Mixed);
        }
        if plan.cycles.is_some() {
            return Err(NoShadow::Sequential);
        }
        if plan.has_macs() {
            return Err(NoShadow::Authenticated);
        }
        for block in &plan.job.blocks {
            for holder in &block.holders {
                let peer = holder
                    .peer()
                    .ok_or_else(|| NoShadow::Stored(block.name.clone()))?;
                if !sources.contains_key(&peer) {
                    return Err(NoShadow::Missing(peer));
                }
            }
        }
        let peers = crate::participants(plan);
        let outputs = plan.outputs.iter().zip(&plan.job.audiences);
        let readers = outputs
            .filter(|(output, _)| output.gives == Gives::Row)
            .map(|(_, audience)| {
                peers
                    .iter()
                    .filter(|peer| audience.includes(**peer))
                    .count()
            })
            .sum();
        let state = State {
            totals: vec![0; plan.sums as usize],
            ..State::default()
        };
        Ok(Arc::new(Shadow {
            plan: Arc::clone(plan),
            protocol,
            sources,
            readers,
            diverged: AtomicBool::new(false),
            state: Mutex::new(state),
        }))
    }

    /// A link whose messages are compared, of participant `me`.
    pub fn link(self: &Arc<Self>, me: Peer, inner: Box<dyn Link>) -> Box<dyn Link> {
        Box::new(Tapped {
            inner,
            me,
            shadow: Arc::clone(self),
        })
    }

    /// A sink whose values are compared before it gets them.
    pub fn sink(self: &Arc<Self>, inner: Arc<dyn Sink>) -> Arc<dyn Sink> {
        Arc::new(Compares {
            inner,
            shadow: Arc::clone(self),
        })
    }

    /// The counts of compared values, or the first difference.
    ///
    /// # Errors
    /// [`Divergence`] for the first value that differed.
    pub fn verdict(&self) -> Result<Compared, Divergence> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match &state.verdict {
            Some(divergence) => Err(divergence.clone()),
            None => Ok(Compared {
                layers: state.layers.len(),
                ..state.compared
            }),
        }
    }

    /// Runs `look`, unless a difference was found before; notes the one that it finds.
    fn compare(
        &self,
        look: impl FnOnce(&mut State) -> Result<Option<Divergence>, DataError>,
    ) -> Result<(), DataError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.verdict.is_none() {
            state.verdict = look(&mut state)?;
            if state.verdict.is_some() {
                self.diverged.store(true, Ordering::Release);
            }
        }
        Ok(())
    }

    /// A party posted a message.
    fn posted(&self, me: Peer, at: Channel, bytes: &[u8]) -> Result<(), DataError> {
        let Some(meaning) = self.protocol.meaning(at.step.place, at.part) else {
            return Ok(());
        };
        self.compare(|state| {
            let name = (at.frame.chunk, at.step.place, at.part);
            let parts = state.parts.entry(name).or_default();
            parts.push((me, bytes.to_vec()));
            if parts.len() < meaning.messages() {
                return Ok(None);
            }
            let parts = state.parts.remove(&name).unwrap_or_default();
            let mut sum = vec![0; bytes.len()];
            for (_, part) in &parts {
                crate::shared::add(self.plan.ring, &mut sum, part);
            }
            self.layer(state, at.frame.chunk, meaning, &sum)
        })
    }

    /// Compares what the parties' messages of a layer add up to.
    fn layer(
        &self,
        state: &mut State,
        chunk: u32,
        meaning: Meaning,
        sum: &[u8],
    ) -> Result<Option<Divergence>, DataError> {
        let (Meaning::Products { layer } | Meaning::Sums { layer }) = meaning;
        let ring = self.plan.ring;
        self.advance(state, chunk, layer + 1)?;
        let going = &state.chunks[&chunk];
        let rows = going.chunk.frame.rows;
        let block = (chunk > 0).then(|| {
            self.plan.job.blocks[going.chunk.block as usize]
                .name
                .clone()
        });
        let found = match meaning {
            Meaning::Products { .. } => {
                let size = ring.bytes(u64::from(rows)) as usize;
                let actual = sum.chunks(size.max(1)).map(|bytes| unpack(ring, bytes));
                let mut pairs = going.twin.products.iter().zip(actual).enumerate();
                pairs.find_map(|(index, (want, got))| {
                    let (row, expected, actual) = differ(ring, rows, want, &got)?;
                    Some((Diverged::Product { layer, index }, row, expected, actual))
                })
            }
            Meaning::Sums { .. } => {
                let actual = sum
                    .chunks(ring.bytes(1) as usize)
                    .map(|bytes| unpack(ring, bytes)[0]);
                let mut pairs = going.twin.summed.iter().zip(actual).enumerate();
                pairs.find_map(|(index, (want, got))| {
                    (*want != got).then_some((Diverged::Sum { layer, index }, 0, *want, got))
                })
            }
        };
        let of = self.layer_plan(layer);
        state.layers.insert(layer);
        state.compared.products += match meaning {
            Meaning::Products { .. } => u64::from(of.products) * u64::from(rows),
            Meaning::Sums { .. } => u64::from(of.sums),
        };
        if let Some((what, row, expected, actual)) = found {
            return Ok(Some(Divergence {
                what,
                row: going.chunk.first + u64::from(row),
                block,
                expected,
                actual,
            }));
        }
        // What no participant will ask for again: chunks of which only sums are opened, when their last products are made.
        let last = self
            .plan
            .layers
            .iter()
            .rposition(|l| l.products + l.sums > 0);
        let done = match meaning {
            Meaning::Products { .. } => of.sums == 0,
            Meaning::Sums { .. } => true,
        };
        if chunk > 0 && self.readers == 0 && done && last == Some(layer) {
            self.finish(state, chunk)?;
        }
        Ok(None)
    }

    fn layer_plan(&self, layer: usize) -> &LayerPlan {
        let rows = self.plan.layers.len();
        match &self.plan.job_plan {
            Some(job) if layer >= rows => &job.layers[layer - rows],
            _ => &self.plan.layers[layer],
        }
    }

    /// Sees to it that the twin of a chunk has run so many layers.
    fn advance(&self, state: &mut State, chunk: u32, layers: usize) -> Result<(), DataError> {
        let plan = &*self.plan;
        if chunk == 0 {
            self.set_up(state, layers.saturating_sub(plan.layers.len()))?;
            return Ok(());
        }
        if !state.chunks.contains_key(&chunk) {
            let jobs = plan.job_plan.as_ref().map_or(0, |job| job.layers.len());
            let job_wide = match &state.job_wide {
                Some(job_wide) => job_wide.clone(),
                None => self.set_up(state, jobs)?,
            };
            let of = plan
                .chunk(chunk - 1)
                .expect("messages name chunks of the plan");
            let size = (plan.slots, plan.sums);
            let mut twin = Twin::new(plan.ring, of.frame.rows, size, job_wide);
            let slice = Slice {
                block: of.block,
                first: of.first,
                rows: of.frame.rows,
            };
            for (port, input) in plan.inputs.iter().enumerate() {
                if input.per == Per::Row {
                    twin.fill(input.first, &self.input(port, slice, input.width)?);
                }
            }
            let going = Going {
                twin,
                chunk: of,
                ran: 0,
                left: self.readers,
            };
            state.chunks.insert(chunk, going);
        }
        let going = state.chunks.get_mut(&chunk).expect("it was put there");
        while going.ran < layers {
            let program = plan.layers[going.ran].program;
            going.twin.run(&plan.programs[program]);
            going.ran += 1;
        }
        Ok(())
    }

    /// The values of an input port in the clear.
    fn input(&self, port: usize, slice: Slice, width: u32) -> Result<Vec<u8>, DataError> {
        let size = self.plan.ring.bytes(u64::from(slice.rows)) * u64::from(width);
        let mut packed = vec![0; size as usize];
        let holder = self.plan.job.blocks[slice.block as usize].holders[port];
        if let Some(source) = holder.peer().and_then(|peer| self.sources.get(&peer)) {
            source.fill(port, slice, &mut packed)?;
        }
        Ok(packed)
    }

    /// Runs so many layers of the set-up; all values that rows share, as far as they are known then.
    fn set_up(&self, state: &mut State, layers: usize) -> Result<Vec<u128>, DataError> {
        let plan = &*self.plan;
        let slice = Slice {
            block: 0,
            first: 0,
            rows: 1,
        };
        let mut job_wide = vec![0; plan.job_wide as usize];
        for (port, input) in plan.inputs.iter().enumerate() {
            if input.per == Per::Job {
                let packed = self.input(port, slice, input.width)?;
                let values = packed.chunks(plan.ring.bytes(1) as usize);
                for (k, bytes) in values.enumerate() {
                    job_wide[input.first as usize + k] = unpack(plan.ring, bytes)[0];
                }
            }
        }
        let mut twin = Twin::new(
            plan.ring,
            1,
            (plan.job_slots[0], plan.sums),
            job_wide.clone(),
        );
        if let Some(job) = &plan.job_plan {
            for &(job_value, slot, width) in &job.inputs {
                for k in 0..width {
                    twin.spread(slot + k, job_wide[(job_value + k) as usize]);
                }
            }
            for layer in &job.layers[..layers] {
                twin.run(&plan.programs[layer.program]);
            }
            if layers == job.layers.len() {
                for k in 0..job.width {
                    job_wide[(job.job_value + k) as usize] = twin.slot(job.slot + k)[0];
                }
                state.job_wide = Some(job_wide.clone());
            }
        }
        let frame = plan.set_up_frame();
        let chunk = Chunk {
            frame,
            block: 0,
            first: 0,
        };
        let going = Going {
            twin,
            chunk,
            ran: layers,
            left: 0,
        };
        state.chunks.insert(0, going);
        Ok(job_wide)
    }

    /// Runs the rest of a chunk, keeps its sums, and forgets it.
    fn finish(&self, state: &mut State, chunk: u32) -> Result<(), DataError> {
        if !state.over.contains(&chunk) {
            self.advance(state, chunk, self.plan.layers.len())?;
            let going = state.chunks.remove(&chunk).expect("it was advanced");
            for (total, sum) in state.totals.iter_mut().zip(&going.twin.sums) {
                *total = self.plan.ring.add(*total, *sum);
            }
            state.over.insert(chunk);
        }
        Ok(())
    }

    /// A participant gets opened values.
    fn opened(&self, port: usize, slice: Slice, values: &[u8]) -> Result<(), DataError> {
        let plan = &*self.plan;
        let output = plan.outputs[port];
        let size = plan.ring.bytes(u64::from(slice.rows)) as usize;
        let actual: Vec<Column> = values
            .chunks(size.max(1))
            .map(|bytes| unpack(plan.ring, bytes))
            .collect();
        self.compare(|state| {
            let block = (output.gives == Gives::Row)
                .then(|| plan.job.blocks[slice.block as usize].name.clone());
            let expected: Vec<Column> = if output.gives == Gives::Sum {
                for chunk in 1..=plan.chunks() {
                    self.finish(state, chunk)?;
                }
                let range = output.first as usize..(output.first + output.width) as usize;
                state.totals[range].iter().map(|sum| vec![*sum]).collect()
            } else {
                let chunk = self.chunk_of(slice);
                self.advance(state, chunk, plan.layers.len())?;
                let twin = &state.chunks[&chunk].twin;
                (output.first..output.first + output.width)
                    .map(|slot| twin.slot(slot).clone())
                    .collect()
            };
            state.compared.opened += u64::from(output.width) * u64::from(slice.rows);
            let mut pairs = expected.iter().zip(&actual).enumerate();
            let found = pairs.find_map(|(wire, (want, got))| {
                let (row, expected, actual) = differ(plan.ring, slice.rows, want, got)?;
                Some(Divergence {
                    what: Diverged::Opened { port, wire },
                    block: block.clone(),
                    row: slice.first + u64::from(row),
                    expected,
                    actual,
                })
            });
            if output.gives == Gives::Row {
                let chunk = self.chunk_of(slice);
                let going = state.chunks.get_mut(&chunk).expect("it was advanced");
                going.left = going.left.saturating_sub(1);
                if going.left == 0 {
                    self.finish(state, chunk)?;
                }
            }
            Ok(found)
        })
    }

    /// The number of the chunk that begins with these rows, as in messages.
    fn chunk_of(&self, slice: Slice) -> u32 {
        let size = u64::from(self.plan.chunk_rows);
        let before = self.plan.job.blocks[..slice.block as usize]
            .iter()
            .map(|b| b.rows.div_ceil(size));
        (before.sum::<u64>() + slice.first / size) as u32 + 1
    }
}
