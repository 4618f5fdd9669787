//! Invitations of a home.

use std::path::Path;
use std::time::Duration;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use serde::{Deserialize, Serialize};
use veil_link::tls::{Fingerprint, FingerprintError};

use crate::file::{self, FileError};
use crate::home::{Home, HomeError, Lock, hex};
use crate::invitation::{Answer, Introduction, Invitation, Join, Token};
use crate::log::Event;
use crate::members::{Former, Member, Members, Standing};
use crate::names::{self, Role};
use crate::settings::{SettingsError, check_address};
use crate::time::Time;

/// The version of the file of invitations.
const VERSION: i64 = 1;

/// The file of invitations that are not used yet.
const INVITATIONS: &str = "invitations.toml";

/// Two participants cannot be made known to each other.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JoinError {
    /// The home cannot be used.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// The invitation is for another participant.
    #[error(
        "the invitation is for `{invitee}`, and this home is `{me}`'s: ask for one of your own, or choose the right home with `--home`"
    )]
    NotForUs {
        /// Whom it invites.
        invitee: String,
        /// Who reads it.
        me: String,
    },
    /// As something else.
    #[error("the invitation is for `{name}` as {invited}, and it is {is}: ask for one as {is}")]
    OtherRole {
        /// Whom it invites.
        name: String,
        /// As what.
        invited: Role,
        /// Its own role.
        is: Role,
    },
    /// The answer is to another participant's invitation.
    #[error(
        "the answer is for `{inviter}`, and this home is `{me}`'s: choose the right home with `--home`"
    )]
    NotOurs {
        /// Whose invitation it answers.
        inviter: String,
        /// Who reads it.
        me: String,
    },
    /// Too late.
    #[error(
        "the invitation expired at {expires}, and it is {now} by this machine's clock: ask for a new one, or set the clock"
    )]
    Expired {
        /// Until when it was good.
        expires: Time,
        /// This machine's time.
        now: Time,
    },
    /// No such token.
    #[error(
        "no open invitation fits: it was used already, was replaced by a newer one, or is not from here; ask for a new one"
    )]
    NoInvitation,
    /// The invitation has another name.
    #[error("the invitation is for `{invited}`, and `{name}` used it: ask for one for `{name}`")]
    OtherName {
        /// Whom it invites.
        invited: String,
        /// Who used it.
        name: String,
    },
    /// Not the key that the connection proves.
    #[error(
        "the connection proves the key {proved}, and the message says {said}: join from the home that owns the key"
    )]
    OtherKey {
        /// The key of the connection.
        proved: Fingerprint,
        /// The key of the message.
        said: Fingerprint,
    },
    /// Our own name or key.
    #[error("`{0}` is this home itself: an invitation is for another participant")]
    Ourselves(String),
    /// The name has another key here.
    #[error(
        "`{name}` is a member already, with another key ({pinned}): if it has a new key, let it run `veil identity rotate` and take its statement with `veil join`; if the old key is lost or stolen, run `veil members revoke {name}` and pair again"
    )]
    Name {
        /// The name.
        name: String,
        /// Its key here.
        pinned: Fingerprint,
    },
    /// The key has another name here.
    #[error(
        "the key of `{name}` is that of member `{known}`: one key has one name; let `{name}` make a home of its own with `veil init`"
    )]
    Key {
        /// The name that it comes with.
        name: String,
        /// The name that it has.
        known: String,
    },
    /// The key is not let in any more.
    #[error("the key of `{name}` was {} here and is not let in again: it needs a new one (`veil identity rotate` there), and then {}", if *revoked { "revoked" } else { "replaced" }, readmission(name, *revoked))]
    Dead {
        /// Whose.
        name: String,
        /// Revoked, or replaced by its owner.
        revoked: bool,
    },
    /// Invited though it is a member.
    #[error(
        "`{0}` is a member already; nothing has to be done, or run `veil members revoke {0}` first to pair again"
    )]
    Member(String),
    /// Not a fingerprint.
    #[error(transparent)]
    Fingerprint(#[from] FingerprintError),
    /// Not an address.
    #[error(transparent)]
    Address(#[from] SettingsError),
    /// A bad name.
    #[error(transparent)]
    BadName(#[from] names::NameError),
}

/// How a member whose key is not admitted any more is readmitted.
fn readmission(name: &str, revoked: bool) -> String {
    if revoked {
        format!(
            "`veil members readmit {name} --key KEY` here, with the key that `veil identity show` prints there, or a new invitation"
        )
    } else {
        "`veil join` here, with the statement that it prints".to_owned()
    }
}

/// The result of joining.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Joined {
    /// Who is a member now.
    pub member: Member,
    /// Whether it was one before, with the same key: then nothing has changed.
    pub again: bool,
}

/// An invitation that was not used yet.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Open {
    name: String,
    role: Role,
    expires: Time,
    /// Of the token.
    sha256: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Invitations {
    version: i64,
    #[serde(default)]
    invitation: Vec<Open>,
}

impl Home {
    /// Who this participant is, for others.
    pub fn introduction(&self) -> Introduction {
        let settings = self.settings();
        Introduction {
            name: settings.name.clone(),
            role: settings.role,
            address: settings.address.clone(),
            fingerprint: self.identity().fingerprint(),
        }
    }

    /// Invites a participant, for so long. A second invitation for the same name replaces the first.
    ///
    /// # Errors
    /// [`JoinError::BadName`] and [`JoinError::Ourselves`] for a bad name or this participant's own, [`JoinError::Member`] if a member has
    /// it, [`JoinError::Home`] if the home cannot be locked, written or logged to, or gives no randomness.
    pub fn invite(&self, name: &str, role: Role, span: Duration) -> Result<Invitation, JoinError> {
        names::check(name)?;
        if name == self.settings().name {
            return Err(JoinError::Ourselves(name.to_owned()));
        }
        let lock = self.lock()?;
        self.reload_if_changed()?;
        if self.members().by_name(name).is_some() {
            return Err(JoinError::Member(name.to_owned()));
        }
        let token = Token::generate().map_err(|error| HomeError::Random(error.to_string()))?;
        let expires = Time::now().after(span);
        let mut open = self.open_invitations()?;
        let now = Time::now();
        open.retain(|other| other.name != name && other.expires > now);
        open.push(Open {
            name: name.to_owned(),
            role,
            expires,
            sha256: hex(&token.digest()),
        });
        let event = Event::Invitation {
            name: name.to_owned(),
            role,
            expires,
        };
        self.log().append_under(&lock, event)?;
        self.write_invitations(&lock, open)?;
        Ok(Invitation {
            inviter: self.introduction(),
            invitee: name.to_owned(),
            role,
            expires,
            token,
        })
    }

    /// Takes up an invitation: pins the inviter. The answer makes this participant known there, as a message
    /// ([`Answer::to_join`]) where the inviter can be dialled, else as a string.
    ///
    /// # Errors
    /// [`JoinError::NotForUs`], [`JoinError::OtherRole`] and [`JoinError::Expired`] if the invitation is for another name or
    /// role, or too old; [`JoinError::Ourselves`], [`JoinError::Key`], [`JoinError::Name`] and [`JoinError::Dead`] if the
    /// inviter's name or key is ours, or known otherwise; [`JoinError::Home`] if the home cannot be locked, written or logged to.
    pub fn join(&self, invitation: &Invitation) -> Result<(Joined, Answer), JoinError> {
        let me = self.introduction();
        if invitation.invitee != me.name {
            return Err(JoinError::NotForUs {
                invitee: invitation.invitee.clone(),
                me: me.name,
            });
        }
        if invitation.role != me.role {
            return Err(JoinError::OtherRole {
                name: me.name,
                invited: invitation.role,
                is: me.role,
            });
        }
        let now = Time::now();
        if invitation.expires < now {
            let expires = invitation.expires;
            return Err(JoinError::Expired { expires, now });
        }
        let lock = self.lock()?;
        let joined = self.take_in(&lock, &invitation.inviter, "joined")?;
        let answer = Answer {
            inviter: invitation.inviter.name.clone(),
            joiner: me,
            token: invitation.token.clone(),
        };
        Ok((joined, answer))
    }

    /// Takes in an invited participant that says so over a connection which proves the key `proved`.
    ///
    /// # Errors
    /// [`JoinError::Fingerprint`], [`JoinError::BadName`] and [`JoinError::Address`] if the message is malformed,
    /// [`JoinError::OtherKey`] if it names another key than `proved`, [`JoinError::NoInvitation`], [`JoinError::OtherName`],
    /// [`JoinError::OtherRole`] and [`JoinError::Expired`] if no invitation is for it, else as of [`Home::join`].
    pub fn accept_join(&self, join: &Join, proved: Fingerprint) -> Result<Joined, JoinError> {
        let said: Fingerprint = join.fingerprint.parse()?;
        if said != proved {
            return Err(JoinError::OtherKey { proved, said });
        }
        names::check(&join.name)?;
        if let Some(address) = &join.address {
            check_address(address)?;
        }
        let lock = self.lock()?;
        self.reload_if_changed()?;
        let open = self.open_invitations()?;
        let digest = hex(&join.token.digest());
        // All are compared, each in constant time: how long it takes says nothing about any of them.
        let found = open.iter().fold(None, |found, open| {
            let same = verify_slices_are_equal(open.sha256.as_bytes(), digest.as_bytes());
            if same.is_ok() { Some(open) } else { found }
        });
        let Some(found) = found else {
            // Its first answer may have been lost on the way: the same key under the same name is no harm.
            return match self.members().by_fingerprint(&proved) {
                Some(member) if member.name == join.name => Ok(Joined {
                    member: member.clone(),
                    again: true,
                }),
                _ => Err(JoinError::NoInvitation),
            };
        };
        if found.name != join.name {
            return Err(JoinError::OtherName {
                invited: found.name.clone(),
                name: join.name.clone(),
            });
        }
        if found.role != join.role {
            return Err(JoinError::OtherRole {
                name: join.name.clone(),
                invited: found.role,
                is: join.role,
            });
        }
        let now = Time::now();
        if found.expires < now {
            let expires = found.expires;
            return Err(JoinError::Expired { expires, now });
        }
        let introduction = Introduction {
            name: join.name.clone(),
            role: join.role,
            address: join.address.clone(),
            fingerprint: proved,
        };
        let joined = self.take_in(&lock, &introduction, "invited")?;
        let rest = open.into_iter().filter(|open| open.sha256 != digest);
        self.write_invitations(&lock, rest.collect())?;
        Ok(joined)
    }

    /// Takes in an invited participant by its answer, which came as a string.
    ///
    /// # Errors
    /// [`JoinError::NotOurs`] if the answer is to another participant, else as of [`Home::accept_join`].
    pub fn accept_answer(&self, answer: &Answer) -> Result<Joined, JoinError> {
        if answer.inviter != self.settings().name {
            return Err(JoinError::NotOurs {
                inviter: answer.inviter.clone(),
                me: self.settings().name.clone(),
            });
        }
        // No connection proves the key; a link will, each time.
        self.accept_join(&answer.to_join(), answer.joiner.fingerprint)
    }

    /// Lets a revoked member in again, under its name and with another key than before: `key`, which a person has from its holder. Its
    /// former keys stay out.
    ///
    /// # Errors
    /// [`JoinError::Member`] if the member is active, [`HomeError::NoMember`] if there is none, [`JoinError::Ourselves`],
    /// [`JoinError::Key`] and [`JoinError::Dead`] if the key is ours or was ever a member's, [`JoinError::Home`] if the home
    /// cannot be locked, written or logged to.
    pub fn readmit(&self, name: &str, key: Fingerprint) -> Result<Member, JoinError> {
        let lock = self.lock()?;
        self.reload_if_changed()?;
        let members = self.members();
        if members.by_name(name).is_some() {
            return Err(JoinError::Member(name.to_owned()));
        }
        let Some(before) = members.any(name) else {
            let revoked = members.all().iter().filter(|member| !member.is_active());
            return Err(HomeError::NoMember {
                name: name.to_owned(),
                known: revoked.map(|member| member.name.clone()).collect(),
            }
            .into());
        };
        if key == self.identity().fingerprint() {
            return Err(JoinError::Ourselves(name.to_owned()));
        }
        match members.standing(&key) {
            Standing::Stranger => {}
            Standing::Active(known) => {
                return Err(JoinError::Key {
                    name: name.to_owned(),
                    known: known.name.clone(),
                });
            }
            Standing::Former(known) | Standing::Revoked(known) => {
                return Err(JoinError::Dead {
                    name: known.name.clone(),
                    revoked: true,
                });
            }
        }
        let who = Introduction {
            name: before.name.clone(),
            role: before.role,
            address: before.address.clone(),
            fingerprint: key,
        };
        // The log first: a member that is not in it is not admitted.
        let event = Event::Readmission {
            name: name.to_owned(),
            old: before.fingerprint.to_string(),
            new: key.to_string(),
        };
        self.log().append_under(&lock, event)?;
        Ok(self.change_members(&lock, |members| admit(members, &who))?)
    }

    /// Makes a participant a member.
    fn take_in(
        &self,
        lock: &Lock,
        who: &Introduction,
        how: &'static str,
    ) -> Result<Joined, JoinError> {
        self.reload_if_changed()?;
        let ours = self.identity().fingerprint();
        if who.name == self.settings().name || who.fingerprint == ours {
            return Err(JoinError::Ourselves(who.name.clone()));
        }
        let members = self.members();
        match members.standing(&who.fingerprint) {
            Standing::Active(known) if known.name == who.name => {
                return Ok(Joined {
                    member: known.clone(),
                    again: true,
                });
            }
            Standing::Active(known) => {
                return Err(JoinError::Key {
                    name: who.name.clone(),
                    known: known.name.clone(),
                });
            }
            Standing::Former(known) | Standing::Revoked(known) => {
                return Err(JoinError::Dead {
                    name: known.name.clone(),
                    revoked: !known.is_active(),
                });
            }
            Standing::Stranger => {}
        }
        if let Some(known) = members.by_name(&who.name) {
            return Err(JoinError::Name {
                name: known.name.clone(),
                pinned: known.fingerprint,
            });
        }
        let event = Event::Member {
            name: who.name.clone(),
            role: who.role,
            fingerprint: who.fingerprint.to_string(),
            how,
        };
        self.log().append_under(lock, event)?;
        let member = self.change_members(lock, |members| admit(members, who))?;
        Ok(Joined {
            member,
            again: false,
        })
    }

    /// Whether a caller may come with an invitation that is still good.
    pub(crate) fn expects_joiners(&self) -> bool {
        let now = Time::now();
        let open = self.open_invitations();
        open.is_ok_and(|open| open.iter().any(|open| open.expires > now))
    }

    fn open_invitations(&self) -> Result<Vec<Open>, HomeError> {
        let path = self.path().join(INVITATIONS);
        match file::read(&path) {
            Ok(text) => Ok(parse_invitations(&path, &text)?),
            Err(error) if error.is_missing() => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }

    fn write_invitations(&self, _lock: &Lock, invitation: Vec<Open>) -> Result<(), HomeError> {
        let all = Invitations {
            version: VERSION,
            invitation,
        };
        let text = toml::to_string(&all).expect("strings and times are TOML");
        Ok(file::write(
            &self.path().join(INVITATIONS),
            text.as_bytes(),
        )?)
    }
}

fn parse_invitations(path: &Path, text: &str) -> Result<Vec<Open>, FileError> {
    file::parse(path, text, VERSION).map(|all: Invitations| all.invitation)
}

/// Adds a member, in the place of a revoked one of this name, whose keys are remembered.
fn admit(members: &mut Members, who: &Introduction) -> Member {
    let mut member = Member {
        name: who.name.clone(),
        role: who.role,
        fingerprint: who.fingerprint,
        address: who.address.clone(),
        since: Time::now(),
        former: Vec::new(),
        rotations: 0,
        revoked: None,
    };
    if let Some(before) = members.any_mut(&who.name) {
        member.former.append(&mut before.former);
        member.former.push(Former {
            fingerprint: before.fingerprint,
            until: Time::now(),
        });
        *before = member.clone();
    } else {
        members.push(member.clone());
    }
    member
}
