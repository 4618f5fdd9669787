//! Both parties of transfers, on any device, and what goes between them.

use veil_device::ot::Choices;
use veil_device::{
    ColumnType, Device, Frame, KeyId, Layout, Op, Outcome, Region, Residency, Span, Tag, Trees,
    Workspace, completion,
};
use veil_math::Ring;
use veil_protocol::Round;
use veil_protocol::ot::extension::{At, Challenge, Receiver, Sender};
use veil_prss::{DomainTag, Prf};
use veil_session::{PartyId, Peer, Secret, SessionId};

use crate::common::Kind;

pub(crate) const SENDER: Peer = Peer::Party(PartyId::THREE[0]);
pub(crate) const RECEIVER: Peer = Peer::Party(PartyId::THREE[1]);

pub(crate) const OFFSET: KeyId = KeyId(0);
pub(crate) const START: KeyId = KeyId(1);
pub(crate) const PRIVATE: KeyId = KeyId(2);
pub(crate) const LEAVES: KeyId = KeyId(16);

/// Kinds of labels that a test looks at or writes: those of the transfers, two keys, two messages, what comes of them.
pub(crate) const KINDS: u32 = 8;

/// A use of transfers.
pub(crate) const AT: At = At {
    place: 5,
    first: 1 << 33,
    label: 0x7000,
};

/// A party: a device with a workspace of both regions that a test looks at, and those of transfers.
pub(crate) struct End {
    pub(crate) device: Box<dyn Device>,
    pub(crate) workspace: Workspace,
    pub(crate) labels: Span,
    pub(crate) choices: Span,
    pub(crate) items: u32,
}

impl End {
    /// `labels` of a kind.
    pub(crate) fn labels(&self, kind: u32) -> Span {
        Span {
            first: kind * self.items,
            count: self.items,
            ..self.labels
        }
    }

    pub(crate) fn see(&self, kind: u32) -> Vec<u128> {
        let bytes = self
            .device
            .view(self.workspace, self.labels(kind))
            .expect("it is mapped");
        let chunks = bytes.as_chunks().0.iter();
        chunks.map(|label| u128::from_le_bytes(*label)).collect()
    }

    pub(crate) fn put(&mut self, kind: u32, labels: &[u128]) {
        let bytes: Vec<u8> = labels.iter().flat_map(|l| l.to_le_bytes()).collect();
        let to = self.labels(kind);
        self.device
            .write(self.workspace, to, &bytes)
            .expect("it is mapped");
    }

    /// Runs commands one by one; `look` may change the workspace after each.
    pub(crate) fn run(
        &mut self,
        commands: &[veil_device::Command],
        look: &mut dyn FnMut(&Op, &mut dyn Device, Workspace),
    ) -> Result<(), usize> {
        for (k, command) in commands.iter().enumerate() {
            let one = std::slice::from_ref(command);
            self.device
                .submit(self.workspace, one, Tag(0))
                .expect("a good command");
            match completion(&mut *self.device).expect("it works").outcome {
                Outcome::Done => look(&command.op, &mut *self.device, self.workspace),
                Outcome::Mismatch { .. } => return Err(k),
            }
        }
        Ok(())
    }
}

/// Both parties of a set-up.
pub(crate) struct Pair {
    pub(crate) ends: [End; 2],
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    pub(crate) offset: u128,
    pub(crate) rows: u32,
    pub(crate) items: u32,
}

/// What a run of transfers is.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) trees: Trees,
    pub(crate) items: u32,
    pub(crate) rows: u32,
    pub(crate) coin: bool,
}

pub(crate) const SHAPE: Shape = Shape {
    trees: Trees::ALL[2],
    items: 2,
    rows: 37,
    coin: false,
};

pub(crate) fn block(seed: u64, what: u32) -> [u8; 16] {
    Prf::new(&Secret::new([0x77; 16])).block(DomainTag(1), 0, seed, what)
}

impl Pair {
    /// Keys that follow from `seed`.
    pub(crate) fn new(shape: Shape, kind: Kind, seed: u64) -> Pair {
        let offset = u128::from_le_bytes(block(seed, 0)) | 1;
        let leaf = |tree, x| block(seed, 16 + u32::from(shape.trees.index(tree, x)));
        let mut pair = Pair::with(shape, kind, offset, &leaf, (0, 3, shape.rows.max(512)));
        pair.load(START, &[0, 1], block(seed, 1));
        pair.load(PRIVATE, &[0], block(seed, 2));
        pair
    }

    pub(crate) fn with(
        shape: Shape,
        kind: Kind,
        offset: u128,
        leaf: &dyn Fn(u32, u32) -> [u8; 16],
        (lane, chunk, chunk_rows): (u16, u32, u32),
    ) -> Pair {
        let Shape {
            trees,
            items,
            rows,
            coin,
        } = shape;
        let challenge = if coin {
            Challenge::Coin(PRIVATE)
        } else {
            Challenge::Hash
        };
        let (mut sender, mut receiver) = (None, None);
        let ends = [SENDER, RECEIVER].map(|me| {
            let mut layout = Layout {
                chunk_rows,
                regions: vec![],
            };
            let mut add = |column, count| {
                let region = layout.add(Region {
                    residency: Residency::Mapped,
                    column,
                    components: 1,
                    count,
                });
                layout.all(region, 0)
            };
            let labels = add(ColumnType::Labels, KINDS * items);
            let choices = add(ColumnType::Rows(Ring::Bits), items);
            let both = (trees, (items, Choices::Rows));
            if me == SENDER {
                sender = Some(Sender::new(
                    &mut layout,
                    RECEIVER,
                    both,
                    challenge,
                    (LEAVES, OFFSET),
                ));
            } else {
                receiver = Some(Receiver::new(&mut layout, SENDER, both, challenge, LEAVES));
            }
            let mut device = kind.device();
            device.bind(SessionId([0x5e; 32]));
            let frame = Frame {
                epoch: 0,
                lane,
                chunk,
                rows,
            };
            let workspace = device.open(&layout, frame).expect("a small workspace");
            End {
                device,
                workspace,
                labels,
                choices,
                items,
            }
        });
        let mut pair = Pair {
            ends,
            sender: sender.expect("it was made"),
            receiver: receiver.expect("it was made"),
            offset,
            rows,
            items,
        };
        pair.load(OFFSET, &[0], offset.to_le_bytes());
        for tree in 0..trees.count() {
            let path = (offset >> (trees.bits() * tree)) as u32 & (trees.leaves() - 1);
            for x in 0..trees.leaves() {
                let key = leaf(tree, x);
                pair.load(KeyId(LEAVES.0 + trees.index(tree, x)), &[1], key);
                if x != path {
                    pair.load(KeyId(LEAVES.0 + trees.index(tree, x ^ path)), &[0], key);
                }
            }
        }
        pair
    }

    pub(crate) fn load(&mut self, id: KeyId, at: &[usize], key: [u8; 16]) {
        for end in at {
            let device = &mut self.ends[*end].device;
            device.load_key(id, &Secret::new(key)).expect("room for it");
        }
    }

    /// Choices, packed.
    pub(crate) fn choose(&mut self, choices: &[u8]) {
        let end = &mut self.ends[1];
        end.device
            .write(end.workspace, end.choices, choices)
            .expect("it is mapped");
    }

    /// The bit of a row of an item.
    pub(crate) fn choice(&self, item: u32, row: u32) -> bool {
        let end = &self.ends[1];
        let bytes = end
            .device
            .view(end.workspace, end.choices)
            .expect("it is mapped");
        let width = self.rows.div_ceil(8);
        bytes[(item * width + row / 8) as usize] >> (row % 8) & 1 == 1
    }

    /// Both rounds of an exchange: see [`exchange`].
    pub(crate) fn round(
        &mut self,
        rounds: [&Round; 2],
        look: &mut dyn FnMut(Peer, &Op, &mut dyn Device, Workspace),
        pass: &mut dyn FnMut(Peer, u16, &mut Vec<u8>),
    ) -> Result<(), Failed> {
        exchange(&mut self.ends, rounds, look, pass)
    }

    /// All rounds of the transfers.
    pub(crate) fn transfers(
        &mut self,
        look: &mut dyn FnMut(Peer, &Op, &mut dyn Device, Workspace),
        pass: &mut dyn FnMut(Peer, u16, &mut Vec<u8>),
    ) -> Result<(), Failed> {
        self.transfers_at(AT.first, look, pass)
    }

    pub(crate) fn transfers_at(
        &mut self,
        first: u64,
        look: &mut dyn FnMut(Peer, &Op, &mut dyn Device, Workspace),
        pass: &mut dyn FnMut(Peer, u16, &mut Vec<u8>),
    ) -> Result<(), Failed> {
        let at = At { first, ..AT };
        let to = [0, 1].map(|end| self.ends[end].labels(0));
        let sender = self.sender.rounds(at, to[0]);
        let receiver = self.receiver.rounds(at, self.ends[1].choices, to[1]);
        assert_eq!(sender.len(), receiver.len());
        for rounds in sender.iter().zip(&receiver) {
            self.round(rounds.into(), look, pass)?;
        }
        Ok(())
    }

    pub(crate) fn honest(&mut self) {
        let done = self.transfers(&mut |_, _, _, _| {}, &mut |_, _, _| {});
        assert_eq!(done, Ok(()));
    }

    /// Q = T ⊕ x Δ.
    pub(crate) fn check(&self) {
        let (q, t) = (self.ends[0].see(0), self.ends[1].see(0));
        assert_eq!(q.len(), (self.items * self.rows) as usize);
        for (k, (q, t)) in (0..).zip(q.iter().zip(&t)) {
            let x = self.choice(k / self.rows, k % self.rows);
            let want = if x { t ^ self.offset } else { *t };
            assert_eq!(*q, want, "transfer {k}");
        }
    }

    /// Runs commands of one party.
    pub(crate) fn run(&mut self, end: usize, command: &veil_device::Command) {
        let one = std::slice::from_ref(command);
        let done = self.ends[end].run(one, &mut |_, _, _| {});
        assert_eq!(done, Ok(()));
    }
}

/// Both rounds of an exchange, the sender's and the receiver's. `look` sees what a party has after each command, and `pass` what goes
/// from one to the other.
pub(crate) fn exchange(
    ends: &mut [End; 2],
    rounds: [&Round; 2],
    look: &mut dyn FnMut(Peer, &Op, &mut dyn Device, Workspace),
    pass: &mut dyn FnMut(Peer, u16, &mut Vec<u8>),
) -> Result<(), Failed> {
    assert_eq!(rounds[0].place, rounds[1].place);
    for (end, (round, me)) in ends.iter_mut().zip(rounds.iter().zip([SENDER, RECEIVER])) {
        let done = end.run(&round.local, &mut |op, device, workspace| {
            look(me, op, device, workspace);
        });
        assert_eq!(done, Ok(()), "nothing is checked before it is received");
    }
    for from in [0, 1] {
        let (me, to) = ([SENDER, RECEIVER][from], 1 - from);
        let lists = (&rounds[from].sends, &rounds[to].recvs);
        assert_eq!(lists.0.len(), lists.1.len());
        for send in lists.0 {
            let mut bytes = {
                let end = &ends[from];
                end.device
                    .view(end.workspace, send.span)
                    .expect("it is mapped")
                    .to_vec()
            };
            pass(me, send.part, &mut bytes);
            let recv = lists.1.iter().find(|recv| recv.part == send.part);
            let span = recv.expect("what is sent is received").span;
            let end = &mut ends[to];
            end.device
                .write(end.workspace, span, &bytes)
                .expect("as long as agreed");
        }
    }
    for (end, (round, me)) in ends.iter_mut().zip(rounds.iter().zip([SENDER, RECEIVER])) {
        let done = end.run(&round.finish, &mut |op, device, workspace| {
            look(me, op, device, workspace);
        });
        if let Err(command) = done {
            let mut checks = round.checks.iter();
            let check = checks
                .find(|c| c.command == command)
                .expect("it is declared");
            return Err(Failed(me, check.suspects.clone(), check.what));
        }
    }
    Ok(())
}

/// Who noticed, who is suspected, and of what.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Failed(
    pub(crate) Peer,
    pub(crate) Vec<Peer>,
    pub(crate) &'static str,
);

pub(crate) fn caught() -> Result<(), Failed> {
    Err(Failed(
        SENDER,
        vec![RECEIVER],
        "corrections of oblivious transfer",
    ))
}

pub(crate) fn drawn(seed: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    Prf::new(&Secret::new([0x33; 16])).stream(DomainTag(2), 0, seed << 20, 0, &mut bytes);
    bytes
}

pub(crate) fn choices(shape: Shape, seed: u64) -> Vec<u8> {
    drawn(seed, (shape.items * shape.rows.div_ceil(8)) as usize)
}

pub(crate) fn flip(bytes: &mut [u8], bit: usize) {
    bytes[bit / 8] ^= 1 << (bit % 8);
}
