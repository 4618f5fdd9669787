//! A program over shares as steps of a core: what is computed from which columns, and where results go.
//!
//! Values have one definition each, so that copies and constants are no steps. Steps are in order of their depth: those of one depth need
//! nothing of each other, and are on their way through the core at once. Products, which no step reads, come last.

use std::collections::BTreeMap;

use veil_device::{Dst, Instr, Program, Src};

use super::command::Kind;

/// A column, with all components.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Value {
    /// What a slot had when the program began.
    Slot(u32),
    /// What all rows share.
    JobWide(u32),
    /// A public constant, on the components that the command names.
    Public(u128),
    /// A public factor, on all components.
    Factor(u128),
    /// The result of a step.
    Step(u32),
}

/// Where a result goes in the end, beside slots that have it as their value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Destination {
    /// Nowhere else.
    Value,
    /// A product: item `index` of the messages, and the components of a slot that the product's form writes.
    Product {
        /// Slot.
        slot: u32,
        /// Place in the message and in the draws.
        index: u32,
    },
    /// A sum over rows: an item of the sums, all components.
    Sum {
        /// Item.
        item: u32,
    },
    /// A sum of products: item `index` of the messages of sums, and those components of one of the sums.
    ProductSum {
        /// Item of the sums.
        item: u32,
        /// Place in the message and in the draws.
        index: u32,
    },
}

/// One command of a core.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Step {
    /// What it does.
    pub(super) kind: Kind,
    /// Pairs of operands; one, but for products.
    pub(super) operands: Vec<(Value, Value)>,
    /// Where the result goes.
    pub(super) place: Destination,
    /// Its number in the program.
    pub(super) number: u32,
    /// How many steps it waits for, one after the other.
    depth: u32,
    /// How often its result is read by steps, and by slots in the end.
    pub(super) reads: u32,
}

impl Step {
    /// Whether it adds up over rows.
    pub(super) fn sums(&self) -> bool {
        matches!(
            self.place,
            Destination::Sum { .. } | Destination::ProductSum { .. }
        )
    }

    /// Wave, then place in the message: products come after all that they may read, in the order of their messages.
    fn order(&self) -> (u32, u32) {
        match self.place {
            Destination::Value | Destination::Sum { .. } => (self.depth, 0),
            Destination::Product { index, .. } => (u32::MAX - 1, index),
            Destination::ProductSum { index, .. } => (u32::MAX, index),
        }
    }
}

/// A program as steps.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Steps {
    /// In the order in which they are done.
    pub(super) all: Vec<Step>,
    /// Where waves end: steps of one wave read no result of each other. Products are a wave of their own, and so are sums of products.
    pub(super) waves: Vec<u32>,
    /// Slots that have other values in the end. Products write over that.
    pub(super) slots: Vec<(u32, Value)>,
}

impl Steps {
    /// The steps of a program that was checked.
    pub(super) fn of(program: &Program) -> Self {
        let mut making = Making::default();
        for instr in &program.code {
            making.instr(program, instr);
        }
        making.sorted()
    }

    /// Pairs of the longest product.
    pub(super) fn most_pairs(&self) -> usize {
        let pairs = self.all.iter().map(|step| step.operands.len());
        pairs.max().unwrap_or(0)
    }
}

#[derive(Default)]
struct Making {
    steps: Vec<Step>,
    temps: BTreeMap<u32, Value>,
    slots: BTreeMap<u32, Value>,
}

impl Making {
    fn value(&self, src: Src) -> Value {
        match src {
            Src::Slot(slot) => *self.slots.get(&slot).unwrap_or(&Value::Slot(slot)),
            Src::Temp(temp) => self.temps[&temp],
            Src::JobWide(job_value) => Value::JobWide(job_value),
        }
    }

    fn put(&mut self, dst: Dst, value: Value) {
        match dst {
            Dst::Slot(slot) => self.slots.insert(slot, value),
            Dst::Temp(temp) => self.temps.insert(temp, value),
        };
    }

    fn step(&mut self, kind: Kind, operands: Vec<(Value, Value)>, place: Destination) -> Value {
        let read = operands.iter().flat_map(|(a, b)| [a, b]);
        let depth = read
            .filter_map(|value| match value {
                Value::Step(step) => Some(self.steps[*step as usize].depth + 1),
                _ => None,
            })
            .max()
            .unwrap_or(0);
        let number = self.steps.len() as u32;
        self.steps.push(Step {
            kind,
            operands,
            place,
            number,
            depth,
            reads: 0,
        });
        Value::Step(number)
    }

    fn instr(&mut self, program: &Program, instr: &Instr) {
        let pairs = |making: &Self, pairs: &std::ops::Range<u32>| {
            let pairs = &program.pairs[pairs.start as usize..pairs.end as usize];
            let both = pairs
                .iter()
                .map(|(a, b)| (making.value(*a), making.value(*b)));
            both.collect()
        };
        let (kind, a, b, out) = match *instr {
            Instr::Add(a, b, out) => (Kind::Add, a, self.value(b), out),
            Instr::Sub(a, b, out) => (Kind::Sub, a, self.value(b), out),
            Instr::Plus(a, c, out) => (Kind::Add, a, Value::Public(c), out),
            Instr::Times(a, c, out) => (Kind::Scale, a, Value::Factor(c), out),
            Instr::Copy(a, out) => return self.put(out, self.value(a)),
            Instr::Constant(c, out) => return self.put(out, Value::Public(c)),
            Instr::Product {
                pairs: ref range,
                out: slot,
                index,
            } => {
                let operands = pairs(self, range);
                self.step(
                    Kind::Product,
                    operands,
                    Destination::Product { slot, index },
                );
                return;
            }
            Instr::ProductSum {
                pairs: ref range,
                out: item,
                index,
            } => {
                let operands = pairs(self, range);
                self.step(
                    Kind::Product,
                    operands,
                    Destination::ProductSum { item, index },
                );
                return;
            }
            Instr::Sum(a, item) => {
                let operands = vec![(self.value(a), Value::Factor(0))];
                self.step(Kind::Add, operands, Destination::Sum { item });
                return;
            }
        };
        let value = self.step(kind, vec![(self.value(a), b)], Destination::Value);
        self.put(out, value);
    }

    /// The steps wave by wave; those that no step reads, and that go nowhere, are left out.
    fn sorted(self) -> Steps {
        let reads = self.reads();
        let Making { steps, slots, .. } = self;
        let kept =
            |step: &&Step| reads[step.number as usize] > 0 || step.place != Destination::Value;
        let mut sorted: Vec<Step> = steps.iter().filter(kept).cloned().collect();
        sorted.sort_by_key(Step::order);
        let mut moved = vec![u32::MAX; steps.len()];
        for (at, step) in (0..).zip(&sorted) {
            moved[step.number as usize] = at;
        }
        let moved = |value: Value| match value {
            Value::Step(step) => Value::Step(moved[step as usize]),
            other => other,
        };
        for step in &mut sorted {
            step.reads = reads[step.number as usize];
            for (a, b) in &mut step.operands {
                (*a, *b) = (moved(*a), moved(*b));
            }
        }
        let ends = (1..=sorted.len()).filter(|&end| {
            let next = sorted.get(end).map(|step| step.order().0);
            next != Some(sorted[end - 1].order().0)
        });
        Steps {
            waves: ends.map(|end| end as u32).collect(),
            slots: (slots.into_iter())
                .map(|(slot, value)| (slot, moved(value)))
                .collect(),
            all: sorted,
        }
    }

    /// How often each result is read, by steps that are done and by slots in the end.
    fn reads(&self) -> Vec<u32> {
        let mut reads = vec![0u32; self.steps.len()];
        let read = |value: &Value, reads: &mut Vec<u32>| {
            if let Value::Step(step) = value {
                reads[*step as usize] += 1;
            }
        };
        for value in self.slots.values() {
            read(value, &mut reads);
        }
        for step in self.steps.iter().rev() {
            if reads[step.number as usize] > 0 || step.place != Destination::Value {
                for value in step.operands.iter().flat_map(|(a, b)| [a, b]) {
                    read(value, &mut reads);
                }
            }
        }
        reads
    }
}
