//! Rules of a job that can be planned.

use veil_circuit::{Circuit, OutputPort, Per, Reduce};
use veil_job::{Audience, Block, Delivery, Holder, Intersection, JobSpec, Ot};
use veil_math::Ring;
use veil_session::PartyId;

use super::{PlanError, Stock};
use crate::choose::Choice;

/// Whether there can be a plan of `job`: its lists fit each other, its names are its own, and a protocol computes it.
pub(super) fn job(job: &JobSpec, stock: Stock) -> Result<(), PlanError> {
    let circuit = &job.circuit;
    if stock != Stock::Made {
        circuit
            .validate()
            .map_err(|e| PlanError::Circuit(e.to_string()))?;
    } else if crate::ag::computes(job) {
        return Err(PlanError::Job("a run for a stock computes nothing else"));
    }
    lists(job)?;
    if let Some(meeting) = job.intersection() {
        intersection(job, meeting)?;
    }
    protocol(job)?;
    ports(job)?;
    participants(job)?;
    if circuit.is_sequential() {
        cycles(job)?;
    }
    match &job.totals {
        Some(circuit_of_totals) => totals(circuit, circuit_of_totals),
        None => Ok(()),
    }
}

/// Whether the job's protocol has a stock, and takes something from it.
pub(super) fn stock(job: &JobSpec, choice: Choice, stock: Stock) -> Result<(), PlanError> {
    match choice {
        _ if stock == Stock::Fresh => Ok(()),
        Choice::Authenticated => Ok(()),
        Choice::Garbled(_) if stock == Stock::Made || transfers(job) => Ok(()),
        Choice::Garbled(_) => Err(PlanError::NothingTaken),
        _ => Err(PlanError::NoStock(job.security)),
    }
}

/// Whether labels of a value are transferred between two parties: those of all that the garbler does not supply.
fn transfers(job: &JobSpec) -> bool {
    let supplied = |block: &Block| {
        let mut ports = job.circuit.inputs.iter().zip(&block.holders);
        ports.any(|(port, holder)| port.width > 0 && crate::yao::is_transferred(*holder))
    };
    job.blocks.iter().any(supplied)
}

/// There are rows, and as many holders, audiences and descriptions as ports.
fn lists(job: &JobSpec) -> Result<(), PlanError> {
    let circuit = &job.circuit;
    if job.blocks.is_empty() || job.blocks.iter().any(|b| b.rows == 0) {
        return Err(PlanError::Job("every block needs at least one row"));
    }
    if job
        .blocks
        .iter()
        .any(|b| b.holders.len() != circuit.inputs.len())
    {
        return Err(PlanError::Job(
            "every block needs one holder per input port",
        ));
    }
    if job.audiences.len() != circuit.outputs.len() || job.opened.len() != circuit.outputs.len() {
        return Err(PlanError::Job(
            "every output port needs an audience and a description",
        ));
    }
    Ok(())
}

/// Keys of two parties meet as the protocol lets them.
fn intersection(job: &JobSpec, meeting: Intersection) -> Result<(), PlanError> {
    if !job.is_intersection() {
        return Err(PlanError::Job(
            "where keys meet, two parties have a list of them each, and one of the two learns which of its own the other has",
        ));
    }
    let most = crate::intersect::MOST_KEYS;
    match meeting.keys.iter().find(|keys| **keys > most) {
        Some(&keys) => Err(PlanError::TooManyKeys { keys, most }),
        None => Ok(()),
    }
}

/// There is a protocol of so many parties, against such a party, over such a ring.
fn protocol(job: &JobSpec) -> Result<(), PlanError> {
    if !(PartyId::TWO.len()..=PartyId::FOUR.len()).contains(&job.parties.len()) {
        return Err(PlanError::Job("two parties compute, or three, or four"));
    }
    if job.security.protocol.parties() != job.parties.len() {
        return Err(PlanError::Job(
            "the protocol is of as many parties as the job names",
        ));
    }
    let Some(choice) = Choice::of_job(job) else {
        return Err(PlanError::NoProtocol(job.security));
    };
    if job.security.ot == Ot::Silent && !matches!(choice, Choice::Authenticated) {
        return Err(PlanError::NoSilent(job.security));
    }
    if choice.proves() && job.circuit.ring == Ring::Z128 {
        return Err(PlanError::TooWide(job.security));
    }
    if choice.garbles() {
        if job.circuit.ring != Ring::Bits {
            return Err(PlanError::BitsOnly(job.security));
        }
        let loads = job
            .blocks
            .iter()
            .any(|b| b.holders.contains(&Holder::Stored));
        if loads || job.audiences.contains(&Audience::Stored) {
            return Err(PlanError::NoShares(job.security));
        }
    }
    if let (Choice::Cut, Some(what)) = (choice, crate::cut::unfit(job)) {
        return Err(PlanError::Fit(job.security, what));
    }
    if let (Choice::Authenticated, Some(what)) = (choice, crate::ag::unfit(job)) {
        return Err(PlanError::Fit(job.security, what));
    }
    let mut circuits = std::iter::once(&job.circuit).chain(&job.totals);
    if job.security.delivery == Delivery::Guaranteed && circuits.any(Circuit::is_random) {
        return Err(PlanError::Random);
    }
    Ok(())
}

/// What a port is fits what it is of, in every block.
fn ports(job: &JobSpec) -> Result<(), PlanError> {
    let circuit = &job.circuit;
    let names_dataset = |b: &Block| b.stored.is_some() == b.holders.contains(&Holder::Stored);
    if !job.blocks.iter().all(names_dataset) {
        return Err(PlanError::Job(
            "a block names a dataset exactly if it loads a port from one",
        ));
    }
    if circuit.ring == Ring::Bits && circuit.outputs.iter().any(|o| o.reduce == Reduce::Sum) {
        return Err(PlanError::Job("bits cannot be summed over rows"));
    }
    let rings = circuit.rings();
    let outputs = || circuit.outputs.iter().zip(&job.audiences);
    let bits_beside = |port| circuit.output_ring(port, &rings) != circuit.ring;
    if outputs().any(|(o, a)| bits_beside(o) && *a != Audience::Column) {
        return Err(PlanError::Job("bits beside integers are columns"));
    }
    let mut sums = outputs().filter(|(o, _)| o.reduce == Reduce::Sum);
    if let Some((_, first)) = sums.next() {
        let column = *first == Audience::Column;
        if sums.any(|(_, a)| (*a == Audience::Column) != column) || column && job.totals.is_some() {
            return Err(PlanError::Job(
                "sums over rows are columns all, as they are, or none of them is",
            ));
        }
    }
    for (k, port) in circuit.inputs.iter().enumerate() {
        let first = job.blocks[0].holders[k];
        if port.per == Per::Job && job.blocks.iter().any(|b| b.holders[k] != first) {
            return Err(PlanError::Job(
                "a value per job has the same holder in every block",
            ));
        }
    }
    Ok(())
}

/// Every holder of an input and every reader of an output is a participant of the job.
fn participants(job: &JobSpec) -> Result<(), PlanError> {
    let has = |party: &PartyId| party.index() < job.parties.len();
    let reads = |a: &Audience| !matches!(a, Audience::Party(p) if !has(p));
    if !job.audiences.iter().all(reads) {
        return Err(PlanError::Job("audiences name parties of the job"));
    }
    let known = |h: &Holder| match h {
        Holder::Party(party) => has(party),
        Holder::Owner(owner) => usize::from(*owner) < job.owners.len(),
        Holder::Stored | Holder::Column => true,
    };
    if !job.blocks.iter().flat_map(|b| &b.holders).all(known)
        || job.owners.len() > 1024
        || job.recipients.len() > 1024
    {
        return Err(PlanError::Job(
            "holders name parties and owners of the job, and there are at most 1024 owners",
        ));
    }
    Ok(())
}

/// What has a value in every cycle is neither loaded nor kept, and a run is not continued with fewer parties.
fn cycles(job: &JobSpec) -> Result<(), PlanError> {
    if job.security.delivery == Delivery::Guaranteed {
        return Err(PlanError::Job(
            "a circuit with cycles is not computed with `delivery = \"guaranteed\"`",
        ));
    }
    let circuit = &job.circuit;
    let loads = |k: usize| job.blocks.iter().any(|b| b.holders[k] == Holder::Stored);
    let ports = circuit.inputs.iter().enumerate();
    let mut each = ports.filter(|(_, port)| port.per == Per::Cycle);
    let outputs = circuit.outputs.iter().zip(&job.audiences);
    let mut kept = outputs.filter(|(_, audience)| **audience == Audience::Stored);
    if each.any(|(k, _)| loads(k)) || kept.any(|(port, _)| port.reduce == Reduce::EveryCycle) {
        return Err(PlanError::Job(
            "what has a value in every cycle is neither loaded from shares nor kept as shares",
        ));
    }
    Ok(())
}

/// What is computed of the sums reads all of them, and after them all job-wide values or none, and puts no more than they are in
/// the place of each.
fn totals(circuit: &Circuit, totals: &Circuit) -> Result<(), PlanError> {
    totals
        .validate()
        .map_err(|e| PlanError::Circuit(e.to_string()))?;
    let width = |o: &OutputPort| o.wires.len() as u64;
    let sums = circuit.outputs.iter().filter(|o| o.reduce == Reduce::Sum);
    let sums: Vec<u64> = sums.map(width).collect();
    let shared = circuit.inputs.iter().filter(|p| p.per == Per::Job);
    let reads = match &totals.inputs[..] {
        [all, others @ ..] => {
            u64::from(all.width) == sums.iter().sum::<u64>()
                && (others.is_empty() || others.iter().map(|p| p.width).eq(shared.map(|p| p.width)))
        }
        [] => false,
    };
    let mut results = totals.outputs.iter().zip(&sums);
    let fits = totals.ring == circuit.ring
        && reads
        && totals.inputs.iter().all(|p| p.per == Per::Row)
        && totals.outputs.len() == sums.len()
        && results.all(|(result, sum)| width(result) <= *sum)
        && totals.outputs.iter().all(|o| o.reduce == Reduce::None);
    if fits {
        Ok(())
    } else {
        Err(PlanError::Job(
            "what is computed of sums reads all of them, then all values that all rows share or none, and puts no more than they are in the \
             place of each",
        ))
    }
}
