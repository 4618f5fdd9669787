//! Steps of truncations: what kernels/device/commands.cu reads of them.

use veil_device::{Command, Fault, Truncation};

use super::queue::{Queue, number, ring_of};
use crate::kernels::TRUNCATE;

/// Destinations of a step, at most.
const DESTINATIONS: usize = 3;

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
        call.extend(self.destinations::<DESTINATIONS>(command));
        call.extend(self.draws(command)?.as_flattened());
        call.push(step.by().into());
        self.drawing(&TRUNCATE, count * bytes.div_ceil(16), &call);
        Ok(())
    }
}
