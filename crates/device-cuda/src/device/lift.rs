//! Steps of lifts: what kernels/device/commands.cu reads of them.

use veil_device::{Command, Fault, Lifting};

use super::queue::{Queue, number, ring_of};
use crate::kernels::LIFT;

/// Destinations and draws of a step, at most.
const DESTINATIONS: usize = 5;
const DRAWS: usize = 4;

impl Queue<'_> {
    pub(super) fn lifting(&mut self, step: Lifting, command: &Command) -> Result<(), Fault> {
        let to = command.dst[0];
        let (bytes, count) = (self.memory.item(to.region), u64::from(to.count));
        let kind = match step {
            Lifting::Share => 0,
            Lifting::Turn => 1,
            Lifting::Terms { .. } => 2,
        };
        let [bits, of_bits] = command.src.first().map_or([0; 2], |span| {
            [self.memory.at(*span), self.memory.item(span.region)]
        });
        let ring = number(ring_of(self.item(to)));
        let stride = self.stride(self.item(to));
        let draws = command.calls.len() as u64;
        let mut call = vec![kind, bytes, count, ring, bits, of_bits, stride, draws];
        call.extend(self.destinations::<DESTINATIONS>(command));
        call.extend(self.draws(command)?.as_flattened());
        if let Lifting::Terms { terms, keeps } = step {
            let kept = keeps.map(|part| part.unwrap_or(0));
            let parts = [
                terms[0].0, terms[1].0, kept[0], kept[1], terms[0].1, terms[1].1,
            ];
            call.extend(parts.map(u64::from));
        } else {
            call.extend([0; 6]);
        }
        self.drawing(&LIFT, count * bytes.div_ceil(16), &call);
        Ok(())
    }

    /// Where the destinations of a step are, and zeros behind them.
    pub(super) fn destinations<const N: usize>(&self, command: &Command) -> [u64; N] {
        let mut destinations = [0; N];
        for (at, span) in destinations.iter_mut().zip(&command.dst) {
            *at = self.memory.at(*span);
        }
        destinations
    }

    /// The draws of a step, and zeros behind them.
    pub(super) fn draws(&self, command: &Command) -> Result<[[u64; 3]; DRAWS], Fault> {
        let mut drawn = [[0; 3]; DRAWS];
        for (draw, prf_call) in drawn.iter_mut().zip(&command.calls) {
            *draw = self.prf_call(*prf_call)?;
        }
        Ok(drawn)
    }
}
