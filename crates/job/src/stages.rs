//! The two plans of a durable run: one that brings the owners' values to the parties' stores, one that computes on them.

use veil_circuit::{Circuit, OutputPort, Per, Reduce, Wire};

use veil_session::PartyId;

use crate::{Audience, Block, Holder, JobSpec, ProtocolKind, Security};

impl JobSpec {
    /// The two plans of a durable run.
    ///
    /// The first, *input*, has the same owners, parties, input ports and blocks. It computes nothing and opens nothing: its
    /// output port `k` is its input port `k`, kept as shares. The second, *compute*, is this job with every input loaded
    /// from what the first has kept under the same number; it has no owners, so it can run again without asking them.
    /// Each is a run of its own, with a session and keys of its own.
    pub fn stages(&self) -> (JobSpec, JobSpec) {
        (self.input_stage(), self.compute_stage())
    }

    /// The last plan of a durable run among four parties of whom `dropped` is out: what [`JobSpec::stages`] computes, among the other
    /// three, who have the components that it lacks. Their shares of the inputs are those of the four, added up to three components.
    ///
    /// # Panics
    /// If there is no such party.
    #[must_use]
    pub fn without(&self, dropped: PartyId) -> JobSpec {
        let mut compute = self.compute_stage();
        let name = compute.parties.remove(dropped.index());
        compute.name = format!("{}: compute without {name}", self.name);
        compute.security = Security::of(ProtocolKind::Rep3);
        compute
    }

    fn input_stage(&self) -> JobSpec {
        let mut first = 0;
        let outputs: Vec<OutputPort> = (self.circuit.inputs.iter())
            .map(|input| {
                let wires = (first..first + input.width).map(Wire).collect();
                first += input.width;
                OutputPort {
                    name: input.name.clone(),
                    wires,
                    reduce: Reduce::None,
                }
            })
            .collect();
        let kept = (self.circuit.inputs.iter())
            .map(|input| match input.per {
                Per::Row | Per::Cycle => format!(
                    "`{}` of every row, kept until the job is computed",
                    input.name
                ),
                Per::Job => format!("`{}`, kept until the job is computed", input.name),
            })
            .collect();
        JobSpec {
            name: format!("{}: input", self.name),
            schema: self.schema.clone(),
            owners: self.owners.clone(),
            parties: self.parties.clone(),
            recipients: Vec::new(),
            security: self.security,
            circuit: Circuit {
                ring: self.circuit.ring,
                inputs: self.circuit.inputs.clone(),
                gates: Vec::new(),
                outputs,
                clock: veil_circuit::Clock::default(),
            },
            totals: None,
            blocks: self.blocks.clone(),
            audiences: vec![Audience::Stored; self.circuit.inputs.len()],
            opened: kept,
            inputs: self.inputs.clone(),
            datasets: self.datasets.clone(),
            keep: None,
        }
    }

    fn compute_stage(&self) -> JobSpec {
        let stored = |block: &Block| Block {
            name: block.name.clone(),
            rows: block.rows,
            holders: vec![Holder::Stored; block.holders.len()],
            stored: Some(format!("{}: input", self.name)),
            order: crate::Order::Unsaid,
        };
        JobSpec {
            name: format!("{}: compute", self.name),
            owners: Vec::new(),
            blocks: self.blocks.iter().map(stored).collect(),
            inputs: Vec::new(),
            datasets: Vec::new(),
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use veil_circuit::InputPort;
    use veil_math::Ring;

    use super::*;

    fn job() -> JobSpec {
        let port = |name: &str, per| InputPort {
            name: name.into(),
            width: 2,
            per,
            bits: false,
        };
        let circuit = Circuit {
            ring: Ring::Bits,
            inputs: vec![port("x", Per::Row), port("k", Per::Job)],
            gates: vec![veil_circuit::Gate::Mul(Wire(0), Wire(3))],
            outputs: vec![OutputPort {
                name: "z".into(),
                wires: vec![Wire(4)],
                reduce: Reduce::None,
            }],
            clock: veil_circuit::Clock::default(),
        };
        let block = |name: &str, holders: [Holder; 2]| Block {
            name: name.into(),
            rows: 5,
            holders: holders.to_vec(),
            stored: None,
            order: crate::Order::Agreed,
        };
        JobSpec {
            name: "pay".into(),
            schema: String::new(),
            owners: vec!["mill".into()],
            parties: ["a", "b", "c"].map(String::from).into(),
            recipients: vec!["press".into()],
            security: crate::Security::among(3),
            circuit,
            totals: None,
            blocks: vec![
                block("2024", [Holder::Owner(0), Holder::Owner(0)]),
                block("2025", [Holder::Stored, Holder::Owner(0)]),
            ],
            audiences: vec![Audience::Recipient(0)],
            opened: vec!["z".into()],
            inputs: Vec::new(),
            datasets: Vec::new(),
            keep: None,
        }
    }

    #[test]
    fn the_input_stage_keeps_every_port_and_opens_none() {
        let (input, _) = job().stages();
        input.circuit.validate().expect("a valid circuit");
        assert_eq!(input.blocks, job().blocks);
        assert_eq!(input.owners, job().owners);
        assert!(input.recipients.is_empty());
        assert_eq!(input.audiences, [Audience::Stored; 2]);
        let kept: Vec<_> = (input.keeps().into_iter())
            .map(|kept| (kept.port, kept.name, kept.width, kept.per))
            .collect();
        assert_eq!(
            kept,
            [(0, "x".into(), 2, Per::Row), (1, "k".into(), 2, Per::Job)]
        );
    }

    #[test]
    fn the_compute_stage_loads_what_was_kept_and_asks_no_owner() {
        let (input, compute) = job().stages();
        assert!(compute.owners.is_empty());
        assert_eq!(compute.loads(), input.keeps());
        assert_eq!(compute.circuit, job().circuit);
        assert_eq!(compute.audiences, job().audiences);
        assert!(
            compute
                .blocks
                .iter()
                .all(|block| block.order == crate::Order::Unsaid)
        );
        assert_ne!(compute.name, input.name);
    }

    #[test]
    fn three_parties_finish_what_four_have_kept() {
        let four = JobSpec {
            parties: ["a", "b", "c", "d"].map(String::from).into(),
            security: crate::Security::among(4),
            ..job()
        };
        let (input, compute) = four.stages();
        let mut names = vec![compute.name.clone()];
        for out in PartyId::FOUR {
            let finish = four.without(out);
            let left = four
                .parties
                .iter()
                .filter(|name| **name != four.parties[out.index()]);
            assert_eq!(finish.parties, left.cloned().collect::<Vec<_>>());
            assert_eq!(finish.security, Security::among(3));
            assert_eq!(finish.loads(), input.keeps());
            assert_eq!(
                (&finish.circuit, &finish.blocks),
                (&compute.circuit, &compute.blocks)
            );
            assert_eq!(finish.audiences, compute.audiences);
            assert!(!names.contains(&finish.name));
            names.push(finish.name);
        }
    }
}
