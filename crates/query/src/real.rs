//! Functions that have no exact values, the largest and smallest of several numbers, and powers.

use veil_relation::{
    Arithmetic, Comparison, Expr, Function, Kind, Literal, MOST_REAL_PLACES, Type,
};

use crate::error::SqlError;
use crate::term::Terms;

/// Places of a function that is not rounded.
const PLACES: u32 = 6;

/// Places to which a quotient is rounded before a function is taken of it.
const QUOTIENT_PLACES: u32 = 9;

/// Highest power of a number: higher ones of most ranges have no room.
const MOST_POWER: i128 = 16;

/// The function of a name of the dialect: PostgreSQL's, and those that it lacks by their own.
pub(crate) fn named(name: &str) -> Option<Function> {
    match name {
        "log" => Some(Function::Log10),
        other => Function::named(other),
    }
}

/// A function of a number: to six places, or as many as the number has.
pub(crate) fn of(function: Function, of: Expr, kind: &Kind) -> Expr {
    let (of, places) = match kind {
        Kind::Ratio { .. } => (Expr::Round(Box::new(of), QUOTIENT_PLACES), PLACES),
        kind => (
            of,
            kind.number()
                .map_or(PLACES, |(places, _)| places.clamp(PLACES, MOST_REAL_PLACES)),
        ),
    };
    Expr::Real(function, Box::new(of), places)
}

/// A number to so many places. A function is computed to them, and not rounded twice.
pub(crate) fn rounded(terms: &Terms<'_>, number: Expr, places: u32) -> Result<Expr, SqlError> {
    Ok(match number {
        Expr::Real(function, of, _) if places <= MOST_REAL_PLACES => {
            Expr::Real(function, of, places)
        }
        Expr::Real(..) => {
            let what = format!(
                "round takes {MOST_REAL_PLACES} places at most, of a function that has no exact values"
            );
            return Err(terms.source.refused(terms.at, what, None));
        }
        other => Expr::Round(Box::new(other), places),
    })
}

/// The largest or the smallest of numbers of one kind, null only where all of them are.
pub(crate) fn extreme(greatest: bool, parts: Vec<(Expr, Type)>) -> Expr {
    let sign = if greatest {
        Comparison::Ge
    } else {
        Comparison::Le
    };
    let mut parts = parts.into_iter();
    let Some((mut so_far, mut ty)) = parts.next() else {
        return Expr::bool(true);
    };
    for (next, of) in parts {
        let otherwise = if ty.nullable || of.nullable {
            Expr::Coalesce(vec![next.clone(), so_far.clone()])
        } else {
            next.clone()
        };
        let when = Expr::compare(sign, so_far.clone(), next);
        so_far = Expr::Case {
            branches: vec![(when, so_far)],
            otherwise: Box::new(otherwise),
        };
        ty.nullable &= of.nullable;
    }
    so_far
}

/// The larger of a number and the same with the other sign, which is not below 0; null where the number is.
///
/// # Panics
/// Unless the three are given: the number, the other one, and 0.
pub(crate) fn absolute(parts: &[(Expr, Type)]) -> Expr {
    let [(x, _), (minus, _), (zero, _)] = parts else {
        unreachable!("three terms of one kind are three expressions");
    };
    let choice = |when: Expr, then: Expr, otherwise: Expr| Expr::Case {
        branches: vec![(when, then)],
        otherwise: Box::new(otherwise),
    };
    let when = Expr::compare(Comparison::Ge, x.clone(), minus.clone());
    let size = choice(when, x.clone(), minus.clone());
    let when = Expr::compare(Comparison::Gt, zero.clone(), size.clone());
    choice(when, zero.clone(), size)
}

/// A number to a public power: products, as few as the squares of the power's bits allow.
pub(crate) fn power(terms: &Terms<'_>, base: Expr, exponent: &Expr) -> Result<Expr, SqlError> {
    let exponent = match exponent {
        Expr::Literal(Literal::Integer(exponent)) => Some(*exponent),
        _ => None,
    };
    let Some(mut left) = exponent.filter(|n| (1..=MOST_POWER).contains(n)) else {
        let what = format!(
            "power takes a public whole number from 1 to {MOST_POWER} as its second argument"
        );
        let instead = Some("write sqrt(x), or exp(y * ln(x))");
        return Err(terms.source.refused(terms.at, what, instead));
    };
    let times = |a: Expr, b: Expr| Expr::arithmetic(Arithmetic::Mul, a, b);
    let (mut square, mut product): (Expr, Option<Expr>) = (base, None);
    loop {
        if left % 2 == 1 {
            let more = match product.take() {
                None => square.clone(),
                Some(product) => times(product, square.clone()),
            };
            if left == 1 {
                return Ok(more);
            }
            product = Some(more);
        }
        left /= 2;
        square = times(square.clone(), square);
    }
}
