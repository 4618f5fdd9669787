//! Where everything of a circuit lies, and which commands that makes.

use super::ahead::message_slots;
use super::columns::{Pool, last_reads, ordered, runs};
use super::graph::{Graph, Step};
use super::pack::{Packed, Run, Source, pack};
use super::waves::Wave;
use super::{BROUGHT, Columns, INBOX, Parties, Plan, ROWS, Round, Site, Value, WORD, public};
use crate::node::{Limits, Window};

/// Segments of a command, at most.
const SEGMENTS: usize = 14;
/// Of one with a stage.
const OF_STAGE: usize = 13;
/// Of a local beside its sources: three messages and MACs, and shares that are not complete.
const LEAVING: usize = 4;
/// Of a join beside its results: such shares, two messages and two MACs.
const COMING: usize = 5;
/// Words of a command below which it mostly waits for memory: waves are cut no further among workers.
const SHORTEST: u32 = 256;

/// A plan that is being made.
pub(super) struct Layout<'a> {
    graph: &'a Graph,
    waves: &'a [Wave],
    limits: Limits,
    site: Site,
    rows: u32,
    stride: u32,
    /// Where each value lies.
    columns: Vec<Columns>,
    last: Vec<u32>,
    own: Pool,
    inbox: Pool,
    /// By the last wave in which any column of them is read: columns of `own`, and of `inbox`.
    leaves: Vec<[Vec<(u32, u32)>; 2]>,
    rounds: Vec<Round>,
    words: u64,
    commands: u64,
    depth: u32,
}

impl<'a> Layout<'a> {
    pub(super) fn new(
        graph: &'a Graph,
        waves: &'a [Wave],
        rows: u32,
        limits: Limits,
        site: Site,
    ) -> Self {
        let outputs = graph.outputs.iter().filter_map(|value| match value {
            Value::Step(step) => Some(*step),
            Value::Constant(_) => None,
        });
        let kept: Vec<u32> = outputs.collect();
        Layout {
            graph,
            waves,
            limits,
            site,
            rows,
            stride: rows.div_ceil(ROWS).max(1).next_multiple_of(limits.lanes),
            columns: vec![Vec::new(); graph.steps.len()],
            last: last_reads(graph, waves, &kept),
            own: Pool::default(),
            inbox: Pool::default(),
            leaves: vec![[Vec::new(), Vec::new()]; waves.len()],
            rounds: Vec::new(),
            words: 0,
            commands: 0,
            depth: 0,
        }
    }

    /// Lays all of it out, with what has such numbers behind one another.
    pub(super) fn place(&mut self, neighbourhoods: &[u64]) {
        let inputs = (0..).zip(&self.graph.steps);
        let inputs = inputs.filter(|(_, step)| matches!(step, Step::Input));
        let inputs: Vec<u32> = inputs.map(|(at, _)| at).collect();
        let inputs = ordered(&inputs, neighbourhoods);
        for alike in
            inputs.chunk_by(|a, b| neighbourhoods[*a as usize] == neighbourhoods[*b as usize])
        {
            self.all(alike, 0);
        }
        for (number, wave) in (0..).zip(self.waves) {
            let (moves, products) = self.products(&wave.products, neighbourhoods, number);
            let sums = self.sums(&wave.sums, neighbourhoods, number);
            let (before, commands, depth) = (self.words, self.commands, self.depth);
            self.words += products.iter().map(|of| u64::from(of.words)).sum::<u64>();
            self.commands += products.len() as u64;
            self.depth += u32::from(!products.is_empty());
            self.rounds.push(Round {
                sums,
                moves,
                products,
                before,
                commands,
                depth,
            });
            self.free(number);
        }
    }

    /// Columns of values where no other node writes, component by component.
    fn all(&mut self, values: &[u32], wave: u32) {
        let (parts, count) = (self.site.parties.parts(), values.len() as u32);
        let first = self.own.take(parts * count, wave);
        for (k, value) in (first..).zip(values) {
            let of = (0..parts).map(|part| self.column(k + part * count));
            self.columns[*value as usize] = of.collect();
        }
        self.leave(values, 0, (first, parts * count));
    }

    fn sums(&mut self, steps: &[u32], of: &[u64], wave: u32) -> Vec<Packed> {
        let mut all = Vec::new();
        for group in self.groups(steps, of) {
            let results: Vec<u32> = group.iter().map(|(step, _)| *step).collect();
            self.all(&results, wave);
            for part in 0..self.site.parties.parts() {
                all.extend(group.iter().map(|&(step, swapped)| {
                    let at = |value: u32| self.columns[value as usize][part as usize];
                    let operands = self.graph.steps[step as usize].operands();
                    let mut from: Vec<Source> = operands.map(|of| Source::At(at(of))).collect();
                    if from.len() == 1 {
                        from.push(Source::Constant(public(true, part)));
                    }
                    if swapped {
                        from.reverse();
                    }
                    Run {
                        from,
                        to: vec![at(step)],
                        words: self.stride,
                    }
                }));
            }
        }
        let longest = self.longest(all.len(), self.limits.adders);
        pack(&all, longest, |from, to| from + to <= SEGMENTS)
    }

    /// Commands of products, and moves before them.
    fn products(&mut self, steps: &[u32], of: &[u64], wave: u32) -> (Vec<Packed>, Vec<Packed>) {
        let group = self.groups(steps, of).concat();
        let results: Vec<u32> = group.iter().map(|(step, _)| *step).collect();
        if results.is_empty() {
            return (Vec::new(), Vec::new());
        }
        let four = self.site.parties != Parties::Three;
        if four {
            self.all(&results, wave);
        } else {
            self.arriving(&results, wave);
        }
        let all: Vec<Run> = (group.iter())
            .map(|&(step, swapped)| {
                let operands = self.graph.steps[step as usize].operands();
                let mut from: Vec<_> = operands.map(|of| &self.columns[of as usize]).collect();
                if swapped {
                    from.reverse();
                }
                let from = from.into_iter().flatten();
                let mut to = self.columns[step as usize].clone();
                if !four {
                    // The message leaves first.
                    to.reverse();
                }
                Run {
                    from: from.map(|at| Source::At(*at)).collect(),
                    to,
                    words: self.stride,
                }
            })
            .collect();
        if four {
            let longest = self.longest(all.len(), self.limits.locals);
            let fits = |from, to| from + LEAVING <= OF_STAGE && to + COMING <= OF_STAGE;
            let products = pack(&all, longest, fits);
            let (moves, brought) = self.brought(&all, longest);
            if brought.len() < products.len() {
                (moves, brought)
            } else {
                (Vec::new(), products)
            }
        } else {
            let longest = self.longest(all.len(), self.limits.sharers);
            let products = pack(&all, longest, |from, to| from + to <= SEGMENTS);
            (Vec::new(), products)
        }
    }

    /// Products of four parties whose operands were brought together, stream by stream of each command, and what does that. A command is busy until
    /// its messages were answered, for as long as the network takes, and a move for as long as memory does.
    fn brought(&self, runs: &[Run], longest: u32) -> (Vec<Packed>, Vec<Packed>) {
        let results: Vec<Run> = (runs.iter())
            .map(|run| Run {
                from: Vec::new(),
                ..run.clone()
            })
            .collect();
        let mut products = pack(&results, longest, |_, to| to + COMING <= OF_STAGE);
        let mut moves = Vec::new();
        for product in &mut products {
            let (first, words) = (product.first, product.words);
            let streams = runs.first().map_or(0, |run| run.from.len());
            let at = BROUGHT + WORD * streams as u64 * u64::from(first);
            product.from = vec![vec![(at, streams as u32 * words)]];
            for stream in 0..streams {
                let mut done = 0;
                while done < words {
                    let (run, offset) = (
                        &runs[((first + done) / self.stride) as usize],
                        (first + done) % self.stride,
                    );
                    let some = (self.stride - offset).min(words - done);
                    if let Source::At(from) = run.from[stream] {
                        moves.push(Run {
                            from: vec![Source::At(from + WORD * u64::from(offset))],
                            to: vec![
                                at + WORD * (stream as u64 * u64::from(words) + u64::from(done)),
                            ],
                            words: some,
                        });
                    }
                    done += some;
                }
            }
        }
        let longest = self.longest(6 * runs.len(), self.limits.movers);
        let moves = pack(&moves, longest, |from, to| from + to <= SEGMENTS);
        (moves, products)
    }

    /// Columns of products of three parties: own ones, and those in the inbox of the party before.
    fn arriving(&mut self, values: &[u32], wave: u32) {
        let count = values.len() as u32;
        let (own, came) = (self.own.take(count, wave), self.inbox.take(count, wave));
        for (k, value) in (0..).zip(values) {
            let came = INBOX + WORD * u64::from(came + k) * u64::from(self.stride);
            self.columns[*value as usize] = vec![self.column(own + k), came];
        }
        self.leave(values, 0, (own, count));
        self.leave(values, 1, (came, count));
    }

    /// Steps in the order in which their results lie: those that are alike behind one another, and of these such whose operands do.
    fn groups(&self, steps: &[u32], of: &[u64]) -> Vec<Vec<(u32, bool)>> {
        let column = |value: u32| self.columns[value as usize][0];
        let stride = WORD * u64::from(self.stride);
        let steps = ordered(steps, of);
        let alike = steps.chunk_by(|a, b| of[*a as usize] == of[*b as usize]);
        alike
            .map(|steps| runs(self.graph, steps, column, stride))
            .collect()
    }

    /// Zeros, and ones, as many as a column has, of a command or of a value.
    fn constant_words(&self) -> u32 {
        self.limits.longest.max(self.stride)
    }

    /// Words of a command, so that each worker has some of a wave's columns.
    fn longest(&self, columns: usize, workers: u32) -> u32 {
        let words = (columns as u32).saturating_mul(self.stride);
        let each = words.div_ceil(workers.max(1)).max(SHORTEST);
        let each = each.next_multiple_of(self.limits.lanes);
        each.min(self.limits.longest).max(1)
    }

    fn column(&self, number: u32) -> u64 {
        let constants = 2 * u64::from(self.constant_words());
        self.site.base + WORD * (constants + u64::from(number) * u64::from(self.stride))
    }

    /// Columns that are free when none of these values is read any more.
    fn leave(&mut self, values: &[u32], pool: usize, columns: (u32, u32)) {
        let last = values.iter().map(|value| self.last[*value as usize]).max();
        if let Some(leaves) = last.and_then(|last| self.leaves.get_mut(last as usize)) {
            leaves[pool].push(columns);
        }
    }

    /// After a wave, what it read last.
    fn free(&mut self, wave: u32) {
        let [own, came] = std::mem::take(&mut self.leaves[wave as usize]);
        for (first, count) in own {
            self.own.give(first, count, wave + 1);
        }
        // Of the products that begin behind this wave, the third: what a party sends comes back by two others.
        let later = (0..).zip(self.waves).skip(wave as usize + 1);
        let mut later = later.filter(|(_, wave)| !wave.products.is_empty());
        if let Some((from, _)) = later.nth(2) {
            for (first, count) in came {
                self.inbox.give(first, count, from);
            }
        }
    }

    pub(super) fn done(self) -> Plan {
        let words = |of: &Round| {
            let words = of.products.iter().map(|of| of.words);
            words.fold(0, u32::saturating_add)
        };
        let most = self.rounds.iter().map(words).max().unwrap_or(0);
        let brings = self.rounds.iter().filter(|of| !of.moves.is_empty());
        let brings = brings.map(words).max().unwrap_or(0);
        let left = self.column(self.own.columns);
        // Of three parties each has one inbox, that of the party before: it lies at one address at all nodes.
        let brought = left + WORD * 3 * u64::from(most);
        let (end, inbox, inboxes) = match self.site.parties {
            Parties::Three => (left, self.inbox.columns.saturating_mul(self.stride), 1),
            Parties::Four { checks } => {
                let end = brought + WORD * 6 * u64::from(brings);
                (end, most.saturating_mul(2 * message_slots(checks)), 4)
            }
        };
        let behind = |from: u64| end + from % inboxes * WORD * u64::from(inbox);
        let list = match self.site.inboxes {
            Some(_) => end,
            None => end + inboxes * WORD * u64::from(inbox),
        };
        let addresses = self.site.inboxes.unwrap_or([0, 1, 2, 3].map(behind));
        let columns = |value: &Value| match *value {
            Value::Step(step) => self.columns[step as usize].clone(),
            Value::Constant(bit) => {
                let parts = 0..self.site.parties.parts();
                parts.map(|part| public(bit, part)).collect()
            }
        };
        let inputs = (0..).zip(&self.graph.steps);
        let inputs = inputs.filter(|(_, step)| matches!(step, Step::Input));
        Plan {
            parties: self.site.parties,
            rows: self.rows,
            stride: self.stride,
            inputs: inputs.map(|(at, _)| columns(&Value::Step(at))).collect(),
            outputs: self.graph.outputs.iter().map(columns).collect(),
            constants: Window {
                address: self.site.base,
                words: 2 * self.constant_words(),
            },
            own: Window {
                address: self.site.base,
                words: u32::try_from((end - self.site.base) / WORD).unwrap_or(u32::MAX),
            },
            left,
            brought,
            inboxes: addresses.map(|address| Window {
                address,
                words: inbox,
            }),
            most,
            list: Window {
                address: list,
                words: 0,
            },
            lanes: self.limits.lanes,
            words: self.words,
            layers: self.commands,
            rounds: self.rounds,
        }
    }
}
