//! From a program to a tape: temps get scratch rows, chains of XOR become one instruction, products are batched.

mod fuse;
pub(super) mod shapes;

use std::collections::{BTreeMap, BTreeSet};

use veil_math::Ring;

use fuse::{Fused, for_sources, fuse};
use shapes::Component;

use super::exec::templates;
use crate::layout::{ColumnType, Region};
use crate::program::{Dst, Instr, Program, Src};

/// Products executed together: enough to fill the AES pipeline when rows are few, few enough that their operands stay in L1.
pub(super) const BATCH: usize = 8;

/// The same of programs over labels: as many gates of one row as are worked on side by side.
pub(super) const LABEL_BATCH: usize = 16;

/// No job-wide value in a [`TapeOp::Xor`].
pub(super) const NO_JOB_WIDE: u32 = u32::MAX;

/// An operand or result: a row number, slots first, then scratch rows.
pub(super) type Row = u32;

/// An instruction of the tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TapeOp {
    /// `xors[start..][..len]`: a run of out = a ^ b and out = a ^ b ^ c, by far the most frequent instructions. Bits.
    Xors { start: u32, len: u32 },
    /// out = XOR of `srcs[start..][..len]`, of the constant 1 if `one`, and of a job-wide value unless it is [`NO_JOB_WIDE`]. Bits.
    Xor {
        start: u32,
        len: u16,
        one: bool,
        job_value: u32,
        out: Row,
    },
    /// `args[start..]`: `uses` times what the template `of` reads and writes. Bits.
    Templates { of: u16, start: u32, uses: u32 },
    /// out = a + b. Rings.
    Add { a: Row, b: Row, out: Row },
    /// out = a - b. Rings.
    Sub { a: Row, b: Row, out: Row },
    /// out = a + constants\[c\]. Rings.
    Plus { a: Row, c: u32, out: Row },
    /// out = a · constants\[c\]. Rings.
    Times { a: Row, c: u32, out: Row },
    /// out = constants\[c\]. Rings.
    Constant { c: u32, out: Row },
    /// out = the value of `job_value` in every row.
    Spread { job_value: u32, out: Row },
    /// `products[start..][..len]`.
    Products { start: u32, len: u32 },
    /// `sums[at]`.
    ProductSum { at: u32 },
    /// sums region \[out\] = Σ_rows a. Rings.
    Sum { a: Row, out: u32 },
}

/// out = a ^ b, and ^ c unless `c` is [`NO_ROW`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Xor {
    pub(super) a: Row,
    pub(super) b: Row,
    pub(super) c: Row,
    pub(super) out: Row,
}

/// No third operand of a [`Xor`].
pub(super) const NO_ROW: Row = Row::MAX;

/// A product: `pairs[start..][..len]`, to slot or sum `out`, place `index` in the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Product {
    pub(super) start: u32,
    pub(super) len: u32,
    pub(super) out: u32,
    pub(super) index: u32,
}

/// A compiled program.
pub(super) struct Tape {
    pub(super) ring: Ring,
    pub(super) slots: u16,
    pub(super) job_wide: u16,
    pub(super) sums_region: u16,
    /// Scratch rows behind the slots.
    pub(super) scratch: u32,
    pub(super) ops: Vec<TapeOp>,
    pub(super) xors: Vec<Xor>,
    pub(super) srcs: Vec<Row>,
    /// Of templates: rows that are read, rows that are written, job-wide values.
    pub(super) args: Vec<u32>,
    pub(super) constants: Vec<u128>,
    pub(super) pairs: Vec<(Row, Row)>,
    pub(super) products: Vec<Product>,
    pub(super) sums: Vec<Product>,
    /// Length of the message of row products, and of that of sums.
    pub(super) message_len: [u32; 2],
}

/// Compiles a checked program for a region of slots.
pub(super) fn compile(program: &Program, slots: &Region) -> Tape {
    let most = if slots.column == ColumnType::Labels {
        LABEL_BATCH
    } else {
        BATCH
    };
    // Gates of labels have no templates: a sum of them is a few instructions beside a hash.
    let bits = slots.column == ColumnType::Rows(Ring::Bits);
    let slots = slots.count;
    let fused = fuse(program, slots);
    let mut templates = if bits {
        Found::of(&fused, program.temps, slots)
    } else {
        Found::default()
    };
    let mut c = Compiler {
        tape: Tape {
            ring: program.ring,
            slots: program.slots,
            job_wide: program.job_wide,
            sums_region: program.sums,
            scratch: 0,
            ops: Vec::new(),
            xors: Vec::new(),
            srcs: Vec::new(),
            args: Vec::new(),
            constants: Vec::new(),
            pairs: Vec::new(),
            products: Vec::new(),
            sums: Vec::new(),
            message_len: program.products().into(),
        },
        slots,
        rows: PerValue::new(program.temps),
        free: Vec::new(),
        uses: last_uses(&fused, program.temps),
        results: vec![0; slots as usize],
        batch: 0,
        most,
        waiting: Vec::new(),
    };
    for (at, instr) in fused.iter().enumerate() {
        if let Some((of, component)) = templates.first.remove(&at) {
            c.template(of, &component);
        }
        c.emit(at, instr, templates.members.contains(&at));
    }
    c.flush();
    c.tape
}

/// The components of a program that there are templates of.
#[derive(Default)]
struct Found {
    /// By their first instruction, where all of a component is done.
    first: BTreeMap<usize, (u16, Component)>,
    /// All their instructions.
    members: BTreeSet<usize>,
}

impl Found {
    fn of(code: &[Fused], temps: u32, slots: u32) -> Self {
        let components = shapes::components(code, temps, slots).into_iter();
        let known = |component: Component| {
            let of = templates::find(&component.shape)?;
            Some((of, component))
        };
        let known: Vec<_> = components.filter_map(known).collect();
        let mut found = Found::default();
        if known.is_empty() {
            return found;
        }
        let touched = shapes::Touched::of(code, slots);
        for (of, component) in known {
            if touched.may_begin_at_the_first(&component, code) {
                found.members.extend(&component.members);
                found.first.insert(component.members[0], (of, component));
            }
        }
        found
    }
}

/// Something for each temp and job-wide value: an array, since compiling is part of every run.
struct PerValue<T> {
    temps: usize,
    values: Vec<Option<T>>,
}

impl<T: Copy> PerValue<T> {
    fn new(temps: u32) -> Self {
        PerValue {
            temps: temps as usize,
            values: vec![None; temps as usize],
        }
    }

    fn index(&self, src: Src) -> Option<usize> {
        match src {
            Src::Slot(_) => None,
            Src::Temp(t) => Some(t as usize),
            Src::JobWide(u) => Some(self.temps + u as usize),
        }
    }

    fn get(&self, src: Src) -> Option<T> {
        self.index(src)
            .and_then(|k| self.values.get(k).copied().flatten())
    }

    fn set(&mut self, src: Src, value: T) {
        if let Some(k) = self.index(src) {
            if k >= self.values.len() {
                self.values.resize(k + 1, None);
            }
            self.values[k] = Some(value);
        }
    }

    fn take(&mut self, src: Src) -> Option<T> {
        let k = self.index(src)?;
        self.values.get_mut(k).and_then(Option::take)
    }
}

/// For each temp (and job-wide value) the last instruction that reads it.
fn last_uses(code: &[Fused], temps: u32) -> PerValue<usize> {
    let mut uses = PerValue::new(temps);
    for (at, instr) in code.iter().enumerate() {
        for_sources(instr, |src| uses.set(src, at));
    }
    uses
}

struct Compiler {
    tape: Tape,
    slots: u32,
    /// Scratch row of each live temp or spread job-wide value.
    rows: PerValue<Row>,
    free: Vec<Row>,
    uses: PerValue<usize>,
    /// For each slot, how many products there are once the last one that it gets the result of is one.
    results: Vec<u32>,
    /// First product of the batch that is being filled.
    batch: usize,
    /// Products of a batch, at most.
    most: usize,
    /// Rows that products of the batch read: free once it is flushed.
    waiting: Vec<Row>,
}

impl Compiler {
    fn fresh(&mut self) -> Row {
        self.free.pop().unwrap_or_else(|| {
            self.tape.scratch += 1;
            self.slots + self.tape.scratch - 1
        })
    }

    fn read(&mut self, src: Src) -> Row {
        match src {
            Src::Slot(s) => {
                self.flush_if_awaited(s);
                s
            }
            Src::Temp(_) => self
                .rows
                .get(src)
                .expect("a checked program reads what was written"),
            Src::JobWide(job_value) => {
                if let Some(row) = self.rows.get(src) {
                    return row;
                }
                let out = self.fresh();
                self.tape.ops.push(TapeOp::Spread { job_value, out });
                self.rows.set(src, out);
                out
            }
        }
    }

    fn write(&mut self, dst: Dst) -> Row {
        match dst {
            Dst::Slot(s) => {
                self.flush_if_awaited(s);
                self.flush_if_read(s);
                s
            }
            Dst::Temp(t) => {
                let row = self.fresh();
                self.rows.set(Src::Temp(t), row);
                row
            }
        }
    }

    /// A product of the batch whose result is in slot `s` must run before that is read or overwritten. Only labels have such.
    fn flush_if_awaited(&mut self, s: Row) {
        if self.results[s as usize] as usize > self.batch {
            self.flush();
        }
    }

    /// Products of the batch that read slot `s` must run before it is overwritten.
    fn flush_if_read(&mut self, s: Row) {
        let waits = self.tape.products[self.batch..].iter().any(|p| {
            self.tape.pairs[p.start as usize..][..p.len as usize]
                .iter()
                .any(|(a, b)| *a == s || *b == s)
        });
        if waits {
            self.flush();
        }
    }

    fn flush(&mut self) {
        let len = self.tape.products.len() - self.batch;
        if len > 0 {
            self.tape.ops.push(TapeOp::Products {
                start: self.batch as u32,
                len: len as u32,
            });
            self.batch = self.tape.products.len();
        }
        self.free.append(&mut self.waiting);
    }

    /// All of a component.
    fn template(&mut self, of: u16, component: &Component) {
        let start = self.tape.args.len() as u32;
        for row in &component.rows {
            let row = self.read(*row);
            self.tape.args.push(row);
        }
        for out in &component.outs {
            let out = self.write(*out);
            self.tape.args.push(out);
        }
        self.tape.args.extend(&component.job_values);
        match self.tape.ops.last_mut() {
            Some(TapeOp::Templates { of: last, uses, .. }) if *last == of => *uses += 1,
            _ => self.tape.ops.push(TapeOp::Templates { of, start, uses: 1 }),
        }
    }

    /// Emits an instruction, unless it is `done`.
    fn emit(&mut self, at: usize, instr: &Fused, done: bool) {
        let mut dying = Vec::new();
        for_sources(instr, |src| {
            if self.uses.get(src) == Some(at) && !dying.contains(&src) {
                dying.push(src);
            }
        });
        match instr {
            Fused::Xor { .. } if done => {}
            Fused::Xor { srcs, one, out } => {
                // One job-wide value that is not spread for another instruction goes into the instruction itself.
                let inline = srcs
                    .iter()
                    .position(|s| matches!(s, Src::JobWide(_)) && self.rows.get(*s).is_none());
                let job_value = match inline.map(|k| srcs[k]) {
                    Some(Src::JobWide(u)) => u,
                    _ => NO_JOB_WIDE,
                };
                let others = srcs.iter().enumerate().filter(|(k, _)| Some(*k) != inline);
                let rows: Vec<Row> = others.map(|(_, s)| self.read(*s)).collect();
                let out = self.write(*out);
                match *rows {
                    [a, b] if !one && job_value == NO_JOB_WIDE => self.short(Xor {
                        a,
                        b,
                        c: NO_ROW,
                        out,
                    }),
                    [a, b, c] if !one && job_value == NO_JOB_WIDE => {
                        self.short(Xor { a, b, c, out });
                    }
                    _ => {
                        let start = self.tape.srcs.len() as u32;
                        self.tape.srcs.extend(&rows);
                        let len = rows.len() as u16;
                        self.tape.ops.push(TapeOp::Xor {
                            start,
                            len,
                            one: *one,
                            job_value,
                            out,
                        });
                    }
                }
            }
            Fused::Product {
                pairs,
                out,
                index,
                sum,
            } => {
                let start = self.tape.pairs.len() as u32;
                let rows: Vec<_> = pairs
                    .iter()
                    .map(|(a, b)| (self.read(*a), self.read(*b)))
                    .collect();
                self.tape.pairs.extend(&rows);
                let entry = Product {
                    start,
                    len: rows.len() as u32,
                    out: *out,
                    index: *index,
                };
                if *sum {
                    self.tape.ops.push(TapeOp::ProductSum {
                        at: self.tape.sums.len() as u32,
                    });
                    self.tape.sums.push(entry);
                } else {
                    // Within a batch products run in order, but an earlier one must not write what a later one reads or writes: the batch
                    // was flushed where it does. A slot read by an earlier one may be overwritten only after it ran, which the order gives.
                    self.flush_if_awaited(*out);
                    self.tape.products.push(entry);
                    self.results[*out as usize] = self.tape.products.len() as u32;
                }
            }
            Fused::Plain(instr) => self.plain(instr),
        }
        for src in dying {
            if let Some(row) = self.rows.take(src) {
                // Products of the batch may still read it.
                let batch_is_open = self.tape.products.len() > self.batch;
                if batch_is_open {
                    self.waiting.push(row);
                } else {
                    self.free.push(row);
                }
            }
        }
        // A result without a reader: its row is free again.
        if let Fused::Xor {
            out: Dst::Temp(t), ..
        } = instr
            && self.uses.get(Src::Temp(*t)).is_none()
            && let Some(row) = self.rows.take(Src::Temp(*t))
        {
            self.free.push(row);
        }
        if self.tape.products.len() - self.batch >= self.most {
            self.flush();
        }
    }

    /// Adds to the run of short XORs that ends the tape, or starts one.
    fn short(&mut self, xor: Xor) {
        self.tape.xors.push(xor);
        match self.tape.ops.last_mut() {
            Some(TapeOp::Xors { len, .. }) => *len += 1,
            _ => self.tape.ops.push(TapeOp::Xors {
                start: self.tape.xors.len() as u32 - 1,
                len: 1,
            }),
        }
    }

    fn plain(&mut self, instr: &Instr) {
        let mut constant = |c: u128| {
            self.tape.constants.push(self.tape.ring.reduce(c));
            self.tape.constants.len() as u32 - 1
        };
        let op = match *instr {
            Instr::Add(a, b, out) | Instr::Sub(a, b, out) => {
                let (a, b) = (self.read(a), self.read(b));
                let out = self.write(out);
                if matches!(instr, Instr::Add(..)) {
                    TapeOp::Add { a, b, out }
                } else {
                    TapeOp::Sub { a, b, out }
                }
            }
            Instr::Plus(a, c, out) => {
                let c = constant(c);
                let a = self.read(a);
                TapeOp::Plus {
                    a,
                    c,
                    out: self.write(out),
                }
            }
            Instr::Times(a, c, out) => {
                let c = constant(c);
                let a = self.read(a);
                TapeOp::Times {
                    a,
                    c,
                    out: self.write(out),
                }
            }
            Instr::Copy(a, out) => {
                let c = constant(1);
                let a = self.read(a);
                TapeOp::Times {
                    a,
                    c,
                    out: self.write(out),
                }
            }
            Instr::Constant(c, out) => {
                let c = constant(c);
                TapeOp::Constant {
                    c,
                    out: self.write(out),
                }
            }
            Instr::Sum(a, out) => TapeOp::Sum {
                a: self.read(a),
                out,
            },
            Instr::Product { .. } | Instr::ProductSum { .. } => {
                unreachable!("fusion made them products")
            }
        };
        self.tape.ops.push(op);
    }
}
