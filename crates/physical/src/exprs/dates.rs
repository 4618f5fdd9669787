//! Years and months of days.

use veil_circuit::generate::{Aim, constant_bits, quotient_and_rest};
use veil_circuit::{Builder, Wire};
use veil_relation::{DatePart, Range, calendar};

use super::columns::Columns;
use super::compare::below_bits;
use super::table::{self, look_up};
use super::word::{Word, ones, width};

/// From 0000-03-01, the day after the last one of a leap year that ends a cycle of 400 years, to 1970-01-01.
const MARCH_OF_YEAR_0: i128 = 719_468;

/// Most days of a range whose parts are read from a table: beyond, arithmetic takes fewer ANDs anyway.
const MOST_DAYS: u128 = 1 << 14;

/// The year or month of a date, in a range that holds it.
///
/// By a table of the days, or by arithmetic if that takes fewer than two thirds of the ANDs: a table takes far fewer rounds.
pub(crate) fn extract(
    b: &mut Builder,
    part: DatePart,
    date: &Word,
    range: Range,
    aim: Aim,
) -> Word {
    let (first, last) = (date.range.min(), date.range.max());
    if last - first < MOST_DAYS as i128 {
        let days = first..=last;
        let value = |day: i128| (part_of(part, day) - range.min()) as u128;
        let rows: Vec<u128> = days.map(value).collect();
        let bits = date.range.bits() as usize;
        let ands = table::cost(bits, &rows, range.bits(), aim);
        if 2 * ands <= 3 * arithmetic_cost(date.range) {
            let index = date.normal(b, aim);
            let bits = look_up(b, &index, &rows, range.bits(), aim);
            return Word::of_bits(bits, range);
        }
    }
    by_arithmetic(b, part, date, range, aim)
}

fn part_of(part: DatePart, day: i128) -> i128 {
    let (year, month, _) = calendar::civil(day as i32);
    match part {
        DatePart::Year => i128::from(year),
        DatePart::Month => i128::from(month),
    }
}

/// Centuries since 0000-03-01 that ended before a day.
const fn century(day: i128) -> i128 {
    (4 * (day + MARCH_OF_YEAR_0) + 3).div_euclid(146_097)
}

/// About as many ANDs as [`by_arithmetic`] takes.
fn arithmetic_cost(days: Range) -> usize {
    let centuries = (century(days.max()) - century(days.min())) as u128;
    let of_centuries = if centuries == 0 {
        0
    } else {
        18 * (width(centuries) as usize + 2)
    };
    of_centuries + 160
}

/// From: Neri, Schneider, "Euclidean affine functions and their application to calendar algorithms", 2023, section 6: with N days since
/// 0000-03-01, century = (4N + 3) div 146097 and its day N_C = ((4N + 3) mod 146097) div 4; year of the century = (4N_C + 3) div 1461 and its
/// day = ((4N_C + 3) mod 1461) div 4. Years begin in March; the month follows from the day of the year, here by a table.
fn by_arithmetic(b: &mut Builder, part: DatePart, date: &Word, range: Range, aim: Aim) -> Word {
    let (first, last) = (century(date.range.min()), century(date.range.max()));
    let one = b.constant_bit(true);
    // As many whole cycles of four centuries earlier: N is not negative, and as small as may be.
    let cycles = if first == last { first } else { first / 4 * 4 };
    let start = (146_097 * cycles).div_euclid(4) - MARCH_OF_YEAR_0;
    let days = date.at(b, start, width((date.range.max() - start) as u128), aim);
    let (centuries, of_century) = if first == last {
        (Vec::new(), days)
    } else {
        let four = [&[one, one], days.as_slice()].concat();
        let by = constant_bits(b, 146_097, 18);
        let bits = width((last - cycles) as u128) as usize;
        let (centuries, rest) = quotient_and_rest(b, &four, &by, bits, aim);
        (centuries, rest[2..18].to_vec())
    };
    let four = [&[one, one], of_century.as_slice()].concat();
    let by = constant_bits(b, 1461, 11);
    let (years, rest) = quotient_and_rest(b, &four, &by, 7, aim);
    let of_year = &rest[2..11];
    match part {
        DatePart::Month => {
            // 1999-03-01: a year from March on that ends with a leap day.
            let march = 10_651;
            let month = |day: i128| (part_of(part, march + day) - 1) as u128;
            let rows: Vec<u128> = (0..366).map(month).collect();
            let bits = look_up(b, of_year, &rows, 4, aim);
            let month = word_of(bits, 1);
            narrowed(b, &month, range, aim)
        }
        DatePart::Year => {
            let mut sum = Columns::new(range.bits());
            // From 1 January on, 306 days after 1 March, it is the next year.
            let early = below_bits(b, of_year, 306, aim);
            let next = b.not(early);
            sum.bit(b, 0, next, false);
            sum.bits(b, &years, 0, false);
            let centuries = word_of(centuries, cycles);
            sum.scaled(b, &centuries, 100);
            sum.word(b, range, aim)
        }
    }
}

/// Bits from a least value on.
fn word_of(bits: Vec<Wire>, least: i128) -> Word {
    let most = least + ones(bits.len() as u32) as i128;
    let range = Range::new(least, most).unwrap_or(Range::point(least));
    Word::of_bits(bits, range)
}

/// The same number, of which more is known.
fn narrowed(b: &mut Builder, word: &Word, range: Range, aim: Aim) -> Word {
    word.times(b, 1, range, aim)
}
