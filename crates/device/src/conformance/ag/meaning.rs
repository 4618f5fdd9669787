//! What the steps mean: a random program, garbled and evaluated with masks of random authenticated bits, gives what the program gives in the
//! clear, checks of both parties agree, and one of them does not where a bit of what goes from one to the other was changed. One party is the device, the
//! other one the reference.

mod side;
mod values;

use veil_math::Ring;

use super::super::rings::{JOB_WIDE, SLOTS};
use super::super::{Difference, SplitMix};
use super::{Case, DIGEST, OFFSET, TABLES};
use crate::ag::Ag;
use crate::{Device, Fault, Reference};
use side::Side;
use values::{Blocks, Inputs, KEY, LABEL, MAC, Shared, bit_of, block, plain, times};

impl Case {
    fn gates(&self) -> usize {
        self.program.products().0 as usize * self.frame.rows as usize
    }
}

/// Tables, z, and MACs of sums with masks of results, with which the evaluator goes on.
#[derive(Clone)]
struct Told {
    tables: Vec<u8>,
    z: Vec<u8>,
    macs: Blocks,
}

/// What the evaluator has of gates.
struct Evaluated {
    labels: Blocks,
    /// Λ of both operands and of the result, packed.
    public: [Vec<u8>; 3],
    slots: [Blocks; 3],
    folds: [Vec<u8>; 2],
}

fn evaluate(
    side: &mut Side<'_>,
    inputs: [&Inputs; 2],
    (results, keys, told): (&Shared, &Blocks, &Told),
    digest: &[u8],
    delta: u128,
) -> Result<Evaluated, Fault> {
    for part in [LABEL, MAC, KEY] {
        side.load(part, inputs, delta)?;
    }
    side.put(0, &results.macs[1])?;
    side.put(1, &results.keys[1])?;
    side.masks()?;
    side.put(6, &told.macs)?;
    side.put(7, keys)?;
    let tables = side.of.layout.all(TABLES, 0);
    let z = side.bits(0);
    side.device.write(side.workspace, tables, &told.tables)?;
    side.device.write(side.workspace, z, &told.z)?;
    let digest_at = side.span(DIGEST, 0);
    side.device.write(side.workspace, digest_at, digest)?;
    let src = [tables, z, side.array(2), side.array(3), side.array(6)];
    let dst = [side.array(8), side.bits(1), side.bits(2), side.bits(3)];
    side.step(Ag::Evaluate { at: 0 }, &src, &dst)?;
    let slots = [side.slots(LABEL)?, side.slots(MAC)?, side.slots(KEY)?];
    Ok(Evaluated {
        labels: side.blocks(8)?,
        public: [side.see(dst[1])?, side.see(dst[2])?, side.see(dst[3])?],
        slots,
        folds: side.checks(inputs)?,
    })
}

/// A random case.
pub(super) fn one(
    device: &mut dyn Device,
    rng: &mut SplitMix,
    case: u32,
) -> Result<(), Difference> {
    let of = &Case::new(rng);
    let fault = |fault| Difference::Fault { case, fault };
    match meaning(of, device, rng).map_err(fault)? {
        None => Ok(()),
        Some(what) => Err(Difference::Bytes {
            case,
            ring: Ring::Bits,
            rows: of.frame.rows,
            chunk_rows: of.layout.chunk_rows,
            what,
        }),
    }
}

/// What is wrong, if anything is.
fn meaning(
    of: &Case,
    device: &mut dyn Device,
    rng: &mut SplitMix,
) -> Result<Option<&'static str>, Fault> {
    let rows = of.frame.rows as usize;
    let offsets = [block(rng) | 3, block(rng) & !2 | 1];
    let delta = offsets[0];
    let inputs = [SLOTS as usize * rows, JOB_WIDE as usize].map(|n| Inputs::new(rng, offsets, n));
    let inputs = [&inputs[0], &inputs[1]];
    let fresh: Blocks = (0..of.gates()).map(|_| block(rng) & 1).collect();
    let results = Shared::new(rng, offsets, &fresh);
    let digest = rng.bytes(32);
    let (gates, ends) = plain(of, inputs);
    let mut reference = Reference::default();
    let swap = rng.below(2) == 1;
    let (one, other): (&mut dyn Device, &mut dyn Device) = if swap {
        (&mut reference, device)
    } else {
        (device, &mut reference)
    };

    let garbler = &mut Side::new(of, one, 0, offsets[0])?;
    for part in [LABEL, MAC, KEY] {
        garbler.load(part, inputs, delta)?;
    }
    garbler.put(0, &results.macs[0])?;
    garbler.put(1, &results.keys[0])?;
    garbler.masks()?;
    // What the dealer of products has: masks of both operands.
    let evaluator = &mut Side::new(of, other, 1, offsets[1])?;
    for part in [MAC, KEY] {
        evaluator.load(part, inputs, delta)?;
    }
    evaluator.put(0, &results.macs[1])?;
    evaluator.put(1, &results.keys[1])?;
    evaluator.masks()?;
    let mut masks = vec![];
    for k in [2, 3] {
        masks.push(Shared {
            macs: [garbler.blocks(k)?, evaluator.blocks(k)?],
            keys: [garbler.blocks(k + 2)?, evaluator.blocks(k + 2)?],
        });
    }
    if !masks.iter().all(|of| of.holds(offsets)) {
        return Ok(Some("MACs of operands"));
    }
    let values = masks[0].values().into_iter().zip(masks[1].values());
    let sums = values.zip(&fresh).map(|((a, b), mask)| a & b ^ mask);
    let sums: Blocks = sums.collect();
    let sums = Shared::new(rng, offsets, &sums);
    garbler.put(6, &sums.macs[0])?;
    garbler.put(7, &sums.keys[0])?;
    let (tables, z) = (of.layout.all(TABLES, 0), garbler.bits(0));
    let src = [2, 4, 3, 5, 6, 7].map(|k| garbler.array(k));
    let dst = [tables, z, garbler.array(8)];
    garbler.step(
        Ag::Garble {
            at: 0,
            offset: OFFSET,
        },
        &src,
        &dst,
    )?;
    let zero = garbler.blocks(8)?;
    let told = Told {
        tables: garbler.see(tables)?,
        z: garbler.see(z)?,
        macs: sums.macs[1].clone(),
    };
    let at_garbler = [
        garbler.slots(LABEL)?,
        garbler.slots(MAC)?,
        garbler.slots(KEY)?,
    ];
    let digest_at = garbler.span(DIGEST, 0);
    garbler
        .device
        .write(garbler.workspace, digest_at, &digest)?;
    let (workspace, device) = (evaluator.workspace, &mut *evaluator.device);
    device.close(workspace);

    let evaluator = &mut Side::new(of, device, 1, offsets[1])?;
    let with = (&results, &sums.keys[1], &told);
    let seen = evaluate(evaluator, inputs, with, &digest, delta)?;
    evaluator.device.close(evaluator.workspace);
    for at in 0..of.gates() {
        let masks = [masks[0].values()[at], masks[1].values()[at], fresh[at]];
        for k in 0..3 {
            if bit_of(&seen.public[k], at) ^ masks[k] != gates[k][at] {
                return Ok(Some("public values of gates"));
            }
        }
        let public = bit_of(&seen.public[2], at);
        let right = zero[at] & 2 == 0 && seen.labels[at] == zero[at] ^ times(public, delta);
        if !right {
            return Ok(Some("labels of results"));
        }
    }
    let [zeros, macs, keys] = at_garbler;
    let [active, other_macs, other_keys] = &seen.slots;
    let masks_of_slots = Shared {
        macs: [macs, other_macs.clone()],
        keys: [keys, other_keys.clone()],
    };
    if !masks_of_slots.holds(offsets) {
        return Ok(Some("MACs of slots"));
    }
    for (at, mask) in masks_of_slots.values().into_iter().enumerate() {
        let public = active[at] >> 1 & 1;
        if public ^ mask != ends[at] || active[at] != zeros[at] ^ times(public, delta) {
            return Ok(Some("values of slots"));
        }
    }
    let gamma = garbler.bits(3);
    garbler
        .device
        .write(garbler.workspace, gamma, &seen.public[2])?;
    let folds = garbler.checks(inputs)?;
    for (k, public) in (1..).zip(&seen.public[..2]) {
        if garbler.see(garbler.bits(k))? != *public {
            return Ok(Some("public values of operands"));
        }
    }
    if folds != seen.folds {
        return Ok(Some("checks"));
    }

    // Something else arrives.
    if of.gates() > 0 {
        let mut changed = told.clone();
        let (at, bit) = (rng.below(of.gates()), rng.below(128));
        // A table of an operand whose public value is 0 is not looked at.
        let used = (0..2).find(|k| bit_of(&seen.public[*k], at) == 1);
        match (rng.below(3), used) {
            (0, Some(k)) => {
                let entry = (2 * (at / rows) + k) * rows + at % rows;
                changed.tables[16 * entry + bit / 8] ^= 1 << (bit % 8);
            }
            (1, _) => changed.macs[at] ^= 1 << bit,
            _ => changed.z[at / 8] ^= 1 << (at % 8),
        }
        let evaluator = &mut Side::new(of, &mut *evaluator.device, 1, offsets[1])?;
        let with = (&results, &sums.keys[1], &changed);
        let seen = evaluate(evaluator, inputs, with, &digest, delta)?;
        evaluator.device.close(evaluator.workspace);
        garbler
            .device
            .write(garbler.workspace, gamma, &seen.public[2])?;
        if garbler.checks(inputs)? == seen.folds {
            return Ok(Some("checks of what was changed"));
        }
    }
    garbler.device.close(garbler.workspace);
    Ok(None)
}

#[cfg(test)]
mod tests {
    use veil_session::Secret;

    use super::*;
    use crate::{Cpu, Isa, KeyId};

    /// A device with another offset, whose steps are right, gives what is none of the other party's.
    #[test]
    fn another_offset_is_noticed() {
        struct Other(Cpu);
        impl Device for Other {
            fn name(&self) -> &'static str {
                "other"
            }

            fn load_key(&mut self, id: KeyId, key: &Secret) -> Result<(), Fault> {
                let mut key = *key.expose();
                key[9] ^= u8::from(id == OFFSET);
                self.0.load_key(id, &Secret::new(key))
            }

            crate::forward!(self, self.0, bind load open close write map view submit poll wipe);
        }
        let mut rng = SplitMix(3);
        let mut found = std::collections::BTreeSet::new();
        for case in 0..20 {
            let told = one(&mut Other(Cpu::with(Isa::Portable)), &mut rng, case);
            if let Err(Difference::Bytes { what, .. }) = told {
                found.insert(what);
            }
        }
        assert!(found.len() > 1, "{found:?}");
    }
}
