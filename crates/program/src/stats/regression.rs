//! Least squares, exactly from sums of rows and of products.

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::Zero;

use super::derive::{
    CONSTANT, Context, NO_ERROR, NO_ROWS, figure, power_of_ten, ratio, root, rounded, spread,
};
use super::moments::Moments;
use super::solve::invert;
use super::{Estimate, Figure, inference};

const DEPENDENT: &str = "the regressors are linearly dependent in these rows";
const FEW_ROWS: &str = "not more rows than coefficients";
/// The figures of a regression that are of all its coefficients.
pub(super) const OF_A_FIT: [&str; 4] = [
    "R squared",
    "adjusted R squared",
    "residual standard error",
    "F",
];

impl Context<'_> {
    /// `beta = (X'X)^-1 X'y`, residual variance `(y'y - beta' X'y) / (n - p)`, standard errors from the diagonal of the
    /// inverse.
    pub(super) fn regression(&self, count: Figure, moments: &Moments) -> Vec<Figure> {
        let last = moments.variables();
        let size = last; // the constant and every regressor
        let names = ["intercept".to_owned()].into_iter().chain(
            self.variables[..last - 1]
                .iter()
                .map(|variable| variable.name(self.columns)),
        );
        let undefined = |reason| {
            let fit = OF_A_FIT.map(str::to_owned);
            let all = fit.into_iter().chain(names.clone());
            let figures = all.map(|name| figure(&name, Estimate::Undefined(reason)));
            std::iter::once(count.clone()).chain(figures).collect()
        };
        let rows = moments.at(0, 0);
        if rows == 0 {
            return undefined(NO_ROWS);
        }
        let gram: Vec<Vec<BigInt>> = (0..size)
            .map(|i| (0..size).map(|j| moments.at(i, j).into()).collect())
            .collect();
        let Some((adjugate, determinant)) = invert(&gram) else {
            return undefined(DEPENDENT);
        };
        let right: Vec<BigInt> = (0..size).map(|i| moments.at(i, last).into()).collect();
        let dot = |row: &[BigInt]| row.iter().zip(&right).map(|(a, b)| a * b).sum::<BigInt>();
        let coefficients: Vec<BigRational> = adjugate
            .iter()
            .map(|row| BigRational::new(dot(row), determinant.clone()))
            .collect();
        let explained: BigRational = coefficients
            .iter()
            .zip(&right)
            .map(|(beta, right)| beta * right)
            .sum();
        let residual = BigRational::from(BigInt::from(moments.at(last, last))) - explained;

        // In units of the data: the target's scale, and each regressor's.
        let target = power_of_ten(self.scale(last - 1));
        let scale = |index: usize| match index {
            0 => power_of_ten(0),
            index => power_of_ten(self.scale(index - 1)),
        };
        let total = ratio(1, rows) * spread(moments, last - 1, last - 1);
        let freedom = rows - size as i128;
        let variance = (freedom > 0).then(|| &residual / BigInt::from(freedom));
        let deviation = match &variance {
            None => Estimate::Undefined(FEW_ROWS),
            Some(variance) => root(&rounded(&(variance / &target / &target))),
        };
        let unit = self.unit(last - 1);
        let [fit, adjusted, all] = fit(&total, &residual, rows, size);
        let mut figures = vec![
            count,
            fit,
            adjusted,
            Figure {
                unit: unit.clone(),
                ..figure("residual standard error", deviation)
            },
            all,
        ];
        for (index, (name, coefficient)) in names.zip(&coefficients).enumerate() {
            let standard_error = variance.as_ref().and_then(|variance| {
                let own = BigRational::new(adjugate[index][index].clone(), determinant.clone());
                let scaled = variance * own * scale(index) * scale(index) / &target / &target;
                root(&rounded(&scaled)).value()
            });
            let estimate = rounded(&(coefficient * scale(index) / &target));
            let per = match index.checked_sub(1).and_then(|index| self.unit(index)) {
                Some(own) => unit.as_ref().map(|unit| format!("{unit}/{own}")),
                None => unit.clone(),
            };
            let mut coefficient = Figure {
                standard_error,
                unit: per,
                ..figure(&name, estimate)
            };
            match u64::try_from(freedom) {
                Ok(free) if free > 0 && !residual.is_zero() => {
                    let value = coefficient.estimate.value().zip(standard_error);
                    coefficient.test =
                        value.and_then(|(value, error)| inference::t_test(value, error, free));
                    self.about_it(&mut coefficient, freedom);
                }
                Ok(free) if free > 0 => coefficient.untested = Some(NO_ERROR),
                _ => coefficient.untested = Some(FEW_ROWS),
            }
            figures.push(coefficient);
        }
        figures
    }
}

/// How well all regressors explain: R² `= 1 - RSS / TSS`, adjusted `1 - (RSS / (n - p)) / (TSS / (n - 1))`, and
/// `F = ((TSS - RSS) / (p - 1)) / (RSS / (n - p))`, with `p` coefficients of which one is the intercept.
fn fit(total: &BigRational, residual: &BigRational, rows: i128, size: usize) -> [Figure; 3] {
    let figure = |at: usize, estimate| figure(OF_A_FIT[at], estimate);
    let undefined = |reason| Estimate::Undefined(reason);
    if total.is_zero() {
        return [0, 1, 3].map(|at| figure(at, undefined(CONSTANT)));
    }
    let unexplained = residual / total;
    let first = figure(0, rounded(&(ratio(1, 1) - &unexplained)));
    let (above, below) = (size as i128 - 1, rows - size as i128);
    if below <= 0 {
        let [adjusted, all] = [1, 3].map(|at| figure(at, undefined(FEW_ROWS)));
        return [first, adjusted, all];
    }
    let adjusted = ratio(1, 1) - &unexplained * ratio(rows - 1, below);
    let adjusted = figure(1, rounded(&adjusted));
    if residual.is_zero() {
        return [first, adjusted, figure(3, undefined(NO_ERROR))];
    }
    let all = (total - residual) / residual * ratio(below, above);
    let mut all = figure(3, rounded(&all));
    let (above, below) = (above as u64, u64::try_from(below).unwrap_or(u64::MAX));
    let value = all.estimate.value();
    all.test = value.and_then(|value| inference::f_test(value, above, below));
    [first, adjusted, all]
}
