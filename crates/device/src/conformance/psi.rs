//! Cases about intersections: both ends in one workspace, from keys to what is found.

use veil_math::Ring;
use veil_prss::DomainTag;
use veil_session::{Frame, Secret, SessionId};

use super::{Difference, Seen, SplitMix, compare, regions};
use crate::gf128::dot;
use crate::{
    ColumnType, Command, Device, Fault, KeyId, Layout, Okvs, Op, Outcome, PrfCall, Psi, Reference,
    Residency, Span, Tag, completion,
};

/// Regions: keys and digests of the receiver and of the sender; the VOLE; messages; what is found.
const KEYS: [u16; 2] = [0, 1];
const DIGESTS: [u16; 2] = [2, 3];
const A: u16 = 4;
const B: u16 = 5;
const C: u16 = 6;
const SEED: u16 = 7;
const SENT: u16 = 8;
const W: u16 = 9;
const TAGS: u16 = 10;
const FOUND: u16 = 11;

/// Keys: δ, the receiver's own, and the common one as each end has it.
const OFFSET: KeyId = KeyId(0);
const OWN: KeyId = KeyId(1);
const COMMON: [KeyId; 2] = [KeyId(2), KeyId(3)];

/// Numbers of keys that find the edges: of tiles, and of ranges of tags.
const COUNTS: [u32; 14] = [0, 1, 2, 3, 15, 16, 17, 63, 64, 65, 128, 200, 257, 700];

struct Case {
    okvs: Okvs,
    layout: Layout,
    frame: Frame,
    keys: Vec<(KeyId, Secret)>,
    written: Vec<(u16, Vec<u8>)>,
    /// Two tags that change places on the way.
    lie: Option<[u32; 2]>,
    first: u64,
}

/// A random case on `device` and the reference.
pub(super) fn one(
    device: &mut dyn Device,
    rng: &mut SplitMix,
    case: u32,
) -> Result<(), Difference> {
    let of = Case::new(rng);
    let (want, got) = (of.run(&mut Reference::default()), of.run(device));
    // Keys that are equal, and stores that are too small; a device may have no such steps.
    match &got {
        Err(fault @ Fault::Unsupported { .. }) => {
            let fault = fault.clone();
            return Err(Difference::Fault { case, fault });
        }
        Err(_) if want == got => return Ok(()),
        _ => {}
    }
    compare((case, Ring::Bits, &of.layout, of.frame), want, got)
}

impl Case {
    fn new(rng: &mut SplitMix) -> Self {
        let counts = [(); 2].map(|()| COUNTS[rng.below(COUNTS.len())]);
        let okvs = if rng.below(2) == 0 {
            Okvs::of(counts[0])
        } else {
            // More bins than there would be, and now and then too few columns.
            let bins = 1 + rng.below(4) as u32;
            Okvs {
                bins,
                sparse: 3 + counts[0] * (10 + rng.below(20) as u32) / 10 / bins,
                dense: rng.below(5) as u32,
            }
        };
        let columns = okvs.columns();
        let (mapped, block) = (Residency::Mapped, ColumnType::Bytes(16));
        // Blocks of a VOLE lie in columns of some, of which more are there.
        let some = 1 + rng.below(5) as u32;
        let of_vole = (
            mapped,
            ColumnType::Bytes(16 * some),
            1,
            columns.div_ceil(some.into()) as u32 + rng.below(2) as u32,
        );
        let key = ColumnType::Bytes(32);
        let layout = regions(
            1,
            &[
                (mapped, key, 1, counts[0]),
                (mapped, key, 1, counts[1]),
                (mapped, key, 1, counts[0]),
                (mapped, key, 1, counts[1]),
                of_vole,
                of_vole,
                of_vole,
                (mapped, block, 1, 1),
                (mapped, block, 1, columns as u32),
                (mapped, block, 1, 1 + rng.below(2) as u32),
                (mapped, block, 1, counts[1]),
                (mapped, ColumnType::Bytes(1), 1, counts[0].div_ceil(8)),
            ],
        );
        let mut keys = counts.map(|count| rng.bytes(32 * count as usize));
        // Some keys are the other's, and sometimes one is there twice.
        for k in 0..counts[0].min(counts[1]) as usize {
            if rng.below(2) == 0 {
                let (own, theirs) = keys.split_at_mut(1);
                own[0][32 * k..][..32].copy_from_slice(&theirs[0][32 * k..][..32]);
            }
        }
        let end = rng.below(2);
        if counts[end] > 1 && rng.below(8) == 0 {
            let other = 1 + rng.below(counts[end] as usize - 1);
            keys[end].copy_within(..32, 32 * other);
        }
        let offset = u128::from(rng.next()) << 64 | u128::from(rng.next()) | 1;
        let vole = layout.bytes(layout.all(B, 0), 1) as usize;
        let [b, c] = [(); 2].map(|()| rng.bytes(vole));
        let mut a = b.clone();
        for (a, c) in a.as_chunks_mut().0.iter_mut().zip(c.as_chunks().0) {
            *a = (u128::from_le_bytes(*a) ^ dot(u128::from_le_bytes(*c), offset)).to_le_bytes();
        }
        let w = rng.bytes(layout.bytes(layout.all(W, 0), 1) as usize);
        let [own, theirs] = keys;
        let secret = |rng: &mut SplitMix| Secret::new(std::array::from_fn(|_| rng.next() as u8));
        let (alone, common) = (secret(rng), secret(rng));
        let lies = counts[1] > 1 && rng.below(4) == 0;
        Case {
            okvs,
            frame: Frame {
                epoch: 0,
                lane: rng.next() as u16,
                chunk: rng.next() as u32,
                rows: 1,
            },
            keys: vec![
                (OFFSET, Secret::new(offset.to_le_bytes())),
                (OWN, alone),
                (COMMON[0], common.clone()),
                (COMMON[1], common),
            ],
            written: vec![
                (KEYS[0], own),
                (KEYS[1], theirs),
                (A, a),
                (B, b),
                (C, c),
                (W, w),
            ],
            lie: lies.then(|| [0, 1 + rng.below(counts[1] as usize - 1) as u32]),
            first: rng.next() >> 20,
            layout,
        }
    }

    fn all(&self, region: u16) -> Span {
        self.layout.all(region, 0)
    }

    fn run(&self, device: &mut dyn Device) -> Result<Seen, Fault> {
        device.bind(SessionId([9; 32]));
        for (id, key) in &self.keys {
            device.load_key(*id, key)?;
        }
        let workspace = device.open(&self.layout, self.frame)?;
        for (region, bytes) in &self.written {
            device.write(workspace, self.all(*region), bytes)?;
        }
        let step = |step, src: &[u16], dst: &[u16], call: Option<(KeyId, DomainTag)>| {
            let spans = |of: &[u16]| of.iter().map(|region| self.all(*region)).collect();
            let mut command = Command::new(Op::Psi(step), spans(src), spans(dst));
            command.calls = call
                .into_iter()
                .map(|(key, tag)| PrfCall {
                    key,
                    tag,
                    first: self.first,
                })
                .collect();
            command
        };
        let (okvs, offset) = (self.okvs, OFFSET);
        let salt = |end: usize| Some((COMMON[end], DomainTag::PSI_SALT));
        let made = [
            step(Psi::Hash, &[KEYS[0]], &[DIGESTS[0]], salt(0)),
            step(Psi::Hash, &[KEYS[1]], &[DIGESTS[1]], salt(1)),
            step(
                Psi::Encode { okvs },
                &[DIGESTS[0], C],
                &[SEED, SENT],
                Some((OWN, DomainTag::PSI_ENCODE)),
            ),
            step(
                Psi::Tags { okvs, offset },
                &[DIGESTS[1], B, SENT, SEED, W],
                &[TAGS],
                None,
            ),
        ];
        let mut seen = Seen::new();
        for command in made {
            device.submit(workspace, &[command], Tag(0))?;
            seen.push(("the end of a step", end(device)?));
        }
        if let Some([a, b]) = self.lie {
            let (a, b) = (16 * a as usize, 16 * b as usize);
            let tags = device.map(workspace, self.all(TAGS))?;
            for k in 0..16 {
                tags.swap(a + k, b + k);
            }
        }
        let compared = step(
            Psi::Match { okvs },
            &[DIGESTS[0], A, SEED, W, TAGS],
            &[FOUND],
            None,
        );
        device.submit(workspace, &[compared], Tag(0))?;
        seen.push(("the end of the comparison", end(device)?));
        for (what, region) in [
            ("digests of the receiver", DIGESTS[0]),
            ("digests of the sender", DIGESTS[1]),
            ("the seed", SEED),
            ("encoded keys", SENT),
            ("tags", TAGS),
            ("what is found", FOUND),
        ] {
            seen.push((what, device.view(workspace, self.all(region))?.to_vec()));
        }
        device.close(workspace);
        Ok(seen)
    }
}

/// How a batch ended.
fn end(device: &mut dyn Device) -> Result<Vec<u8>, Fault> {
    Ok(vec![u8::from(completion(device)?.outcome == Outcome::Done)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Recording, Tape, fuzz_record, replay};
    use crate::{Cpu, Isa};

    /// What a recorder writes of intersections is played by every device, and is no danger when it is changed.
    #[test]
    fn records_of_intersections_are_played_on_every_device() {
        let (mut rng, mut played) = (SplitMix(5), 0);
        while played < 6 {
            let of = Case::new(&mut rng);
            let tape = Tape::memory();
            let mut device = Recording::new(Box::new(Cpu::detect()), tape.clone());
            // Keys that are equal end a record with a fault.
            if of.keys_of_both() > 100 || of.run(&mut device).is_err() {
                continue;
            }
            played += 1;
            device.wipe();
            let record = tape.finish().expect("memory takes all");
            replay(&record[..], &mut Reference::default()).expect("the same bytes");
            for isa in Isa::available() {
                let all = replay(&record[..], &mut Cpu::with(isa)).expect("the same bytes");
                assert_eq!(all.commands, 5);
            }
            assert!(fuzz_record(&record));
            for at in (0..record.len()).step_by(11) {
                let mut changed = record.clone();
                changed[at] ^= 1 << (at % 8);
                fuzz_record(&changed);
            }
        }
    }

    impl Case {
        fn keys_of_both(&self) -> u32 {
            KEYS.map(|region| self.all(region).count).iter().sum()
        }
    }
}
