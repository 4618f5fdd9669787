//! Rotation of keys in a home: statements of its own new keys, and of its members'.

use std::fs;

use veil_link::tls::{Fingerprint, Identity};

use crate::file::{self, FileError};
use crate::home::{Home, HomeError, KEY, Lock};
use crate::log::Event;
use crate::members::{Former, Standing};
use crate::pairing::Joined;
use crate::rotation::{Statement, StatementError};
use crate::time::Time;

/// The files of a key that is about to replace the present one, and of the statements made so far.
const NEXT_KEY: &str = "identity.key.next";
const STATEMENTS: &str = "rotations.txt";

/// A statement of a new key cannot be followed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RotationError {
    /// The home cannot be used.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// Its signatures do not bear it out.
    #[error(transparent)]
    Statement(#[from] StatementError),
    /// About a key that is not pinned.
    #[error(
        "the statement replaces the key {old}, which no member has here: take the earlier statements of `{name}` first (`veil identity show --statements` prints them there), or invite it"
    )]
    Unknown {
        /// Whose statement.
        name: String,
        /// The key.
        old: Fingerprint,
    },
    /// About a key that was replaced or revoked.
    #[error("the statement replaces a key of `{name}` that was {} here: it is not followed{}", if *revoked { "revoked" } else { "replaced by another one" }, if *revoked { "; `veil members readmit` lets it in again with its new key, if an operator decides so" } else { "" })]
    Dead {
        /// Whose key.
        name: String,
        /// Revoked, or replaced.
        revoked: bool,
    },
    /// It speaks of another name.
    #[error(
        "the statement is of `{said}`, and its old key is that of member `{known}`: refuse it, and ask its sender"
    )]
    Name {
        /// The name in it.
        said: String,
        /// The name of the key here.
        known: String,
    },
    /// An old one.
    #[error(
        "the statement is number {counter} of `{name}`, and number {known} was accepted before: it is an old one"
    )]
    Old {
        /// Whose.
        name: String,
        /// Its number.
        counter: u64,
        /// The last number that was accepted.
        known: u64,
    },
    /// The new key is known already.
    #[error("the new key of `{name}` is known here as `{known}`'s: a new key must be new")]
    NotNew {
        /// Whose statement.
        name: String,
        /// Whose key.
        known: String,
    },
}

impl Home {
    /// Replaces this participant's key. The statement must reach every member; until it has, that member refuses us.
    ///
    /// # Errors
    /// [`HomeError::Busy`] if another process holds the lock, [`HomeError::Identity`] if no key can be made or used,
    /// [`HomeError::File`] if a file cannot be read or written, [`HomeError::LogDamaged`] if the log cannot take the entry that
    /// names the new key. A rotation that was interrupted is finished by the next call.
    pub fn rotate(&self) -> Result<Statement, HomeError> {
        let lock = self.lock()?;
        self.reload_if_changed()?;
        // One that was interrupted is finished, and no second one begun.
        if let Some(statement) = self.finish_rotation(&lock)? {
            return Ok(statement);
        }
        let next = self.path().join(NEXT_KEY);
        match fs::remove_file(&next) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(FileError::io("remove", &next)(error).into());
            }
            _ => {}
        }
        let new = Identity::generate()?;
        new.save(&next)?;
        let mut statements = self.statements()?;
        let counter = statements.last().map_or(0, |last| last.counter) + 1;
        let statement = Statement::make(&self.settings().name, counter, &self.identity(), &new)?;
        statements.push(statement.clone());
        let lines: Vec<String> = statements.iter().map(ToString::to_string).collect();
        file::write(
            &self.path().join(STATEMENTS),
            (lines.join("\n") + "\n").as_bytes(),
        )?;
        self.finish_rotation(&lock)?;
        Ok(statement)
    }

    /// Puts the next key in its place, if there is one with its statement. Every step can be repeated, so that it does
    /// not matter after which of them a machine stopped: the old key signs the entry that names the new one, and then
    /// goes.
    pub(crate) fn finish_rotation(&self, lock: &Lock) -> Result<Option<Statement>, HomeError> {
        let next = self.path().join(NEXT_KEY);
        if !next.exists() {
            return Ok(None);
        }
        let (old, statements) = (self.identity(), self.statements()?);
        let (Ok(new), Some(statement)) = (Identity::load(&next), statements.last()) else {
            return Ok(None);
        };
        if statement.old_key() != old.fingerprint() || statement.new_key() != new.fingerprint() {
            return Ok(None);
        }
        self.log().hand_over(lock, old.fingerprint(), &new)?;
        let key = self.path().join(KEY);
        fs::rename(&next, &key).map_err(FileError::io("replace", &key))?;
        file::sync_folder(self.path());
        self.reload_if_changed()?;
        Ok(Some(statement.clone()))
    }

    /// All statements of new keys that this participant made, the oldest first.
    ///
    /// # Errors
    /// [`HomeError::File`] if the file cannot be read, or a line of it is no statement.
    pub fn statements(&self) -> Result<Vec<Statement>, HomeError> {
        let path = self.path().join(STATEMENTS);
        let text = match file::read(&path) {
            Ok(text) => text,
            Err(error) if error.is_missing() => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        };
        let mut at = 0;
        text.lines()
            .map(|line| {
                let span = at..at + line.len();
                at = span.end + 1;
                line.parse()
                    .map_err(|error| FileError::at(&path, &text, span, format!("{error}")).into())
            })
            .collect()
    }

    /// Follows a member's statement of a new key. Any caller may bring it: it is signed by both keys.
    ///
    /// # Errors
    /// [`RotationError::Statement`] if a signature is wrong, [`RotationError::Unknown`], [`RotationError::Dead`] and
    /// [`RotationError::Name`] if the old key is not the one that is pinned under this name, [`RotationError::Old`] if a later
    /// statement is known, [`RotationError::NotNew`] if the new key is known, [`RotationError::Home`] if the home cannot be
    /// locked, written or logged to.
    pub fn accept_rotation(&self, statement: &Statement) -> Result<Joined, RotationError> {
        statement.check()?;
        let lock = self.lock()?;
        self.reload_if_changed()?;
        let (old, new) = (statement.old_key(), statement.new_key());
        let members = self.members();
        let name = || statement.name.clone();
        let known = match members.standing(&old) {
            Standing::Active(known) => known,
            Standing::Former(known) if known.fingerprint == new && known.is_active() => {
                return Ok(Joined {
                    member: known.clone(),
                    again: true,
                });
            }
            Standing::Former(known) | Standing::Revoked(known) => {
                return Err(RotationError::Dead {
                    name: known.name.clone(),
                    revoked: !known.is_active(),
                });
            }
            Standing::Stranger => return Err(RotationError::Unknown { name: name(), old }),
        };
        if known.name != statement.name {
            return Err(RotationError::Name {
                said: name(),
                known: known.name.clone(),
            });
        }
        if statement.counter <= known.rotations {
            return Err(RotationError::Old {
                name: name(),
                counter: statement.counter,
                known: known.rotations,
            });
        }
        let other = match members.standing(&new) {
            Standing::Stranger if new != self.identity().fingerprint() => None,
            Standing::Stranger => Some(self.settings().name.clone()),
            Standing::Active(other) | Standing::Former(other) | Standing::Revoked(other) => {
                Some(other.name.clone())
            }
        };
        if let Some(known) = other {
            return Err(RotationError::NotNew {
                name: name(),
                known,
            });
        }
        let event = Event::Rotation {
            name: name(),
            old: old.to_string(),
            new: new.to_string(),
        };
        self.log().append_under(&lock, event)?;
        let member = self.change_members(&lock, |members| {
            let member = members.any_mut(&statement.name)?;
            member.former.push(Former {
                fingerprint: old,
                until: Time::now(),
            });
            member.fingerprint = new;
            member.since = Time::now();
            member.rotations = statement.counter;
            Some(member.clone())
        })?;
        // The file is read again under the lock, and no other writer writes meanwhile.
        member.map_or(
            Err(RotationError::Unknown { name: name(), old }),
            |member| {
                Ok(Joined {
                    member,
                    again: false,
                })
            },
        )
    }
}
