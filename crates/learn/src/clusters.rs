//! k-means (Lloyd 1957, 1982): rows are assigned to the nearest of some centres, which become the means of their rows.

use veil_numeric::{
    Arithmetic, Clear, Function, Machine, Number, On, Range, Ranges, Scale, TooWide,
};

use crate::clear::{Matrix, value};
use crate::column::{Column, Factor, log2_up, within};
use crate::design::Design;
use crate::error::FitError;
use crate::scaled::applied;
use crate::spec::MOST_ITERATIONS;

/// What is clustered, and from where on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterSpec {
    /// The features.
    pub features: Vec<Column>,
    /// The first centres: of each a number for every feature, in units of its column.
    pub start: Vec<Vec<i128>>,
    /// Rows, at most.
    pub rows: u32,
    /// Steps, 1 to [`MOST_ITERATIONS`].
    pub iterations: u32,
    /// Decimal places of the centres.
    pub places: u32,
}

/// Centres, at most.
pub const MOST_CLUSTERS: usize = 64;

/// Binary places of cells and centres.
const CELL: u32 = 16;

/// A clustering whose arithmetic fits.
#[derive(Clone, Debug)]
pub struct Clusters {
    spec: ClusterSpec,
    design: Design,
    start: Vec<Vec<i128>>,
    outputs: Vec<Range>,
}

/// A centre that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// How many rows were nearest to it in the last step.
    pub rows: i128,
    /// The mean of these rows, in units of the last decimal place.
    pub centre: Vec<i128>,
}

impl Clusters {
    /// The clustering.
    ///
    /// # Errors
    /// [`FitError`].
    pub fn new(spec: ClusterSpec) -> Result<Self, FitError> {
        let count = spec.features.len();
        if spec.iterations == 0 || spec.iterations > MOST_ITERATIONS {
            return Err(FitError::Iterations(spec.iterations));
        }
        if spec.places > 18 {
            return Err(FitError::Places(spec.places));
        }
        let centres = spec.start.len();
        if !(2..=MOST_CLUSTERS).contains(&centres) {
            return Err(FitError::Clusters { found: centres });
        }
        let design = Design::new(&spec.features, CELL)?;
        let mut start = Vec::new();
        for (at, centre) in spec.start.iter().enumerate() {
            let mut numbers = spec.features.iter().zip(centre);
            if centre.len() != count || !numbers.all(|(column, x)| column.range.contains(*x)) {
                return Err(FitError::Start { at });
            }
            let mut cells = design.row(&mut Arithmetic(&mut Clear), &spec.features, centre)?;
            start.push(cells.split_off(1));
        }
        let mut of = Self {
            spec,
            design,
            start,
            outputs: vec![],
        };
        of.outputs = of.derive()?;
        Ok(of)
    }

    /// What it clusters.
    #[must_use]
    pub const fn spec(&self) -> &ClusterSpec {
        &self.spec
    }

    /// The first centres, as cells.
    #[must_use]
    pub fn start(&self) -> &[Vec<i128>] {
        &self.start
    }

    /// The ranges of the coordinates of centres, in units of the last decimal place.
    #[must_use]
    pub fn outputs(&self) -> &[Range] {
        &self.outputs
    }

    /// The range of cells and centres.
    #[must_use]
    pub fn cells(&self) -> Range {
        within(CELL)
    }

    /// The cells of rows.
    #[must_use]
    pub const fn design(&self) -> &Design {
        &self.design
    }

    /// The range of the product of a row's cells and a centre's.
    #[must_use]
    pub fn products(&self) -> Range {
        within(2 * CELL + log2_up(self.design.count() as i128))
    }

    /// The range of the sum of a column over the rows of a cluster.
    #[must_use]
    pub fn sums(&self) -> Range {
        within(CELL + self.row_bits())
    }

    fn row_bits(&self) -> u32 {
        log2_up(self.spec.rows.max(1).into())
    }

    fn derive(&self) -> Result<Vec<Range>, FitError> {
        let some = |range: Range| Number { int: (), range };
        let (mut narrow, mut wide) = (Ranges(64), Ranges(128));
        let mut a = Arithmetic(&mut narrow);
        let centre = vec![some(self.cells()); self.design.count()];
        let norm = self.norm(&mut a, &centre)?;
        let distance = self.distance(&mut a, &some(self.products()), &norm)?;
        self.nearest(&mut a, &vec![distance; self.start.len()])?;
        let mut a = Arithmetic(&mut wide);
        let sums = some(self.sums());
        let rows = self.rows(&mut a, &sums)?;
        let (inverse, is_empty) = self.inverse(&mut a, &rows)?;
        let old = some(self.cells());
        self.centre(&mut a, &sums, &inverse, (&is_empty, &old))?;
        let shown = (0..self.design.count()).map(|feature| {
            let shown = self.shown(&mut a, feature, &some(self.cells()))?;
            Ok(shown.range)
        });
        shown.collect()
    }

    /// The square of a centre's distance from 0.
    ///
    /// # Errors
    /// [`TooWide`].
    pub fn norm<M: Machine>(
        &self,
        a: &mut Arithmetic<'_, M>,
        centre: &[On<M>],
    ) -> Result<On<M>, TooWide> {
        let mut sum = a.constant(0)?;
        for x in centre {
            let square = a.multiply(x, x)?;
            let square = a.within(&square, 0, i128::MAX)?;
            sum = a.add(&sum, &square)?;
        }
        Ok(sum)
    }

    /// The square of a row's distance from a centre, less that from 0.
    ///
    /// # Errors
    /// [`TooWide`].
    pub fn distance<M: Machine>(
        &self,
        a: &mut Arithmetic<'_, M>,
        product: &On<M>,
        norm: &On<M>,
    ) -> Result<On<M>, TooWide> {
        let twice = a.times(product, 2)?;
        a.sub(norm, &twice)
    }

    /// Which of some distances is the least: a bit for each, the first of equal ones.
    ///
    /// # Errors
    /// [`TooWide`].
    pub fn nearest<M: Machine>(
        &self,
        a: &mut Arithmetic<'_, M>,
        distances: &[On<M>],
    ) -> Result<Vec<M::Bit>, TooWide> {
        // Pairs, pairs of pairs and so on: the least of each, and which it is.
        let mut level: Vec<(On<M>, Vec<M::Bit>)> = Vec::new();
        for distance in distances {
            level.push((distance.clone(), vec![a.0.truth(true)]));
        }
        while level.len() > 1 {
            let mut next = Vec::new();
            let mut pairs = level.into_iter();
            while let Some((left, of_left)) = pairs.next() {
                let Some((right, of_right)) = pairs.next() else {
                    next.push((left, of_left));
                    break;
                };
                let difference = a.sub(&right, &left)?;
                let less = a.0.is_negative(&difference.int, difference.range);
                let not_less = a.not(&less);
                let least = a.choose(&less, &right, &left)?;
                let left = of_left.iter().map(|bit| a.0.and(bit, &not_less));
                let mut which: Vec<M::Bit> = left.collect();
                which.extend(of_right.iter().map(|bit| a.0.and(bit, &less)));
                next.push((least, which));
            }
            level = next;
        }
        Ok(level.pop().map_or_else(Vec::new, |(_, which)| which))
    }

    /// How many rows there are, of the sum of their cells.
    ///
    /// # Errors
    /// [`TooWide`].
    pub fn rows<M: Machine>(
        &self,
        a: &mut Arithmetic<'_, M>,
        sum: &On<M>,
    ) -> Result<On<M>, TooWide> {
        let rows = a.scale_down(sum, CELL as i32)?;
        a.within(&rows, 0, self.spec.rows.into())
    }

    /// One over a number of rows, or over 1 if it is 0; and whether it is.
    ///
    /// # Errors
    /// [`FitError::TooWide`].
    pub fn inverse<M: Machine>(
        &self,
        a: &mut Arithmetic<'_, M>,
        rows: &On<M>,
    ) -> Result<(On<M>, M::Bit), FitError> {
        let less = a.plus(rows, -1)?;
        let is_empty = a.0.is_negative(&less.int, less.range);
        let one = a.lift(&is_empty);
        let some = a.add(rows, &one)?;
        let some = a.within(&some, 1, i128::MAX)?;
        let scales = [Scale::ONE, Scale::binary(self.inverse_places())];
        Ok((applied(a, Function::Reciprocal, &some, scales)?, is_empty))
    }

    fn inverse_places(&self) -> u32 {
        self.row_bits() + CELL + 8
    }

    /// The mean of a column over the rows of a cluster, or what it was before if there are none.
    ///
    /// # Errors
    /// [`TooWide`].
    pub fn centre<M: Machine>(
        &self,
        a: &mut Arithmetic<'_, M>,
        sum: &On<M>,
        inverse: &On<M>,
        (is_empty, old): (&M::Bit, &On<M>),
    ) -> Result<On<M>, TooWide> {
        let mean = a.multiply(sum, inverse)?;
        let mean = a.scale_down(&mean, self.inverse_places() as i32)?;
        // A mean of numbers between −1 and 1, and its error.
        let mean = a.clip(&mean, self.cells())?;
        a.choose(is_empty, old, &mean)
    }

    /// A coordinate of a centre in units of the last decimal place.
    ///
    /// # Errors
    /// [`TooWide`].
    pub fn shown<M: Machine>(
        &self,
        a: &mut Arithmetic<'_, M>,
        feature: usize,
        x: &On<M>,
    ) -> Result<On<M>, FitError> {
        let of = &self.design.features()[feature];
        let more = self.spec.places as i32 - of.places as i32;
        let factor = Factor::of(1).tens(more).twos(of.exponent as i32);
        let shown = factor.of_number(a, x, CELL)?;
        let centre = Factor::of(of.centre).tens(more).rounded(0);
        Ok(a.plus(&shown, centre.ok_or(crate::error::WIDE)?)?)
    }

    /// The clusters of these rows in the clear.
    ///
    /// # Errors
    /// [`FitError::TooWide`], which [`Clusters::new`] has refused before.
    ///
    /// # Panics
    /// If a number is not in the range of its column, or there are more rows than the clustering is made for.
    pub fn fit(&self, rows: &[Vec<i128>]) -> Result<Vec<Cluster>, FitError> {
        assert!(
            rows.len() <= self.spec.rows as usize,
            "a clustering has as many rows as it is made for"
        );
        let mut clear = Clear;
        let mut a = Arithmetic(&mut clear);
        let cells = rows
            .iter()
            .map(|row| self.design.row(&mut a, &self.spec.features, row));
        let cells = cells.collect::<Result<Vec<_>, _>>()?;
        let range = self.cells();
        let of_start = self.start.iter();
        let mut centres: Matrix = of_start
            .map(|centre| centre.iter().map(|x| value(*x, range)).collect())
            .collect();
        let mut counts = vec![0_i128; centres.len()];
        for _ in 0..self.spec.iterations {
            let norms = centres.iter().map(|centre| self.norm(&mut a, centre));
            let norms = norms.collect::<Result<Vec<_>, _>>()?;
            let mut sums = vec![vec![0_i128; self.design.count() + 1]; centres.len()];
            for row in &cells {
                let distances = centres.iter().zip(&norms).map(|(centre, norm)| {
                    let product = row[1..].iter().zip(centre).map(|(x, c)| x * c.int).sum();
                    self.distance(&mut a, &value(product, self.products()), norm)
                });
                let distances = distances.collect::<Result<Vec<_>, _>>()?;
                let nearest = self.nearest(&mut a, &distances)?;
                for (sums, _) in sums.iter_mut().zip(nearest).filter(|(_, nearest)| *nearest) {
                    sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
                }
            }
            for ((centre, sums), count) in centres.iter_mut().zip(&sums).zip(&mut counts) {
                let rows = self.rows(&mut a, &value(sums[0], self.sums()))?;
                *count = rows.int;
                let (inverse, is_empty) = self.inverse(&mut a, &rows)?;
                for (x, sum) in centre.iter_mut().zip(&sums[1..]) {
                    let sum = value(*sum, self.sums());
                    *x = self.centre(&mut a, &sum, &inverse, (&is_empty, x))?;
                    x.range = range;
                }
            }
        }
        let mut all = Vec::new();
        for (centre, rows) in centres.iter().zip(counts) {
            let shown = centre.iter().enumerate().map(|(feature, x)| {
                let shown = self.shown(&mut a, feature, x)?;
                Ok(shown.int)
            });
            let centre = shown.collect::<Result<_, FitError>>()?;
            all.push(Cluster { rows, centre });
        }
        Ok(all)
    }
}
