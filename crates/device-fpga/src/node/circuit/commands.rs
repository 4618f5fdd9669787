//! What each node does for a plan: its list, and how it asks afterwards which message was wrong.

use veil_math::Ring;
use veil_prss::DomainTag;

use super::ahead::message_slots;
use super::pack::Packed;
use super::{Parties, Plan, Round, WORD};
use crate::node::trio::{next, previous};
use crate::node::{
    COUNTED, Command, JOINT, List, MOST_NODES, Node, NodeError, Op, Segment, Tuple, Window, four,
};

/// Tells that an await counts at most.
const MOST_TELLS: usize = u16::MAX as usize;

/// What the first product of a run draws. The next word has the next counter, and the next command of four parties the next number.
///
/// Nothing is drawn from twice: a run takes [`Plan::words`] counters, and [`Plan::layers`] numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PrfCounters {
    /// For masks. Of four parties the chunk also says who sends and who vouches, and the use is that of joint messages.
    pub masks: Tuple,
    /// Of four parties: number of the first layer, for the masks of MACs.
    pub layer: u64,
}

impl PrfCounters {
    /// Of parties whose first product is that of a run of theirs.
    pub(in crate::node) const fn first(parties: Parties) -> Self {
        PrfCounters {
            masks: Tuple {
                tag: match parties {
                    Parties::Three => DomainTag::AND3,
                    Parties::Four { .. } => DomainTag::joint4(0),
                },
                lane: 0,
                counter: 0,
                chunk: 0,
            },
            layer: 0,
        }
    }
}

/// Products of four parties that are one command of each stage.
type Piece = four::Piece<Vec<(u64, u32)>, Vec<(u64, u32)>>;

impl Plan {
    /// What a party does: commands in their order, and whether each begins when all before it have ended.
    pub fn commands(&self, me: u8, counters: PrfCounters) -> Vec<(Command, bool)> {
        let mut all = Vec::new();
        for round in &self.rounds {
            all.extend(self.moves(me, round));
            let begin = all.len();
            let products = (0..round.products.len()).map(|k| self.send(me, round, k, counters));
            all.extend(products.map(|command| (command, false)));
            let sums = round.sums.iter().map(|of| self.sum(me, of));
            all.extend(sums.map(|command| (command, false)));
            all[begin].1 = true;
            let awaits = self.awaits(me, round, counters.masks.chunk);
            all.extend(awaits.map(|command| (command, false)));
            if let Parties::Four { checks } = self.parties {
                let begin = all.len();
                let pieces =
                    (0..round.products.len()).map(|k| self.piece(me, round, k, counters, checks));
                all.extend(pieces.map(|piece| (piece.join(me, 0), false)));
                if let Some((_, after)) = all.get_mut(begin) {
                    *after = true;
                }
            }
        }
        all
    }

    /// The list of a party. Tags of its commands are numbers from `tag` on.
    pub fn list(&self, me: u8, counters: PrfCounters, tag: u32) -> List {
        let mut list = List::new();
        for (tag, (mut command, after)) in (tag..).zip(self.commands(me, counters)) {
            // If it fails its completion says which it is.
            command.tag = tag;
            list.push(&command, after);
        }
        list
    }

    /// Where it lies, of any party and chunk: behind all columns, and behind inboxes that no caller has placed elsewhere.
    pub fn list_at(&self) -> Window {
        self.list
    }

    /// Words of the longest list.
    pub(super) fn longest_list(&self) -> u32 {
        let all = (0..=self.parties.parts() as u8).flat_map(|me| [0, 1].map(|chunk| (me, chunk)));
        let words = all.map(|(me, chunk)| {
            let mut counters = PrfCounters::first(self.parties);
            counters.masks.chunk = chunk;
            self.list(me, counters, 0).words(self.lanes)
        });
        words.max().unwrap_or(0)
    }

    /// Writes zeros, then ones, where it has them.
    pub(in crate::node) fn put_constants(&self, node: &mut Node) -> Result<(), NodeError> {
        let half = WORD as usize * self.constants.words as usize / 2;
        let bytes = [vec![0; half], vec![0xff; half]].concat();
        node.store(self.constants.address, &bytes)
    }

    /// Leaves the list of a party, with tags from the first of `tags` on, in the memory of its node: the command that runs it, with the second tag.
    pub(in crate::node) fn put_list(
        &self,
        node: &mut Node,
        me: u8,
        counters: PrfCounters,
        tags: [u32; 2],
    ) -> Result<Command, NodeError> {
        let [commands, own] = tags;
        let list = self.list(me, counters, commands);
        node.store(self.list.address, &list.bytes(self.lanes))?;
        let from = Segment::new(me, self.list.address, list.words(self.lanes));
        Ok(Command::list(own, vec![from]))
    }

    /// What a party of four asks when a list ended with [`super::super::Failure::Mismatch`]: command number `number` of it again, with one of the
    /// messages that came alone, of those that [`super::super::received`] says. It ends in the same way if that one is not what its MAC says: of
    /// what lies there now, where who sent it may have written since. None if there is no such join or message.
    pub fn only(
        &self,
        me: u8,
        counters: PrfCounters,
        number: usize,
        message: usize,
    ) -> Option<Command> {
        let Parties::Four { checks } = self.parties else {
            return None;
        };
        let mut joins = 0;
        for round in &self.rounds {
            let awaits = self.awaits(me, round, counters.masks.chunk).count();
            let products = round.products.len();
            joins += round.moves.len() + products + round.sums.len() + awaits;
            if number < joins {
                return None;
            }
            if number < joins + products {
                let piece = self.piece(me, round, number - joins, counters, checks);
                let came = message < four::received(me).len();
                return came.then(|| piece.only(me, 0, message));
            }
            joins += products;
        }
        None
    }

    /// The first command of products, of three parties the only one. The message leaves before the own copy is written, and is counted.
    fn send(&self, me: u8, round: &Round, k: usize, counters: PrfCounters) -> Command {
        if let Parties::Four { checks } = self.parties {
            let mut local = self.piece(me, round, k, counters, checks).local(me, 0);
            let others = local.to.iter_mut().filter(|to| to.node != me);
            others.for_each(|to| to.tell = Some(COUNTED));
            return local;
        }
        let of = &round.products[k];
        // It lies where the next party has what the one before it sends.
        let mut to: Vec<Segment> = self.segments(next(me), &of.to[..1]).collect();
        if let Some(last) = to.last_mut() {
            last.tell = Some(COUNTED);
        }
        to.extend(self.segments(me, &of.to[1..]));
        let from = self.segments(me, &of.from).collect();
        Command {
            call: Some(Tuple {
                counter: counters.masks.counter + round.before + u64::from(of.first),
                ..counters.masks
            }),
            ..Command::new(Op::Product(Ring::Bits), 0, of.words, from, to)
        }
    }

    /// What brings operands together, behind all before it.
    fn moves(&self, me: u8, round: &Round) -> impl Iterator<Item = (Command, bool)> {
        (0..).zip(&round.moves).map(move |(k, of)| {
            let from = self.segments(me, &of.from).collect();
            let to = self.segments(me, &of.to).collect();
            (Command::new(Op::Move, 0, of.words, from, to), k == 0)
        })
    }

    fn sum(&self, me: u8, of: &Packed) -> Command {
        let from = self.segments(me, &of.from).collect();
        let to = self.segments(me, &of.to).collect();
        Command::new(Op::Xor, 0, of.words, from, to)
    }

    /// Both commands of some products of four parties. Each message, or code, has the place that the words of its products have in the wave.
    fn piece(&self, me: u8, round: &Round, k: usize, counters: PrfCounters, checks: bool) -> Piece {
        let of = &round.products[k];
        let slot = round.depth % message_slots(checks);
        let sent = [0, 1, 2, 3].map(|from| {
            let most = u64::from(self.most);
            [0, 1].map(|place| {
                let words = (2 * u64::from(slot) + place) * most + u64::from(of.first);
                self.inbox(from).address + WORD * words
            })
        });
        let columns = |streams: &[Vec<(u64, u32)>]| {
            let all = streams.iter().flatten();
            all.map(|&(at, words)| (self.at(me, at), words)).collect()
        };
        Piece {
            ring: Ring::Bits,
            sums: false,
            words: of.words,
            lanes: self.lanes,
            lane: counters.masks.lane,
            counter: counters.masks.counter + round.before + u64::from(of.first),
            number: counters.layer + round.commands + k as u64,
            chunk: counters.masks.chunk,
            checks,
            from: columns(&of.from),
            left: vec![(self.left + 3 * WORD * u64::from(of.first), 3 * of.words)],
            out: columns(&of.to),
            // A party sends a message or vouches for it: it needs one place for both.
            message: sent,
            mac: sent,
        }
    }

    /// What waits for all that other nodes send in a round.
    fn awaits(&self, me: u8, round: &Round, chunk: u32) -> impl Iterator<Item = Command> {
        let mut each = [0; MOST_NODES as usize];
        match self.parties {
            Parties::Three => each[usize::from(previous(me))] = 1,
            Parties::Four { checks } => {
                for k in four::received(me) {
                    let joint = JOINT[usize::from(k)];
                    each[usize::from(joint.sender(chunk))] += 1;
                    each[usize::from(joint.voucher(chunk))] += u16::from(checks);
                }
            }
        }
        // Of a command there are two at most from one node.
        let some = round.products.chunks(MOST_TELLS / 2);
        some.map(move |some| {
            let tells = (0..).zip(each).filter(|(_, each)| *each > 0);
            let tells: Vec<_> = tells
                .map(|(node, each)| (node, each * some.len() as u16))
                .collect();
            Command::awaits(0, &tells)
        })
    }

    fn segments(&self, node: u8, streams: &[Vec<(u64, u32)>]) -> impl Iterator<Item = Segment> {
        let all = streams.iter().flatten();
        all.map(move |&(address, words)| Segment::new(node, self.at(node, address), words))
    }
}
