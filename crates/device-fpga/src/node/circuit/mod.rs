//! Circuits of bits as lists: what each node does for all of a circuit, from its inputs to its outputs, without its host.
//!
//! Values are columns, one for each component that a party has. A list has sums and products in waves: what is in a wave needs nothing of it, and a
//! wave begins when the one before has ended and, after products, when what the party before sends has come. Own components, and both of sums, lie
//! where no other node writes; of products the previous ones lie in the window of the party before.
//!
//! A column is used again when nobody reads it any more. One of the window may be written by a party that is ahead, but not by more than this: of three
//! parties, the one before begins the products of depth m when those of depth m-1 of the one after have come to it, which began them when this one's of
//! depth m-2 had come, and so when all of this one's waves before that depth had ended. So a column that is read last before the products of
//! depth m-2 is free for those of depth m.

mod graph;
mod pack;
mod places;
mod run;
mod waves;

use veil_circuit::{Circuit, Reduce, simplify};
use veil_math::Ring;

use self::graph::Step;
pub(crate) use self::graph::{Graph, Value};
use self::pack::{Packed, Run, Source, pack};
use self::places::{Pool, last_reads, ordered, runs};
use self::waves::{Wave, waves};
use super::trio::previous;
use super::{Limits, Window};

/// Bytes of a word.
const WORD: u64 = 16;
/// Rows of bits in a word.
const ROWS: u32 = 128;
/// Segments of a command, at most.
const SEGMENTS: usize = 14;
/// Words of a command below which it mostly waits for memory: waves are cut no further among workers.
const SHORTEST: u32 = 256;
/// How far readers, and operands, of a gate are looked at for others like it. Which is best depends on the circuit: parts that are alike are no longer
/// so if more is looked at, and if less is, different places of them are.
const RADII: [(u32, u32); 10] = [
    (0, 0),
    (1, 1),
    (2, 0),
    (2, 1),
    (3, 0),
    (3, 1),
    (4, 0),
    (4, 1),
    (6, 0),
    (8, 0),
];
/// Addresses from here on are of the window of the party before: where that begins depends on the node.
const INBOX: u64 = 1 << 48;

/// A circuit that no lists are made of.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unfit {
    /// Integers.
    #[error("lists are of circuits over bits: this one has integers or random values")]
    Integers,
    /// Cycles.
    #[error("lists are of circuits without cycles and registers")]
    Sequential,
    /// Too long columns.
    #[error("{rows} rows are more than addresses have room for")]
    Rows {
        /// Rows.
        rows: u32,
    },
}

/// Where the components of a value lie: own, previous.
type Columns = [u64; 2];

/// What is done at once.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Round {
    sums: Vec<Packed>,
    /// Counters are first words.
    products: Vec<Packed>,
    /// Words of products before these.
    before: u64,
}

/// A circuit as what three nodes do, for so many rows.
#[derive(Clone, Debug)]
pub struct Plan {
    rows: u32,
    stride: u32,
    inputs: Vec<Columns>,
    outputs: Vec<Columns>,
    rounds: Vec<Round>,
    /// Zeros, then as many ones.
    constants: Window,
    /// Where own columns end.
    columns: u64,
    /// Where what each party sends lies at the one after it, and how many words that are.
    inboxes: [u64; 3],
    arriving: u32,
    /// Words of products in all.
    words: u64,
}

impl Plan {
    /// Lists of a circuit for units that have `limits`, each with its own window of memory from `base` on, where a beat begins.
    pub fn new(circuit: &Circuit, rows: u32, limits: Limits, base: u64) -> Result<Self, Unfit> {
        if circuit.is_sequential()
            || circuit
                .outputs
                .iter()
                .any(|port| port.reduce != Reduce::None)
        {
            return Err(Unfit::Sequential);
        }
        if circuit.ring != Ring::Bits {
            return Err(Unfit::Integers);
        }
        Plan::of(&Graph::of(&simplify(circuit))?, rows, limits, (base, None))
    }

    /// The same of a graph. What party i sends lies at `inboxes[i]` of the party after, or else behind all columns.
    pub(crate) fn of(
        graph: &Graph,
        rows: u32,
        limits: Limits,
        (base, inboxes): (u64, Option<[u64; 3]>),
    ) -> Result<Self, Unfit> {
        // Inputs alone: a plan of too many rows is not made to be thrown away.
        let inputs = 2 * u64::from(graph.inputs()) * u64::from(rows.div_ceil(ROWS));
        if inputs > u64::from(u32::MAX) {
            return Err(Unfit::Rows { rows });
        }
        let waves = waves(graph);
        let made = RADII.map(|(readers, operands)| {
            let mut layout = Layout::new(graph, &waves, (rows, base), limits);
            layout.place(&graph.neighbourhoods(readers, operands));
            layout.done(graph, inboxes)
        });
        let [first, others @ ..] = made;
        let fewer = |a: Plan, b: Plan| if b.work() < a.work() { b } else { a };
        let plan = others.into_iter().fold(first, fewer);
        let last = plan.end();
        if last > WORD * u64::from(u32::MAX) {
            return Err(Unfit::Rows { rows });
        }
        Ok(plan)
    }

    /// Commands of a list, without those that wait.
    pub fn work(&self) -> usize {
        let rounds = self.rounds.iter();
        rounds.map(|of| of.sums.len() + of.products.len()).sum()
    }

    /// Waves: with products, and of sums alone.
    pub fn waves(&self) -> [usize; 2] {
        let products = self.rounds.iter().filter(|of| !of.products.is_empty());
        let products = products.count();
        [products, self.rounds.len() - products]
    }

    /// Words of products, each of which has a mask of its own.
    pub fn words(&self) -> u64 {
        self.words
    }

    /// Rows.
    pub fn rows(&self) -> u32 {
        self.rows
    }

    /// Words of a column: its rows, up to a whole beat.
    pub fn stride(&self) -> u32 {
        self.stride
    }

    /// Where own and previous component of each input wire lie.
    pub fn inputs(&self) -> &[[u64; 2]] {
        &self.inputs
    }

    /// And of each output wire at a party, port by port.
    pub fn outputs(&self, me: u8) -> Vec<[u64; 2]> {
        let from = previous(me);
        let outputs = self.outputs.iter();
        outputs
            .map(|of| of.map(|at| self.place(at, from)))
            .collect()
    }

    /// Zeros, then as many ones, which the host writes.
    pub fn constants(&self) -> Window {
        self.constants
    }

    /// What the party before writes at a party.
    pub fn inbox(&self, me: u8) -> Window {
        Window {
            address: self.inboxes[usize::from(previous(me))],
            words: self.arriving,
        }
    }

    /// Where something lies, whose previous component party `from` sends.
    fn place(&self, at: u64, from: u8) -> u64 {
        let inbox = self.inboxes[usize::from(from)];
        at.checked_sub(INBOX).map_or(at, |at| inbox + at)
    }

    /// Where columns end, and what others write there if it lies behind them.
    fn end(&self) -> u64 {
        let words = WORD * u64::from(self.arriving);
        if self.inboxes[0] == self.columns {
            self.columns + words
        } else {
            self.columns
        }
    }
}

/// A plan that is being made.
struct Layout<'a> {
    graph: &'a Graph,
    waves: &'a [Wave],
    limits: Limits,
    rows: u32,
    stride: u32,
    constants: u64,
    /// Where each value lies.
    columns: Vec<Columns>,
    last: Vec<u32>,
    own: Pool,
    inbox: Pool,
    /// By the last wave in which any column of them is read: columns of `own`, and of `inbox`.
    leaves: Vec<[Vec<(u32, u32)>; 2]>,
    rounds: Vec<Round>,
    words: u64,
}

impl<'a> Layout<'a> {
    fn new(graph: &'a Graph, waves: &'a [Wave], (rows, base): (u32, u64), limits: Limits) -> Self {
        let outputs = graph.outputs.iter().filter_map(|value| match value {
            Value::Step(step) => Some(*step),
            Value::Constant(_) => None,
        });
        let kept: Vec<u32> = outputs.collect();
        Layout {
            graph,
            waves,
            limits,
            rows,
            stride: rows.div_ceil(ROWS).max(1).next_multiple_of(limits.lanes),
            constants: base,
            columns: vec![[0; 2]; graph.steps.len()],
            last: last_reads(graph, waves, &kept),
            own: Pool::default(),
            inbox: Pool::default(),
            leaves: vec![[Vec::new(), Vec::new()]; waves.len()],
            rounds: Vec::new(),
            words: 0,
        }
    }

    fn place(&mut self, neighbourhoods: &[u64]) {
        let inputs = (0..).zip(&self.graph.steps);
        let inputs = inputs.filter(|(_, step)| matches!(step, Step::Input));
        let inputs: Vec<u32> = inputs.map(|(at, _)| at).collect();
        let inputs = ordered(&inputs, neighbourhoods);
        for alike in
            inputs.chunk_by(|a, b| neighbourhoods[*a as usize] == neighbourhoods[*b as usize])
        {
            self.both(alike, 0);
        }
        for (number, wave) in (0..).zip(self.waves) {
            let products = self.products(&wave.products, neighbourhoods, number);
            let sums = self.sums(&wave.sums, neighbourhoods, number);
            let before = self.words;
            self.words += products.iter().map(|of| u64::from(of.words)).sum::<u64>();
            self.rounds.push(Round {
                sums,
                products,
                before,
            });
            self.free(number);
        }
    }

    /// Columns of values, own ones, then previous ones.
    fn both(&mut self, values: &[u32], wave: u32) {
        let count = values.len() as u32;
        let first = self.own.take(2 * count, wave);
        for (k, value) in (first..).zip(values) {
            self.columns[*value as usize] = [self.column(k), self.column(k + count)];
        }
        self.leave(values, 0, (first, 2 * count));
    }

    fn sums(&mut self, steps: &[u32], of: &[u64], wave: u32) -> Vec<Packed> {
        let mut all = Vec::new();
        for group in self.groups(steps, of) {
            let results: Vec<u32> = group.iter().map(|(step, _)| *step).collect();
            self.both(&results, wave);
            for part in 0..2 {
                all.extend(group.iter().map(|&(step, swapped)| {
                    let at = |value: u32| self.columns[value as usize][part];
                    let operands = self.graph.steps[step as usize].operands();
                    let mut from: Vec<Source> = operands.map(|of| Source::At(at(of))).collect();
                    if from.len() == 1 {
                        from.push(Source::Constant(self.constant(true)));
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
        pack(&all, longest, SEGMENTS)
    }

    fn products(&mut self, steps: &[u32], of: &[u64], wave: u32) -> Vec<Packed> {
        let group = self.groups(steps, of).concat();
        let results: Vec<u32> = group.iter().map(|(step, _)| *step).collect();
        let count = results.len() as u32;
        if count == 0 {
            return Vec::new();
        }
        let (own, came) = (self.own.take(count, wave), self.inbox.take(count, wave));
        for (k, value) in (0..).zip(&results) {
            self.columns[*value as usize] = [self.column(own + k), self.arriving(came + k)];
        }
        self.leave(&results, 0, (own, count));
        self.leave(&results, 1, (came, count));
        let all: Vec<Run> = (group.iter())
            .map(|&(step, swapped)| {
                let operands = self.graph.steps[step as usize].operands();
                let mut from: Vec<_> = operands.map(|of| self.columns[of as usize]).collect();
                if swapped {
                    from.reverse();
                }
                let [own, came] = self.columns[step as usize];
                Run {
                    from: from.into_iter().flatten().map(Source::At).collect(),
                    to: vec![came, own],
                    words: self.stride,
                }
            })
            .collect();
        let longest = self.longest(all.len(), self.limits.sharers);
        pack(&all, longest, SEGMENTS)
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

    /// Where as many zeros or ones lie as a column has, of a command or of a value.
    fn constant(&self, bit: bool) -> u64 {
        self.constants + WORD * u64::from(bit) * u64::from(self.constant_words())
    }

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
        self.constants + WORD * (constants + u64::from(number) * u64::from(self.stride))
    }

    fn arriving(&self, number: u32) -> u64 {
        INBOX + WORD * u64::from(number) * u64::from(self.stride)
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
        // Of the products that begin behind this wave, the third.
        let later = (0..).zip(self.waves).skip(wave as usize + 1);
        let mut later = later.filter(|(_, wave)| !wave.products.is_empty());
        if let Some((from, _)) = later.nth(2) {
            for (first, count) in came {
                self.inbox.give(first, count, from);
            }
        }
    }

    fn done(self, graph: &Graph, inboxes: Option<[u64; 3]>) -> Plan {
        let behind = self.column(self.own.columns);
        let columns = |value: &Value| match *value {
            Value::Step(step) => self.columns[step as usize],
            Value::Constant(bit) => [self.constant(bit); 2],
        };
        let inputs = (0..).zip(&graph.steps);
        let inputs = inputs.filter(|(_, step)| matches!(step, Step::Input));
        Plan {
            rows: self.rows,
            stride: self.stride,
            inputs: inputs.map(|(at, _)| columns(&Value::Step(at))).collect(),
            outputs: graph.outputs.iter().map(columns).collect(),
            constants: Window {
                address: self.constants,
                words: 2 * self.constant_words(),
            },
            columns: behind,
            inboxes: inboxes.unwrap_or([behind; 3]),
            arriving: self.inbox.columns.saturating_mul(self.stride),
            rounds: self.rounds,
            words: self.words,
        }
    }
}
