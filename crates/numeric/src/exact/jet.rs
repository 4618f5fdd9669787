//! Taylor coefficients by recurrences, in enclosures.

use super::Enclosure;

/// The first Taylor coefficients of a function at a number, or at all numbers of an enclosure: `f^(n)(x) / n!` for n = 0, 1, ….
///
/// At all numbers of an interval, the coefficient of order n bounds the remainder of the series that ends before it (Lagrange).
#[derive(Clone, Debug)]
pub struct Jet(Vec<Enclosure>);

impl Jet {
    /// The identity at `x`, with so many coefficients.
    #[must_use]
    pub fn variable(x: Enclosure, coefficients: usize) -> Self {
        let mut jet = vec![Enclosure::from(0); coefficients];
        if coefficients > 1 {
            jet[1] = Enclosure::from(1);
        }
        jet[0] = x;
        Self(jet)
    }

    /// The coefficients, order 0 first.
    #[must_use]
    pub fn coefficients(&self) -> &[Enclosure] {
        &self.0
    }

    fn map(&self, f: impl Fn(&Enclosure) -> Enclosure) -> Self {
        Self(self.0.iter().map(f).collect())
    }

    /// The function times a number.
    #[must_use]
    pub fn times(&self, by: &Enclosure) -> Self {
        self.map(|c| c * by)
    }

    /// The function and a number more.
    #[must_use]
    pub fn plus(&self, more: &Enclosure) -> Self {
        let mut sum = self.clone();
        sum.0[0] = &sum.0[0] + more;
        sum
    }

    /// Σ of `of(j)` for j from `from` below `to`.
    fn sum(from: usize, to: usize, of: impl Fn(usize) -> Enclosure) -> Enclosure {
        (from..to).fold(Enclosure::from(0), |sum, j| &sum + &of(j))
    }

    /// The product of two functions.
    #[must_use]
    pub fn product(&self, other: &Self) -> Self {
        let (a, b) = (&self.0, &other.0);
        let all = (0..a.len()).map(|k| Self::sum(0, k + 1, |j| &a[j] * &b[k - j]));
        Self(all.collect())
    }

    /// 1 / f; `None` if f may be 0.
    #[must_use]
    pub fn reciprocal(&self) -> Option<Self> {
        let a = &self.0;
        let mut q: Vec<Enclosure> = vec![Enclosure::from(1).over(&a[0])?];
        for k in 1..a.len() {
            let sum = Self::sum(1, k + 1, |j| &a[j] * &q[k - j]);
            q.push((-&sum).over(&a[0])?);
        }
        Some(Self(q))
    }

    /// e^f.
    #[must_use]
    pub fn exp(&self) -> Self {
        let a = &self.0;
        let mut e = vec![a[0].exp()];
        for k in 1..a.len() {
            let sum = Self::sum(1, k + 1, |j| {
                &(&a[j] * &e[k - j]) * &Enclosure::from(j as i128)
            });
            e.push(sum.over_integer(k as i128));
        }
        Self(e)
    }

    /// ln f; `None` unless f is above 0.
    #[must_use]
    pub fn ln(&self) -> Option<Self> {
        let a = &self.0;
        let mut l = vec![a[0].ln()?];
        for k in 1..a.len() {
            let sum = Self::sum(1, k, |j| &(&l[j] * &a[k - j]) * &Enclosure::from(j as i128));
            l.push((&a[k] - &sum.over_integer(k as i128)).over(&a[0])?);
        }
        Some(Self(l))
    }

    /// √f; `None` unless f is above 0.
    #[must_use]
    pub fn sqrt(&self) -> Option<Self> {
        let a = &self.0;
        let mut s = vec![a[0].sqrt()?];
        for k in 1..a.len() {
            let sum = Self::sum(1, k, |j| &s[j] * &s[k - j]);
            s.push((&a[k] - &sum).over(&s[0].shifted(1))?);
        }
        Some(Self(s))
    }

    /// The function whose derivative this is, with this value where the coefficients are taken.
    #[must_use]
    pub fn integral(&self, value: Enclosure) -> Self {
        let orders = (1..self.0.len()).map(|k| self.0[k - 1].over_integer(k as i128));
        Self(std::iter::once(value).chain(orders).collect())
    }
}
