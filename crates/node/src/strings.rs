//! The strings that people send each other: `veil1-…` invites, `veil2-…` answers, `veil3-…` states a new key.
//!
//! After the prefix stand, in base 32 (RFC 4648, lower case, no padding): the length of the body in two bytes, the
//! body, and a CRC-32 of prefix, length and body. Every change of up to 32 neighbouring bits is found, and so every
//! change of one character.

use std::fmt::Write;

use data_encoding::{DecodeKind, Encoding, Specification};

/// Longest body: three names, two addresses, keys and signatures.
const LONGEST: usize = 2048;

/// The version of the bodies, their first byte.
const VERSION: u8 = 1;

/// A string that cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StringError {
    /// Something else altogether.
    #[error(
        "this is no string of `veil`: one begins with veil1- (an invitation), veil2- (an answer to one) or veil3- (a new key)"
    )]
    Foreign,
    /// One of ours for another purpose.
    #[error("this is {found}, and {wanted} is needed here")]
    Kind {
        /// Its kind.
        found: &'static str,
        /// The kind that is needed.
        wanted: &'static str,
    },
    /// A character that no such string has.
    #[error(
        "character {position} of the string is {character:?}, which no such string has: copy it again"
    )]
    Character {
        /// Which, from 1.
        position: usize,
        /// The character.
        character: char,
    },
    /// Too short.
    #[error(
        "the string is cut: it has {found} characters, and says that it has {wanted}; copy all of it"
    )]
    Cut {
        /// Characters there.
        found: usize,
        /// Characters that there should be.
        wanted: usize,
    },
    /// Too long.
    #[error(
        "the string has {found} characters, and says that it has {wanted}; copy it again, and nothing after it"
    )]
    Long {
        /// Characters there.
        found: usize,
        /// Characters that there should be.
        wanted: usize,
    },
    /// Another checksum.
    #[error("the string is not as it was printed (its checksum differs): copy it again")]
    Checksum,
    /// Unknown contents under a good checksum.
    #[error("the string was made by another release of `veil`, or not by `veil` at all")]
    Contents,
}

/// What a string is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Invitation,
    Answer,
    Rotation,
}

impl Kind {
    const ALL: [Kind; 3] = [Kind::Invitation, Kind::Answer, Kind::Rotation];

    const fn prefix(self) -> &'static str {
        match self {
            Kind::Invitation => "veil1-",
            Kind::Answer => "veil2-",
            Kind::Rotation => "veil3-",
        }
    }

    const fn what(self) -> &'static str {
        match self {
            Kind::Invitation => "an invitation",
            Kind::Answer => "an answer to an invitation",
            Kind::Rotation => "a statement of a new key",
        }
    }

    /// The kind of a string, by its prefix.
    pub(crate) fn of(text: &str) -> Option<Self> {
        let text = text.trim_start().to_ascii_lowercase();
        let begins = |kind: &Kind| text.starts_with(kind.prefix());
        Kind::ALL.into_iter().find(begins)
    }
}

fn base32() -> Encoding {
    let mut specification = Specification::new();
    specification
        .symbols
        .push_str("abcdefghijklmnopqrstuvwxyz234567");
    specification
        .translate
        .from
        .push_str("ABCDEFGHIJKLMNOPQRSTUVWXYZ");
    specification
        .translate
        .to
        .push_str("abcdefghijklmnopqrstuvwxyz");
    specification
        .encoding()
        .expect("32 symbols, and no letter twice")
}

/// Characters of so many bytes in base 32.
const fn characters(bytes: usize) -> usize {
    (bytes * 8).div_ceil(5)
}

/// Makes a string.
pub(crate) fn encode(kind: Kind, body: &Body) -> String {
    let length = (body.0.len() as u16).to_le_bytes();
    let sum = crc32(&[kind.prefix().as_bytes(), &length, &body.0]).to_le_bytes();
    let mut text = String::from(kind.prefix());
    let _ = write!(
        text,
        "{}",
        base32().encode(&[&length, &body.0[..], &sum].concat())
    );
    text
}

/// Takes a string apart. Blanks and line breaks, as mail programs add them, do not count; nor does the case of letters.
pub(crate) fn decode(wanted: Kind, text: &str) -> Result<Vec<u8>, StringError> {
    let kind = Kind::of(text).ok_or(StringError::Foreign)?;
    if kind != wanted {
        return Err(StringError::Kind {
            found: kind.what(),
            wanted: wanted.what(),
        });
    }
    // More than the longest string is not looked at.
    let limit = 4 * characters(LONGEST + 6);
    let text: String = (text.trim_start()[kind.prefix().len()..].chars().take(limit))
        .filter(|c| !c.is_whitespace())
        .collect();
    let is_symbol = |c: char| c.is_ascii_alphabetic() || ('2'..='7').contains(&c);
    if let Some((at, character)) = text.chars().enumerate().find(|(_, c)| !is_symbol(*c)) {
        return Err(StringError::Character {
            position: kind.prefix().len() + at + 1,
            character,
        });
    }
    let found = kind.prefix().len() + text.len();
    // Eight characters are five bytes; the first two say how many follow.
    let head = text
        .get(..8)
        .and_then(|head| base32().decode(head.as_bytes()).ok());
    let Some(&[low, high, ..]) = head.as_deref() else {
        let wanted = kind.prefix().len() + characters(6);
        return Err(StringError::Cut { found, wanted });
    };
    let bytes = usize::from(u16::from_le_bytes([low, high])) + 6;
    let wanted = kind.prefix().len() + characters(bytes);
    if bytes > LONGEST + 6 {
        return Err(StringError::Checksum);
    }
    if found < wanted {
        return Err(StringError::Cut { found, wanted });
    }
    if found > wanted {
        return Err(StringError::Long { found, wanted });
    }
    let decoded = base32().decode(text.as_bytes()).map_err(|error| {
        debug_assert!(matches!(error.kind, DecodeKind::Trailing), "{error}");
        StringError::Checksum
    })?;
    let (front, sum) = decoded.split_at(decoded.len() - 4);
    if crc32(&[kind.prefix().as_bytes(), front]).to_le_bytes() != sum {
        return Err(StringError::Checksum);
    }
    Ok(front[2..].to_vec())
}

/// CRC-32 as in ISO/IEC 8802-3 (Ethernet), over all parts in order.
fn crc32(parts: &[&[u8]]) -> u32 {
    let mut sum = u32::MAX;
    for byte in parts.iter().copied().flatten() {
        sum ^= u32::from(*byte);
        for _ in 0..8 {
            // The polynomial with its bits reversed, where the bit that falls out is set.
            sum = (sum >> 1) ^ (0xedb8_8320 & (sum & 1).wrapping_neg());
        }
    }
    !sum
}

/// Writes a body: integers little-endian, strings with their length in two bytes before them.
pub(crate) struct Body(Vec<u8>);

impl Body {
    pub(crate) fn new() -> Self {
        Body(vec![VERSION])
    }

    pub(crate) fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    pub(crate) fn text(self, text: &str) -> Self {
        self.bytes(&(text.len() as u16).to_le_bytes())
            .bytes(text.as_bytes())
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Reads a body. Everything that does not fit is [`StringError::Contents`].
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn new(body: &'a [u8]) -> Result<Self, StringError> {
        match body.split_first() {
            Some((&VERSION, rest)) => Ok(Reader(rest)),
            _ => Err(StringError::Contents),
        }
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], StringError> {
        let (front, rest) = self.0.split_first_chunk().ok_or(StringError::Contents)?;
        self.0 = rest;
        Ok(*front)
    }

    pub(crate) fn text(&mut self) -> Result<&'a str, StringError> {
        let length = usize::from(u16::from_le_bytes(self.array()?));
        let (front, rest) = self
            .0
            .split_at_checked(length)
            .ok_or(StringError::Contents)?;
        self.0 = rest;
        std::str::from_utf8(front).map_err(|_| StringError::Contents)
    }

    pub(crate) fn end(self) -> Result<(), StringError> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(StringError::Contents)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_checksum_is_the_standard_one() {
        // The check value of CRC-32/ISO-HDLC.
        assert_eq!(crc32(&[b"1234", b"56789"]), 0xcbf4_3926);
    }

    #[test]
    fn each_damage_is_named() {
        let text = encode(Kind::Invitation, &Body::new().text("hello, world"));
        assert_eq!(
            decode(Kind::Invitation, &text).unwrap()[3..],
            *b"hello, world"
        );
        let wrapped = format!("  {}\r\n {}\n", &text[..20], &text[20..]);
        assert!(
            decode(Kind::Invitation, &wrapped).is_ok(),
            "wrapped by a mail program"
        );
        assert!(decode(Kind::Invitation, &text.to_uppercase()).is_ok());
        let wrong = |text: &str| decode(Kind::Invitation, text).unwrap_err();
        assert_eq!(wrong("hello"), StringError::Foreign);
        assert_eq!(
            decode(Kind::Answer, &text).unwrap_err().to_string(),
            "this is an invitation, and an answer to an invitation is needed here"
        );
        assert_eq!(
            wrong(&text.replacen(&text[9..10], "1", 1)).to_string(),
            "character 5 of the string is '1', which no such string has: copy it again".replace(
                "character 5",
                &format!("character {}", text.find(&text[9..10]).unwrap() + 1)
            )
        );
        for cut in 0..text.len() {
            let error = wrong(&text[..cut]);
            let expected = if cut < 6 {
                matches!(error, StringError::Foreign)
            } else {
                matches!(error, StringError::Cut { found, .. } if found == cut)
            };
            assert!(expected, "{cut}: {error:?}");
        }
        assert!(matches!(
            wrong(&format!("{text}a")),
            StringError::Long { .. }
        ));
    }

    proptest! {
        #[test]
        fn every_change_of_one_character_is_found(
            body in prop::collection::vec(any::<u8>(), 0..200),
            at in any::<prop::sample::Index>(),
            to in prop::char::range('2', 'z'),
        ) {
            let text = encode(Kind::Answer, &Body::new().bytes(&body));
            prop_assert_eq!(&decode(Kind::Answer, &text).unwrap()[1..], &body[..]);
            let at = at.index(text.len());
            let before = text.as_bytes()[at] as char;
            prop_assume!(!before.eq_ignore_ascii_case(&to));
            let changed = format!("{}{to}{}", &text[..at], &text[at + 1..]);
            prop_assert!(decode(Kind::Answer, &changed).is_err(), "{} -> {}", text, changed);
        }

        #[test]
        fn nothing_that_is_read_panics(text in "(veil[1-3]-)?[a-z2-7 \\PC]{0,80}") {
            for kind in Kind::ALL {
                if let Ok(body) = decode(kind, &text) {
                    let _ = Reader::new(&body).and_then(|mut reader| reader.text());
                }
            }
        }
    }
}
