//! Gradient descent in the clear: what parties open, computed by one who has all rows in their order.

use veil_numeric::{Arithmetic, Clear};

use super::Descent;
use crate::clear::{Value, value};
use crate::error::FitError;

/// Cells of the features, in units of their columns, and the target.
type Cells = (Vec<i128>, i128);

impl Descent {
    /// Rows in places of a model, in an order that has nothing to do with theirs and is the same each time. Parties have one that is secret, and another one in each run.
    #[must_use]
    pub fn placed(&self, rows: Vec<Cells>) -> Vec<Option<Cells>> {
        let places = self.spec.rows.max(1);
        let mut order: Vec<u32> = (0..places).collect();
        if self.batches > 1 {
            order.sort_by_key(|place| mixed((*place).into()));
        }
        let mut placed = vec![None; places as usize];
        for (row, place) in rows.into_iter().zip(order) {
            placed[place as usize] = Some(row);
        }
        placed
    }

    /// The coefficients of these rows, the intercept first, in units of the last decimal place: of each place for a row what stands there, if a row does.
    ///
    /// # Errors
    /// [`FitError::TooWide`], which [`Descent::new`] has refused before.
    ///
    /// # Panics
    /// If a number is not in the range of its column, or there are other places than the model is made for.
    pub fn fit(&self, rows: &[Option<Cells>]) -> Result<Vec<i128>, FitError> {
        assert!(
            rows.len() == self.spec.rows.max(1) as usize,
            "a model has as many places for rows as it is made for"
        );
        let (mut clear, terms) = (Clear, self.terms());
        let mut a = Arithmetic(&mut clear);
        let mut known: Vec<Option<(Vec<i128>, Value)>> = Vec::new();
        for row in rows {
            let Some((features, target)) = row else {
                known.push(None);
                continue;
            };
            let cells = self.design.row(&mut a, &self.spec.features, features)?;
            let target = value(*target, self.spec.target.range);
            known.push(Some((cells, self.link.response(&mut a, &target)?)));
        }
        let mut coefficients = vec![value(0, self.between.coefficient); terms];
        let mut velocities = vec![value(0, self.between.velocity); terms];
        for _ in 0..self.spec.epochs {
            for batch in self.batches() {
                let batch = batch.start as usize..batch.end as usize;
                let mut gradient = vec![0_i128; terms];
                for (cells, response) in known[batch].iter().flatten() {
                    let residual = self.residual(&mut a, (cells, response), &coefficients)?;
                    for (sum, x) in gradient.iter_mut().zip(cells) {
                        *sum += x * residual;
                    }
                }
                for (term, sum) in gradient.into_iter().enumerate() {
                    let penalty = value(self.penalties.0[term], self.between.penalty);
                    let moved = self.moved(
                        &mut a,
                        &value(sum, self.between.gradient),
                        (&coefficients[term], Some(&velocities[term])),
                        self.is_ridged().then_some(&penalty),
                    )?;
                    coefficients[term] = moved.coefficient;
                    velocities[term] = moved.velocity;
                }
            }
        }
        let shown = self.coefficients(&mut a, &coefficients)?;
        Ok(shown.into_iter().map(|of| of.int).collect())
    }

    /// The response of a row less its mean.
    fn residual(
        &self,
        a: &mut Arithmetic<'_, Clear>,
        (cells, response): (&[i128], &Value),
        coefficients: &[Value],
    ) -> Result<i128, FitError> {
        let products = cells.iter().zip(coefficients).map(|(x, w)| x * w.int);
        let rounded = self.rounded(a, &value(products.sum(), self.between.sum))?;
        let mean = self.link.mean(a, &rounded)?;
        Ok(a.sub(response, &mean)?.int)
    }
}

/// A number that says nothing of where a place is among others (Steele, Lea, Flood 2014: the finaliser of `SplittableRandom`).
const fn mixed(place: u64) -> u64 {
    let z = (place + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
