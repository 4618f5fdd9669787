//! Principal components of standardised features: eigenvectors of their correlations, by powers of the matrix.
//!
//! B = (R + 2^-16 I) over its trace is squared and divided by its trace again and again: after k steps it is the power 2^k of R but for a factor, whose columns are the first component. It has no
//! negative eigenvalue and the trace 1, so that no element is above 1. What the component explains is taken from R, and the next one comes of the rest.

mod clear;

use veil_numeric::{Arithmetic, Function, Machine, Number, On, Range, Ranges, Scale, TooWide};

use crate::column::{Column, about, log2_up, within};
use crate::design::Design;
use crate::error::FitError;
use crate::scaled::{self, applied};
use crate::spec::{MATRIX, sums};

/// What components are of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComponentSpec {
    /// The features.
    pub features: Vec<Column>,
    /// How many components, at most as many as features.
    pub components: u32,
    /// Rows, at most.
    pub rows: u32,
    /// How often the matrix is squared for each, 1 to [`MOST_SQUARINGS`].
    pub iterations: u32,
    /// Decimal places of loadings.
    pub places: u32,
}

/// Squarings, at most.
pub const MOST_SQUARINGS: u32 = 16;

/// Binary places of cells, at most.
const CELL: u32 = 20;
/// Binary places of covariances.
const COVARIANCE: u32 = 62;
/// What is added to the diagonal: 2^-RAISED.
const RAISED: u32 = 16;
/// Binary places of loadings.
const LOADING: u32 = 36;
/// 2^-NORM is added to the square of a norm, which has so many places.
const NORM: u32 = 40;

/// Principal components whose arithmetic fits.
#[derive(Clone, Debug)]
pub struct Components {
    spec: ComponentSpec,
    design: Design,
    halvings: u32,
    share: Range,
    loading: Range,
}

/// A component that was found, in units of the last decimal place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Component {
    /// Which part of the variance of the standardised features it explains.
    pub share: i128,
    /// Its loadings.
    pub loadings: Vec<i128>,
}

impl Components {
    /// The components.
    ///
    /// # Errors
    /// [`FitError`].
    pub fn new(spec: ComponentSpec) -> Result<Self, FitError> {
        let count = spec.features.len();
        let rows = log2_up(spec.rows.max(1).into());
        let places = (61_u32.saturating_sub(rows) / 2).min(CELL);
        let design = Design::new(&spec.features, places)?;
        if spec.iterations == 0 || spec.iterations > MOST_SQUARINGS {
            return Err(FitError::Squarings {
                found: spec.iterations,
            });
        }
        if spec.places > 9 {
            return Err(FitError::Loadings(spec.places));
        }
        if spec.components == 0 || spec.components as usize > count {
            let found = spec.components;
            return Err(FitError::Components {
                found,
                features: count,
            });
        }
        let mut of = Self {
            design,
            halvings: rows,
            share: Range::point(0),
            loading: Range::point(0),
            spec,
        };
        of.derive()?;
        Ok(of)
    }

    /// What they are of.
    #[must_use]
    pub const fn spec(&self) -> &ComponentSpec {
        &self.spec
    }

    /// The range of shares, and that of loadings, in units of the last decimal place.
    #[must_use]
    pub const fn outputs(&self) -> (Range, Range) {
        (self.share, self.loading)
    }

    /// The cells of rows.
    #[must_use]
    pub const fn design(&self) -> &Design {
        &self.design
    }

    /// The range of sums of products of cells over all rows.
    #[must_use]
    pub fn products(&self) -> Range {
        within(2 * self.design.places() + self.halvings)
    }

    /// The range of images.
    #[must_use]
    pub fn images(&self) -> Range {
        within(LOADING + 3)
    }

    /// The range of what components explain.
    #[must_use]
    pub fn values(&self) -> Range {
        let most = (self.design.count() as i128 + 1) << LOADING;
        Range::new(0, most).unwrap_or(Range::point(0))
    }

    /// The range of correlations that are left.
    #[must_use]
    pub fn correlations(&self) -> Range {
        about(MATRIX)
    }

    /// The range of elements of a power of the matrix.
    #[must_use]
    pub fn powers(&self) -> Range {
        about(MATRIX)
    }

    /// The range of the elements of a square of it, before it is rounded.
    ///
    /// # Errors
    /// [`FitError::TooWide`].
    pub fn dot(&self, left: Range, right: Range) -> Result<Range, FitError> {
        sums(left, right, self.design.count() as u64, 127)
    }

    /// The range of loadings.
    #[must_use]
    pub fn loadings(&self) -> Range {
        about(LOADING)
    }

    fn derive(&mut self) -> Result<(), FitError> {
        let some = |range: Range| Number { int: (), range };
        let mut wide = Ranges(128);
        let mut a = Arithmetic(&mut wide);
        let product = some(self.products());
        let covariance = self.covariance(&mut a, [&product, &product, &product, &product])?;
        let scale = self.scale(&mut a, &covariance)?;
        self.correlation(&mut a, &covariance, [&scale, &scale])?;
        let correlation = some(self.correlations());
        let first = vec![correlation.clone(); self.design.count()];
        let inverse = self.first_inverse(&mut a, &first)?;
        self.first_power(&mut a, &correlation, &(), &inverse)?;
        let square = some(self.dot(self.powers(), self.powers())?);
        let square = self.square(&mut a, &square)?;
        let inverse = self.trace_inverse(&mut a, &vec![square.clone(); self.design.count()])?;
        self.power(&mut a, &square, &inverse)?;
        let direction = vec![some(self.powers()); self.design.count()];
        let direction = self.direction(&mut a, &direction)?;
        let norm = some(self.dot(direction.range, direction.range)?);
        let inverse = self.norm_inverse(&mut a, &norm)?;
        let loading = self.loading(&mut a, &direction, &inverse)?;
        let image = some(self.dot(self.correlations(), loading.range)?);
        let image = self.image(&mut a, &image)?;
        let value = some(self.dot(image.range, loading.range)?);
        let value = self.value(&mut a, &value)?;
        let inverse = self.value_inverse(&mut a, &value)?;
        self.rest(&mut a, &correlation, &inverse, [&image, &image])?;
        self.share = self.shown_share(&mut a, &value)?.range;
        self.loading = self.shown_loading(&mut a, &loading)?.range;
        Ok(())
    }

    /// The covariance of two columns times the squared number of rows, of the sums of: ones, products of both, cells of one, cells of the other.
    ///
    /// # Errors
    /// [`TooWide`].
    pub fn covariance<M: Machine>(
        &self,
        a: &mut Arithmetic<'_, M>,
        [rows, products, one, other]: [&On<M>; 4],
    ) -> Result<On<M>, TooWide> {
        let products = a.multiply(rows, products)?;
        let means = a.multiply(one, other)?;
        let covariance = a.sub(&products, &means)?;
        let places = 4 * self.design.places() + 2 * self.halvings;
        let covariance = a.scale_down(&covariance, places as i32 - COVARIANCE as i32)?;
        // Numbers between −1 and 1.
        a.within(&covariance, -(1 << COVARIANCE), 1 << COVARIANCE)
    }

    /// The factor of a feature: one over its standard deviation.
    ///
    /// # Errors
    /// [`FitError::TooWide`].
    pub fn scale<M: Machine>(
        &self,
        a: &mut Arithmetic<'_, M>,
        variance: &On<M>,
    ) -> Result<On<M>, FitError> {
        scaled::scale(a, variance, COVARIANCE)
    }

    /// A correlation, of the covariance and the factors of both features.
    ///
    /// # Errors
    /// [`TooWide`].
    pub fn correlation<M: Machine>(
        &self,
        a: &mut Arithmetic<'_, M>,
        covariance: &On<M>,
        [one, other]: [&On<M>; 2],
    ) -> Result<On<M>, TooWide> {
        scaled::balanced(a, covariance, COVARIANCE, [one, other])
    }

    /// One over the trace of a raised matrix, of its diagonal.
    ///
    /// # Errors
    /// [`FitError::TooWide`].
    pub fn first_inverse<M: Machine>(
        &self,
        a: &mut Arithmetic<'_, M>,
        diagonal: &[On<M>],
    ) -> Result<On<M>, FitError> {
        let trace = Self::sum(a, diagonal)?;
        let raised = (diagonal.len() as i128) << (MATRIX - RAISED);
        // What is left of the matrix has no negative eigenvalue but for rounding.
        let most = diagonal.len() as i128 * about(MATRIX).max();
        let trace = a.within(&trace, -raised / 2, most)?;
        let trace = a.plus(&trace, raised)?;
        let scales = [Scale::binary(MATRIX), Scale::binary(INVERSE)];
        applied(a, Function::Reciprocal, &trace, scales)
    }

    fn sum<M: Machine>(a: &mut Arithmetic<'_, M>, all: &[On<M>]) -> Result<On<M>, TooWide> {
        let mut sum = a.constant(0)?;
        for one in all {
            sum = a.add(&sum, one)?;
        }
        Ok(sum)
    }

    /// An element of the raised matrix over its trace.
    ///
    /// # Errors
    /// [`TooWide`].
    pub fn first_power<M: Machine>(
        &self,
        a: &mut Arithmetic<'_, M>,
        correlation: &On<M>,
        diagonal: &M::Bit,
        inverse: &On<M>,
    ) -> Result<On<M>, TooWide> {
        let raised = a.pick(std::slice::from_ref(diagonal), &[1 << (MATRIX - RAISED)])?;
        let raised = a.add(correlation, &raised)?;
        let power = a.multiply(&raised, inverse)?;
        let power = a.scale_down(&power, INVERSE as i32)?;
        let most = self.powers().max();
        a.within(&power, -most, most)
    }

    /// An element of a square, rounded.
    ///
    /// # Errors
    /// [`TooWide`].
    pub fn square<M: Machine>(
        &self,
        a: &mut Arithmetic<'_, M>,
        product: &On<M>,
    ) -> Result<On<M>, TooWide> {
        let square = a.scale_down(product, MATRIX as i32)?;
        let most = self.powers().max();
        a.within(&square, -most, most)
    }

    /// One over the trace of a square, of its diagonal.
    ///
    /// # Errors
    /// [`FitError::TooWide`].
    pub fn trace_inverse<M: Machine>(
        &self,
        a: &mut Arithmetic<'_, M>,
        diagonal: &[On<M>],
    ) -> Result<On<M>, FitError> {
        let trace = Self::sum(a, diagonal)?;
        // The squares of numbers whose sum is 1.
        let least = (1 << MATRIX) / (diagonal.len() as i128 * 2);
        let trace = a.within(&trace, least, about(MATRIX).max())?;
        let scales = [Scale::binary(MATRIX), Scale::binary(INVERSE)];
        applied(a, Function::Reciprocal, &trace, scales)
    }

    /// An element of the next power.
    ///
    /// # Errors
    /// [`TooWide`].
    pub fn power<M: Machine>(
        &self,
        a: &mut Arithmetic<'_, M>,
        square: &On<M>,
        inverse: &On<M>,
    ) -> Result<On<M>, TooWide> {
        let power = a.multiply(square, inverse)?;
        let power = a.scale_down(&power, INVERSE as i32)?;
        let most = self.powers().max();
        a.within(&power, -most, most)
    }

    /// The component in the row of a feature but for a factor, of the row of the last power: later features weigh more.
    ///
    /// # Errors
    /// [`TooWide`].
    pub fn direction<M: Machine>(
        &self,
        a: &mut Arithmetic<'_, M>,
        row: &[On<M>],
    ) -> Result<On<M>, TooWide> {
        let mut sum = a.constant(0)?;
        for (weight, element) in (1..).zip(row) {
            let part = a.times(element, weight)?;
            sum = a.add(&sum, &part)?;
        }
        a.scale_down(&sum, (MATRIX - LOADING) as i32)
    }

    /// One over the norm, of the sum of squares of directions.
    ///
    /// # Errors
    /// [`FitError::TooWide`].
    pub fn norm_inverse<M: Machine>(
        &self,
        a: &mut Arithmetic<'_, M>,
        squares: &On<M>,
    ) -> Result<On<M>, FitError> {
        let squares = a.within(squares, 0, i128::MAX)?;
        let squares = a.scale_down(&squares, (2 * LOADING - NORM) as i32)?;
        let squares = a.plus(&squares, 1)?;
        let scales = [Scale::binary(NORM), Scale::binary(LOADING)];
        applied(a, Function::InverseRoot, &squares, scales)
    }

    /// A loading.
    ///
    /// # Errors
    /// [`TooWide`].
    pub fn loading<M: Machine>(
        &self,
        a: &mut Arithmetic<'_, M>,
        direction: &On<M>,
        inverse: &On<M>,
    ) -> Result<On<M>, TooWide> {
        let loading = a.multiply(direction, inverse)?;
        let loading = a.scale_down(&loading, LOADING as i32)?;
        a.clip(&loading, self.loadings())
    }

    /// The product of the row of a feature and the loadings, rounded.
    ///
    /// # Errors
    /// [`TooWide`].
    pub fn image<M: Machine>(
        &self,
        a: &mut Arithmetic<'_, M>,
        product: &On<M>,
    ) -> Result<On<M>, TooWide> {
        let image = a.scale_down(product, MATRIX as i32)?;
        a.clip(&image, self.images())
    }

    /// The variance that a component explains, of the sum of products of images and loadings.
    ///
    /// # Errors
    /// [`TooWide`].
    pub fn value<M: Machine>(
        &self,
        a: &mut Arithmetic<'_, M>,
        product: &On<M>,
    ) -> Result<On<M>, TooWide> {
        let value = a.scale_down(product, LOADING as i32)?;
        a.clip(&value, self.values())
    }

    /// One over what a component explains.
    ///
    /// # Errors
    /// [`FitError::TooWide`].
    pub fn value_inverse<M: Machine>(
        &self,
        a: &mut Arithmetic<'_, M>,
        value: &On<M>,
    ) -> Result<On<M>, FitError> {
        let value = a.plus(value, 1 << (LOADING - RAISED))?;
        let scales = [Scale::binary(LOADING), Scale::binary(INVERSE)];
        applied(a, Function::Reciprocal, &value, scales)
    }

    /// What is left of a correlation: less the product of the images of both features over the value. What is left of the matrix has no negative eigenvalue, however near the loadings are to the
    /// component (by the inequality of Cauchy and Schwarz).
    ///
    /// # Errors
    /// [`TooWide`].
    pub fn rest<M: Machine>(
        &self,
        a: &mut Arithmetic<'_, M>,
        correlation: &On<M>,
        inverse: &On<M>,
        [one, other]: [&On<M>; 2],
    ) -> Result<On<M>, TooWide> {
        let part = a.multiply(one, other)?;
        let part = a.scale_down(&part, (2 * LOADING) as i32 - PAIR as i32)?;
        let part = a.multiply(&part, inverse)?;
        let part = a.scale_down(&part, (PAIR + INVERSE - MATRIX) as i32)?;
        let rest = a.sub(correlation, &part)?;
        a.clip(&rest, self.correlations())
    }

    /// A share in units of the last decimal place.
    ///
    /// # Errors
    /// [`TooWide`].
    pub fn shown_share<M: Machine>(
        &self,
        a: &mut Arithmetic<'_, M>,
        value: &On<M>,
    ) -> Result<On<M>, TooWide> {
        let factor = crate::column::Factor::of(1).tens(self.spec.places as i32);
        factor
            .over(self.design.count() as i128)
            .of_number(a, value, LOADING)
    }

    /// A loading in units of the last decimal place.
    ///
    /// # Errors
    /// [`TooWide`].
    pub fn shown_loading<M: Machine>(
        &self,
        a: &mut Arithmetic<'_, M>,
        loading: &On<M>,
    ) -> Result<On<M>, TooWide> {
        let factor = crate::column::Factor::of(1).tens(self.spec.places as i32);
        factor.of_number(a, loading, LOADING)
    }
}

/// Binary places of the product of two images.
const PAIR: u32 = 56;
/// Binary places of the inverse of a trace.
const INVERSE: u32 = 40;
