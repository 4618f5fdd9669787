//! Who does what in a product of four parties (`docs/protocol-rep4.md`), and which commands that is at a node.

use veil_math::Ring;
use veil_prss::DomainTag;

use super::{Command, Mac, Op, Segment, Stage, Tuple};
use crate::share::Setting;

/// A joint message: numbers of parties.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Joint {
    /// Who computes its term. The first sends it in even chunks, and the second vouches for it; in odd ones the other way round.
    pub pair: [u8; 2],
    /// Who gets it.
    pub receiver: u8,
    /// The component that grows by it is the one that this party lacks.
    pub outsider: u8,
}

const fn joint(pair: [u8; 2], receiver: u8, outsider: u8) -> Joint {
    Joint {
        pair,
        receiver,
        outsider,
    }
}

/// All of a product.
pub const JOINT: [Joint; 6] = [
    joint([0, 1], 3, 2),
    joint([1, 2], 0, 3),
    joint([2, 3], 1, 0),
    joint([3, 0], 2, 1),
    joint([0, 2], 3, 1),
    joint([1, 3], 2, 0),
];

impl Joint {
    /// Who sends it in a chunk.
    pub const fn sender(&self, chunk: u32) -> u8 {
        self.pair[(chunk % 2) as usize]
    }

    /// Who vouches for it.
    pub const fn voucher(&self, chunk: u32) -> u8 {
        self.pair[1 - (chunk % 2) as usize]
    }
}

/// Joint messages whose terms a party computes: with the next party, the previous one, the one opposite.
pub fn crosses(me: u8) -> [u8; 3] {
    [1, 3, 2].map(|step| {
        let other = (me + step) % 4;
        let with = |joint: &Joint| joint.pair.contains(&me) && joint.pair.contains(&other);
        let found = (0..).zip(&JOINT).find(|(_, joint)| with(joint));
        found.map_or(0, |(k, _)| k)
    })
}

/// Joint messages that a party gets: one or two.
pub fn received(me: u8) -> Vec<u8> {
    let all = (0..).zip(&JOINT);
    let mine = all.filter(|(_, joint)| joint.receiver == me);
    mine.map(|(k, _)| k).collect()
}

/// The place of a component, or of another party, among those of a party.
pub(crate) const fn part(me: u8, component: u8) -> u8 {
    (component + 7 - me) % 4
}

/// Which party a core is of, as it is told.
pub(super) fn form(me: u8) -> u32 {
    let crosses = crosses(me);
    let all = (0..).zip(&JOINT);
    let outside = all.filter(|(_, joint)| joint.outsider == me);
    let calls: Vec<u8> = crosses.into_iter().chain(outside.map(|(k, _)| k)).collect();
    let mut subs = [0; 5];
    subs[..calls.len()].copy_from_slice(&calls);
    let opposite = JOINT[usize::from(crosses[2])];
    Setting {
        swapped: part(me, opposite.outsider) == 2,
        five: calls.len() == 5,
        subs,
        sends: Setting::ALL,
    }
    .form()
}

/// Columns of a command, in the order in which it takes or gives them.
pub(super) trait Columns {
    /// Where they lie at a node, of so many words each.
    fn segments(&self, me: u8, words: u32) -> Vec<Segment>;
}

impl<const N: usize> Columns for [u64; N] {
    fn segments(&self, me: u8, words: u32) -> Vec<Segment> {
        self.map(|at| Segment::new(me, at, words)).to_vec()
    }
}

impl<const N: usize> Columns for [[u64; N]; 2] {
    fn segments(&self, me: u8, words: u32) -> Vec<Segment> {
        let all = self.as_flattened().iter();
        all.map(|at| Segment::new(me, *at, words)).collect()
    }
}

/// Pieces of columns: address and words.
impl Columns for Vec<(u64, u32)> {
    fn segments(&self, me: u8, _: u32) -> Vec<Segment> {
        let all = self.iter();
        all.map(|&(at, words)| Segment::new(me, at, words))
            .collect()
    }
}

/// A piece of a layer that is one command of each stage, with the same addresses at all nodes.
pub(super) struct Piece<Factors = [[u64; 3]; 2], Shares = [u64; 3]> {
    pub(super) ring: Ring,
    /// Products are added up over the rows, so that what leaves has a beat.
    pub(super) sums: bool,
    pub(super) words: u32,
    /// Words of a MAC's beat.
    pub(super) lanes: u32,
    /// Of the masks of messages.
    pub(super) lane: u16,
    pub(super) counter: u64,
    /// Of those of MACs.
    pub(super) number: u64,
    pub(super) chunk: u32,
    pub(super) checks: bool,
    /// Components of both factors, of what is not complete, and of the product.
    pub(super) from: Factors,
    pub(super) left: Shares,
    pub(super) out: Shares,
    /// Where each node writes messages and MACs 0 and 1 of those that another one gets.
    pub(super) message: [[u64; 2]; 4],
    pub(super) mac: [[u64; 2]; 4],
}

impl<Factors: Columns, Shares: Columns> Piece<Factors, Shares> {
    /// The command of the first stage at a node.
    pub(super) fn local(&self, me: u8, tag: u32) -> Command {
        let mut sends = 0;
        let (mut to, mut macs) = (Vec::new(), Vec::new());
        let mut vouched = [None; 2];
        for (cross, k) in crosses(me).into_iter().enumerate() {
            let joint = JOINT[usize::from(k)];
            let at = joint.receiver;
            let place = received(at).iter().position(|of| *of == k).unwrap_or(0);
            if joint.sender(self.chunk) == me {
                sends |= 1 << cross;
                let address = self.message[usize::from(me)][place];
                to.push(Segment::new(at, address, self.leaving()));
            } else {
                vouched[macs.len()] = Some(Mac {
                    tag: DomainTag::mac4(k),
                    with: part(me, at),
                });
                let address = self.mac[usize::from(me)][place];
                macs.push(Segment::new(at, address, self.lanes));
            }
        }
        if self.checks {
            to.append(&mut macs);
        }
        to.extend(self.left.segments(me, self.leaving()));
        let stage = self.stage(sends, [None; 2], vouched);
        let from = self.from.segments(me, self.words);
        self.command(Op::Local(stage), (tag, self.words), from, to)
    }

    /// That of the second.
    pub(super) fn join(&self, me: u8, tag: u32) -> Command {
        self.joins(me, tag, |_| true)
    }

    /// The same, of one of the messages that came alone: to see whether it is what its MAC says.
    pub(super) fn only(&self, me: u8, tag: u32, message: usize) -> Command {
        self.joins(me, tag, |place| place == message)
    }

    fn joins(&self, me: u8, tag: u32, which: impl Fn(usize) -> bool) -> Command {
        let mut from = self.left.segments(me, self.leaving());
        let (mut to, mut macs) = ([None; 2], [None; 2]);
        let mut vouched = Vec::new();
        let received = received(me).into_iter().enumerate();
        for (at, (place, k)) in received.filter(|(place, _)| which(*place)).enumerate() {
            let joint = JOINT[usize::from(k)];
            let [sender, voucher] = [joint.sender(self.chunk), joint.voucher(self.chunk)];
            let message = self.message[usize::from(sender)][place];
            from.push(Segment::new(me, message, self.leaving()));
            let mac = self.mac[usize::from(voucher)][place];
            vouched.push(Segment::new(me, mac, self.lanes));
            to[at] = Some(part(me, joint.outsider));
            macs[at] = Some(Mac {
                tag: DomainTag::mac4(k),
                with: part(me, voucher),
            });
        }
        if self.checks {
            from.append(&mut vouched);
        }
        let mut stage = self.stage(0, to, macs);
        if self.sums && self.ring == Ring::Z64 {
            stage.tail = 8;
        }
        let out = self.out.segments(me, self.leaving());
        self.command(Op::Join(stage), (tag, self.leaving()), from, out)
    }

    /// Words of a column that leaves the first stage.
    const fn leaving(&self) -> u32 {
        if self.sums { self.lanes } else { self.words }
    }

    fn stage(&self, sends: u8, to: [Option<u8>; 2], macs: [Option<Mac>; 2]) -> Stage {
        Stage {
            ring: self.ring,
            sum: self.sums,
            tail: 0,
            sends,
            to,
            macs: self.checks.then_some(macs),
            counter: self.number,
        }
    }

    fn command(
        &self,
        op: Op,
        (tag, words): (u32, u32),
        from: Vec<Segment>,
        to: Vec<Segment>,
    ) -> Command {
        let used = if self.sums {
            DomainTag::sum4
        } else {
            DomainTag::joint4
        };
        Command {
            call: Some(Tuple {
                tag: used(0),
                lane: self.lane,
                counter: self.counter,
                chunk: self.chunk,
            }),
            ..Command::new(op, tag, words, from, to)
        }
    }
}
