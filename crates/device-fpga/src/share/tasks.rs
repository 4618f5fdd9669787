//! Which commands of a batch cores do together.
//!
//! Products of four parties come with MACs: of messages that are not sent, and of those that came, which are compared before they are
//! added. Cores make these MACs while words go by, so that what the device is told one after the other is one task here.

use std::collections::BTreeMap;

use veil_device::{Command, Form, KeyId, Op, PrfCall, ProgramId, Span};
use veil_session::Secret;

use super::command::Closes;
use super::core::MESSAGES;
use super::four::{MACS, Setting};
use super::loaded::Loaded;
use super::run::SUB;

/// What a core does with the first commands of a batch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Task {
    /// A program of three parties, with the keys of its masks.
    Three(Vec<KeyId>),
    /// The first stage of four parties.
    First(First),
    /// The second.
    Second(Second),
}

/// Programs, and MACs of messages that do not leave.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct First {
    /// Commands that run programs, the first of the batch; MACs follow.
    pub(super) programs: usize,
    /// Of the products, if there are any: which party it is, and the keys of components 0, 1, 2.
    pub(super) products: Option<(Setting, [KeyId; 3])>,
    /// Of each command what its products close, and its sums.
    pub(super) closes: Vec<[Closes; 2]>,
    /// Of each MAC, in the order of commands, the message that it is of.
    pub(super) macs: Vec<usize>,
}

/// Messages that are added to shares after their MACs were compared.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Second {
    /// MACs, each computed and compared: two commands.
    pub(super) macs: usize,
    /// Components that messages are added to.
    pub(super) to: Vec<u8>,
    /// Programs whose products came: of each message, in this order, a command.
    pub(super) programs: Vec<ProgramId>,
}

impl Second {
    /// The command that adds message `message` of program number `program`.
    pub(super) const fn add(&self, message: usize, program: usize) -> usize {
        2 * self.macs + message * self.programs.len() + program
    }

    /// Commands of the batch that this is.
    pub(super) const fn commands(&self) -> usize {
        self.add(self.to.len(), 0)
    }
}

/// Programs and keys that were loaded.
#[derive(Default)]
pub(super) struct Known {
    pub(super) programs: BTreeMap<ProgramId, Loaded>,
    pub(super) keys: BTreeMap<KeyId, Secret>,
}

impl Known {
    /// The program of a command, if its values are shares.
    pub(super) fn program(&self, command: &Command) -> Option<&Loaded> {
        command.program.and_then(|id| self.programs.get(&id))
    }

    /// What a core does first of a batch, if it does something.
    pub(super) fn task(&self, batch: &[Command]) -> Option<Task> {
        let command = batch.first()?;
        match command.op {
            Op::Linear | Op::Product(_) if self.program(command)?.parts == 2 => {
                self.three(command).map(Task::Three)
            }
            Op::Linear | Op::Product(_) => self.first(batch).map(Task::First),
            Op::Mac | Op::AddReceived { .. } => self.second(batch).map(Task::Second),
            _ => None,
        }
    }

    fn there(&self, keys: &[KeyId]) -> bool {
        keys.iter().all(|key| self.keys.contains_key(key))
    }

    /// The keys of a program of three parties: of its products, all of whose masks are made under the same two.
    pub(super) fn three(&self, command: &Command) -> Option<Vec<KeyId>> {
        let Op::Product(form) = command.op else {
            return Some(Vec::new());
        };
        let ring = self.program(command)?.ring;
        let keys = keys_of(command, form)?;
        let start = |call: &PrfCall| (call.tag, call.first);
        let mut pairs = command.calls.chunks(2);
        let together = pairs.all(|of| start(&of[0]) == start(&of[1]));
        let fits = *form == *Form::replicated(ring) && together && self.there(&keys);
        fits.then_some(keys)
    }

    /// Which party of four computes these products, and the keys of its components.
    fn fourfold(&self, command: &Command) -> Option<(Setting, [KeyId; 3])> {
        let Op::Product(form) = command.op else {
            return None;
        };
        let ring = self.program(command)?.ring;
        let keys = keys_of(command, form)?;
        let forms = [(false, false), (false, true), (true, false), (true, true)];
        let mut forms = forms.into_iter();
        let (swapped, five) =
            forms.find(|(swapped, five)| *form == *Form::fourfold(ring, *swapped, *five))?;
        let own = [keys[3], keys[1], keys[0]];
        let opposite = own[if swapped { 0 } else { 2 }];
        let fits = keys[2] == opposite && keys.get(4).is_none_or(|key| *key == own[1]);
        let mut subs = [0; 5];
        for (sub, call) in subs.iter_mut().zip(&command.calls[..keys.len()]) {
            *sub = (call.tag.0 & SUB) as u8;
        }
        let start = |call: &PrfCall| (call.tag.0 & !SUB, call.first);
        let together = command.calls.chunks(keys.len()).all(|of| {
            let same = of.iter().all(|call| start(call) == start(&of[0]));
            let mut each = of.iter().zip(subs);
            same && each.all(|(call, sub)| call.tag.0 & SUB == u16::from(sub))
        });
        let setting = Setting {
            swapped,
            five,
            subs,
            sends: Setting::ALL,
        };
        (fits && together && self.there(&own)).then_some((setting, own))
    }

    /// The keys of the masks of a product, if cores have its form.
    pub(super) fn keys_of_product(&self, command: &Command) -> Option<Vec<KeyId>> {
        match self.program(command)?.parts {
            2 => self.three(command),
            _ => self.fourfold(command).map(|(_, keys)| keys.to_vec()),
        }
    }

    pub(super) fn first(&self, batch: &[Command]) -> Option<First> {
        let mut products = None;
        let mut programs = 0;
        for command in batch {
            let shares = self.program(command).is_some_and(|of| of.parts == 3);
            match command.op {
                Op::Linear if shares => {}
                Op::Product(_) if shares => match self.fourfold(command) {
                    Some(of) if *products.get_or_insert(of) == of => {}
                    _ => break,
                },
                _ => break,
            }
            programs += 1;
        }
        let (run, rest) = batch.split_at(programs);
        let mut first = First {
            programs,
            products,
            closes: vec![[Closes::Nothing; 2]; programs],
            macs: Vec::new(),
        };
        if let Some((setting, _)) = &mut first.products {
            first.macs = self.macs(run, rest);
            for message in &first.macs {
                setting.sends &= !(1 << message);
            }
            if !first.macs.is_empty() {
                first.closes = self.closes(run);
            }
        }
        (programs > 0).then_some(first)
    }

    /// Messages of these programs that MACs behind them are of: of two at most, drawn at one counter.
    fn macs(&self, run: &[Command], rest: &[Command]) -> Vec<usize> {
        let mut macs = Vec::new();
        for command in rest.iter().take(MACS) {
            let message = (0..MESSAGES).find(|message| {
                let of = run.iter().map(|command| (command, &command.dst, MESSAGES));
                !macs.contains(message) && self.is_mac(command, of, *message)
            });
            let same = command.calls.first().map(|call| call.first);
            match message {
                Some(message) if same == rest[0].calls.first().map(|call| call.first) => {
                    macs.push(message);
                }
                _ => break,
            }
        }
        macs
    }

    /// Whether a command makes the MAC of message `message` of these programs, each with its messages, so many of each kind.
    fn is_mac<'a>(
        &self,
        command: &Command,
        of: impl Iterator<Item = (&'a Command, &'a Vec<Span>, usize)>,
        message: usize,
    ) -> bool {
        let mut all = Vec::new();
        for (run, messages, each) in of {
            let Some(loaded) = self.program(run) else {
                return false;
            };
            for (kind, count) in loaded.counts().into_iter().enumerate() {
                let span = messages.get(kind * each + message);
                match (count, span) {
                    (Some(0), _) => {}
                    (Some(count), Some(span)) if span.count == count => all.push(*span),
                    _ => return false,
                }
            }
        }
        let there = command.src.iter().filter(|span| span.count > 0);
        let key = command.calls.first().map(|call| call.key);
        command.op == Op::Mac
            && !all.is_empty()
            && there.eq(&all)
            && key.is_some_and(|key| self.keys.contains_key(&key))
    }

    /// What products and sums of programs close, if MACs are made of their messages.
    fn closes(&self, run: &[Command]) -> Vec<[Closes; 2]> {
        let counts = run.iter().filter_map(|command| self.program(command));
        let counts = counts.map(|loaded| loaded.counts().map(|count| count > Some(0)));
        let counts: Vec<[bool; 2]> = counts.collect();
        let last = counts.as_flattened().iter().rposition(|some| *some);
        let mut closes = vec![[Closes::Nothing; 2]; run.len()];
        let each = closes.as_flattened_mut().iter_mut();
        for (at, (closes, some)) in each.zip(counts.as_flattened()).enumerate() {
            if *some {
                *closes = if Some(at) == last {
                    Closes::All
                } else {
                    Closes::Message
                };
            }
        }
        closes
    }

    pub(super) fn second(&self, batch: &[Command]) -> Option<Second> {
        let compared = |pair: &[Command]| match pair {
            [made, compared] => {
                made.op == Op::Mac
                    && compared.op == Op::CheckEqual
                    && !made.dst.is_empty()
                    && made.dst.first() == compared.src.first()
            }
            _ => false,
        };
        let macs = batch.chunks(2).take(MACS).take_while(|of| compared(of));
        let macs = macs.count();
        let added = batch[2 * macs..].iter().map_while(|command| {
            let Op::AddReceived { component: part } = command.op else {
                return None;
            };
            let loaded = self.program(command)?;
            let fits = loaded.parts == 3 && loaded.apart();
            fits.then_some((part, command.program?))
        });
        let added: Vec<(u8, ProgramId)> = added.collect();
        let programs = |count| added[..count].iter().map(|(_, program)| *program);
        // The programs of the first message, until the same come again.
        let first = *added.first()?;
        let again = added.iter().skip(1).position(|(_, id)| *id == first.1);
        let each = again.map_or(added.len(), |at| at + 1);
        let messages = if macs > 0 {
            macs
        } else {
            (added.len() / each).min(MACS)
        };
        let second = Second {
            macs,
            to: (0..messages)
                .map(|k| added.get(k * each).map(|(part, _)| *part))
                .collect::<Option<_>>()?,
            programs: programs(each).collect(),
        };
        let alike = added.len() >= messages * each
            && (0..messages).all(|k| {
                let of = &added[k * each..][..each];
                let ids = of.iter().map(|(_, id)| *id);
                ids.eq(programs(each)) && of.iter().all(|(part, _)| *part == second.to[k])
            });
        let coded = (0..macs).all(|k| {
            let of = (0..each).map(|w| &batch[second.add(k, w)]);
            let of = of.map(|command| (command, &command.src, 1));
            let same = |at: usize| batch[at].calls.first().map(|call| call.first);
            self.is_mac(&batch[2 * k], of, 0) && same(0) == same(2 * k)
        });
        (alike && coded).then_some(second)
    }
}

/// The keys of the draws of a product, if both kinds of products have the same.
fn keys_of(command: &Command, form: &Form) -> Option<Vec<KeyId>> {
    let each = form.calls();
    let keys = |calls: &[PrfCall]| -> Vec<KeyId> { calls.iter().map(|call| call.key).collect() };
    let first = keys(command.calls.get(..each)?);
    let mut kinds = command.calls.chunks(each.max(1));
    kinds.all(|of| keys(of) == first).then_some(first)
}
