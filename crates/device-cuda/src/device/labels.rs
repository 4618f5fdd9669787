//! Commands about labels as launches of kernels/device/gates.cu and labels.cu.

use veil_device::garble::{Garbling, NO_OFFSET};
use veil_device::{ColumnType, Command, Fault, KeyId, Span};
use zeroize::Zeroizing;

use super::queue::{Argument, Queue};
use crate::kernels::{COLOUR, ENCODE, EVALUATE_HALF, EVALUATE_THREE, GARBLE_HALF, GARBLE_THREE};

/// A label as two numbers.
pub(super) fn numbers(label: u128) -> [u64; 2] {
    [label as u64, (label >> 64) as u64]
}

/// What the rows of a program over labels are.
#[derive(Clone, Copy)]
pub(super) enum Circuits {
    /// Rows of one circuit, under one offset, which the evaluator does not have.
    Rows { offset: u128 },
    /// Circuits, each with a start point and, at the garbler, an offset of its own.
    Each {
        first: u64,
        starts: Span,
        offsets: Option<Span>,
    },
}

impl Queue<'_> {
    /// The offset of the garbler.
    pub(super) fn offset(&self, key: KeyId) -> Result<u128, Fault> {
        let key = self.keys.get(&key).ok_or(NO_OFFSET)?;
        let offset = u128::from_le_bytes(*key.secret.expose());
        if offset & 1 == 1 {
            Ok(offset)
        } else {
            Err(NO_OFFSET)
        }
    }

    pub(super) fn encode(&mut self, offset: KeyId, command: &Command) -> Result<(), Fault> {
        let offset = numbers(self.offset(offset)?);
        let ([labels, bits], to) = ([command.src[0], command.src[1]], command.dst[0]);
        let (count, cells) = (u64::from(to.count), self.labels(self.item(to)));
        let [labels, of] = [labels, bits].map(|from| self.memory.at(from));
        let bytes = self.memory.item(bits.region);
        let call = [self.memory.at(to), cells, count, labels, of, bytes];
        let call = Zeroizing::new([&call[..], &offset].concat());
        self.plain(&ENCODE, Some(count * cells), &call);
        Ok(())
    }

    pub(super) fn colour(&mut self, command: &Command) {
        let (from, to) = (command.src[0], command.dst[0]);
        let (count, bytes) = (u64::from(to.count), self.memory.item(to.region));
        let cells = self.labels(self.item(from));
        let [at, labels] = [to, from].map(|span| self.memory.at(span));
        let call = [at, bytes, count, labels, cells];
        self.plain(&COLOUR, Some(count * bytes), &call);
    }

    /// Labels of an item.
    pub(super) fn labels(&self, item: ColumnType) -> u64 {
        match item {
            ColumnType::Label => 1,
            _ => u64::from(self.memory.frame.rows),
        }
    }

    /// A program over labels: as the garbler, who has the offset, or as the evaluator.
    pub(super) fn gates(
        &mut self,
        scheme: Garbling,
        offset: Option<KeyId>,
        command: &Command,
    ) -> Result<(), Fault> {
        let garbles = offset.is_some();
        let offset = offset.map_or(Ok(0), |key| self.offset(key))?;
        let circuits = Circuits::Rows { offset };
        let tables = if garbles { &command.dst } else { &command.src };
        self.circuits((scheme, garbles), circuits, tables, command)
    }

    /// The same, whatever the rows are.
    pub(super) fn circuits(
        &mut self,
        (scheme, garbles): (Garbling, bool),
        circuits: Circuits,
        tables: &[Span],
        command: &Command,
    ) -> Result<(), Fault> {
        let (id, compiled) = self.code(command)?;
        let code = &compiled.code;
        let memory = self.memory;
        let rows = u64::from(memory.frame.rows);
        let [slots, job_wide, _] = code.regions;
        let start = |region| memory.at(self.component(region, 0));
        let mut call = Zeroizing::new(Vec::with_capacity(20));
        call.extend([u64::from(code.levels), u64::from(code.depth), rows]);
        call.extend([start(slots), start(job_wide), u64::from(code.pairs)]);
        let (mut number, mut point, mut offsets, mut dice) = (0, 0, [0; 2], [0; 4]);
        let (offset, each) = match circuits {
            Circuits::Rows { offset } => (offset, [0; 3]),
            Circuits::Each {
                first,
                starts,
                offsets,
            } => {
                number = first;
                (
                    0,
                    [1, memory.at(starts), offsets.map_or(0, |at| memory.at(at))],
                )
            }
        };
        if code.counts[0] > 0 {
            if let Circuits::Rows { .. } = circuits {
                let prf_call = command.calls[0];
                number = prf_call.first;
                point = scheme.start(&self.key(prf_call)?.prf, prf_call.tag, memory.frame);
            }
            let kinds = scheme.tables().len();
            for (offset, span) in offsets.iter_mut().zip(tables.iter().take(kinds)) {
                *offset = memory.at(*span);
            }
            let stride = scheme.dice(memory.layout.chunk_rows);
            if garbles && scheme.dice(1) > 0 {
                let [schedule, first, ends] = self.prf_call(command.calls[1])?;
                dice = [schedule, first, ends, stride];
            }
        }
        call.push(number);
        call.extend(offsets);
        call.extend(numbers(point));
        call.extend(numbers(offset));
        call.extend(dice);
        call.extend(each);
        let kernel = match (scheme, garbles) {
            (Garbling::HalfGates, true) => &GARBLE_HALF,
            (Garbling::HalfGates, false) => &EVALUATE_HALF,
            (Garbling::ThreeHalves, true) => &GARBLE_THREE,
            (Garbling::ThreeHalves, false) => &EVALUATE_THREE,
        };
        let call = self.call(&call);
        let arguments = [
            Argument::Workspace,
            Argument::Temps,
            call,
            Argument::Verdict,
            Argument::Schedules,
            Argument::Code(id, 0),
        ];
        self.levels(kernel, (code, rows), &arguments);
        let temps = (16 * u64::from(code.temps)).saturating_mul(rows);
        self.temps = self.temps.max(temps);
        Ok(())
    }
}
