//! Numbers as people write them, without rounding.

use std::fmt;

/// Why a text is not a number of the wanted form.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NumberError {
    /// No digits, or other characters.
    #[error("is not a number")]
    NotANumber,
    /// Scientific notation.
    #[error("is in scientific notation; write all digits")]
    Exponent,
    /// `12,5`.
    #[error("has a decimal comma; write a point")]
    Comma,
    /// `1,234.5` or `1 234`.
    #[error("has thousands separators; remove them")]
    Thousands,
    /// More digits than the column keeps.
    #[error(
        "has more than {scale} digits after the point; round it, or raise the scale of the column"
    )]
    Digits {
        /// Digits that the column keeps.
        scale: u8,
    },
    /// A fraction where integers are wanted.
    #[error("is not an integer; round it, or declare the column as decimal")]
    Fraction,
    /// Beyond 63 bits.
    #[error("is too large; numbers have at most 62 bits")]
    TooLarge,
}

/// Largest absolute value of a cell or bound: one bit is for the sign, one so that differences fit.
pub(crate) const LARGEST: i64 = 1 << 62;
/// Most digits after the point.
pub(crate) const MOST_DIGITS: u8 = 18;

/// Reads `text` as an integer in units of `10^-scale`. Exact: further digits must be zeros.
///
/// # Errors
/// [`NumberError`]: [`NumberError::Exponent`], [`NumberError::Comma`], [`NumberError::Thousands`] or [`NumberError::NotANumber`]
/// for other characters than a sign, digits and a point; [`NumberError::Digits`], or [`NumberError::Fraction`] if `scale` is 0,
/// for digits that would be lost; [`NumberError::TooLarge`] beyond 63 bits.
pub fn parse_scaled(text: &str, scale: u8) -> Result<i64, NumberError> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let plain = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let pointless = digits.ends_with('.');
    if whole.is_empty() || pointless || !plain(whole) || !plain(fraction) {
        return Err(diagnose(digits));
    }
    let scale_digits = usize::from(scale);
    let (kept, rest) = fraction.split_at(fraction.len().min(scale_digits));
    if rest.bytes().any(|byte| byte != b'0') {
        return Err(if scale == 0 {
            NumberError::Fraction
        } else {
            NumberError::Digits { scale }
        });
    }
    let zeros = std::iter::repeat_n(b'0', scale_digits - kept.len());
    let mut value = 0i64;
    for digit in whole.bytes().chain(kept.bytes()).chain(zeros) {
        value = value
            .checked_mul(10)
            .and_then(|value| value.checked_add(i64::from(digit - b'0')))
            .filter(|&value| value <= LARGEST)
            .ok_or(NumberError::TooLarge)?;
    }
    Ok(if negative { -value } else { value })
}

/// Reads `text` as an integer in units of `10^-scale`, the nearest to it, halves away from zero.
///
/// # Errors
/// [`NumberError`] as [`parse_scaled`], but for digits that would be lost.
pub(crate) fn parse_rounded(text: &str, scale: u8) -> Result<i64, NumberError> {
    let lost = match parse_scaled(text, scale) {
        Err(NumberError::Digits { .. } | NumberError::Fraction) => text,
        other => return other,
    };
    let point = lost.find('.').unwrap_or(lost.len());
    let kept = point + 1 + usize::from(scale);
    let (kept, rest) = lost.split_at(kept.min(lost.len()));
    let value = parse_scaled(kept.trim_end_matches('.'), scale)?;
    let up = i64::from(rest.as_bytes().first().is_some_and(|digit| *digit >= b'5'));
    let value = if text.starts_with('-') {
        value - up
    } else {
        value + up
    };
    if value.abs() > LARGEST {
        return Err(NumberError::TooLarge);
    }
    Ok(value)
}

/// What was probably meant by something that is not a plain number.
fn diagnose(text: &str) -> NumberError {
    let has = |wanted: &[char]| text.contains(wanted);
    let numeric = |c: char| {
        c.is_ascii_digit() || matches!(c, ',' | '.' | ' ' | '\'' | '_' | '\u{a0}' | '\u{202f}')
    };
    let begins = text.starts_with(|c: char| c.is_ascii_digit());
    if begins && text.chars().all(numeric) {
        let commas = text.matches(',').count();
        if has(&[' ', '\'', '_', '\u{a0}', '\u{202f}'])
            || commas > 1
            || (commas == 1 && has(&['.']))
        {
            return NumberError::Thousands;
        }
        if commas == 1 {
            return NumberError::Comma;
        }
    }
    let exponent = |c: char| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-');
    if begins && has(&['e', 'E']) && text.chars().all(exponent) {
        return NumberError::Exponent;
    }
    NumberError::NotANumber
}

/// An integer in units of `10^-scale`, written out: `-5` with scale 2 is `-0.05`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scaled {
    /// The integer.
    pub value: i128,
    /// Digits after the point.
    pub scale: u8,
}

impl fmt::Display for Scaled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.value.unsigned_abs().to_string();
        let scale = usize::from(self.scale);
        let padded = format!("{digits:0>width$}", width = scale + 1);
        let (whole, fraction) = padded.split_at(padded.len() - scale);
        let point = if scale == 0 { "" } else { "." };
        f.pad_integral(self.value >= 0, "", &format!("{whole}{point}{fraction}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_mistake_has_its_message() {
        for (text, scale, error) in [
            ("", 0, NumberError::NotANumber),
            ("-", 0, NumberError::NotANumber),
            ("abc", 0, NumberError::NotANumber),
            ("+1", 0, NumberError::NotANumber),
            (".5", 1, NumberError::NotANumber),
            ("5.", 1, NumberError::NotANumber),
            ("1.2.3", 2, NumberError::NotANumber),
            ("--1", 0, NumberError::NotANumber),
            ("٣", 0, NumberError::NotANumber),
            ("e", 0, NumberError::NotANumber),
            ("1e3", 0, NumberError::Exponent),
            ("12,5", 1, NumberError::Comma),
            ("-12,5", 1, NumberError::Comma),
            ("1,234.50", 2, NumberError::Thousands),
            ("1,234,567", 0, NumberError::Thousands),
            ("1 234", 0, NumberError::Thousands),
            ("1'234", 0, NumberError::Thousands),
            ("1.5", 0, NumberError::Fraction),
            ("1.234", 2, NumberError::Digits { scale: 2 }),
            ("4611686018427387905", 0, NumberError::TooLarge),
            ("99999999999999999999999999", 0, NumberError::TooLarge),
            ("5", 19, NumberError::TooLarge),
        ] {
            assert_eq!(
                parse_scaled(text, scale),
                Err(error),
                "{text:?} with scale {scale}"
            );
        }
    }

    #[test]
    fn zeros_beyond_the_scale_lose_nothing() {
        assert_eq!(parse_scaled("3.0", 0), Ok(3));
        assert_eq!(parse_scaled("-1.500", 2), Ok(-150));
        assert_eq!(parse_scaled("-4611686018427387904", 0), Ok(-LARGEST));
        assert_eq!(parse_scaled("007", 1), Ok(70));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(value in -LARGEST..=LARGEST, scale in 0..=MOST_DIGITS) {
            let text = Scaled { value: value.into(), scale }.to_string();
            prop_assert_eq!(parse_scaled(&text, scale), Ok(value));
        }

        #[test]
        fn no_text_is_a_reason_to_panic(text in ".*", scale in 0..=MOST_DIGITS) {
            let _ = parse_scaled(&text, scale);
        }
    }
}
