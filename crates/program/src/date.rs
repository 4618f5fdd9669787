//! Dates as days since 1970-01-01, in the Gregorian calendar.

use jiff::{Span, civil::Date};

/// The first day that counts as 0.
const EPOCH: Date = Date::constant(1970, 1, 1);

/// Reads `2025-03-14`, and nothing else.
pub(crate) fn iso(text: &[u8]) -> Option<i64> {
    let &[a, b, c, d, b'-', e, f, b'-', g, h] = text else {
        return None;
    };
    let digit = |byte: u8| Some(i16::from(byte.wrapping_sub(b'0'))).filter(|&digit| digit <= 9);
    let year = digit(a)? * 1000 + digit(b)? * 100 + digit(c)? * 10 + digit(d)?;
    let month = digit(e)? * 10 + digit(f)?;
    let day = digit(g)? * 10 + digit(h)?;
    Date::new(year, month as i8, day as i8).ok().map(days)
}

/// Reads a date in a format of `strftime`.
pub(crate) fn parse(text: &[u8], format: &str) -> Option<i64> {
    Date::strptime(format, text).ok().map(days)
}

/// Whether a format says the whole date: what is written in it is read again.
pub(crate) fn is_complete(format: &str) -> bool {
    let dates = [Date::constant(1999, 12, 31), Date::constant(2004, 2, 29)];
    dates.into_iter().all(|date| {
        let mut text = String::new();
        let written =
            std::fmt::Write::write_fmt(&mut text, format_args!("{}", date.strftime(format)));
        written.is_ok() && Date::strptime(format, &text).is_ok_and(|again| again == date)
    })
}

/// The day as `2025-03-14`; a number beyond the calendar as it is.
pub(crate) fn show(day: i64) -> String {
    let date = Span::new()
        .try_days(day)
        .and_then(|span| EPOCH.checked_add(span));
    match date {
        Ok(date) => date.to_string(),
        Err(_) => format!("day {day}"),
    }
}

fn days(date: Date) -> i64 {
    // From: Howard Hinnant, "chrono-compatible low-level date algorithms", 2013, days_from_civil.
    let (year, month, day) = (
        i64::from(date.year()),
        i64::from(date.month()),
        i64::from(date.day()),
    );
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use jiff::ToSpan;

    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        // Every day of three centuries, against the calendar's own difference.
        let mut date = Date::constant(1799, 12, 1);
        while date.year() < 2101 {
            let day = i64::from(date.since(EPOCH).expect("in range").get_days());
            assert_eq!(days(date), day, "{date}");
            assert_eq!(show(day), date.to_string());
            assert_eq!(iso(date.to_string().as_bytes()), Some(day));
            date = date.checked_add(1.day()).expect("in range");
        }
        assert_eq!(iso(b"1970-01-01"), Some(0));
        assert_eq!(show(i64::MAX), "day 9223372036854775807");
    }

    #[test]
    fn what_is_no_date_is_refused() {
        for text in [
            "2023-02-29",
            "2023-13-01",
            "2023-1-1",
            "20230101",
            "",
            "2023-01-01 ",
            "٢٠٢٣-01-01",
        ] {
            assert_eq!(iso(text.as_bytes()), None, "{text}");
        }
        assert_eq!(parse(b"14.03.2025", "%d.%m.%Y"), iso(b"2025-03-14"));
        assert_eq!(parse(b"31.02.2025", "%d.%m.%Y"), None);
        assert!(is_complete("%d.%m.%Y") && is_complete("%Y%m%d") && is_complete("%-d %b %Y"));
        assert!(!is_complete("%m.%Y") && !is_complete("date") && !is_complete("%"));
    }
}
