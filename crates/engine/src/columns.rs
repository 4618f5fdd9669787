//! Columns of relations between passes: each party's components, in memory.
//!
//! Many lanes load and leave rows of a column at once. What is made of a column when it is taken is made here, of each component alone: bits of words, other
//! rows, and sums over the rows before. Memory is reached in the order of rows.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockWriteGuard};

use veil_job::Slice;
use veil_job::passes::comparisons_at_once;
use veil_math::{Ring, bits_from_places, bits_from_words, bits_to_words};
use veil_protocol::Gives;
use veil_protocol::passes::{
    ColumnForm, ColumnId, ColumnKind, ColumnPlan, NoOrder, PassProgram, Search, Take,
};
use veil_session::Wiped;

use crate::abort::Abort;

/// Rows that are added up as they come, so that the rows before a chunk need not be: chunks begin at a multiple of it.
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
}

/// Rows that are being put in order: what is compared now, and what was opened of it, a bit each.
struct Ordering {
    search: Search,
    opened: Vec<u8>,
}

struct Column {
    plan: ColumnPlan,
    /// Elements of all rows, of each component.
    components: Vec<Wiped<u8>>,
    /// Of integers, the sum of all rows before every [`GRANULE`] rows of each component, and of all rows; made when they are asked for.
    before: OnceLock<Vec<Wiped<u128>>>,
}

/// A lane asked for a column that no pass has left: a defect of a program, which is checked.
const NOT_THERE: &str = "a column is there from the pass that leaves it to the last that takes it";

impl Columns {
    /// Those of a program, at a party that holds so many components of a shared value.
    pub(crate) fn new(program: Arc<PassProgram>, parts: usize) -> Self {
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
        if let Some(compares) = self.program.passes()[pass].compares() {
            let mut now = self.ordering();
            let now = now.get_or_insert_with(|| Ordering {
                search: Search::new(compares.rows),
                opened: Vec::new(),
            });
            let room = comparisons_at_once(compares.rows);
            now.search.choose(room);
            now.opened.clear();
            now.opened.resize(room.div_ceil(8) as usize, 0);
        }
    }

    /// Takes what pass number `pass` has opened of rows that it compared: they are nearer to their places.
    ///
    /// # Errors
    /// [`Abort::Unordered`] if comparisons contradict each other, or are over before all places are known.
    pub(crate) fn order(&self, pass: usize) -> Result<(), Abort> {
        let Some(compares) = self.program.passes()[pass].compares() else {
            return Ok(());
        };
        if self.parts == 0 {
            return Ok(());
        }
        let mut now = self.ordering();
        let Ordering { search, opened } = now.as_mut().expect(NOT_THERE);
        let learnt = search.learn(opened);
        learnt.map_err(|_: NoOrder| Abort::Unordered {
            what: "what was opened of rows that were compared is no order",
        })?;
        for column in &compares.of {
            let mut guard = self.write(*column);
            let column = guard.as_mut().expect(NOT_THERE);
            let bytes = column.plan.form.bytes() as usize;
            let mut before = self.memory(compares.rows as usize * bytes);
            for component in &mut column.components {
                for (places, from) in search.moved() {
                    let all = places.start * bytes..places.end * bytes;
                    let before = &mut before[..all.len()];
                    before.copy_from_slice(&component[all.clone()]);
                    let first = places.start as u32;
                    let from = from.iter().map(|from| from - first);
                    pick(before, bytes, from, &mut component[all]);
                }
            }
            drop(guard);
            self.give_back(before);
        }
        if let Some(column) = compares.positions {
            let positions = search.positions().ok_or(Abort::Unordered {
                what: "the permutation that was drawn takes more comparisons than there are: run again",
            })?;
            let mut guard = self.write(column);
            let into = &mut guard.as_mut().expect(NOT_THERE).components[0];
            let (into, _) = into.as_chunks_mut();
            let positions = positions.into_iter().map(u32::to_le_bytes);
            into.iter_mut().zip(positions).for_each(|(to, of)| *to = of);
            *now = None;
        }
        Ok(())
    }

    /// How many rows are compared in the present pass.
    pub(crate) fn comparisons(&self) -> u64 {
        let now = self.ordering.read().unwrap_or_else(PoisonError::into_inner);
        now.as_ref()
            .map_or(0, |now| now.search.pairs()[0].len() as u64)
    }

    /// Notes what was opened of rows that are compared.
    pub(crate) fn compared(&self, slice: Slice, opened: &[u8]) {
        let mut now = self.ordering();
        let into = &mut now.as_mut().expect(NOT_THERE).opened[slice.first as usize / 8..];
        let bytes = (slice.rows as usize).div_ceil(8).min(into.len());
        into[..bytes].copy_from_slice(&opened[..bytes]);
    }

    fn ordering(&self) -> RwLockWriteGuard<'_, Option<Ordering>> {
        self.ordering
            .write()
            .unwrap_or_else(PoisonError::into_inner)
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
            Take::Of(_) | Take::Rows { .. } | Take::Turns { .. } => {
                self.elements(take, component, rows, |bytes, from| match bits {
                    None => into.copy_from_slice(from),
                    Some(width) => spread(from, bytes, (0, width), into),
                });
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
                    let words = (&column.components[component][..], bytes);
                    let place = |row: usize| places[row] as usize;
                    let these = (0, width as usize);
                    if places.len() == rows.len() {
                        bits_from_places(words, (rows.len(), place), these, into);
                    } else {
                        let place = |row: usize| places.get(row).map_or(0, |at| *at as usize);
                        bits_from_places(words, (rows.len(), place), these, into);
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
                    None => running(*ring, (start, each), None, into),
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
        let bytes_of = |column: ColumnId| self.read(column, |c| c.plan.form.bytes() as usize);
        let made = |columns: &[(ColumnId, Walk)]| {
            let bytes = bytes_of(columns[0].0);
            let mut all = Wiped::zeros(rows.len() * bytes);
            for (column, walk) in columns {
                self.read(*column, |column| {
                    walk.copy(&column.components[component], bytes, &mut all);
                });
            }
            all
        };
        let all = match take {
            Take::Of(of) => {
                return self.read(*of, |column| {
                    let bytes = column.plan.form.bytes() as usize;
                    let from = &column.components[component];
                    with(bytes, &from[rows.start * bytes..rows.end * bytes]);
                });
            }
            Take::Rows { of, first, step } => {
                let mut begin = 0;
                let walks: Vec<(ColumnId, Walk)> = of
                    .iter()
                    .map(|column| {
                        // Its row 0 is row `begin` of all.
                        let first = first + i64::from(*step) * rows.start as i64 - begin;
                        begin += self.read(*column, |c| i64::from(c.plan.rows));
                        (*column, Walk::from(first, i64::from(*step)))
                    })
                    .collect();
                made(&walks)
            }
            Take::Turns { even, odd } => {
                let walks = [(0, *even), (1, *odd)].map(|(odd, of)| {
                    let to = (rows.start + odd) % 2;
                    let walk = Walk {
                        from: (rows.start + to) as i64 / 2,
                        step: 1,
                        to,
                        every: 2,
                    };
                    (of, walk)
                });
                made(&walks)
            }
            _ => unreachable!("checked by PassProgram::new: elements of columns"),
        };
        with(bytes_of(take.columns()[0]), &all);
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
    /// The sum of the rows before row `row`, which begins a granule; of all rows if it is none.
    fn before(&self, component: usize, row: Option<usize>) -> u128 {
        let before = self.before.get_or_init(|| {
            let ColumnForm::Ring(ring) = self.plan.form else {
                unreachable!("sums are of integers, which the program was checked for");
            };
            let granule = GRANULE as usize * self.plan.form.bytes() as usize;
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
            Some(row) => all[row / GRANULE as usize],
            None => all[all.len() - 1],
        }
    }
}

/// An integer modulo every power of two.
const fn signed(value: i64) -> u128 {
    (value as i128).cast_unsigned()
}

/// Rows of a column, and the rows that they go to.
#[derive(Clone, Copy)]
struct Walk {
    /// The row of the column that goes to row `to`; less than 0 if it is before the first.
    from: i64,
    /// Rows of the column from one to the next.
    step: i64,
    to: usize,
    /// The same of the rows that they go to.
    every: usize,
}

impl Walk {
    /// From row `from` on, to row 0 and all that follow.
    const fn from(from: i64, step: i64) -> Self {
        Walk {
            from,
            step,
            to: 0,
            every: 1,
        }
    }

    /// Copies the rows that there are.
    fn copy(&self, column: &[u8], bytes: usize, into: &mut [u8]) {
        let (there, room) = ((column.len() / bytes) as i64, into.len() / bytes);
        if self.step == 0 {
            if (0..there).contains(&self.from) {
                let element = &column[self.from as usize * bytes..][..bytes];
                let rows = into.chunks_exact_mut(bytes).skip(self.to);
                rows.step_by(self.every)
                    .for_each(|to| to.copy_from_slice(element));
            }
            return;
        }
        // The first one that is there.
        let beyond = if self.step > 0 {
            -self.from
        } else {
            self.from - (there - 1)
        };
        let stride = self.step.abs();
        let before = beyond.max(0).div_euclid(stride) + i64::from(beyond.max(0) % stride > 0);
        let (Ok(skipped), first) = (usize::try_from(before), self.from + before * self.step) else {
            return;
        };
        let to = skipped.saturating_mul(self.every).saturating_add(self.to);
        if to >= room || !(0..there).contains(&first) {
            return;
        }
        let fit = (room - to).div_ceil(self.every);
        let left = if self.step > 0 {
            there - 1 - first
        } else {
            first
        };
        let count = fit.min((left / stride) as usize + 1);
        // Downwards: the same rows from the last of them on, backwards.
        let lowest = if self.step > 0 {
            first
        } else {
            first - (count as i64 - 1) * stride
        };
        let first = lowest as usize * bytes;
        if self.step == 1 && self.every == 1 {
            into[to * bytes..][..count * bytes].copy_from_slice(&column[first..][..count * bytes]);
            return;
        }
        macro_rules! of_bytes {
            ($($bytes:literal),*) => {
                match bytes {
                    $($bytes => {
                        let (from, _) = column[first..].as_chunks::<$bytes>();
                        let (into, _) = into[to * bytes..].as_chunks_mut::<$bytes>();
                        let from = from.iter().step_by(stride as usize).take(count);
                        let into = into.iter_mut().step_by(self.every).take(count);
                        if self.step > 0 {
                            from.zip(into).for_each(|(from, into)| *into = *from);
                        } else {
                            from.zip(into.rev()).for_each(|(from, into)| *into = *from);
                        }
                    })*
                    _ => unreachable!("elements have 1, 2, 4, 8 or 16 bytes"),
                }
            };
        }
        of_bytes!(1, 2, 4, 8, 16);
    }
}

/// `count` bits of words from bit `low` on, above `below` bits of the row's number; words of `to` bytes. No words are zeros; a first row of [`usize::MAX`] says
/// that rows have no number here, on components that constants do not act on.
fn numbered(
    (from, bytes): (&[u8], usize),
    (low, count): (u32, u32),
    (first, below): (usize, u32),
    to: usize,
    into: &mut [u8],
) {
    let number = |row: usize| if first == usize::MAX { 0 } else { first + row };
    macro_rules! of_words {
        ($word:ty) => {{
            let mask = !(<$word>::MAX.checked_shl(count).unwrap_or(0));
            for (row, into) in into.chunks_exact_mut(to).enumerate() {
                let mut word = [0; size_of::<$word>()];
                if !from.is_empty() {
                    word[..bytes].copy_from_slice(&from[row * bytes..][..bytes]);
                }
                let bits = <$word>::from_le_bytes(word) >> low & mask;
                let all = bits << below | number(row) as $word;
                into.copy_from_slice(&all.to_le_bytes()[..to]);
            }
        }};
    }
    if to.max(bytes) <= 8 {
        of_words!(u64);
    } else {
        of_words!(u128);
    }
}

/// The elements of these rows.
fn pick(of: &[u8], bytes: usize, rows: impl Iterator<Item = u32>, into: &mut [u8]) {
    macro_rules! of_bytes {
        ($($bytes:literal),*) => {
            match bytes {
                $($bytes => {
                    let ((of, _), (into, _)) = (of.as_chunks::<$bytes>(), into.as_chunks_mut::<$bytes>());
                    into.iter_mut().zip(rows).for_each(|(to, row)| *to = of[row as usize]);
                })*
                _ => unreachable!("elements have 1, 2, 4, 8 or 16 bytes"),
            }
        };
    }
    of_bytes!(1, 2, 4, 8, 16);
}

/// `count` bits of words from bit `first` on, as words of `to` bytes.
fn cut(from: &[u8], bytes: usize, (first, count): (u32, u32), to: usize, into: &mut [u8]) {
    if to == bytes && first == 0 && 8 * to == count as usize {
        into.copy_from_slice(from);
        return;
    }
    macro_rules! of_words {
        ($($bytes:literal $word:ty),*) => {
            match bytes {
                $($bytes => {
                    let (from, _) = from.as_chunks::<$bytes>();
                    let mask = <$word>::MAX >> (<$word>::BITS - count);
                    let bits = |word: &[u8; $bytes]| <$word>::from_le_bytes(*word) >> first & mask;
                    if to == 1 {
                        for (to, word) in into.iter_mut().zip(from) {
                            *to = bits(word) as u8;
                        }
                    } else {
                        for (to, word) in into.chunks_exact_mut(to).zip(from) {
                            to.copy_from_slice(&bits(word).to_le_bytes()[..to.len()]);
                        }
                    }
                })*
                _ => unreachable!("words have 1, 2, 4, 8 or 16 bytes"),
            }
        };
    }
    of_words!(1 u8, 2 u16, 4 u32, 8 u64, 16 u128);
}

/// The same as packed columns, one for each bit.
fn spread(from: &[u8], bytes: usize, (first, count): (u32, u32), into: &mut [u8]) {
    let these = (first as usize, count as usize);
    bits_from_words((from, bytes), from.len() / bytes, these, into);
}

/// Does something with integers of a ring.
macro_rules! of_ring {
    ($ring:expr, $type:ident => $do:expr) => {
        match $ring {
            Ring::Bits => unreachable!("bits are words"),
            Ring::Z32 => {
                type $type = u32;
                $do
            }
            Ring::Z64 => {
                type $type = u64;
                $do
            }
            Ring::Z128 => {
                type $type = u128;
                $do
            }
        }
    };
}

/// The sum of integers.
fn total(ring: Ring, of: &[u8]) -> u128 {
    of_ring!(ring, Int => {
        let (of, _) = of.as_chunks::<{ size_of::<Int>() }>();
        let sum = of.iter().fold(0, |sum: Int, of| sum.wrapping_add(Int::from_le_bytes(*of)));
        #[allow(clippy::unnecessary_cast, reason = "one of the three is a u128")]
        { sum as u128 }
    })
}

/// Rows whose sums are added up side by side, not one after the other.
const SIDE_BY_SIDE: usize = 8;

/// `start + each · j + Σ_{i<j} from_i` in row j.
fn running(ring: Ring, (start, each): (u128, u128), from: Option<&[u8]>, into: &mut [u8]) {
    of_ring!(ring, Int => {
        let (mut sum, each) = (start as Int, each as Int);
        let (into, _) = into.as_chunks_mut::<{ size_of::<Int>() }>();
        let Some(from) = from else {
            for to in into {
                *to = sum.to_le_bytes();
                sum = sum.wrapping_add(each);
            }
            return;
        };
        let (from, _) = from.as_chunks::<{ size_of::<Int>() }>();
        let of = |from: &[u8; size_of::<Int>()]| Int::from_le_bytes(*from).wrapping_add(each);
        let (blocks, rest) = into.as_chunks_mut::<SIDE_BY_SIDE>();
        let (of_blocks, of_rest) = from.as_chunks::<SIDE_BY_SIDE>();
        for (to, from) in blocks.iter_mut().zip(of_blocks) {
            let mut within = [0 as Int; SIDE_BY_SIDE];
            for (to, from) in within.iter_mut().zip(from) {
                *to = of(from);
            }
            for by in [1, 2, 4] {
                let before = within;
                for k in by..SIDE_BY_SIDE {
                    within[k] = before[k].wrapping_add(before[k - by]);
                }
            }
            to[0] = sum.to_le_bytes();
            for k in 1..SIDE_BY_SIDE {
                to[k] = sum.wrapping_add(within[k - 1]).to_le_bytes();
            }
            sum = sum.wrapping_add(within[SIDE_BY_SIDE - 1]);
        }
        for (to, from) in rest.iter_mut().zip(of_rest) {
            *to = sum.to_le_bytes();
            sum = sum.wrapping_add(of(from));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A word of up to 16 bytes.
    fn word(bytes: &[u8]) -> u128 {
        let mut word = [0; 16];
        word[..bytes.len()].copy_from_slice(bytes);
        u128::from_le_bytes(word)
    }

    /// Every row is what its definition says, whatever the rows of a chunk are.
    #[test]
    fn running_sums_are_sums_of_the_rows_before() {
        for rows in [0u64, 1, 7, 8, 9, 40] {
            let of: Vec<u32> = (0..rows as u32)
                .map(|k| k.wrapping_mul(0x9e37_79b9))
                .collect();
            let bytes: Vec<u8> = of.iter().flat_map(|x| x.to_le_bytes()).collect();
            for from in [None, Some(&bytes[..])] {
                let mut into = vec![0; bytes.len()];
                running(Ring::Z32, (5, 3), from, &mut into);
                let mut want = 5u32;
                for (row, to) in into.chunks_exact(4).enumerate() {
                    assert_eq!(to, want.to_le_bytes(), "row {row} of {rows}");
                    let of = from.map_or(0, |_| of[row]);
                    want = want.wrapping_add(3).wrapping_add(of);
                }
            }
        }
    }

    #[test]
    fn rows_that_are_not_there_are_zero() {
        let from: Vec<u8> = (1..=10).collect();
        for (by, rows, want) in [
            (0, 2..5, vec![3, 4, 5]),
            (1, 7..10, vec![9, 10, 0]),
            (-1, 0..3, vec![0, 1, 2]),
            (-4, 2..7, vec![0, 0, 1, 2, 3]),
            (20, 0..2, vec![0, 0]),
            (-20, 5..7, vec![0, 0]),
            (-1 << 40, 0..1, vec![0]),
            (1 << 40, 9..10, vec![0]),
        ] {
            let mut into = vec![0; rows.len()];
            Walk::from(by + rows.start as i64, 1).copy(&from, 1, &mut into);
            assert_eq!(into, want, "{by}, {rows:?}");
        }
    }

    /// Every row by its definition, for all small steps.
    #[test]
    fn every_so_many_rows_go_to_every_so_many() {
        let from: Vec<u8> = (0..24u16).flat_map(|x| (x + 100).to_le_bytes()).collect();
        for (first, step, to, every) in (-9..14).flat_map(|first| {
            (-4..5).flat_map(move |step| {
                (0..3).flat_map(move |to| [1, 2, 3].map(|every| (first, step, to, every)))
            })
        }) {
            let mut into = vec![0; 2 * 17];
            let walk = Walk {
                from: first,
                step,
                to,
                every,
            };
            walk.copy(&from, 2, &mut into);
            for row in 0..17 {
                let number = (row >= to && (row - to) % every == 0).then(|| (row - to) / every);
                let of = number.map(|k| first + step * k as i64);
                let want = of
                    .filter(|of| (0..24).contains(of))
                    .map_or(0, |of| of as u16 + 100);
                let got = u16::from_le_bytes([into[2 * row], into[2 * row + 1]]);
                assert_eq!(
                    got, want,
                    "row {row}: {first} + {step} k, to {to} + {every} k"
                );
            }
        }
    }

    #[test]
    fn bits_of_words_come_as_elements_and_as_columns() {
        let words: Vec<u32> = (0..21u32).map(|k| k.wrapping_mul(0x9e37_79b9)).collect();
        let from: Vec<u8> = words.iter().flat_map(|x| x.to_le_bytes()).collect();
        for (first, count) in [(0, 3), (6, 3), (29, 3), (3, 12), (0, 32)] {
            let want = |row: usize| words[row] >> first & (u32::MAX >> (32 - count));
            let to = (count as usize).div_ceil(8).next_power_of_two();
            let mut elements = vec![0; 16 * to];
            cut(&from[20..], 4, (first, count), to, &mut elements);
            let mut columns = vec![0; 2 * count as usize];
            spread(&from[20..], 4, (first, count), &mut columns);
            let mut back = vec![0xff; 16 * 4];
            bits_to_words(&columns, 16, count as usize, (&mut back, 4));
            for row in 0..16 {
                let word = word(&elements[row * to..][..to]) as u32;
                assert_eq!(word, want(row + 5), "bits {first}, {count}");
                let bits = (0..count).map(|bit| {
                    u32::from(columns[2 * bit as usize + row / 8] >> (row % 8) & 1) << bit
                });
                assert_eq!(bits.sum::<u32>(), word);
                assert_eq!(back[4 * row..][..4], word.to_le_bytes());
            }
        }
    }
}
