//! The meaning of a circuit: evaluation in the clear.

mod batch;

use veil_math::Ring;

use batch::{BitWord, batch};

use crate::{Circuit, Gate, Initial, OutputPort, Per, Reduce, Wire};

/// Why inputs do not fit a circuit.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EvaluateError {
    /// Not one value for each input port.
    #[error(
        "the circuit has {ports} input ports, but {given} inputs were given; give one for each port, in order"
    )]
    Ports {
        /// Input ports of the circuit.
        ports: usize,
        /// Inputs given.
        given: usize,
    },
    /// A value of the wrong size.
    #[error("input `{port}` needs {need} {unit}, but {given} were given")]
    Size {
        /// Name of the port.
        port: String,
        /// The size of the port.
        need: u64,
        /// The given size.
        given: u64,
        /// `elements` or `bytes`.
        unit: &'static str,
    },
    /// A value outside the ring.
    #[error("element {index} of input `{port}` is {value}, which is not an element of {}; reduce it first", ring.name())]
    OutsideRing {
        /// Name of the port.
        port: String,
        /// Which element of the port.
        index: usize,
        /// Its value.
        value: u128,
        /// The ring of the circuit.
        ring: Ring,
    },
}

impl Circuit {
    /// Evaluates one row: `inputs[port][wire]` to `outputs[port][wire]`, one ring element each. A port of a sequential circuit with a value
    /// in every cycle is `[port][cycle][wire]`.
    ///
    /// This is the definition that everything else is tested against. An output that is summed over the rows is the
    /// sum of this one row. The circuit must be valid.
    ///
    /// Of a circuit with random gates it is one of the results that there can be: that of zeros in the place of all random values.
    ///
    /// # Errors
    /// [`EvaluateError::Ports`] if there is not one input for each port, [`EvaluateError::Size`] if one has another number of
    /// elements than its port, [`EvaluateError::OutsideRing`] if an element is not one of the ring.
    ///
    /// # Panics
    /// If the circuit is not valid, as of [`Circuit::validate`].
    pub fn evaluate(&self, inputs: &[Vec<u128>]) -> Result<Vec<Vec<u128>>, EvaluateError> {
        check_ports(self, inputs.len())?;
        for (port, input) in self.inputs.iter().zip(inputs) {
            let need = port.value_width(self.clock.cycles);
            check_size(&port.name, need, input.len(), "elements")?;
            let ring = port.ring(self.ring);
            if let Some(index) = input.iter().position(|&value| ring.reduce(value) != value) {
                let (port, value) = (port.name.clone(), input[index]);
                return Err(EvaluateError::OutsideRing {
                    port,
                    index,
                    value,
                    ring,
                });
            }
        }
        let rings = self.rings();
        let mut outputs: Vec<Vec<u128>> = vec![Vec::new(); self.outputs.len()];
        let mut values = Vec::with_capacity(self.wires() as usize);
        let mut state = Vec::new();
        for cycle in 0..self.clock.cycles {
            values.clear();
            for (port, input) in self.inputs.iter().zip(inputs) {
                let width = port.width as usize;
                let first = match port.per {
                    Per::Cycle => cycle as usize * width,
                    Per::Row | Per::Job => 0,
                };
                values.extend_from_slice(&input[first..first + width]);
            }
            if cycle == 0 {
                state.extend(self.clock.registers.iter().map(|r| match r.initial {
                    Initial::Constant(bit) => bit.into(),
                    Initial::Wire(wire) => values[wire.0 as usize],
                }));
            }
            values.append(&mut state);
            self.evaluate_gates(&rings, &mut values);
            let at = |wire: &Wire| values[wire.0 as usize];
            state.extend(self.clock.registers.iter().map(|r| at(&r.next)));
            for (port, output) in self.outputs.iter().zip(&mut outputs) {
                if self.is_put_out(port, cycle) {
                    output.extend(port.wires.iter().map(at));
                }
            }
        }
        Ok(outputs)
    }

    /// Whether an output has a value of this cycle.
    fn is_put_out(&self, port: &OutputPort, cycle: u64) -> bool {
        port.reduce == Reduce::EveryCycle || cycle + 1 == self.clock.cycles
    }

    /// Computes the gates of a cycle, behind the sources.
    fn evaluate_gates(&self, rings: &[Ring], values: &mut Vec<u128>) {
        for (gate, &ring) in self.gates.iter().zip(&rings[values.len()..]) {
            let at = |wire: Wire| values[wire.0 as usize];
            let value = match *gate {
                Gate::Add(a, b) => ring.add(at(a), at(b)),
                Gate::Sub(a, b) => ring.sub(at(a), at(b)),
                Gate::Mul(a, b) => ring.mul(at(a), at(b)),
                Gate::Plus(a, c) => ring.add(at(a), c),
                Gate::Times(a, c) => ring.mul(at(a), c),
                Gate::Constant(c) => c,
                Gate::Bit(a, j) => at(a) >> j & 1,
                Gate::Lift(a) => at(a),
                Gate::ConstantBit(c) => c.into(),
                Gate::IsZero(a, bits) => (at(a) << (128 - bits) == 0).into(),
                Gate::ShiftRight { of: a, by, .. } | Gate::TruncatePr { of: a, by, .. } => {
                    at(a) >> by
                }
                Gate::Random(_) | Gate::RandomBit(_) => 0,
                Gate::Append(a, b) => ring.add(ring.mul(at(a), 2), at(b)),
            };
            values.push(value);
        }
    }

    /// Evaluates a batch of rows, many at a time, on packed columns.
    ///
    /// `inputs[port]` is `[wire][ring.bytes(rows)]`: for each wire in turn its values in all rows, bit-packed with row
    /// 0 in bit 0, or little-endian elements. A port with a value per job has one row, one with a value in every cycle is
    /// `[cycle][wire][ring.bytes(rows)]`, and a port of bits in a circuit over integers is packed bits. Outputs have the same shape; one that is summed over the rows has one row. Padding bits of a last byte are ignored in inputs and zero in outputs.
    /// The circuit must be valid; of one with random gates see [`Circuit::evaluate`].
    ///
    /// # Errors
    /// [`EvaluateError::Ports`] if there is not one input for each port, [`EvaluateError::Size`] if one has another number of
    /// bytes than its port has in `rows` rows.
    ///
    /// # Panics
    /// If the circuit is not valid, as of [`Circuit::validate`].
    pub fn evaluate_batch(
        &self,
        rows: u64,
        inputs: &[&[u8]],
    ) -> Result<Vec<Vec<u8>>, EvaluateError> {
        check_ports(self, inputs.len())?;
        for (port, input) in self.inputs.iter().zip(inputs) {
            let rows = if port.per == Per::Job { 1 } else { rows };
            let width = port.value_width(self.clock.cycles);
            let need = width.saturating_mul(port.ring(self.ring).bytes(rows));
            check_size(&port.name, need, input.len(), "bytes")?;
        }
        Ok(match self.ring {
            Ring::Bits => batch::<BitWord>(self, rows as usize, inputs),
            Ring::Z32 => batch::<u32>(self, rows as usize, inputs),
            Ring::Z64 => batch::<u64>(self, rows as usize, inputs),
            Ring::Z128 => batch::<u128>(self, rows as usize, inputs),
        })
    }
}

fn check_ports(circuit: &Circuit, given: usize) -> Result<(), EvaluateError> {
    let ports = circuit.inputs.len();
    if ports == given {
        Ok(())
    } else {
        Err(EvaluateError::Ports { ports, given })
    }
}

fn check_size(
    port: &str,
    need: u64,
    given: usize,
    unit: &'static str,
) -> Result<(), EvaluateError> {
    let given = given as u64;
    if need == given {
        Ok(())
    } else {
        Err(EvaluateError::Size {
            port: port.to_owned(),
            need,
            given,
            unit,
        })
    }
}
