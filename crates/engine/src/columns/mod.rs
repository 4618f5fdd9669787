//! Columns of relations between passes: each party's components, in memory.
//!
//! Many lanes load and leave rows of a column at once. What is made of a column when it is taken is made here, of each component alone: bits of words, other
//! rows, and sums over the rows before. Memory is reached in the order of rows.

mod ordering;
mod room;
mod rows;
mod view;

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockWriteGuard};

use veil_job::Slice;
use veil_math::{bits_from_places, bits_to_words};
use veil_protocol::Gives;
use veil_protocol::passes::{ColumnForm, ColumnId, ColumnKind, ColumnPlan, PassProgram, Take};
use veil_session::Wiped;

use ordering::Ordering;
pub(crate) use room::Limit;
pub use room::{Room, columns_of_a_pass};
use rows::{Walk, cut, numbered, public, running, signed, spread, total};
use view::for_each_run;

/// Rows that are added up once, so that all rows before a chunk need not be for each.
const GRANULE: u64 = 512;

/// The columns of a run at one party.
pub(crate) struct Columns {
    program: Arc<PassProgram>,
    /// Components of a shared column.
    parts: usize,
    of: Vec<RwLock<Option<Column>>>,
    /// Memory of columns that no pass takes any more, for those that are left next: fresh memory takes as long as a pass over it. It is wiped with all
    /// others.
    spare: Mutex<Vec<Wiped<u8>>>,
    /// Rows that are being put in order.
    ordering: RwLock<Option<Ordering>>,
    /// What may be in memory, if that is bounded.
    limit: Option<Limit>,
}

struct Column {
    plan: ColumnPlan,
    /// Elements of all rows, of each component; none while they wait on the disk.
    components: Vec<Wiped<u8>>,
    /// Where they wait.
    away: Vec<u64>,
    /// Of integers, the sum of all rows before every [`GRANULE`] rows of each component, and of all rows; made when they are asked for.
    before: OnceLock<Vec<Wiped<u128>>>,
}

/// A lane asked for a column that no pass has left: a defect of a program, which is checked.
const NOT_THERE: &str = "a column is there from the pass that leaves it to the last that takes it";

impl Columns {
    /// Those of a program, at a party that holds so many components of a shared value; in as much memory as there is room, where that is bounded.
    pub(crate) fn new(program: Arc<PassProgram>, parts: usize, limit: Option<Limit>) -> Self {
        let of = program
            .columns()
            .iter()
            .map(|_| RwLock::new(None))
            .collect();
        Columns {
            program,
            parts,
            of,
            spare: Mutex::default(),
            ordering: RwLock::default(),
            limit,
        }
    }

    /// Makes room for what pass number `pass` leaves, at a party.
    pub(crate) fn begin(&self, pass: usize) {
        if self.parts == 0 {
            return;
        }
        for column in self.program.left_by(pass) {
            let plan = self.program.columns()[column.0 as usize];
            let components = match plan.kind {
                ColumnKind::Opened => 1,
                _ => self.parts,
            };
            // A move brings memory of its own.
            let whole = self.program.passes()[pass].rows().is_some();
            *self.write(column) = Some(self.room(plan, components, whole));
        }
        self.choose(pass);
    }

    /// A column, with memory if it is not brought.
    fn room(&self, plan: ColumnPlan, components: usize, whole: bool) -> Column {
        let bytes = plan.form.bytes() as usize * plan.rows as usize;
        let memory = |_| {
            if whole {
                self.memory(bytes)
            } else {
                Wiped::default()
            }
        };
        Column {
            plan,
            components: (0..components).map(memory).collect(),
            away: Vec::new(),
            before: OnceLock::new(),
        }
    }

    /// Makes what parties make of columns by themselves before pass number `pass`.
    pub(crate) fn make(&self, pass: usize) {
        if self.parts == 0 {
            return;
        }
        for made in self.program.made_before(pass) {
            let plan = self.program.columns()[made.column.0 as usize];
            let mut column = self.room(plan, self.parts, true);
            let slice = Slice {
                block: 0,
                first: 0,
                rows: made.rows,
            };
            for component in 0..self.parts {
                let into = &mut column.components[component];
                self.load(&made.take, (component, false), slice, None, into);
            }
            *self.write(made.column) = Some(column);
        }
    }

    /// Lets go of what no pass after number `pass` takes.
    pub(crate) fn end(&self, pass: usize) {
        for column in self.program.ending(pass) {
            let ended = self.write(column).take();
            if let (Some(ended), Some(limit)) = (&ended, &self.limit) {
                ended.away.iter().for_each(|place| limit.spill.free(*place));
            }
            let memory = ended.map(|column| column.components);
            memory
                .into_iter()
                .flatten()
                .for_each(|memory| self.give_back(memory));
        }
    }

    /// So many bytes, of any content: every row is left before it is taken.
    pub(crate) fn memory(&self, bytes: usize) -> Wiped<u8> {
        let mut spare = self.spare();
        // What came last is in the cache, if anything is.
        let fits = spare.iter().rposition(|memory| memory.len() == bytes);
        if let Some(at) = fits {
            return spare.swap_remove(at);
        }
        // Links exchange memory for that of messages, which has room for a byte more.
        let mut memory = vec![0; bytes + 1];
        memory.truncate(bytes);
        Wiped::from(memory)
    }

    /// Takes memory back for columns that are left later.
    pub(crate) fn give_back(&self, memory: Wiped<u8>) {
        if !memory.is_empty() {
            self.spare().push(memory);
        }
    }

    /// The memory of a component that a pass takes as it is and no later one takes.
    pub(crate) fn take_whole(&self, column: ColumnId, component: usize) -> Wiped<u8> {
        let mut guard = self.write(column);
        let column = guard.as_mut().expect(NOT_THERE);
        std::mem::take(&mut column.components[component])
    }

    /// Leaves all rows of a component: its memory.
    pub(crate) fn leave_whole(&self, column: ColumnId, component: usize, memory: Wiped<u8>) {
        let mut guard = self.write(column);
        let column = guard.as_mut().expect(NOT_THERE);
        let held = std::mem::replace(&mut column.components[component], memory);
        drop(guard);
        self.give_back(held);
    }

    fn spare(&self) -> MutexGuard<'_, Vec<Wiped<u8>>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wipes everything.
    pub(crate) fn wipe(&self) {
        self.spare().clear();
        for column in &self.of {
            *column.write().unwrap_or_else(PoisonError::into_inner) = None;
        }
        *self.ordering() = None;
    }

    fn write(&self, column: ColumnId) -> RwLockWriteGuard<'_, Option<Column>> {
        let lock = &self.of[column.0 as usize];
        lock.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn read<R>(&self, column: ColumnId, with: impl FnOnce(&Column) -> R) -> R {
        let lock = &self.of[column.0 as usize];
        let guard = lock.read().unwrap_or_else(PoisonError::into_inner);
        with(guard.as_ref().expect(NOT_THERE))
    }

    /// Takes rows of `slice` into one component of a port: as packed columns of `bits` bits, or as elements.
    ///
    /// `constants` says whether public constants act on the component.
    pub(crate) fn load(
        &self,
        take: &Take,
        (component, constants): (usize, bool),
        slice: Slice,
        bits: Option<u32>,
        into: &mut [u8],
    ) {
        let rows = slice.first as usize..slice.first as usize + slice.rows as usize;
        match take {
            Take::Of(_) | Take::Rows { .. } | Take::Turns { .. } | Take::View { .. } => {
                match bits {
                    // They come from their columns to where they are wanted.
                    None => self.gather(take, component, rows, into),
                    Some(width) => self.elements(take, component, rows, |bytes, from| {
                        spread(from, bytes, (0, width), into);
                    }),
                }
            }
            Take::Bits { of, first, count } => {
                self.elements(of, component, rows, |bytes, from| {
                    let these = (*first, *count);
                    if bits.is_some() {
                        spread(from, bytes, these, into);
                    } else {
                        let to = into.len() / (from.len() / bytes).max(1);
                        cut(from, bytes, these, to, into);
                    }
                });
            }
            Take::Numbered { of, bits: below } => {
                let to = into.len() / rows.len().max(1);
                let first = if constants { rows.start } else { usize::MAX };
                match of.as_deref() {
                    None => numbered((&[], 1), (0, 0), (first, *below), to, into),
                    Some(Take::Bits {
                        of,
                        first: low,
                        count,
                    }) => {
                        self.elements(of, component, rows, |bytes, from| {
                            numbered((from, bytes), (*low, *count), (first, *below), to, into);
                        });
                    }
                    Some(of) => self.elements(of, component, rows, |bytes, from| {
                        let all = (0, 8 * bytes as u32);
                        numbered((from, bytes), all, (first, *below), to, into);
                    }),
                }
            }
            Take::Compared { of, second } => {
                let now = self.ordering.read().unwrap_or_else(PoisonError::into_inner);
                let now = now.as_ref().expect(NOT_THERE);
                let places = now.search.pairs()[usize::from(*second)];
                // Rows behind the last comparison have none.
                let these = rows.start.min(places.len())..rows.end.min(places.len());
                let places = &places[these];
                let width = bits.expect("checked by PassProgram::new: comparisons are of bits");
                self.read(*of, |column| {
                    let bytes = column.plan.form.bytes() as usize;
                    let words = &column.components[component];
                    let follow = places.len() == rows.len()
                        && places.windows(2).all(|two| two[1] == two[0] + 1);
                    if let (true, Some(first)) = (follow, places.first()) {
                        // As of long segments: words are read where they are.
                        let from = &words[*first as usize * bytes..][..rows.len() * bytes];
                        spread(from, bytes, (0, width), into);
                    } else {
                        // Rows behind the last comparison have none, and are not looked at.
                        let place = |row: usize| places.get(row).map_or(0, |at| *at as usize);
                        let these = (0, width as usize);
                        bits_from_places((words, bytes), (rows.len(), place), these, into);
                    }
                });
            }
            Take::Within { first, end } => {
                into.fill(0);
                if constants {
                    let these = *first as usize..*end as usize;
                    for (j, _) in rows.enumerate().filter(|(_, row)| these.contains(row)) {
                        match bits {
                            None => into[j] = 1,
                            Some(_) => into[j / 8] |= 1 << (j % 8),
                        }
                    }
                }
            }
            Take::Public { integers, ring } => {
                into.fill(0);
                if constants {
                    public(*ring, &integers[rows], into);
                }
            }
            Take::Sums {
                of,
                row,
                constant,
                totals,
                ring,
            } => {
                let mut start = 0u128;
                for (times, column) in totals {
                    let total = self.read(*column, |column| column.before(component, None));
                    start = start.wrapping_add(signed(*times).wrapping_mul(total));
                }
                let mut each = 0;
                if constants {
                    let first = signed(*row).wrapping_mul(rows.start as u128);
                    start = start.wrapping_add(signed(*constant)).wrapping_add(first);
                    each = signed(*row);
                }
                match of {
                    None => match bits {
                        None => running(*ring, (start, each), None, into),
                        Some(width) => {
                            let bytes = ring.bytes(1) as usize;
                            let mut all = vec![0; rows.len() * bytes];
                            running(*ring, (start, each), None, &mut all);
                            spread(&all, bytes, (0, width), into);
                        }
                    },
                    Some(of) => self.read(*of, |column| {
                        let before = column.before(component, Some(rows.start));
                        let bytes = column.plan.form.bytes() as usize;
                        let from = &column.components[component];
                        let from = &from[rows.start * bytes..rows.end * bytes];
                        running(*ring, (start.wrapping_add(before), each), Some(from), into);
                    }),
                }
            }
        }
    }

    /// What is taken of these rows of one component, as elements of so many bytes.
    fn elements(
        &self,
        take: &Take,
        component: usize,
        rows: Range<usize>,
        with: impl FnOnce(usize, &[u8]),
    ) {
        if let Take::Of(of) = take {
            return self.read(*of, |column| {
                let bytes = column.plan.form.bytes() as usize;
                let from = &column.components[component];
                with(bytes, &from[rows.start * bytes..rows.end * bytes]);
            });
        }
        let bytes = self.bytes_of(take.columns()[0]);
        let mut all = Wiped::zeros(rows.len() * bytes);
        self.gather(take, component, rows, &mut all);
        with(bytes, &all);
    }

    /// Bytes of an element of a column.
    fn bytes_of(&self, column: ColumnId) -> usize {
        self.read(column, |column| column.plan.form.bytes() as usize)
    }

    /// The same, put into their place.
    fn gather(&self, take: &Take, component: usize, rows: Range<usize>, into: &mut [u8]) {
        let copy = |column: ColumnId, bytes: usize, walk: Walk, into: &mut [u8]| {
            self.read(column, |column| {
                walk.copy(&column.components[component], bytes, into);
            });
        };
        match take {
            Take::Of(of) => self.read(*of, |column| {
                let bytes = column.plan.form.bytes() as usize;
                let from = &column.components[component];
                into.copy_from_slice(&from[rows.start * bytes..rows.end * bytes]);
            }),
            Take::Rows { of, first, step } => {
                let bytes = self.bytes_of(of[0]);
                // Where all rows are there, zeros would be written over.
                let end = first + rows.end as i64;
                let there = |column: &ColumnId| self.read(*column, |c| i64::from(c.plan.rows));
                let full = *step == 1 && first + rows.start as i64 >= 0;
                if !full || end > of.iter().map(there).sum() {
                    into.fill(0);
                }
                let mut begin = 0;
                for column in of {
                    // Its row 0 is row `begin` of all.
                    let first = first + i64::from(*step) * rows.start as i64 - begin;
                    begin += self.read(*column, |c| i64::from(c.plan.rows));
                    copy(*column, bytes, Walk::from(first, i64::from(*step)), into);
                }
            }
            Take::Turns { even, odd } => {
                let bytes = self.bytes_of(*even);
                into.fill(0);
                for (odd, of) in [(0, *even), (1, *odd)] {
                    let to = (rows.start + odd) % 2;
                    let walk = Walk {
                        from: (rows.start + to) as i64 / 2,
                        step: 1,
                        to,
                        every: 2,
                    };
                    copy(of, bytes, walk, into);
                }
            }
            Take::View { of, axes } => {
                let bytes = self.bytes_of(of[0]);
                let each = self.read(of[0], |column| column.plan.rows as usize);
                into.fill(0);
                for_each_run(axes, rows, |run| {
                    self.read(of[run.block / each], |column| {
                        let block = &column.components[component][run.block % each * bytes..];
                        let into = &mut into[run.to * bytes..][..run.rows * bytes];
                        run.walk.copy(&block[..run.length * bytes], bytes, into);
                    });
                });
            }
            _ => unreachable!("checked by PassProgram::new: elements of columns"),
        }
    }

    /// Leaves what pass number `pass` has summed over its rows, of each component: columns of one row.
    pub(crate) fn leave_sums(&self, pass: usize, sums: &[Vec<u8>]) {
        let pass = &self.program.passes()[pass];
        let Some(plan) = pass.rows() else { return };
        let slice = Slice {
            block: 0,
            first: 0,
            rows: 1,
        };
        let bytes = plan.ring.bytes(1) as usize;
        for (port, output) in plan.outputs.iter().enumerate() {
            let (Gives::Sum, Some(column)) = (output.gives, pass.leave(port)) else {
                continue;
            };
            let at = output.first as usize * bytes;
            for (component, sums) in sums.iter().enumerate() {
                self.leave(column, component, slice, None, &sums[at..at + bytes]);
            }
        }
    }

    /// Leaves rows of `slice` of one component of a column: from packed columns of `bits` bits, or from elements.
    pub(crate) fn leave(
        &self,
        column: ColumnId,
        component: usize,
        slice: Slice,
        bits: Option<u32>,
        from: &[u8],
    ) {
        let mut guard = self.write(column);
        let column = guard.as_mut().expect(NOT_THERE);
        let bytes = column.plan.form.bytes() as usize;
        let rows = slice.first as usize..slice.first as usize + slice.rows as usize;
        let into = &mut column.components[component][rows.start * bytes..rows.end * bytes];
        match bits {
            None => into.copy_from_slice(from),
            Some(width) => bits_to_words(from, rows.len(), width as usize, (into, bytes)),
        }
    }
}

impl Column {
    /// The sum of the rows before row `row`; of all rows if it is none.
    fn before(&self, component: usize, row: Option<usize>) -> u128 {
        let ColumnForm::Ring(ring) = self.plan.form else {
            unreachable!("sums are of integers, which the program was checked for");
        };
        let bytes = self.plan.form.bytes() as usize;
        let granule = GRANULE as usize * bytes;
        let before = self.before.get_or_init(|| {
            let running = |rows: &Wiped<u8>| {
                let mut all = Wiped::<u128>::zeros(rows.len().div_ceil(granule) + 1);
                for (k, rows) in rows.chunks(granule).enumerate() {
                    all[k + 1] = all[k].wrapping_add(total(ring, rows));
                }
                all
            };
            self.components.iter().map(running).collect()
        });
        let all = &before[component];
        match row {
            Some(row) => {
                // Chunks begin with a granule, unless they are shorter.
                let begun = row / GRANULE as usize;
                let rest = &self.components[component][begun * granule..row * bytes];
                all[begun].wrapping_add(total(ring, rest))
            }
            None => all[all.len() - 1],
        }
    }
}
