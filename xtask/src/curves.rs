//! Polynomials near functions, with bounds that are proved: `crates/numeric/src/coefficients.rs`.
//!
//! A polynomial of degree d has the curve's values at the d + 1 zeros of Chebyshev's polynomial on its piece. Its error is that polynomial, times the curve's derivative of order d + 1 somewhere
//! on the piece. On a narrow piece that derivative hardly changes, so that no polynomial of the degree is much nearer.

use std::fmt::Write as _;

use veil_numeric::exact::Enclosure;
use veil_numeric::{Curve, UNIT};

use crate::tree::{self, Failure};

/// Why there are no polynomials, or others than there should be.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum CurveError {
    /// A curve whose pieces are too wide.
    #[error("{curve:?} takes more than {MOST_DEGREE} degrees for {tier} places")]
    NoDegree {
        /// The curve.
        curve: Curve,
        /// Places of results.
        tier: u32,
    },
    /// Another file than is made.
    #[error("{FILE} is not what is made: run `cargo xtask curves`")]
    Differs,
    /// The file could not be written.
    #[error("{FILE} cannot be written: {0}")]
    Write(std::io::Error),
}

const FILE: &str = "crates/numeric/src/coefficients.rs";

/// Binary places of results that there are polynomials for: their error is below half of the last one.
const TIERS: [u32; 6] = [14, 20, 26, 32, 38, 44];

/// Highest degree; a curve that takes more has pieces that are too wide.
const MOST_DEGREE: usize = 10;

/// Binary places of the places where a polynomial has the curve's value.
const PLACES: i32 = 24;

/// The width of pieces, and how many there are: of curves that end at 1 all of [0, 1), of others up to where they are near their limit.
///
/// Twice as many pieces are found with as many ANDs more as there were pieces, and their polynomials have narrower products, of a variable with a bit less, or one product less: widths take
/// about as few ANDs as any, with no more than some hundreds of pieces.
fn pieces(curve: Curve, tier: u32) -> (u32, usize) {
    // Where e^-T and 1 - erf T are below 2^-(tier + 1).
    let bits = f64::from(tier + 1) * std::f64::consts::LN_2;
    let (finer, end) = match (curve, tier) {
        (Curve::Sigmoid | Curve::Softplus, 20..=32) => (4, bits),
        (Curve::Sigmoid | Curve::Softplus, _) => (3, bits),
        (Curve::Erf, _) => (5, bits.sqrt()),
        (_, ..=14) => (5, 1.0),
        (_, 26..=32) => (7, 1.0),
        _ => (6, 1.0),
    };
    (finer, (end * f64::from(1 << finer)).ceil() as usize)
}

/// The least number of degrees for a tier, with coefficients and the proved error.
struct Fitted {
    finer: u32,
    degree: usize,
    coefficients: Vec<i64>,
    error: u64,
}

fn fitted(curve: Curve, tier: u32) -> Result<Fitted, CurveError> {
    let (finer, count) = pieces(curve, tier);
    let most = Enclosure::scaled(1, -(tier as i32) - 1);
    'degrees: for degree in 1..=MOST_DEGREE {
        let mut coefficients = Vec::with_capacity(count * (degree + 1));
        let mut error = 0;
        for piece in 0..count {
            let Some(fit) = interpolated(curve, finer, piece, degree) else {
                continue 'degrees;
            };
            // The first and the widest errors of most curves are those of the first pieces: a degree that is too low ends here.
            let bound = curve.distance(finer, piece, &fit);
            if !bound.at_most(&most) {
                continue 'degrees;
            }
            let units = bound.ceil(UNIT).and_then(|units| u64::try_from(units).ok());
            error = error.max(units.ok_or(CurveError::NoDegree { curve, tier })?);
            coefficients.extend(fit);
        }
        return Ok(Fitted {
            finer,
            degree,
            coefficients,
            error,
        });
    }
    Err(CurveError::NoDegree { curve, tier })
}

/// Coefficients in units of 2^-UNIT, of the variable from -1/2 to 1/2, of the polynomial that has the curve's values at Chebyshev's places; nothing if they do not fit.
fn interpolated(curve: Curve, finer: u32, piece: usize, degree: usize) -> Option<Vec<i64>> {
    let places: Vec<Enclosure> = (0..=degree)
        .map(|k| {
            let angle = std::f64::consts::PI * (2 * k + 1) as f64 / (2 * degree + 2) as f64;
            let place = (angle.cos() * f64::from(1 << PLACES)).round() as i128;
            Enclosure::scaled(place, -(PLACES + 1))
        })
        .collect();
    let curve_at = |v: &Enclosure| {
        let u = &(v + &Enclosure::ratio(1, 2)) + &Enclosure::from(piece as i128);
        curve.at(&u.shifted(-(finer as i32))).middle()
    };
    // Newton's divided differences, the highest order last.
    let mut differences: Vec<Enclosure> = places.iter().map(curve_at).collect();
    for order in 1..=degree {
        for at in (order..=degree).rev() {
            let rise = &differences[at] - &differences[at - 1];
            let run = &places[at] - &places[at - order];
            differences[at] = rise.over(&run)?.middle();
        }
    }
    // Horner's rule on polynomials: times v less a place, and the next difference.
    let mut coefficients = vec![Enclosure::from(0); degree + 1];
    for at in (0..=degree).rev() {
        for k in (0..=degree).rev() {
            let up = if k > 0 {
                coefficients[k - 1].clone()
            } else {
                differences[at].clone()
            };
            coefficients[k] = (&up - &(&coefficients[k] * &places[at])).middle();
        }
    }
    let units = |c: &Enclosure| i64::try_from(c.nearest(UNIT)?).ok();
    coefficients.iter().map(units).collect()
}

fn made() -> Result<String, CurveError> {
    let mut text = String::from(
        "//! Made by `cargo xtask curves`, which proves the errors; tests prove them again. Not to be edited.\n\
         #![allow(clippy::unreadable_literal, reason = \"made, and read by machines\")]\n\n\
         use crate::curve::{Curve, Pieces};\n\n\
         /// Polynomials on pieces: of each curve the coarsest first.\n\
         #[rustfmt::skip]\n\
         pub(crate) const PIECES: &[Pieces] = &[\n",
    );
    let jobs: Vec<(Curve, u32)> = (Curve::ALL.iter())
        .flat_map(|curve| TIERS.map(|tier| (*curve, tier)))
        .collect();
    let fitted: Vec<Result<Fitted, CurveError>> = std::thread::scope(|scope| {
        let fit = |job: &(Curve, u32)| {
            let (curve, tier) = *job;
            scope.spawn(move || fitted(curve, tier))
        };
        let running: Vec<_> = jobs.iter().map(fit).collect();
        let joined = running.into_iter().zip(&jobs).map(|(thread, job)| {
            let (curve, tier) = *job;
            let failed = |_| Err(CurveError::NoDegree { curve, tier });
            thread.join().unwrap_or_else(failed)
        });
        joined.collect()
    });
    let mut last = None;
    for ((curve, tier), fitted) in jobs.iter().zip(fitted) {
        let fitted = fitted?;
        let here = Some((*curve, fitted.finer, fitted.coefficients.clone()));
        // Polynomials of a coarser tier may be near enough for the next.
        if last == here {
            continue;
        }
        last = here;
        let _ = writeln!(
            text,
            "    // 2^-{:.1}, for {tier} places.",
            f64::from(UNIT) - (fitted.error as f64).log2()
        );
        let _ = writeln!(
            text,
            "    Pieces {{ curve: Curve::{curve:?}, finer: {}, degree: {}, error: {}, coefficients: &[",
            fitted.finer, fitted.degree, fitted.error
        );
        for piece in fitted.coefficients.chunks(fitted.degree + 1) {
            let row: Vec<String> = piece.iter().map(i64::to_string).collect();
            let _ = writeln!(text, "        {},", row.join(", "));
        }
        let _ = writeln!(text, "    ] }},");
    }
    text.push_str("];\n");
    Ok(text)
}

/// Writes the file.
pub(crate) fn write() -> Result<String, Failure> {
    let text = made()?;
    std::fs::write(tree::root().join(FILE), text).map_err(CurveError::Write)?;
    Ok(format!("curves: wrote {FILE}"))
}

/// Compares the file with what would be made.
pub(crate) fn check() -> Result<String, Failure> {
    let there = tree::read(&tree::root().join(FILE))?;
    if there != made()? {
        return Err(CurveError::Differs.into());
    }
    Ok(format!("curves: {FILE} is what is made"))
}
