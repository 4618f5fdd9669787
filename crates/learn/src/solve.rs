//! A step of Newton's method: the information matrix is brought near 1 on its diagonal, inverted, and multiplied by the gradient.
//!
//! The matrix H = Xᵀ W X is exact, symmetric and has no negative eigenvalue. With S = diag(H)^(−1/2), rounded, A = S H S has no negative eigenvalue either, whatever S is, and its elements are at
//! most 1. The inverse of A + εI comes by Newton's iteration for matrices (Schulz 1933), X ← X(2I − (A + εI)X), from X = I/(n + 1) on:
//!
//! - R = I − (A + εI)X becomes R² in each step, and has the norm 1 − ε/(n + 1) at first. Rounding adds E with ‖E‖ ≤ 2^−26 to it, so that norms fall while they are above 2^−25 and stay below it:
//!   ‖R‖ ≤ 1 always.
//! - Hence ‖X‖ = ‖(A + εI)^(−1)(I − R)‖ ≤ 2/ε, which bounds every element. Two steps more with A alone, which take ε out of the inverse where eigenvalues are larger than it, double it twice at most.

use veil_numeric::{Arithmetic, Machine, Number, On, TooWide};

use crate::column::within;
use crate::error::FitError;
use crate::scaled::{self, SCALE};
use crate::spec::{DAMPING, LIMIT, MATRIX, Regression, SUM, WEIGHT};

/// A gradient, in its own places.
pub type Gradient<I> = Number<I>;

impl Regression {
    /// The information of an element of the matrix with the penalty of its row, if it is on the diagonal.
    ///
    /// # Errors
    /// [`TooWide`] if a number does not fit the machine, as below.
    pub fn ridged<M: Machine>(
        &self,
        a: &mut Arithmetic<'_, M>,
        information: &On<M>,
        penalty: &On<M>,
        diagonal: &M::Bit,
    ) -> Result<On<M>, TooWide> {
        let diagonal = a.lift(diagonal);
        let penalty = a.multiply(penalty, &diagonal)?;
        let sum = a.add(information, &penalty)?;
        let range = self.between.information;
        a.within(&sum, range.min(), range.max())
    }

    /// Whether coefficients are penalised.
    #[must_use]
    pub fn is_ridged(&self) -> bool {
        self.ridge.iter().any(|penalty| *penalty > 0)
    }

    /// The penalty of the term whose bit is 1.
    ///
    /// # Errors
    /// [`TooWide`].
    pub fn penalty<M: Machine>(
        &self,
        a: &mut Arithmetic<'_, M>,
        which: &[M::Bit],
    ) -> Result<On<M>, TooWide> {
        a.pick(which, &self.ridge)
    }

    /// The factor of a term: one over the root of its element on the diagonal.
    ///
    /// # Errors
    /// [`FitError::TooWide`].
    pub fn scale<M: Machine>(
        &self,
        a: &mut Arithmetic<'_, M>,
        diagonal: &On<M>,
    ) -> Result<On<M>, FitError> {
        scaled::scale(a, diagonal, self.information_places() + self.halvings)
    }

    /// An element of the matrix between the factors of its row and its column.
    ///
    /// # Errors
    /// [`TooWide`].
    pub fn balanced<M: Machine>(
        &self,
        a: &mut Arithmetic<'_, M>,
        information: &On<M>,
        [row, column]: [&On<M>; 2],
    ) -> Result<On<M>, TooWide> {
        let places = self.information_places() + self.halvings;
        scaled::balanced(a, information, places, [row, column])
    }

    /// An element of the matrix that is inverted.
    ///
    /// # Errors
    /// [`TooWide`].
    pub fn damped<M: Machine>(
        &self,
        a: &mut Arithmetic<'_, M>,
        balanced: &On<M>,
        diagonal: &M::Bit,
    ) -> Result<On<M>, TooWide> {
        let damping = a.pick(std::slice::from_ref(diagonal), &[1 << (MATRIX - DAMPING)])?;
        let damped = a.add(balanced, &damping)?;
        let most = self.between.matrix.max();
        a.within(&damped, -most, most)
    }

    /// An element of the inverse after the first step.
    ///
    /// # Errors
    /// [`TooWide`].
    pub fn first<M: Machine>(
        &self,
        a: &mut Arithmetic<'_, M>,
        damped: &On<M>,
        diagonal: &M::Bit,
    ) -> Result<On<M>, TooWide> {
        let c = (1_i128 << MATRIX) / (self.terms() as i128 + 1);
        let twice = a.pick(std::slice::from_ref(diagonal), &[2 * c])?;
        let part = a.times(damped, (c * c) >> MATRIX)?;
        let part = a.scale_down(&part, MATRIX as i32)?;
        let first = a.sub(&twice, &part)?;
        a.within(
            &first,
            self.between.inverse.min(),
            self.between.inverse.max(),
        )
    }

    /// An element of 2I − AX, of the element of AX.
    ///
    /// # Errors
    /// [`TooWide`].
    pub fn correction<M: Machine>(
        &self,
        a: &mut Arithmetic<'_, M>,
        product: &On<M>,
        diagonal: &M::Bit,
    ) -> Result<On<M>, TooWide> {
        let product = a.scale_down(product, MATRIX as i32)?;
        let two = a.pick(std::slice::from_ref(diagonal), &[2 << MATRIX])?;
        let correction = a.sub(&two, &product)?;
        let most = self.between.correction.max();
        a.within(&correction, -most, most)
    }

    /// An element of the next inverse, of the element of the product.
    ///
    /// # Errors
    /// [`TooWide`].
    pub fn improved<M: Machine>(
        &self,
        a: &mut Arithmetic<'_, M>,
        product: &On<M>,
    ) -> Result<On<M>, TooWide> {
        let improved = a.scale_down(product, MATRIX as i32)?;
        let range = self.between.inverse;
        a.within(&improved, range.min(), range.max())
    }

    /// The gradient of a term less its penalty's.
    ///
    /// # Errors
    /// [`TooWide`].
    pub fn penalised<M: Machine>(
        &self,
        a: &mut Arithmetic<'_, M>,
        gradient: &On<M>,
        coefficient: &On<M>,
        penalty: &On<M>,
    ) -> Result<Gradient<M::Int>, TooWide> {
        if !self.is_ridged() {
            return Ok(gradient.clone());
        }
        let part = a.multiply(penalty, coefficient)?;
        let more = self.information_places() + WEIGHT;
        let part = a.scale_down(
            &part,
            more as i32 - (self.design.places() + self.link.places) as i32,
        )?;
        a.sub(gradient, &part)
    }

    /// Of [`Family::Linear`](crate::Family::Linear), the gradient that is left: Xᵀy less the product of the matrix and the coefficients.
    ///
    /// # Errors
    /// [`TooWide`].
    pub fn remaining<M: Machine>(
        &self,
        a: &mut Arithmetic<'_, M>,
        gradient: &On<M>,
        product: &On<M>,
    ) -> Result<Gradient<M::Int>, TooWide> {
        let more = self.information_places() + WEIGHT;
        let part = a.scale_down(
            product,
            more as i32 - (self.design.places() + self.link.places) as i32,
        )?;
        a.sub(gradient, &part)
    }

    /// The gradient times the factor of its term.
    ///
    /// # Errors
    /// [`TooWide`].
    pub fn scaled_gradient<M: Machine>(
        &self,
        a: &mut Arithmetic<'_, M>,
        gradient: &Gradient<M::Int>,
        scale: &On<M>,
    ) -> Result<On<M>, TooWide> {
        let places = self.design.places() + self.link.places + self.halvings + SCALE;
        let scaled = a.multiply(gradient, scale)?;
        let scaled = a.scale_down(&scaled, places as i32 - self.gradient as i32)?;
        a.clip(&scaled, within(self.gradient + SCALED))
    }

    /// The next coefficient of a term, of the product of the inverse and the scaled gradients.
    ///
    /// # Errors
    /// [`TooWide`].
    pub fn step<M: Machine>(
        &self,
        a: &mut Arithmetic<'_, M>,
        product: &On<M>,
        scale: &On<M>,
        coefficient: &On<M>,
    ) -> Result<On<M>, TooWide> {
        let step = a.scale_down(product, MATRIX as i32)?;
        let step = a.multiply(&step, scale)?;
        let step = a.scale_down(&step, (self.gradient + SCALE) as i32 - WEIGHT as i32)?;
        let next = a.add(coefficient, &step)?;
        a.clip(&next, within(WEIGHT + LIMIT))
    }
}

/// Scaled gradients are below 2^SCALED.
const SCALED: u32 = 12;
const _: () = assert!(SUM < WEIGHT);
