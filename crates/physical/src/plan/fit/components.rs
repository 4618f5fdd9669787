//! Principal components: sums of products of cells are the only pass over all rows; powers of the correlations' matrix are products modulo 2^128.

use veil_circuit::generate::{OnRing, Rounding};
use veil_job::passes::Take;
use veil_operators::{Shared, Sharing};
use veil_relation::{Components, Fit, Range, Shape};

use super::square::{Square, down};
use super::{
    NARROW, Out, PhysicalError, Planner, Rel, Rows, WIDE, arithmetic, bits_of, everywhere, number,
    numbers, relation, wrong,
};

/// What is found of a component.
struct Found {
    /// What it explains, in one row.
    value: Shared,
    /// In the row of each feature.
    loadings: Shared,
}

impl Planner<'_> {
    /// The relation of components, the one that explains most first.
    pub(super) fn components(
        &mut self,
        of: &Components,
        model: &Fit,
        rows: &Rows,
        shape: &Shape,
    ) -> Result<Rel, PhysicalError> {
        let terms = of.spec().features.len();
        let diagonal = self.diagonal_of(terms)?;
        let mut left = self.correlations(of, rows)?;
        let mut found = Vec::new();
        for at in 0..of.spec().components {
            let power = self.powered(of, &left, diagonal)?;
            let loadings = self.loadings(of, &power)?;
            let (value, image) = self.explained(of, &left, loadings)?;
            if at + 1 < of.spec().components {
                left = self.rest(of, &left, (value, image))?;
            }
            found.push(Found { value, loadings });
        }
        self.shown_components(of, model, (rows.holds, &found), shape)
    }

    /// The correlations of the features.
    fn correlations(&mut self, of: &Components, rows: &Rows) -> Result<Square, PhysicalError> {
        let terms = of.spec().features.len();
        let count = terms as u32;
        let sums = self.b.transposed_product(&rows.cells, &rows.cells);
        let all = Take::Rows {
            of: sums.iter().map(Shared::column).collect(),
            first: 0,
            step: 1,
        };
        let all = self.in_ring_of(
            (NARROW, WIDE),
            (all, (count + 1) * (count + 1)),
            of.products(),
        )?;
        // Row 0 and column 0 are those of ones.
        let wide = i64::from(count + 1);
        let own = |feature: usize| all.rows_from(wide * (feature as i64 + 1) + 1);
        let columns =
            (0..terms).map(|feature| self.b.make(own(feature), count, Sharing::Ring(WIDE)));
        let columns: Vec<Shared> = columns.collect();
        let products = Square { of: columns, terms };
        let sum = self.b.make(all.rows_from(1), count, Sharing::Ring(WIDE));
        let of_columns = self.across(sum, terms);
        let squares = count * count;
        let inputs = [
            (everywhere(all, 0), of.products()),
            (products.elements(), of.products()),
            (down(sum, terms), of.products()),
            (of_columns.elements(), of.products()),
        ];
        let (covariance, covariances) =
            self.integer(squares, inputs, |a, [rows, product, own, other]| {
                of.covariance(a, [&rows, &product, &own, &other])
            })?;
        let covariance = Square::whole(covariance, terms);
        let inputs = [(covariance.diagonal(), covariances)];
        let (scale, scales) =
            self.integer(count, inputs, |a, [variance]| of.scale(a, &variance))?;
        let of_columns = self.across(scale, terms);
        let inputs = [
            (covariance.elements(), covariances),
            (down(scale, terms), scales),
            (of_columns.elements(), scales),
        ];
        let (correlation, _) = self.integer(squares, inputs, |a, [covariance, own, other]| {
            of.correlation(a, &covariance, [&own, &other])
        })?;
        Ok(Square::whole(correlation, terms))
    }

    /// The last power of a matrix.
    fn powered(
        &mut self,
        of: &Components,
        matrix: &Square,
        diagonal: Shared,
    ) -> Result<Square, PhysicalError> {
        let terms = matrix.terms;
        let on_diagonal = |square: &Square| {
            let columns = (0..terms).map(|at| Take::Rows {
                of: square.of.iter().map(Shared::column).collect(),
                first: (at * (terms + 1)) as i64,
                step: 0,
            });
            columns.collect::<Vec<Take>>()
        };
        let traced = on_diagonal(matrix);
        let mut of_inverse = Range::point(0);
        let inverse = self.matrix_pass(WIDE, 1, |ports| {
            let diagonal = numbers(ports, traced, of.correlations());
            let mut on = OnRing::new(&mut ports.b, Rounding::Nearest);
            let inverse = of
                .first_inverse(&mut arithmetic(&mut on), &diagonal)
                .map_err(wrong)?;
            of_inverse = inverse.range;
            Ok(vec![Out::Integer(inverse.int)])
        })?[0];
        let first = self.elementwise(terms, |ports| {
            let element = number(ports, matrix.elements(), of.correlations());
            let inverse = number(ports, everywhere(inverse, 0), of_inverse);
            let bit = ports.bits(diagonal.take(), 1)[0];
            let mut on = OnRing::new(&mut ports.b, Rounding::Nearest);
            let power = of.first_power(&mut arithmetic(&mut on), &element, &bit, &inverse);
            Ok(vec![Out::Integer(power.map_err(wrong)?.int)])
        })?;
        let mut power = first[0].clone();
        let range = of.dot(of.powers(), of.powers()).map_err(wrong)?;
        for _ in 0..of.spec().iterations {
            let product = self.squares_product(&power, &power);
            let squares = (terms * terms) as u32;
            let inputs = [(product.elements(), range)];
            let (square, _) = self.integer(squares, inputs, |a, [x]| of.square(a, &x))?;
            let square = Square::whole(square, terms);
            let traced = on_diagonal(&square);
            let inverse = self.matrix_pass(WIDE, 1, |ports| {
                let diagonal = numbers(ports, traced, of.powers());
                let mut on = OnRing::new(&mut ports.b, Rounding::Nearest);
                let inverse = of
                    .trace_inverse(&mut arithmetic(&mut on), &diagonal)
                    .map_err(wrong)?;
                of_inverse = inverse.range;
                Ok(vec![Out::Integer(inverse.int)])
            })?[0];
            let inputs = [
                (square.elements(), of.powers()),
                (everywhere(inverse, 0), of_inverse),
            ];
            let (next, _) =
                self.integer(squares, inputs, |a, [x, inverse]| of.power(a, &x, &inverse))?;
            power = Square::whole(next, terms);
        }
        Ok(power)
    }

    /// The loadings of a component, in the rows of features.
    fn loadings(&mut self, of: &Components, power: &Square) -> Result<Shared, PhysicalError> {
        let count = power.terms as u32;
        let mut range = Range::point(0);
        let direction = self.matrix_pass(WIDE, count, |ports| {
            let row = numbers(ports, power.columns(), of.powers());
            let mut on = OnRing::new(&mut ports.b, Rounding::Nearest);
            let direction = of
                .direction(&mut arithmetic(&mut on), &row)
                .map_err(wrong)?;
            range = direction.range;
            Ok(vec![Out::Integer(direction.int)])
        })?[0];
        let squares = self.b.transposed_product(&[direction], &[direction])[0];
        let of_squares = of.dot(range, range).map_err(wrong)?;
        let inputs = [(squares.take(), of_squares)];
        let (inverse, of_inverse) =
            self.integer(1, inputs, |a, [squares]| of.norm_inverse(a, &squares))?;
        let inputs = [
            (direction.take(), range),
            (everywhere(inverse, 0), of_inverse),
        ];
        let (loading, _) =
            self.integer(count, inputs, |a, [x, inverse]| of.loading(a, &x, &inverse))?;
        Ok(loading)
    }

    /// What a component explains, and the image of its loadings.
    fn explained(
        &mut self,
        of: &Components,
        matrix: &Square,
        loadings: Shared,
    ) -> Result<(Shared, Shared), PhysicalError> {
        let product = self.column_product(matrix, loadings);
        let range = of.dot(of.correlations(), of.loadings()).map_err(wrong)?;
        let inputs = [(product.take(), range)];
        let (image, images) =
            self.integer(matrix.terms as u32, inputs, |a, [x]| of.image(a, &x))?;
        let product = self.b.transposed_product(&[image], &[loadings])[0];
        let range = of.dot(images, of.loadings()).map_err(wrong)?;
        let inputs = [(product.take(), range)];
        let (value, _) = self.integer(1, inputs, |a, [x]| of.value(a, &x))?;
        Ok((value, image))
    }

    /// The matrix without a component.
    fn rest(
        &mut self,
        of: &Components,
        matrix: &Square,
        (value, image): (Shared, Shared),
    ) -> Result<Square, PhysicalError> {
        let inputs = [(value.take(), of.values())];
        let (inverse, of_inverse) = self.integer(1, inputs, |a, [x]| of.value_inverse(a, &x))?;
        let terms = matrix.terms;
        let of_columns = self.across(image, terms);
        let inputs = [
            (matrix.elements(), of.correlations()),
            (everywhere(inverse, 0), of_inverse),
            (down(image, terms), of.images()),
            (of_columns.elements(), of.images()),
        ];
        let squares = (terms * terms) as u32;
        let (rest, _) = self.integer(squares, inputs, |a, [x, inverse, own, other]| {
            of.rest(a, &x, &inverse, [&own, &other])
        })?;
        Ok(Square::whole(rest, terms))
    }

    /// The components in units of the last decimal place.
    fn shown_components(
        &mut self,
        of: &Components,
        model: &Fit,
        (holds, found): (Shared, &[Found]),
        shape: &Shape,
    ) -> Result<Rel, PhysicalError> {
        let (terms, count) = (of.spec().features.len(), found.len());
        let kind = |at: usize| &shape.fields[at].ty.kind;
        let range = |at: usize| kind(at).range().unwrap_or(Range::point(0));
        let values: Vec<Shared> = found.iter().map(|of| of.value).collect();
        let value = self.stacked(&values, Sharing::Ring(WIDE));
        let loadings: Vec<Take> = (0..terms)
            .map(|feature| Take::Rows {
                of: found.iter().map(|of| of.loadings.column()).collect(),
                first: feature as i64,
                step: terms as i32,
            })
            .collect();
        let shown = self.matrix_pass(WIDE, count as u32, |ports| {
            let value = number(ports, value.take(), of.values());
            let loadings = numbers(ports, loadings, of.loadings());
            let mut on = OnRing::new(&mut ports.b, Rounding::Nearest);
            let mut a = arithmetic(&mut on);
            let share = of.shown_share(&mut a, &value).map_err(wrong)?;
            let loadings = loadings.iter().map(|x| of.shown_loading(&mut a, x));
            let loadings = loadings.collect::<Result<Vec<_>, _>>().map_err(wrong)?;
            let mut outs = vec![Out::Bits(bits_of(ports, &share, range(1)))];
            for (feature, loading) in loadings.iter().enumerate() {
                outs.push(Out::Bits(bits_of(ports, loading, range(2 + feature))));
            }
            Ok(outs)
        })?;
        let bits = kind(0).bits().unwrap_or(0);
        let mut columns = Vec::new();
        if bits > 0 {
            columns.push(self.numbered(count, bits)?);
        } else {
            // One component has one number, which takes no bits.
            columns.push(shown[0]);
        }
        columns.extend(shown);
        let mut rel = relation(&columns, count, shape, model.min_rows);
        self.enough(&mut rel, holds, model.min_rows);
        Ok(rel)
    }
}
