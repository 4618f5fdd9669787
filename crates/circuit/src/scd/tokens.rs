//! Numbers of a file, with their places.

use crate::bristol::{ParseError, ParseErrorKind};

/// The numbers of a file, one after the other.
pub(super) struct Tokens<'a> {
    text: &'a [u8],
    at: usize,
    line: u64,
    /// Where the line begins.
    start: usize,
}

/// Where a number is.
#[derive(Clone, Copy)]
pub(super) struct Spot {
    pub(super) line: u64,
    pub(super) column: u64,
}

impl Spot {
    pub(super) fn error(self, kind: ParseErrorKind) -> ParseError {
        ParseError {
            line: self.line,
            column: self.column,
            kind,
        }
    }
}

impl<'a> Tokens<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        Tokens {
            text,
            at: 0,
            line: 1,
            start: 0,
        }
    }

    /// The next word, if there is one.
    pub(super) fn word(&mut self) -> Option<(&'a [u8], Spot)> {
        while let Some(byte) = self.text.get(self.at).filter(|b| b.is_ascii_whitespace()) {
            self.at += 1;
            if *byte == b'\n' {
                self.line += 1;
                self.start = self.at;
            }
        }
        let rest = &self.text[self.at..];
        let length = rest.iter().position(u8::is_ascii_whitespace);
        let word = &rest[..length.unwrap_or(rest.len())];
        let spot = self.spot();
        self.at += word.len();
        (!word.is_empty()).then_some((word, spot))
    }

    /// The next number.
    pub(super) fn number(&mut self, expected: &'static str) -> Result<(i64, Spot), ParseError> {
        let Some((word, spot)) = self.word() else {
            let expected = expected.to_owned();
            return Err(self.spot().error(ParseErrorKind::FileEnds { expected }));
        };
        let text = std::str::from_utf8(word).unwrap_or("");
        // A plus sign is no part of the format.
        let number = text.parse().ok().filter(|_| word[0] != b'+');
        let number = number.ok_or_else(|| {
            let shown: String = String::from_utf8_lossy(word).chars().take(24).collect();
            let found = shown.replace(char::is_control, "\u{fffd}");
            spot.error(ParseErrorKind::NotANumber { expected, found })
        })?;
        Ok((number, spot))
    }

    /// How many words are left on this line.
    pub(super) fn on_line(&self) -> usize {
        let rest = &self.text[self.at..];
        let line = rest.split(|byte| *byte == b'\n').next().unwrap_or(rest);
        let words = line.split(u8::is_ascii_whitespace);
        words.filter(|word| !word.is_empty()).count()
    }

    /// Bytes that are not read yet.
    pub(super) fn left(&self) -> u64 {
        (self.text.len() - self.at) as u64
    }

    pub(super) fn spot(&self) -> Spot {
        Spot {
            line: self.line,
            column: (self.at - self.start) as u64 + 1,
        }
    }
}
