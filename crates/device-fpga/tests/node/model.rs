//! Three nodes that run lists in the clear, command by command, in any order that lists allow.

use std::collections::HashMap;

use veil_device_fpga::node::{Command, Op, Plan};
use veil_math::Ring;

use super::circuit::{DRAW, LIMITS};
use super::{random, sum};

/// Steps without one that changes anything, after which another node goes on.
const PATIENCE: u32 = 40;

/// Words as a node of the model has them; nobody reads what nobody wrote.
type Memory = HashMap<u64, u128>;

/// Three nodes that run lists in the clear: products have masks of zero.
pub(crate) struct Model {
    memories: [Memory; 3],
    lists: [Vec<(Command, bool)>; 3],
    at: [usize; 3],
    /// Commands that have begun, and what they have still to do.
    begun: [Vec<Begun>; 3],
    came: [u32; 3],
}

enum Begun {
    Reads(Command),
    Writes(Command, Vec<u128>),
    Awaits(u32),
}

impl Model {
    pub(crate) fn new(plan: &Plan, inputs: &[[Vec<u8>; 3]]) -> Self {
        let mut memories = [0; 3].map(|_| Memory::new());
        for (me, memory) in memories.iter_mut().enumerate() {
            let mut store = |at: u64, bytes: &[u8]| {
                for (k, word) in (0..).zip(bytes.as_chunks().0) {
                    memory.insert(at + 16 * k, u128::from_le_bytes(*word));
                }
            };
            for (at, of) in plan.inputs().iter().zip(inputs) {
                store(at[0], &of[me]);
                store(at[1], &of[(me + 2) % 3]);
            }
            let constants = plan.constants();
            let half = 8 * constants.words as usize;
            store(constants.address, &vec![0; half]);
            store(constants.address + half as u64, &vec![0xff; half]);
        }
        Model {
            memories,
            lists: [0, 1, 2].map(|me| plan.commands(me, DRAW)),
            at: [0; 3],
            begun: [const { Vec::new() }; 3],
            came: [0; 3],
        }
    }

    /// Does one thing at a node, if there is one that `choice` says.
    fn step(&mut self, me: usize, choice: usize) {
        let next = self.lists[me].get(self.at[me]);
        let may = next.is_some_and(|(_, after)| !after || self.begun[me].is_empty());
        let count = self.begun[me].len();
        let choice = choice % (count + usize::from(may)).max(1);
        if choice >= count {
            if may {
                self.at[me] += 1;
                let (command, _) = &self.lists[me][self.at[me] - 1];
                self.begun[me].push(if command.op == Op::Await {
                    assert_eq!(usize::from(command.to[0].node), (me + 2) % 3);
                    Begun::Awaits(command.to[0].words)
                } else {
                    Begun::Reads(command.clone())
                });
            }
            return;
        }
        match self.begun[me].swap_remove(choice) {
            Begun::Reads(command) => {
                let result = self.result(me, &command);
                self.begun[me].push(Begun::Writes(command, result));
            }
            Begun::Writes(command, result) => {
                let mut words = result.into_iter();
                for to in &command.to {
                    let memory = &mut self.memories[usize::from(to.node)];
                    for k in 0..u64::from(to.words) {
                        memory.insert(to.address + 16 * k, words.next().expect("a word"));
                    }
                    if to.tell.is_some() {
                        self.came[usize::from(to.node)] += 1;
                    }
                }
                assert_eq!(words.next(), None, "words are where they should be");
            }
            Begun::Awaits(messages) if self.came[me] >= messages => self.came[me] -= messages,
            Begun::Awaits(messages) => self.begun[me].push(Begun::Awaits(messages)),
        }
    }

    fn result(&self, me: usize, command: &Command) -> Vec<u128> {
        assert!(command.from.len() + command.to.len() <= 14);
        assert!(command.words <= LIMITS.longest);
        assert!(command.words.is_multiple_of(LIMITS.lanes));
        let memory = &self.memories[me];
        let words = command.from.iter().flat_map(|of| {
            assert_eq!(usize::from(of.node), me);
            (0..u64::from(of.words)).map(|k| of.address + 16 * k)
        });
        let words: Vec<u128> = words.map(|at| memory[&at]).collect();
        let columns: Vec<&[u128]> = words.chunks(command.words as usize).collect();
        let rows = 0..command.words as usize;
        match command.op {
            Op::Xor => rows.map(|k| columns[0][k] ^ columns[1][k]).collect(),
            Op::Product(Ring::Bits) => {
                let product = |k: usize| {
                    let [x, x_before, y, y_before] = [0, 1, 2, 3].map(|of| columns[of][k]);
                    (x & y) ^ (x & y_before) ^ (x_before & y)
                };
                let own: Vec<u128> = rows.map(product).collect();
                [own.clone(), own].concat()
            }
            other => panic!("{other:?} in a list"),
        }
    }

    fn goes_on(&self) -> bool {
        (0..3).any(|me| self.at[me] < self.lists[me].len() || !self.begun[me].is_empty())
    }

    /// One way through the lists: any order, or one node as far ahead, or behind, as the others let it be.
    pub(crate) fn run(&mut self, seed: u64) {
        let numbers = random(seed, 1 << 12);
        let mut at = 0;
        let mut next = || {
            at += 1;
            usize::from(numbers[at % numbers.len()]) + at / numbers.len()
        };
        // Of eight ways two are without; in three a node is as fast as it may be, and in three as slow.
        let (way, chosen) = (seed % 8, (seed % 8 % 3) as usize);
        let mut idle = 0;
        while self.goes_on() {
            let mut me = next() % 3;
            if way < 6 && idle < PATIENCE {
                me = match way {
                    0..3 => chosen,
                    _ => (chosen + 1 + me % 2) % 3,
                };
            }
            let before = (self.at, self.begun.each_ref().map(Vec::len), self.came);
            let choice = next();
            self.step(me, choice);
            let after = (self.at, self.begun.each_ref().map(Vec::len), self.came);
            idle = if before == after { idle + 1 } else { 0 };
        }
    }

    /// The outputs, of which the nodes hold the same components.
    pub(crate) fn opened(&self, plan: &Plan) -> Vec<Vec<u8>> {
        let wire = |at: &[u64; 2]| {
            let column = |me: usize, part: usize| -> Vec<u8> {
                let words = (0..u64::from(plan.stride())).map(|k| at[part] + 16 * k);
                words
                    .flat_map(|at| self.memories[me][&at].to_le_bytes())
                    .collect()
            };
            let own = [0, 1, 2].map(|me| column(me, 0));
            for (me, own) in own.iter().enumerate() {
                assert_eq!(*own, column((me + 1) % 3, 1), "component {me}");
            }
            sum(Ring::Bits, &own)
        };
        plan.outputs(0).iter().map(wire).collect()
    }
}
