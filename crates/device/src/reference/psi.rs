//! Intersections: steps as they are defined.

use zeroize::Zeroizing;

use super::{Memory, Reference};
use crate::Fault;
use crate::command::Command;
use crate::psi::{self, Known, Plain, Psi};

impl Reference {
    /// Does a step, which was checked, and says what it found.
    pub(super) fn intersection(
        &mut self,
        memory: &mut Memory,
        index: usize,
        step: Psi,
        command: &Command,
    ) -> Result<bool, Fault> {
        let (lane, chunk) = (memory.frame.lane, memory.frame.chunk);
        for call in &command.calls {
            let (key, counters) = (call.key.0, step.counters());
            self.ledger
                .record_call(key, call.tag, lane, chunk, call.first, counters)?;
        }
        let offset = match step {
            Psi::Tags { offset, .. } => self.offset(offset)?,
            _ => 0,
        };
        let mut calls = Vec::new();
        for call in &command.calls {
            calls.push((*call, self.prf(call.key)?));
        }
        let draw = |first: u64, to: &mut [u8]| {
            for (call, prf) in &calls {
                prf.stream(call.tag, lane, call.first + first, chunk, to);
            }
        };
        let known = Known {
            offset: Zeroizing::new(offset),
            draw: &draw,
        };
        let copy = |span| Zeroizing::new(memory.bytes(span).to_vec());
        let src: Vec<_> = command.src.iter().map(|span| copy(*span)).collect();
        let mut dst: Vec<_> = command.dst.iter().map(|span| copy(*span)).collect();
        let sources: Vec<&[u8]> = src.iter().map(|bytes| &bytes[..]).collect();
        let mut written: Vec<&mut [u8]> = dst.iter_mut().map(|bytes| &mut bytes[..]).collect();
        let done = psi::step(&Plain, step, &known, (&sources, &mut written));
        for (span, bytes) in command.dst.iter().zip(&dst) {
            memory.bytes_mut(*span).copy_from_slice(bytes);
        }
        let shape = |what| Fault::Shape {
            command: index,
            what,
        };
        done.map_err(shape)
    }
}
