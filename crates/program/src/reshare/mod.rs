//! From one set of parties to another: a dataset at rest is shared again.
//!
//! The new parties compute; the old ones take part as owners, or as parties where they are in both sets. Every holder of an old component
//! supplies its copy: the new parties add the first copies of the components, which is free, keep the result, and open the differences of
//! the first copy to the others to themselves, which are zero. So a change by one old party, in its store or in its supply, is found before
//! anything becomes visible; two of them together could change values, as they could read them. No party learns more than it knew: an old
//! party supplies its components as fresh shares, and a new party sees shares and zeros.
//!
//! Either set has three parties or four, whatever the other has.

mod copies;
mod ends;
mod parse;
mod text;

use veil_circuit::{Circuit, Gate, InputPort, OutputPort, Per, Reduce, Wire};
use veil_math::Ring;
use veil_session::PlanHash;

use crate::Roles;
use copies::Copies;
use veil_job::{Audience, Block, Holder, InputSpec, JobSpec, Keep, Security};

pub use ends::{OldShares, SharesDiffer, Zeros};

/// A dataset that is to be shared again. Its old parties are the owners of the job, the new ones its parties.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Resharing {
    /// The dataset's name.
    pub dataset: String,
    /// The plan whose run has made it.
    pub made_by: PlanHash,
    /// Its name at the new parties.
    pub name: String,
    /// Ring of its shares.
    pub ring: Ring,
    /// Names and widths of its ports. Each has a value in every row.
    pub ports: Vec<(String, u32)>,
    /// Names and rows of its blocks.
    pub blocks: Vec<(String, u64)>,
    /// The meaning of its columns, in the words of the job that kept them.
    pub schema: String,
    /// The parties that have it, in their order: three or four.
    pub old: Vec<String>,
}

impl Resharing {
    /// The job `name` of the new parties. Output port `k` is kept, and is port `k` of the new dataset.
    ///
    /// Old party `i` supplies [`OldShares`]; every new party needs a [`Zeros`] for the differences that it sees.
    pub fn spec(&self, name: &str, roles: &Roles) -> JobSpec {
        let copies = self.copies();
        let holder = |copy| {
            let name = &self.old[copies.holder(copy).index()];
            roles.holder(name).unwrap_or(Holder::Stored)
        };
        let holders: Vec<Holder> = copies.all().map(holder).collect();
        let block = |(name, rows): &(String, u64)| Block {
            name: name.clone(),
            rows: *rows,
            holders: holders.clone(),
            stored: None,
            order: veil_job::Order::Unsaid,
        };
        let kept = |(name, _): &(String, u32)| format!("`{name}` of every row, as `{}`", self.name);
        let compared = |(name, _): &(String, u32)| {
            format!(
                "differences of the {} copies of each old share of `{name}` in every row: zeros",
                if copies.each() == 2 { "two" } else { "three" }
            )
        };
        let count = self.ports.len();
        JobSpec {
            name: name.to_owned(),
            schema: self.declare(),
            owners: roles.outside_owners(),
            parties: roles.parties.clone(),
            recipients: Vec::new(),
            security: Security::among(roles.parties.len()),
            circuit: self.circuit(),
            totals: None,
            blocks: self.blocks.iter().map(block).collect(),
            audiences: [
                vec![Audience::Stored; count],
                vec![Audience::Parties; count],
            ]
            .concat(),
            opened: (self.ports.iter().map(kept))
                .chain(self.ports.iter().map(compared))
                .collect(),
            inputs: self.inputs(),
            datasets: Vec::new(),
            keep: Some(Keep {
                name: self.name.clone(),
                schema: self.schema.clone(),
            }),
        }
    }

    /// What the values stand for, and where they come from.
    fn declare(&self) -> String {
        let (dataset, plan, schema) = (&self.dataset, text::hex(&self.made_by), &self.schema);
        format!("dataset {dataset:?} made by plan {plan}: {schema}")
    }

    fn inputs(&self) -> Vec<InputSpec> {
        let blocks = self.blocks.iter();
        let inputs = blocks.flat_map(|(block, _)| {
            self.ports.iter().map(|(port, _)| InputSpec {
                holder: Holder::Stored,
                block: Some(block.clone()),
                column: None,
                port: Some(port.clone()),
                format: format!("shares of `{}`, shared again", self.dataset),
            })
        });
        inputs.collect()
    }

    fn copies(&self) -> Copies {
        Copies::of(self.old.len())
    }

    /// Sums of first copies, then differences of first and other copies.
    fn circuit(&self) -> Circuit {
        let copies = self.copies();
        let width: u32 = self.ports.iter().map(|(_, width)| width).sum();
        let inputs = copies.all().map(|copy| InputPort {
            name: format!("share {}, copy {}", copy.component, copy.number),
            width,
            per: Per::Row,
            bits: false,
        });
        let wires = copies.all().count() as u32 * width;
        let mut gates = Vec::new();
        let mut gate = |gate| {
            gates.push(gate);
            Wire(wires + gates.len() as u32 - 1)
        };
        let (mut sums, mut differences) = (Vec::new(), Vec::new());
        let mut first = 0;
        for (name, own) in &self.ports {
            let at = |copy, wire: u32| Wire(copies.port(copy) as u32 * width + first + wire);
            let sum = (0..*own)
                .map(|wire| {
                    let mut firsts = copies.firsts().map(|copy| at(copy, wire));
                    let one = firsts.next().expect("there are parties");
                    firsts.fold(one, |sum, next| gate(Gate::Add(sum, next)))
                })
                .collect();
            let difference = copies
                .others()
                .flat_map(|copy| (0..*own).map(move |wire| (copy, wire)))
                .map(|(copy, wire)| gate(Gate::Sub(at(copy.first(), wire), at(copy, wire))))
                .collect();
            let port = |name, wires| OutputPort {
                name,
                wires,
                reduce: Reduce::None,
            };
            sums.push(port(name.clone(), sum));
            differences.push(port(format!("differences of {name}"), difference));
            first += own;
        }
        Circuit {
            ring: self.ring,
            inputs: inputs.collect(),
            gates,
            outputs: [sums, differences].concat(),
            clock: veil_circuit::Clock::default(),
        }
    }
}
