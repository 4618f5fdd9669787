//! The Gregorian calendar on days since 1970-01-01.
//!
//! From: Howard Hinnant, "chrono-compatible low-level date algorithms", 2013, `days_from_civil` and `civil_from_days`.

/// 0001-01-01: the first day that a date may be.
pub const FIRST_DAY: i32 = -719_162;
/// 9999-12-31: the last day that a date may be.
pub const LAST_DAY: i32 = 2_932_896;

/// The day of a year, a month from 1 and a day of the month from 1; `None` if the calendar has no such day or its year is not one of
/// 1 to 9999.
#[must_use]
pub fn day(year: i32, month: u32, of_month: u32) -> Option<i32> {
    if !(1..=9999).contains(&year) || !(1..=12).contains(&month) {
        return None;
    }
    if of_month == 0 || of_month > days_of_month(year, month) {
        return None;
    }
    let shifted = if month <= 2 { year - 1 } else { year };
    let era = shifted.div_euclid(400);
    let year_of_era = shifted.rem_euclid(400);
    let day_of_year = (153 * ((month as i32 + 9) % 12) + 2) / 5 + of_month as i32 - 1;
    Some(
        era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year
            - 719_468,
    )
}

/// Year, month and day of the month of a day.
#[must_use]
pub fn civil(day: i32) -> (i32, u32, u32) {
    let shifted = day + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let of_month = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = year_of_era + era * 400 + i32::from(month <= 2);
    (year, month as u32, of_month as u32)
}

/// The day that lies so many months later; a day that its month does not have becomes the month's last, as in PostgreSQL.
#[must_use]
pub fn plus_months(of: i32, months: i32) -> Option<i32> {
    let (year, month, of_month) = civil(of);
    let index = i64::from(year) * 12 + i64::from(month) - 1 + i64::from(months);
    let year = i32::try_from(index.div_euclid(12)).ok()?;
    let month = index.rem_euclid(12) as u32 + 1;
    if !(1..=9999).contains(&year) {
        return None;
    }
    day(year, month, of_month.min(days_of_month(year, month)))
}

/// Reads `2025-03-14`, and nothing else.
#[must_use]
pub fn parse(text: &str) -> Option<i32> {
    let bytes = text.as_bytes();
    if bytes.len() != 10 || bytes[4] != b'-' || bytes[7] != b'-' {
        return None;
    }
    let number = |from: usize, to: usize| {
        let digits = &bytes[from..to];
        digits.iter().all(u8::is_ascii_digit).then(|| {
            digits
                .iter()
                .fold(0_u32, |n, d| n * 10 + u32::from(d - b'0'))
        })
    };
    day(number(0, 4)? as i32, number(5, 7)?, number(8, 10)?)
}

/// A day as `2025-03-14`.
#[must_use]
pub fn show(of: i32) -> String {
    let (year, month, day) = civil(of);
    format!("{year:04}-{month:02}-{day:02}")
}

fn days_of_month(year: i32, month: u32) -> u32 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_is_read_as_it_is_shown() {
        assert_eq!(show(FIRST_DAY), "0001-01-01");
        assert_eq!(show(LAST_DAY), "9999-12-31");
        assert_eq!(parse("1970-01-01"), Some(0));
        let mut before = None;
        for day in (FIRST_DAY..=LAST_DAY).step_by(17).chain(-800..800) {
            assert_eq!(parse(&show(day)), Some(day));
        }
        for day in FIRST_DAY..=FIRST_DAY + 150_000 {
            let now = civil(day);
            assert!(before < Some(now), "{now:?}");
            before = Some(now);
        }
        for wrong in [
            "2023-02-29",
            "1900-02-29",
            "2023-13-01",
            "2023-00-10",
            "2023-1-1",
            "0000-01-01",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn months_end_where_they_end() {
        let plus = |text, months| plus_months(parse(text).unwrap(), months).map(show);
        assert_eq!(plus("2024-01-31", 1).as_deref(), Some("2024-02-29"));
        assert_eq!(plus("2024-03-31", -1).as_deref(), Some("2024-02-29"));
        assert_eq!(plus("1995-12-01", 3).as_deref(), Some("1996-03-01"));
        assert_eq!(plus("9999-12-01", 1), None);
    }
}
