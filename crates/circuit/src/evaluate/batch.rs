//! Evaluation of many rows at a time.

use veil_math::Ring;

use crate::{Circuit, Gate, Initial, OutputPort, Per, Reduce, Wire};

/// What is computed at once: 64 rows of bits, or one element.
pub(super) trait Word: Copy + Default {
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
pub(super) struct BitWord(u64);

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
integer_word!(u32);
integer_word!(u64);
integer_word!(u128);

// Words computed per step: long enough to hide the gate list, short enough that a large circuit's wires stay in cache.
const WORDS: usize = 8;

type Block<W> = [W; WORDS];

pub(super) fn batch<W: Word>(circuit: &Circuit, rows: usize, inputs: &[&[u8]]) -> Vec<Vec<u8>> {
    let ring = circuit.ring;
    let column = ring.bytes(rows as u64) as usize;
    let one = ring.bytes(1) as usize;
    let rings = circuit.rings();
    let column_of = |port: &OutputPort| match circuit.output_ring(port, &rings) {
        Ring::Bits => Ring::Bits.bytes(rows as u64) as usize,
        _ => column,
    };
    let mut outputs: Vec<Vec<u8>> = circuit
        .outputs
        .iter()
        .map(|port| {
            let of_wire = if port.reduce == Reduce::Sum {
                one
            } else {
                column_of(port)
            };
            vec![0; port.value_width(circuit.clock.cycles) as usize * of_wire]
        })
        .collect();
    let sources = circuit.sources() as usize;
    let mut state: Vec<Block<W>> = Vec::new();
    let mut values: Vec<Block<W>> = Vec::with_capacity(circuit.wires() as usize);
    let per_block = W::ROWS * WORDS;
    for start in (0..rows).step_by(per_block) {
        let here = (rows - start).min(per_block);
        let bytes = ring.bytes(start as u64) as usize..ring.bytes((start + here) as u64) as usize;
        values.clear();
        for (port, input) in circuit.inputs.iter().zip(inputs) {
            match port.per {
                Per::Row if port.bits => {
                    let columns = input.chunks_exact(Ring::Bits.bytes(rows as u64) as usize);
                    // A block of integers is eight rows.
                    let byte = |column: &[u8]| u128::from(column[start / WORDS]);
                    let bits = |byte: u128| std::array::from_fn(|row| W::every(byte >> row & 1));
                    values.extend(columns.map(|column| bits(byte(column))));
                }
                // Those of cycle 0, and of every other in their place when it comes.
                Per::Row | Per::Cycle => values.extend(
                    (input.chunks_exact(column))
                        .take(port.width as usize)
                        .map(|column| load(&column[bytes.clone()])),
                ),
                Per::Job => values.extend(input.chunks_exact(one).map(|element| {
                    // The first row only: a packed byte has room for eight.
                    [W::every(ring.reduce(u128::load(element))); WORDS]
                })),
            }
        }
        for register in &circuit.clock.registers {
            values.push(match register.initial {
                Initial::Constant(bit) => [W::every(bit.into()); WORDS],
                Initial::Wire(wire) => values[wire.0 as usize],
            });
        }
        for cycle in 0..circuit.clock.cycles {
            if cycle > 0 {
                load_cycle(circuit, inputs, cycle, (column, &bytes), &mut values);
                values.truncate(sources);
                values.splice(sources - state.len().., state.drain(..));
            }
            run(circuit, &rings, &mut values);
            let next = circuit.clock.registers.iter().map(|register| register.next);
            state.extend(next.map(|wire| values[wire.0 as usize]));
            for (port, output) in circuit.outputs.iter().zip(&mut outputs) {
                if !circuit.is_put_out(port, cycle) {
                    continue;
                }
                if port.reduce == Reduce::Sum {
                    for (wire, total) in port.wires.iter().zip(output.chunks_exact_mut(one)) {
                        let block = &values[wire.0 as usize][..here.div_ceil(W::ROWS)];
                        block
                            .iter()
                            .fold(W::load(total), |sum, &word| sum.add(word))
                            .store(total);
                    }
                    continue;
                }
                let first = match port.reduce {
                    Reduce::EveryCycle => cycle as usize * port.wires.len(),
                    Reduce::None | Reduce::Sum => 0,
                };
                let beside = ring != Ring::Bits && circuit.output_ring(port, &rings) == Ring::Bits;
                let columns = output.chunks_exact_mut(column_of(port)).skip(first);
                for (wire, column) in port.wires.iter().zip(columns) {
                    let block = &values[wire.0 as usize];
                    if beside {
                        // A block of integers is eight rows.
                        column[start / WORDS] = packed(&block[..here]);
                    } else {
                        store(block, &mut column[bytes.clone()]);
                    }
                }
            }
        }
        state.clear();
    }
    clear_padding(circuit, rows, column, &mut outputs);
    outputs
}

/// The inputs of a further cycle, in the place of those before.
fn load_cycle<W: Word>(
    circuit: &Circuit,
    inputs: &[&[u8]],
    cycle: u64,
    (column, bytes): (usize, &std::ops::Range<usize>),
    values: &mut [Block<W>],
) {
    let mut first = 0;
    for (port, input) in circuit.inputs.iter().zip(inputs) {
        let width = port.width as usize;
        if port.per == Per::Cycle {
            let columns = input.chunks_exact(column).skip(cycle as usize * width);
            for (value, column) in values[first..first + width].iter_mut().zip(columns) {
                *value = load(&column[bytes.clone()]);
            }
        }
        first += width;
    }
}

/// Bits of a circuit over integers are integers here, of which the lowest bit counts.
fn run<W: Word>(circuit: &Circuit, rings: &[Ring], values: &mut Vec<Block<W>>) {
    let zip = |a: &Block<W>, b: &Block<W>, f: fn(W, W) -> W| -> Block<W> {
        std::array::from_fn(|i| f(a[i], b[i]))
    };
    for gate in &circuit.gates {
        let at = |wire: Wire| &values[wire.0 as usize];
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
            Gate::ShiftRight { of: a, by, .. } | Gate::TruncatePr { of: a, by, .. } => {
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

/// Bits that are integers, one after the other.
fn packed<W: Word>(block: &[W]) -> u8 {
    let bits = block.iter().enumerate();
    bits.fold(0, |byte, (row, word)| {
        let mut bit = [0];
        word.store(&mut bit);
        byte | (bit[0] & 1) << row
    })
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
