//! What models share: functions of numbers, and matrices whose diagonal is brought near 1.

use veil_numeric::TooWide;
use veil_numeric::{Applied, Arithmetic, Function, Machine, On, Scale};

use crate::column::about;
use crate::error::FitError;
use crate::spec::MATRIX;

/// Binary places of the factors that bring a matrix's diagonal near 1; they are at most 2^12.
pub(crate) const SCALE: u32 = 24;
/// A diagonal that is less than 2^-LEAST is brought no nearer to 1.
const LEAST: u32 = 24;
/// Binary places of an element that one factor is still missing of.
const MORE: u32 = 56;

/// A function of a number, with the range that it has.
pub(crate) fn applied<M: Machine>(
    a: &mut Arithmetic<'_, M>,
    function: Function,
    x: &On<M>,
    [from, to]: [Scale; 2],
) -> Result<On<M>, FitError> {
    let of = Applied::of(function, from, x.range, to)?;
    Ok(of.on(a.0, x)?)
}

/// The factor of a row and a column: one over the root of its element on the diagonal, a sum of squares with so many binary places.
pub(crate) fn scale<M: Machine>(
    a: &mut Arithmetic<'_, M>,
    diagonal: &On<M>,
    places: u32,
) -> Result<On<M>, FitError> {
    let diagonal = a.within(diagonal, 0, i128::MAX)?;
    let least = 1 << places.saturating_sub(LEAST);
    let diagonal = a.plus(&diagonal, least)?;
    let scales = [Scale::binary(places), Scale::binary(SCALE)];
    applied(a, Function::InverseRoot, &diagonal, scales)
}

/// An element with so many binary places between the factors of its row and its column.
pub(crate) fn balanced<M: Machine>(
    a: &mut Arithmetic<'_, M>,
    element: &On<M>,
    places: u32,
    [row, column]: [&On<M>; 2],
) -> Result<On<M>, TooWide> {
    let half = a.multiply(element, row)?;
    let half = a.scale_down(&half, (places + SCALE) as i32 - MORE as i32)?;
    let whole = a.multiply(&half, column)?;
    let whole = a.scale_down(&whole, (MORE + SCALE - MATRIX) as i32)?;
    // |h_ij| is at most the root of h_ii h_jj.
    let most = about(MATRIX).max();
    a.within(&whole, -most, most)
}
