//! What is computed in each row of the data.

use veil_numeric::{Arithmetic, Function, Machine, Number, On, Scale, TooWide};

use crate::error::FitError;
use crate::scaled::applied;
use crate::spec::{Family, Regression, SUM, WEIGHT};

/// What a row adds to the gradient and to the information matrix, before it is multiplied by its cells.
#[derive(Clone, Debug)]
pub struct Row<I> {
    /// The response less its mean.
    pub residual: Number<I>,
    /// The derivative of the mean.
    pub weight: Number<I>,
}

impl Regression {
    /// The target of a row.
    ///
    /// # Errors
    /// [`TooWide`] if a number does not fit the machine.
    pub fn response<M: Machine>(
        &self,
        a: &mut Arithmetic<'_, M>,
        y: &On<M>,
    ) -> Result<On<M>, TooWide> {
        match self.spec.family {
            Family::Linear => self.target.on(a, y, self.mean),
            _ => a.times(y, 1 << self.mean),
        }
    }

    /// Binary places that the sum of the products of a row's cells and the coefficients loses.
    #[must_use]
    pub const fn sum_shift(&self) -> u32 {
        self.design.places() + WEIGHT - SUM
    }

    /// The sum of the products of a row's cells and the coefficients, rounded. Not of [`Family::Linear`], of which no rows are looked at again, as below.
    ///
    /// # Errors
    /// As [`Regression::response`].
    pub fn rounded<M: Machine>(
        &self,
        a: &mut Arithmetic<'_, M>,
        sum: &On<M>,
    ) -> Result<On<M>, TooWide> {
        a.scale_down(sum, self.sum_shift() as i32)
    }

    /// The mean of a row, of its rounded sum.
    ///
    /// # Errors
    /// [`FitError::TooWide`] if a number does not fit the machine.
    pub fn mean<M: Machine>(
        &self,
        a: &mut Arithmetic<'_, M>,
        rounded: &On<M>,
    ) -> Result<On<M>, FitError> {
        let sum = match self.clip {
            Some(range) => a.clip(rounded, range)?,
            None => rounded.clone(),
        };
        let function = match self.spec.family {
            Family::Logistic => Function::Sigmoid,
            _ => Function::Exp,
        };
        let scales = [Scale::binary(SUM), Scale::binary(self.mean)];
        applied(a, function, &sum, scales)
    }

    /// What follows from a row's mean and its response.
    ///
    /// # Errors
    /// As [`Regression::response`].
    pub fn row<M: Machine>(
        &self,
        a: &mut Arithmetic<'_, M>,
        mean: &On<M>,
        response: &On<M>,
    ) -> Result<Row<M::Int>, TooWide> {
        let weight = match self.spec.family {
            Family::Logistic => {
                let one = a.constant(1 << self.mean)?;
                let rest = a.sub(&one, mean)?;
                let weight = a.multiply(mean, &rest)?;
                // p (1 − p) is at most 1/4.
                let weight = a.within(&weight, i128::MIN, 1 << (2 * self.mean - 2))?;
                a.scale_down(&weight, (2 * self.mean) as i32 - self.weight as i32)?
            }
            _ => a.scale_down(mean, self.mean as i32 - self.weight as i32)?,
        };
        Ok(Row {
            residual: a.sub(response, mean)?,
            weight,
        })
    }
}
