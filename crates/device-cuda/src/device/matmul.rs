//! Products of matrices: what kernels/device/matmul.cu reads of them.

use std::ops::Range;

use veil_device::{ColumnType, Command, Fault, MatMul, OfSums, Span};
use veil_math::Ring;

use super::program::form;
use super::queue::{Argument, Queue, number};
use crate::kernels::{Kernel, MATMUL_END, MATMUL_PACK, MATMUL_Z32, MATMUL_Z64, MATMUL_Z128};

/// Components of an element, and draws, at most.
const COMPONENTS: usize = 3;
const DRAWS: usize = 6;
/// Rows or columns of a fragment, terms of it, and its bytes of a limb.
const LINES: u64 = 16;
const TERMS: u64 = 32;
const FRAGMENT: u64 = 512;
/// Bytes of packed sums of a block, for each multiprocessor: as many as tiles of a large product need to be of many steps.
const PACKED: u64 = 5 << 20;
/// Rows, and columns, of a block at most, which leaves it some terms.
const MOST_LINES: u64 = 1 << 13;
/// Threads of a block of the kernels of tiles.
const TILE_THREADS: u64 = 256;
/// What a tile costs besides its steps, in steps: the first of them to come, and the sums to be put together.
const EDGE: u64 = 4;

/// The kernel of a ring, limbs of an element, and rows and columns of a tile.
const fn of_ring(ring: Ring) -> (&'static Kernel, u64, [u64; 2]) {
    match ring {
        Ring::Z32 => (&MATMUL_Z32, 4, [128, 64]),
        Ring::Z64 => (&MATMUL_Z64, 8, [64, 64]),
        Ring::Z128 | Ring::Bits => (&MATMUL_Z128, 16, [64, 32]),
    }
}

/// A block of both matrices.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Block {
    rows: Range<u64>,
    columns: Range<u64>,
    terms: Range<u64>,
}

/// Rows and columns of a product, and terms of an element.
#[derive(Clone, Copy)]
struct Shape {
    rows: u64,
    columns: u64,
    inner: u64,
}

const fn lines(range: &Range<u64>) -> u64 {
    (range.end - range.start).div_ceil(LINES)
}

const fn steps(range: &Range<u64>) -> u64 {
    (range.end - range.start).div_ceil(TERMS)
}

/// Blocks of a product, in their order. `element` is bytes of an element in all products of sums; packed sums of a block have `most` bytes, or are of one step.
fn blocks(shape: Shape, element: u64, most: u64) -> Vec<Block> {
    let pieces = |all: u64, each: u64| {
        let firsts = (0..all).step_by(each as usize);
        firsts.map(move |first| first..all.min(first + each))
    };
    let across =
        shape.rows.min(MOST_LINES).div_ceil(LINES) + shape.columns.min(MOST_LINES).div_ceil(LINES);
    let step = across * element * FRAGMENT;
    let depth = (most / step.max(1)).max(1).saturating_mul(TERMS);
    let mut all = Vec::new();
    for columns in pieces(shape.columns, MOST_LINES) {
        for terms in pieces(shape.inner, depth) {
            for rows in pieces(shape.rows, MOST_LINES) {
                all.push(Block {
                    rows,
                    columns: columns.clone(),
                    terms: terms.clone(),
                });
            }
        }
    }
    all
}

/// Parts of the terms of a block that are added up apart, so that tiles keep all multiprocessors busy to the end.
fn parts(tiles: u64, steps: u64, multiprocessors: u64) -> u64 {
    let takes = |parts: &u64| {
        let turns = (tiles * parts).div_ceil(multiprocessors.max(1));
        turns.saturating_mul(steps.div_ceil(*parts) + EDGE)
    };
    let most = steps.clamp(1, multiprocessors.max(1));
    (1..=most).min_by_key(takes).unwrap_or(1)
}

/// Runs of products that are added to the same cross terms: the first, how many, cross terms, and a byte for each.
fn runs(sums: &[OfSums]) -> Vec<[u64; 4]> {
    let mut runs: Vec<[u64; 4]> = Vec::new();
    for (k, of) in sums.iter().enumerate() {
        match runs.last_mut() {
            Some(run) if sums[run[0] as usize].into == of.into => run[1] += 1,
            _ => {
                let targets = of.into.iter().enumerate();
                let targets = targets.fold(0, |word, (at, (cross, minus))| {
                    word | (*cross as u64 | u64::from(*minus) << 7) << (8 * at)
                });
                runs.push([k as u64, 1, of.into.len() as u64, targets]);
            }
        }
    }
    runs
}

impl Queue<'_> {
    pub(super) fn matmul(&mut self, of: MatMul, command: &Command) -> Result<(), Fault> {
        let all = u64::from(self.memory.frame.rows);
        let (_, columns) = of.shape(command);
        let [rows, inner] = if of.transposed {
            [u64::from(of.left), all]
        } else {
            [all, u64::from(of.left)]
        };
        let shape = Shape {
            rows,
            columns: columns as u64,
            inner,
        };
        let (kernel, limbs, tile) = of_ring(of.form.ring);
        // Terms lie in front of packed sums.
        let pitch = (rows * limbs).next_multiple_of(LINES);
        let cross = pitch * shape.columns;
        let terms = cross * of.form.crosses.len() as u64;
        let call = self.matrices(of, command, shape, pitch)?;
        let call = self.call(&call);
        let sums = of.of_sums();
        let (products, runs) = (sums.len() as u64, runs(&sums));
        let bits = |components: &[u8]| components.iter().fold(0, |bits, c| bits | 1u64 << c);
        let multiprocessors = u64::from(self.blocks);
        let most = PACKED * multiprocessors;
        let mut blocks = blocks(shape, products * limbs, most);
        if blocks.is_empty() {
            // Terms are zero all the same.
            blocks.push(Block {
                rows: 0..0,
                columns: 0..0,
                terms: 0..0,
            });
        }
        for (at, block) in blocks.iter().enumerate() {
            let steps = products * steps(&block.terms);
            let [left, right] =
                [&block.rows, &block.columns].map(|of| steps * lines(of) * limbs * FRAGMENT);
            let tiles = [&block.rows, &block.columns].map(|of| of.end - of.start);
            let tiles = tiles[0].div_ceil(tile[0]) * tiles[1].div_ceil(tile[1]);
            let longest = runs.iter().map(|run| run[1]).max().unwrap_or(0);
            let parts = parts(tiles, longest * steps / products.max(1), multiprocessors);
            let ranges = [&block.rows, &block.columns, &block.terms];
            let mut numbers = ranges.map(|of| of.start).to_vec();
            numbers.extend(ranges.map(|of| of.end - of.start));
            let clear = if at == 0 { terms } else { 0 };
            numbers.extend([terms, terms + left, parts, clear, 0, pitch, cross]);
            numbers.extend([products, runs.len() as u64]);
            numbers.extend(sums.iter().flat_map(|of| [bits(&of.left), bits(&of.right)]));
            numbers.extend(runs.as_flattened());
            let numbers = self.call(&numbers);
            let pack = [
                Argument::Workspace,
                Argument::Temps,
                call,
                numbers,
                Argument::Verdict,
            ];
            let packs = (left + right) / limbs / LINES;
            self.step(&MATMUL_PACK, Some(packs.max(clear / LINES)), &pack);
            if steps * tiles > 0 {
                let work = tiles * parts * TILE_THREADS;
                let arguments = [Argument::Temps, numbers, Argument::Verdict];
                self.step(kernel, Some(work), &arguments);
            }
            self.temps = self.temps.max(terms + left + right);
        }
        let end = [
            Argument::Workspace,
            Argument::Temps,
            call,
            Argument::Verdict,
            Argument::Schedules,
        ];
        self.step(&MATMUL_END, Some(cross / LINES), &end);
        Ok(())
    }

    /// Numbers of a command: its form and its draws, and where its columns are.
    fn matrices(
        &self,
        of: MatMul,
        command: &Command,
        shape: Shape,
        pitch: u64,
    ) -> Result<Vec<u64>, Fault> {
        let (parts, columns) = of.shape(command);
        let to = self.item(command.dst[0]);
        let mut call = vec![
            shape.rows,
            shape.columns,
            shape.inner,
            number(of.form.ring),
            u64::from(of.transposed),
            parts as u64,
            self.stride(to),
            u64::from(matches!(to, ColumnType::One(_))),
            0,
            pitch,
        ];
        call.extend(form(of.form)?);
        let mut drawn = [[0; 3]; DRAWS];
        for (draw, prf_call) in drawn.iter_mut().zip(&command.calls) {
            *draw = self.prf_call(*prf_call)?;
        }
        call.extend(drawn.as_flattened());
        // A column of elements that all rows share begins so many bytes behind the one before.
        let item = of.form.ring.bytes(1) * u64::from(of.left);
        let at = |span: Span| self.memory.at(span);
        let (of_left, of_right) = command.src.split_at(of.left as usize * parts);
        call.extend(of_left.iter().map(|span| at(*span)));
        if of.transposed {
            call.extend(of_right.iter().map(|span| at(*span)));
        } else {
            let columns = 0..columns as u64;
            call.extend(
                columns.flat_map(|j| of_right.iter().map(move |span| at(*span) + j * item)),
            );
        }
        let place = |k: usize, j: usize| {
            if of.transposed {
                at(command.dst[k]) + j as u64 * item
            } else {
                at(command.dst[k * columns + j])
            }
        };
        let mut next = 0;
        let mut given = |is: bool, call: &mut Vec<u64>| {
            call.extend((0..columns).map(|j| if is { place(next, j) } else { u64::MAX }));
            next += usize::from(is);
        };
        for part in 0..COMPONENTS {
            given(of.form.writes() >> part & 1 == 1, &mut call);
        }
        for cross in 0..COMPONENTS {
            let is = cross < of.form.crosses.len() && !of.form.is_component(cross);
            given(is, &mut call);
        }
        Ok(call)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks have all terms of all elements once, and packed sums have room, unless a single step has none.
    #[test]
    fn blocks_have_all_terms_once() {
        for (rows, columns, inner) in [
            (1, 1, 1),
            (5, 9000, 70),
            (20_000, 3, 1000),
            (9000, 9000, 1),
            (64, 64, 100_000),
        ] {
            let shape = Shape {
                rows,
                columns,
                inner,
            };
            for most in [1, 1 << 20, 1 << 30] {
                let all = blocks(shape, 16, most);
                let length = |of: &Range<u64>| of.end - of.start;
                let terms = all.iter().map(|block| {
                    length(&block.rows) * length(&block.columns) * length(&block.terms)
                });
                assert_eq!(terms.sum::<u64>(), rows * columns * inner);
                for (k, block) in all.iter().enumerate() {
                    let step = (lines(&block.rows) + lines(&block.columns)) * 16 * FRAGMENT;
                    assert!(step * steps(&block.terms) <= most.max(step));
                    let apart =
                        |a: &Range<u64>, b: &Range<u64>| a.end <= b.start || b.end <= a.start;
                    assert!(all[..k].iter().all(|other| apart(&other.rows, &block.rows)
                        || apart(&other.columns, &block.columns)
                        || apart(&other.terms, &block.terms)));
                }
            }
        }
        let none = Shape {
            rows: 0,
            columns: 4,
            inner: 4,
        };
        assert!(blocks(none, 16, 1 << 20).is_empty());
    }

    /// Few tiles are split by their terms, and many are not.
    #[test]
    fn terms_are_split_where_tiles_are_few() {
        assert_eq!(parts(1, 1 << 15, 132), 132);
        assert_eq!(parts(256, 64, 132), 1);
        assert_eq!(parts(1024, 64, 132), 1);
        assert_eq!(parts(1, 1, 132), 1);
        assert_eq!(parts(0, 0, 132), 1);
        // A second turn of eight tiles would leave most of them without work.
        assert!(parts(140, 1000, 132) > 1);
    }

    #[test]
    fn products_for_the_same_cross_terms_are_one_run() {
        let three = |zeros| MatMul {
            form: veil_device::Form::replicated(Ring::Z64),
            left: 1,
            transposed: false,
            zeros,
        };
        assert_eq!(runs(&three(0).of_sums()), [[0, 2, 1, 0]]);
        assert_eq!(runs(&three(2).of_sums()), [[0, 1, 1, 0]]);
        assert_eq!(runs(&three(3).of_sums()), [[0; 4]; 0]);
        let four = MatMul {
            form: veil_device::Form::fourfold(Ring::Z64, false, false),
            ..three(0)
        };
        let want = [
            [0, 1, 2, 0x8200],
            [1, 1, 1, 0x80],
            [2, 1, 2, 0x8201],
            [3, 1, 2, 0x0281],
            [4, 1, 1, 2],
        ];
        assert_eq!(runs(&four.of_sums()), want);
    }
}
