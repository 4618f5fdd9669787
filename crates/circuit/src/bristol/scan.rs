//! Lines and words of a file, with their places.

use super::{ParseError, ParseErrorKind};

// Long enough to recognise a word in an error message, short enough to print.
const SHOWN: usize = 24;

/// A line that has words.
#[derive(Clone)]
pub(super) struct Line<'a> {
    text: &'a [u8],
    pub(super) number: u64,
    at: usize,
}

/// A word and its column, from 1.
#[derive(Clone, Copy)]
pub(super) struct Word<'a> {
    text: &'a [u8],
    pub(super) column: u64,
}

/// The lines of a file that have words.
#[derive(Clone)]
pub(super) struct Lines<'a> {
    rest: &'a [u8],
    /// Lines begun so far.
    number: u64,
}

impl<'a> Lines<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        Self {
            rest: text,
            number: 0,
        }
    }

    /// An error at the end of the file.
    pub(super) fn file_ends(&self, expected: impl Into<String>) -> ParseError {
        let kind = ParseErrorKind::FileEnds {
            expected: expected.into(),
        };
        ParseError {
            line: self.number + 1,
            column: 1,
            kind,
        }
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = Line<'a>;

    fn next(&mut self) -> Option<Line<'a>> {
        while !self.rest.is_empty() {
            let end = self.rest.iter().position(|&byte| byte == b'\n');
            let (text, rest) = match end {
                Some(end) => (&self.rest[..end], &self.rest[end + 1..]),
                None => (self.rest, &[][..]),
            };
            self.rest = rest;
            self.number += 1;
            if !text.iter().copied().all(is_blank) {
                return Some(Line {
                    text,
                    number: self.number,
                    at: 0,
                });
            }
        }
        None
    }
}

impl<'a> Line<'a> {
    pub(super) fn next(&mut self) -> Option<Word<'a>> {
        let skip = self.text[self.at..]
            .iter()
            .position(|&byte| !is_blank(byte))?;
        let start = self.at + skip;
        let rest = &self.text[start..];
        let length = rest
            .iter()
            .position(|&byte| is_blank(byte))
            .unwrap_or(rest.len());
        self.at = start + length;
        Some(Word {
            text: &rest[..length],
            column: start as u64 + 1,
        })
    }

    /// The last word, whatever has been read.
    pub(super) fn last(&self) -> Option<Word<'a>> {
        let mut rest = Line {
            at: 0,
            ..self.clone()
        };
        std::iter::from_fn(|| rest.next()).last()
    }

    /// The next word as a number.
    pub(super) fn number(&mut self, expected: &'static str) -> Result<(u64, Word<'a>), ParseError> {
        let word = self.word(expected)?;
        match word.number() {
            Some(number) => Ok((number, word)),
            None => Err(self.error(
                word,
                ParseErrorKind::NotANumber {
                    expected,
                    found: word.shown(),
                },
            )),
        }
    }

    /// The next word.
    pub(super) fn word(&mut self, expected: &'static str) -> Result<Word<'a>, ParseError> {
        let end = ParseError {
            line: self.number,
            column: self.end_column(),
            kind: ParseErrorKind::LineEnds { expected },
        };
        self.next().ok_or(end)
    }

    /// What is left of the line, without the blanks around it, as text: a name.
    pub(super) fn name(&mut self, expected: &'static str) -> Result<String, ParseError> {
        let first = self.word(expected)?;
        let from = first.column as usize - 1;
        let end = self.end_column() as usize - 1;
        self.at = end;
        String::from_utf8(self.text[from..end].to_vec()).map_err(|_| {
            let found = first.shown();
            self.error(first, ParseErrorKind::OtherWord { expected, found })
        })
    }

    /// The next word, which is one of a few: its place among them.
    pub(super) fn choice(
        &mut self,
        among: &[&str],
        expected: &'static str,
    ) -> Result<usize, ParseError> {
        let word = self.word(expected)?;
        let place = among.iter().position(|name| word.is(name));
        place.ok_or_else(|| {
            let found = word.shown();
            self.error(word, ParseErrorKind::OtherWord { expected, found })
        })
    }

    /// Checks that nothing follows.
    pub(super) fn end(&mut self, after: &'static str) -> Result<(), ParseError> {
        match self.next() {
            None => Ok(()),
            Some(word) => Err(self.error(
                word,
                ParseErrorKind::LineGoesOn {
                    found: word.shown(),
                    after,
                },
            )),
        }
    }

    pub(super) fn error(&self, word: Word<'_>, kind: ParseErrorKind) -> ParseError {
        ParseError {
            line: self.number,
            column: word.column,
            kind,
        }
    }

    /// The column after the last word.
    fn end_column(&self) -> u64 {
        let blanks = self
            .text
            .iter()
            .rev()
            .take_while(|&&byte| is_blank(byte))
            .count();
        (self.text.len() - blanks) as u64 + 1
    }
}

impl Word<'_> {
    pub(super) fn is(&self, name: &str) -> bool {
        self.text == name.as_bytes()
    }

    /// The number that the word is, if it has only digits and fits.
    pub(super) fn number(&self) -> Option<u64> {
        self.wide_number()?.try_into().ok()
    }

    /// [`Word::number`], of up to 128 bits.
    pub(super) fn wide_number(&self) -> Option<u128> {
        self.text.iter().try_fold(0u128, |number, &byte| {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                None
            } else {
                number.checked_mul(10)?.checked_add(u128::from(digit))
            }
        })
    }

    pub(super) fn shown(&self) -> String {
        let text = String::from_utf8_lossy(self.text);
        let mut shown: String = text
            .chars()
            .take(SHOWN)
            .map(|char| if char.is_control() { '\u{fffd}' } else { char })
            .collect();
        if text.chars().count() > SHOWN {
            shown.push('…');
        }
        shown
    }
}

/// Blanks between words. A line ends at `\n`; `\r` before it is one more blank.
fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r')
}
