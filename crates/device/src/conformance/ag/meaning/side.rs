//! A party and its steps.

use veil_math::Ring;
use veil_prss::DomainTag;
use veil_session::{Secret, SessionId};

use super::super::super::expect_done;
use super::super::{
    ARRAYS, BITS, Case, DIGEST, FOLD, JOB_WIDE_REGION, LABELS, OFFSET, SLOT_REGION, START,
};
use super::values::{Blocks, Inputs, KEY, MAC, PUBLIC, of_bytes, to_bytes};
use crate::ag::{Ag, One};
use crate::{Command, Device, Fault, Op, ProgramId, Span, Tag, Workspace};

/// A party: its device, with a workspace.
pub(super) struct Side<'a> {
    pub(super) of: &'a Case,
    pub(super) device: &'a mut dyn Device,
    pub(super) workspace: Workspace,
    id: ProgramId,
    party: usize,
}

impl<'a> Side<'a> {
    pub(super) fn new(
        of: &'a Case,
        device: &'a mut dyn Device,
        party: usize,
        offset: u128,
    ) -> Result<Self, Fault> {
        device.wipe();
        device.bind(SessionId([9; 32]));
        device.load_key(OFFSET, &Secret::new(offset.to_le_bytes()))?;
        device.load_key(START, &of.keys[1])?;
        let id = device.load(&of.program, &of.layout)?;
        let workspace = device.open(&of.layout, of.frame)?;
        Ok(Side {
            of,
            device,
            workspace,
            id,
            party,
        })
    }

    pub(super) fn span(&self, region: u16, first: u32) -> Span {
        Span {
            first,
            count: 1,
            ..self.of.layout.all(region, 0)
        }
    }

    pub(super) fn array(&self, k: u32) -> Span {
        self.span(ARRAYS, k)
    }

    pub(super) fn bits(&self, k: u32) -> Span {
        self.span(BITS, k)
    }

    /// Blocks at the beginning of an array; zeros behind them.
    pub(super) fn put(&mut self, k: u32, blocks: &[u128]) -> Result<(), Fault> {
        let (to, mut bytes) = (self.array(k), to_bytes(blocks));
        let rows = self.of.frame.rows;
        bytes.resize(self.of.layout.bytes(to, rows) as usize, 0);
        self.device.write(self.workspace, to, &bytes)
    }

    pub(super) fn see(&self, span: Span) -> Result<Vec<u8>, Fault> {
        Ok(self.device.view(self.workspace, span)?.to_vec())
    }

    /// The blocks of an array that belong to gates.
    pub(super) fn blocks(&self, k: u32) -> Result<Blocks, Fault> {
        let mut blocks = of_bytes(&self.see(self.array(k))?);
        blocks.truncate(self.of.gates());
        Ok(blocks)
    }

    fn run(&mut self, commands: &[Command]) -> Result<(), Fault> {
        self.device.submit(self.workspace, commands, Tag(2))?;
        expect_done(self.device)
    }

    pub(super) fn step(&mut self, step: Ag, src: &[Span], dst: &[Span]) -> Result<(), Fault> {
        let mut command = Command::new(Op::Ag(step), src.to_vec(), dst.to_vec());
        if let Ag::Masks { .. } | Ag::Garble { .. } | Ag::Evaluate { .. } = step {
            command.program = Some(self.id);
        }
        if let Ag::Garble { .. } | Ag::Evaluate { .. } = step {
            command.calls = vec![self.of.call(DomainTag::GARBLE)];
        }
        self.run(&[command])
    }

    /// Slots, all rows of each, to or from where the host sees them.
    fn copy(&mut self, part: u8, out: bool) -> Result<(), Fault> {
        let xor = Op::Combine {
            ring: Ring::Bits,
            minus: 0,
        };
        let slots = self.of.layout.all(SLOT_REGION, part);
        let labels = self.of.layout.all(LABELS, 0);
        let (from, to) = if out {
            (slots, labels)
        } else {
            (labels, slots)
        };
        self.run(&[Command::new(xor, vec![from], vec![to])])
    }

    /// A component of slots, and of job-wide values.
    pub(super) fn load(
        &mut self,
        part: u8,
        [slots, all_rows]: [&Inputs; 2],
        offset: u128,
    ) -> Result<(), Fault> {
        let labels = self.of.layout.all(LABELS, 0);
        let bytes = to_bytes(&slots.part(self.party, part, offset));
        self.device.write(self.workspace, labels, &bytes)?;
        let to = self.of.layout.all(JOB_WIDE_REGION, part);
        let bytes = to_bytes(&all_rows.part(self.party, part, offset));
        self.device.write(self.workspace, to, &bytes)?;
        self.copy(part, false)
    }

    pub(super) fn slots(&mut self, part: u8) -> Result<Blocks, Fault> {
        self.copy(part, true)?;
        Ok(of_bytes(&self.see(self.of.layout.all(LABELS, 0))?))
    }

    /// MACs of both operands in arrays 2 and 3, keys in 4 and 5; from those of results in 0 and 1.
    pub(super) fn masks(&mut self) -> Result<(), Fault> {
        let ones = match self.party {
            0 => [One::Unit, One::Nothing],
            _ => [One::Nothing, One::Offset(OFFSET)],
        };
        for (k, (part, one)) in (0..).zip([MAC, KEY].into_iter().zip(ones)) {
            let to = [2, 3].map(|to| self.array(2 * k + to));
            self.step(Ag::Masks { part, at: 0, one }, &[self.array(k)], &to)?;
        }
        Ok(())
    }

    /// Folds of gates and of labels.
    pub(super) fn checks(&mut self, inputs: [&Inputs; 2]) -> Result<[Vec<u8>; 2], Fault> {
        let array = |k| self.array(k);
        let [alpha, beta, gamma] = [1, 2, 3].map(|k| self.bits(k));
        let products = self.of.program.products().0;
        let (digest, taus, labels) = (self.span(DIGEST, 0), array(12), array(8));
        let macs = [array(2), array(3), array(6)];
        let keys = [array(4), array(5), array(7)];
        let (offset, results, operands) = (Some(OFFSET), array(9), [array(10), array(11)]);
        let folds = [0, 1].map(|k| self.span(FOLD, k));
        if self.party == 0 {
            // Public values of operands follow from those of results.
            self.load(PUBLIC, inputs, 0)?;
            let (part, one) = (PUBLIC, One::Nothing);
            self.step(Ag::Expand, &[gamma], &[results])?;
            self.step(Ag::Masks { part, at: 0, one }, &[results], &operands)?;
            self.step(Ag::Bits { bit: 0 }, &operands[..1], &[alpha])?;
            self.step(Ag::Bits { bit: 0 }, &operands[1..], &[beta])?;
            let offset = None;
            let src = [&[alpha, beta][..], &macs].concat();
            self.step(Ag::Gates { offset, products }, &src, &[taus])?;
        } else {
            let src = [&[alpha, beta, gamma][..], &macs, &keys].concat();
            self.step(Ag::Gates { offset, products }, &src, &[taus])?;
        }
        self.step(Ag::Fold { offset: None }, &[digest, taus], &[folds[0]])?;
        if self.party == 0 {
            self.step(Ag::Fold { offset }, &[digest, gamma, labels], &[folds[1]])?;
        } else {
            self.step(Ag::Fold { offset: None }, &[digest, labels], &[folds[1]])?;
        }
        Ok([self.see(folds[0])?, self.see(folds[1])?])
    }
}
