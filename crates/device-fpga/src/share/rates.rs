//! How many cycles cores take for products when commands, operands and room for results are always there: what `veil-lab bench fpga-share` tells.
//! Cycles do not depend on values: all operands are zero.

use veil_device::{KeyId, PrfCall};
use veil_math::Ring;
use veil_prss::DomainTag;
use veil_session::{Frame, Secret};

use super::command::{Closes, CoreCommand, Kind, WORD};
use super::core::{Batch, Core, Rep3Core};
use super::four::{Begin, Rep4Local, Setting};
use crate::Absent;
use crate::sim::Stalls;

pub use super::four::FOLDED;

/// Beats of a run that says how fast a core is.
const BEATS: u16 = 4096;

/// Beats of products, and the cycles that they took, from the first command until the last result had left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pace {
    /// Beats.
    pub beats: u64,
    /// Cycles of all of them.
    pub cycles: u64,
    /// Cycles of a run of one beat.
    pub first: u64,
}

impl Pace {
    /// Cycles that each beat after the first adds.
    pub fn cycles_per_beat(&self) -> f64 {
        let (beats, cycles) = (self.beats - 1, self.cycles - self.first);
        cycles as f64 / beats.max(1) as f64
    }
}

/// ANDs on the core of three parties.
///
/// # Errors
///
/// Where there is no model, or it does not give all results.
pub fn three() -> Result<Pace, Absent> {
    let mut core = Rep3Core::new(Stalls::default())?;
    core.keys(&[1, 2].map(|byte| Secret::new([byte; 16])))?;
    let mut run = |beats| {
        let before = core.cycles();
        products(&mut core, Ring::Bits, beats, [2, 0])?;
        Ok::<u64, Absent>(core.cycles() - before)
    };
    // The first of all waits until keys are expanded.
    run(1)?;
    let first = run(1)?;
    Ok(Pace {
        beats: BEATS.into(),
        cycles: run(BEATS)?,
        first,
    })
}

/// Products modulo 2^128 of a party of four, first stage, on a core in which a product starts in `fold` cycles: of one message that it sends and
/// two that it vouches for. If they are `checked`, until their MACs have left.
///
/// # Errors
///
/// Where there is no such model, or it does not give all results.
pub fn local(fold: u32, count: u16, checked: bool) -> Result<Pace, Absent> {
    let mut core = Rep4Local::folded(fold, Stalls::default())?;
    core.keys(&[1, 2, 3].map(|byte| Secret::new([byte; 16])))?;
    let setting = Setting {
        sends: 1,
        ..Setting::default()
    };
    core.set(setting, checked)?;
    let key = Secret::new([4; 16]);
    let call = |tag| PrfCall {
        key: KeyId(0),
        tag: DomainTag(tag),
        first: 0,
    };
    let mut run = |beats| {
        let before = core.cycles();
        if checked {
            let macs = [(&key, call(1)), (&key, call(2))];
            core.begin(&Begin {
                frame: Frame {
                    epoch: 0,
                    lane: 0,
                    chunk: 0,
                    rows: 0,
                },
                macs: &macs,
            })?;
        }
        products(&mut core, Ring::Z128, beats, [3, 1])?;
        if checked {
            core.macs(2)?;
        }
        Ok::<u64, Absent>(core.cycles() - before)
    };
    let first = run(1)?;
    Ok(Pace {
        beats: count.into(),
        cycles: run(count)?,
        first,
    })
}

/// Runs one command: so many beats, of shares of so many components, with so many messages.
fn products(
    core: &mut impl Core,
    ring: Ring,
    beats: u16,
    [parts, sent]: [usize; 2],
) -> Result<(), Absent> {
    let beat = core.words() * WORD;
    let all = usize::from(beats) * beat;
    let mut batch = Batch::with_operands(2 * parts * all);
    batch.operands.resize(2 * parts * all, 0);
    batch.room(parts * all, sent * all, core.sends());
    batch.commands.push(CoreCommand {
        kind: Kind::Product,
        ring,
        sum: false,
        beats,
        pairs: 1,
        tail: beat as u16,
        closes: Closes::All,
        used: 0x100,
        lane: 0,
        counter: 0,
        chunk: 0,
    });
    Ok(core.run(&mut batch)?)
}
