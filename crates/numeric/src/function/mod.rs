//! Functions of fixed-point numbers, as arithmetic that parties can do.
//!
//! Each function is reduced to a short interval by bits of its argument, where a polynomial is near it ([`crate::Curve`]), and scaled back. What is computed is fixed by the function, the two
//! scales and the range of the argument alone, in integers: every machine computes the same.
//!
//! | | reduction | polynomial | back |
//! | --- | --- | --- | --- |
//! | exp2, exp, exp10 | z = x · log2 of the base, whole part by bits | 2^u | products of 2^(2^j) that bits choose |
//! | 1/x, √x, 1/√x | the leading one, by a prefix of ors; x times the power of two that brings it to the front | of the mantissa | a public factor for each place of the leading one |
//! | log2, ln, log10 | likewise | of the mantissa | a public number for each place |
//! | sigmoid, tanh, erf, softplus | the sign; pieces of |x| up to where the function is near its limit | on each piece | the sign |

mod double;
mod normal;
mod polynomial;
mod power;
mod symmetric;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use crate::exact::Enclosure;
use crate::machine::Machine;
use crate::number::{Arithmetic, On, TooWide};
use crate::range::Range;
use crate::scale::Scale;

use normal::Normal;
use power::Power;
use symmetric::Symmetric;

/// A function of one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Function {
    /// 2^x.
    Exp2,
    /// e^x.
    Exp,
    /// 10^x.
    Exp10,
    /// The logarithm to base 2, of x above 0.
    Log2,
    /// The natural logarithm, of x above 0.
    Ln,
    /// The logarithm to base 10, of x above 0.
    Log10,
    /// 1/x, of x above 0 or of x below 0.
    Reciprocal,
    /// √x, of x from 0 on.
    Root,
    /// 1/√x, of x above 0.
    InverseRoot,
    /// 1/(1 + e^−x).
    Sigmoid,
    /// The hyperbolic tangent.
    Tanh,
    /// ln(1 + e^x).
    Softplus,
    /// The error function 2/√π ∫ e^(−t²) dt from 0 to x.
    Erf,
}

/// Why a function is not computed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FunctionError {
    /// A number that the function has no value for.
    #[error("{function} has no value for {excluded}, and its argument may be that")]
    Domain {
        /// Its name.
        function: &'static str,
        /// What it has no value for.
        excluded: &'static str,
    },
    /// A result, or a number on the way to it, that does not fit.
    #[error("{function} of this range, with so many places, may take more than {bits} bits")]
    TooWide {
        /// Its name.
        function: &'static str,
        /// Bits at hand.
        bits: u32,
    },
}

impl Function {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::Exp2,
        Self::Exp,
        Self::Exp10,
        Self::Log2,
        Self::Ln,
        Self::Log10,
        Self::Reciprocal,
        Self::Root,
        Self::InverseRoot,
        Self::Sigmoid,
        Self::Tanh,
        Self::Softplus,
        Self::Erf,
    ];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exp2 => "exp2",
            Self::Exp => "exp",
            Self::Exp10 => "exp10",
            Self::Log2 => "log2",
            Self::Ln => "ln",
            Self::Log10 => "log10",
            Self::Reciprocal => "reciprocal",
            Self::Root => "sqrt",
            Self::InverseRoot => "rsqrt",
            Self::Sigmoid => "sigmoid",
            Self::Tanh => "tanh",
            Self::Softplus => "softplus",
            Self::Erf => "erf",
        }
    }

    /// The function of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|function| function.name() == name)
    }

    /// Its value at a real number, in an enclosure; `None` where it has none, or where the enclosure does not fit.
    #[must_use]
    pub fn at(self, x: &Enclosure) -> Option<Enclosure> {
        let one = Enclosure::from(1);
        let small = |limit| x.abs().at_most(&Enclosure::from(limit));
        Some(match self {
            Self::Exp2 => power(&(x * &Enclosure::ln_2()))?,
            Self::Exp => power(x)?,
            Self::Exp10 => power(&(x * &Enclosure::from(10).ln()?))?,
            Self::Log2 => x.ln()?.over(&Enclosure::ln_2())?,
            Self::Ln => x.ln()?,
            Self::Log10 => x.ln()?.over(&Enclosure::from(10).ln()?)?,
            Self::Reciprocal => one.over(x)?,
            Self::Root => x.sqrt()?,
            Self::InverseRoot => one.over(&x.sqrt()?)?,
            Self::Sigmoid => sigmoid(x)?,
            Self::Tanh => &sigmoid(&x.shifted(1))?.shifted(1) - &one,
            Self::Softplus => {
                // max(x, 0) + ln(1 + e^−|x|), so that no number on the way is large.
                let falling = decay(&x.abs());
                let zero = Enclosure::from(0);
                let positive = if x.is_positive() { x } else { &zero };
                positive + &(&falling + &one).ln()?
            }
            Self::Erf if small(8) => x.erf(),
            Self::Erf => {
                // 1 − erf 8 is below 2^-96.
                let near = &one - &Enclosure::scaled(1, -96);
                let limit = near.hull(&one);
                if x.is_positive() {
                    limit
                } else if (-x).is_positive() {
                    -&limit
                } else {
                    one.hull(&-&one)
                }
            }
        })
    }
}

/// e^x; `None` beyond e^1024, which fits no scale.
fn power(x: &Enclosure) -> Option<Enclosure> {
    let end = |x: &Enclosure| {
        if x.is_positive() {
            x.at_most(&Enclosure::from(1024)).then(|| x.exp())
        } else {
            Some(decay(&-x))
        }
    };
    Some(end(&x.low())?.hull(&end(&x.high())?))
}

/// e^−x of x from 0 on; beyond 160 it is less than the enclosures show.
fn decay(x: &Enclosure) -> Enclosure {
    if x.at_most(&Enclosure::from(160)) {
        (-x).exp()
    } else {
        Enclosure::from(0).hull(&Enclosure::from(-160).exp())
    }
}

fn sigmoid(x: &Enclosure) -> Option<Enclosure> {
    let one = Enclosure::from(1);
    let falling = decay(&x.abs());
    let of_positive = one.over(&(&falling + &one))?;
    if x.is_positive() {
        Some(of_positive)
    } else {
        Some(&one - &of_positive)
    }
}

/// Functions on ranges that are kept.
const MOST_KEPT: usize = 4096;

/// A function between two scales, on a range: what is computed, in which range the result is, and how far from the function.
#[derive(Clone, Debug)]
pub struct Applied {
    function: Function,
    range: Range,
    result: [Range; 2],
    /// With rounding to nearest, and with one that draws.
    error: [Enclosure; 2],
    way: Way,
}

#[derive(Clone, Debug)]
enum Way {
    Normal(Normal),
    Power(Power),
    Symmetric(Symmetric),
}

/// The largest error of one rounding, in units of its last place: to nearest, or with R drawn.
fn slack(draws: bool) -> Enclosure {
    if draws {
        Enclosure::from(1)
    } else {
        Enclosure::ratio(1, 2)
    }
}

/// The least a with |x| ≤ 2^a, and no less than 0.
fn bits_of(x: &Enclosure) -> Option<u32> {
    let most = x.abs().ceil(0)?;
    Some(128 - (most - 1).max(0).leading_zeros())
}

impl Applied {
    /// The function of integers of a range, which are units of `from`, in units of `to`.
    ///
    /// # Errors
    /// [`FunctionError`].
    pub fn new(
        function: Function,
        from: Scale,
        range: Range,
        to: Scale,
    ) -> Result<Self, FunctionError> {
        use Function as F;
        let wide = FunctionError::TooWide {
            function: function.name(),
            bits: 128,
        };
        let excluded = match function {
            F::Log2 | F::Ln | F::Log10 | F::InverseRoot if range.min() <= 0 => "0 and below",
            F::Reciprocal if range.contains(0) => "0",
            F::Root if range.min() < 0 => "numbers below 0",
            _ => "",
        };
        if !excluded.is_empty() {
            let function = function.name();
            return Err(FunctionError::Domain { function, excluded });
        }
        let tens = from.tens().is_some() && to.tens().is_some();
        let places = [from.two, to.two]
            .iter()
            .all(|two| *two <= crate::scale::MOST_PLACES);
        if !tens || !places {
            return Err(wide);
        }
        let made = match function {
            F::Exp2 | F::Exp | F::Exp10 => Power::new(function, from, range, to)
                .map(|power| (power.errors(), Way::Power(power))),
            F::Log2 | F::Ln | F::Log10 | F::Reciprocal | F::Root | F::InverseRoot => {
                Normal::new(function, from, range, to)
                    .map(|normal| (normal.errors(), Way::Normal(normal)))
            }
            F::Sigmoid | F::Tanh | F::Softplus | F::Erf => {
                Symmetric::new(function, from, range, to)
                    .map(|symmetric| (symmetric.errors(), Way::Symmetric(symmetric)))
            }
        };
        let (error, way) = made.ok_or_else(|| wide.clone())?;
        let result = |error| result_range(function, from, range, to, error);
        let result = match [result(&error[0]), result(&error[1])] {
            [Some(nearest), Some(drawn)] => [nearest, drawn],
            _ => return Err(wide),
        };
        let applied = Self {
            function,
            range,
            result,
            error,
            way,
        };
        // What is on the way may be wider than argument and result; how wide does not depend on the argument.
        let fits = applied.clear(range.min()).is_some();
        fits.then_some(applied).ok_or(wide)
    }

    /// [`Applied::new`], made once and kept for the next who asks.
    ///
    /// # Errors
    /// [`FunctionError`].
    pub fn of(
        function: Function,
        from: Scale,
        range: Range,
        to: Scale,
    ) -> Result<Arc<Self>, FunctionError> {
        type Key = (Function, Scale, Range, Scale);
        static MADE: LazyLock<Mutex<HashMap<Key, Arc<Applied>>>> = LazyLock::new(Mutex::default);
        let key = (function, from, range, to);
        let made = || MADE.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(applied) = made().get(&key) {
            return Ok(Arc::clone(applied));
        }
        let applied = Arc::new(Self::new(function, from, range, to)?);
        let mut made = made();
        // Queries have few; a service that plans many forgets them.
        if made.len() >= MOST_KEPT {
            made.clear();
        }
        made.insert(key, Arc::clone(&applied));
        Ok(applied)
    }

    /// The range of the result, in units: with rounding to nearest, or with one that draws.
    #[must_use]
    pub const fn result(&self, draws: bool) -> Range {
        self.result[draws as usize]
    }

    /// How far the result is from the function's value at most, in units of the result.
    #[must_use]
    pub fn error(&self, draws: bool) -> Enclosure {
        self.error[usize::from(draws)].clone()
    }

    /// The result, on a machine.
    ///
    /// # Errors
    /// [`FunctionError::TooWide`] if a number on the way does not fit the machine.
    pub fn on<M: Machine>(&self, machine: &mut M, x: &On<M>) -> Result<On<M>, FunctionError> {
        let (min, max) = (self.range.min(), self.range.max());
        let result = self.result[usize::from(machine.draws())];
        let mut arithmetic = Arithmetic(machine);
        let computed = arithmetic
            .within(x, min, max)
            .and_then(|x| match &self.way {
                Way::Normal(way) => way.on(&mut arithmetic, &x),
                Way::Power(way) => way.on(&mut arithmetic, &x),
                Way::Symmetric(way) => way.on(&mut arithmetic, &x),
            });
        let within = computed.and_then(|y| arithmetic.within(&y, result.min(), result.max()));
        within.map_err(|TooWide { most, .. }| FunctionError::TooWide {
            function: self.function.name(),
            bits: most,
        })
    }

    /// The result in the clear; `None` if the argument is not in its range.
    #[must_use]
    pub fn clear(&self, x: i128) -> Option<i128> {
        if !self.range.contains(x) {
            return None;
        }
        let x = On::<crate::Clear> {
            int: x,
            range: self.range,
        };
        self.on(&mut crate::Clear, &x).ok().map(|y| y.int)
    }
}

/// All values of the function on the range, and what the error adds: functions here rise or fall everywhere.
fn result_range(
    function: Function,
    from: Scale,
    range: Range,
    to: Scale,
    error: &Enclosure,
) -> Option<Range> {
    let end = |x: i128| Some(to.units(&function.at(&from.value(x))?));
    let (one, other) = (end(range.min())?, end(range.max())?);
    let all = one.hull(&other);
    // What is rounded is no farther from the function than this: so no whole number beyond is a result.
    let low = (&all.low() - &error.high()).ceil(0)?;
    let high = (&all.high() + &error.high()).floor(0)?;
    Range::new(low, high.max(low))
}
