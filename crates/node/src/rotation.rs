//! A new key for an old name: the statement that says so, signed by both keys.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use veil_link::tls::{Fingerprint, Identity, IdentityError, verify};

use crate::names;
use crate::strings::{self, Body, Kind, Reader, StringError};
use crate::time::Time;

/// Each key signs for a use of its own, so that neither signature can stand for the other.
const OLD: &str = "veilworks rotation: the old key";
const NEW: &str = "veilworks rotation: the new key";

/// Bytes of an Ed25519 SubjectPublicKeyInfo.
const KEY: usize = 44;

/// That a participant has a new key. It prints as `veil3-…`.
///
/// The old key vouches for the new one, and the new one proves that the maker of the statement holds it. Nothing in it is secret. A thief
/// of the old key can make one too: after a theft, revoke and invite again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Statement {
    /// Whose keys.
    pub name: String,
    /// Which of its statements: the first is 1.
    pub counter: u64,
    /// When it was made, by its maker's clock.
    pub time: Time,
    old: [u8; KEY],
    new: [u8; KEY],
    by_old: [u8; 64],
    by_new: [u8; 64],
}

/// A statement that its own signatures do not bear out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StatementError {
    /// Not signed by the old key.
    #[error(
        "the statement is not signed by the old key: refuse it, and ask its sender how it came about"
    )]
    OldKey,
    /// Not signed by the new key.
    #[error(
        "the statement is not signed by the new key: refuse it, and ask its sender how it came about"
    )]
    NewKey,
}

impl Statement {
    pub(crate) fn make(
        name: &str,
        counter: u64,
        old: &Identity,
        new: &Identity,
    ) -> Result<Self, IdentityError> {
        let key = |identity: &Identity| -> Result<[u8; KEY], IdentityError> {
            identity.public_key()?.try_into().map_err(|_| {
                IdentityError::Provider("only an Ed25519 key can be replaced".to_owned())
            })
        };
        let mut statement = Statement {
            name: name.to_owned(),
            counter,
            time: Time::now(),
            old: key(old)?,
            new: key(new)?,
            by_old: [0; 64],
            by_new: [0; 64],
        };
        let signed = statement.signed();
        statement.by_old = old.sign(OLD, signed.as_bytes())?;
        statement.by_new = new.sign(NEW, signed.as_bytes())?;
        Ok(statement)
    }

    /// The key that is replaced.
    pub fn old_key(&self) -> Fingerprint {
        Fingerprint::of_key(&self.old)
    }

    /// The key that replaces it.
    pub fn new_key(&self) -> Fingerprint {
        Fingerprint::of_key(&self.new)
    }

    /// Checks both signatures.
    ///
    /// # Errors
    /// [`StatementError::OldKey`] or [`StatementError::NewKey`] if the signature of that key is wrong.
    pub fn check(&self) -> Result<(), StatementError> {
        let signed = self.signed();
        if !verify(&self.old, OLD, signed.as_bytes(), &self.by_old) {
            return Err(StatementError::OldKey);
        }
        if !verify(&self.new, NEW, signed.as_bytes(), &self.by_new) {
            return Err(StatementError::NewKey);
        }
        Ok(())
    }

    /// What both keys sign.
    fn signed(&self) -> Body {
        Body::new()
            .text(&self.name)
            .bytes(&self.counter.to_le_bytes())
            .bytes(&self.time.seconds().to_le_bytes())
            .bytes(&self.old)
            .bytes(&self.new)
    }
}

impl fmt::Display for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let body = self.signed().bytes(&self.by_old).bytes(&self.by_new);
        f.write_str(&strings::encode(Kind::Rotation, &body))
    }
}

impl FromStr for Statement {
    type Err = StringError;

    fn from_str(text: &str) -> Result<Self, StringError> {
        let body = strings::decode(Kind::Rotation, text)?;
        let mut reader = Reader::new(&body)?;
        let name = reader.text()?;
        names::check(name).map_err(|_| StringError::Contents)?;
        let statement = Statement {
            name: name.to_owned(),
            counter: u64::from_le_bytes(reader.array()?),
            time: Time::from_seconds(i64::from_le_bytes(reader.array()?))
                .ok_or(StringError::Contents)?,
            old: reader.array()?,
            new: reader.array()?,
            by_old: reader.array()?,
            by_new: reader.array()?,
        };
        reader.end()?;
        Ok(statement)
    }
}

impl Serialize for Statement {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Statement {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::signature::{ED25519, UnparsedPublicKey};

    use super::*;

    fn statement() -> (Statement, [Identity; 2]) {
        let keys = [(); 2].map(|()| Identity::generate().unwrap());
        let statement = Statement::make("ann", 1, &keys[0], &keys[1]).unwrap();
        (statement, keys)
    }

    #[test]
    fn it_is_signed_by_both_keys_and_survives_its_string() {
        let (statement, [old, new]) = statement();
        assert_eq!(
            (statement.old_key(), statement.new_key()),
            (old.fingerprint(), new.fingerprint())
        );
        assert_eq!(statement.check(), Ok(()));
        assert_eq!(statement.to_string().parse(), Ok(statement.clone()));
        let json = serde_json::to_string(&statement).unwrap();
        assert_eq!(serde_json::from_str::<Statement>(&json).unwrap(), statement);
        // The same signature by the provider's own interface, over bytes put together by hand.
        let message = [
            b"veilworks statement 1",
            &(OLD.len() as u64).to_le_bytes()[..],
            OLD.as_bytes(),
            &[1, 3, 0],
            b"ann",
            &1u64.to_le_bytes(),
            &statement.time.seconds().to_le_bytes(),
            &old.public_key().unwrap(),
            &new.public_key().unwrap(),
        ]
        .concat();
        let raw = &old.public_key().unwrap()[12..];
        UnparsedPublicKey::new(&ED25519, raw)
            .verify(&message, &statement.by_old)
            .unwrap();
    }

    type Damage = fn(&mut Statement, &Statement);

    #[test]
    fn every_field_is_signed() {
        let (good, _) = statement();
        let (other, _) = statement();
        let damages: [(Damage, StatementError); 7] = [
            (|s, _| s.name = "eve".into(), StatementError::OldKey),
            (|s, _| s.counter = 2, StatementError::OldKey),
            (
                |s, _| s.time = Time::from_seconds(0).unwrap(),
                StatementError::OldKey,
            ),
            (|s, o| s.old = o.old, StatementError::OldKey),
            (|s, o| s.new = o.new, StatementError::OldKey),
            (|s, _| s.by_old[0] ^= 1, StatementError::OldKey),
            (|s, _| s.by_new = s.by_old, StatementError::NewKey),
        ];
        for (damage, error) in damages {
            let mut damaged = good.clone();
            damage(&mut damaged, &other);
            assert_eq!(damaged.check(), Err(error));
        }
    }
}
