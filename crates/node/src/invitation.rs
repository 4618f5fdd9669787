//! Invitations: how two participants come to pin each other's keys, with one string and no file.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest, Sha256};
use veil_link::tls::Fingerprint;
use zeroize::Zeroize;

use crate::names::{self, Role};
use crate::settings::check_address;
use crate::strings::{self, Body, Kind, Reader, StringError};
use crate::time::Time;

/// Proves once that its bearer was invited. Wiped when dropped, and never shown but in an invitation or an answer.
#[derive(Clone, PartialEq, Eq)]
pub struct Token([u8; 16]);

impl Token {
    pub(crate) fn generate() -> Result<Self, getrandom::Error> {
        let mut token = Token([0; 16]);
        getrandom::fill(&mut token.0)?;
        Ok(token)
    }

    /// What the inviter keeps of it. A token has 128 random bits: its hash gives nothing away.
    pub(crate) fn digest(&self) -> [u8; 32] {
        Sha256::new_with_prefix(b"veilworks invitation")
            .chain_update(self.0)
            .finalize()
            .into()
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

impl Serialize for Token {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&data_encoding::HEXLOWER.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Token {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wrong = || de::Error::custom("a token is 32 hexadecimal digits");
        let mut text = String::deserialize(deserializer)?;
        let bytes = data_encoding::HEXLOWER.decode(text.as_bytes());
        text.zeroize();
        let mut bytes = bytes.map_err(|_| wrong())?;
        let token = bytes.as_slice().try_into().map(Token).map_err(|_| wrong());
        bytes.zeroize();
        token
    }
}

/// A participant's own introduction: name, role, address, key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Introduction {
    /// Its name.
    pub name: String,
    /// Its role.
    pub role: Role,
    /// Where it is dialled, if it listens.
    pub address: Option<String>,
    /// Its key.
    pub fingerprint: Fingerprint,
}

impl Introduction {
    fn write(&self, body: Body) -> Body {
        let role = Role::ALL.iter().position(|role| *role == self.role);
        body.text(&self.name)
            .bytes(&[role.expect("one of all roles") as u8])
            .text(self.address.as_deref().unwrap_or_default())
            .bytes(self.fingerprint.as_bytes())
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, StringError> {
        let name = name(reader)?;
        let role = role(reader)?;
        let address = reader.text()?;
        if !address.is_empty() {
            check_address(address).map_err(|_| StringError::Contents)?;
        }
        Ok(Introduction {
            name,
            role,
            address: Some(address.to_owned()).filter(|address| !address.is_empty()),
            fingerprint: Fingerprint::from_bytes(reader.array()?),
        })
    }
}

fn name(reader: &mut Reader<'_>) -> Result<String, StringError> {
    let name = reader.text()?;
    names::check(name).map_err(|_| StringError::Contents)?;
    Ok(name.to_owned())
}

fn role(reader: &mut Reader<'_>) -> Result<Role, StringError> {
    let [role] = reader.array()?;
    let role = Role::ALL.get(usize::from(role)).copied();
    role.ok_or(StringError::Contents)
}

/// An invitation, for one participant, to be used once. It prints as `veil1-…`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Invitation {
    /// Who invites.
    pub inviter: Introduction,
    /// The name of whom it invites.
    pub invitee: String,
    /// As what.
    pub role: Role,
    /// Until when it can be used, by the inviter's clock.
    pub expires: Time,
    /// What proves it.
    pub(crate) token: Token,
}

impl fmt::Display for Invitation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let role = Role::ALL.iter().position(|role| *role == self.role);
        let body = self
            .inviter
            .write(Body::new())
            .text(&self.invitee)
            .bytes(&[role.expect("one of all roles") as u8])
            .bytes(&self.expires.seconds().to_le_bytes())
            .bytes(&self.token.0);
        f.write_str(&strings::encode(Kind::Invitation, &body))
    }
}

impl FromStr for Invitation {
    type Err = StringError;

    fn from_str(text: &str) -> Result<Self, StringError> {
        let body = strings::decode(Kind::Invitation, text)?;
        let mut reader = Reader::new(&body)?;
        let invitation = Invitation {
            inviter: Introduction::read(&mut reader)?,
            invitee: name(&mut reader)?,
            role: role(&mut reader)?,
            expires: Time::from_seconds(i64::from_le_bytes(reader.array()?))
                .ok_or(StringError::Contents)?,
            token: Token(reader.array()?),
        };
        reader.end()?;
        Ok(invitation)
    }
}

/// The message of an invited participant to its inviter, over a connection that proves its key.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Join {
    /// From the invitation.
    pub token: Token,
    /// Its name.
    pub name: String,
    /// Its role.
    pub role: Role,
    /// Where it is dialled, if it listens.
    pub address: Option<String>,
    /// Its key, as text; the connection must prove the same.
    pub fingerprint: String,
}

/// The same for an inviter that cannot be dialled. It prints as `veil2-…`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    /// The name of whom it is for.
    pub inviter: String,
    /// Who answers.
    pub joiner: Introduction,
    /// What proves the invitation.
    pub(crate) token: Token,
}

impl Answer {
    /// The same as a message.
    pub fn to_join(&self) -> Join {
        Join {
            token: self.token.clone(),
            name: self.joiner.name.clone(),
            role: self.joiner.role,
            address: self.joiner.address.clone(),
            fingerprint: self.joiner.fingerprint.to_string(),
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let body = self.joiner.write(Body::new().text(&self.inviter));
        f.write_str(&strings::encode(Kind::Answer, &body.bytes(&self.token.0)))
    }
}

impl FromStr for Answer {
    type Err = StringError;

    fn from_str(text: &str) -> Result<Self, StringError> {
        let body = strings::decode(Kind::Answer, text)?;
        let mut reader = Reader::new(&body)?;
        let answer = Answer {
            inviter: name(&mut reader)?,
            joiner: Introduction::read(&mut reader)?,
            token: Token(reader.array()?),
        };
        reader.end()?;
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names() -> impl Strategy<Value = String> {
        "[^\\p{C}\\p{Z}]([^\\p{C}\\p{Z}]| ){0,40}[^\\p{C}\\p{Z}]"
            .prop_filter("reserved", |name| names::check(name).is_ok())
    }

    prop_compose! {
        fn introductions()(
            name in names(),
            role in 0usize..3,
            port in prop::option::of(1u16..),
            key in any::<[u8; 32]>(),
        ) -> Introduction {
            Introduction {
                name,
                role: Role::ALL[role],
                address: port.map(|port| format!("[2001:db8::1]:{port}")),
                fingerprint: Fingerprint::from_bytes(key),
            }
        }
    }

    proptest! {
        #[test]
        fn strings_say_what_was_put_into_them(
            introduction in introductions(),
            other in names(),
            role in 0usize..3,
            token in any::<[u8; 16]>(),
            expires in 0i64..4_000_000_000,
        ) {
            let invitation = Invitation {
                inviter: introduction.clone(),
                invitee: other.clone(),
                role: Role::ALL[role],
                expires: Time::from_seconds(expires).unwrap(),
                token: Token(token),
            };
            prop_assert_eq!(invitation.to_string().parse::<Invitation>(), Ok(invitation));
            let answer = Answer { inviter: other, joiner: introduction, token: Token(token) };
            prop_assert_eq!(answer.to_string().parse::<Answer>(), Ok(answer.clone()));
            let join = serde_json::to_string(&answer.to_join()).unwrap();
            prop_assert_eq!(serde_json::from_str::<Join>(&join).unwrap(), answer.to_join());
        }
    }

    #[test]
    fn tokens_are_not_shown() {
        let token = Token([0xab; 16]);
        assert!(!format!("{token:?}").contains("171") && !format!("{token:?}").contains("ab"));
    }
}
