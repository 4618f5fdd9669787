//! In which order the gates of a garbled circuit have their numbers, which is the order of their tables.

use std::str::FromStr;

use crate::{UnknownWord, Word};

/// A schedule of the gates of a garbled circuit. Public, and under the plan hash.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Schedule {
    /// Layer after layer of equal depth.
    Layers,
    /// As hardware with so many rows starts them: by the critical path, netlist cycles overlapping.
    List(Rows),
}

/// Garbling engines, each of which starts a gate in each cycle.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Rows {
    /// 1.
    One,
    /// 2.
    Two,
    /// 4.
    Four,
    /// 8.
    Eight,
    /// 16.
    Sixteen,
}

impl Rows {
    /// As many as there are of these; nothing if no schedule has so many.
    pub fn of(count: u32) -> Option<Self> {
        let all = [Rows::One, Rows::Two, Rows::Four, Rows::Eight, Rows::Sixteen];
        all.into_iter().find(|rows| rows.count() == count)
    }

    /// How many there are.
    pub const fn count(self) -> u32 {
        match self {
            Rows::One => 1,
            Rows::Two => 2,
            Rows::Four => 4,
            Rows::Eight => 8,
            Rows::Sixteen => 16,
        }
    }
}

impl Word for Schedule {
    const FIELD: &'static str = "schedule";
    const OPTION: &'static str = "--schedule";
    const ALL: &'static [Self] = &[
        Schedule::Layers,
        Schedule::List(Rows::One),
        Schedule::List(Rows::Two),
        Schedule::List(Rows::Four),
        Schedule::List(Rows::Eight),
        Schedule::List(Rows::Sixteen),
    ];

    fn word(self) -> &'static str {
        match self {
            Schedule::Layers => "layers",
            Schedule::List(Rows::One) => "list(1)",
            Schedule::List(Rows::Two) => "list(2)",
            Schedule::List(Rows::Four) => "list(4)",
            Schedule::List(Rows::Eight) => "list(8)",
            Schedule::List(Rows::Sixteen) => "list(16)",
        }
    }
}

impl FromStr for Schedule {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        Self::parse(text)
    }
}
