//! What is computed in each row of the data.

use veil_numeric::{Arithmetic, Machine, Number, On, TooWide};

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
    /// Binary places that the sum of the products of a row's cells and the coefficients loses.
    #[must_use]
    pub const fn sum_shift(&self) -> u32 {
        self.design.places() + WEIGHT - SUM
    }

    /// The sum of the products of a row's cells and the coefficients, rounded. Not of [`Family::Linear`], of which no rows are looked at again, as below.
    ///
    /// # Errors
    /// [`TooWide`] if a number does not fit the machine.
    pub fn rounded<M: Machine>(
        &self,
        a: &mut Arithmetic<'_, M>,
        sum: &On<M>,
    ) -> Result<On<M>, TooWide> {
        a.scale_down(sum, self.sum_shift() as i32)
    }

    /// What follows from a row's mean and its response.
    ///
    /// # Errors
    /// [`TooWide`] if a number does not fit the machine.
    pub fn row<M: Machine>(
        &self,
        a: &mut Arithmetic<'_, M>,
        mean: &On<M>,
        response: &On<M>,
    ) -> Result<Row<M::Int>, TooWide> {
        let places = self.link.places;
        let weight = match self.spec.family {
            Family::Logistic => {
                let one = a.constant(1 << places)?;
                let rest = a.sub(&one, mean)?;
                let weight = a.multiply(mean, &rest)?;
                // p (1 − p) is at most 1/4.
                let weight = a.within(&weight, i128::MIN, 1 << (2 * places - 2))?;
                a.scale_down(&weight, (2 * places) as i32 - self.weight as i32)?
            }
            _ => a.scale_down(mean, places as i32 - self.weight as i32)?,
        };
        Ok(Row {
            residual: a.sub(response, mean)?,
            weight,
        })
    }
}
