//! Templates: the XORs of a circuit that hang together, in a function of their own for each shape that comes many times.
//!
//! The tape keeps every sum of two or three rows in a row, and so moves each value through the cache twice or more. A template reads what comes from outside
//! once, has all that is between in registers, and writes what products or later layers read. Templates are made when the program is built, of the
//! circuits of the catalogue, and no code is made as it runs. Other shapes stay on the tape.

#[rustfmt::skip]
mod made;

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::LazyLock;

use super::super::vector::{Kernel, VECTOR, Vector};
use super::RowAddresses;
pub(in crate::cpu) use made::SHAPES;
pub(super) use made::run;

/// Rows that a template reads and writes, at most.
const MOST_ROWS: usize = 256;
/// Job-wide values that it reads, at most.
const MOST_JOB_VALUES: usize = 64;

/// The template of a shape.
pub(in crate::cpu) fn find(shape: &[u16]) -> Option<u16> {
    static BY_SHAPE: LazyLock<BTreeMap<&[u16], u16>> =
        LazyLock::new(|| (0..).zip(SHAPES).map(|(of, shape)| (shape, of)).collect());
    BY_SHAPE.get(shape).copied()
}

/// One template, many times.
#[derive(Clone, Copy)]
pub(super) struct Uses<'a> {
    pub(super) rows: RowAddresses,
    /// Of every use: the rows that are read, those that are written, and the job-wide values.
    pub(super) args: &'a [u32],
    /// How many.
    pub(super) count: u32,
    /// Where job-wide values begin, and bytes from one to the next, and from component to component.
    pub(super) job_wide: [usize; 3],
    /// Components that get constants.
    pub(super) constants: u8,
}

/// A vector of every row of a use.
#[derive(Clone, Copy)]
struct Place<V> {
    rows: *const *mut u8,
    job_values: *const u64,
    offset: usize,
    /// The constant 1 in components that get constants.
    one: V,
}

impl<V: Vector> Place<V> {
    /// # Safety
    /// As of [`Template::step`]; so for the others.
    #[inline(always)]
    unsafe fn row(&self, k: usize) -> V {
        // SAFETY: the caller's.
        unsafe { V::load((*self.rows.add(k)).add(self.offset)) }
    }

    #[inline(always)]
    unsafe fn job_value(&self, k: usize) -> V {
        // SAFETY: the caller's.
        unsafe { V::splat(*self.job_values.add(k)) }
    }

    #[inline(always)]
    unsafe fn put(&self, k: usize, value: V) {
        // SAFETY: the caller's.
        unsafe { value.store((*self.rows.add(k)).add(self.offset)) }
    }
}

/// What one template does.
trait Template {
    /// Rows that it reads and writes.
    const ROWS: usize;
    /// Job-wide values.
    const JOB_VALUES: usize;

    /// Does it for a vector of every row.
    ///
    /// # Safety
    /// The instruction set is present; `at` has `ROWS` rows with a vector at the offset, and `JOB_VALUES` values.
    unsafe fn step<V: Vector>(at: Place<V>);
}

/// A template in all its uses.
struct Over<V, T>(PhantomData<(V, T)>);

impl<V: Vector, T: Template> Kernel for Over<V, T> {
    type Args<'a> = Uses<'a>;

    #[inline(always)]
    unsafe fn run(uses: Uses<'_>) {
        let Uses {
            rows,
            args,
            count,
            job_wide: [first, stride, part],
            constants,
        } = uses;
        const { assert!(T::ROWS <= MOST_ROWS && T::JOB_VALUES <= MOST_JOB_VALUES) };
        let mut at = [rows.base; MOST_ROWS];
        let mut job_values = [0u64; MOST_JOB_VALUES];
        let args = args.chunks_exact(T::ROWS + T::JOB_VALUES);
        for args in args.take(count as usize) {
            let (of_rows, of_job) = args.split_at(T::ROWS);
            for k in 0..T::ROWS {
                at[k] = rows.at(of_rows[k]);
            }
            for component in 0..rows.components {
                // SAFETY: rows and job-wide values of the tape exist, each component of a row is `rows.column` bytes, whole vectors.
                unsafe {
                    for k in 0..T::JOB_VALUES {
                        let from = first + component * part + of_job[k] as usize * stride;
                        job_values[k] = u64::from(rows.base.add(from).read() & 1).wrapping_neg();
                    }
                    let one = V::splat(u64::from(constants >> component & 1).wrapping_neg());
                    let begin = component * rows.component;
                    let mut offset = begin;
                    while offset < begin + rows.column {
                        T::step(Place {
                            rows: at.as_ptr(),
                            job_values: job_values.as_ptr(),
                            offset,
                            one,
                        });
                        offset += VECTOR;
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::Isa;
    use super::super::super::tape::shapes::{JOB_VALUE, LOCAL, ONE, OUT};
    use super::super::super::vector::{self, Task};
    use super::*;

    /// A template, in uses one after the other.
    struct Once<'a>(u16, Uses<'a>);

    impl Task for Once<'_> {
        #[inline(always)]
        unsafe fn run<V: Vector>(self) {
            // SAFETY: the caller's.
            unsafe { run::<V>(self.0, self.1) }
        }
    }

    const COLUMN: usize = 3 * VECTOR;

    /// Rows of two components, then the job-wide values of both.
    struct Values {
        bytes: Vec<u8>,
        rows: usize,
        job_wide: usize,
    }

    impl Values {
        fn random(rows: usize, job_wide: usize) -> Self {
            let mut x = 0x9e37_79b9_7f4a_7c15u64;
            let mut next = || {
                x ^= x << 13;
                x ^= x >> 7;
                x ^= x << 17;
                (x >> 32) as u8
            };
            let bytes = (0..2 * (rows * COLUMN + job_wide))
                .map(|_| next())
                .collect();
            Values {
                bytes,
                rows,
                job_wide,
            }
        }

        fn row(&mut self, component: usize, row: u32) -> &mut [u8] {
            let at = (component * self.rows + row as usize) * COLUMN;
            &mut self.bytes[at..at + COLUMN]
        }

        fn job_value(&self, component: usize, k: u32) -> u8 {
            let at = 2 * self.rows * COLUMN + component * self.job_wide + k as usize;
            (self.bytes[at] & 1).wrapping_neg()
        }

        fn uses<'a>(&mut self, args: &'a [u32], count: u32) -> Uses<'a> {
            let rows = RowAddresses {
                base: self.bytes.as_mut_ptr(),
                slots: 0,
                column: COLUMN,
                component: self.rows * COLUMN,
                components: 2,
                packed: COLUMN,
            };
            Uses {
                rows,
                args,
                count,
                job_wide: [2 * self.rows * COLUMN, 1, self.job_wide],
                constants: 0b10,
            }
        }

        /// One use, one XOR after the other, as the code of a shape says.
        fn by_code(&mut self, shape: &[u16], rows: &[u32], outs: &[u32], job_values: &[u32]) {
            for component in 0..2 {
                let (mut rest, mut locals, mut outs) = (shape, Vec::new(), outs.iter());
                while let [head, more @ ..] = rest {
                    let (sources, more) = more.split_at(usize::from(head >> 2));
                    let one = head & ONE != 0 && component == 1;
                    let mut sum = vec![u8::from(one).wrapping_neg(); COLUMN];
                    for source in sources {
                        let k = usize::from(source >> 2);
                        let value = match source & 3 {
                            JOB_VALUE => vec![self.job_value(component, job_values[k]); COLUMN],
                            LOCAL => Vec::clone(&locals[k]),
                            _ => self.row(component, rows[k]).to_vec(),
                        };
                        sum.iter_mut().zip(value).for_each(|(sum, x)| *sum ^= x);
                    }
                    if head & OUT != 0 {
                        let out = outs.next().expect("as many as there are");
                        self.row(component, *out).copy_from_slice(&sum);
                    }
                    locals.push(sum);
                    rest = more;
                }
            }
        }
    }

    /// For each row that is read, after which XOR it is read no more; rows, results and job-wide values.
    fn counts(shape: &[u16]) -> (Vec<usize>, usize, usize) {
        let (mut rest, mut last, mut outs, mut job_values, mut j) = (shape, vec![], 0, 0, 0);
        while let [head, more @ ..] = rest {
            let (sources, more) = more.split_at(usize::from(head >> 2));
            for source in sources {
                let k = usize::from(source >> 2);
                match source & 3 {
                    JOB_VALUE => job_values = job_values.max(k + 1),
                    LOCAL => {}
                    _ => {
                        last.resize(last.len().max(k + 1), 0);
                        last[k] = j;
                    }
                }
            }
            outs += usize::from(head & OUT != 0);
            j += 1;
            rest = more;
        }
        (last, outs, job_values)
    }

    /// Two uses, of the same job-wide values the other way round; results in rows of their own, or in those of operands that are read no more.
    #[test]
    fn templates_compute_what_their_codes_say() {
        for (of, shape) in (0..).zip(SHAPES) {
            assert_eq!(find(shape), Some(of));
            let (last, outs, job_values) = counts(shape);
            let rows = last.len();
            for in_place in [false, true] {
                let mut args = vec![];
                let mut parts = vec![];
                for use_ in 0..2u32 {
                    let first = use_ * (rows + outs) as u32;
                    let read: Vec<u32> = (0..rows as u32).map(|k| first + k).collect();
                    let mut free: Vec<(usize, u32)> =
                        (last.iter().copied()).zip(read.clone()).collect();
                    let (mut rest, mut written, mut j) = (shape, vec![], 0);
                    while let [head, more @ ..] = rest {
                        if head & OUT != 0 {
                            let taken = free.iter().position(|(last, _)| in_place && *last <= j);
                            let own = first + (rows + written.len()) as u32;
                            written.push(taken.map_or(own, |k| free.swap_remove(k).1));
                        }
                        j += 1;
                        rest = &more[usize::from(head >> 2)..];
                    }
                    let mut of_job: Vec<u32> = (0..job_values as u32).collect();
                    if use_ == 1 {
                        of_job.reverse();
                    }
                    args.extend([&read[..], &written, &of_job].concat());
                    parts.push((read, written, of_job));
                }
                let mut want = Values::random(2 * (rows + outs), job_values);
                for (read, written, of_job) in &parts {
                    want.by_code(shape, read, written, of_job);
                }
                for isa in Isa::available() {
                    let mut got = Values::random(2 * (rows + outs), job_values);
                    let uses = got.uses(&args, 2);
                    // SAFETY: the instruction set is there; the values have two components of all rows that the arguments name.
                    unsafe { vector::run(isa, Once(of, uses)) };
                    assert!(
                        got.bytes == want.bytes,
                        "{of}, in place: {in_place}, {isa:?}"
                    );
                }
            }
        }
    }
}
