//! What a batch computes over the slots: a pass over one component after the other, through all of its cycles. Masks come first, as they depend
//! on no label; then labels; at the garbler Λ, which it is told.
//!
//! A register takes all components of what it is given. Its first value is an input's, or a public bit c: label and Λ are 0 and the mask is c,
//! of which neither party has a part that the other does not know.

use veil_device::ag::{Ag, One, Role};
use veil_device::{Command, PrfCall, ProgramId, Span};
use veil_prss::DomainTag;

use super::batch::Batch;
use super::regions::{self, part};
use super::steps::{Rounds, ag};
use crate::plan::LayerPlan;
use crate::yao::{COMMON, OFFSET, combine};

/// A step with a program.
fn run(step: Ag, program: usize, src: Vec<Span>, dst: Vec<Span>) -> Command {
    let mut command = ag(step, src, dst);
    command.program = Some(ProgramId(program as u32));
    command
}

/// Copies a component of slots.
fn copy(part: u8, from: u32, to: u32, count: u32) -> Command {
    let slots = |first| regions::slots(part, first, count);
    combine(vec![slots(from)], slots(to))
}

impl Batch<'_> {
    /// The layers of all cycles, each with the gates of the batch and those of the chunk before it, and what is copied in between of a component.
    fn pass(
        &self,
        part: u8,
        mut layer: impl FnMut((u32, u64), &LayerPlan) -> Command,
    ) -> Vec<Command> {
        let all = &self.plan.layers;
        let of_cycle: u64 = all.iter().map(|layer| u64::from(layer.products)).sum();
        let before = &all[..self.group.layers.start];
        let before: u64 = before.iter().map(|layer| u64::from(layer.products)).sum();
        let (mut commands, mut at) = (Vec::new(), 0);
        for cycle in self.cycle..self.cycle + u64::from(self.cycles) {
            if self.group.layers.start == 0 {
                commands.extend(self.before(cycle, part));
            }
            let mut gate = cycle * of_cycle + before;
            for of in &all[self.group.layers.clone()] {
                commands.push(layer((at, gate), of));
                at += of.products;
                gate += u64::from(of.products);
            }
            if self.group.layers.end == all.len() {
                commands.extend(self.after(cycle, part));
            }
        }
        commands
    }

    /// What a public 1 adds to a component.
    fn one(&self, part: u8) -> One {
        match (part, self.me.role()) {
            (part::MAC, Role::Garbler) => One::Unit,
            (part::KEY, Role::Evaluator) => One::Offset(OFFSET),
            _ => One::Nothing,
        }
    }

    /// What is copied before a cycle: its inputs, out of those of its window, and what registers take. The first values of registers are put where each
    /// cycle finds what the one before it has left.
    fn before(&self, cycle: u64, part: u8) -> Vec<Command> {
        let Some(plan) = &self.plan.cycles else {
            return Vec::new();
        };
        let (next, now, registers) = plan.registers;
        let mut commands = Vec::new();
        if registers > 0 && cycle == 0 {
            let step = Ag::Masks {
                part,
                at: 0,
                one: self.one(part),
            };
            // It has no products.
            let [results, first, second] = [0, 1, 2].map(regions::work);
            commands.push(run(step, plan.initial, vec![results], vec![first, second]));
        } else if registers > 0 {
            commands.push(copy(part, next, now, registers));
        }
        let place = (cycle % plan.window) as u32;
        let inputs = plan.inputs.iter();
        commands.extend(inputs.map(|&(all, to, width)| copy(part, all + place * width, to, width)));
        commands
    }

    /// What is kept of a cycle: its outputs, where those of all cycles are opened. They have labels at the evaluator, and Λ at the garbler.
    fn after(&self, cycle: u64, part: u8) -> Vec<Command> {
        if (part, self.me.role()) == (part::LABEL, Role::Garbler) {
            return Vec::new();
        }
        let cycles = self.plan.cycles.iter();
        let outputs = cycles.flat_map(|cycles| &cycles.outputs);
        let outputs =
            outputs.map(|&(from, all, width)| copy(part, from, all + cycle as u32 * width, width));
        outputs.collect()
    }

    /// Masks of all wires, with those of operands.
    pub(super) fn masks(&self) -> Vec<Command> {
        let [alpha, beta, _] = regions::masks();
        let fresh = regions::fresh(self.shape);
        let parts = (0..).zip([part::MAC, part::KEY]);
        let passes = parts.map(|(k, part): (usize, _)| {
            let one = self.one(part);
            self.pass(part, |(at, _), layer| {
                let step = Ag::Masks { part, at, one };
                run(step, layer.program, vec![fresh[k]], vec![alpha[k], beta[k]])
            })
        });
        passes.flatten().collect()
    }

    /// Tables of all gates, or the labels that they give.
    pub(super) fn gates(&self) -> Vec<Command> {
        let masks = regions::masks();
        self.pass(part::LABEL, |(at, gate), layer| {
            let tables = regions::tables(at, layer.products);
            let mut command = if self.me.garbles() {
                let to = vec![tables, regions::z(), regions::results()];
                let step = Ag::Garble { at, offset: OFFSET };
                run(step, layer.program, masks.concat(), to)
            } else {
                let macs = masks.map(|[mac, _]| mac);
                let from = [&[tables, regions::z()], &macs[..]].concat();
                let to = [&[regions::results()], &regions::lambda()[..]].concat();
                run(Ag::Evaluate { at }, layer.program, from, to)
            };
            command.calls = vec![PrfCall {
                key: COMMON,
                tag: DomainTag::GARBLE,
                first: gate,
            }];
            command
        })
    }

    /// Λ of all wires at the garbler, from that of results.
    pub(super) fn public(&self, rounds: &mut Rounds) {
        if !self.me.garbles() {
            return;
        }
        let [alpha, beta, gamma] = regions::lambda();
        let [of, first, second] = [0, 1, 2].map(regions::work);
        rounds.finish(ag(Ag::Expand, vec![gamma], vec![of]));
        let part = part::PUBLIC;
        let all = self.pass(part, |(at, _), layer| {
            let one = One::Nothing;
            let step = Ag::Masks { part, at, one };
            run(step, layer.program, vec![of], vec![first, second])
        });
        rounds.last().finish.extend(all);
        for (from, to) in [(first, alpha), (second, beta)] {
            rounds.finish(ag(Ag::Bits { bit: 0 }, vec![from], vec![to]));
        }
    }
}
