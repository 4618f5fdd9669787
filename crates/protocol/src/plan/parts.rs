//! Parts of a plan: where its ports are, and what its layers compute and convert.

use veil_circuit::Per;

use crate::replicated::Authenticated;

/// Slots or job-wide values of an input port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortPlan {
    /// How often there is a value.
    pub per: Per,
    /// First slot (a value per row) or first job-wide value (one per job).
    pub first: u32,
    /// Wires.
    pub width: u32,
    /// Whether they are bits beside integers, and their slots those of bits.
    pub bits: bool,
}

/// A layer: its program, its messages, its draws.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LayerPlan {
    /// Index in [`Plan::programs`](super::Plan::programs).
    pub program: usize,
    /// Products with one element per row.
    pub products: u32,
    /// Products with one element in all.
    pub sums: u32,
    /// Counter of product 0 among the draws of row products.
    pub first_call: u64,
    /// Counter of sum 0 among the draws of sums.
    pub first_sum_call: u64,
    /// Conversions between integers and bits, which come before anything else, in order.
    pub conversions: Vec<ConversionPlan>,
    /// The layer's computation on bits, in a circuit of integers.
    pub bits: Option<BitsPlan>,
    /// Masked openings, with the messages of products: of the circuit's ring, and of bits in addition to it.
    pub opened: [OpenedPlan; 2],
    /// Bits that are lifted to integers: whose first messages, and whose second, go with those of its products.
    pub lifts: [LiftPlan; 2],
    /// Integers that are truncated: whose first messages, whose second, and whose third, go with those of its products.
    pub truncations: [Vec<TruncationPlan>; 3],
    /// Which of its products have MACs.
    pub authenticated: MacPlan,
    /// What the layers before it have, as far as proofs and checks of products count it.
    pub(crate) before: Before,
}

/// What is counted before a layer.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Before {
    /// Products of bits that are proved together with its own, of one cycle.
    pub(crate) proved: u32,
    /// Products with MACs, of rows, of the set-up or of the totals, whichever it belongs to.
    pub(crate) authenticated: Authenticated,
}

impl LayerPlan {
    /// Whether something is opened in it.
    pub fn opens(&self) -> bool {
        self.opened.iter().any(|opened| opened.count > 0)
    }

    /// How many bits have their first message in it, or their second.
    pub fn lifted(&self) -> u32 {
        self.lifts.iter().map(LiftPlan::count).sum()
    }

    /// Whether an integer that is truncated has a message in it.
    pub fn truncates(&self) -> bool {
        self.truncations.iter().any(|of| !of.is_empty())
    }
}

/// Masked values that a layer opens to all parties.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OpenedPlan {
    /// First slot of the masked values.
    pub from: u32,
    /// First slot of the opened values: each stands in the place of every component.
    pub to: u32,
    /// How many there are.
    pub count: u32,
}

/// Bits that are lifted to integers by two rounds of messages, side by side, by rotations: the lift of number k in the plan has rotation k
/// modulo 3.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LiftPlan {
    /// First slot of the bits.
    pub from: u32,
    /// First slot of the integers.
    pub to: u32,
    /// How many there are of each rotation.
    pub counts: [u32; 3],
    /// Counter of the first among the draws of lifts.
    pub first: u64,
}

impl LiftPlan {
    /// How many there are.
    pub fn count(&self) -> u32 {
        self.counts.iter().sum()
    }
}

/// Integers that lose as many bits by three rounds of messages, side by side, by rotations as in a [`LiftPlan`]: in rotation z, P_z learns the sum of the integer and a mask
/// that the two others draw.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TruncationPlan {
    /// Bits that go.
    pub by: u32,
    /// Whether those bits of the sum and of the mask are there as shared bits.
    pub digits: bool,
    /// First slot of the integers.
    pub from: u32,
    /// First slot of what is on the way.
    pub between: u32,
    /// First slot of the results.
    pub to: u32,
    /// First slot of bits. Each rotation has, one after the other, a bit on the way for each integer; then, with digits, the bits of each sum that go, and those of
    /// each mask.
    pub bits: u32,
    /// How many there are of each rotation.
    pub counts: [u32; 3],
    /// Counters of the first, among the draws of truncations, and among their draws of bits.
    pub first: [u64; 2],
}

impl TruncationPlan {
    /// How many there are.
    pub fn count(&self) -> u32 {
        self.counts.iter().sum()
    }

    /// First slots of the digits of each integer, of the sum and of the mask, in the order of the integers; nothing without digits.
    pub(crate) fn digits_of_all(&self) -> impl Iterator<Item = [u32; 2]> + use<> {
        let plan = *self;
        let mut first = plan.bits;
        let rotations = plan.counts.into_iter().filter(move |_| plan.digits);
        rotations.flat_map(move |count| {
            let of_sums = first + count;
            let of_masks = of_sums + count * plan.by;
            first += count * plan.bits_of_each();
            (0..count).map(move |k| [of_sums, of_masks].map(|first| first + k * plan.by))
        })
    }

    /// Slots of bits of an integer.
    pub(crate) const fn bits_of_each(&self) -> u32 {
        1 + if self.digits { 2 * self.by } else { 0 }
    }
}

/// Products of integers that have MACs. In the message of a layer come first the products of the circuit, then their MACs in the same
/// order, then MACs of values that are no products; in the message of its sums the sums, then their MACs.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct MacPlan {
    /// Products of the circuit, as many as MACs.
    pub products: u32,
    /// Sums, as many as MACs.
    pub sums: u32,
    /// First slot and number of values side by side that get a MAC, in the order of the message.
    pub authenticated: Vec<(u32, u32)>,
}

/// Job-wide values and that have MACs, which are made in every chunk, under its key.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct MacsOfJobWide {
    /// The job-wide values.
    pub of: Vec<u32>,
    /// First job-wide value of their MACs, which are in the same order.
    pub first: u32,
}

/// The part of a layer that computes on bits, in a circuit of integers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BitsPlan {
    /// Index in [`Plan::programs`](super::Plan::programs).
    pub program: usize,
    /// Products, one bit per row each.
    pub products: u32,
    /// Counter of product 0 among the draws of row products.
    pub first_call: u64,
}

/// The beginning of a layer: conversions of components, and draws of random values. A conversion of one component makes a shared value
/// whose other components are zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConversionPlan {
    /// The operation.
    pub how: Conversion,
    /// First slot of bits that are lifted, or the slot or job-wide value of the integer that is converted.
    pub from: u32,
    /// Whether the integer is one that all rows share.
    pub shared: bool,
    /// First slot of the results, of bits or of integers.
    pub to: u32,
    /// How many there are.
    pub count: u32,
    /// Whether the results are bits in a circuit of integers.
    pub bits: bool,
}

/// An operation on components.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Conversion {
    /// Bits of one component are taken.
    Split {
        /// The component.
        component: u8,
        /// The first of the bits.
        bit: u32,
    },
    /// One component of bits becomes integers.
    Lift {
        /// The component.
        component: u8,
    },
    /// Every component is divided by 2^by and rounded down.
    Shift {
        /// Bits that go.
        by: u32,
    },
    /// One component is taken.
    Take {
        /// The component.
        component: u8,
    },
    /// Every component is multiplied by the opened value.
    Scale {
        /// Slot of that.
        by: u32,
    },
    /// Every component is made under the key of its holders.
    Random {
        /// Counter of the first value.
        first: u64,
    },
}

impl ConversionPlan {
    /// The conversion of one that continues this one by `count`, if there is one.
    pub(super) fn after(self, count: u32) -> Option<Self> {
        let (how, from) = match self.how {
            Conversion::Split { component, bit } => {
                let bit = bit + count;
                (Conversion::Split { component, bit }, self.from)
            }
            Conversion::Lift { .. } => (self.how, self.from + count),
            Conversion::Random { .. } => (self.how, self.from),
            Conversion::Shift { .. } | Conversion::Take { .. } | Conversion::Scale { .. } => {
                return None;
            }
        };
        Some(ConversionPlan { how, from, ..self })
    }
}

/// How often an output port has a value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Gives {
    /// In every row.
    Row,
    /// Once: the sum over the rows.
    Sum,
    /// Once: a value that all rows use, which is only kept.
    Once,
}

/// An output port: where its values are when all layers are done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutputPlan {
    /// Per row, summed, or once.
    pub gives: Gives,
    /// First slot, first item of the sums, or first job-wide value.
    pub first: u32,
    /// Wires.
    pub width: u32,
    /// Whether they are bits beside integers, and their slots those of bits.
    pub bits: bool,
}

/// The computation that the set-up does once on job-wide values: on one row, over the same slots.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobPlan {
    /// First job-wide value, first slot and width of each port with a value per job.
    pub inputs: Vec<(u32, u32, u32)>,
    /// First slot of the results.
    pub slot: u32,
    /// First job-wide value of the results.
    pub job_value: u32,
    /// Number of results.
    pub width: u32,
    /// Layers, as [`Plan::layers`](super::Plan::layers).
    pub layers: Vec<LayerPlan>,
}

/// The computation that is done once on the sums over all rows, before they are opened: on one row, over the same slots.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TotalsPlan {
    /// First slot of the sums.
    pub slot: u32,
    /// How many there are, without MACs of sums.
    pub width: u32,
    /// First job-wide value, first slot and width of each port with a value per job, if it reads them.
    pub inputs: Vec<(u32, u32, u32)>,
    /// First item of the sums, first slot and width of each result, which takes the place of the sums there.
    pub results: Vec<(u32, u32, u32)>,
    /// Layers, as [`Plan::layers`](super::Plan::layers).
    pub layers: Vec<LayerPlan>,
}
