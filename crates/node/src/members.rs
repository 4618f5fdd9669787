//! `members.toml`: the participants that this home knows, by the keys that it has pinned.

use std::path::Path;

use serde::{Deserialize, Serialize};
use toml::Spanned;
use veil_link::tls::Fingerprint;
use veil_runtime::Roster;

use crate::file::{self, FileError};
use crate::home::Home;
use crate::names::{self, Role};
use crate::settings::check_address;
use crate::time::Time;

/// The version of the file that this release reads and writes.
const VERSION: i64 = 1;

/// Another participant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Member {
    /// Its name, as jobs write it.
    pub name: String,
    /// Its role.
    pub role: Role,
    /// Its key.
    pub fingerprint: Fingerprint,
    /// Where it is dialled, if it listens.
    pub address: Option<String>,
    /// Since when this key is pinned.
    pub since: Time,
    /// Keys that it had before, the oldest first. None of them is let in.
    pub former: Vec<Former>,
    /// How many statements of new keys were accepted: the next one has a larger number.
    pub rotations: u64,
    /// Whether it was revoked: nothing of it is let in or dialled any more.
    pub revoked: Option<Revoked>,
}

/// A key that a member had before.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Former {
    /// The key.
    #[serde(with = "as_text")]
    pub fingerprint: Fingerprint,
    /// Until when it was pinned.
    pub until: Time,
}

/// That a member was revoked.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Revoked {
    /// When.
    pub at: Time,
    /// The reason, in the words of the person who revoked it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// The standing of a key in this home.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing<'a> {
    /// The key of a member.
    Active(&'a Member),
    /// A key that a member has replaced: refused.
    Former(&'a Member),
    /// The key of a member that was revoked: refused.
    Revoked(&'a Member),
    /// Not known.
    Stranger,
}

impl Member {
    /// Whether it is let in and dialled.
    pub const fn is_active(&self) -> bool {
        self.revoked.is_none()
    }
}

/// The members of a home, as its file had them at one moment.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Members {
    list: Vec<Member>,
}

impl Roster for Members {
    fn key(&self, name: &str) -> Option<Fingerprint> {
        Some(self.by_name(name)?.fingerprint)
    }

    fn address(&self, name: &str) -> Option<String> {
        self.by_name(name)?.address.clone()
    }
}

/// Whether every one of the participants of a job is a member of this party's home; else who is not, for the member that proposes the job and
/// has named it there.
pub(crate) fn all_known(names: &[String], home: &Home) -> Result<(), String> {
    let (members, own) = (home.members(), &home.settings().name);
    let mut names = names.iter();
    let stranger = names.find(|name| *name != own && members.by_name(name).is_none());
    stranger.map_or(Ok(()), |name| {
        Err(format!(
            "`{name}`, which takes part in the job, is no member of this party"
        ))
    })
}

impl Members {
    /// The active member of this name.
    pub fn by_name(&self, name: &str) -> Option<&Member> {
        self.iter().find(|member| member.name == name)
    }

    /// The active member with this key.
    pub fn by_fingerprint(&self, key: &Fingerprint) -> Option<&Member> {
        self.iter().find(|member| member.fingerprint == *key)
    }

    /// Active members, in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = &Member> {
        self.list.iter().filter(|member| member.is_active())
    }

    /// All members, revoked ones included.
    pub fn all(&self) -> &[Member] {
        &self.list
    }

    /// The standing of a key in this home.
    pub fn standing(&self, key: &Fingerprint) -> Standing<'_> {
        if let Some(member) = self.by_fingerprint(key) {
            return Standing::Active(member);
        }
        let had = |member: &&Member| member.former.iter().any(|f| f.fingerprint == *key);
        match self.list.iter().find(|member| member.fingerprint == *key) {
            Some(member) => Standing::Revoked(member),
            None => match self.list.iter().find(had) {
                Some(member) => Standing::Former(member),
                None => Standing::Stranger,
            },
        }
    }

    /// Any member of this name, revoked or not.
    pub(crate) fn any(&self, name: &str) -> Option<&Member> {
        self.list.iter().find(|member| member.name == name)
    }

    pub(crate) fn any_mut(&mut self, name: &str) -> Option<&mut Member> {
        self.list.iter_mut().find(|member| member.name == name)
    }

    pub(crate) fn push(&mut self, member: Member) {
        self.list.push(member);
    }

    /// Reads the members of a home; none, if there is no file.
    pub(crate) fn load(path: &Path) -> Result<Self, FileError> {
        match file::read(path) {
            Ok(text) => Self::parse(path, &text),
            Err(error) if error.is_missing() => Ok(Members::default()),
            Err(error) => Err(error),
        }
    }

    /// Reads the text of a members file that is, or could be, at `path`.
    ///
    /// # Errors
    /// [`FileError::Syntax`] at the place in the text that is not understood: a bad name, fingerprint or address, a name or a key
    /// that is there twice; [`FileError::Version`] if another release wrote it.
    pub fn parse(path: &Path, text: &str) -> Result<Self, FileError> {
        let raw: Raw = file::parse(path, text, VERSION)?;
        let mut members = Members::default();
        for raw in raw.member {
            let wrong =
                |span, what: &dyn ToString| FileError::at(path, text, span, what.to_string());
            let (name, span) = (raw.name.get_ref(), raw.name.span());
            names::check(name).map_err(|error| wrong(span.clone(), &error))?;
            if members.any(name).is_some() {
                let what = format!("member `{name}` is there twice; remove one");
                return Err(wrong(span, &what));
            }
            let key: Fingerprint = raw
                .fingerprint
                .get_ref()
                .parse()
                .map_err(|error| wrong(raw.fingerprint.span(), &error))?;
            let same = |member: &&Member| member.fingerprint == key;
            if let Some(other) = members.list.iter().find(same) {
                let what = format!(
                    "`{name}` and `{}` have the same key; remove one",
                    other.name
                );
                return Err(wrong(raw.fingerprint.span(), &what));
            }
            if let Some(address) = &raw.address {
                check_address(address.get_ref()).map_err(|error| wrong(address.span(), &error))?;
            }
            members.list.push(Member {
                name: name.clone(),
                role: raw.role,
                fingerprint: key,
                address: raw.address.map(Spanned::into_inner),
                since: raw.since,
                former: raw.former,
                rotations: raw.rotations,
                revoked: raw.revoked,
            });
        }
        Ok(members)
    }

    /// The text of a members file.
    pub fn to_toml(&self) -> String {
        let raw = Written {
            version: VERSION,
            member: self.list.iter().map(WrittenMember::of).collect(),
        };
        let text = toml::to_string(&raw).expect("strings, numbers and tables are TOML");
        format!(
            "# Written by `veil invite`, `join`, `members` and `identity`. Removing a member here forgets its keys too.\n{text}"
        )
    }
}

/// For fuzzing: takes `bytes` for a members file. Returns whether it was accepted.
///
/// # Panics
///
/// If parsed members do not survive writing and parsing again.
#[doc(hidden)]
pub fn fuzz_members(bytes: &[u8]) -> bool {
    let parse = |text: &str| Members::parse(Path::new("members.toml"), text);
    let text = std::str::from_utf8(bytes);
    let Some(members) = text.ok().and_then(|text| parse(text).ok()) else {
        return false;
    };
    let written = members.to_toml();
    let again = parse(&written).expect("what is written is read");
    assert_eq!(again.to_toml(), written);
    true
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    #[serde(rename = "version")]
    _version: i64,
    #[serde(default)]
    member: Vec<RawMember>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawMember {
    name: Spanned<String>,
    role: Role,
    fingerprint: Spanned<String>,
    address: Option<Spanned<String>>,
    since: Time,
    #[serde(default)]
    rotations: u64,
    #[serde(default)]
    former: Vec<Former>,
    revoked: Option<Revoked>,
}

#[derive(Serialize)]
struct Written<'a> {
    version: i64,
    member: Vec<WrittenMember<'a>>,
}

#[derive(Serialize)]
struct WrittenMember<'a> {
    name: &'a str,
    role: Role,
    fingerprint: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<&'a str>,
    since: Time,
    rotations: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    revoked: Option<&'a Revoked>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    former: &'a [Former],
}

impl<'a> WrittenMember<'a> {
    fn of(member: &'a Member) -> Self {
        WrittenMember {
            name: &member.name,
            role: member.role,
            fingerprint: member.fingerprint.to_string(),
            address: member.address.as_deref(),
            since: member.since,
            rotations: member.rotations,
            revoked: member.revoked.as_ref(),
            former: &member.former,
        }
    }
}

/// Fingerprints in the form that is shown.
mod as_text {
    use serde::{Deserialize, Deserializer, Serializer, de};
    use veil_link::tls::Fingerprint;

    pub(super) fn serialize<S: Serializer>(key: &Fingerprint, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(key)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Fingerprint, D::Error> {
        String::deserialize(d)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(byte: u8) -> Fingerprint {
        Fingerprint::from_bytes([byte; 32])
    }

    fn member(name: &str, byte: u8) -> Member {
        Member {
            name: name.into(),
            role: Role::Party,
            fingerprint: key(byte),
            address: None,
            since: Time::from_seconds(0).unwrap(),
            former: Vec::new(),
            rotations: 0,
            revoked: None,
        }
    }

    #[test]
    fn a_key_is_a_members_a_former_one_a_revoked_one_or_unknown() {
        let mut union = member("union", 1);
        union.former.push(Former {
            fingerprint: key(9),
            until: Time::now(),
        });
        let mut mill = member("mill", 2);
        mill.revoked = Some(Revoked {
            at: Time::now(),
            reason: String::new(),
        });
        let members = Members {
            list: vec![union, mill],
        };
        assert!(matches!(members.standing(&key(1)), Standing::Active(m) if m.name == "union"));
        assert!(matches!(members.standing(&key(9)), Standing::Former(m) if m.name == "union"));
        assert!(matches!(members.standing(&key(2)), Standing::Revoked(m) if m.name == "mill"));
        assert_eq!(members.standing(&key(3)), Standing::Stranger);
        assert_eq!(members.by_name("mill"), None, "revoked");
        assert_eq!(members.by_fingerprint(&key(9)), None, "former");
        assert_eq!(members.iter().count(), 1);
    }

    #[test]
    fn damage_is_named_with_its_place() {
        let path = Path::new("members.toml");
        let base = Members {
            list: vec![member("union", 1)],
        };
        let good = base.to_toml();
        let wrong = |text: &str| Members::parse(path, text).unwrap_err().to_string();
        let twice = good.clone() + &good[good.find("[[member]]").unwrap()..];
        assert!(wrong(&twice).contains("member `union` is there twice"));
        let same =
            good.clone() + &good[good.find("[[member]]").unwrap()..].replace("union", "mill");
        let error = wrong(&same);
        assert!(
            error.contains("`mill` and `union` have the same key"),
            "{error}"
        );
        let error = wrong(&good.replace("vw1:", "vw9:"));
        assert!(
            error.contains("is no fingerprint") && error.contains("members.toml:7:15"),
            "{error}"
        );
        let error = wrong(&good.replace("1970-01-01T00:00:00Z", "once"));
        assert!(error.contains("`once` is no moment"), "{error}");
        let error = wrong(&good.replace("version = 1", "version = 7"));
        assert!(error.contains("version 7"), "{error}");
    }

    proptest! {
        #[test]
        fn members_survive_their_file(
            list in prop::collection::vec(
                ("[a-zA-Zé\"'#\\\\][^\\p{C}\\p{Z}]{0,20}", 0u8..3, any::<u64>(), "[ -~]{0,20}", 0i64..4_000_000_000),
                0..5,
            )
        ) {
            let mut members = Members::default();
            for (index, (name, role, rotations, reason, at)) in list.into_iter().enumerate() {
                let time = Time::from_seconds(at).unwrap();
                members.push(Member {
                    name: format!("{index}{name}"),
                    role: Role::ALL[usize::from(role)],
                    fingerprint: key(index as u8),
                    address: (index % 2 == 0).then(|| "a.example:1".into()),
                    since: time,
                    former: vec![Former { fingerprint: key(100), until: time }; index % 3],
                    rotations: rotations >> 1,
                    revoked: (index % 2 == 1).then_some(Revoked { at: time, reason }),
                });
            }
            let read = Members::parse(Path::new("members.toml"), &members.to_toml()).unwrap();
            prop_assert_eq!(read, members);
        }
    }
}
