//! Polynomials near functions, by Remez' algorithm, with bounds that are proved: `crates/numeric/src/coefficients.rs`.
//!
//! Remez 1934: the polynomial of degree d whose largest error is least has that error at d + 2 places, with signs that alternate. From places of the
//! last error the polynomial follows by linear equations; its own largest errors are the next places.

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
const MOST_DEGREE: usize = 12;

/// Places where an error is looked at, for each coefficient.
const DENSE: usize = 24;

/// The width of pieces, and how many there are: of curves that end at 1 all of [0, 1), of others up to where they are near their limit.
fn pieces(curve: Curve, tier: u32) -> (u32, usize) {
    let finer_of_unit = match tier {
        ..=20 => 2,
        21..=32 => 3,
        _ => 4,
    };
    // Where e^-T and 1 - erf T are below 2^-(tier + 1).
    let bits = f64::from(tier + 1) * std::f64::consts::LN_2;
    let (finer, end) = match curve {
        Curve::Exp2 | Curve::Log2 | Curve::Reciprocal | Curve::Root | Curve::InverseRoot => {
            (finer_of_unit, 1.0)
        }
        Curve::Sigmoid | Curve::Softplus => (u32::from(tier > 14), bits),
        Curve::Erf => (1 + u32::from(tier > 14), bits.sqrt()),
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
            let Some(fit) = remez(curve, finer, piece, degree) else {
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

/// Coefficients in units of 2^-UNIT, of the variable from -1/2 to 1/2; nothing if the errors of a polynomial do not alternate.
fn remez(curve: Curve, finer: u32, piece: usize, degree: usize) -> Option<Vec<i64>> {
    let dense = DENSE * (degree + 2);
    let variable = |n: usize| Enclosure::ratio(2 * n as i128 - dense as i128, 2 * dense as i128);
    let curve_at = |v: &Enclosure| {
        let u = &(v + &Enclosure::ratio(1, 2)) + &Enclosure::from(piece as i128);
        curve.at(&u.shifted(-(finer as i32))).middle()
    };
    let there: Vec<(Enclosure, Enclosure)> = (0..=dense)
        .map(variable)
        .map(|v| (v.clone(), curve_at(&v)))
        .collect();
    // The places of Chebyshev's extrema, among those that are looked at.
    let mut places: Vec<usize> = (0..degree + 2)
        .map(|k| {
            let angle = std::f64::consts::PI * k as f64 / (degree + 1) as f64;
            ((1.0 - angle.cos()) / 2.0 * dense as f64).round() as usize
        })
        .collect();
    let mut best = None;
    for _ in 0..8 {
        let (coefficients, level) = alternating(&places, &there, degree)?;
        let errors: Vec<Enclosure> = (there.iter())
            .map(|(v, f)| &horner(&coefficients, v) - f)
            .collect();
        best = Some(coefficients);
        let extrema = extrema(&errors);
        let largest = extrema
            .iter()
            .map(|at| size(&errors[*at]))
            .fold(0.0, f64::max);
        if largest <= 1.005 * size(&level) || extrema.len() < degree + 2 {
            break;
        }
        // Of more extrema than are needed, those in a row whose least is largest.
        let least = |from: &usize| {
            let row = &extrema[*from..][..degree + 2];
            let sizes = row.iter().map(|at| size(&errors[*at]));
            sizes.fold(f64::INFINITY, f64::min)
        };
        let starts = 0..=extrema.len() - (degree + 2);
        let from = starts.max_by(|a, b| least(a).total_cmp(&least(b)))?;
        places = extrema[from..][..degree + 2].to_vec();
    }
    let units = |c: &Enclosure| i64::try_from(c.nearest(UNIT)?).ok();
    best?.iter().map(units).collect()
}

fn size(x: &Enclosure) -> f64 {
    x.approximately().abs()
}

fn horner(coefficients: &[Enclosure], v: &Enclosure) -> Enclosure {
    let zero = Enclosure::from(0);
    let sum = coefficients
        .iter()
        .rev()
        .fold(zero, |sum, c| &(&sum * v) + c);
    sum.middle()
}

/// The place of the largest error of each run of one sign.
fn extrema(errors: &[Enclosure]) -> Vec<usize> {
    let mut extrema: Vec<usize> = Vec::new();
    for at in 0..errors.len() {
        let sign = |at: usize| errors[at].is_positive();
        match extrema.last_mut() {
            Some(last) if sign(*last) == sign(at) => {
                if size(&errors[at]) > size(&errors[*last]) {
                    *last = at;
                }
            }
            _ => extrema.push(at),
        }
    }
    extrema
}

/// The polynomial whose errors at these places are of one size and alternate, and this size: d + 2 linear equations, by elimination.
fn alternating(
    places: &[usize],
    there: &[(Enclosure, Enclosure)],
    degree: usize,
) -> Option<(Vec<Enclosure>, Enclosure)> {
    let unknowns = degree + 2;
    let mut rows: Vec<Vec<Enclosure>> = Vec::with_capacity(unknowns);
    for (k, place) in places.iter().enumerate() {
        let (v, f) = &there[*place];
        let mut row = vec![Enclosure::from(1)];
        for j in 0..degree {
            row.push((&row[j] * v).middle());
        }
        row.push(Enclosure::from(if k % 2 == 0 { 1 } else { -1 }));
        row.push(f.clone());
        rows.push(row);
    }
    for column in 0..unknowns {
        let candidates = column..unknowns;
        let pivot = candidates
            .max_by(|a, b| size(&rows[*a][column]).total_cmp(&size(&rows[*b][column])))?;
        rows.swap(column, pivot);
        let lead = rows[column].clone();
        for (at, row) in rows.iter_mut().enumerate() {
            if at == column {
                continue;
            }
            let factor = row[column].over(&lead[column])?.middle();
            for (cell, of_lead) in row.iter_mut().zip(&lead) {
                *cell = (&*cell - &(&factor * of_lead)).middle();
            }
        }
    }
    let solved = (0..unknowns).map(|k| Some(rows[k][unknowns].over(&rows[k][k])?.middle()));
    let mut solved: Vec<Enclosure> = solved.collect::<Option<_>>()?;
    let level = solved.pop()?;
    Some((solved, level))
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
    for ((curve, tier), fitted) in jobs.iter().zip(fitted) {
        let fitted = fitted?;
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
