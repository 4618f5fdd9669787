//! Silent transfers: steps as they are defined, and the alarm against a base that is taken twice.

use veil_prss::{DomainTag, Reuse};
use zeroize::Zeroizing;

use super::{Memory, Reference};
use crate::Fault;
use crate::command::Command;
use crate::layout::Span;
use crate::silent::{self, Known, Silent};

impl Reference {
    /// Does a step, which was checked.
    pub(super) fn silent(
        &mut self,
        memory: &mut Memory,
        step: Silent,
        command: &Command,
    ) -> Result<(), Fault> {
        let frame = memory.frame;
        for call in &command.calls {
            let (key, counters) = (call.key.0, step.counters());
            self.ledger.record_call(
                key,
                call.tag,
                frame.lane,
                frame.chunk,
                call.first,
                counters,
            )?;
        }
        for k in step.spends() {
            // Packing has no call, and the alarm no key to name.
            let key = command.calls.first().map_or(u16::MAX, |call| call.key.0);
            memory.spend(command.src[*k], key)?;
        }
        let offset = match step.offset() {
            Some(key) => self.offset(key)?,
            None => 0,
        };
        let keys = command.calls.iter().map(|call| self.prf(call.key));
        let known = Known {
            offset: Zeroizing::new(offset),
            keys: keys.collect::<Result<_, _>>()?,
        };
        silent::step(memory, &known, step, command);
        Ok(())
    }
}

impl Memory {
    /// Takes correlations, none of which was taken since it was written.
    fn spend(&mut self, base: Span, key: u16) -> Result<(), Fault> {
        for k in 0..base.count {
            let column = (base.region, base.component, base.first + k);
            if !self.spent.insert(column) {
                return Err(Fault::Reuse(Reuse {
                    key,
                    tag: DomainTag::OT_BASE,
                    lane: self.frame.lane,
                    j: self.frame.chunk,
                    ctr: column.2.into(),
                }));
            }
        }
        Ok(())
    }

    /// Columns that are written anew may be taken.
    pub(super) fn renew(&mut self, span: Span) {
        let columns = span.first..span.first + span.count;
        self.spent.retain(|(region, component, column)| {
            (*region, *component) != (span.region, span.component) || !columns.contains(column)
        });
    }
}
