//! What the features of a tree are compared with.

use veil_relation::Field;

/// What a column of numbers is compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cuts {
    /// So many numbers, evenly spread over its range.
    Even(u32),
    /// These: units and decimal places.
    At(Vec<(i128, u32)>),
}

/// Cuts of a column of numbers whose job does not say.
pub const EVEN_CUTS: u32 = 15;

/// A decimal in units of a column with so many places; `None` if it has more, or does not fit.
pub(crate) fn in_units((units, of): (i128, u32), places: u32) -> Option<i128> {
    let factor = 10_i128.checked_pow(places.checked_sub(of)?)?;
    units.checked_mul(factor)
}

/// The cuts of a column, in its units; none of what is no number.
pub(crate) fn cuts_of(field: &Field, said: Option<&Cuts>) -> Result<Vec<i128>, &'static str> {
    let Some((places, range)) = field.ty.kind.number() else {
        return match said {
            Some(_) => {
                Err("`cuts` are of numbers: a condition and each value of a category are one")
            }
            None => Ok(vec![]),
        };
    };
    match said.unwrap_or(&Cuts::Even(EVEN_CUTS)) {
        Cuts::At(numbers) => {
            let units = numbers.iter().map(|number| in_units(*number, places));
            let units = units.collect::<Option<_>>();
            units.ok_or("a number of `cuts` has no more decimal places than its column")
        }
        Cuts::Even(count) => {
            let count = i128::from(*count);
            let wide = "the range of a feature is too wide for `cuts`; declare it narrower";
            let width = range.max().checked_sub(range.min()).ok_or(wide)?;
            let cut = |at: i128| Some(range.min() + width.checked_mul(at)? / (count + 1));
            let cuts = (1..=count).map(cut).collect::<Option<Vec<_>>>();
            let mut cuts = cuts.ok_or(wide)?;
            // A narrow range has fewer, of which none is its greatest number.
            cuts.dedup();
            cuts.retain(|cut| *cut < range.max());
            Ok(cuts)
        }
    }
}
