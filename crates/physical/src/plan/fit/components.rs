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
        let covariance = self.elementwise(terms, |ports| {
            let product = number(ports, products.elements(), of.products());
            let rows = number(ports, everywhere(all, 0), of.products());
            let own = number(ports, down(sum, terms), of.products());
            let other = number(ports, of_columns.elements(), of.products());
            let mut on = OnRing::new(&mut ports.b, Rounding::Nearest);
            let covariance =
                of.covariance(&mut arithmetic(&mut on), [&rows, &product, &own, &other]);
            Ok(vec![Out::Integer(covariance.map_err(wrong)?.int)])
        })?;
        let covariances = of.covariances();
        let scale = self.matrix_pass(WIDE, count, |ports| {
            let variance = number(ports, covariance[0].diagonal(), covariances);
            let mut on = OnRing::new(&mut ports.b, Rounding::Nearest);
            let scale = of
                .scale(&mut arithmetic(&mut on), &variance)
                .map_err(wrong)?;
            Ok(vec![Out::Integer(scale.int)])
        })?[0];
        let of_columns = self.across(scale, terms);
        let correlation = self.elementwise(terms, |ports| {
            let covariance = number(ports, covariance[0].elements(), covariances);
            let own = number(ports, down(scale, terms), of.scales());
            let other = number(ports, of_columns.elements(), of.scales());
            let mut on = OnRing::new(&mut ports.b, Rounding::Nearest);
            let correlation = of.correlation(&mut arithmetic(&mut on), &covariance, [&own, &other]);
            Ok(vec![Out::Integer(correlation.map_err(wrong)?.int)])
        })?;
        Ok(correlation[0].clone())
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
        let mut power = self.elementwise(terms, |ports| {
            let element = number(ports, matrix.elements(), of.correlations());
            let inverse = number(ports, everywhere(inverse, 0), of_inverse);
            let bit = ports.bits(diagonal.take(), 1)[0];
            let mut on = OnRing::new(&mut ports.b, Rounding::Nearest);
            let power = of.first_power(&mut arithmetic(&mut on), &element, &bit, &inverse);
            Ok(vec![Out::Integer(power.map_err(wrong)?.int)])
        })?;
        let range = of.dot(of.powers(), of.powers()).map_err(wrong)?;
        for _ in 0..of.spec().iterations {
            let product = self.squares_product(&power[0], &power[0]);
            let square = self.elementwise(terms, |ports| {
                let element = number(ports, product.elements(), range);
                let mut on = OnRing::new(&mut ports.b, Rounding::Nearest);
                let square = of
                    .square(&mut arithmetic(&mut on), &element)
                    .map_err(wrong)?;
                Ok(vec![Out::Integer(square.int)])
            })?;
            let traced = on_diagonal(&square[0]);
            let inverse = self.matrix_pass(WIDE, 1, |ports| {
                let diagonal = numbers(ports, traced, of.powers());
                let mut on = OnRing::new(&mut ports.b, Rounding::Nearest);
                let inverse = of
                    .trace_inverse(&mut arithmetic(&mut on), &diagonal)
                    .map_err(wrong)?;
                of_inverse = inverse.range;
                Ok(vec![Out::Integer(inverse.int)])
            })?[0];
            power = self.elementwise(terms, |ports| {
                let element = number(ports, square[0].elements(), of.powers());
                let inverse = number(ports, everywhere(inverse, 0), of_inverse);
                let mut on = OnRing::new(&mut ports.b, Rounding::Nearest);
                let power = of
                    .power(&mut arithmetic(&mut on), &element, &inverse)
                    .map_err(wrong)?;
                Ok(vec![Out::Integer(power.int)])
            })?;
        }
        Ok(power[0].clone())
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
        let mut of_inverse = Range::point(0);
        let inverse = self.matrix_pass(WIDE, 1, |ports| {
            let squares = number(ports, squares.take(), of_squares);
            let mut on = OnRing::new(&mut ports.b, Rounding::Nearest);
            let inverse = of
                .norm_inverse(&mut arithmetic(&mut on), &squares)
                .map_err(wrong)?;
            of_inverse = inverse.range;
            Ok(vec![Out::Integer(inverse.int)])
        })?[0];
        let loading = self.matrix_pass(WIDE, count, |ports| {
            let direction = number(ports, direction.take(), range);
            let inverse = number(ports, everywhere(inverse, 0), of_inverse);
            let mut on = OnRing::new(&mut ports.b, Rounding::Nearest);
            let loading = of
                .loading(&mut arithmetic(&mut on), &direction, &inverse)
                .map_err(wrong)?;
            Ok(vec![Out::Integer(loading.int)])
        })?;
        Ok(loading[0])
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
        let image = self.matrix_pass(WIDE, matrix.terms as u32, |ports| {
            let product = number(ports, product.take(), range);
            let mut on = OnRing::new(&mut ports.b, Rounding::Nearest);
            let image = of
                .image(&mut arithmetic(&mut on), &product)
                .map_err(wrong)?;
            Ok(vec![Out::Integer(image.int)])
        })?[0];
        let product = self.b.transposed_product(&[image], &[loadings])[0];
        let range = of.dot(of.images(), of.loadings()).map_err(wrong)?;
        let value = self.matrix_pass(WIDE, 1, |ports| {
            let product = number(ports, product.take(), range);
            let mut on = OnRing::new(&mut ports.b, Rounding::Nearest);
            let value = of
                .value(&mut arithmetic(&mut on), &product)
                .map_err(wrong)?;
            Ok(vec![Out::Integer(value.int)])
        })?[0];
        Ok((value, image))
    }

    /// The matrix without a component.
    fn rest(
        &mut self,
        of: &Components,
        matrix: &Square,
        (value, image): (Shared, Shared),
    ) -> Result<Square, PhysicalError> {
        let mut of_inverse = Range::point(0);
        let inverse = self.matrix_pass(WIDE, 1, |ports| {
            let value = number(ports, value.take(), of.values());
            let mut on = OnRing::new(&mut ports.b, Rounding::Nearest);
            let inverse = of
                .value_inverse(&mut arithmetic(&mut on), &value)
                .map_err(wrong)?;
            of_inverse = inverse.range;
            Ok(vec![Out::Integer(inverse.int)])
        })?[0];
        let of_columns = self.across(image, matrix.terms);
        let rest = self.elementwise(matrix.terms, |ports| {
            let element = number(ports, matrix.elements(), of.correlations());
            let inverse = number(ports, everywhere(inverse, 0), of_inverse);
            let own = number(ports, down(image, matrix.terms), of.images());
            let other = number(ports, of_columns.elements(), of.images());
            let mut on = OnRing::new(&mut ports.b, Rounding::Nearest);
            let rest = of.rest(&mut arithmetic(&mut on), &element, &inverse, [&own, &other]);
            Ok(vec![Out::Integer(rest.map_err(wrong)?.int)])
        })?;
        Ok(rest[0].clone())
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
