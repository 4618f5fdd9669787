//! Functions in IEEE doubles, beside those that parties compute.

use std::f64::consts::{LN_10, PI};

use super::Function;

impl Function {
    /// The function of a double, within 8 · 2^-53 of its value as a part of it, a power of ten within 16 · 2^-53 and the error function within 64 · 2^-53; tests compare with enclosures. It rests on the mathematical library of the system, so that
    /// reports and tests alone are made of it.
    #[must_use]
    pub fn of_double(self, x: f64) -> f64 {
        match self {
            Self::Exp2 => x.exp2(),
            Self::Exp => x.exp(),
            Self::Exp10 => (x * LN_10).exp(),
            Self::Log2 => x.log2(),
            Self::Ln => x.ln(),
            Self::Log10 => x.log10(),
            Self::Reciprocal => x.recip(),
            Self::Root => x.sqrt(),
            Self::InverseRoot => x.sqrt().recip(),
            Self::Sigmoid => ((-x).exp() + 1.0).recip(),
            Self::Tanh => x.tanh(),
            Self::Softplus => x.max(0.0) + (-x.abs()).exp().ln_1p(),
            Self::Erf => erf(x),
        }
    }
}

/// The error function: 2/√π · e^(−x²) · Σ 2ⁿ x^(2n+1) / (1·3·…·(2n+1)), whose terms have one sign, so that no digits cancel.
fn erf(x: f64) -> f64 {
    // From here on 1 is the nearest double.
    if x.abs() >= 6.0 {
        return x.signum();
    }
    let (mut term, mut sum, mut odd) = (x, x, 1.0);
    while term.abs() > sum.abs() * f64::EPSILON / 4.0 {
        odd += 2.0;
        term *= 2.0 * x * x / odd;
        sum += term;
    }
    2.0 / PI.sqrt() * (-x * x).exp() * sum
}

#[cfg(test)]
mod tests {
    use std::f64::consts::LN_2;

    use super::*;

    #[test]
    fn doubles_of_functions_are_those_of_tables() {
        // Abramowitz and Stegun, table 7.1; the others from their definitions.
        for (function, x, value) in [
            (Function::Erf, 0.0, 0.0),
            (Function::Erf, 0.5, 0.520_499_877_813_046_5),
            (Function::Erf, -1.0, -0.842_700_792_949_714_9),
            (Function::Erf, 2.0, 0.995_322_265_018_952_7),
            (Function::Erf, 5.5, 0.999_999_999_999_992_6),
            (Function::Erf, -7.0, -1.0),
            (Function::Sigmoid, 0.0, 0.5),
            (Function::Sigmoid, -800.0, 0.0),
            (Function::Softplus, 0.0, LN_2),
            (Function::Softplus, 800.0, 800.0),
            (Function::Exp10, 2.0, 100.0),
            (Function::InverseRoot, 16.0, 0.25),
        ] {
            let got = function.of_double(x);
            let within = 4.0 * f64::EPSILON * value.abs().max(f64::EPSILON);
            assert!(
                (got - value).abs() <= within.max(1e-13 * value.abs()),
                "{function:?} of {x}: {got}"
            );
        }
    }
}
