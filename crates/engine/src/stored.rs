//! Shares at rest: what a party needs for them, and what it may not trust.

use veil_math::Ring;
use veil_protocol::Spans;

use crate::Acts;
use crate::Data;
use crate::abort::Abort;

/// Refuses to start without a store that the job needs.
pub(crate) fn check(spans: &Spans, data: &Data) -> Result<(), Abort> {
    if data.stored.is_none() && !(spans.loads.is_empty() && spans.job_loads.is_empty()) {
        return Err(Abort::Missing(
            "this party loads shares in the job, and has none in its store".into(),
        ));
    }
    let keeps = [&spans.keeps, &spans.job_keeps, &spans.keeps_sums];
    if data.keeps.is_none() && !keeps.iter().all(|ports| ports.is_empty()) {
        return Err(Abort::Missing(
            "this party keeps shares of the job, and has nowhere to put them".into(),
        ));
    }
    Ok(())
}

/// Refuses to start without a stock that the run takes from, or makes.
pub(crate) fn check_stock(acts: &Acts, ends: &[Data]) -> Result<(), Abort> {
    for (number, data) in ends.iter().enumerate() {
        let Some(stock) = acts.protocol(number).stock() else {
            continue;
        };
        if acts.count() > 1 {
            return Err(Abort::Missing(
                "a job of several passes takes no products from a stock".into(),
            ));
        }
        let missing = if stock.makes {
            data.makes.is_none()
        } else {
            data.stock.is_none()
        };
        if missing {
            return Err(Abort::Missing(
                "the run has to do with stock, and this party has no place for it".into(),
            ));
        }
    }
    Ok(())
}

/// Clears the bits beyond the last of `rows` rows in every column: the same shares at both holders are the same bytes.
pub(crate) fn clear_beyond(ring: Ring, rows: u32, columns: &mut [u8]) {
    let used = rows % 8;
    if ring != Ring::Bits || used == 0 {
        return;
    }
    for column in columns.chunks_mut(ring.bytes(u64::from(rows)) as usize) {
        if let Some(last) = column.last_mut() {
            *last &= (1 << used) - 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bits_beyond_the_last_row_are_cleared() {
        let mut columns = [0xff; 4];
        clear_beyond(Ring::Bits, 11, &mut columns);
        assert_eq!(columns, [0xff, 0x07, 0xff, 0x07]);
        clear_beyond(Ring::Bits, 16, &mut columns);
        clear_beyond(Ring::Z64, 1, &mut columns);
        assert_eq!(columns, [0xff, 0x07, 0xff, 0x07]);
    }
}
