//! Cases about oblivious transfers: both ends in one workspace, from random trees to keys of transfers.

use veil_math::Ring;
use veil_prss::DomainTag;
use veil_session::{Frame, Secret, SessionId};

use super::{Difference, ROWS, Seen, SplitMix, compare, expect_done, regions};
use crate::ot::{COLUMNS, Choices, Low, column_bytes};
use crate::{
    ColumnType, Command, Device, Fault, KeyId, Layout, Op, Ot, Outcome, PrfCall, Reference,
    Residency, Span, Tag, Trees, completion,
};

const CHOICES: u16 = 0;
const CORRECTIONS: u16 = 1;
const LAST: u16 = 2;
const RECEIVED: u16 = 3;
const SENT: u16 = 4;
const FOLDS: u16 = 5;
const CHALLENGE: u16 = 6;
const LABELS: u16 = 7;

/// Keys: Δ, that of start points, and the leaves of both ends.
const OFFSET: KeyId = KeyId(0);
const START: KeyId = KeyId(1);
const ALL: u16 = 10;
const SOME: u16 = 5000;

/// Labels of both ends, keys of both, chosen labels.
const KINDS: u32 = 6;

struct Case {
    trees: Trees,
    items: u32,
    of: Choices,
    layout: Layout,
    frame: Frame,
    keys: Vec<(KeyId, Secret)>,
    choices: Vec<u8>,
    challenge: Vec<u8>,
    /// A bit of the corrections that is changed on the way.
    lie: Option<usize>,
    first: u64,
}

/// A random case on `device` and the reference.
pub(super) fn one(
    device: &mut dyn Device,
    rng: &mut SplitMix,
    case: u32,
) -> Result<(), Difference> {
    let trees = Trees::ALL[rng.below(16).min(12) / 4];
    let most = if trees.bits() == 8 { 10 } else { ROWS.len() };
    let rows = ROWS[rng.below(most)];
    let items = 1 + rng.below(if rows > 200 { 2 } else { 6 }) as u32;
    let chunk_rows = rows + rng.below(3) as u32 * 100;
    let secret = |rng: &mut SplitMix| Secret::new(std::array::from_fn(|_| rng.next() as u8));
    let offset = u128::from(rng.next()) << 64 | u128::from(rng.next()) | 1;
    let mut keys = vec![
        (OFFSET, Secret::new(offset.to_le_bytes())),
        (START, secret(rng)),
    ];
    for tree in 0..trees.count() {
        let path = (offset >> (trees.bits() * tree)) as u32 & (trees.leaves() - 1);
        for leaf in 0..trees.leaves() {
            let key = secret(rng);
            if leaf != path {
                keys.push((KeyId(SOME + trees.index(tree, leaf ^ path)), key.clone()));
            }
            keys.push((KeyId(ALL + trees.index(tree, leaf)), key));
        }
    }
    let of = match rng.below(3) {
        0 => Choices::Bytes(1 + rng.below(100) as u32),
        _ => Choices::Rows,
    };
    let layout = layout(chunk_rows, trees, (items, of), rng.below(3) as u32 * 20);
    let corrections = layout.bytes(layout.all(CORRECTIONS, 0), rows) as usize;
    let of = Case {
        trees,
        items,
        of,
        frame: Frame {
            epoch: 0,
            lane: rng.next() as u16,
            chunk: rng.next() as u32,
            rows,
        },
        keys,
        choices: rng.bytes(layout.bytes(layout.all(CHOICES, 0), rows) as usize),
        challenge: rng.bytes(32),
        lie: (corrections > 0 && rng.below(2) == 0).then(|| rng.below(8 * corrections)),
        first: rng.next() >> 20,
        layout,
    };
    let want = of.run(&mut Reference::default());
    compare(
        (case, Ring::Bits, &of.layout, of.frame),
        want,
        of.run(device),
    )
}

fn layout(chunk_rows: u32, trees: Trees, (items, of): (u32, Choices), slack: u32) -> Layout {
    let (choices, block) = (of.column(), ColumnType::Bytes(16));
    let labels = match of {
        Choices::Rows => ColumnType::Labels,
        Choices::Bytes(bytes) => ColumnType::Bytes(128 * bytes),
    };
    let column = ColumnType::Bytes(column_bytes(of, items, chunk_rows) as u32 + slack);
    let (resident, mapped) = (Residency::Resident, Residency::Mapped);
    regions(
        chunk_rows,
        &[
            (mapped, choices, 1, items),
            (mapped, choices, 1, items * trees.count()),
            (mapped, block, 1, trees.count() - 1),
            (resident, column, 1, COLUMNS + 1),
            (resident, column, 1, COLUMNS),
            (mapped, block, 1, 2 * COLUMNS + 1),
            (mapped, ColumnType::Bytes(32), 1, 1),
            (mapped, labels, 1, KINDS * items),
        ],
    )
}

impl Case {
    fn all(&self, region: u16) -> Span {
        self.layout.all(region, 0)
    }

    fn call(&self, key: KeyId, tag: DomainTag) -> Vec<PrfCall> {
        let first = self.first;
        vec![PrfCall { key, tag, first }]
    }

    fn run(&self, device: &mut dyn Device) -> Result<Seen, Fault> {
        device.bind(SessionId([9; 32]));
        for (id, key) in &self.keys {
            device.load_key(*id, key)?;
        }
        let workspace = device.open(&self.layout, self.frame)?;
        device.write(workspace, self.all(CHOICES), &self.choices)?;
        device.write(workspace, self.all(CHALLENGE), &self.challenge)?;
        let mut seen = Seen::new();
        let trees = self.trees;
        let message = [self.all(CORRECTIONS), self.all(LAST)];
        let to = [&message[..], &[self.all(RECEIVED)]].concat();
        let mut receive = Command::new(Op::Ot(Ot::Receive { trees }), vec![self.all(CHOICES)], to);
        receive.calls = self.call(KeyId(ALL), DomainTag::OT_LEAF);
        device.submit(workspace, &[receive], Tag(0))?;
        expect_done(device)?;
        for span in message {
            seen.push(("corrections", device.view(workspace, span)?.to_vec()));
        }
        if let Some(bit) = self.lie {
            device.map(workspace, message[0])?[bit / 8] ^= 1 << (bit % 8);
        }
        let offset = OFFSET;
        let mut send = Command::new(
            Op::Ot(Ot::Send { trees, offset }),
            message.to_vec(),
            vec![self.all(SENT)],
        );
        send.calls = self.call(KeyId(SOME), DomainTag::OT_LEAF);
        let mut commands = vec![send];
        commands.extend(self.finish());
        device.submit(workspace, &commands, Tag(0))?;
        expect_done(device)?;
        seen.push(("folds", device.view(workspace, self.all(FOLDS))?.to_vec()));
        seen.push(("labels", device.view(workspace, self.all(LABELS))?.to_vec()));
        let [own, theirs] = self.folds();
        let compared = Command::new(Op::Ot(Ot::Compare { offset }), vec![theirs, own], vec![]);
        device.submit(workspace, &[compared], Tag(0))?;
        let passed = completion(device)?.outcome == Outcome::Done;
        seen.push(("a comparison of folds", vec![passed.into()]));
        device.close(workspace);
        Ok(seen)
    }

    /// Folds of the receiver, and of the sender.
    fn folds(&self) -> [Span; 2] {
        let first = |first, count| Span {
            first,
            count,
            ..self.all(FOLDS)
        };
        [first(0, COLUMNS + 1), first(COLUMNS + 1, COLUMNS)]
    }

    fn labels(&self, kind: u32) -> Span {
        Span {
            first: kind * self.items,
            count: self.items,
            ..self.all(LABELS)
        }
    }

    /// Everything after both ends have columns.
    fn finish(&self) -> Vec<Command> {
        let ot = |step, src: &[Span], dst: &[Span]| {
            Command::new(Op::Ot(step), src.to_vec(), dst.to_vec())
        };
        let received = |low: Low| Span {
            count: low.columns(),
            ..self.all(RECEIVED)
        };
        let labels = |low, from, to| ot(Ot::Labels { low }, &[from], &[to]);
        let [own, theirs] = self.folds();
        let fold = Ot::Fold {
            items: self.items,
            of: self.of,
        };
        let challenge = self.all(CHALLENGE);
        let [t, q, key, zero, one, chosen] = [0, 1, 2, 3, 4, 5].map(|kind| self.labels(kind));
        let keys = |offset, from, to: &[Span]| {
            let mut command = ot(Ot::Keys { offset }, &[from], to);
            command.calls = self.call(START, DomainTag::OT_KEYS);
            command
        };
        let mut commands = vec![
            ot(fold, &[self.all(RECEIVED), challenge], &[own]),
            ot(fold, &[self.all(SENT), challenge], &[theirs]),
            labels(Low::Choice, received(Low::Choice), key),
            labels(Low::Zero, self.all(SENT), zero),
            labels(Low::Zero, received(Low::Zero), one),
            labels(Low::Column, received(Low::Column), t),
            labels(Low::Column, self.all(SENT), q),
        ];
        if self.of != Choices::Rows {
            return commands;
        }
        commands.extend([
            keys(None, t, &[key]),
            keys(Some(OFFSET), q, &[zero, one]),
            ot(Ot::Choose, &[zero, one, self.all(CHOICES)], &[chosen]),
            ot(Ot::Choose, &[chosen, t, self.all(CHOICES)], &[chosen]),
        ]);
        commands
    }
}
