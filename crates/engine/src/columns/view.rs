//! Arrays of several axes over columns that stand one behind the other.

use std::ops::Range;

use veil_protocol::passes::Axis;

use super::rows::Walk;

/// Rows that are taken along the last axis.
pub(super) struct Run {
    /// The row, of all columns, at which the last axis begins.
    pub(super) block: usize,
    /// Places of the last axis.
    pub(super) length: usize,
    /// The first row that is left, from the first that was asked for on.
    pub(super) to: usize,
    /// How many are left.
    pub(super) rows: usize,
    /// Which places of the axis they are.
    pub(super) walk: Walk,
}

/// The runs of these rows of what is taken; none where another axis than the last has no such place. Which there are follows from the plan alone.
pub(super) fn for_each_run(axes: &[Axis], rows: Range<usize>, mut with: impl FnMut(Run)) {
    let Some((last, outer)) = axes.split_last() else {
        return;
    };
    let count = last.count as usize;
    let mut row = rows.start;
    while row < rows.end {
        let along = row % count;
        let taken = (count - along).min(rows.end - row);
        let mut rest = row / count;
        // Digits from the lowest axis to the highest one, and the places behind each other.
        let mut block = Some(0_usize);
        let mut stride = last.length as usize;
        for axis in outer.iter().rev() {
            let digit = (rest % axis.count as usize) as i64;
            rest /= axis.count as usize;
            let place = i64::from(axis.first) + i64::from(axis.step) * digit;
            let place = usize::try_from(place).ok();
            let place = place.filter(|place| *place < axis.length as usize);
            block = place
                .zip(block)
                .map(|(place, block)| block + place * stride);
            stride *= axis.length as usize;
        }
        if let Some(block) = block {
            let from = i64::from(last.first) + i64::from(last.step) * along as i64;
            with(Run {
                block,
                length: last.length as usize,
                to: row - rows.start,
                rows: taken,
                walk: Walk::from(from, last.step.into()),
            });
        }
        row += taken;
    }
}
