//! Cases about silent transfers: both ends in one workspace, from random correlations to transfers of choices.

use veil_math::Ring;
use veil_prss::DomainTag;
use veil_session::{Frame, Secret, SessionId};

use super::{Difference, ROWS, Seen, SplitMix, compare, expect_done, regions};
use crate::{
    ColumnType, Command, Device, Fault, KeyId, Layout, Lpn, Op, PrfCall, Reference, Residency,
    Silent, Span, Tag,
};

/// Regions of each end: the sender's, then the receiver's.
const BASE: [u16; 2] = [0, 1];
const LEAVES: [u16; 2] = [2, 3];
const SUMS: u16 = 4;
const CHALLENGE: u16 = 5;
/// What the receiver tells, and what each end has at last.
const TOLD: u16 = 6;
const CHOICES: u16 = 7;
const TURNED: u16 = 8;
const LABELS: u16 = 9;
/// Outputs as they are: the sender's, then the receiver's.
const TAKEN: u16 = 10;

/// Keys: Δ, that of roots, and the common one as each end has it, which draws the same at both.
const OFFSET: KeyId = KeyId(0);
const OWN: KeyId = KeyId(1);
const COMMON: [KeyId; 2] = [KeyId(2), KeyId(3)];

struct Case {
    set: Lpn,
    /// Trees in the first span of leaves.
    split: u32,
    items: u32,
    first_output: u64,
    /// Blocks of a column of outputs as they are, and where they go: the first, and how many.
    taken: (u32, u64, u64),
    layout: Layout,
    frame: Frame,
    keys: Vec<(KeyId, Secret)>,
    written: Vec<(u16, Vec<u8>)>,
    /// A bit of the sums that is changed on the way.
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
        let (height, secret) = (3 + rng.below(5) as u8, 1 + rng.below(9) as u8);
        let set = Lpn::of(1 + rng.below(9) as u32, secret, height);
        let most = set.outputs() as u32;
        let rows = ROWS[rng.below(ROWS.len())].min(most);
        let items = (rng.below(4) as u32).min(most / rows.max(1));
        let spare = most - items * rows;
        let first_output = rng.below(spare as usize + 1).min(most as usize - 1) as u64;
        let (each, columns) = (1 + rng.below(20) as u32, 1 + rng.below(5) as u32);
        let room = (each * columns).min(most - first_output as u32).max(1);
        let blocks = 1 + rng.below(room as usize) as u64;
        let at = rng.below((u64::from(each * columns) - blocks + 1) as usize) as u64;
        let taken = (columns, at, blocks);
        let offset = u128::from(rng.next()) << 64 | u128::from(rng.next()) | 1;
        let (mapped, block) = (Residency::Mapped, ColumnType::Bytes(16));
        let bits = ColumnType::Rows(Ring::Bits);
        let base = (mapped, set.column(), 1, set.base_columns());
        let leaves = (mapped, set.column(), 1, set.trees);
        let layout = regions(
            rows + rng.below(3) as u32 * 10,
            &[
                base,
                base,
                leaves,
                leaves,
                (mapped, block, 1, set.trees * u32::from(height)),
                (mapped, ColumnType::Bytes(32), 1, 1),
                (mapped, block, 1, 3),
                (mapped, bits, 1, items),
                (mapped, bits, 1, items),
                (mapped, ColumnType::Labels, 1, 2 * items),
                (mapped, ColumnType::Bytes(16 * each), 1, 2 * columns),
            ],
        );
        // Correlations, most of the time.
        let count = u64::from(set.base_columns()) * u64::from(set.leaves());
        let (mut own, mut theirs) = (Vec::new(), Vec::new());
        let correlated = rng.below(4) > 0;
        for _ in 0..count {
            let key = (u128::from(rng.next()) << 64 | u128::from(rng.next())) & !1;
            let choice = u128::from(rng.next() & 1).wrapping_neg();
            let other = if correlated {
                key ^ choice & offset
            } else {
                u128::from(rng.next())
            };
            own.extend(key.to_le_bytes());
            theirs.extend(other.to_le_bytes());
        }
        let choices = rng.bytes(layout.bytes(layout.all(CHOICES, 0), rows) as usize);
        let written = vec![
            (BASE[0], own),
            (BASE[1], theirs),
            (CHALLENGE, rng.bytes(32)),
            (CHOICES, choices),
        ];
        let secret = |rng: &mut SplitMix| Secret::new(std::array::from_fn(|_| rng.next() as u8));
        let (own_key, common) = (secret(rng), secret(rng));
        let sums = 128 * set.trees as usize * usize::from(height);
        Case {
            set,
            split: rng.below(set.trees as usize + 1) as u32,
            items,
            taken,
            first_output,
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
            lie: (rng.below(3) == 0).then(|| rng.below(sums)),
            first: rng.next() >> 20,
            layout,
        }
    }

    fn all(&self, region: u16) -> Span {
        self.layout.all(region, 0)
    }

    fn part(&self, region: u16, first: u32, count: u32) -> Span {
        Span {
            first,
            count,
            ..self.all(region)
        }
    }

    /// Both spans of an end's leaves.
    fn leaves(&self, end: usize) -> [Span; 2] {
        let (region, rest) = (LEAVES[end], self.set.trees - self.split);
        [
            self.part(region, 0, self.split),
            self.part(region, self.split, rest),
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
        let bases = BASE.map(|region| self.all(region));
        let leaves = [self.leaves(0), self.leaves(1)];
        let (sums, challenge) = (self.all(SUMS), self.all(CHALLENGE));
        let [told, theirs, mine] = [0, 1, 2].map(|k| self.part(TOLD, k, 1));
        let step = |step, src: Vec<Span>, dst: Vec<Span>, calls: &[(KeyId, DomainTag)]| {
            let mut command = Command::new(Op::Silent(step), src, dst);
            let calls = calls.iter().map(|(key, tag)| PrfCall {
                key: *key,
                tag: *tag,
                first: self.first,
            });
            command.calls = calls.collect();
            command
        };
        let start = COMMON.map(|key| (key, DomainTag::OT_TREE));
        let with = |spans: &[Span], more: &[Span]| [spans, more].concat();
        let grow = step(
            Silent::Grow { set, offset },
            vec![bases[0]],
            with(&leaves[0], &[sums]),
            &[start[0], (OWN, DomainTag::OT_ROOT)],
        );
        device.submit(workspace, &[grow], Tag(0))?;
        expect_done(device)?;
        let mut seen = Seen::new();
        seen.push(("sums of levels", device.view(workspace, sums)?.to_vec()));
        if let Some(bit) = self.lie {
            device.map(workspace, sums)?[bit / 8] ^= 1 << (bit % 8);
        }
        let checked = [
            step(
                Silent::Puncture { set },
                vec![bases[1], sums],
                leaves[1].to_vec(),
                &[start[1]],
            ),
            step(
                Silent::Ask { set },
                with(&leaves[1], &[bases[1], challenge]),
                vec![told, mine],
                &[],
            ),
            step(
                Silent::Answer { set, offset },
                with(&leaves[0], &[bases[0], challenge, told]),
                vec![theirs],
                &[],
            ),
        ];
        device.submit(workspace, &checked, Tag(0))?;
        expect_done(device)?;
        for (what, region) in [
            ("leaves of the sender", LEAVES[0]),
            ("leaves of the receiver", LEAVES[1]),
            ("what the check tells", TOLD),
        ] {
            seen.push((what, device.view(workspace, self.all(region))?.to_vec()));
        }
        let mut commands = Vec::new();
        for end in 0..2 {
            let rows = Silent::Rows { set };
            let call = (COMMON[end], DomainTag::OT_ROWS);
            commands.push(step(rows, vec![bases[end]], leaves[end].to_vec(), &[call]));
        }
        let (first, count) = (self.first_output, self.items);
        let outputs = [0, 1].map(|end: usize| self.all(LEAVES[end]));
        let labels = [0, 1].map(|end| self.part(LABELS, end * count, count));
        let turned = self.all(TURNED);
        commands.push(step(
            Silent::Choose { first },
            vec![outputs[1], self.all(CHOICES)],
            vec![turned, labels[1]],
            &[],
        ));
        commands.push(step(
            Silent::Turn { first, offset },
            vec![outputs[0], turned],
            vec![labels[0]],
            &[],
        ));
        let (columns, at, count) = self.taken;
        let taken = [0, 1].map(|end| self.part(TAKEN, end * columns, columns));
        for (from, to) in outputs.into_iter().zip(taken) {
            let take = Silent::Take { first, at, count };
            commands.push(step(take, vec![from], vec![to], &[]));
        }
        device.submit(workspace, &commands, Tag(0))?;
        expect_done(device)?;
        for (what, region) in [
            ("outputs as they are", TAKEN),
            ("outputs of the sender", LEAVES[0]),
            ("outputs of the receiver", LEAVES[1]),
            ("choices that are turned", TURNED),
            ("labels", LABELS),
        ] {
            seen.push((what, device.view(workspace, self.all(region))?.to_vec()));
        }
        device.close(workspace);
        Ok(seen)
    }
}
