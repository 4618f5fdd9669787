//! Steps of truncations: what kernels/device/commands.cu reads of them.

use veil_device::{Command, Fault, Truncation};

use super::queue::{Argument, Queue, number, ring_of};
use crate::kernels::TRUNCATE;

/// Destinations and draws of a step, at most.
const DESTINATIONS: usize = 3;
const DRAWS: usize = 4;

impl Queue<'_> {
    pub(super) fn truncation(&mut self, step: Truncation, command: &Command) -> Result<(), Fault> {
        let (from, to) = (command.src[0], command.dst[0]);
        let (bytes, count) = (self.memory.item(to.region), u64::from(to.count));
        let kind = match step {
            Truncation::Hide { .. } => 0,
            Truncation::Take { .. } => 1,
            Truncation::Answer { .. } => 2,
            Truncation::Settle { .. } => 3,
        };
        let source = [self.memory.at(from), self.memory.item(from.region)];
        let ring = number(ring_of(self.item(to)));
        let stride = self.stride(self.item(to));
        let draws = command.calls.len() as u64;
        let mut call = vec![kind, bytes, count, ring];
        call.extend(source);
        call.extend([stride, draws]);
        let mut destinations = [0; DESTINATIONS];
        for (at, span) in destinations.iter_mut().zip(&command.dst) {
            *at = self.memory.at(*span);
        }
        call.extend(destinations);
        let mut drawn = [[0; 3]; DRAWS];
        for (draw, prf_call) in drawn.iter_mut().zip(&command.calls) {
            *draw = self.prf_call(*prf_call)?;
        }
        call.extend(drawn.as_flattened());
        call.push(step.by().into());
        let call = self.call(&call);
        let arguments = [
            Argument::Workspace,
            call,
            Argument::Verdict,
            Argument::Schedules,
        ];
        self.step(&TRUNCATE, Some(count * bytes.div_ceil(16)), &arguments);
        Ok(())
    }
}
