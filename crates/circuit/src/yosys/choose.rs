//! Choices between several words: what `case` becomes.

use std::collections::HashMap;

use super::error::YosysError;
use super::json::Bit;
use super::lower::Lowering;
use super::netlist::{CellRef, Netlist};
use crate::{Builder, Wire};

/// Selectors of more bits are compared branch by branch.
const WIDEST: usize = 12;

/// `$bmux`: word number S of A.
pub(super) fn binary(lowering: &mut Lowering<'_>, at: CellRef<'_>) -> Result<(), YosysError> {
    let width = at.bits("Y").len();
    let selector = lowering.word(at, "S")?;
    let word = lowering.word(at, "A")?;
    let words = u32::try_from(selector.len())
        .ok()
        .and_then(|bits| 1usize.checked_shl(bits));
    if words.and_then(|words| words.checked_mul(width)) != Some(word.len()) {
        let what = "an input of another width";
        return Err(lowering.netlist.malformed_cell(at, what));
    }
    if width == 0 {
        return Ok(());
    }
    let words: Vec<Vec<Wire>> = word.chunks_exact(width).map(<[_]>::to_vec).collect();
    let chosen = look_up(&mut lowering.b, &selector, words);
    lowering.drive(at, &chosen)
}

/// `$pmux`: A, or the word of B whose bit of S is 1. Yosys makes it of branches that exclude each other; where a design only claims that
/// they do, the first counts, as in Verilog.
pub(super) fn parallel(lowering: &mut Lowering<'_>, at: CellRef<'_>) -> Result<(), YosysError> {
    let (width, branches) = (at.bits("Y").len(), at.bits("S").len());
    if at.bits("A").len() != width || Some(at.bits("B").len()) != width.checked_mul(branches) {
        let what = "inputs of another width";
        return Err(lowering.netlist.malformed_cell(at, what));
    }
    if width == 0 {
        return Ok(());
    }
    if let Some(table) = Table::new(lowering.netlist, at) {
        let compares = branches as u64 * (table.selector.len() as u64).saturating_sub(1);
        if table.is_full
            || !lowering.netlist.is_any(at)
                && table.choices() * width as u64 <= (branches * width) as u64 + compares
        {
            return table.lower(lowering, at);
        }
    }
    let conditions = lowering.word(at, "S")?;
    let mut words: Vec<&[Bit]> = at.bits("B").chunks_exact(width).collect();
    let mut others = at.bits("A");
    if lowering.netlist.is_any(at) {
        // Of words that are undefined any other one will do.
        let defined = |word: &&[Bit]| !word.contains(&Bit::Undefined);
        let instead = words.iter().copied().find(defined).unwrap_or(others);
        let all = words.iter_mut().chain([&mut others]);
        all.filter(|word| !defined(word))
            .for_each(|word| *word = instead);
    }
    let mut chosen = lowering.wires_of(at, others)?;
    for (&condition, word) in conditions.iter().zip(words).rev() {
        let word = &lowering.wires_of(at, word)?;
        chosen = choose(&mut lowering.b, condition, word, &chosen);
    }
    lowering.drive(at, &chosen)
}

fn choose(b: &mut Builder, condition: Wire, yes: &[Wire], no: &[Wire]) -> Vec<Wire> {
    let words = yes.iter().zip(no);
    words.map(|(&yes, &no)| b.mux(condition, yes, no)).collect()
}

/// Branches by the value of one word: branch `entries[v]` where the selector is `v`.
struct Table {
    selector: Vec<Bit>,
    entries: Vec<Option<u32>>,
    /// Whether every value has a branch.
    is_full: bool,
}

impl Table {
    /// The table that a choice is, if its conditions are about few bits.
    fn new(netlist: &Netlist<'_>, at: CellRef<'_>) -> Option<Table> {
        let mut selector = Vec::new();
        let mut branches = Vec::new();
        for &condition in at.bits("S") {
            let cases = cases(netlist, condition)?;
            for (bit, _) in cases.iter().flatten() {
                if !selector.contains(bit) {
                    selector.push(*bit);
                }
            }
            if selector.len() > WIDEST {
                return None;
            }
            branches.push(cases);
        }
        let place = |bit: &Bit| selector.iter().position(|other| other == bit).unwrap_or(0);
        let mut entries = vec![None; 1 << selector.len()];
        for (branch, cases) in (0..).zip(branches) {
            for case in cases {
                let (mut mask, mut value) = (0, 0);
                for (bit, one) in case {
                    mask |= 1 << place(&bit);
                    value |= usize::from(one) << place(&bit);
                }
                let places = (0..entries.len()).filter(|entry| entry & mask == value);
                for entry in places {
                    entries[entry].get_or_insert(branch);
                }
            }
        }
        Some(Table {
            is_full: entries.iter().all(Option::is_some),
            selector,
            entries,
        })
    }

    /// How many words a tree of choices has: two halves that are the same are chosen between once.
    fn choices(&self) -> u64 {
        let mut level: Vec<u32> = (self.entries.iter())
            .map(|entry| entry.map_or(u32::MAX, |branch| branch))
            .collect();
        let mut next = u32::MAX - 1;
        let mut choices = 0;
        while level.len() > 1 {
            let mut known = HashMap::new();
            level = level
                .chunks(2)
                .map(|pair| match *pair {
                    [x, y] if x != y => *known.entry((x, y)).or_insert_with(|| {
                        choices += 1;
                        next -= 1;
                        next
                    }),
                    _ => pair[0],
                })
                .collect();
        }
        choices
    }

    fn lower(&self, lowering: &mut Lowering<'_>, at: CellRef<'_>) -> Result<(), YosysError> {
        let width = at.bits("Y").len();
        lowering.room((self.entries.len() as u64).saturating_mul(width as u64))?;
        let selector: Result<Vec<_>, _> =
            (self.selector.iter().map(|&bit| lowering.wire(at, bit))).collect();
        let branches = lowering.word(at, "B")?;
        let others = if self.is_full {
            Vec::new()
        } else {
            lowering.word(at, "A")?
        };
        let word = |entry: &Option<u32>| match entry {
            Some(branch) => branches[*branch as usize * width..][..width].to_vec(),
            None => others.clone(),
        };
        let words = self.entries.iter().map(word).collect();
        let chosen = look_up(&mut lowering.b, &selector?, words);
        lowering.drive(at, &chosen)
    }
}

/// What a condition says: that some bits have these values, in one case or another.
type Cases = Vec<Vec<(Bit, bool)>>;

/// The cases in which a condition holds: comparisons with constants, joined by `or`. Of another condition it is that it is 1.
fn cases(netlist: &Netlist<'_>, condition: Bit) -> Option<Cases> {
    let mut open = vec![condition];
    let mut found: Cases = Vec::new();
    let mut steps = 0;
    while let Some(condition) = open.pop() {
        let Bit::Net(net) = condition else {
            return None;
        };
        steps += 1;
        if steps > 2 << WIDEST {
            return None;
        }
        let driver = netlist.driver(net).filter(|(_, place)| *place == 0);
        let at = driver.map(|(cell, _)| netlist.cells[cell as usize]);
        let Some(at) = at else {
            found.push(vec![(condition, true)]);
            continue;
        };
        let (x, y) = (at.bits("A"), at.bits("B"));
        let zeros = [Bit::Known(false); WIDEST];
        match at.cell.kind.as_str() {
            "$reduce_or" => open.extend(x),
            "$logic_not" if x.len() <= WIDEST => found.extend(case(x, &zeros[..x.len()])?),
            "$not" if x.len() == 1 => found.extend(case(x, &zeros[..1])?),
            "$eq" if x.len() == y.len() && x.len() <= WIDEST => {
                let constant = |bits: &[Bit]| bits.iter().all(|bit| matches!(bit, Bit::Known(_)));
                if constant(y) {
                    found.extend(case(x, y)?);
                } else if constant(x) {
                    found.extend(case(y, x)?);
                } else {
                    found.push(vec![(condition, true)]);
                }
            }
            _ => found.push(vec![(condition, true)]),
        }
    }
    Some(found)
}

/// The case in which bits have these values, or no case if a constant among them has not.
fn case(bits: &[Bit], values: &[Bit]) -> Option<Cases> {
    let mut case: Vec<(Bit, bool)> = Vec::new();
    for (&bit, value) in bits.iter().zip(values) {
        match (bit, value) {
            (Bit::Net(_), Bit::Known(one)) => {
                if case.contains(&(bit, !one)) {
                    return Some(Vec::new());
                }
                case.push((bit, *one));
            }
            (Bit::Known(is), Bit::Known(one)) if is == *one => {}
            (Bit::Known(_), Bit::Known(_)) => return Some(Vec::new()),
            _ => return None,
        }
    }
    Some(vec![case])
}

/// Word number `selector` of `words`, which are as many as it has values.
fn look_up(b: &mut Builder, selector: &[Wire], words: Vec<Vec<Wire>>) -> Vec<Wire> {
    let (zero, one) = (b.constant_bit(false), b.constant_bit(true));
    if words.iter().flatten().all(|&bit| bit == zero || bit == one) && !selector.is_empty() {
        return constants(b, selector, &words, one);
    }
    let mut words = words;
    for &bit in selector {
        words = words
            .chunks(2)
            .map(|pair| match pair {
                [no, yes] => choose(b, bit, yes, no),
                _ => pair[0].clone(),
            })
            .collect();
    }
    words.swap_remove(0)
}

/// The same where all words are constants: each output is a polynomial of the selector's bits. These are split in two: for each product of
/// the low ones, the sum of those products of the high ones that come with it.
fn constants(b: &mut Builder, selector: &[Wire], words: &[Vec<Wire>], one: Wire) -> Vec<Wire> {
    let (bits, width) = (selector.len(), words[0].len());
    let products = |bits: usize| (1usize << bits) - bits - 1;
    let cost = |low: &usize| products(*low) + products(bits - low) + width * ((1 << low) - 1);
    let low = (0..=bits / 2).min_by_key(cost).unwrap_or(0);
    let (low, high) = selector.split_at(low);
    let (low, high) = (monomials(b, low), monomials(b, high));
    let zero = b.constant_bit(false);
    (0..width)
        .map(|place| {
            let mut coefficients: Vec<bool> = words.iter().map(|w| w[place] == one).collect();
            polynomial(&mut coefficients);
            low.iter()
                .enumerate()
                .fold(zero, |sum, (number, &product)| {
                    let with = high.iter().enumerate();
                    let with = with.filter(|(other, _)| coefficients[other * low.len() + number]);
                    let with = with.fold(zero, |sum, (_, &other)| b.xor(sum, other));
                    let term = b.and(product, with);
                    b.xor(sum, term)
                })
        })
        .collect()
}

/// The products of all subsets of some bits: that of subset `s` has number `s`.
fn monomials(b: &mut Builder, bits: &[Wire]) -> Vec<Wire> {
    let mut all = vec![b.constant_bit(true)];
    for &bit in bits {
        for subset in 0..all.len() {
            let product = b.and(all[subset], bit);
            all.push(product);
        }
    }
    all
}

/// From the values of a function of bits to the coefficients of its polynomial modulo 2.
fn polynomial(values: &mut [bool]) {
    let mut half = 1;
    while half < values.len() {
        for place in (0..values.len()).filter(|place| place & half != 0) {
            values[place] ^= values[place - half];
        }
        half *= 2;
    }
}
