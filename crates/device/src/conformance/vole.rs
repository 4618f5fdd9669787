//! Cases about rounds over blocks: both ends in one workspace, from random correlations to entries of a VOLE.

use veil_math::Ring;
use veil_prss::DomainTag;
use veil_session::{Frame, Secret, SessionId};

use super::{Difference, Seen, SplitMix, compare, expect_done, regions};
use crate::{
    ColumnType, Command, Device, Fault, KeyId, Layout, Lpn, Op, PrfCall, Reference, Residency,
    Silent, Span, Tag,
};

/// Correlations of both ends.
const CORRELATIONS: [u16; 2] = [0, 1];
/// Entries that are packed: B, then A and C. They are the base.
const BASES: [u16; 3] = [2, 3, 4];
/// Leaves, which become B, then A, then C.
const LEAVES: [u16; 3] = [5, 6, 7];
/// Sums of levels, then d.
const SUMS: u16 = 8;
const CHALLENGE: u16 = 9;
/// What the receiver tells, and what each end has at last.
const TOLD: u16 = 10;

/// Keys: Δ, that of roots, and the common one as each end has it, which draws the same at both.
const OFFSET: KeyId = KeyId(0);
const OWN: KeyId = KeyId(1);
const COMMON: [KeyId; 2] = [KeyId(2), KeyId(3)];

struct Case {
    set: Lpn,
    /// Trees in the first span of leaves.
    split: u32,
    /// Columns of correlations that are packed; the others are levels.
    packed: u32,
    layout: Layout,
    frame: Frame,
    keys: Vec<(KeyId, Secret)>,
    written: Vec<(u16, Vec<u8>)>,
    /// A bit of the sender's message that is changed on the way.
    lie: Option<usize>,
    first: u64,
}

/// A random case on `device` and the reference.
pub(super) fn one(
    device: &mut dyn Device,
    rng: &mut SplitMix,
    case: u32,
) -> Result<(), Difference> {
    let of = Case::new(rng);
    let want = of.run(&mut Reference::default());
    compare(
        (case, Ring::Bits, &of.layout, of.frame),
        want,
        of.run(device),
    )
}

impl Case {
    fn new(rng: &mut SplitMix) -> Self {
        let (height, secret) = (3 + rng.below(5) as u8, 1 + rng.below(4) as u8);
        let set = Lpn::over_blocks(1 + rng.below(7) as u32, secret, height);
        let (mapped, block) = (Residency::Mapped, ColumnType::Bytes(16));
        let each = 1 << rng.below(9);
        let packed = (128 * set.base_columns()).div_ceil(each);
        let columns = packed + set.levels().div_ceil(each);
        let rows = 1 + rng.below(40) as u32;
        let correlations = (mapped, ColumnType::Bytes(16 * each), 1, columns);
        let base = (mapped, block, 1, set.base_columns());
        let leaves = (mapped, block, 1, set.outputs() as u32);
        let layout = regions(
            rows + rng.below(3) as u32 * 10,
            &[
                correlations,
                correlations,
                base,
                base,
                base,
                leaves,
                leaves,
                leaves,
                (mapped, block, 1, set.levels() + set.trees),
                (mapped, ColumnType::Bytes(32), 1, 1),
                (mapped, block, 1, 3),
            ],
        );
        let wide = |rng: &mut SplitMix| u128::from(rng.next()) << 64 | u128::from(rng.next());
        let offset = wide(rng) | 1;
        let correlated = rng.below(4) > 0;
        let (mut own, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..columns * each {
            let key = wide(rng) & !1;
            let choice = u128::from(rng.next() & 1).wrapping_neg();
            let other = if correlated {
                key ^ choice & offset
            } else {
                wide(rng)
            };
            own.extend(key.to_le_bytes());
            theirs.extend(other.to_le_bytes());
        }
        let written = vec![
            (CORRELATIONS[0], own),
            (CORRELATIONS[1], theirs),
            (CHALLENGE, rng.bytes(32)),
        ];
        let secret = |rng: &mut SplitMix| Secret::new(std::array::from_fn(|_| rng.next() as u8));
        let (own_key, common) = (secret(rng), secret(rng));
        let message = 128 * (set.levels() + set.trees) as usize;
        Case {
            set,
            split: rng.below(set.trees as usize + 1) as u32,
            packed,
            frame: Frame {
                epoch: 0,
                lane: rng.next() as u16,
                chunk: rng.next() as u32,
                rows,
            },
            keys: vec![
                (OFFSET, Secret::new(offset.to_le_bytes())),
                (OWN, own_key),
                (COMMON[0], common.clone()),
                (COMMON[1], common),
            ],
            written,
            lie: (rng.below(3) == 0).then(|| rng.below(message)),
            first: rng.next() >> 20,
            layout,
        }
    }

    fn all(&self, region: u16) -> Span {
        self.layout.all(region, 0)
    }

    /// Columns of a region from `first` on.
    fn part(&self, region: u16, first: u32, count: u32) -> Span {
        Span {
            first,
            count,
            ..self.all(region)
        }
    }

    /// Both spans of leaves.
    fn leaves(&self, region: u16) -> [Span; 2] {
        let columns = self.split * self.set.leaves();
        let rest = self.all(region).count - columns;
        [
            self.part(region, 0, columns),
            self.part(region, columns, rest),
        ]
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
        let (set, offset) = (self.set, OFFSET);
        let [b, a, c] = BASES.map(|region| self.all(region));
        let [of_b, of_a, of_c] = LEAVES.map(|region| self.leaves(region));
        let packed = CORRELATIONS.map(|region| self.part(region, 0, self.packed));
        let levels = CORRELATIONS.map(|region| {
            let all = self.all(region);
            self.part(region, self.packed, all.count - self.packed)
        });
        let sums = self.part(SUMS, 0, set.levels());
        let sealed = self.part(SUMS, set.levels(), set.trees);
        let challenge = self.all(CHALLENGE);
        let [told, theirs, mine] = [0, 1, 2].map(|k| self.part(TOLD, k, 1));
        let step = |step, src: &[&[Span]], dst: &[&[Span]], calls: &[(KeyId, DomainTag)]| {
            let mut command = Command::new(Op::Silent(step), src.concat(), dst.concat());
            let calls = calls.iter().map(|(key, tag)| PrfCall {
                key: *key,
                tag: *tag,
                first: self.first,
            });
            command.calls = calls.collect();
            command
        };
        let starts = COMMON.map(|key| (key, DomainTag::VOLE_TREE));
        let seconds = COMMON.map(|key| (key, DomainTag::VOLE_LEAF));
        let grown = [
            step(Silent::Pack, &[&packed[..1]], &[&[b]], &[]),
            step(Silent::Pack, &[&packed[1..]], &[&[a], &[c]], &[]),
            step(
                Silent::Grow { set, offset },
                &[&levels[..1]],
                &[&of_b, &[sums]],
                &[starts[0], (OWN, DomainTag::VOLE_ROOT)],
            ),
            step(
                Silent::Give { set },
                &[&[b]],
                &[&of_b, &[sealed]],
                &[seconds[0]],
            ),
        ];
        device.submit(workspace, &grown, Tag(0))?;
        expect_done(device)?;
        let mut seen = Seen::new();
        let mut look = |device: &mut dyn Device, what: [&'static str; 3], regions: [u16; 3]| {
            for (what, region) in what.into_iter().zip(regions) {
                seen.push((what, device.view(workspace, self.all(region))?.to_vec()));
            }
            Ok::<(), Fault>(())
        };
        look(
            device,
            ["B of entries", "A of entries", "C of entries"],
            BASES,
        )?;
        let of_sender = ["the message", "leaves of the sender", "the challenge"];
        look(device, of_sender, [SUMS, LEAVES[0], CHALLENGE])?;
        if let Some(bit) = self.lie {
            device.map(workspace, self.all(SUMS))?[bit / 8] ^= 1 << (bit % 8);
        }
        let checked = [
            step(
                Silent::Puncture { set },
                &[&levels[1..], &[sums]],
                &[&of_a],
                &[starts[1]],
            ),
            step(
                Silent::Fill { set },
                &[&levels[1..], &[sealed, a, c]],
                &[&of_a, &of_c],
                &[seconds[1]],
            ),
            step(
                Silent::Ask { set },
                &[&of_a, &of_c, &[a, c, challenge]],
                &[&[told, mine]],
                &[],
            ),
            step(
                Silent::Answer { set, offset },
                &[&of_b, &[b, challenge, told]],
                &[&[theirs]],
                &[],
            ),
        ];
        device.submit(workspace, &checked, Tag(0))?;
        expect_done(device)?;
        let of_check = ["leaves of the receiver", "noise", "what the check tells"];
        look(device, of_check, [LEAVES[1], LEAVES[2], TOLD])?;
        let rows = [
            (COMMON[0], DomainTag::VOLE_ROWS),
            (COMMON[1], DomainTag::VOLE_ROWS),
        ];
        let made = [
            step(Silent::Rows { set }, &[&[b]], &[&of_b], &rows[..1]),
            step(
                Silent::Rows { set },
                &[&[a, c]],
                &[&of_a, &of_c],
                &rows[1..],
            ),
        ];
        device.submit(workspace, &made, Tag(0))?;
        expect_done(device)?;
        look(device, ["B", "A", "C"], LEAVES)?;
        device.close(workspace);
        Ok(seen)
    }
}
