//! The circuit over the bins of a cycle.

use veil_circuit::generate::{Aim, Merging, all, constant_bits, equal, less_than};
use veil_circuit::{Builder, Circuit, Initial, Per, Wire};
use veil_math::Ring;

use super::{Bins, Cell, length};
use crate::bits::{Word, total, within};
use crate::intersect::{Intersection, Shows};

/// The circuit under construction.
struct Making<'a> {
    of: &'a Intersection,
    bins: &'a Bins,
    b: Builder,
    network: Merging,
    /// The table whose slots come first where tags are equal, and the other one.
    order: [usize; 2],
}

/// A sum over all bins so far.
struct Sum {
    register: Vec<Wire>,
    terms: Vec<Word>,
}

impl Sum {
    fn new(b: &mut Builder, bits: u32) -> Self {
        let register = (0..bits).map(|_| b.register(Initial::Constant(false)));
        Self {
            register: register.collect(),
            terms: Vec::new(),
        }
    }

    fn count(&mut self, bits: impl IntoIterator<Item = Wire>) {
        let words = bits.into_iter().map(|bit| Word {
            bits: vec![bit],
            signed: false,
        });
        self.terms.extend(words);
    }

    /// The sum with the terms of this cycle.
    fn so_far(self, b: &mut Builder) -> Vec<Wire> {
        let sum = total(b, self.register.clone(), &self.terms);
        for (register, next) in self.register.into_iter().zip(&sum) {
            b.set_next(register, *next);
        }
        sum
    }
}

/// Elements of a bin in ascending order: whether each is equal to the next one, and its values.
struct Merged {
    common: Vec<Wire>,
    values: Vec<Vec<Wire>>,
    exchanged: Vec<Wire>,
}

impl Bins {
    /// The circuit of an intersection.
    pub(in crate::intersect) fn circuit(&self, of: &Intersection) -> Circuit {
        let own = of.own();
        let order = [own, 1 - own];
        let [first, second] = order.map(|at| self.slots[at]);
        let mut making = Making {
            of,
            bins: self,
            b: Builder::new(Ring::Bits),
            network: Merging::new(first, second),
            order,
        };
        making.all();
        making
            .b
            .finish()
            .expect("ports of other names, and gates below every limit")
    }
}

impl Making<'_> {
    fn all(&mut self) {
        let (of, bins) = (self.of, self.bins);
        self.b.cycles(bins.cycles());
        let slots = [0, 1].map(|at| {
            let width = bins.width(at) * bins.slots[at] * bins.each as u32;
            let name = of.tables[at].table.name.clone();
            self.b.input(name, width, Per::Cycle)
        });
        let keys = of.keys();
        // All slots of all bins may be full.
        let mut counts = bins
            .slots
            .map(|slots| Sum::new(&mut self.b, length(u64::from(slots) << bins.log)));
        let mut merged = Vec::new();
        for bin in 0..bins.each as usize {
            let lists = [0, 1].map(|at| {
                let (width, count) = (bins.width(at) as usize, bins.slots[at] as usize);
                let all = slots[at][bin * width * count..].chunks(width);
                all.take(count).map(<[Wire]>::to_vec).collect::<Vec<_>>()
            });
            for (count, list) in counts.iter_mut().zip(&lists) {
                let there = list.iter().map(|slot| self.b.not(slot[bins.tag as usize]));
                count.count(there.collect::<Vec<_>>());
            }
            merged.push(self.merged(&lists));
        }
        // A party has no more keys than it has declared.
        let within = counts.into_iter().zip(keys).map(|(count, keys)| {
            let count = count.so_far(&mut self.b);
            let most = constant_bits(&mut self.b, keys.into(), count.len() as u32);
            let more = less_than(&mut self.b, &most, &count, Aim::Size);
            self.b.not(more)
        });
        let within: Vec<Wire> = within.collect();
        let within = all(&mut self.b, &within);
        if of.opened == Shows::Columns {
            self.back(&merged, within);
        } else {
            self.sums(&merged, within);
        }
    }

    /// Whether the slots of a list ascend, those that are empty behind the others.
    fn ascends(&mut self, list: &[Vec<Wire>]) -> Vec<Wire> {
        let key = self.bins.tag as usize + 1;
        let pairs = list.windows(2);
        pairs
            .map(|pair| less_than(&mut self.b, &pair[0][..key], &pair[1][..key], Aim::Size))
            .collect()
    }

    /// Merges the slots of a bin: what two have in common counts if both lists are in order.
    fn merged(&mut self, lists: &[Vec<Vec<Wire>>; 2]) -> Merged {
        let (tag, order) = (self.bins.tag as usize, self.order);
        let ascends = lists.iter().flat_map(|list| self.ascends(list));
        let ascends: Vec<Wire> = ascends.collect();
        let widest = order.map(|at| self.bins.widths[at]);
        let widest = widest[0].max(widest[1]) as usize;
        let zero = self.b.constant_bit(false);
        let mut words: Vec<Vec<Wire>> = Vec::new();
        for (second, at) in order.into_iter().enumerate() {
            let side = self.b.constant_bit(second == 1);
            words.extend(lists[at].iter().map(|slot| {
                let values = slot[tag + 1..].iter().copied();
                let values = values.chain(std::iter::repeat(zero)).take(widest);
                let key = std::iter::once(side).chain(slot[..=tag].iter().copied());
                key.chain(values).collect()
            }));
        }
        let exchanged = self.network.apply(&mut self.b, &mut words, tag + 2);
        let places = self.network.order().iter();
        let sorted: Vec<Vec<Wire>> = places.map(|place| words[*place as usize].clone()).collect();
        let values: Vec<Vec<Wire>> = sorted.iter().map(|word| word[tag + 2..].to_vec()).collect();
        let mut common = Vec::new();
        for (pair, values) in sorted.windows(2).zip(values.windows(2)) {
            let same = equal(&mut self.b, &pair[0][1..=tag + 1], &pair[1][1..=tag + 1]);
            let there = self.b.not(pair[0][tag + 1]);
            let mut conditions = vec![same, there];
            conditions.extend(self.fit(order, values));
            common.push(all(&mut self.b, &conditions));
        }
        // Bins are small: one condition of the whole bin, for each pair.
        let ascends = all(&mut self.b, &ascends);
        let common = common.into_iter().map(|bit| self.b.and(bit, ascends));
        Merged {
            common: common.collect(),
            values,
            exchanged,
        }
    }

    /// That the values of two neighbours are in their ranges, where they are there.
    fn fit(&mut self, order: [usize; 2], values: &[Vec<Wire>]) -> Vec<Wire> {
        let mut conditions = Vec::new();
        for (at, values) in order.into_iter().zip(values) {
            for (cell, word, flag) in cells(self.of, at, values) {
                let (min, max) = (cell.min.into(), cell.max.into());
                let Some(fits) = within(&mut self.b, &word, min, max) else {
                    continue;
                };
                conditions.push(match flag {
                    None => fits,
                    Some(flag) => {
                        let missing = self.b.not(flag);
                        self.b.or(fits, missing)
                    }
                });
            }
        }
        conditions
    }

    /// How many are common, and the sums of their values, if there are enough.
    fn sums(&mut self, merged: &[Merged], within: Wire) {
        let of = self.of;
        let most = of.most_common();
        let mut size = Sum::new(&mut self.b, length(most) + 1);
        for bin in merged {
            size.count(bin.common.iter().copied());
        }
        let size = size.so_far(&mut self.b);
        let mut opened = vec![size.clone()];
        for at in 0..2 {
            let side = usize::from(self.order[0] != at);
            for place in 0..of.values(at).len() {
                let mut terms = Vec::new();
                for bin in merged {
                    for (pair, &common) in bin.values.windows(2).zip(&bin.common) {
                        let mut cells = cells(of, at, &pair[side]);
                        let (_, word, flag) = cells.swap_remove(place);
                        let counts = match flag {
                            Some(flag) => self.b.and(common, flag),
                            None => common,
                        };
                        terms.push(word.masked(&mut self.b, Some(counts)));
                    }
                }
                let mut sum = Sum::new(&mut self.b, of.sum_bits(at, place));
                sum.terms = terms;
                opened.push(sum.so_far(&mut self.b));
            }
        }
        let mut conditions = vec![within];
        if of.least > 1 {
            let least = constant_bits(&mut self.b, of.least.into(), size.len() as u32);
            let fewer = less_than(&mut self.b, &size, &least, Aim::Size);
            conditions.push(self.b.not(fewer));
        }
        let shown = all(&mut self.b, &conditions);
        let names = std::iter::once("size".to_owned()).chain(of.value_columns());
        for (name, bits) in names.zip(opened) {
            let bits: Vec<Wire> = bits.iter().map(|bit| self.b.and(*bit, shown)).collect();
            self.b.output(name, &bits);
        }
    }

    /// Brings what is found back to the slots of the party that learns it: whether a slot's key is common, and the other party's values.
    fn back(&mut self, merged: &[Merged], within: Wire) {
        let [own, other] = self.order;
        let slots = self.bins.slots[own] as usize;
        let width = self.bins.widths[other] as usize;
        let zero = self.b.constant_bit(false);
        let mut out = Vec::new();
        for bin in merged {
            let mut words = vec![vec![zero; 1 + width]; bin.values.len()];
            let places: Vec<u32> = self.network.order().to_vec();
            for (at, &common) in bin.common.iter().enumerate() {
                let common = self.b.and(common, within);
                let values = bin.values[at + 1][..width].iter();
                let values = values
                    .map(|bit| self.b.and(*bit, common))
                    .collect::<Vec<_>>();
                words[places[at] as usize] = std::iter::once(common).chain(values).collect();
            }
            self.network.undo(&mut self.b, &mut words, &bin.exchanged);
            out.extend(words[..slots].concat());
        }
        self.b.output_every_cycle(crate::intersect::OUTPUT, &out);
    }
}

/// The cells of a table, each with its wires among a slot's values.
fn cells<'a>(
    of: &'a Intersection,
    at: usize,
    values: &[Wire],
) -> Vec<(&'a Cell, Word, Option<Wire>)> {
    let mut left = values;
    let cells = of.values(at).iter().map(|cell| {
        let (bits, rest) = left.split_at(cell.bits as usize);
        let flag = rest.first().copied().filter(|_| cell.flag);
        left = &rest[usize::from(cell.flag)..];
        let word = Word {
            bits: bits.to_vec(),
            signed: cell.signed(),
        };
        (cell, word, flag)
    });
    cells.collect()
}

impl Intersection {
    /// Bits of the sum of a column's values, in two's complement if they can be negative.
    pub(super) fn sum_bits(&self, at: usize, place: usize) -> u32 {
        let cell = &self.cells[at][place];
        cell.bits + length(self.most_common())
    }
}
