//! Passes of rows: circuits over integers become circuits over bits.

use std::collections::HashMap;
use std::sync::Arc;

use veil_circuit::{Builder, Gate, Per, Wire};
use veil_job::passes::{ColumnId, PassSpec, Take};
use veil_job::{Audience, Holder, JobSpec};
use veil_math::Ring;

use super::columns::{Taken, no_bit};
use super::{Lowered, Word, bits_for, defect, refused};
use crate::PhysicalError;
use crate::bits::{InRows, words};
use crate::plan::aim_of;

/// What a circuit becomes depends on: the job, what its ports take, and how many bits of its outputs are read.
pub(super) type Key = (*const JobSpec, Vec<Port>, Vec<u32>);

/// The job of a circuit in bits, and the bits of each column that it leaves.
#[derive(Clone)]
pub(super) struct Rewritten {
    job: Arc<JobSpec>,
    left: Vec<u32>,
}

/// How wide what an input port takes is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Port {
    /// What a participant supplies, or parties load: all of it.
    Whole,
    /// So many bits of a column, if any.
    Word(u32),
    /// The same, and a public number of so many bits that is added to them, by a port of its own.
    And(u32, u32),
}

impl Lowered<'_> {
    /// A circuit in every row: the number of its pass, if something needs it.
    pub(super) fn rows(
        &mut self,
        number: usize,
        job: &Arc<JobSpec>,
        (takes, leaves): (&[Option<Take>], &[Option<ColumnId>]),
        claim: Option<&str>,
    ) -> Result<Option<usize>, PhysicalError> {
        allowed(job)?;
        let read = self.reads.outputs(job, leaves);
        let supplied = takes.iter().any(Option::is_none);
        if number > 0 && !supplied && read.iter().all(|bits| *bits == 0) {
            return Ok(None);
        }
        let rows = u32::try_from(job.rows()).map_err(|_| defect("it has too many rows"))?;
        let of_inputs = InRows::new(&job.circuit, &read, aim_of(rows)).read_of_inputs();
        let mut ports = Vec::with_capacity(takes.len());
        let (mut taken, mut further) = (Vec::with_capacity(takes.len()), Vec::new());
        for (take, bits) in takes.iter().zip(of_inputs) {
            let (port, own, more) = match take {
                None => (Port::Whole, None, None),
                Some(take) => self.port(take, rows, bits)?,
            };
            ports.push(port);
            taken.push(own);
            further.extend(more);
        }
        taken.extend(further.into_iter().map(Some));
        let key = (Arc::as_ptr(job), ports, read);
        let rewritten = if let Some(known) = self.rewritten.get(&key) {
            known.clone()
        } else {
            let rewritten = rewritten(job, &key)?;
            self.rewritten.insert(key.clone(), rewritten.clone());
            rewritten
        };
        let (_, _, read) = key;
        let mut left = Vec::with_capacity(leaves.len());
        let mut words = HashMap::new();
        for ((column, bits), read) in leaves.iter().zip(&rewritten.left).zip(&read) {
            let column = column.filter(|_| *read > 0);
            let word = column.map(|column| (column, self.word(rows, *bits)));
            left.push(word.map(|(_, word)| word.column));
            words.extend(word);
        }
        let main = self.push(PassSpec::Rows {
            job: rewritten.job,
            takes: taken,
            leaves: left,
            claim: claim.map(str::to_owned),
        });
        let circuit = &job.circuit;
        for (port, column) in leaves.iter().enumerate() {
            let Some((column, word)) = column.and_then(|of| Some((of, *words.get(&of)?))) else {
                continue;
            };
            let sum = circuit.outputs[port].reduce == veil_circuit::Reduce::Sum;
            let word = if sum {
                let whole = circuit.output_ring(&circuit.outputs[port], &circuit.rings());
                self.total(word, read[port].min(whole.bits()))?
            } else {
                word
            };
            self.left(column, word);
        }
        Ok(Some(main))
    }

    /// What a port takes, and a public number besides.
    fn port(
        &mut self,
        take: &Take,
        rows: u32,
        read: u32,
    ) -> Result<(Port, Option<Take>, Option<Take>), PhysicalError> {
        let none = (Port::Word(0), Some(no_bit()), None);
        let Take::Sums {
            of,
            row,
            constant,
            totals,
            ring,
        } = take
        else {
            let taken = self.taken(take, read)?;
            return Ok(taken.map_or(none, |of| (Port::Word(of.bits), Some(of.take), None)));
        };
        if !totals.is_empty() {
            return Err(refused("add totals of columns to sums of their rows"));
        }
        let read = read.min(ring.bits());
        if read == 0 {
            return Ok(none);
        }
        let sums = match of {
            Some(of) => {
                let of = self.known(*of)?;
                self.sums_before(of, read)?
            }
            None => None,
        };
        let number = (*row, *constant) != (0, 0);
        let number = number.then(|| {
            let bits = number_bits((*row, *constant), rows).min(read);
            let take = Take::Sums {
                of: None,
                row: *row,
                constant: *constant,
                totals: vec![],
                ring: *ring,
            };
            Taken { take, bits }
        });
        Ok(match (sums, number) {
            (None, None) => none,
            (Some(Word { column, bits, .. }), None) => {
                (Port::Word(bits), Some(Take::Of(column)), None)
            }
            (None, Some(Taken { take, bits })) => (Port::Word(bits), Some(take), None),
            (Some(sums), Some(of)) => (
                Port::And(sums.bits, of.bits),
                Some(Take::Of(sums.column)),
                Some(of.take),
            ),
        })
    }
}

/// Bits of `row · j + constant` in all of so many rows: all that there may be where some of them are negative.
fn number_bits((row, constant): (i64, i64), rows: u32) -> u32 {
    let last = i128::from(row) * i128::from(rows - 1) + i128::from(constant);
    match u128::try_from(last.max(constant.into())) {
        Ok(most) if constant >= 0 && last >= 0 => bits_for(most).max(1),
        _ => u128::BITS,
    }
}

/// Refuses a pass that has no form in bits.
fn allowed(job: &JobSpec) -> Result<(), PhysicalError> {
    let circuit = &job.circuit;
    if job.totals.is_some() || job.blocks.len() != 1 || circuit.is_sequential() {
        return Err(defect(
            "a pass is of one block without cycles, and its sums are columns",
        ));
    }
    let random = |gate: &Gate| matches!(gate, Gate::Random(_) | Gate::RandomBit(_));
    if circuit.gates.iter().any(random) {
        return Err(refused("draw values that none of them knows"));
    }
    let holders = job.blocks[0].holders.iter().zip(&circuit.inputs);
    let mut loaded = holders.filter(|(holder, _)| **holder == Holder::Stored);
    if loaded.any(|(_, port)| port.ring(circuit.ring) != Ring::Bits) {
        return Err(refused("load integers"));
    }
    let mut outputs = circuit.outputs.iter().zip(&job.audiences);
    let opens_sum = |(output, audience): (&veil_circuit::OutputPort, &Audience)| {
        output.reduce == veil_circuit::Reduce::Sum && *audience != Audience::Column
    };
    if outputs.any(opens_sum) {
        return Err(defect("sums over rows are columns"));
    }
    Ok(())
}

/// The same job over bits, whose ports are as wide as what they take.
fn rewritten(job: &JobSpec, (_, ports, read): &Key) -> Result<Rewritten, PhysicalError> {
    let rows = u32::try_from(job.rows()).map_err(|_| defect("it has too many rows"))?;
    let aim = aim_of(rows);
    let circuit = InRows::new(&job.circuit, read, aim);
    let mut b = Builder::new(Ring::Bits);
    let mut inputs: Vec<Vec<Wire>> = Vec::with_capacity(ports.len());
    for (at, (port, of)) in ports.iter().zip(&job.circuit.inputs).enumerate() {
        let own = match port {
            Port::Whole => b.input(&of.name, circuit.input_bits(at), of.per),
            Port::Word(0) => {
                b.input(&of.name, 1, Per::Row);
                vec![]
            }
            Port::Word(bits) | Port::And(bits, _) => b.input(&of.name, *bits, Per::Row),
        };
        inputs.push(words::extended(
            &mut b,
            &own,
            circuit.input_bits(at) as usize,
        ));
    }
    let mut holders = job.blocks[0].holders.clone();
    for (at, (port, word)) in ports.iter().zip(&mut inputs).enumerate() {
        if let Port::And(_, bits) = port {
            let number = b.input(format!("number {at}"), *bits, Per::Row);
            let number = words::extended(&mut b, &number, word.len());
            *word = words::plus(&mut b, word, &number, aim);
            holders.push(Holder::Column);
        }
    }
    let out = circuit.row(&mut b, inputs.concat());
    let out = out.map_err(|error| match error {
        PhysicalError::TooLarge { .. } => refused("compute so much in one row"),
        error => error,
    })?;
    let mut left = Vec::with_capacity(out.len());
    for (at, (mut word, read)) in out.into_iter().zip(read).enumerate() {
        if job.audiences[at] == Audience::Column {
            word.truncate(*read as usize);
            let known = words::length(&mut b, &word).max(1);
            word = words::extended(&mut b, &word, known);
        }
        left.push(word.len() as u32);
        b.output(&job.circuit.outputs[at].name, &word);
    }
    let mut job = job.clone();
    job.circuit = b.finish()?;
    job.blocks[0].holders = holders;
    Ok(Rewritten {
        job: Arc::new(job),
        left,
    })
}
