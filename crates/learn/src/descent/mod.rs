//! Regressions by gradient descent: rows are looked at in batches, and each batch moves the coefficients against the gradient of its loss (Robbins, Monro 1951; with momentum Polyak 1964).
//!
//! With N places for rows in k batches, a step is
//!
//! ```text
//! v ← μ v + η ((k/N) Σ x (y − mean) − (1/N) penalty · w)      over the rows of a batch that count
//! w ← clip(w + v, −limit, limit)
//! ```
//!
//! Divisors are public: places, and not how many rows count, which is secret. Empty places make a step shorter, and move no fixed point, since sum and penalty are of the rows that there are.
//!
//! A sum over a batch is exact. It is rounded to the places of coefficients; then one rounding makes the step of its multiple, of the penalty and of the last step. The factors are public integers
//! over 2^`shift`, with as many places as fit 64 bits.
//!
//! A step is bounded by proof, not clipped: |v| ≤ A + μ|v| for what a gradient adds at most, A, and hence |v| ≤ A / (1 − μ) but for roundings, which are below a unit each.

mod clear;
mod steps;

use veil_numeric::{Arithmetic, Number, Range, Ranges};

use crate::column::{Column, Factor, log2_up, within};
use crate::design::Design;
use crate::error::{FitError, WIDE};
use crate::link::Link;
use crate::spec::{FEWEST, Family, LIMIT, MOST_TERMS, SUM, WEIGHT, sums};

pub use steps::Moved;

/// How coefficients are moved by batches of rows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Stepping {
    /// Rows of a batch, at most; all of them without it.
    pub batch: Option<u32>,
    /// What a mean gradient is multiplied by, units and decimal places: above 0 and up to [`MOST_RATE`].
    pub rate: (u64, u32),
    /// The part of a step that the next one has as well, units and decimal places: from 0 to [`MOST_MOMENTUM`] hundredths.
    pub momentum: (u64, u32),
    /// Coefficients, of cells between −1 and 1, are kept between this and its opposite: 1 to [`MOST_LIMIT`].
    pub limit: u32,
}

/// What is fitted to which columns, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescentSpec {
    /// How the mean of a row follows.
    pub family: Family,
    /// The features; an intercept is added.
    pub features: Vec<Column>,
    /// The target, as [`Spec`](crate::Spec) has it.
    pub target: Column,
    /// Places for rows.
    pub rows: u32,
    /// The penalty, as [`Spec`](crate::Spec) has it.
    pub ridge: (u64, u32),
    /// How often all batches are looked at.
    pub epochs: u32,
    /// How a batch moves coefficients.
    pub stepping: Stepping,
    /// Decimal places of coefficients.
    pub places: u32,
}

/// Batches of all epochs together, at most: each takes passes of its own.
pub const MOST_DESCENTS: u32 = 2048;
/// Decimal places of a rate and a momentum, at most.
pub const MOST_RATE_PLACES: u32 = 6;
/// The highest rate.
pub const MOST_RATE: u32 = 1000;
/// The highest momentum, in hundredths: a step is up to 100 times that of its gradient.
pub const MOST_MOMENTUM: u32 = 99;
/// The highest limit.
pub const MOST_LIMIT: u32 = 1 << LIMIT;

/// Binary places of cells, at most.
const CELL: u32 = 20;
/// Binary places of the factors of a step, at least and at most.
const FACTOR: std::ops::RangeInclusive<u32> = 8..=44;
/// The factor of a rate is at least 2 to this: it is exact to a thousandth of itself.
const EXACT: u32 = 10;
/// Bits of the factor of a penalty, and the most places that it has more than others.
const PENALTY: (u32, u32) = (24, 56);

/// Ranges of what goes from one stage to another.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Descending {
    /// Cells of the terms, 0 where a row does not count.
    pub cell: Range,
    /// Targets.
    pub response: Range,
    /// The sum of the products of a row's cells and the coefficients.
    pub sum: Range,
    /// The same, rounded.
    pub rounded: Range,
    /// The gradient: sums over the rows of a batch.
    pub gradient: Range,
    /// Coefficients.
    pub coefficient: Range,
    /// Steps.
    pub velocity: Range,
    /// Factors of penalties.
    pub penalty: Range,
}

/// A regression by gradient descent whose arithmetic fits.
#[derive(Clone, Debug)]
pub struct Descent {
    spec: DescentSpec,
    design: Design,
    link: Link,
    batches: u32,
    /// Binary places of `rate` and `momentum`.
    shift: u32,
    /// Of a gradient that is rounded.
    rate: i128,
    /// Of the last step.
    momentum: i128,
    /// Of each coefficient, with so many binary places more.
    penalties: (Vec<i128>, u32),
    between: Descending,
    outputs: Vec<Range>,
}

/// Whether a decimal, units and places, has few places, and is at most so many of units with other places.
fn up_to((units, places): (u64, u32), (most, of): (u32, u32)) -> bool {
    let scaled = |value: u64, by: u32| u128::from(value) * 10_u128.pow(by);
    places <= MOST_RATE_PLACES && scaled(units, of) <= scaled(most.into(), places)
}

impl Stepping {
    /// Looks whether numbers are in their ranges; whether there are as many rows as in a batch, [`Descent::new`] does.
    ///
    /// # Errors
    /// [`FitError::Rate`], [`FitError::Momentum`] or [`FitError::Limit`].
    pub fn check(&self) -> Result<(), FitError> {
        if self.rate.0 == 0 || !up_to(self.rate, (MOST_RATE, 0)) {
            return Err(FitError::Rate);
        }
        if !up_to(self.momentum, (MOST_MOMENTUM, 2)) {
            return Err(FitError::Momentum);
        }
        if self.limit == 0 || self.limit > MOST_LIMIT {
            return Err(FitError::Limit(self.limit));
        }
        Ok(())
    }
}

impl Descent {
    /// The model.
    ///
    /// # Errors
    /// [`FitError`].
    pub fn new(spec: DescentSpec) -> Result<Self, FitError> {
        let rows = spec.rows.max(1);
        spec.stepping.check()?;
        if spec.places > 18 {
            return Err(FitError::Places(spec.places));
        }
        let batch = spec.stepping.batch.unwrap_or(rows);
        if batch == 0 || batch > rows {
            return Err(FitError::Batch { batch, rows });
        }
        let batches = rows.div_ceil(batch);
        let steps = u64::from(spec.epochs) * u64::from(batches);
        if steps == 0 || steps > MOST_DESCENTS.into() {
            let epochs = spec.epochs;
            return Err(FitError::Epochs { epochs, batches });
        }
        let count = spec.features.len();
        if count >= MOST_TERMS {
            return Err(FitError::Features { found: count });
        }
        let mut link = Link::new(spec.family, spec.target, count)?;
        let limit = log2_up(spec.stepping.limit.into());
        let terms = log2_up(count as i128 + 1);
        // What is left of a row is below 2^left, and a gradient below 2^62.
        let left = match spec.family {
            Family::Linear => limit + terms + 1,
            _ => link.mean_bits,
        };
        let size = log2_up(rows.div_ceil(batches).into());
        let places = 61_u32.saturating_sub(size + left);
        let of_sum = 61 - (WEIGHT + limit + terms);
        let cell = (places / 2).min(CELL).min(of_sum);
        link.places = (places - cell).min(SUM);
        let mut of = Self {
            design: Design::new(&spec.features, cell)?,
            link,
            batches,
            shift: 0,
            rate: 0,
            momentum: 0,
            penalties: (vec![], 0),
            between: Descending {
                cell: within(cell),
                response: Range::point(0),
                sum: Range::point(0),
                rounded: Range::point(0),
                gradient: Range::point(0),
                coefficient: within(0),
                velocity: Range::point(0),
                penalty: Range::point(0),
            },
            outputs: vec![],
            spec,
        };
        let most = i128::from(of.spec.stepping.limit) << WEIGHT;
        of.between.coefficient = Range::new(-most, most).ok_or(WIDE)?;
        // Means of many places may not fit the arithmetic of an exponential.
        while let Err(error) = of.derive_rows() {
            let fewer = of.spec.family == Family::Poisson && of.link.places > FEWEST;
            if !fewer {
                return Err(error);
            }
            of.link.places -= 1;
        }
        of.derive_steps()?;
        of.outputs = of.results()?;
        Ok(of)
    }

    /// The ranges of what is computed in each row, and of gradients.
    fn derive_rows(&mut self) -> Result<(), FitError> {
        let some = |range: Range| Number { int: (), range };
        let mut narrow = Ranges(64);
        let mut a = Arithmetic(&mut narrow);
        let between = &self.between;
        let response = self
            .link
            .response(&mut a, &some(self.spec.target.range))?
            .range;
        let terms = self.terms() as u64;
        let sum = sums(between.cell, between.coefficient, terms, 63)?;
        let rounded = self.rounded(&mut a, &some(sum))?;
        let mean = self.link.mean(&mut a, &rounded)?;
        let residual = a.sub(&some(response), &mean)?;
        let gradient = sums(between.cell, residual.range, self.largest().into(), 63)?;
        self.between.response = response;
        self.between.sum = sum;
        self.between.rounded = rounded.range;
        self.between.gradient = gradient;
        Ok(())
    }

    /// The factors of a step, with as many places as fit, and its range.
    fn derive_steps(&mut self) -> Result<(), FitError> {
        let mut wide = WIDE;
        for shift in FACTOR.rev() {
            match self.derive_step(shift) {
                Ok(()) => return Ok(()),
                Err(error) => wide = error,
            }
        }
        Err(match wide {
            FitError::TooWide { bits, most } => FitError::WideStep { bits, most },
            other => other,
        })
    }

    fn derive_step(&mut self, shift: u32) -> Result<(), FitError> {
        let some = |range: Range| Number { int: (), range };
        let Stepping { rate, momentum, .. } = self.spec.stepping.clone();
        let rows = i128::from(self.spec.rows.max(1));
        let each = Factor::decimal(rate).over(rows);
        let whole = |factor: &Factor, places: u32| {
            let factor = factor.rounded(places);
            factor.filter(|factor| factor >> 62 == 0).ok_or(WIDE)
        };
        let of_sum = each.clone().times(&Factor::of(self.batches.into()));
        self.shift = shift;
        self.rate = whole(&of_sum, shift + self.size_bits())?;
        if self.rate >> EXACT == 0 {
            return Err(WIDE);
        }
        self.momentum = whole(&Factor::decimal(momentum), shift)?;
        let ridge = each.times(&Factor::decimal(self.spec.ridge));
        let features = self.design.features().iter();
        let penalties: Vec<Factor> = features.map(|of| of.penalty(&ridge)).collect();
        let with = |more: u32| {
            let all = penalties.iter().map(|of| whole(of, shift + more));
            all.collect::<Result<Vec<i128>, _>>()
        };
        let of_bits = |more: &u32| {
            let all = with(*more).ok();
            all.is_some_and(|all| all.iter().all(|factor| factor >> PENALTY.0 == 0))
        };
        let more = (0..=PENALTY.1).rev().find(of_bits).unwrap_or(0);
        let mut all = vec![0];
        all.extend(with(more)?);
        let most = all.iter().copied().max().unwrap_or(0);
        self.penalties = (all, more);
        self.between.penalty = Range::new(0, most).ok_or(WIDE)?;
        // What is added to a step, then what it is with momentum.
        self.between.velocity = Range::point(0);
        let added = self.range_of_step()?.magnitude().ok_or(WIDE)?;
        let one = 1_i128 << shift;
        let most = (added + 1).checked_mul(one).ok_or(WIDE)? / (one - self.momentum) + 1;
        self.between.velocity = Range::new(-most, most).ok_or(WIDE)?;
        let velocity = self.between.velocity;
        let found = self.range_of_step()?;
        if found.min() < velocity.min() || found.max() > velocity.max() {
            return Err(WIDE);
        }
        let penalty = some(self.between.penalty);
        self.moved(
            &mut Arithmetic(&mut Ranges(64)),
            &some(self.between.gradient),
            (&some(self.between.coefficient), Some(&some(velocity))),
            self.is_ridged().then_some(&penalty),
        )?;
        Ok(())
    }

    /// The range of a step, of the range of the last one.
    fn range_of_step(&self) -> Result<Range, FitError> {
        let some = |range: Range| Number { int: (), range };
        let [coefficient, velocity, penalty] = [
            self.between.coefficient,
            self.between.velocity,
            self.between.penalty,
        ]
        .map(some);
        let step = self.step(
            &mut Arithmetic(&mut Ranges(64)),
            &some(self.between.gradient),
            (&coefficient, Some(&velocity)),
            self.is_ridged().then_some(&penalty),
        )?;
        Ok(step.range)
    }

    /// The ranges of the coefficients.
    fn results(&self) -> Result<Vec<Range>, FitError> {
        let range = self.between.coefficient;
        let coefficients = vec![Number { int: (), range }; self.terms()];
        let mut wide = Ranges(128);
        let shown = self.coefficients(&mut Arithmetic(&mut wide), &coefficients)?;
        Ok(shown.into_iter().map(|of| of.range).collect())
    }

    /// Features and the intercept, which is the first.
    #[must_use]
    pub fn terms(&self) -> usize {
        self.design.count() + 1
    }

    /// What it fits.
    #[must_use]
    pub const fn spec(&self) -> &DescentSpec {
        &self.spec
    }

    /// The cells of rows.
    #[must_use]
    pub const fn design(&self) -> &Design {
        &self.design
    }

    /// How the mean of a row follows, and what a target is.
    #[must_use]
    pub const fn link(&self) -> &Link {
        &self.link
    }

    /// The ranges of what goes from one stage to another.
    #[must_use]
    pub const fn ranges(&self) -> &Descending {
        &self.between
    }

    /// The range of the coefficient of each term, the intercept first, in units of the last decimal place.
    #[must_use]
    pub fn outputs(&self) -> &[Range] {
        &self.outputs
    }

    /// The places of each batch in turn: all places for rows, in runs of which none has more than one place more than another.
    pub fn batches(&self) -> impl Iterator<Item = std::ops::Range<u32>> + use<> {
        let (rows, batches) = (u64::from(self.spec.rows.max(1)), u64::from(self.batches));
        let first = move |batch: u64| (batch * rows / batches) as u32;
        (0..batches).map(move |batch| first(batch)..first(batch + 1))
    }

    /// Places of the largest batch.
    #[must_use]
    pub fn largest(&self) -> u32 {
        self.spec.rows.max(1).div_ceil(self.batches)
    }

    /// Places of the smallest batch.
    #[must_use]
    pub fn smallest(&self) -> u32 {
        self.spec.rows.max(1) / self.batches
    }

    /// The places of a batch are at most 2 to this.
    fn size_bits(&self) -> u32 {
        log2_up(self.largest().into())
    }

    /// Whether coefficients are penalised.
    #[must_use]
    pub const fn is_ridged(&self) -> bool {
        self.spec.ridge.0 > 0
    }

    /// Whether a step has a part of the last one.
    #[must_use]
    pub const fn has_momentum(&self) -> bool {
        self.momentum > 0
    }

    /// The factor of the penalty of each term.
    #[must_use]
    pub fn penalties(&self) -> &[i128] {
        &self.penalties.0
    }
}
