//! Principal components in the clear.

use veil_numeric::{Arithmetic, Clear, TooWide};

use super::{Component, Components};
use crate::clear::{Matrix, Value, product, value};
use crate::error::FitError;

impl Components {
    /// The components of these rows in the clear.
    ///
    /// # Errors
    /// [`FitError::TooWide`], which [`Components::new`] has refused before.
    ///
    /// # Panics
    /// If a number is not in the range of its column, or there are more rows than the components are made for.
    pub fn fit(&self, rows: &[Vec<i128>]) -> Result<Vec<Component>, FitError> {
        assert!(
            rows.len() <= self.spec.rows as usize,
            "components have as many rows as they are made for"
        );
        let mut clear = Clear;
        let mut a = Arithmetic(&mut clear);
        let count = self.design.count();
        let mut sums = vec![vec![0_i128; count + 1]; count + 1];
        for row in rows {
            let cells = self.design.row(&mut a, &self.spec.features, row)?;
            for (x, sums) in cells.iter().zip(&mut sums) {
                cells.iter().zip(sums).for_each(|(y, sum)| *sum += x * y);
            }
        }
        let sum = |i: usize, j: usize| value(sums[i][j], self.products());
        let mut left: Matrix = Vec::new();
        for i in 1..=count {
            let row = (1..=count)
                .map(|j| self.covariance(&mut a, [&sum(0, 0), &sum(i, j), &sum(0, i), &sum(0, j)]));
            left.push(row.collect::<Result<_, _>>()?);
        }
        let scales = (0..count).map(|at| self.scale(&mut a, &left[at][at]));
        let scales = scales.collect::<Result<Vec<_>, _>>()?;
        for (row, one) in left.iter_mut().zip(&scales) {
            for (element, other) in row.iter_mut().zip(&scales) {
                *element = self.correlation(&mut a, element, [one, other])?;
            }
        }
        let mut found = Vec::new();
        for _ in 0..self.spec.components {
            let power = self.powered(&mut a, &left)?;
            let directions = power.iter().map(|row| self.direction(&mut a, row));
            let directions = directions.collect::<Result<Vec<_>, _>>()?;
            let range = self.dot(directions[0].range, directions[0].range)?;
            let squares = directions.iter().map(|x| x.int * x.int).sum();
            let inverse = self.norm_inverse(&mut a, &value(squares, range))?;
            let loadings = directions.iter().map(|x| self.loading(&mut a, x, &inverse));
            let loadings = loadings.collect::<Result<Vec<_>, _>>()?;
            let range = self.dot(self.correlations(), loadings[0].range)?;
            let images = left.iter().map(|row| {
                let image = row.iter().zip(&loadings).map(|(x, y)| x.int * y.int).sum();
                self.image(&mut a, &value(image, range))
            });
            let images = images.collect::<Result<Vec<_>, _>>()?;
            let range = self.dot(images[0].range, loadings[0].range)?;
            let product = images
                .iter()
                .zip(&loadings)
                .map(|(x, y)| x.int * y.int)
                .sum();
            let explained = self.value(&mut a, &value(product, range))?;
            let inverse = self.value_inverse(&mut a, &explained)?;
            for (row, one) in left.iter_mut().zip(&images) {
                for (element, other) in row.iter_mut().zip(&images) {
                    *element = self.rest(&mut a, element, &inverse, [one, other])?;
                }
            }
            let shown = loadings
                .iter()
                .map(|x| Ok(self.shown_loading(&mut a, x)?.int));
            let loadings = shown.collect::<Result<_, TooWide>>()?;
            let share = self.shown_share(&mut a, &explained)?.int;
            found.push(Component { share, loadings });
        }
        Ok(found)
    }

    /// The last power of a matrix.
    fn powered(&self, a: &mut Arithmetic<'_, Clear>, of: &Matrix) -> Result<Matrix, FitError> {
        let diagonal = |of: &Matrix| -> Vec<Value> {
            of.iter()
                .enumerate()
                .map(|(at, row)| row[at].clone())
                .collect()
        };
        let inverse = self.first_inverse(a, &diagonal(of))?;
        let mut power = of.clone();
        for (i, row) in power.iter_mut().enumerate() {
            for (j, element) in row.iter_mut().enumerate() {
                *element = self.first_power(a, element, &(i == j), &inverse)?;
            }
        }
        let range = self.dot(self.powers(), self.powers())?;
        for _ in 0..self.spec.iterations {
            let mut square = product(&power, &power, range);
            for element in square.iter_mut().flatten() {
                *element = self.square(a, element)?;
            }
            let inverse = self.trace_inverse(a, &diagonal(&square))?;
            for element in square.iter_mut().flatten() {
                *element = self.power(a, element, &inverse)?;
            }
            power = square;
        }
        Ok(power)
    }
}
