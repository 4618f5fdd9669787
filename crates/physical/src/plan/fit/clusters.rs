//! k-means: products of cells and centres say how far rows are from each, comparisons which is nearest, and a product of these choices and the cells what rows of each centre add up to.

use veil_circuit::generate::{OnRing, Rounding};
use veil_job::passes::Take;
use veil_math::Ring;
use veil_operators::Shared;
use veil_relation::{Clusters, Fit, Range, Shape};

use super::{
    NARROW, Out, PhysicalError, Planner, Rel, Rows, WIDE, arithmetic, at_least, bits_of,
    everywhere, none, number, numbers, relation, takes, wrong,
};

/// Centres, and how many rows each has.
struct Found {
    /// Of each feature a coordinate modulo 2^128, in rows of centres.
    centres: Vec<Shared>,
    rows: Shared,
}

impl Planner<'_> {
    /// The relation of clusters, in the order of their first centres.
    pub(super) fn clusters(
        &mut self,
        of: &Clusters,
        model: &Fit,
        rows: &Rows,
        shape: &Shape,
    ) -> Result<Rel, PhysicalError> {
        let count = of.start().len();
        let mut centres = self.first_centres(of, NARROW)?;
        let mut wide = self.first_centres(of, WIDE)?;
        let mut found = None;
        for step in 0..of.spec().iterations {
            if step > 0 {
                centres = self.narrowed(of, &wide, count)?;
            }
            let sums = self.rows_of_centres(of, rows, &centres)?;
            let next = self.next_centres(of, &sums, &wide)?;
            wide.clone_from(&next.centres);
            found = Some(next);
        }
        let found = found.ok_or_else(none)?;
        self.shown_clusters(of, model, &found, shape)
    }

    /// The first centres, which are public: a column of integers of a ring for each feature.
    fn first_centres(&mut self, of: &Clusters, ring: Ring) -> Result<Vec<Shared>, PhysicalError> {
        let start = of.start();
        let features = of.spec().features.len();
        self.matrix_pass(ring, start.len() as u32, |ports| {
            let rows = super::diagonal(ports, start.len());
            let rows: Vec<_> = rows.iter().map(|row| ports.b.lift(*row)).collect();
            let columns = (0..features).map(|feature| {
                let b = &mut ports.b;
                let mut sum = b.constant(0);
                for (row, centre) in rows.iter().zip(start) {
                    let cell = b.ring().reduce(centre[feature] as u128);
                    let part = b.times(*row, cell);
                    sum = b.add(sum, part);
                }
                Out::Integer(sum)
            });
            Ok(columns.collect())
        })
    }

    /// What the rows of each centre add up to: of the number of rows and of each feature a column modulo 2^64, in rows of centres.
    fn rows_of_centres(
        &mut self,
        of: &Clusters,
        rows: &Rows,
        centres: &[Shared],
    ) -> Result<Vec<Shared>, PhysicalError> {
        let count = of.start().len();
        let mut range = Range::point(0);
        let norms = self.matrix_pass(NARROW, count as u32, |ports| {
            let centre = numbers(ports, takes(centres), of.cells());
            let mut on = OnRing::new(&mut ports.b, Rounding::Nearest);
            let norm = of.norm(&mut arithmetic(&mut on), &centre).map_err(wrong)?;
            range = norm.range;
            Ok(vec![Out::Integer(norm.int)])
        })?[0];
        // A column of the right matrix is a centre.
        let right = (0..count).map(|centre| Take::Rows {
            of: centres.iter().map(Shared::column).collect(),
            first: centre as i64,
            step: count as i32,
        });
        let left = takes(&rows.cells[1..]).collect();
        let of_product = (NARROW, false);
        let products = self
            .b
            .product_of(rows.count, of_product, left, right.collect());
        let nearest = self.matrix_pass(NARROW, rows.count, |ports| {
            let products = numbers(ports, takes(&products), of.products());
            let norms = (0..count).map(|centre| everywhere(norms, centre));
            let norms = numbers(ports, norms, range);
            let holds = ports.bits(rows.holds.take(), 1)[0];
            let mut on = OnRing::new(&mut ports.b, Rounding::Nearest);
            let mut a = arithmetic(&mut on);
            let distances = products.iter().zip(&norms);
            let distances = distances.map(|(product, norm)| of.distance(&mut a, product, norm));
            let distances = distances.collect::<Result<Vec<_>, _>>().map_err(wrong)?;
            let nearest = of.nearest(&mut a, &distances).map_err(wrong)?;
            let outs = nearest.into_iter().map(|bit| {
                let bit = ports.b.and(bit, holds);
                Out::Integer(ports.b.lift(bit))
            });
            Ok(outs.collect())
        })?;
        Ok(self.b.transposed_product(&nearest, &rows.cells))
    }

    /// The means of the rows of each centre.
    fn next_centres(
        &mut self,
        of: &Clusters,
        sums: &[Shared],
        old: &[Shared],
    ) -> Result<Found, PhysicalError> {
        let count = of.start().len() as u32;
        let mut wide = Vec::new();
        for sum in sums {
            wide.push(self.in_ring_of((NARROW, WIDE), (sum.take(), count), of.sums())?);
        }
        let made = self.matrix_pass(WIDE, count, |ports| {
            let sums = numbers(ports, takes(&wide), of.sums());
            let before = numbers(ports, takes(old), of.cells());
            let mut on = OnRing::new(&mut ports.b, Rounding::Nearest);
            let mut a = arithmetic(&mut on);
            // The cells of the intercept are those of rows.
            let (of_rows, sums) = sums.split_first().ok_or_else(none)?;
            let rows = of.rows(&mut a, of_rows).map_err(wrong)?;
            let (inverse, is_empty) = of.inverse(&mut a, &rows).map_err(wrong)?;
            let mut outs = vec![Out::Integer(rows.int)];
            for (sum, old) in sums.iter().zip(&before) {
                let centre = of.centre(&mut a, sum, &inverse, (&is_empty, old));
                outs.push(Out::Integer(centre.map_err(wrong)?.int));
            }
            Ok(outs)
        })?;
        Ok(Found {
            rows: made[0],
            centres: made[1..].to_vec(),
        })
    }

    /// Centres modulo 2^64.
    fn narrowed(
        &mut self,
        of: &Clusters,
        centres: &[Shared],
        count: usize,
    ) -> Result<Vec<Shared>, PhysicalError> {
        let narrow = centres.iter().map(|centre| {
            let take = (centre.take(), count as u32);
            self.in_ring_of((WIDE, NARROW), take, of.cells())
        });
        narrow.collect()
    }

    /// The clusters in units of the columns.
    fn shown_clusters(
        &mut self,
        of: &Clusters,
        model: &Fit,
        found: &Found,
        shape: &Shape,
    ) -> Result<Rel, PhysicalError> {
        let count = of.start().len();
        let kind = |at: usize| &shape.fields[at].ty.kind;
        let range = |at: usize| kind(at).range().unwrap_or(Range::point(0));
        let values = self.matrix_pass(WIDE, count as u32, |ports| {
            let rows = number(ports, found.rows.take(), range(1));
            let centres = numbers(ports, takes(&found.centres), of.cells());
            let mut outs = vec![Out::Bits(bits_of(ports, &rows, range(1)))];
            for (feature, centre) in centres.iter().enumerate() {
                let mut on = OnRing::new(&mut ports.b, Rounding::Nearest);
                let shown = of
                    .shown(&mut arithmetic(&mut on), feature, centre)
                    .map_err(wrong)?;
                outs.push(Out::Bits(bits_of(ports, &shown, range(2 + feature))));
            }
            Ok(outs)
        })?;
        let bits = kind(0).bits().unwrap_or(0);
        let mut columns = vec![self.numbered(count, bits)?];
        columns.extend(values);
        let mut rel = relation(&columns, count, shape, model.min_rows);
        if model.min_rows > 0 {
            rel.valid
                .push(at_least(rel.fields[1].clone(), model.min_rows));
        }
        Ok(rel)
    }
}
