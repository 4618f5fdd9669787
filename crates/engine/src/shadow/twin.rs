//! The layers of a plan on clear values: the twin of what the parties compute on shares.

use veil_device::{Dst, Instr, Program, Src};
use veil_math::Ring;

/// Values of a wire in all rows of a chunk: of bits, 128 rows in a word; else one element in each.
pub(super) type Column = Vec<u128>;

/// One chunk in the clear.
pub(super) struct Twin {
    ring: Ring,
    rows: u32,
    slots: Vec<Column>,
    job_wide: Vec<u128>,
    pub(super) sums: Vec<u128>,
    /// Products of the layer that ran last: one element per row, and one in all.
    pub(super) products: Vec<Column>,
    pub(super) summed: Vec<u128>,
}

impl Twin {
    pub(super) fn new(
        ring: Ring,
        rows: u32,
        (slots, sums): (u32, u32),
        job_wide: Vec<u128>,
    ) -> Self {
        Twin {
            ring,
            rows,
            slots: vec![Vec::new(); slots as usize],
            job_wide,
            sums: vec![0; sums as usize],
            products: Vec::new(),
            summed: Vec::new(),
        }
    }

    /// Puts values that are packed as on a link into slots from `first` on.
    pub(super) fn fill(&mut self, first: u32, packed: &[u8]) {
        let size = self.ring.bytes(u64::from(self.rows)) as usize;
        for (slot, bytes) in (first as usize..).zip(packed.chunks(size.max(1))) {
            self.slots[slot] = unpack(self.ring, bytes);
        }
    }

    /// Puts a job-wide value into a slot.
    pub(super) fn spread(&mut self, slot: u32, value: u128) {
        self.slots[slot as usize] = self.constant(value);
    }

    /// The column of a slot.
    pub(super) fn slot(&self, slot: u32) -> &Column {
        &self.slots[slot as usize]
    }

    fn words(&self) -> usize {
        match self.ring {
            Ring::Bits => self.rows.div_ceil(128) as usize,
            Ring::Z32 | Ring::Z64 | Ring::Z128 => self.rows as usize,
        }
    }

    /// A value in every row.
    fn constant(&self, value: u128) -> Column {
        let word = match self.ring {
            Ring::Bits if value & 1 == 1 => u128::MAX,
            Ring::Bits => 0,
            ring => ring.reduce(value),
        };
        vec![word; self.words()]
    }

    /// Runs one layer.
    pub(super) fn run(&mut self, program: &Program) {
        let (products, sums) = program.products();
        self.products = vec![Vec::new(); products as usize];
        self.summed = vec![0; sums as usize];
        let mut temps: Vec<Column> = vec![Vec::new(); program.temps as usize];
        for instr in &program.code {
            let get = |src: Src| match src {
                Src::Slot(s) => self.slots[s as usize].clone(),
                Src::Temp(t) => temps[t as usize].clone(),
                Src::JobWide(u) => self.constant(self.job_wide[u as usize]),
            };
            let ring = self.ring;
            let add = |a, b| match ring {
                Ring::Bits => a ^ b,
                ring => ring.add(a, b),
            };
            let sub = |a, b| match ring {
                Ring::Bits => a ^ b,
                ring => ring.sub(a, b),
            };
            let mul = |a, b| match ring {
                Ring::Bits => a & b,
                ring => ring.mul(a, b),
            };
            let total = |column: &Column| column.iter().fold(0, |sum, x| ring.add(sum, *x));
            let inner = |pairs: &std::ops::Range<u32>| {
                let pairs = &program.pairs[pairs.start as usize..pairs.end as usize];
                let zero = vec![0; self.words()];
                pairs.iter().fold(zero, |sum, (a, b)| {
                    let product = each(&get(*a), &get(*b), mul);
                    each(&sum, &product, add)
                })
            };
            let (value, to) = match instr {
                Instr::Add(a, b, to) => (each(&get(*a), &get(*b), add), *to),
                Instr::Sub(a, b, to) => (each(&get(*a), &get(*b), sub), *to),
                Instr::Plus(a, c, to) => (each(&get(*a), &self.constant(*c), add), *to),
                Instr::Times(a, c, to) => (each(&get(*a), &self.constant(*c), mul), *to),
                Instr::Copy(a, to) => (get(*a), *to),
                Instr::Constant(c, to) => (self.constant(*c), *to),
                Instr::Product { pairs, out, index } => {
                    let value = inner(pairs);
                    self.products[*index as usize].clone_from(&value);
                    (value, Dst::Slot(*out))
                }
                Instr::ProductSum { pairs, out, index } => {
                    let sum = total(&inner(pairs));
                    self.summed[*index as usize] = sum;
                    self.sums[*out as usize] = sum;
                    continue;
                }
                Instr::Sum(a, out) => {
                    let sum = total(&get(*a));
                    self.sums[*out as usize] = sum;
                    continue;
                }
            };
            match to {
                Dst::Slot(s) => self.slots[s as usize] = value,
                Dst::Temp(t) => temps[t as usize] = value,
            }
        }
    }
}

fn each(a: &[u128], b: &[u128], of: impl Fn(u128, u128) -> u128) -> Column {
    a.iter().zip(b).map(|(a, b)| of(*a, *b)).collect()
}

/// A column as on a link.
pub(super) fn unpack(ring: Ring, bytes: &[u8]) -> Column {
    let size = match ring {
        Ring::Z32 => 4,
        Ring::Z64 => 8,
        Ring::Bits | Ring::Z128 => 16,
    };
    let word = |bytes: &[u8]| {
        let mut word = [0; 16];
        word[..bytes.len()].copy_from_slice(bytes);
        u128::from_le_bytes(word)
    };
    bytes.chunks(size).map(word).collect()
}

/// The first row in which two columns differ, and what is in it. Beyond the last row anything may be.
pub(super) fn differ(ring: Ring, rows: u32, a: &[u128], b: &[u128]) -> Option<(u32, u128, u128)> {
    let words = a.iter().zip(b).enumerate();
    for (k, (a, b)) in words {
        let (row, a, b) = match ring {
            Ring::Bits => {
                let bit = (a ^ b).trailing_zeros();
                if bit == 128 {
                    continue;
                }
                (k as u32 * 128 + bit, a >> bit & 1, b >> bit & 1)
            }
            _ if a == b => continue,
            _ => (k as u32, *a, *b),
        };
        return (row < rows).then_some((row, a, b));
    }
    None
}
