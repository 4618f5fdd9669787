//! Bundles, as a core reads them: what all engines start in one cycle. The fields are those of `rtl/garble/data/garble.toml`.

use crate::abi;

/// Bits of a gate, of a label that leaves, of a number of products or inputs, and of a stage.
const GATE: usize = abi::GATE_BITS as usize;
const LEAVE: usize = abi::LEAVE_BITS as usize;
const NUMBER: usize = abi::NUMBER_BITS as usize;
const STAGE: usize = abi::STAGE_BITS as usize;

// Fields are written from the lowest bit up, in this order.
const _: () = {
    assert!(abi::GATE_NUMBER_AT == 0 && abi::GATE_STAGE_AT == abi::NUMBER_BITS);
    assert!(abi::GATE_C_AT == abi::GATE_STAGE_AT + abi::STAGE_BITS);
    assert!(abi::GATE_B_AT == abi::GATE_C_AT + abi::PLACE_BITS);
    assert!(abi::GATE_A_AT == abi::GATE_B_AT + abi::OPERAND_BITS);
    assert!(abi::GATE_NOT_C_AT == abi::GATE_A_AT + abi::OPERAND_BITS);
    assert!(abi::GATE_IS_AND_AT == abi::GATE_NOT_C_AT + 3);
    assert!(
        abi::GATE_VALID_AT == abi::GATE_NOT_C_AT + 4 && abi::GATE_VALID_AT + 1 == abi::GATE_BITS
    );
    assert!(abi::LEAVE_STAGE_AT == 0 && abi::LEAVE_FROM_AT == abi::STAGE_BITS);
    assert!(abi::LEAVE_VALID_AT == abi::LEAVE_FROM_AT + abi::OPERAND_BITS);
    assert!(abi::OPERAND_PLACE_AT == 0 && abi::OPERAND_ROW_AT == abi::PLACE_BITS);
    assert!(abi::OPERAND_BANK_AT == abi::OPERAND_ROW_AT + abi::ROW_BITS);
    assert!(abi::PLACE_SLOT_AT == 0 && abi::PLACE_RING_AT == abi::SLOT_BITS);
};

/// Where a bank's label is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Bank {
    /// The results of XORs of an engine.
    Xor = 0,
    /// The results of ANDs of an engine.
    And = 1,
    /// Inputs.
    Input = 2,
    /// The label 0.
    #[default]
    Zero = 3,
}

/// A slot, or a ring of 2^`ring` slots that repetitions take in turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Place {
    pub(super) ring: u32,
    pub(super) slot: u32,
}

/// Where a label is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Operand {
    pub(super) bank: Bank,
    pub(super) engine: u32,
    pub(super) place: Place,
}

/// What an engine starts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Started {
    pub(super) is_and: bool,
    /// Which of the operands and the result are inverted.
    pub(super) not: [bool; 3],
    pub(super) operands: [Operand; 2],
    pub(super) to: Place,
    /// Repetitions of the kernel that its repetition of the body began earlier.
    pub(super) stage: u32,
    /// Of an AND.
    pub(super) number: u32,
}

/// A label that leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Leave {
    pub(super) from: Operand,
    pub(super) stage: u32,
}

/// What starts in a cycle.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Bundle {
    pub(super) engines: Vec<Option<Started>>,
    pub(super) leave: Option<Leave>,
    /// Inputs that must be there: of the run, and of the repetition that begins.
    pub(super) needs: [u32; 2],
}

impl Bundle {
    /// Nothing.
    pub(super) fn of(engines: u32) -> Self {
        Bundle {
            engines: vec![None; engines as usize],
            leave: None,
            needs: [0; 2],
        }
    }

    fn write(&self, to: &mut Bits<'_>) {
        to.put(NUMBER, self.needs[1]);
        to.put(NUMBER, self.needs[0]);
        if let Some(leave) = self.leave {
            to.put(STAGE, leave.stage);
            to.operand(leave.from);
            to.put(1, 1);
        } else {
            to.at += LEAVE;
        }
        for engine in &self.engines {
            let Some(gate) = engine else {
                to.at += GATE;
                continue;
            };
            to.put(NUMBER, gate.number);
            to.put(STAGE, gate.stage);
            to.place(gate.to);
            to.operand(gate.operands[1]);
            to.operand(gate.operands[0]);
            let [a, b, c] = gate.not.map(u32::from);
            to.put(
                5,
                c | b << 1 | a << 2 | u32::from(gate.is_and) << 3 | 1 << 4,
            );
        }
    }
}

/// Words of 32 bits of a bundle for so many engines.
pub(super) fn words(engines: u32) -> usize {
    (2 * NUMBER + LEAVE + engines as usize * GATE).div_ceil(32)
}

/// Bundles one after the other, bit 0 first.
pub(super) fn pack<'a>(bundles: impl Iterator<Item = &'a Bundle>) -> Vec<u32> {
    let mut all = Vec::new();
    for bundle in bundles {
        let from = all.len();
        all.resize(from + words(bundle.engines.len() as u32), 0);
        bundle.write(&mut Bits {
            words: &mut all[from..],
            at: 0,
        });
    }
    all
}

/// Bits that are written one field after the other.
struct Bits<'a> {
    words: &'a mut [u32],
    at: usize,
}

impl Bits<'_> {
    fn put(&mut self, width: usize, value: u32) {
        debug_assert!(
            u64::from(value) < 1 << width,
            "a field is too narrow: capacities are checked before"
        );
        let value = u64::from(value) << (self.at % 32);
        let word = self.at / 32;
        self.words[word] |= value as u32;
        if value >> 32 != 0 {
            self.words[word + 1] |= (value >> 32) as u32;
        }
        self.at += width;
    }

    fn place(&mut self, place: Place) {
        self.put(abi::SLOT_BITS as usize, place.slot);
        self.put(abi::RING_BITS as usize, place.ring);
    }

    fn operand(&mut self, operand: Operand) {
        self.place(operand.place);
        self.put(abi::ROW_BITS as usize, operand.engine);
        self.put(2, operand.bank as u32);
    }
}
