//! Rounds of products as wholes: what nodes compute, send and receive by themselves, from what a round says.
//!
//! What is linear is computed before, as other programs are. The operands of products become columns behind one another, which go to the own node;
//! what comes back are components of the products, and no message is left to be sent. A round is one of these if it is nothing else: its messages
//! are all those of its products and of their MACs, and all that finishes it is to add them.

use std::sync::Arc;

use veil_device::{Command, Cpu, Fault, KeyId, Op, Round, Shares, Span, Transfer, Workspace};
use veil_session::{PartyId, Peer};
use zeroize::Zeroizing;

use super::command::{Closes, Kind, WORD};
use super::core::Core;
use super::four::Setting;
use super::loaded::Loaded;
use super::run::Running;
use super::tasks::{Known, Second};
use super::{Cores, keys_for};
use crate::device::failed;
use crate::node::work::{Components, Keys, Name, Product};
use crate::node::{JOINT, Tuple, crosses, part, received};

/// What a node does of a round.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Whole {
    /// Commands before those that run programs.
    pub(crate) before: usize,
    /// Components of a share.
    parts: usize,
    /// Keys of components, or own and previous one.
    keys: Vec<KeyId>,
    /// Keys of MACs, in the order of other parties, and the number of the layer.
    macs: Option<([Option<KeyId>; 3], u64)>,
    /// Which of the commands that finish the round compare MACs, in the order of the messages that come.
    pub(crate) compares: Vec<usize>,
}

/// A party of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Party {
    pub(crate) me: u8,
    pub(crate) of: u8,
}

impl Whole {
    /// Whether nodes add what came, so that nothing is left to finish the round.
    pub(crate) fn joins(&self) -> bool {
        self.parts == 3
    }

    /// Components of a share.
    pub(super) fn parts(&self) -> usize {
        self.parts
    }

    /// Keys of its masks.
    pub(super) fn keys(&self) -> &[KeyId] {
        &self.keys
    }

    /// Keys of its MACs, if it has any.
    pub(super) fn pairs(&self) -> Option<[Option<KeyId>; 3]> {
        self.macs.map(|(pairs, _)| pairs)
    }

    /// Number of the layer, if it has MACs.
    pub(super) fn layer(&self) -> Option<u64> {
        self.macs.map(|(_, layer)| layer)
    }
}

impl Known {
    /// Whether a round is nothing but products, and which.
    pub(crate) fn whole(&self, party: Party, round: &Round, chunk: u32) -> Option<Whole> {
        let runs = |command: &Command| self.program(command).is_some();
        let before = round.local.iter().position(runs)?;
        match party.of {
            3 => self.three_whole(party.me, round, before),
            4 => self.four_whole(party.me, round, before, chunk),
            _ => None,
        }
    }

    /// The keys of a round, as nodes have them.
    pub(super) fn keys_of(&self, whole: &Whole) -> Result<Arc<Keys>, Fault> {
        let pairs = whole.macs.map(|(pairs, _)| pairs);
        let ids = whole.keys.iter().copied().map(Some);
        let ids = ids.chain(pairs.into_iter().flatten());
        let key = |id: Option<KeyId>| {
            id.map(|id| {
                let key = self.keys.get(&id).cloned();
                Ok((id, key.ok_or(Fault::Unknown("the key of a draw"))?))
            })
            .transpose()
        };
        ids.map(key).collect::<Result<_, Fault>>().map(Arc::new)
    }

    fn three_whole(&self, me: u8, round: &Round, before: usize) -> Option<Whole> {
        let mut keys = None;
        let (mut sends, mut receives) = (0, 0);
        for (number, command) in round.local[before..].iter().enumerate() {
            if command.op == Op::Publish {
                continue;
            }
            let loaded = self.program(command).filter(|of| of.parts == 2)?;
            if command.op == Op::Linear {
                continue;
            }
            let of = self.three(command)?;
            let fits = command.dst.len() == 2
                && command.dst[0].count == 0
                && loaded.is_apart()
                && *keys.get_or_insert(of.clone()) == of;
            if !fits {
                return None;
            }
            let [rows, sums] = loaded.counts();
            for (kind, count) in [rows?, sums?].into_iter().enumerate() {
                if count == 0 {
                    continue;
                }
                let part = (2 * number + kind) as u16;
                let [sent, received] = [(&round.sends, me + 1), (&round.recvs, me + 2)]
                    .map(|(of, peer)| message(of, part, peer % 3));
                let (sent, received) = (sent?, received?);
                let fits = if kind == 0 {
                    // Components of products are their messages, and land where they belong.
                    sent.pieces().eq(loaded.pieces(0)) && received.pieces().eq(loaded.pieces(1))
                } else {
                    // Those of sums are copied when the round is finished.
                    let one = |of: &Transfer| of.more.is_empty() && of.span.count == count;
                    sent.span == command.dst[1] && one(sent) && one(received)
                };
                if !fits {
                    return None;
                }
                sends += 1;
                receives += 1;
            }
        }
        let copies = |command: &Command| matches!(command.op, Op::Combine { .. });
        let all = round.checks.is_empty()
            && round.finish.iter().all(copies)
            && (round.sends.len(), round.recvs.len()) == (sends, receives);
        Some(Whole {
            before,
            parts: 2,
            keys: keys.filter(|_| all && sends > 0)?,
            macs: None,
            compares: Vec::new(),
        })
    }

    fn four_whole(&self, me: u8, round: &Round, before: usize, chunk: u32) -> Option<Whole> {
        let local = &round.local[before..];
        let first = self.first(local)?;
        let (_, keys) = first.products?;
        let (runs, macs) = local.split_at(first.programs);
        let second = self.second(&round.finish)?;
        if macs.len() != first.macs.len() || second.commands() != round.finish.len() {
            return None;
        }
        let checks = !macs.is_empty();
        let crosses = crosses(me).map(|k| JOINT[usize::from(k)]);
        let received = received(me).into_iter().map(|k| JOINT[usize::from(k)]);
        let received: Vec<_> = received.collect();
        let products = runs
            .iter()
            .filter(|command| matches!(command.op, Op::Product(_)));
        let counts = |command: &Command| {
            let loaded = self.program(command).filter(|of| of.is_apart())?;
            Some(loaded.counts())
        };
        let (mut sends, mut receives) = (Vec::new(), Vec::new());
        for (number, command) in products.enumerate() {
            let counts = counts(command)?;
            for (k, joint) in crosses.iter().enumerate() {
                let of = [0, 3].map(|kind| command.dst.get(kind + k).copied());
                let of: Vec<Span> = of.into_iter().collect::<Option<_>>()?;
                if joint.sender(chunk) == me {
                    sends.extend(
                        there(counts, &of)?
                            .into_iter()
                            .map(|of| (of, joint.receiver)),
                    );
                }
            }
            for (k, joint) in received.iter().enumerate() {
                let add = &round.finish.get(second.add(k, number))?;
                if add.program != command.program {
                    return None;
                }
                let of = there(counts, &add.src)?.into_iter();
                receives.extend(of.map(|of| (of, joint.sender(chunk))));
            }
        }
        let mut pairs = [None; 3];
        let mut layer = None;
        let mut keyed = |with: u8, command: &Command| -> Option<Span> {
            let call = command.calls.first()?;
            let same = *pairs[usize::from(part(me, with))].get_or_insert(call.key) == call.key;
            let of = layer.get_or_insert(call.first);
            (same && *of == call.first).then_some(*command.dst.first()?)
        };
        let mut compares = Vec::new();
        if checks {
            for (k, command) in first.macs.iter().zip(macs) {
                let joint = crosses[*k];
                sends.push((keyed(joint.receiver, command)?, joint.receiver));
            }
            if second.macs != received.len() {
                return None;
            }
            for (k, joint) in received.iter().enumerate() {
                keyed(joint.voucher(chunk), &round.finish[2 * k])?;
                let compare = &round.finish[2 * k + 1];
                receives.push((*compare.src.get(1)?, joint.voucher(chunk)));
                compares.push(2 * k + 1);
            }
        }
        let to = |all: &[(Span, u8)]| -> Vec<Span> { all.iter().map(|(span, _)| *span).collect() };
        let who = |all: &[(Span, u8)], at: usize| all[at].1;
        let vouched = crosses
            .iter()
            .filter(|joint| joint.sender(chunk) != me)
            .count();
        let fits = are(&round.sends, &to(&sends), |at| who(&sends, at))
            && are(&round.recvs, &to(&receives), |at| who(&receives, at))
            && !sends.is_empty()
            && (!checks || vouched == macs.len())
            && are_components(&second, me, &received);
        fits.then(|| Whole {
            before,
            parts: 3,
            keys: keys.to_vec(),
            macs: layer.map(|layer| (pairs, layer)),
            compares,
        })
    }
}

/// Messages are added to the components that a node adds them to.
fn are_components(second: &Second, me: u8, received: &[crate::node::Joint]) -> bool {
    let to = received.iter().map(|joint| part(me, joint.outsider));
    second.to.iter().copied().eq(to)
}

/// Messages of products and of sums, those that there are, if they have all places.
fn there(counts: [Option<u32>; 2], spans: &[Span]) -> Option<Vec<Span>> {
    let mut there = Vec::new();
    for (kind, count) in counts.into_iter().enumerate() {
        match (count?, spans.get(kind)) {
            (0, _) => {}
            (count, Some(span)) if span.count == count => there.push(*span),
            _ => return None,
        }
    }
    Some(there)
}

/// The message of this number that goes to a party or comes from it.
fn message(of: &[Transfer], part: u16, party: u8) -> Option<&Transfer> {
    let peer = PartyId::new(party).map(Peer::Party);
    (of.iter()).find(|of| of.part == part && Some(of.peer) == peer)
}

/// Whether the messages of a round are these, in any order, with these parties.
fn are(of: &[Transfer], spans: &[Span], party: impl Fn(usize) -> u8) -> bool {
    let is = |at: usize| {
        let peer = PartyId::new(party(at)).map(Peer::Party);
        (of.iter()).any(|of| of.span == spans[at] && Some(of.peer) == peer)
    };
    of.len() == spans.len() && (0..spans.len()).all(is)
}

impl Cores {
    /// What a node does of a round, if it does it.
    pub(crate) fn whole(&self, party: Party, round: &Round, chunk: u32) -> Option<Whole> {
        self.known.whole(party, round, chunk)
    }

    /// Computes what is linear, and says what is to be multiplied, under which keys.
    pub(crate) fn gather(
        &mut self,
        host: &mut Cpu,
        workspace: Workspace,
        (round, whole): (&Round, &Whole),
    ) -> Result<(Vec<Product>, Arc<Keys>), Fault> {
        let local = &round.local[whole.before..];
        let mut shares = host.offload_shares(workspace, whole.before, local)?;
        let core: &mut dyn Core = if whole.parts == 2 {
            if let Some(keys) = keys_for(&self.known, &mut self.on_rep3, &[])? {
                let there = self.rep3.keys(&keys);
                there.map_err(|error| failed(self.name(), &error))?;
            }
            &mut self.rep3
        } else {
            if let Some(keys) = keys_for(&self.known, &mut self.on_local, &[])? {
                let there = self.local.keys(&keys);
                there.map_err(|error| failed(self.name(), &error))?;
            }
            let setting = Setting {
                sends: Setting::ALL,
                ..Setting::default()
            };
            let set = self.local.set(setting, false);
            set.map_err(|error| failed(self.name(), &error))?;
            &mut self.local
        };
        let checks = whole.macs.map(|(_, layer)| layer);
        let mut products = Vec::new();
        for command in local {
            let Some(loaded) = self.known.program(command) else {
                continue;
            };
            loaded.gather(core, &mut shares, command, round, checks, &mut products)?;
        }
        Ok((products, self.known.keys_of(whole)?))
    }

    /// Puts what came of the products where it goes: those that `gather` has named, in its order.
    pub(crate) fn put(
        &mut self,
        host: &mut Cpu,
        workspace: Workspace,
        (round, whole): (&Round, &Whole),
        made: &[Components],
    ) -> Result<(), Fault> {
        let local = &round.local[whole.before..];
        let mut shares = host.offload_shares(workspace, whole.before, local)?;
        let mut made = made.iter();
        for (number, command) in local.iter().enumerate() {
            let (Op::Product(_), Some(loaded)) = (&command.op, self.known.program(command)) else {
                continue;
            };
            // Three parties: where the previous components of sums are received.
            let part = (2 * number + 1) as u16;
            let sums = round.recvs.iter().find(|of| of.part == part);
            let came = sums.filter(|_| whole.parts == 2).map(|of| of.span);
            loaded.put(&mut shares, command, came, &mut made);
        }
        Ok(())
    }
}

impl Loaded {
    /// A component of its products of rows, in the order of their message.
    fn pieces(&self, component: u8) -> impl Iterator<Item = Span> {
        let [rows, _] = self.products();
        let follows = |a: &(u32, (u16, u32)), b: &(u32, (u16, u32))| (a.1.0, a.1.1 + 1) == b.1;
        let mut rows = rows;
        rows.sort_unstable();
        let runs: Vec<Span> = rows
            .chunk_by(follows)
            .map(|run| Span {
                region: run[0].1.0,
                component,
                first: run[0].1.1,
                count: run.len() as u32,
            })
            .collect();
        runs.into_iter()
    }

    /// Whether its products are of one pair each and have results of their own; sums may be of many.
    fn is_apart(&self) -> bool {
        let alone = |step: &super::steps::Step| {
            step.kind != Kind::Product || step.sums() || step.operands.len() == 1
        };
        self.apart() && self.steps.all.iter().all(alone)
    }

    /// Runs what is linear of a command, and appends its products: those of rows together, and each sum. They are
    /// compared by the MACs of a layer, or not at all.
    fn gather(
        &self,
        core: &mut dyn super::core::Core,
        shares: &mut Shares<'_>,
        command: &Command,
        round: &Round,
        checks: Option<u64>,
        products: &mut Vec<Product>,
    ) -> Result<(), Fault> {
        let frame = shares.frame();
        let stride = self.stride(shares);
        let mut running = Running::of(self, shares, command, [Closes::Nothing; 2]);
        let mut from = 0;
        let mut gathered: [Vec<Components>; 2] = [Vec::new(), Vec::new()];
        for until in &self.steps.waves {
            let wave = from..*until as usize;
            from = wave.end;
            let product = |at: &usize| self.steps.all[*at].kind == Kind::Product;
            if !wave.clone().any(|at| product(&at)) {
                running.wave(core, wave)?;
                continue;
            }
            for at in wave {
                let step = &self.steps.all[at];
                let words = if step.sums() {
                    running.packed.div_ceil(WORD)
                } else {
                    stride
                };
                let mut columns: Components =
                    (0..2 * self.parts).map(|_| Zeroizing::default()).collect();
                for (k, components) in running.operands(step).iter().enumerate() {
                    let factor = k % 2 * self.parts;
                    for (column, of) in columns[factor..].iter_mut().zip(components) {
                        column.extend_from_slice(&of.packed(running.packed));
                        let pairs = k / 2 + 1;
                        column.resize(pairs * words * WORD, 0);
                    }
                }
                gathered[usize::from(step.sums())].push(columns);
            }
        }
        running.finish();
        let Op::Product(form) = command.op else {
            return Ok(());
        };
        let [rows, sums] = gathered;
        let rows = rows.into_iter().reduce(|mut all, more| {
            for (all, more) in all.iter_mut().zip(more) {
                all.extend_from_slice(&more);
            }
            all
        });
        let call = |kind: usize, index: u64| {
            let call = command.calls[kind * form.calls()];
            Tuple {
                tag: call.tag,
                lane: frame.lane,
                counter: call.first + index,
                chunk: frame.chunk,
            }
        };
        let rows = rows.map(|columns| (columns, false, call(0, 0)));
        let sums = (0..).zip(sums);
        let sums = sums.map(|(index, columns)| (columns, true, call(1, index)));
        for (columns, sums, call) in rows.into_iter().chain(sums) {
            products.push(Product {
                name: Name {
                    at: (frame.lane, frame.chunk),
                    round: (round.place, round.cycle),
                    number: products.len() as u32,
                },
                ring: self.ring,
                sums,
                columns,
                call,
                checks,
            });
        }
        Ok(())
    }

    /// Puts the products of a command where they go. `came`: of three parties, where the host would have received the message of sums.
    fn put<'a>(
        &self,
        shares: &mut Shares<'_>,
        command: &Command,
        came: Option<Span>,
        made: &mut impl Iterator<Item = &'a Components>,
    ) {
        let packed = self.ring.bytes(shares.frame().rows.into()) as usize;
        let one = self.ring.bytes(1) as usize;
        let stride = self.stride(shares) * WORD;
        let [rows, sums] = self.products();
        let rows: Vec<_> = rows.into_iter().map(|of| (of, 0)).collect();
        let mut of_rows = None;
        for ((index, (region, item)), kind) in
            rows.into_iter().chain(sums.into_iter().map(|of| (of, 1)))
        {
            let (parts, first, bytes) = if kind == 0 {
                let parts = *of_rows.get_or_insert_with(|| made.next());
                (parts, index as usize * stride, packed)
            } else {
                (made.next(), 0, one)
            };
            let Some(parts) = parts else { return };
            for (part, words) in (0..).zip(parts) {
                let words = &words[first..first + bytes];
                // Of three parties the previous component of a sum is copied from where it is received.
                let (region, part, item) = match came {
                    Some(span) if (kind, part) == (1, 1) => {
                        (span.region, span.component, span.first + index)
                    }
                    _ => (region, part, item),
                };
                shares.column_mut(region, part, item).copy_from_slice(words);
            }
            if came.is_some() && kind == 1 {
                let span = command.dst[kind];
                let message = shares.column_mut(span.region, span.component, span.first + index);
                message.copy_from_slice(&parts[0][first..first + bytes]);
            }
        }
    }

    /// Words between the counters of two products of rows.
    fn stride(&self, shares: &Shares<'_>) -> usize {
        let bytes = self.ring.bytes(shares.chunk_rows().into()) as usize;
        bytes.div_ceil(WORD)
    }
}
