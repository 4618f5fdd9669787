//! Steps of intersections: what is computed of every key in vectors, many keys at a time, and everything else as it is defined.

#[cfg(target_arch = "x86_64")]
mod x86;

use zeroize::Zeroizing;

use super::Cpu;
#[cfg(target_arch = "x86_64")]
use super::Isa;
use super::workspace::Memory;
use crate::Fault;
use crate::command::Command;
use crate::psi::{self, Known, Plain, Psi};

impl Cpu {
    /// Does a step, which was checked, and says what it found.
    pub(super) fn intersection(
        &self,
        memory: &mut Memory,
        index: usize,
        step: Psi,
        command: &Command,
    ) -> Result<bool, Fault> {
        let offset = match step {
            Psi::Tags { offset, .. } => self.offset(offset)?,
            _ => 0,
        };
        let mut masks = Vec::with_capacity(command.calls.len());
        for call in &command.calls {
            masks.push(self.mask(*call, memory.frame)?);
        }
        let draw = |first: u64, to: &mut [u8]| {
            for mask in &masks {
                self.random(*mask, mask.first + first, to);
            }
        };
        let known = Known {
            offset: Zeroizing::new(offset),
            draw: &draw,
        };
        let [src, dst] = [&command.src, &command.dst].map(|spans| {
            let runs = spans.iter().map(|span| memory.run(*span));
            // Columns of bytes lie one behind the other.
            let runs: Option<Vec<_>> = runs.collect();
            runs.unwrap_or_default()
        });
        let base = memory.base();
        // SAFETY: the command was checked: spans are within the workspace, and those that are written overlap no other.
        let (src, mut dst) = unsafe {
            let read = src
                .into_iter()
                .map(|run| std::slice::from_raw_parts(base.add(run.start), run.len()));
            let written = dst
                .into_iter()
                .map(|run| std::slice::from_raw_parts_mut(base.add(run.start), run.len()));
            (read.collect::<Vec<_>>(), written.collect::<Vec<_>>())
        };
        let spans = (&src[..], &mut dst[..]);
        #[cfg(target_arch = "x86_64")]
        let done = match self.isa {
            Isa::Portable => psi::step(&Plain, step, &known, spans),
            isa => psi::step(&x86::Many(isa), step, &known, spans),
        };
        #[cfg(not(target_arch = "x86_64"))]
        let done = psi::step(&Plain, step, &known, spans);
        let shape = |what| Fault::Shape {
            command: index,
            what,
        };
        done.map_err(shape)
    }
}
