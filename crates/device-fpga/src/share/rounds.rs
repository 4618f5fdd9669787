//! Rounds of products as wholes: what nodes compute, send and receive by themselves, of rounds that say so ([`Products`]).
//!
//! What is linear is computed before, as other programs are. The operands of products become columns behind one another, which go to the own node;
//! what comes back are components of the products, and no message is left to be sent.

use std::sync::Arc;

use veil_device::{Ahead, Command, Cpu, Fault, KeyId, Op, Products, Round, Shares, Workspace};
use zeroize::Zeroizing;

use super::command::{Closes, Kind, WORD};
use super::core::Core;
use super::four::Setting;
use super::loaded::Loaded;
use super::run::Running;
use super::tasks::Known;
use super::{Cores, keys_for};
use crate::device::failed;
use crate::node::work::{Components, Keys, Name, Product};
use crate::node::{Tuple, part};

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
    /// Commands that finish the round and are done with its products: so many from the first.
    pub(crate) finished: usize,
    /// Counters of a circuit that begins with it.
    pub(super) ahead: Ahead,
}

/// A party of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Party {
    pub(crate) me: u8,
    pub(crate) of: u8,
}

impl Whole {
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
}

impl Known {
    /// What nodes do of a round: all of its products, where its cores have programs for them and such products.
    pub(crate) fn whole(&self, party: Party, round: &Round) -> Option<Whole> {
        let products = round.products.as_deref()?;
        if (products.me.index() as u8, products.parties) != (party.me, party.of) {
            return None;
        }
        let parts = usize::from(party.of) - 1;
        let mut keys = None;
        for command in round.local.get(products.programs.clone())? {
            let loaded = self.program(command).filter(|of| of.parts == parts)?;
            if command.op == Op::Linear {
                continue;
            }
            let of = self.keys_of_product(command)?;
            let dense = loaded.counts().iter().all(Option::is_some);
            if !dense || !loaded.is_apart() || *keys.get_or_insert(of.clone()) != of {
                return None;
            }
        }
        Some(Whole {
            before: products.programs.start,
            parts,
            keys: keys?,
            macs: macs_of(products, round)?,
            compares: products.vouched.iter().map(|(mac, _)| mac + 1).collect(),
            finished: products.finish,
            ahead: products.ahead,
        })
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
}

/// The keys of the MACs of a layer, in the order of other parties, and its number, if it has MACs. Nothing where a pair has two keys, or the layer two
/// numbers.
#[allow(clippy::option_option, reason = "no MACs, or MACs that no node makes")]
fn macs_of(products: &Products, round: &Round) -> Option<Option<([Option<KeyId>; 3], u64)>> {
    let mut macs: Option<([Option<KeyId>; 3], u64)> = None;
    let sent = products.macs.iter().map(|of| (&round.local, of));
    let came = products.vouched.iter().map(|of| (&round.finish, of));
    for (commands, (command, with)) in sent.chain(came) {
        let call = commands.get(*command)?.calls.first()?;
        let (pairs, layer) = macs.get_or_insert(([None; 3], call.first));
        let place = usize::from(part(products.me.index() as u8, with.index() as u8));
        let key = *pairs.get_mut(place)?.get_or_insert(call.key);
        if (key, *layer) != (call.key, call.first) {
            return None;
        }
    }
    Some(macs)
}

impl Cores {
    /// What a node does of a round, if it does it.
    pub(crate) fn whole(&self, party: Party, round: &Round) -> Option<Whole> {
        self.known.whole(party, round)
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
        for command in local {
            if let (Op::Product(_), Some(loaded)) = (&command.op, self.known.program(command)) {
                loaded.put(&mut shares, &mut made);
            }
        }
        Ok(())
    }
}

impl Loaded {
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

    /// Puts the products of a command where they go.
    fn put<'a>(&self, shares: &mut Shares<'_>, made: &mut impl Iterator<Item = &'a Components>) {
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
                shares.column_mut(region, part, item).copy_from_slice(words);
            }
        }
    }

    /// Words between the counters of two products of rows.
    fn stride(&self, shares: &Shares<'_>) -> usize {
        let bytes = self.ring.bytes(shares.chunk_rows().into()) as usize;
        bytes.div_ceil(WORD)
    }
}
