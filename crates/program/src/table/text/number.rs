//! Numbers as people write them: with marks before the fraction and between groups of digits.

use crate::{
    CellFault,
    number::{LARGEST, NumberError},
    stats::Marks,
};

/// Marks between groups of three digits.
pub(crate) const THOUSANDS: [char; 8] = ['.', ',', '\'', '’', ' ', '_', '\u{a0}', '\u{202f}'];

const POWERS: [u64; 19] = {
    let mut powers = [1u64; 19];
    let mut at = 1;
    while at < powers.len() {
        powers[at] = powers[at - 1] * 10;
        at += 1;
    }
    powers
};

/// The common case of a number: at most 18 digits, no thousands. Nothing for whatever needs a closer look.
#[inline]
pub(super) fn plain(text: &[u8], scale: u8, mark: u8) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    if digits.len() > 18 {
        return None;
    }
    let mut value = 0u64;
    let mut at = 0;
    while let Some(digit) = digits.get(at).map(|byte| byte.wrapping_sub(b'0')) {
        if digit > 9 {
            break;
        }
        value = value * 10 + u64::from(digit);
        at += 1;
    }
    if at == 0 {
        return None;
    }
    let mut kept = 0;
    if at < digits.len() {
        let fraction = digits[at..].strip_prefix(&[mark])?;
        if fraction.is_empty() || fraction.len() > usize::from(scale) {
            return None;
        }
        for byte in fraction {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                return None;
            }
            value = value * 10 + u64::from(digit);
        }
        kept = fraction.len();
    }
    let value = value.checked_mul(*POWERS.get(usize::from(scale) - kept)?)?;
    let value = i64::try_from(value)
        .ok()
        .filter(|&value| value <= LARGEST)?;
    Some(if negative { -value } else { value })
}

/// A number with a point and without thousands, on the stack.
pub(super) struct Normal {
    bytes: [u8; 48],
    len: usize,
}

impl Normal {
    /// Reads `text` with these marks; nothing if it is not a number in them. Groups have three digits each, the first
    /// one to three; a number without any groups is one, too.
    pub(super) fn of(text: &str, marks: Marks) -> Option<Self> {
        let mut normal = Self {
            bytes: [0; 48],
            len: 0,
        };
        let (sign, digits) = match text.strip_prefix('-') {
            Some(rest) => ("-", rest),
            None => ("", text),
        };
        let (whole, fraction) = match digits.split_once(marks.decimal) {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (digits, None),
        };
        normal.push(sign)?;
        match marks.thousands.filter(|&mark| whole.contains(mark)) {
            None => normal.push_digits(whole)?,
            Some(mark) => {
                for (index, group) in whole.split(mark).enumerate() {
                    let fits = group.len() == 3 || index == 0 && (1..3).contains(&group.len());
                    normal.push_digits(Some(group).filter(|_| fits)?)?;
                }
            }
        }
        if let Some(fraction) = fraction {
            normal.push(".")?;
            normal.push_digits(fraction)?;
        }
        Some(normal)
    }

    fn push(&mut self, text: &str) -> Option<()> {
        let end = self.len + text.len();
        self.bytes
            .get_mut(self.len..end)?
            .copy_from_slice(text.as_bytes());
        self.len = end;
        Some(())
    }

    fn push_digits(&mut self, text: &str) -> Option<()> {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if digits { self.push(text) } else { None }
    }

    pub(super) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.len]).expect("only digits, a sign and a point")
    }
}

/// What a cell looks like that is no number in the marks of its column: all readings, never a choice.
pub(super) fn readings(text: &str) -> CellFault {
    let mut found: Vec<(String, String)> = Vec::new();
    for decimal in ['.', ','] {
        for thousands in [None].into_iter().chain(THOUSANDS.map(Some)) {
            // A mark that is not there explains nothing.
            let useless = thousands.is_some_and(|mark| mark == decimal || !text.contains(mark));
            if useless || decimal == ',' && !text.contains(',') {
                continue;
            }
            let marks = Marks { decimal, thousands };
            if let Some(number) = Normal::of(text, marks) {
                let number = number.as_str().to_owned();
                if !found.iter().any(|reading| reading.0 == number) {
                    found.push((number, marks.to_string()));
                }
            }
        }
    }
    if found.is_empty() {
        CellFault::Number(NumberError::NotANumber)
    } else {
        CellFault::Marks(found)
    }
}
