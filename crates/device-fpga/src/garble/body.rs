//! The body of a loop: what a core does in every repetition of a run.
//!
//! A repetition is a netlist cycle of a sequential circuit, or a row of a batch. Gates of one read what gates of repetitions before it
//! have written, so that registers are no copies but names of values that are older.

/// What an operand's zero-label is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Of {
    /// That of the constant 0: the label 0.
    Zero,
    /// That of an input of the run.
    Run(u32),
    /// That of an input of every repetition, in the repetition that is `back` before this one.
    Each {
        /// Number of the input.
        input: u32,
        /// Repetitions.
        back: u32,
    },
    /// The result of a gate, in the repetition that is `back` before this one.
    Gate {
        /// Number of the gate.
        gate: u32,
        /// Repetitions.
        back: u32,
    },
}

/// A value: a label, or the other label of its wire.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Value {
    /// Whose label.
    pub of: Of,
    /// Whether it is inverted: the label plus the offset.
    pub not: bool,
}

impl Value {
    /// A public bit.
    pub const fn constant(bit: bool) -> Self {
        Value {
            of: Of::Zero,
            not: bit,
        }
    }

    /// A label as it is.
    pub const fn plain(of: Of) -> Self {
        Value { of, not: false }
    }

    /// Inverted if `not`.
    #[must_use]
    pub const fn inverted(self, not: bool) -> Self {
        Value {
            not: self.not != not,
            ..self
        }
    }

    /// The same of `back` repetitions ago, if it is of this one.
    #[must_use]
    pub fn earlier(self, by: u32) -> Self {
        let of = match self.of {
            Of::Each { input, back } => Of::Each {
                input,
                back: back + by,
            },
            Of::Gate { gate, back } => Of::Gate {
                gate,
                back: back + by,
            },
            of => of,
        };
        Value { of, ..self }
    }
}

/// A gate: the XOR or the AND of two values. An XOR is of labels as they are; if an odd number of its operands is inverted, its result is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gate {
    /// Whether it is an AND, which has a table.
    pub is_and: bool,
    /// What it reads.
    pub operands: [Value; 2],
}

/// What the result of a gate is taken to be before the first repetition: what a register begins as.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct First {
    /// The gate.
    pub gate: u32,
    /// Repetitions before the first: 1 for the one just before it.
    pub back: u32,
    /// A constant or an input of the run.
    pub value: Value,
}

/// The body of a loop.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Body {
    /// Gates in an order in which they can be computed.
    pub gates: Vec<Gate>,
    /// Numbers of gates that are ANDs, by gate, if they are said: places of their tables, and in tweaks.
    pub numbers: Option<Vec<u32>>,
    /// Gates' results that leave in every repetition.
    pub leaves: Vec<Of>,
    /// What is there before the first repetition.
    pub firsts: Vec<First>,
    /// Inputs of the run.
    pub of_run: u32,
    /// Inputs of every repetition.
    pub of_each: u32,
}

impl Body {
    /// ANDs of a repetition.
    pub fn ands(&self) -> u32 {
        self.gates.iter().filter(|gate| gate.is_and).count() as u32
    }

    /// Puts a gate in as it is.
    pub(crate) fn push(&mut self, is_and: bool, operands: [Value; 2]) -> Value {
        self.gates.push(Gate { is_and, operands });
        let gate = self.gates.len() as u32 - 1;
        Value::plain(Of::Gate { gate, back: 0 })
    }

    /// The XOR of two values: one of them, if the other is a constant.
    pub(crate) fn xor(&mut self, [a, b]: [Value; 2]) -> Value {
        match (a.of, b.of) {
            (x, y) if x == y => Value::constant(a.not != b.not),
            (Of::Zero, _) => b.inverted(a.not),
            (_, Of::Zero) => a.inverted(b.not),
            _ => self.push(false, [a, b]),
        }
    }
}
