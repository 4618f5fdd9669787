//! Commands that are done several times: the cycles of a loop.
//!
//! A repetition is the commands of the body, one after the other, on spans and with calls that move on from each repetition to the next. A
//! device may do it as it is written out; hardware that works on a loop as one overlaps repetitions, as long as all bytes equal those of
//! the commands written out.

use veil_math::Ring;

use crate::Fault;
use crate::command::{Command, Op, ProgramId};
use crate::layout::{Layout, Span};
use crate::program::Needs;

/// Repetitions of a command, at most.
const MOST: u32 = 1 << 12;

/// A command of a body, and by how much it moves on in each repetition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// The command, as it is in repetition 0.
    pub command: Command,
    /// Items by which each source moves on.
    pub src: Vec<u32>,
    /// Items by which each destination moves on.
    pub dst: Vec<u32>,
    /// Counters by which each call moves on.
    pub calls: Vec<u64>,
}

/// A body, and how often it is done.
///
/// Labels that programs and copies of the body write, and that are not listed as living, are 0 afterwards: so hardware need not hand them
/// out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Repeat {
    /// Repetitions, from 1 to 2^12.
    pub count: u32,
    /// Labels are summed or copied, garbled or evaluated, and coloured; nothing else.
    pub body: Vec<Step>,
    /// Labels that are read afterwards.
    pub live: Vec<Span>,
}

impl Step {
    /// A command that is the same in all repetitions.
    pub fn still(command: Command) -> Self {
        Step {
            src: vec![0; command.src.len()],
            dst: vec![0; command.dst.len()],
            calls: vec![0; command.calls.len()],
            command,
        }
    }

    /// The command in a repetition.
    pub fn at(&self, repetition: u32) -> Command {
        let mut command = self.command.clone();
        let moved = |spans: &mut [Span], steps: &[u32]| {
            for (span, step) in spans.iter_mut().zip(steps) {
                // Beyond all items it is refused.
                span.first = span.first.saturating_add(step.saturating_mul(repetition));
            }
        };
        moved(&mut command.src, &self.src);
        moved(&mut command.dst, &self.dst);
        for (call, step) in command.calls.iter_mut().zip(&self.calls) {
            let by = step.saturating_mul(u64::from(repetition));
            call.first = call.first.saturating_add(by);
        }
        command
    }
}

impl Repeat {
    /// The commands, written out.
    pub fn commands(&self) -> impl Iterator<Item = Command> {
        let body = |repetition| self.body.iter().map(move |step| step.at(repetition));
        (0..self.count).flat_map(body)
    }

    /// Items that the body writes and that do not live, each once. `needs` describe the programs.
    pub fn dead<'a>(
        &self,
        needs: impl Fn(ProgramId) -> Option<&'a Needs>,
    ) -> impl Iterator<Item = Span> {
        let mut items: Vec<(u16, u8, u32)> = Vec::new();
        for Step { command, .. } in &self.body {
            if let Some(needs) = command.program.and_then(&needs) {
                let slots = needs.writes.iter();
                items.extend(slots.map(|slot| (needs.slots(), 0, *slot)));
            }
            if matches!(command.op, Op::Combine { .. }) {
                for to in &command.dst {
                    let all = to.first..to.first + to.count;
                    items.extend(all.map(|item| (to.region, to.component, item)));
                }
            }
        }
        items.sort_unstable();
        items.dedup();
        let spans = items.into_iter().map(|(region, part, first)| Span {
            region,
            component: part,
            first,
            count: 1,
        });
        spans.filter(|span| !self.live.iter().any(|live| live.overlaps(*span)))
    }

    /// Refuses what no device repeats. Every command is checked when it is done.
    pub(crate) fn check(&self, index: usize, layout: &Layout) -> Result<(), Fault> {
        let repeats = |step: &Step| {
            let Step {
                command,
                src,
                dst,
                calls,
            } = step;
            let labels = match command.op {
                // No device has to remember all the places that it was at.
                Op::Combine { ring, .. } => {
                    let still = dst.iter().all(|by| *by == 0);
                    ring == Ring::Bits && still && command.calls.is_empty()
                }
                Op::Garble { .. } | Op::Evaluate { .. } | Op::Colour => true,
                _ => false,
            };
            let steps = (src.len(), dst.len(), calls.len());
            labels && steps == (command.src.len(), command.dst.len(), command.calls.len())
        };
        let lives = self.live.iter().all(|span| layout.contains(*span));
        let some = (1..=MOST).contains(&self.count);
        if !some || !self.body.iter().all(repeats) || !lives {
            return Err(Fault::Shape {
                command: index,
                what: "a repetition of what is not repeated, or of nothing",
            });
        }
        Ok(())
    }
}
