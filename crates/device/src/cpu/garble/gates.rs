//! Which gates are worked on side by side: consecutive rows of one product, or, where there are fewer rows than lanes, gates of
//! neighbouring products.

#![expect(
    clippy::inline_always,
    clippy::needless_range_loop,
    reason = "everything is inlined into the function that enables the instruction set, and closures would not be"
)]

use super::super::tape::{Product, Row};
use super::Run;
use super::blocks::{Blocks, LANES};

/// Addresses of a workspace's labels. All derived once, from a checked program and layout.
#[derive(Clone, Copy)]
pub(super) struct Wires {
    pub(super) base: *mut u8,
    /// Offset of slot 0.
    pub(super) slots: usize,
    /// Bytes of a slot: whole vectors, unless there are fewer rows than lanes.
    pub(super) slot: usize,
    pub(super) rows: usize,
}

impl Wires {
    #[inline(always)]
    pub(super) fn at(&self, row: Row) -> *mut u8 {
        self.base
            .wrapping_add(self.slots + row as usize * self.slot)
    }

    /// The same where there is one row: a label is a slot.
    #[inline(always)]
    pub(super) fn label(&self, row: Row) -> *mut u8 {
        self.base.wrapping_add(self.slots + 16 * row as usize)
    }

    /// Whether the rows of one product are too few for all lanes.
    pub(super) fn narrow(&self) -> bool {
        self.rows < LANES
    }
}

/// A label of each of four gates: side by side from the first address on, or each at its own.
#[derive(Clone, Copy)]
pub(super) struct LabelPointers([*mut u8; LANES]);

impl LabelPointers {
    #[inline(always)]
    pub(super) unsafe fn load<B: Blocks, const NARROW: bool>(self) -> B {
        // SAFETY: the caller's, here and below: places are of labels of the workspace.
        unsafe {
            if NARROW {
                let [a, b, c, d] = self.0;
                B::gather([a, b, c, d])
            } else {
                B::load(self.0[0])
            }
        }
    }

    /// Loads from a message, which ends with its last label.
    #[inline(always)]
    pub(super) unsafe fn load_part<B: Blocks, const NARROW: bool>(self, lanes: usize) -> B {
        unsafe {
            if NARROW || lanes == LANES {
                self.load::<B, NARROW>()
            } else {
                B::load_part(self.0[0], lanes)
            }
        }
    }

    /// Stores to a slot, which is whole vectors.
    #[inline(always)]
    pub(super) unsafe fn store<B: Blocks, const NARROW: bool>(self, labels: B, lanes: usize) {
        unsafe {
            if NARROW {
                labels.scatter(self.0, lanes);
            } else {
                labels.store(self.0[0]);
            }
        }
    }

    /// Stores to a message.
    #[inline(always)]
    pub(super) unsafe fn store_part<B: Blocks, const NARROW: bool>(self, labels: B, lanes: usize) {
        unsafe {
            if NARROW {
                labels.scatter(self.0, lanes);
            } else if lanes == LANES {
                labels.store(self.0[0]);
            } else {
                labels.store_part(self.0[0], lanes);
            }
        }
    }

    /// The low halves, to a message of halves.
    #[inline(always)]
    pub(super) unsafe fn store_halves<B: Blocks, const NARROW: bool>(
        self,
        labels: B,
        lanes: usize,
    ) {
        unsafe {
            if NARROW {
                let mut words = [0u8; 8 * LANES];
                labels.store_halves(words.as_mut_ptr(), LANES);
                for k in 0..lanes {
                    std::ptr::copy_nonoverlapping(words.as_ptr().add(8 * k), self.0[k], 8);
                }
            } else {
                labels.store_halves(self.0[0], lanes);
            }
        }
    }

    /// Low halves from a message of halves.
    #[inline(always)]
    pub(super) unsafe fn load_halves<B: Blocks, const NARROW: bool>(self, lanes: usize) -> B {
        unsafe {
            if NARROW {
                let mut words = [0u8; 8 * LANES];
                for k in 0..lanes {
                    std::ptr::copy_nonoverlapping(self.0[k], words.as_mut_ptr().add(8 * k), 8);
                }
                B::load_halves(words.as_ptr(), LANES)
            } else {
                B::load_halves(self.0[0], lanes)
            }
        }
    }
}

/// Four gates.
#[derive(Clone, Copy)]
pub(super) struct GateGroup {
    pub(super) a: LabelPointers,
    pub(super) b: LabelPointers,
    pub(super) out: LabelPointers,
    /// How many of the lanes are gates; the others repeat the last one, or lie beyond the last row.
    pub(super) lanes: usize,
    /// Number in the batch, and row, of each lane; in rows side by side, of lane 0.
    pub(super) which: [(usize, usize); LANES],
    /// Place in the messages of the product of each lane.
    pub(super) index: [u32; LANES],
}

impl GateGroup {
    /// The numbers of the gates.
    #[inline(always)]
    pub(super) fn numbers<const NARROW: bool>(&self, run: &Run<'_>) -> [u64; LANES] {
        let mut numbers = [0; LANES];
        for k in 0..LANES {
            let (lane, row) = if NARROW {
                (k, self.which[k].1)
            } else {
                (0, self.which[0].1 + k)
            };
            let product = run.first + u64::from(self.index[lane]);
            numbers[k] = (product << crate::garble::ROW_BITS) + row as u64;
        }
        numbers
    }

    /// Where entry `k` of the tables of kind `kind` is, whose labels have `bytes` bytes, of which a product has `count`.
    #[inline(always)]
    pub(super) fn table<const NARROW: bool>(
        &self,
        wires: &Wires,
        run: &Run<'_>,
        k: usize,
        (bytes, count): (usize, usize),
    ) -> LabelPointers {
        let mut place = [wires.base; LANES];
        for lane in 0..LANES {
            if NARROW || lane == 0 {
                let entry = self.index[lane] as usize * count + k;
                let at = (entry * wires.rows + self.which[lane].1) * bytes;
                place[lane] = wires.base.wrapping_add(run.tables[0] + at);
            }
        }
        LabelPointers(place)
    }

    /// Number of the block of a lane where a product has one for each row.
    #[inline(always)]
    pub(super) fn block(&self, wires: &Wires, run: &Run<'_>, lane: usize) -> usize {
        (run.at + self.index[lane] as usize) * wires.rows + self.which[lane].1
    }

    /// Blocks of an array of such blocks, at `at`.
    #[inline(always)]
    pub(super) fn array<const NARROW: bool>(
        &self,
        wires: &Wires,
        run: &Run<'_>,
        at: usize,
    ) -> LabelPointers {
        let mut place = [wires.base; LANES];
        for lane in 0..LANES {
            if NARROW || lane == 0 {
                place[lane] = wires
                    .base
                    .wrapping_add(at + 16 * self.block(wires, run, lane));
            }
        }
        LabelPointers(place)
    }

    /// Where the byte with a lane's row of item `k` of bits of the tables is.
    #[inline(always)]
    fn byte(&self, wires: &Wires, run: &Run<'_>, k: usize, lane: usize) -> *mut u8 {
        let entry = self.index[lane] as usize * 5 + k;
        let at = entry * wires.rows.div_ceil(8) + self.which[lane].1 / 8;
        wires.base.wrapping_add(run.tables[1] + at)
    }

    /// Puts bit `k` of the tables of all lanes into the message. Rows are put in order; the first of a byte clears the others.
    #[inline(always)]
    pub(super) unsafe fn put_bits<const NARROW: bool>(
        &self,
        wires: &Wires,
        run: &Run<'_>,
        k: usize,
        bits: u8,
    ) {
        // SAFETY: the message has a byte for every eight rows (checked by the caller of the run).
        unsafe {
            if !NARROW {
                let to = self.byte(wires, run, k, 0);
                let bits = bits & ((1 << self.lanes) - 1);
                if self.which[0].1.is_multiple_of(8) {
                    to.write(bits);
                } else {
                    to.write(to.read() | bits << LANES);
                }
                return;
            }
            for lane in 0..self.lanes {
                let (to, row) = (self.byte(wires, run, k, lane), self.which[lane].1);
                let bit = (bits >> lane & 1) << row;
                let before = if row == 0 { 0 } else { to.read() };
                to.write(before | bit);
            }
        }
    }

    /// Bit `k` of the tables of all lanes.
    #[inline(always)]
    pub(super) unsafe fn bits<const NARROW: bool>(
        &self,
        wires: &Wires,
        run: &Run<'_>,
        k: usize,
    ) -> u8 {
        // SAFETY: as `put_bits`.
        unsafe {
            if !NARROW {
                let byte = self.byte(wires, run, k, 0).read();
                return byte >> (self.which[0].1 % 8) & 0xf;
            }
            let mut bits = 0;
            for lane in 0..self.lanes {
                let byte = self.byte(wires, run, k, lane).read();
                bits |= (byte >> self.which[lane].1 & 1) << lane;
            }
            bits
        }
    }
}

/// Walks over the gates of a batch of products.
pub(super) struct GateWalk<'a> {
    products: &'a [Product],
    pairs: &'a [(Row, Row)],
    wires: Wires,
    /// Of the next gate: number of its product in the batch, and row.
    next: (usize, usize),
    /// Gates that are left; where rows are side by side, vectors of them.
    left: usize,
}

impl<'a> GateWalk<'a> {
    #[inline(always)]
    pub(super) fn new<const NARROW: bool>(
        products: &'a [Product],
        pairs: &'a [(Row, Row)],
        wires: Wires,
    ) -> Self {
        let each = if NARROW {
            wires.rows
        } else {
            wires.rows.div_ceil(LANES)
        };
        GateWalk {
            products,
            pairs,
            wires,
            next: (0, 0),
            left: products.len() * each,
        }
    }

    /// Items that are left.
    #[inline(always)]
    pub(super) fn left<const NARROW: bool>(&self) -> usize {
        if NARROW {
            self.left.div_ceil(LANES)
        } else {
            self.left
        }
    }

    /// The gate after this one; after the last, the last.
    #[inline(always)]
    fn advance(&mut self, rows: usize) {
        let (p, row) = (self.next.0, self.next.1 + rows);
        self.next = if row >= self.wires.rows {
            ((p + 1).min(self.products.len() - 1), 0)
        } else {
            (p, row)
        };
    }

    /// The next four gates; there are some left.
    #[inline(always)]
    pub(super) fn next<const NARROW: bool>(&mut self) -> GateGroup {
        let none = LabelPointers([self.wires.base; LANES]);
        let mut gates = GateGroup {
            a: none,
            b: none,
            out: none,
            lanes: 0,
            which: [self.next; LANES],
            index: [0; LANES],
        };
        if NARROW {
            gates.lanes = self.left.min(LANES);
            self.left -= gates.lanes;
            for lane in 0..LANES {
                self.put(&mut gates, lane);
                if lane + 1 < gates.lanes || (lane + 1 == LANES && self.left > 0) {
                    self.advance(1);
                }
            }
        } else {
            gates.lanes = (self.wires.rows - self.next.1).min(LANES);
            self.left -= 1;
            self.put(&mut gates, 0);
            self.advance(LANES);
        }
        gates
    }

    /// The next gate as a lane of an item.
    #[inline(always)]
    fn put(&self, gates: &mut GateGroup, lane: usize) {
        let (p, row) = self.next;
        let (product, wires) = (&self.products[p], &self.wires);
        let (a, b) = self.pairs[product.start as usize];
        gates.a.0[lane] = wires.at(a).wrapping_add(16 * row);
        gates.b.0[lane] = wires.at(b).wrapping_add(16 * row);
        gates.out.0[lane] = wires.at(product.out).wrapping_add(16 * row);
        gates.which[lane] = (p, row);
        gates.index[lane] = product.index;
    }
}
