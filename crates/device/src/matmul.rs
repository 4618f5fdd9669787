//! Products of matrices: what their command needs, and how its spans lie.

use std::collections::BTreeSet;

use veil_math::Ring;

use crate::command::Command;
use crate::form::Form;
use crate::layout::{ColumnType, Layout, Residency, Span};
use crate::rank;

/// A product of two matrices of shares: which form each product of elements has, and which way the left matrix lies.
///
/// The left matrix L has `left` columns, each with an element in every row of the chunk. The right matrix R has m columns, and so has the product:
///
/// ```text
/// left · R           [rows × left] · [left × m]    R is elements that all rows share, the product has m columns of the chunk's rows
/// transposed: Lᵀ · R [left × rows] · [rows × m]    R has m columns of the chunk's rows, the product is elements that all rows share
/// ```
///
/// Elements that all rows share lie column by column: element i of column j is item `left · j + i`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MatMul {
    /// How elements are multiplied, and what masks each element of the product.
    pub form: &'static Form,
    /// Columns of the left matrix, at least 1.
    pub left: u32,
    /// Whether the left matrix is transposed, so that all rows of the chunk are added up.
    pub transposed: bool,
    /// Components of the right matrix that the host promises to be zero, as those of a public matrix are: bit p for component p. A device may leave them out.
    pub zeros: u8,
}

impl MatMul {
    /// Whether a component of the right matrix is zero.
    pub(crate) const fn is_zero(self, component: u8) -> bool {
        self.zeros >> component & 1 == 1
    }

    /// Components of an element, and columns of the right matrix, of a command of it that was checked.
    pub fn shape(self, command: &Command) -> (usize, usize) {
        let matrices = Matrices::of(self, command);
        (matrices.parts, matrices.columns)
    }

    /// Products of elements that such a command takes, in a chunk of so many rows: of each left component of each cross term one, which is multiplied with a sum
    /// of right ones; where some of these are zero, of each right one, which is multiplied with a sum of left ones.
    pub fn products(self, command: &Command, rows: u32) -> u64 {
        let left = self.form.crosses.iter().map(|cross| {
            let there = cross.terms.iter().filter(|(_, b)| !self.is_zero(*b));
            let components: BTreeSet<u8> = if self.zeros == 0 {
                there.map(|(a, _)| *a).collect()
            } else {
                there.map(|(_, b)| *b).collect()
            };
            components.len() as u64
        });
        let each = u64::from(rows) * u64::from(self.left);
        each.saturating_mul(self.shape(command).1 as u64)
            .saturating_mul(left.sum())
    }
}

/// A product of sums of components of both matrices, which is added to cross terms of a form, or taken away.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OfSums {
    /// Components of the left matrix that are added up.
    pub left: Vec<u8>,
    /// Components of the right matrix that are added up.
    pub right: Vec<u8>,
    /// Cross terms of the form that it is part of, by their numbers, and whether it is taken away.
    pub into: Vec<(usize, bool)>,
}

/// Components whose sums four parties multiply, in the order of [`MatMul::of_sums`]: the same of both matrices.
pub(crate) const SUMS_OF_FOUR: [&[u8]; 5] = [&[1, 2], &[2], &[0, 1], &[1], &[0, 1, 2]];

impl MatMul {
    /// What the form multiplies: u (w + w') + u' w takes a product for each left component. The three cross terms of four parties take five in all, not six, with
    /// u_ij = u_i + u_j, and so on:
    ///
    /// ```text
    /// u_1 w_1 + u_1 w_2 + u_2 w_1 = u_12 w_12 - u_2 w_2        u_0 w_0 + u_0 w_1 + u_1 w_0 = u_01 w_01 - u_1 w_1
    /// u_0 w_2 + u_2 w_0 = u_012 w_012 - u_12 w_12 - u_01 w_01 + u_1 w_1
    /// ```
    ///
    /// Where components of the right matrix are zero, each that is not takes one product in each cross term: w (u + u').
    ///
    /// No sum has a component twice.
    pub fn of_sums(self) -> Vec<OfSums> {
        let form = self.form;
        let mut all: Vec<OfSums> = Vec::new();
        if self.zeros == 0 && form.crosses.len() == 3 && form.is_replicated() {
            let [next, previous, opposite] = [0, 1, 2];
            let into: [&[(usize, bool)]; 5] = [
                &[(next, false), (opposite, true)],
                &[(next, true)],
                &[(previous, false), (opposite, true)],
                &[(previous, true), (opposite, false)],
                &[(opposite, false)],
            ];
            let all = SUMS_OF_FOUR.into_iter().zip(into);
            let all = all.map(|(components, into)| OfSums {
                left: components.to_vec(),
                right: components.to_vec(),
                into: into.to_vec(),
            });
            return all.collect();
        }
        for (number, cross) in form.crosses.iter().enumerate() {
            let into = [(number, false)];
            for (a, b) in cross.terms.iter().filter(|(_, b)| !self.is_zero(*b)) {
                let mut same = all.iter_mut().filter(|of| of.into == into);
                let sum = if self.zeros == 0 {
                    same.find(|of| of.left == [*a] && !of.right.contains(b))
                        .map(|of| (&mut of.right, *b))
                } else {
                    same.find(|of| of.right == [*b] && !of.left.contains(a))
                        .map(|of| (&mut of.left, *a))
                };
                if let Some((sum, component)) = sum {
                    sum.push(component);
                } else {
                    all.push(OfSums {
                        left: vec![*a],
                        right: vec![*b],
                        into: into.to_vec(),
                    });
                }
            }
        }
        all
    }
}

/// A checked command, as matrices.
pub(crate) struct Matrices<'a> {
    of: MatMul,
    command: &'a Command,
    /// Components of an element.
    pub(crate) parts: usize,
    /// Columns of the right matrix, and of the product.
    pub(crate) columns: usize,
}

impl<'a> Matrices<'a> {
    /// Those of a command that was checked.
    pub(crate) fn of(of: MatMul, command: &'a Command) -> Self {
        let parts = rank::parts(of.form);
        let right = &command.src[of.left as usize * parts..];
        let columns = if of.transposed {
            right.len() / parts
        } else {
            (right[0].count / of.left) as usize
        };
        Matrices {
            of,
            command,
            parts,
            columns,
        }
    }

    /// Terms of each element of the product, of a chunk of so many rows.
    pub(crate) const fn inner(&self, rows: u32) -> usize {
        (if self.of.transposed {
            rows
        } else {
            self.of.left
        }) as usize
    }

    /// Rows of the product.
    pub(crate) const fn rows(&self, rows: u32) -> usize {
        (if self.of.transposed {
            self.of.left
        } else {
            rows
        }) as usize
    }

    /// A component of column `k` of the left matrix.
    pub(crate) fn left(&self, k: usize, part: usize) -> Span {
        self.command.src[k * self.parts + part]
    }

    /// A component of column `j` of the right matrix: a column of rows, or as many items as the left matrix has columns.
    pub(crate) fn right(&self, j: usize, part: usize) -> Span {
        let right = &self.command.src[self.of.left as usize * self.parts..];
        if self.of.transposed {
            right[j * self.parts + part]
        } else {
            self.items(right[part], j)
        }
    }

    /// Column `j` of component or message `k` of the product, in the order of destinations.
    pub(crate) fn product(&self, k: usize, j: usize) -> Span {
        if self.of.transposed {
            self.items(self.command.dst[k], j)
        } else {
            self.command.dst[k * self.columns + j]
        }
    }

    fn items(&self, all: Span, j: usize) -> Span {
        Span {
            first: all.first + j as u32 * self.of.left,
            count: self.of.left,
            ..all
        }
    }
}

/// The first thing that is wrong with matrices that are to be multiplied.
pub(crate) fn check(of: MatMul, command: &Command, layout: &Layout) -> Result<(), &'static str> {
    let ring = of.form.ring;
    if ring == Ring::Bits || !of.form.fits(Form::MOST_PARTS as u8) {
        return Err("a form of integers, of as many components as there are, is needed");
    }
    let parts = rank::parts(of.form);
    let outputs = rank::written(of.form).count() + rank::messages(of.form).count();
    let left = of.left as usize * parts;
    if of.left == 0 || command.src.len() <= left {
        return Err("all components of a left and of a right matrix are needed");
    }
    let (left, right) = command.src.split_at(left);
    let region = |span: &Span| &layout.regions[span.region as usize];
    let column = |span: &Span| {
        let of = region(span);
        span.count == 1 && of.column == ColumnType::Rows(ring) && of.residency != Residency::Plane
    };
    // What all rows share lies packed.
    let items = |span: &Span| {
        let of = region(span);
        span.count > 0 && of.column == ColumnType::One(ring) && of.residency != Residency::Plane
    };
    if !left.iter().all(column) {
        return Err("one item of integers of the form's ring each, in no plane, is needed");
    }
    let shared = if of.transposed {
        if !right.iter().all(column) || !right.len().is_multiple_of(parts) {
            return Err("all components of columns of rows are needed as a right matrix");
        }
        &command.dst
    } else {
        if right.len() != parts {
            return Err("a right matrix is one span for each component");
        }
        right
    };
    let fits = |span: &Span| items(span) && span.count.is_multiple_of(of.left);
    if !shared
        .iter()
        .all(|span| fits(span) && span.count == shared[0].count)
    {
        return Err("elements that all rows share are whole columns of the left matrix's width");
    }
    let fits = if of.transposed {
        let columns = (right.len() / parts) as u64;
        let each = u64::from(of.left) * columns;
        command.dst.len() == outputs && command.dst.iter().all(|to| u64::from(to.count) == each)
    } else {
        let columns = (right[0].count / of.left) as usize;
        command.dst.len() == outputs * columns && command.dst.iter().all(column)
    };
    if !fits {
        return Err("the components that are written, and the other messages, are needed");
    }
    if command.calls.len() != of.form.calls() {
        return Err("not the draws of the form");
    }
    disjoint(command)
}

/// That no destination overlaps a source or another destination: of matrices, which have thousands of columns.
fn disjoint(command: &Command) -> Result<(), &'static str> {
    let destinations = command.dst.iter().map(|span| (*span, true));
    let sources = command.src.iter().map(|span| (*span, false));
    let mut all: Vec<(Span, bool)> = destinations.chain(sources).collect();
    all.sort_unstable_by_key(|(span, _)| (span.region, span.component, span.first));
    // How far spans of one component reach so far, and destinations among them.
    let (mut of, mut any, mut written) = (None, 0, 0);
    for (span, writes) in all {
        if of != Some((span.region, span.component)) {
            (of, any, written) = (Some((span.region, span.component)), 0, 0);
        }
        let end = span.first + span.count;
        if span.first < (if writes { any } else { written }) {
            return Err("a destination overlaps a source or another destination");
        }
        any = any.max(end);
        if writes {
            written = written.max(end);
        }
    }
    Ok(())
}
