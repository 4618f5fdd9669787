//! Garbling on a core: from gates to bundles.

mod assemble;
pub mod body;
pub mod bound;
mod bundle;
pub mod circuit;
pub(crate) mod cycles;
pub(crate) mod program;
mod slots;

pub use assemble::Image;

use body::Body;
use veil_circuit::schedule::Machine;

/// What a core has room for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Capacity {
    /// Gates that start in a cycle.
    pub engines: u32,
    /// Bundles of a program.
    pub bundles: u32,
    /// Labels in an engine's bank of XORs.
    pub xor_slots: u32,
    /// Labels in an engine's bank of ANDs.
    pub and_slots: u32,
    /// Labels of inputs.
    pub input_slots: u32,
    /// Lines of tables that wait to leave.
    pub lines: u32,
    /// Labels of inputs that come in a cycle.
    pub labels_in: u32,
    /// Cycles from the start of an XOR to that of a gate that reads it.
    pub xor_latency: u32,
    /// The same of an AND.
    pub and_latency: u32,
}

/// Something does not fit a core.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TooLarge {
    /// More of something than there is.
    #[error("{needed} {of}, and the core has room for {room}")]
    Room {
        /// What there is too much of.
        of: &'static str,
        /// How much there is of it.
        needed: u64,
        /// How much there may be.
        room: u64,
    },
    /// The scheduler found no order.
    #[error("{0}")]
    Schedule(String),
}

/// Numbers of products and inputs have so many bits in a bundle.
const NUMBERS: u32 = 1 << crate::abi::NUMBER_BITS;
/// Stages have so many bits.
const STAGES: u32 = 1 << 7;
/// The largest ring, as a logarithm.
const LARGEST_RING: u32 = 7;

impl Capacity {
    /// Gates of one repetition, if the program has nothing else.
    pub fn gates(&self) -> u64 {
        u64::from(self.bundles) * u64::from(self.engines)
    }

    /// What the scheduler has to know of it.
    fn machine(&self) -> Machine {
        Machine {
            xor: self.xor_latency,
            and: self.and_latency,
            lines: self.lines,
            drain: self.and_latency + 2,
            ..Machine::garbler(self.engines)
        }
    }

    /// Refuses a body that no schedule makes fit.
    fn fits_at_all(&self, body: &Body) -> Result<(), TooLarge> {
        let ands = u64::from(body.ands());
        limit("gates", body.gates.len() as u64, self.gates())?;
        limit("ANDs", ands, (NUMBERS - 1).into())?;
        limit(
            "inputs",
            (body.of_run.max(body.of_each)).into(),
            (NUMBERS - 1).into(),
        )
    }

    /// Refuses a program that the core has no room for. `ring` is the logarithm of its largest ring.
    fn fits(&self, image: &Image, ring: u32) -> Result<(), TooLarge> {
        let bundles = u64::from(image.prologue) + u64::from(image.kernel);
        limit("bundles", bundles, self.bundles.into())?;
        let [xor, and, input] = image.slots.map(u64::from);
        limit(
            "results of XORs that a engine keeps",
            xor,
            self.xor_slots.into(),
        )?;
        limit(
            "results of ANDs that a engine keeps",
            and,
            self.and_slots.into(),
        )?;
        limit("labels of inputs", input, self.input_slots.into())?;
        limit(
            "overlapping repetitions",
            u64::from(image.stages) + 1,
            (STAGES - 2).into(),
        )?;
        limit(
            "slots of a ring, as a logarithm,",
            ring.into(),
            LARGEST_RING.into(),
        )
    }
}

pub(crate) fn limit(of: &'static str, needed: u64, room: u64) -> Result<(), TooLarge> {
    if needed > room {
        return Err(TooLarge::Room { of, needed, room });
    }
    Ok(())
}
