//! What is computed in each row of a batch, and in the row of each term.

use veil_numeric::{Arithmetic, Machine, Number, On, Range, TooWide};

use super::Descent;
use crate::spec::{Family, SUM, WEIGHT};

/// A term after a batch.
#[derive(Clone, Debug)]
pub struct Moved<I> {
    /// The step.
    pub velocity: Number<I>,
    /// The coefficient.
    pub coefficient: Number<I>,
}

impl Descent {
    /// Binary places that the sum of the products of a row's cells and the coefficients loses.
    #[must_use]
    pub const fn sum_shift(&self) -> u32 {
        let left = match self.spec.family {
            Family::Linear => self.link.places,
            _ => SUM,
        };
        self.design.places() + WEIGHT - left
    }

    /// The sum of the products of a row's cells and the coefficients, rounded: the mean is that of it by [`Link::mean`](crate::Link::mean).
    ///
    /// # Errors
    /// [`TooWide`] if a number does not fit the machine, as below.
    pub fn rounded<M: Machine>(
        &self,
        a: &mut Arithmetic<'_, M>,
        sum: &On<M>,
    ) -> Result<On<M>, TooWide> {
        a.scale_down(sum, self.sum_shift() as i32)
    }

    /// The next step of a term, from the sum of its cells times the residuals of a batch, its coefficient, the last step, and the factor of its penalty if there are penalties. It is in the
    /// range of steps: [`Descent::new`] has proved that.
    ///
    /// # Errors
    /// [`TooWide`].
    pub(super) fn step<M: Machine>(
        &self,
        a: &mut Arithmetic<'_, M>,
        gradient: &On<M>,
        (coefficient, velocity): (&On<M>, Option<&On<M>>),
        penalty: Option<&On<M>>,
    ) -> Result<On<M>, TooWide> {
        let places = self.design.places() + self.link.places + self.size_bits();
        let gradient = a.scale_down(gradient, places as i32 - WEIGHT as i32)?;
        let mut step = a.times(&gradient, self.rate)?;
        if let Some(penalty) = penalty {
            let part = a.multiply(penalty, coefficient)?;
            let part = a.scale_down(&part, self.penalties.1 as i32)?;
            step = a.sub(&step, &part)?;
        }
        if let Some(velocity) = velocity {
            let part = a.times(velocity, self.momentum)?;
            step = a.add(&step, &part)?;
        }
        a.scale_down(&step, self.shift as i32)
    }

    /// A term after a batch: its next step, in the range of steps, and its next coefficient. The last step may be left out where [`Descent::has_momentum`] says that no part of it is needed.
    ///
    /// # Errors
    /// [`TooWide`].
    pub fn moved<M: Machine>(
        &self,
        a: &mut Arithmetic<'_, M>,
        gradient: &On<M>,
        (coefficient, velocity): (&On<M>, Option<&On<M>>),
        penalty: Option<&On<M>>,
    ) -> Result<Moved<M::Int>, TooWide> {
        let velocity = velocity.filter(|_| self.has_momentum());
        let step = self.step(a, gradient, (coefficient, velocity), penalty)?;
        let range = self.between.velocity;
        let velocity = a.within(&step, range.min(), range.max())?;
        let next = a.add(coefficient, &velocity)?;
        let coefficient = nearest(a, &next, self.between.coefficient)?;
        Ok(Moved {
            velocity,
            coefficient,
        })
    }

    /// The coefficients in units of the columns, the intercept first.
    ///
    /// # Errors
    /// [`TooWide`].
    pub fn coefficients<M: Machine>(
        &self,
        a: &mut Arithmetic<'_, M>,
        coefficients: &[On<M>],
    ) -> Result<Vec<On<M>>, TooWide> {
        self.link
            .coefficients(a, &self.design, coefficients, self.spec.places)
    }
}

/// The number of a range that is nearest, as by [`Arithmetic::clip`], whose comparisons here do not wait for each other: rounds of a batch count, and not its few terms.
fn nearest<M: Machine>(a: &mut Arithmetic<'_, M>, x: &On<M>, to: Range) -> Result<On<M>, TooWide> {
    let (least, most) = (a.constant(to.min())?, a.constant(to.max())?);
    let [below, above] =
        [a.sub(x, &least)?, a.sub(&most, x)?].map(|of| a.0.is_negative(&of.int, of.range));
    let up = a.choose(&below, &least, x)?;
    let both = a.choose(&above, &most, &up)?;
    a.within(&both, to.min(), to.max())
}
