//! The body of a layer: a program of a device, with rows of the workspace as repetitions.

use veil_circuit::schedule::NO_NUMBER;
use veil_device::{Dst, Instr, Program, Src};

use super::body::{Body, Of, Value};

/// A program, as a core runs it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Layer {
    pub(crate) body: Body,
    /// Job-wide values, which are inputs of the run in this order.
    pub(crate) job_wide: Vec<u32>,
    /// Slots whose labels are inputs of every repetition, in this order.
    pub(crate) reads: Vec<u32>,
    /// Slots that are written: with leave `Ok(k)`, or with a label that is there before.
    pub(crate) writes: Vec<(u32, Result<u32, Of>, bool)>,
}

/// What slots and temps hold.
struct State {
    slots: Vec<Option<Value>>,
    written: Vec<bool>,
    temps: Vec<Value>,
    job_wide: Vec<Option<u32>>,
    layer: Layer,
}

impl State {
    fn read(&mut self, src: Src) -> Value {
        let layer = &mut self.layer;
        match src {
            Src::Temp(t) => self.temps[t as usize],
            Src::Slot(s) => *self.slots[s as usize].get_or_insert_with(|| {
                layer.reads.push(s);
                let input = layer.reads.len() as u32 - 1;
                Value::plain(Of::Each { input, back: 0 })
            }),
            Src::JobWide(u) => {
                let input = *self.job_wide[u as usize].get_or_insert_with(|| {
                    layer.job_wide.push(u);
                    layer.job_wide.len() as u32 - 1
                });
                Value::plain(Of::Run(input))
            }
        }
    }

    fn write(&mut self, dst: Dst, value: Value) {
        match dst {
            Dst::Temp(t) => self.temps[t as usize] = value,
            Dst::Slot(s) => {
                self.slots[s as usize] = Some(value);
                self.written[s as usize] = true;
            }
        }
    }
}

impl Layer {
    /// The body of a program over labels that was checked against banks of `slots` slots and `job_wide` shared values.
    pub(crate) fn of(program: &Program, slots: u32, job_wide: u32) -> Self {
        let mut state = State {
            slots: vec![None; slots as usize],
            written: vec![false; slots as usize],
            temps: vec![Value::constant(false); program.temps as usize],
            job_wide: vec![None; job_wide as usize],
            layer: Layer {
                body: Body::default(),
                job_wide: Vec::new(),
                reads: Vec::new(),
                writes: Vec::new(),
            },
        };
        let mut numbers = Vec::new();
        for instr in &program.code {
            match *instr {
                Instr::Add(a, b, to) | Instr::Sub(a, b, to) => {
                    let operands = [state.read(a), state.read(b)];
                    let sum = state.layer.body.xor(operands);
                    state.write(to, sum);
                }
                Instr::Plus(a, c, to) => {
                    let value = state.read(a).inverted(c & 1 == 1);
                    state.write(to, value);
                }
                Instr::Times(a, c, to) => {
                    let value = state.read(a);
                    let kept = c & 1 == 1;
                    state.write(to, if kept { value } else { Value::constant(false) });
                }
                Instr::Copy(a, to) => {
                    let value = state.read(a);
                    state.write(to, value);
                }
                Instr::Constant(c, to) => state.write(to, Value::constant(c & 1 == 1)),
                Instr::Product {
                    ref pairs,
                    out,
                    index,
                } => {
                    let (a, b) = program.pairs[pairs.start as usize];
                    let operands = [state.read(a), state.read(b)];
                    let product = state.layer.body.push(true, operands);
                    numbers.resize(state.layer.body.gates.len() - 1, NO_NUMBER);
                    numbers.push(index);
                    state.write(Dst::Slot(out), product);
                }
                // Bits have no sums; this was checked.
                Instr::ProductSum { .. } | Instr::Sum(..) => {}
            }
        }
        let State {
            slots,
            written,
            mut layer,
            ..
        } = state;
        for (slot, value) in (0..).zip(slots) {
            let Some(value) = value.filter(|_| written[slot as usize]) else {
                continue;
            };
            let of = match value.of {
                Of::Gate { .. } => {
                    let leaves = &mut layer.body.leaves;
                    let at = leaves.iter().position(|of| *of == value.of);
                    Ok(at.unwrap_or_else(|| {
                        leaves.push(value.of);
                        leaves.len() - 1
                    }) as u32)
                }
                of => Err(of),
            };
            layer.writes.push((slot, of, value.not));
        }
        numbers.resize(layer.body.gates.len(), NO_NUMBER);
        layer.body.numbers = Some(numbers);
        layer.body.of_run = layer.job_wide.len() as u32;
        layer.body.of_each = layer.reads.len() as u32;
        layer
    }
}
