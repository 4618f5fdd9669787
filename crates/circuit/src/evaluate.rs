//! What a circuit means: evaluation in the clear.

use veil_math::Ring;

use crate::{Circuit, Gate, Per, Reduce};

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
        /// What the port needs.
        need: u64,
        /// What was given.
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
    /// Evaluates one row: `inputs[port][wire]` to `outputs[port][wire]`, one ring element each.
    ///
    /// This is the definition that everything else is tested against. An output that is summed over the rows is the
    /// sum of this one row. The circuit must be valid.
    ///
    /// Of a circuit with random gates it is one of the results that there can be: that of zeros in the place of all random values.
    pub fn evaluate(&self, inputs: &[Vec<u128>]) -> Result<Vec<Vec<u128>>, EvaluateError> {
        check_ports(self, inputs.len())?;
        let mut values = Vec::with_capacity(self.wires() as usize);
        for (port, input) in self.inputs.iter().zip(inputs) {
            check_size(&port.name, u64::from(port.width), input.len(), "elements")?;
            if let Some(index) = input
                .iter()
                .position(|&value| self.ring.reduce(value) != value)
            {
                let (port, value) = (port.name.clone(), input[index]);
                return Err(EvaluateError::OutsideRing {
                    port,
                    index,
                    value,
                    ring: self.ring,
                });
            }
            values.extend_from_slice(input);
        }
        let rings = self.rings();
        for (gate, &ring) in self.gates.iter().zip(&rings[values.len()..]) {
            let at = |wire: crate::Wire| values[wire.0 as usize];
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
                Gate::ShiftRight(a, by) | Gate::TruncatePr { of: a, by, .. } => at(a) >> by,
                Gate::Random(_) | Gate::RandomBit(_) => 0,
                Gate::Append(a, b) => ring.add(ring.mul(at(a), 2), at(b)),
            };
            values.push(value);
        }
        let read = |port: &crate::OutputPort| {
            port.wires
                .iter()
                .map(|wire| values[wire.0 as usize])
                .collect()
        };
        Ok(self.outputs.iter().map(read).collect())
    }

    /// Evaluates a batch of rows, many at a time, on packed columns.
    ///
    /// `inputs[port]` is `[wire][ring.bytes(rows)]`: for each wire in turn its values in all rows, bit-packed with row
    /// 0 in bit 0, or little-endian elements. A port with a value per job has one row. Outputs have the same shape; one
    /// that is summed over the rows has one row. Padding bits of a last byte are ignored in inputs and zero in outputs.
    /// The circuit must be valid; of one with random gates see [`Circuit::evaluate`].
    pub fn evaluate_batch(
        &self,
        rows: u64,
        inputs: &[&[u8]],
    ) -> Result<Vec<Vec<u8>>, EvaluateError> {
        check_ports(self, inputs.len())?;
        for (port, input) in self.inputs.iter().zip(inputs) {
            let rows = if port.per == Per::Job { 1 } else { rows };
            let need = u64::from(port.width).saturating_mul(self.ring.bytes(rows));
            check_size(&port.name, need, input.len(), "bytes")?;
        }
        Ok(match self.ring {
            Ring::Bits => batch::<BitWord>(self, rows as usize, inputs),
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

/// What is computed at once: 64 rows of bits, or one element.
trait Word: Copy + Default {
    /// Rows in a word.
    const ROWS: usize;
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    /// `value`, an element of the ring, in every row.
    fn every(value: u128) -> Self;
    /// Bit `j` of every row.
    fn bit(self, j: u32) -> Self;
    /// Every row without its lowest bits.
    fn shift(self, by: u32) -> Self;
    /// Whether the lowest bits are zero, in every row.
    fn is_zero(self, bits: u32) -> Self;
    /// The word of up to `ROWS` rows in at most `ROWS * element` bytes.
    fn load(bytes: &[u8]) -> Self;
    /// The first bytes of the word.
    fn store(self, bytes: &mut [u8]);
}

#[derive(Clone, Copy, Default)]
struct BitWord(u64);

impl Word for BitWord {
    const ROWS: usize = 64;
    fn add(self, other: Self) -> Self {
        Self(self.0 ^ other.0)
    }
    fn sub(self, other: Self) -> Self {
        Self(self.0 ^ other.0)
    }
    fn mul(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
    fn every(value: u128) -> Self {
        Self(0u64.wrapping_sub(value as u64 & 1))
    }
    fn bit(self, _: u32) -> Self {
        self
    }
    fn shift(self, _: u32) -> Self {
        self
    }
    fn is_zero(self, _: u32) -> Self {
        self
    }
    fn load(bytes: &[u8]) -> Self {
        Self(u64::load(bytes))
    }
    fn store(self, bytes: &mut [u8]) {
        self.0.store(bytes);
    }
}

macro_rules! integer_word {
    ($type:ty) => {
        impl Word for $type {
            const ROWS: usize = 1;
            fn add(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            fn sub(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
            fn mul(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
            fn every(value: u128) -> Self {
                value as $type
            }
            fn bit(self, j: u32) -> Self {
                self >> j & 1
            }
            fn shift(self, by: u32) -> Self {
                self >> by
            }
            fn is_zero(self, bits: u32) -> Self {
                (self << (Self::BITS - bits) == 0).into()
            }
            fn load(bytes: &[u8]) -> Self {
                let mut word = [0; size_of::<$type>()];
                word[..bytes.len()].copy_from_slice(bytes);
                Self::from_le_bytes(word)
            }
            fn store(self, bytes: &mut [u8]) {
                bytes.copy_from_slice(&self.to_le_bytes()[..bytes.len()]);
            }
        }
    };
}
integer_word!(u64);
integer_word!(u128);

// Words computed per step: long enough to hide the gate list, short enough that a large circuit's wires stay in cache.
const WORDS: usize = 8;

type Block<W> = [W; WORDS];

fn batch<W: Word>(circuit: &Circuit, rows: usize, inputs: &[&[u8]]) -> Vec<Vec<u8>> {
    let ring = circuit.ring;
    let column = ring.bytes(rows as u64) as usize;
    let one = ring.bytes(1) as usize;
    let mut outputs: Vec<Vec<u8>> = circuit
        .outputs
        .iter()
        .map(|port| {
            vec![
                0;
                port.wires.len()
                    * if port.reduce == Reduce::Sum {
                        one
                    } else {
                        column
                    }
            ]
        })
        .collect();
    let mut values: Vec<Block<W>> = Vec::with_capacity(circuit.wires() as usize);
    let rings = circuit.rings();
    let per_block = W::ROWS * WORDS;
    for start in (0..rows).step_by(per_block) {
        let here = (rows - start).min(per_block);
        let bytes = ring.bytes(start as u64) as usize..ring.bytes((start + here) as u64) as usize;
        values.clear();
        for (port, input) in circuit.inputs.iter().zip(inputs) {
            match port.per {
                Per::Row => values.extend(
                    input
                        .chunks_exact(column)
                        .map(|column| load(&column[bytes.clone()])),
                ),
                Per::Job => values.extend(input.chunks_exact(one).map(|element| {
                    // The first row only: a packed byte has room for eight.
                    [W::every(ring.reduce(u128::load(element))); WORDS]
                })),
            }
        }
        run(circuit, &rings, &mut values);
        for (port, output) in circuit.outputs.iter().zip(&mut outputs) {
            match port.reduce {
                Reduce::None => {
                    for (wire, column) in port.wires.iter().zip(output.chunks_exact_mut(column)) {
                        store(&values[wire.0 as usize], &mut column[bytes.clone()]);
                    }
                }
                Reduce::Sum => {
                    for (wire, total) in port.wires.iter().zip(output.chunks_exact_mut(one)) {
                        let block = &values[wire.0 as usize][..here.div_ceil(W::ROWS)];
                        block
                            .iter()
                            .fold(W::load(total), |sum, &word| sum.add(word))
                            .store(total);
                    }
                }
            }
        }
    }
    clear_padding(circuit, rows, column, &mut outputs);
    outputs
}

/// Bits of a circuit over integers are integers here, of which the lowest bit counts.
fn run<W: Word>(circuit: &Circuit, rings: &[Ring], values: &mut Vec<Block<W>>) {
    let zip = |a: &Block<W>, b: &Block<W>, f: fn(W, W) -> W| -> Block<W> {
        std::array::from_fn(|i| f(a[i], b[i]))
    };
    for gate in &circuit.gates {
        let at = |wire: crate::Wire| &values[wire.0 as usize];
        let mut value = match *gate {
            Gate::Add(a, b) => zip(at(a), at(b), W::add),
            Gate::Sub(a, b) => zip(at(a), at(b), W::sub),
            Gate::Mul(a, b) => zip(at(a), at(b), W::mul),
            Gate::Plus(a, c) => zip(at(a), &[W::every(c); WORDS], W::add),
            Gate::Times(a, c) => zip(at(a), &[W::every(c); WORDS], W::mul),
            Gate::Constant(c) => [W::every(c); WORDS],
            Gate::Bit(a, j) => at(a).map(|word| word.bit(j)),
            Gate::Lift(a) => *at(a),
            Gate::ConstantBit(c) => [W::every(c.into()); WORDS],
            Gate::IsZero(a, bits) => at(a).map(|word| word.is_zero(bits)),
            Gate::ShiftRight(a, by) | Gate::TruncatePr { of: a, by, .. } => {
                at(a).map(|word| word.shift(by))
            }
            Gate::Random(_) | Gate::RandomBit(_) => [W::default(); WORDS],
            Gate::Append(a, b) => {
                let twice = zip(at(a), at(a), W::add);
                zip(&twice, at(b), W::add)
            }
        };
        if rings[values.len()] == Ring::Bits {
            value = value.map(|word| word.bit(0));
        }
        values.push(value);
    }
}

fn load<W: Word>(bytes: &[u8]) -> Block<W> {
    let mut block = [W::default(); WORDS];
    for (word, bytes) in block.iter_mut().zip(bytes.chunks(size_of::<W>())) {
        *word = W::load(bytes);
    }
    block
}

fn store<W: Word>(block: &Block<W>, bytes: &mut [u8]) {
    for (word, bytes) in block.iter().zip(bytes.chunks_mut(size_of::<W>())) {
        word.store(bytes);
    }
}

fn clear_padding(circuit: &Circuit, rows: usize, column: usize, outputs: &mut [Vec<u8>]) {
    if circuit.ring != Ring::Bits || rows.is_multiple_of(8) {
        return;
    }
    for output in outputs {
        for column in output.chunks_exact_mut(column) {
            column[rows / 8] &= (1 << (rows % 8)) - 1;
        }
    }
}
