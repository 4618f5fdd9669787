//! Which of four parties is out: the word of the three others, signed.
//!
//! A job whose output is guaranteed goes on without a party that answers nobody. Silence proves nothing to a third, so it takes the
//! statements of *all* the others: one of them at most is corrupt, so two who are honest have found the party silent for as long as a run
//! may stall. Lines between honest parties are taken to work within that time. Each signs for itself, with the key that the members pin;
//! a statement names plan and time, and is good for as long as it is fresh. Three statements about one party are a verdict, which is the
//! same for whoever sees them.

use std::path::Path;

use serde::{Deserialize, Serialize};
use veil_link::tls::{Fingerprint, Identity, IdentityError, verify};
use veil_session::{PartyId, PlanHash};

use crate::file::{self, FileError};
use crate::home::hex;
use crate::strings::Body;
use crate::time::Time;

/// What a statement is signed for.
const CONTEXT: &str = "a party is missing";

/// How old a statement may be, and how far ahead a clock, in seconds, among parties that are about to finish.
pub const FRESH: i64 = 600;

/// The same for a recipient, who comes to a run that may have waited for it.
pub const RECENT: i64 = 24 * 3600;

/// Statements that are kept for a job: each party about each other.
const MOST: usize = 16;

/// One party has not been heard by another for as long as a run may stall.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Missing {
    /// All digits of the plan of the stage that could not run.
    plan: String,
    /// The fingerprint of the key of whoever is missing.
    about: String,
    /// When it was said, in seconds since 1970.
    time: i64,
    /// The public key of whoever says so, in hexadecimal digits.
    key: String,
    /// Its signature, in hexadecimal digits.
    signature: String,
}

impl Missing {
    /// The statement of the holder of `identity` about the holder of the key `missing`.
    pub fn make(
        identity: &Identity,
        plan: PlanHash,
        missing: &Fingerprint,
    ) -> Result<Self, IdentityError> {
        let mut statement = Missing {
            plan: hex(&plan.0),
            about: missing.to_string(),
            time: Time::now().seconds(),
            key: hex(&identity.public_key()?),
            signature: String::new(),
        };
        statement.signature = hex(&identity.sign(CONTEXT, statement.body().as_bytes())?);
        Ok(statement)
    }

    /// What is signed.
    fn body(&self) -> Body {
        Body::new()
            .text(&self.plan)
            .text(&self.about)
            .bytes(&self.time.to_le_bytes())
            .text(&self.key)
    }

    /// By which key it is, if it is signed, about `plan`, and no older than `age` seconds.
    fn by(&self, plan: PlanHash, age: i64) -> Option<Fingerprint> {
        let digits = |text: &str| data_encoding::HEXLOWER.decode(text.as_bytes()).ok();
        let (key, signature) = (digits(&self.key)?, digits(&self.signature)?);
        let now = Time::now().seconds();
        let fresh = now.saturating_sub(self.time) <= age && self.time.saturating_sub(now) <= FRESH;
        let signed = verify(&key, CONTEXT, self.body().as_bytes(), &signature);
        (self.plan == hex(&plan.0) && fresh && signed).then(|| Fingerprint::of_key(&key))
    }
}

/// The statements about the parties of one job that are known somewhere.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Roll {
    statements: Vec<Missing>,
}

impl Roll {
    /// What is in a file; nothing if it is not there or cannot be read.
    pub(crate) fn read(path: &Path) -> Vec<Missing> {
        let text = file::read(path).ok();
        text.and_then(|text| serde_json::from_str(&text).ok())
            .unwrap_or_default()
    }

    /// Writes what is known.
    pub(crate) fn write(&self, path: &Path) -> Result<(), FileError> {
        let text = serde_json::to_vec(&self.statements).expect("texts and numbers are JSON");
        file::write(path, &text)
    }

    /// What is known.
    pub fn statements(&self) -> &[Missing] {
        &self.statements
    }

    /// Takes what others say, as far as it is by one of `parties` about another of them, about `plan`, and no older than `age` seconds. A newer
    /// statement takes the place of an older one of the same party about the same.
    pub fn hear(&mut self, said: &[Missing], plan: PlanHash, parties: &[Fingerprint], age: i64) {
        for statement in said.iter().take(MOST) {
            let by = statement.by(plan, age);
            let known = by.is_some_and(|by| parties.contains(&by))
                && parties.iter().any(|key| key.to_string() == statement.about);
            if !known {
                continue;
            }
            let same =
                |other: &Missing| other.key == statement.key && other.about == statement.about;
            match self.statements.iter_mut().find(|other| same(other)) {
                Some(other) if other.time < statement.time => *other = statement.clone(),
                Some(_) => {}
                None => self.statements.push(statement.clone()),
            }
        }
    }

    /// Whether the holder of a key has said about another, no longer ago than `age` seconds, that it is missing.
    pub(crate) fn says(
        &self,
        by: &Fingerprint,
        about: &Fingerprint,
        plan: PlanHash,
        age: i64,
    ) -> bool {
        let about = about.to_string();
        let mut own = self.statements.iter().filter(|one| one.about == about);
        own.any(|one| one.by(plan, age).as_ref() == Some(by))
    }

    /// The party that all the others have found missing, by the keys of the parties in their order.
    pub fn out(&self, plan: PlanHash, parties: &[Fingerprint], age: i64) -> Option<PartyId> {
        let out = parties.iter().position(|about| {
            let mut others = parties.iter().filter(|by| *by != about);
            parties.len() == PartyId::FOUR.len() && others.all(|by| self.says(by, about, plan, age))
        });
        out.map(|out| PartyId::FOUR[out])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: PlanHash = PlanHash([7; 32]);

    struct World {
        keys: Vec<Identity>,
        pins: Vec<Fingerprint>,
    }

    impl World {
        fn new() -> Self {
            let keys: Vec<Identity> = (0..5).map(|_| Identity::generate().unwrap()).collect();
            let pins = keys[..4].iter().map(Identity::fingerprint).collect();
            World { keys, pins }
        }

        fn says(&self, by: usize, about: usize) -> Missing {
            let about = self.keys[about].fingerprint();
            Missing::make(&self.keys[by], PLAN, &about).unwrap()
        }

        /// Who is out after these statements.
        fn out(&self, said: &[Missing]) -> Option<PartyId> {
            let mut roll = Roll::default();
            roll.hear(said, PLAN, &self.pins, FRESH);
            roll.out(PLAN, &self.pins, FRESH)
        }
    }

    #[test]
    fn all_three_others_put_a_party_out() {
        let world = World::new();
        for out in 0..4 {
            let others = (0..4).filter(|by| *by != out);
            let said: Vec<Missing> = others.map(|by| world.says(by, out)).collect();
            assert_eq!(world.out(&said), Some(PartyId::FOUR[out]));
            for less in 0..3 {
                let mut said = said.clone();
                said.remove(less);
                assert_eq!(world.out(&said), None);
            }
        }
    }

    #[test]
    fn whoever_lies_puts_nobody_out() {
        let world = World::new();
        let good = [0, 1, 2].map(|by| world.says(by, 3));
        assert!(world.out(&good).is_some());
        let with = |change: &dyn Fn(&mut Missing)| {
            let mut said = good.clone();
            change(&mut said[2]);
            world.out(&said)
        };
        // One party says it twice, for another, or about somebody else; a stranger says it.
        let others = [
            world.says(0, 3),
            world.says(2, 1),
            world.says(4, 3),
            world.says(3, 3),
        ];
        for other in others {
            assert_eq!(with(&|said| *said = other.clone()), None);
        }
        let other = world.says(1, 3);
        let changes: [&dyn Fn(&mut Missing); 7] = [
            &|said| said.time += 1,
            &|said| said.time -= 1,
            &|said| said.plan = hex(&[8; 32]),
            &|said| said.about = world.pins[0].to_string(),
            &|said| said.key.clone_from(&other.key),
            &|said| said.signature.clone_from(&other.signature),
            &|said| said.signature = "x".into(),
        ];
        for (k, change) in changes.iter().enumerate() {
            assert_eq!(with(change), None, "change {k}");
        }
        // For another plan it is another matter.
        let mut roll = Roll::default();
        roll.hear(&good, PlanHash([8; 32]), &world.pins, FRESH);
        assert_eq!(roll, Roll::default());
    }

    #[test]
    fn what_was_said_long_ago_is_forgotten() {
        let world = World::new();
        let aged = |by: usize, seconds: i64| {
            let mut said = world.says(by, 3);
            said.time -= seconds;
            let body = said.body();
            let signature = world.keys[by].sign(CONTEXT, body.as_bytes()).unwrap();
            said.signature = hex(&signature);
            said
        };
        for (age, out) in [(FRESH - 5, true), (FRESH + 5, false), (-FRESH - 5, false)] {
            let said = [aged(0, 0), aged(1, 0), aged(2, age)];
            assert_eq!(world.out(&said).is_some(), out, "{age}");
        }
        let mut roll = Roll::default();
        let said = [aged(0, 0), aged(1, 0), aged(2, FRESH + 5)];
        roll.hear(&said, PLAN, &world.pins, RECENT);
        assert!(roll.out(PLAN, &world.pins, RECENT).is_some());
        // A newer one takes its place, an older one does not.
        roll.hear(&[aged(2, 9)], PLAN, &world.pins, RECENT);
        roll.hear(&[aged(2, 50)], PLAN, &world.pins, RECENT);
        assert!(roll.out(PLAN, &world.pins, 20).is_some());
        assert_eq!(roll.statements().len(), 3);
    }
}
