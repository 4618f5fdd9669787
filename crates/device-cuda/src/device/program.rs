//! Programs as kernels/device/program.cu reads them: in levels, each of whose instructions may be done at once.

use std::collections::{BTreeMap, BTreeSet};

use veil_device::{Dst, Fault, Form, Instr, Layout, Needs, Program, Src};
use veil_math::Ring;

use super::{NAME, NARROW, unsupported};

/// Instructions of kernels/device/program.cu.
const ADD: u32 = 0;
const SUB: u32 = 1;
const TIMES: u32 = 2;
const PLUS: u32 = 3;
const COPY: u32 = 4;
const CONSTANT: u32 = 5;
const PRODUCT: u32 = 6;
const PRODUCT_SUM: u32 = 7;
const SUM: u32 = 8;

/// Words of an instruction.
const WORDS: usize = 8;
/// Indices of operands, at most.
const INDICES: u32 = 1 << 30;

/// A program for workspaces of a layout, as all lanes have it.
pub(super) struct Loaded {
    /// What commands about it need.
    pub(super) needs: Needs,
    pub(super) code: Code,
}

impl Loaded {
    pub(super) fn of(program: &Program, layout: &Layout) -> Result<Self, Fault> {
        Ok(Loaded {
            needs: Needs::of(program, layout)?,
            code: Code::of(program, layout)?,
        })
    }
}

/// A program, compiled.
pub(super) struct Code {
    pub(super) ring: Ring,
    /// Regions of slots, job-wide values and sums.
    pub(super) regions: [u16; 3],
    pub(super) parts: u8,
    /// Values that are forgotten: so many are there at once.
    pub(super) temps: u32,
    /// Levels, instructions of the widest, and where the words are that say where levels begin, and the last ends.
    pub(super) depth: u32,
    pub(super) widest: u32,
    pub(super) levels: u32,
    /// Where pairs begin, and products by their places: words.
    pub(super) pairs: u32,
    pub(super) products: u32,
    /// Numbers of products of rows: one more than the largest.
    pub(super) numbers: u32,
    /// Products of rows, and sums, of products or not.
    pub(super) counts: [u32; 2],
    /// Of those, sums of products.
    pub(super) product_sums: u32,
    /// Sums of threads.
    pub(super) partial: u32,
    pub(super) words: Vec<u32>,
}

fn operand(place: u32, index: u32) -> Result<u32, Fault> {
    if index >= INDICES {
        return Err(Fault::NoRoom {
            device: NAME,
            why: format!("operands below {INDICES} are what it names"),
        });
    }
    Ok(place << 30 | index)
}

/// A constant in each place of sixteen bytes.
fn constant(ring: Ring, value: u128) -> [u32; 4] {
    let value = ring.reduce(value);
    let wide = match ring {
        Ring::Bits => 0u128.wrapping_sub(value),
        Ring::Z32 => value * 0x1_0000_0001_0000_0001_0000_0001,
        Ring::Z64 => value << 64 | value,
        Ring::Z128 => value,
    };
    [0, 32, 64, 96].map(|at| (wide >> at) as u32)
}

/// What an instruction reads.
fn reads<'a>(program: &'a Program, instr: &Instr) -> impl Iterator<Item = Src> + use<'a> {
    let (own, pairs) = match *instr {
        Instr::Add(a, b, _) | Instr::Sub(a, b, _) => ([Some(a), Some(b)], 0..0),
        Instr::Plus(a, ..) | Instr::Times(a, ..) | Instr::Copy(a, _) | Instr::Sum(a, _) => {
            ([Some(a), None], 0..0)
        }
        Instr::Constant(..) => ([None; 2], 0..0),
        Instr::Product { ref pairs, .. } | Instr::ProductSum { ref pairs, .. } => {
            ([None; 2], pairs.start as usize..pairs.end as usize)
        }
    };
    let pairs = program.pairs[pairs].iter().flat_map(|(a, b)| [*a, *b]);
    own.into_iter().flatten().chain(pairs)
}

/// The order in which a program is run.
struct Schedule<'a> {
    program: &'a Program,
    /// Instructions, level by level; none needs what another of its level writes, or writes what another reads.
    levels: Vec<Vec<usize>>,
    /// Where temps are: places are used again when all have read what was there.
    places: BTreeMap<u32, u32>,
    temps: u32,
}

impl<'a> Schedule<'a> {
    /// Each instruction as early as it can be.
    fn of(program: &'a Program) -> Self {
        // The first level at which a value may be read, and, of a slot, the first at which it may be written again.
        let (mut readable, mut writable) = (BTreeMap::new(), BTreeMap::new());
        let mut last = BTreeMap::new();
        let mut levels: Vec<Vec<usize>> = Vec::new();
        let key = |place: Dst| match place {
            Dst::Slot(slot) => (0, slot),
            Dst::Temp(temp) => (1, temp),
        };
        let read = |src: Src| match src {
            Src::Slot(slot) => Some((0, slot)),
            Src::Temp(temp) => Some((1, temp)),
            Src::JobWide(_) => None,
        };
        for (number, instr) in program.code.iter().enumerate() {
            let sources = || reads(program, instr).filter_map(read);
            let ready = sources().filter_map(|from| readable.get(&from)).max();
            let to = instr.to().map(key);
            let free = to.and_then(|to| writable.get(&to));
            let level = ready.copied().unwrap_or(0).max(free.copied().unwrap_or(0));
            for from in sources() {
                let next = writable.entry(from).or_insert(0);
                *next = (*next).max(level + 1);
                if let (1, temp) = from {
                    let end = last.entry(temp).or_insert(level);
                    *end = level.max(*end);
                }
            }
            if let Some(to) = to {
                readable.insert(to, level + 1);
                writable.insert(to, level + 1);
                if let (1, temp) = to {
                    last.insert(temp, level);
                }
            }
            if levels.len() <= level {
                levels.resize_with(level + 1, Vec::new);
            }
            levels[level].push(number);
        }
        let (places, temps) = places(program, &levels, &last);
        Schedule {
            program,
            levels,
            places,
            temps,
        }
    }

    /// The program, with temps where they are: instructions in order, and pairs.
    fn source(&self, src: Src) -> Result<u32, Fault> {
        match src {
            Src::Slot(slot) => operand(0, slot),
            Src::Temp(temp) => operand(1, self.place(temp)?),
            Src::JobWide(job_value) => operand(2, job_value),
        }
    }

    fn target(&self, dst: Dst) -> Result<u32, Fault> {
        match dst {
            Dst::Slot(slot) => operand(0, slot),
            Dst::Temp(temp) => operand(1, self.place(temp)?),
        }
    }

    fn place(&self, temp: u32) -> Result<u32, Fault> {
        let place = self.places.get(&temp).copied();
        place.ok_or(Fault::Program("a temp that nothing has written"))
    }

    fn code(&self) -> impl Iterator<Item = &'a Instr> {
        let numbers = self.levels.iter().flatten();
        numbers.map(|number| &self.program.code[*number])
    }
}

/// Places of temps, each from the level that writes it to the last that reads it.
fn places(
    program: &Program,
    levels: &[Vec<usize>],
    last: &BTreeMap<u32, usize>,
) -> (BTreeMap<u32, u32>, u32) {
    let mut places = BTreeMap::new();
    let (mut free, mut all) = (Vec::new(), 0);
    let mut ends: Vec<Vec<u32>> = vec![Vec::new(); levels.len()];
    for (level, numbers) in levels.iter().enumerate() {
        if let Some(before) = level.checked_sub(1) {
            free.append(&mut ends[before]);
        }
        for number in numbers {
            let Some(Dst::Temp(temp)) = program.code[*number].to() else {
                continue;
            };
            let place = free.pop().unwrap_or_else(|| {
                all += 1;
                all - 1
            });
            places.insert(temp, place);
            let end = last.get(&temp).map_or(level, |end| *end.max(&level));
            ends[end].push(place);
        }
    }
    (places, all)
}

impl Code {
    /// Threads that have something to do in so many columns: warps have 32 of them.
    pub(super) fn work(&self, columns: u64) -> u64 {
        u64::from(self.widest).saturating_mul(columns.next_multiple_of(32))
    }

    /// Compiles a program that was checked.
    pub(super) fn of(program: &Program, layout: &Layout) -> Result<Self, Fault> {
        let ring = program.ring;
        if ring == Ring::Z32 {
            return Err(NARROW);
        }
        let parts = layout.regions[program.slots as usize].components;
        let schedule = Schedule::of(program);
        let (source, target) = (|src| schedule.source(src), |dst| schedule.target(dst));
        let mut words = Vec::with_capacity(program.code.len() * WORDS);
        let (mut rows, mut products, mut sums) = (Vec::new(), Vec::new(), Vec::new());
        let (mut outs, mut partial) = (BTreeSet::new(), 0);
        let mut places = BTreeSet::new();
        for instr in schedule.code() {
            let linear = |op, out, a, b, c| -> Result<_, Fault> {
                let [c0, c1, c2, c3] = constant(ring, c);
                Ok([op, target(out)?, a, b, c0, c1, c2, c3])
            };
            let instruction = match *instr {
                Instr::Add(a, b, out) => linear(ADD, out, source(a)?, source(b)?, 0)?,
                Instr::Sub(a, b, out) => linear(SUB, out, source(a)?, source(b)?, 0)?,
                Instr::Plus(a, c, out) => linear(PLUS, out, source(a)?, 0, c)?,
                Instr::Times(a, c, out) => linear(TIMES, out, source(a)?, 0, c)?,
                Instr::Copy(a, out) => linear(COPY, out, source(a)?, 0, 0)?,
                Instr::Constant(c, out) => linear(CONSTANT, out, 0, 0, c)?,
                Instr::Product {
                    ref pairs,
                    out,
                    index,
                } => {
                    let count = pairs.end - pairs.start;
                    let out = operand(0, out)?;
                    rows.push([PRODUCT, out, index, 0]);
                    [PRODUCT, out, index, pairs.start, count, 0, 0, 0]
                }
                Instr::ProductSum {
                    ref pairs,
                    out,
                    index,
                } => {
                    let count = pairs.end - pairs.start;
                    products.push([PRODUCT_SUM, out, index, partial]);
                    let own = partial;
                    partial += Form::MOST_CROSSES as u32;
                    if !outs.insert(out) || !places.insert(index) {
                        return Err(unsupported("sums that are written twice by a program"));
                    }
                    [PRODUCT_SUM, out, index, pairs.start, count, own, 0, 0]
                }
                Instr::Sum(a, out) => {
                    sums.push([SUM, out, 0, partial]);
                    let own = partial;
                    partial += u32::from(parts);
                    if !outs.insert(out) {
                        return Err(unsupported("sums that are written twice by a program"));
                    }
                    [SUM, out, source(a)?, own, 0, 0, 0, 0]
                }
            };
            words.extend(instruction);
        }
        // A launch ends all sums when all instructions are done.
        if program.job_wide == program.sums && partial > 0 {
            return Err(unsupported(
                "a program whose sums are values that all rows share",
            ));
        }
        let at = words.len() as u32;
        for (a, b) in &program.pairs {
            words.extend([source(*a)?, source(*b)?]);
        }
        words.resize(words.len().next_multiple_of(4), 0);
        let list = words.len() as u32;
        let counts = [rows.len(), products.len() + sums.len()].map(|count| count as u32);
        let product_sums = products.len() as u32;
        words.extend([rows, products, sums].concat().concat());
        let levels = words.len() as u32;
        let mut begin = 0;
        words.push(begin);
        for level in &schedule.levels {
            begin += level.len() as u32;
            words.push(begin);
        }
        let widest = schedule.levels.iter().map(Vec::len).max();
        Ok(Code {
            ring,
            regions: [program.slots, program.job_wide, program.sums],
            parts,
            temps: schedule.temps,
            depth: schedule.levels.len() as u32,
            widest: widest.unwrap_or(0) as u32,
            levels,
            pairs: at,
            products: list,
            numbers: program.products().0,
            counts,
            product_sums,
            partial,
            words,
        })
    }
}

/// A form as [`super::queue`] says it: components written, draws, cross terms, draws that are kept, which, and of each cross term three words.
pub(super) fn form(form: &Form) -> Result<[u64; 14], Fault> {
    let most = 8;
    let crosses = form.crosses.iter();
    let fits = crosses
        .clone()
        .all(|cross| cross.terms.len() <= most && cross.masks.len() <= most);
    if !fits || form.keeps.len() > most {
        return Err(unsupported("a form of more than eight terms"));
    }
    let bytes = |bytes: &mut dyn Iterator<Item = u8>| {
        bytes
            .enumerate()
            .fold(0, |word, (k, byte)| word | u64::from(byte) << (8 * k))
    };
    let mut words = [0; 14];
    words[0] = u64::from(form.writes());
    words[1] = form.calls() as u64;
    words[2] = form.crosses.len() as u64;
    words[3] = form.keeps.len() as u64;
    words[4] = bytes(&mut form.keeps.iter().map(|(call, to)| call << 4 | to));
    for (cross, words) in crosses.zip(words[5..].chunks_exact_mut(3)) {
        let counts = [cross.terms.len(), cross.masks.len(), usize::from(cross.to)];
        words[0] = bytes(&mut counts.into_iter().map(|count| count as u8));
        words[1] = bytes(&mut cross.terms.iter().map(|(a, b)| a << 4 | b));
        let masks = cross.masks.iter();
        words[2] = bytes(&mut masks.map(|(call, minus)| call | u8::from(*minus) << 7));
    }
    Ok(words)
}
