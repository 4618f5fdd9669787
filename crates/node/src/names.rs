//! Names of participants, and what they are.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Longest name: as in job files.
const LONGEST: usize = 64;

/// The general role of a participant. In a single job an owner may also be a recipient.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Computes, and listens on one port.
    Party,
    /// Brings data, and dials the parties.
    Owner,
    /// Gets results, and dials the parties.
    Recipient,
}

impl Role {
    /// Every role, in order.
    pub const ALL: [Role; 3] = [Role::Party, Role::Owner, Role::Recipient];

    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Role::Party => "party",
            Role::Owner => "owner",
            Role::Recipient => "recipient",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A word that is no role.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{0}` is no role: write party, owner or recipient")]
pub struct RoleError(String);

impl FromStr for Role {
    type Err = RoleError;

    fn from_str(text: &str) -> Result<Self, RoleError> {
        let found = Role::ALL.into_iter().find(|role| role.name() == text);
        found.ok_or_else(|| RoleError(text.chars().take(LONGEST).collect()))
    }
}

/// A name that jobs and reports cannot use.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the name {0:?} {1}")]
pub struct NameError(String, &'static str);

/// Checks a name by the rules of job files.
pub(crate) fn check(name: &str) -> Result<(), NameError> {
    let wrong = if name.is_empty() {
        "is empty; give one"
    } else if name.chars().count() > LONGEST {
        "is longer than 64 characters; shorten it"
    } else if name.chars().any(char::is_control) {
        "has control characters; leave them out"
    } else if name.trim() != name {
        "has blanks at an end; remove them"
    } else if name == "parties" {
        "means all computing parties in jobs; choose another"
    } else if name == crate::policy::ME {
        "means the author of a policy in its rules; choose another"
    } else {
        return Ok(());
    };
    Err(NameError(name.chars().take(80).collect(), wrong))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_as_in_jobs() {
        for name in ["a", "north-mill", "Gemeinde Köln", &"x".repeat(64)] {
            assert_eq!(check(name), Ok(()));
        }
        for (name, why) in [
            ("", "empty"),
            (" a", "blanks"),
            ("a\nb", "control"),
            ("parties", "all computing"),
            (&"é".repeat(65), "longer"),
        ] {
            let error = check(name).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn roles_are_words() {
        for role in Role::ALL {
            assert_eq!(role.to_string().parse(), Ok(role));
        }
        let error = "boss".parse::<Role>().unwrap_err().to_string();
        assert_eq!(error, "`boss` is no role: write party, owner or recipient");
    }
}
