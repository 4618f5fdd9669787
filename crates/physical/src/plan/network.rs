//! Networks over the rows of a relation.
//!
//! A map has a column of integers, or several that stand one behind the other, in which the cells of all rows lie as an array: channel, row and column of the image, and last the rows of the relation.
//! A sum is a product of windows of that array and a matrix of weights, public or on shares; what becomes of cells is a circuit in each of them.

use veil_circuit::Wire;
use veil_job::passes::{Axis, Take};
use veil_math::Ring;
use veil_numeric::Number;
use veil_operators::{Shared, Sharing};
use veil_relation::network::{Cells, Inference, Product, Settle, Step, Window, count};
use veil_relation::{Apply, Expr, Kind, Range, Shape};

use super::fit::{NARROW, integer_of, public, rounded, wrong};
use super::rel::{Base, Field, Rel, present};
use super::rows::{Out, Ports};
use super::{PhysicalError, Planner};
use crate::exprs::{Bits, ExprError, Want, Word, choose, highest, less, less_bits, masked};

/// Bytes of a matrix of windows, at most: rows of a relation are computed so many at once.
const MOST_BYTES: u64 = 1 << 26;

/// The cells of some rows of a relation.
struct Map {
    /// Columns that stand one behind the other.
    of: Vec<Shared>,
    cells: Cells,
    /// Rows of the relation.
    rows: u32,
}

impl Map {
    /// What is taken along these axes of channels, rows and columns, in all rows of the relation.
    fn view(&self, axes: [Axis; 3]) -> Take {
        let axes = axes.into_iter().chain([Axis::whole(self.rows)]);
        Take::View {
            of: self.of.iter().map(Shared::column).collect(),
            axes: axes.collect(),
        }
    }

    /// The same place of every window, for all places of the window.
    fn places<'a>(
        &'a self,
        window: &'a Window,
        [_, down, across]: Cells,
    ) -> impl Iterator<Item = [Axis; 2]> + 'a {
        let along = |length, at: u32, stride: u32, before: u32, count| Axis {
            length,
            first: at as i32 - before as i32,
            step: stride as i32,
            count,
        };
        let [_, rows, columns] = self.cells;
        let Window {
            size,
            stride,
            padding,
        } = *window;
        (0..size[0]).flat_map(move |y| {
            (0..size[1]).map(move |x| {
                [
                    along(rows, y, stride[0], padding[0], down),
                    along(columns, x, stride[1], padding[1], across),
                ]
            })
        })
    }
}

/// Rows of a relation that are computed at once.
fn at_once(of: &Inference, rows: u32) -> u32 {
    let bytes = of.steps().iter().map(|step| match step {
        Step::Product(product) => {
            let terms = product.weights.terms() as u64 + 1;
            let [_, rows, columns] = product.cells;
            8 * terms * u64::from(rows) * u64::from(columns)
        }
        Step::Settle(settle) => 8 * count(settle.before),
    });
    let most = bytes
        .max()
        .map_or(1, |bytes| (MOST_BYTES / bytes.max(1)).max(1));
    u32::try_from(most).unwrap_or(u32::MAX).min(rows)
}

/// The bits of a cell, rounded, less the least number that it may be.
fn bits_of_cell(ports: &mut Ports, settle: &Settle, cell: Wire) -> Vec<Wire> {
    let b = &mut ports.b;
    let int = b.times(cell, b.ring().reduce(i128::from(settle.factor) as u128));
    // The highest bit is the sign.
    let range = settle.signed();
    rounded(ports, &Number { int, range }, settle.by, range)
        .int
        .bits
}

/// Rows of a pass.
fn fits(rows: u64) -> Result<u32, PhysicalError> {
    let most = u64::from(u32::MAX) / 2;
    let fits = u32::try_from(rows).ok().filter(|_| rows <= most);
    fits.ok_or_else(|| PhysicalError::Circuit("a network has too many cells for a pass".into()))
}

impl Planner<'_> {
    /// A relation with what a network gives for each row.
    pub(super) fn inferred(
        &mut self,
        mut rel: Rel,
        (model, of): (&Apply, &Inference),
        weights: Option<Rel>,
        shape: &Shape,
    ) -> Result<Rel, PhysicalError> {
        let matrices = self.matrices(of, weights)?;
        let exprs: Vec<Expr> = model
            .features
            .iter()
            .map(|expr| rel.over_base(expr))
            .collect();
        let (cells, null) = self.features(&mut rel, &exprs, of.factors())?;
        let rows = at_once(of, fits(rel.rows.into())?);
        let mut given = Vec::new();
        let mut first = 0;
        while first < rel.rows {
            let features = Take::View {
                of: cells.iter().map(Shared::column).collect(),
                axes: vec![
                    Axis::whole(cells.len() as u32),
                    Axis {
                        length: rel.rows,
                        first: first as i32,
                        step: 1,
                        count: rows,
                    },
                ],
            };
            let all = cells.len() as u64 * u64::from(rows);
            let all = self.b.make(features, fits(all)?, Sharing::Ring(NARROW));
            let mut maps = vec![Map {
                of: vec![all],
                cells: model.network.parts().cells,
                rows,
            }];
            for (at, (step, matrix)) in of.steps().iter().zip(&matrices).enumerate() {
                let last = at + 1 == of.steps().len();
                let next = match step {
                    Step::Product(product) => {
                        self.network_product(&maps[product.of], product, matrix.clone())
                    }
                    Step::Settle(settle) => {
                        let of: Vec<&Map> = settle.of.iter().map(|map| &maps[*map]).collect();
                        self.settled(&of, settle, last)?
                    }
                };
                maps.push(next);
            }
            let last = maps
                .pop()
                .ok_or_else(|| PhysicalError::Circuit("a network has layers".into()))?;
            given.extend(last.of);
            first = first.saturating_add(rows);
        }
        self.read_out(rel, (model, of), (&given, rows), null, shape)
    }

    /// The features as integers with the same decimal places, a column each, and whether one of them is null.
    fn features(
        &mut self,
        rel: &mut Rel,
        exprs: &[Expr],
        factors: &[i64],
    ) -> Result<(Vec<Shared>, Option<Shared>), PhysicalError> {
        let types = rel.types();
        let there = present(exprs, &types)?;
        let mut wants = Vec::new();
        for expr in exprs {
            let ty = expr.ty(&types).map_err(ExprError::from)?;
            let is_condition = ty.kind == Kind::Bool;
            wants.push((
                expr.clone(),
                if is_condition {
                    Want::Bits
                } else {
                    Want::Integer
                },
            ));
        }
        let nullable = !there.is_empty();
        let there = Expr::all(there);
        if nullable {
            wants.push((there.clone(), Want::Bits));
        }
        let left = self.rows(rel, NARROW, &wants, |on| {
            let mut outs = Vec::new();
            for ((expr, want), factor) in wants.iter().zip(factors) {
                let int = if *want == Want::Bits {
                    let bit = on.truth(expr)?;
                    on.b.lift(bit)
                } else {
                    on.integer(expr)?.0
                };
                outs.push(Out::Integer(
                    on.b.times(int, u128::from(factor.unsigned_abs())),
                ));
            }
            if nullable {
                let there = on.truth(&there)?;
                outs.push(Out::Bits(vec![on.b.not(there)]));
            }
            Ok(outs)
        })?;
        let (cells, null) = left.split_at(exprs.len());
        Ok((cells.to_vec(), null.first().copied()))
    }

    fn network_product(&mut self, map: &Map, product: &Product, right: Vec<Take>) -> Map {
        let channels = map.cells[0];
        let mut left: Vec<Take> = Vec::new();
        if let Some(window) = &product.window {
            for channel in 0..channels {
                let places = map.places(window, product.cells);
                let views = places
                    .map(|[rows, columns]| map.view([Axis::at(channels, channel), rows, columns]));
                left.extend(views);
            }
        } else {
            // The places of all channels are those of one axis.
            let all = count(map.cells) as u32;
            let cell = |at| map.view([Axis::at(all, at), Axis::whole(1), Axis::whole(1)]);
            left.extend((0..all).map(cell));
        }
        left.push(public(NARROW, 1));
        let [_, down, across] = product.cells;
        let rows = down * across * map.rows;
        Map {
            of: self.b.product_of(rows, (NARROW, false), left, right),
            cells: product.cells,
            rows: map.rows,
        }
    }

    /// What becomes of each cell: integers, or bits less the least of their range where they are given.
    fn settled(&mut self, of: &[&Map], settle: &Settle, last: bool) -> Result<Map, PhysicalError> {
        let rows = of[0].rows;
        let all = fits(count(settle.cells) * u64::from(rows))?;
        let aim = self.aim(all);
        let whole = |map: &Map| map.view(map.cells.map(Axis::whole));
        let views = of.iter().flat_map(|map| match &settle.window {
            None => vec![whole(map)],
            Some(window) => {
                let channels = Axis::whole(map.cells[0]);
                let places = map.places(window, settle.cells);
                places
                    .map(|[rows, columns]| map.view([channels, rows, columns]))
                    .collect()
            }
        });
        let views: Vec<Take> = views.collect();
        let made = self.matrix_pass(NARROW, all, |ports| {
            let cells: Vec<Wire> = views.into_iter().map(|take| ports.integer(take)).collect();
            let added = if settle.sum {
                let first = ports.b.constant(0);
                vec![
                    cells
                        .iter()
                        .fold(first, |sum, cell| ports.b.add(sum, *cell)),
                ]
            } else {
                cells
            };
            if settle.is_sum() && !last {
                return Ok(vec![Out::Integer(added[0])]);
            }
            let mut words: Vec<Vec<Wire>> = added
                .iter()
                .map(|cell| bits_of_cell(ports, settle, *cell))
                .collect();
            // The largest, pair by pair: bits from the same least number on.
            while words.len() > 1 {
                let pairs = words.chunks(2).map(|pair| match pair {
                    [a, b] => {
                        let gates = &mut ports.b;
                        let smaller = less_bits(gates, a, b, aim);
                        choose(gates, smaller, b, a)
                    }
                    rest => rest.concat(),
                });
                words = pairs.collect();
            }
            let mut bits = words.pop().unwrap_or_default();
            if settle.relu
                && let Some(positive) = bits.pop()
            {
                bits.truncate(settle.positive as usize);
                bits = masked(&mut ports.b, &bits, positive);
            }
            let mut word = Word::of_bits(bits, settle.rounded());
            if let Some(function) = &settle.function {
                let number = Number {
                    range: word.range,
                    int: word,
                };
                let applied = function.on(&mut Bits::new(&mut ports.b, aim), &number);
                word = applied
                    .map_err(|error| wrong(veil_relation::FitError::from(error)))?
                    .int;
            }
            let mut bits = word.normal(&mut ports.b, aim);
            if last && bits.is_empty() {
                bits.push(ports.b.constant_bit(false));
            }
            Ok(vec![if last {
                Out::Bits(bits)
            } else {
                Out::Integer(integer_of(&mut ports.b, &bits, word.range.min()))
            }])
        })?;
        Ok(Map {
            of: made,
            cells: settle.cells,
            rows,
        })
    }

    /// Scores and classes as columns of the relation.
    fn read_out(
        &mut self,
        mut rel: Rel,
        (model, of): (&Apply, &Inference),
        (given, at_once): (&[Shared], u32),
        null: Option<Shared>,
        shape: &Shape,
    ) -> Result<Rel, PhysicalError> {
        let ranges = of.outputs();
        let score = |at: usize| {
            let view = Take::View {
                of: given.iter().map(Shared::column).collect(),
                axes: vec![
                    Axis::whole(given.len() as u32),
                    Axis::at(ranges.len() as u32, at as u32),
                    Axis::whole(at_once),
                ],
            };
            view.bits(0, ranges[at].bits())
        };
        let fields = &shape.fields[rel.fields.len()..];
        let classes = model.classes()?;
        let shows_scores = classes.is_none() || model.scores;
        let rows = rel.rows;
        let aim = self.aim(rows);
        let made = self.matrix_pass(Ring::Bits, rows, |ports| {
            let scores: Vec<Word> = ranges
                .iter()
                .enumerate()
                .map(|(at, range)| {
                    let bits = match range.bits() {
                        0 => vec![],
                        bits => ports.bits(score(at), bits),
                    };
                    Word::of_bits(bits, *range)
                })
                .collect();
            let there = null.map(|null| {
                let null = ports.bits(null.take(), 1)[0];
                ports.b.not(null)
            });
            let mut outs = Vec::new();
            let b = &mut ports.b;
            if let Some((values, indices)) = &classes {
                let range = Range::new(0, values.texts().len() as i128 - 1);
                let range = range.unwrap_or(Range::point(0));
                let best = match &scores[..] {
                    [one] => {
                        let zero = Word::constant(b, 0, Range::point(0));
                        let second = less(b, &zero, one, aim);
                        let [first, other] = [0, 1].map(|at| {
                            let index = i128::from(indices[at]);
                            Word::constant(b, index, range).bits
                        });
                        choose(b, second, &other, &first)
                    }
                    all => highest(b, aim, all, indices, range).normal(b, aim),
                };
                outs.push(best);
            }
            if shows_scores {
                let shown = scores.iter().filter(|score| !score.bits.is_empty());
                outs.extend(shown.map(|score| score.normal(b, aim)));
            }
            if let Some(there) = there {
                for out in &mut outs {
                    *out = masked(b, out, there);
                }
            }
            if outs.is_empty() {
                // Of numbers that are 0 in every row.
                outs.push(vec![b.constant_bit(false)]);
            }
            Ok(outs.into_iter().map(Out::Bits).collect())
        })?;
        let null = null.map(|null| Field::new(null, 0, 1));
        let mut made = made.into_iter();
        for field in fields {
            // A number that is 0 in every row is no column.
            let bits = match field.ty.kind.bits().unwrap_or(0) {
                0 => None,
                bits => made.next().map(|column| Field::new(column, 0, bits)),
            };
            let null = null.filter(|_| field.ty.nullable);
            let expr = rel.push(Base::of_bits(field.ty.clone(), bits, null));
            rel.fields.push(expr);
        }
        Ok(rel)
    }
}
